/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native call stacks of other processes, without stopping them: registers and a copy of the stack from elsewhere (perf's
 * samples, /proc/PID/task/TID/syscall) are unwound here by the files' own tables (.eh_frame). x86_64 and aarch64.
 */
#ifndef TS_CAPTURE_NATIVE_UNWIND_H
#define TS_CAPTURE_NATIVE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"

#define TS_UNWIND_REGISTERS \
	33 /* by DWARF's numbers: 16 and the return address on x86_64; x0-x30, sp, pc on aarch64 */

struct ts_unwind_registers {
	uint64_t known; /* bit of each */
	uint64_t values[TS_UNWIND_REGISTERS];
};

/* A function of a binary; lives as long as the struct ts_native of its process. */
struct ts_native_code {
	const char *
		name; /* demangled C++ and Rust where the build can; "0x1234" where it is not known */
	const char *module; /* path */
	const char *build_id;
	uint64_t start;      /* relative to the module */
	uint32_t tag;        /* for the user */
	bool is_python_eval; /* the interpreter's loop: frames of Python belong here */
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
 * Innermost first; the number of frames, at most `count`. `stack`: the bytes of memory from `stack_address` on. *ret_whole:
 * the outermost frame was reached.
 */
size_t ts_native_unwind(struct ts_native *native, const struct ts_unwind_registers *registers,
			const void *stack, uint64_t stack_address, size_t stack_bytes,
			struct ts_native_frame *ret_frames, size_t count, bool *ret_whole);

/*
 * The stack of a thread that waits in a system call, from its /proc files and its memory: nothing is stopped. 0 frames:
 * it runs, or may not be looked at.
 */
size_t ts_native_waiting_thread(struct ts_native *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count, bool *ret_whole);

/* ---- threads that run: perf_event ---- */

/*
 * perf_event counters of threads, software clock, with user registers and a copy of the stack; for sampling with `--native`. The newest
 * stack of each thread is kept, unwound when asked for.
 */
struct ts_native_perf;
/* `stack_bytes`: 0: 16 KiB. TS_ECAP: the message says which setting or capability is missing. */
int ts_native_perf_open(struct ts_native_perf **ret_perf, struct ts_native *native,
			int64_t interval_ns, uint32_t stack_bytes, struct ts_error *err);
/* Which threads; new ones are added, others dropped. */
int ts_native_perf_set_threads(struct ts_native_perf *perf, const pid_t *tids, size_t count,
			       struct ts_error *err);
/* Takes what the kernel has. */
void ts_native_perf_drain(struct ts_native_perf *perf);
/* Frames of the newest sample of a thread that is not older than `since_ns` (CLOCK_MONOTONIC); 0: none. */
size_t ts_native_perf_stack(struct ts_native_perf *perf, pid_t tid, int64_t since_ns,
			    int64_t *ret_time_ns, struct ts_native_frame *ret_frames, size_t count,
			    bool *ret_whole);
void ts_native_perf_close(struct ts_native_perf *perf);

#endif
