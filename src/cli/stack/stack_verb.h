/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of `tracesmith stack`: stack_capture.c captures a process, with native frames
 * from stack_native.c; stack_text.c and stack_json.c print it; stack_group.c groups threads with
 * equal stacks.
 */
#ifndef TS_CLI_STACK_STACK_VERB_H
#define TS_CLI_STACK_STACK_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/arena.h"
#include "base/text.h"
#include "code/unwind.h"
#include "python/reader/python_reader.h"

/* ---- captured data ---- */

/* Strings belong to the frame's process. */
struct ts_stack_frame {
	const char *function;
	const char *file; /* native code: the module */
	int64_t line;     /* native code: the address in the module; 0: unknown */
	bool is_native;
	bool is_entry;      /* native code called this Python frame */
	const char *locals; /* a JSON object of texts; NULL: not requested, or unreadable */
};

struct ts_stack_thread {
	pid_t tid; /* 0: unknown */
	uint64_t thread_id;
	int64_t interpreter;
	const char *name; /* "": unknown */
	const char *task; /* "": none */
	bool is_main;
	bool is_rejected;              /* its stack was incomplete in all attempts */
	bool is_native;                /* not a Python thread */
	bool was_stopped;              /* briefly, to get its native frames */
	bool is_cut;                   /* the outermost native frames could not be reached */
	const char *native_missing;    /* why requested native frames are missing; "" */
	uint32_t state;                /* enum ts_python_state flags */
	struct ts_stack_frame *frames; /* innermost first */
	size_t count;
};

struct ts_stack_process {
	pid_t pid, inner_pid; /* inner_pid: in its own pid namespace */
	uint64_t start_time;
	char name[64];
	char command[512];
	int64_t rank, local_rank, world_size; /* from its environment; -1: unknown */
	bool is_python, is_free_threaded;
	bool is_stopped; /* by a signal or a debugger */
	char version[48];
	struct ts_stack_thread *threads; /* the main one first, then by number */
	size_t count, capacity;
	/* Owners of the frames' strings. */
	struct ts_arena texts;
	struct ts_python_reader *python;
	struct ts_native_process *native;
};

struct ts_stack_options {
	bool native, locals;
};

/*
 * The state of a thread; asks the kernel now whether it runs, since the reader may only infer it.
 */
uint32_t ts_stack_query_kernel(const struct ts_stack_process *process,
			       const struct ts_python_thread *seen);
/* Copies the Python frames of a thread (stack_capture.c). TS_OK or TS_ENOMEM. */
int ts_stack_keep_frames(struct ts_stack_process *process, struct ts_stack_thread *thread,
			 const struct ts_python_thread *seen,
			 const struct ts_stack_options *options);

/* Takes a zeroed struct; release it even on failure. Errors as of ts_python_reader_open(). */
int ts_stack_capture(struct ts_stack_process *process, pid_t pid,
		     const struct ts_stack_options *options, struct ts_error *err);
void ts_stack_process_release(struct ts_stack_process *process);

/* Sleeps this long, regardless of signals. */
void ts_stack_sleep(int64_t ns);

/* ---- native frames (stack_native.c) ---- */

#define TS_STACK_NATIVE_FRAMES 512u

/*
 * Merges native frames with the Python frames. A thread whose two stacks do not match keeps its
 * Python frames and says why.
 */
int ts_stack_add_native(struct ts_stack_process *process, const struct ts_stack_options *options,
			struct ts_error *err);

/* ---- printing ---- */

void ts_stack_put_text(struct ts_text *out, const struct ts_stack_process *process, bool colour);
/* One line. */
void ts_stack_put_json(struct ts_text *out, const struct ts_stack_process *process);
/* "all_reduce (/x/dist.py:120)". */
void ts_stack_put_frame(struct ts_text *out, const struct ts_stack_frame *frame, bool colour);
/* An array, innermost first. */
void ts_stack_put_json_frames(struct ts_text *out, const struct ts_stack_frame *frames,
			      size_t count);
/* "idle", "running", "gil", "waiting for gil", "collecting", as in rows of samples. */
const char *ts_stack_state_name(uint32_t state);

/* Prints text in a colour (stack_text.c). */
enum ts_stack_colour { TS_STACK_BOLD, TS_STACK_DIM, TS_STACK_GREEN, TS_STACK_YELLOW };
void ts_stack_put_coloured(struct ts_text *out, bool colour, enum ts_stack_colour which,
			   const char *text);

/* ---- groups ---- */

/* A thread of a group. */
struct ts_stack_group_thread {
	const struct ts_stack_process *process;
	const struct ts_stack_thread *thread;
};

struct ts_stack_group {
	const struct ts_stack_group_thread *members; /* by rank and pid; `count` of them */
	size_t count;
	size_t process_count; /* distinct processes among them */
};

struct ts_stack_groups {
	struct ts_stack_group_thread *members; /* group by group */
	struct ts_stack_group *groups;         /* largest first */
	size_t member_count, group_count;
	size_t process_count; /* total over all groups */
	size_t common;        /* common outermost frames */
};

/* Main threads, or all others. Threads without a stack are left out. */
int ts_stack_groups_init(struct ts_stack_groups *ret_groups,
			 const struct ts_stack_process *processes, size_t count, bool main);
void ts_stack_groups_release(struct ts_stack_groups *groups);

int ts_stack_put_groups_text(struct ts_text *out, const struct ts_stack_process *processes,
			     size_t count, bool colour);
int ts_stack_put_groups_json(struct ts_text *out, const struct ts_stack_process *processes,
			     size_t count);

#endif
