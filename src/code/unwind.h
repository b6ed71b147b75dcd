/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native call stacks of other processes, without stopping them: unwinds registers and a copy of the
 * stack (from perf samples or /proc/PID/task/TID/syscall) with .eh_frame. x86_64 and aarch64.
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

/* A function of a binary; lives as long as its struct ts_native_process. */
struct ts_native_code {
	const char *name;   /* demangled C++ and Rust if supported; "0x1234" if unknown */
	const char *module; /* path */
	const char *build_id;
	uint64_t start;      /* relative to the module */
	uint32_t tag;        /* for the caller */
	bool is_python_eval; /* the interpreter's loop: Python frames belong here */
	bool is_glue;        /* trampolines and program or thread startup */
};

struct ts_native_frame {
	struct ts_native_code *code;
	uint64_t pc; /* relative to the module; for a caller, one byte before its return address */
};

struct ts_native_process; /* the binaries of one process */

int ts_native_process_open(struct ts_native_process **ret_native, pid_t pid, struct ts_error *err);
/* Rereads the mappings. */
int ts_native_process_refresh(struct ts_native_process *native, struct ts_error *err);
void ts_native_process_close(struct ts_native_process *native);
TS_DEFINE_AUTO(ts_native_process, ts_native_process_close);

/*
 * Innermost first. Returns the number of frames, at most `count`. `stack`: the memory from
 * `stack_address` on. *ret_complete: the outermost frame was reached.
 */
size_t ts_unwind_stack(struct ts_native_process *native,
		       const struct ts_unwind_registers *registers, const void *stack,
		       uint64_t stack_address, size_t stack_bytes,
		       struct ts_native_frame *ret_frames, size_t count, bool *ret_complete);

/*
 * The stack of a thread that is blocked in a system call, from its /proc files and its memory:
 * nothing is stopped. 0 frames: it is running, or access is denied.
 */
size_t ts_unwind_blocked_thread(struct ts_native_process *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count,
				bool *ret_complete);

/*
 * The stack of a thread that is STOPPED with ptrace for a few hundred microseconds: only for
 * `tracesmith stack --native`, if the function above gives no complete stack. Interrupted system
 * calls are resumed; those that fail with EINTR (epoll_wait and similar) are restarted, so that a
 * timeout can take longer. 0 frames: it cannot be stopped, is already traced, or has exited.
 */
size_t ts_unwind_stopped_thread(struct ts_native_process *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count,
				bool *ret_complete);
/*
 * The same; calls `stopped` while the thread is stopped, for data that must be from the same
 * instant.
 */
size_t ts_unwind_stopped_thread_with(struct ts_native_process *native, pid_t tid,
				     void (*stopped)(void *context), void *context,
				     struct ts_native_frame *ret_frames, size_t count,
				     bool *ret_complete);

#endif
