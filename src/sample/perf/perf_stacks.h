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
 * perf_event counters of threads, software clock, with user registers and a copy of the stack; for
 * sampling with `--native`. The newest stack of each thread is kept, unwound when asked for. A
 * thread is not stopped, but interrupted for some microseconds at each sample.
 *
 * A native stack fits a Python one only if both are of nearly the same instant. So best without an
 * interval: ask for the threads that run, sweep, wait for the answers, take the stacks since the
 * asking; and those of threads that wait by ts_unwind_blocked_thread().
 */
struct ts_perf_stacks;
/*
 * `interval_ns` of a thread's own time on a processor; 0: only when asked. `stack_bytes`: 0: 16
 * KiB. TS_ECAP: the message says which setting or capability is missing.
 */
int ts_perf_stacks_open(struct ts_perf_stacks **ret_perf, struct ts_native_process *native,
			int64_t interval_ns, uint32_t stack_bytes, struct ts_error *err);
/*
 * Which threads; new ones are added, others dropped. On failure those that could be added stay:
 * TS_ENOSPC: files or locked memory do not suffice for all.
 */
int ts_perf_stacks_set_threads(struct ts_perf_stacks *perf, const pid_t *tids, size_t count,
			       struct ts_error *err);
/*
 * A sample of each of these about 10 us from now; of one that does not run, soon after it does.
 * Without an interval only.
 */
void ts_perf_stacks_request(struct ts_perf_stacks *perf, const pid_t *tids, size_t count);
/* Drains until all who were asked have answered, at most so long. False: some have not. */
bool ts_perf_stacks_wait(struct ts_perf_stacks *perf, int64_t at_most_ns);
/* Takes what the kernel has. */
void ts_perf_stacks_drain(struct ts_perf_stacks *perf);
/*
 * Frames of the newest sample of a thread that is not older than `since_ns` (CLOCK_MONOTONIC); 0:
 * none.
 */
size_t ts_perf_stacks_get(struct ts_perf_stacks *perf, pid_t tid, int64_t since_ns,
			  int64_t *ret_time_ns, struct ts_native_frame *ret_frames, size_t count,
			  bool *ret_complete);
void ts_perf_stacks_close(struct ts_perf_stacks *perf);
TS_DEFINE_AUTO(ts_perf_stacks, ts_perf_stacks_close);

#endif
