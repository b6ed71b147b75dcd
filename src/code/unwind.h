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

/* A function of a binary; lives as long as the struct ts_native_process of its process. */
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

struct ts_native_process; /* the binaries of one process */

int ts_native_process_open(struct ts_native_process **ret_native, pid_t pid, struct ts_error *err);
/* The process has mapped or unmapped something since. */
int ts_native_process_refresh(struct ts_native_process *native, struct ts_error *err);
void ts_native_process_close(struct ts_native_process *native);
TS_DEFINE_AUTO(ts_native_process, ts_native_process_close);

/*
 * Innermost first; the number of frames, at most `count`. `stack`: the bytes of memory from
 * `stack_address` on. *ret_complete: the outermost frame was reached.
 */
size_t ts_unwind_stack(struct ts_native_process *native,
		       const struct ts_unwind_registers *registers, const void *stack,
		       uint64_t stack_address, size_t stack_bytes,
		       struct ts_native_frame *ret_frames, size_t count, bool *ret_complete);

/*
 * The stack of a thread that waits in a system call, from its /proc files and its memory: nothing
 * is stopped. 0 frames: it runs, or may not be looked at.
 */
size_t ts_unwind_blocked_thread(struct ts_native_process *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count,
				bool *ret_complete);

/*
 * The stack of a thread that is STOPPED for it, some hundred microseconds, with ptrace: for
 * `tracesmith stack --native` alone, where the above does not give a whole stack. System calls that
 * it was in go on; those that end by being interrupted (epoll_wait and its kin) are begun anew, so
 * that a time-out among them can last longer. 0 frames: it may not be stopped, is traced already,
 * or has ended.
 */
size_t ts_unwind_stopped_thread(struct ts_native_process *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count,
				bool *ret_complete);
/*
 * The same; `stopped` is called while it stands, for other things that must be of the same instant.
 */
size_t ts_unwind_stopped_thread_with(struct ts_native_process *native, pid_t tid,
				     void (*stopped)(void *context), void *context,
				     struct ts_native_frame *ret_frames, size_t count,
				     bool *ret_complete);

#endif
