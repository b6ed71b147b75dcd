/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native call stacks of other processes, without stopping them: registers and a copy of the stack
 * from elsewhere (perf's samples, /proc/PID/task/TID/syscall) are unwound here by the files' own
 * tables (.eh_frame). x86_64 and aarch64.
 */
#ifndef TS_CODE_UNWIND_H
#define TS_CODE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "code/local/registers.h"

/* A function of a binary; lives as long as the struct ts_native of its process. */
struct ts_native_code {
	const char *name;   /* demangled C++ and Rust where the build can; "0x1234" where it is not
			       known */
	const char *module; /* path */
	const char *build_id;
	uint64_t start;      /* relative to the module */
	uint32_t tag;        /* for the user */
	bool is_python_eval; /* the interpreter's loop: frames of Python belong here */
	bool is_glue;        /* only leads from one to the next, or starts a program or thread */
};

struct ts_native_frame {
	struct ts_native_code *code;
	uint64_t pc; /* relative to the module; of a caller: of its call, so one byte back */
};

struct ts_native; /* the binaries of one process */

int ts_native_open(struct ts_native **ret_native, pid_t pid, struct ts_error *err);
/* The process has mapped or unmapped something since. */
int ts_native_renew(struct ts_native *native, struct ts_error *err);
void ts_native_close(struct ts_native *native);
TS_DEFINE_AUTO(ts_native, ts_native_close);

/*
 * Innermost first; the number of frames, at most `count`. `stack`: the bytes of memory from
 * `stack_address` on. *ret_whole: the outermost frame was reached.
 */
size_t ts_native_unwind(struct ts_native *native, const struct ts_unwind_registers *registers,
			const void *stack, uint64_t stack_address, size_t stack_bytes,
			struct ts_native_frame *ret_frames, size_t count, bool *ret_whole);

/*
 * The stack of a thread that waits in a system call, from its /proc files and its memory: nothing
 * is stopped. 0 frames: it runs, or may not be looked at.
 */
size_t ts_native_waiting_thread(struct ts_native *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count, bool *ret_whole);

/*
 * The stack of a thread that is STOPPED for it, some hundred microseconds, with ptrace: for
 * `tracesmith stack --native` alone, where the above does not give a whole stack. System calls that
 * it was in go on; those that end by being interrupted (epoll_wait and its kin) are begun anew, so
 * that a time-out among them can last longer. 0 frames: it may not be stopped, is traced already,
 * or has ended.
 */
size_t ts_native_stopped_thread(struct ts_native *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count, bool *ret_whole);
/*
 * The same; `stopped` is called while it stands, for other things that must be of the same instant.
 */
size_t ts_native_stopped_thread_with(struct ts_native *native, pid_t tid,
				     void (*stopped)(void *context), void *context,
				     struct ts_native_frame *ret_frames, size_t count,
				     bool *ret_whole);

/* ---- threads that run: perf_event ---- */

/*
 * perf_event counters of threads, software clock, with user registers and a copy of the stack; for
 * sampling with `--native`. The newest stack of each thread is kept, unwound when asked for. A
 * thread is not stopped, but interrupted for some microseconds at each sample.
 *
 * A native stack fits a Python one only if both are of nearly the same instant. So best without an
 * interval: ask for the threads that run, sweep, wait for the answers, take the stacks since the
 * asking; and those of threads that wait by ts_native_waiting_thread().
 */
struct ts_native_perf;
/*
 * `interval_ns` of a thread's own time on a processor; 0: only when asked. `stack_bytes`: 0: 16
 * KiB. TS_ECAP: the message says which setting or capability is missing.
 */
int ts_native_perf_open(struct ts_native_perf **ret_perf, struct ts_native *native,
			int64_t interval_ns, uint32_t stack_bytes, struct ts_error *err);
/*
 * Which threads; new ones are added, others dropped. On failure those that could be added stay:
 * TS_ENOSPC: files or locked memory do not suffice for all.
 */
int ts_native_perf_set_threads(struct ts_native_perf *perf, const pid_t *tids, size_t count,
			       struct ts_error *err);
/*
 * A sample of each of these about 10 us from now; of one that does not run, soon after it does.
 * Without an interval only.
 */
void ts_native_perf_ask(struct ts_native_perf *perf, const pid_t *tids, size_t count);
/* Drains until all who were asked have answered, at most so long. False: some have not. */
bool ts_native_perf_wait(struct ts_native_perf *perf, int64_t at_most_ns);
/* Takes what the kernel has. */
void ts_native_perf_drain(struct ts_native_perf *perf);
/*
 * Frames of the newest sample of a thread that is not older than `since_ns` (CLOCK_MONOTONIC); 0:
 * none.
 */
size_t ts_native_perf_stack(struct ts_native_perf *perf, pid_t tid, int64_t since_ns,
			    int64_t *ret_time_ns, struct ts_native_frame *ret_frames, size_t count,
			    bool *ret_whole);
void ts_native_perf_close(struct ts_native_perf *perf);
TS_DEFINE_AUTO(ts_native_perf, ts_native_perf_close);

#endif
