/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TS_SAMPLE_PERF_PERF_STACKS_H
#define TS_SAMPLE_PERF_PERF_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "code/unwind.h"

/*
 * Native stacks of running threads by perf_event: a software clock per thread samples user
 * registers and a copy of the stack; used for `--native`. The newest sample of each thread is kept,
 * and unwound on request. A thread is not stopped, but interrupted for a few microseconds per
 * sample.
 *
 * A native stack matches a Python one only if both are from nearly the same instant. So best
 * without an interval: request samples of the running threads, sweep, wait for the samples, get the
 * stacks since the request; and those of blocked threads by ts_unwind_blocked_thread().
 */
struct ts_perf_stacks;
/*
 * `interval_ns` of a thread's CPU time; 0: only on request. `stack_bytes`: 0: 16 KiB. TS_ECAP: the
 * message says which setting or capability is missing.
 */
int ts_perf_stacks_open(struct ts_perf_stacks **ret_perf, struct ts_native_process *native,
			int64_t interval_ns, uint32_t stack_bytes, struct ts_error *err);
/*
 * Sets the threads; adds new ones, drops others. On failure those that could be added stay.
 * TS_ENOSPC: not enough descriptors or locked memory for all.
 */
int ts_perf_stacks_set_threads(struct ts_perf_stacks *perf, const pid_t *tids, size_t count,
			       struct ts_error *err);
/*
 * Requests a sample of each of these in about 10 us; of a thread that is not running, soon after it
 * does. Only without an interval.
 */
void ts_perf_stacks_request(struct ts_perf_stacks *perf, const pid_t *tids, size_t count);
/* Drains until all requested samples have arrived, up to a limit. False: some have not. */
bool ts_perf_stacks_wait(struct ts_perf_stacks *perf, int64_t at_most_ns);
/* Reads what the kernel has. */
void ts_perf_stacks_drain(struct ts_perf_stacks *perf);
/*
 * Frames of a thread's newest sample that is not older than `since_ns` (CLOCK_MONOTONIC); 0: none.
 */
size_t ts_perf_stacks_get(struct ts_perf_stacks *perf, pid_t tid, int64_t since_ns,
			  int64_t *ret_time_ns, struct ts_native_frame *ret_frames, size_t count,
			  bool *ret_complete);
void ts_perf_stacks_close(struct ts_perf_stacks *perf);
TS_DEFINE_AUTO(ts_perf_stacks, ts_perf_stacks_close);

#endif
