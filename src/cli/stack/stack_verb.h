/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `tracesmith stack` share: stack_capture.c makes a picture of a process, with
 * native frames from stack_native.c; others show it: stack_text.c and stack_json.c process by
 * process, stack_group.c finds who stands at the same place.
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

/* ---- the picture ---- */

/* Texts belong to the process that the frame is of. */
struct ts_stack_frame {
	const char *function;
	const char *file; /* of native code: the module */
	int64_t line;     /* of native code: the address in the module; 0: not known */
	bool is_native;
	bool is_entry;      /* native code has called this frame of Python */
	const char *locals; /* a JSON object of texts; NULL: not asked for, or could not be read */
};

struct ts_stack_thread {
	pid_t tid; /* 0: not known */
	uint64_t thread_id;
	int64_t interpreter;
	const char *name; /* "": not known */
	const char *task; /* "": none */
	bool is_main;
	bool is_rejected;           /* its stack was not whole in any of the tries */
	bool is_native;             /* not one of Python's */
	bool was_stopped;           /* for an instant, since nothing else gave its native frames */
	bool is_cut;                /* outermost native frames could not be reached */
	const char *native_missing; /* why native frames are not there, though asked for; "" */
	uint32_t state;             /* enum ts_python_state, or-ed */
	struct ts_stack_frame *frames; /* innermost first */
	size_t count;
};

struct ts_stack_process {
	pid_t pid, inner_pid; /* inner: as it is called in its own namespace */
	uint64_t start_time;
	char name[64];
	char command[512];
	int64_t rank, local_rank, world_size; /* of its environment; -1: not known */
	bool is_python, is_free_threaded;
	bool is_stopped; /* by a signal or a debugger */
	char version[48];
	struct ts_stack_thread *threads; /* the main one first, then by number */
	size_t count, capacity;
	/* What the texts of frames belong to. */
	struct ts_arena texts;
	struct ts_python_reader *python;
	struct ts_native_process *native;
};

struct ts_stack_options {
	bool native, locals;
};

/*
 * What it does; whether it runs is asked here and now: a reader that is in a hurry takes one that
 * has moved for one that runs.
 */
uint32_t ts_stack_query_kernel(const struct ts_stack_process *process,
			       const struct ts_python_thread *seen);
/* Copies the frames of Python of a thread that was seen (stack_capture.c). TS_OK or TS_ENOMEM. */
int ts_stack_keep_frames(struct ts_stack_process *process, struct ts_stack_thread *thread,
			 const struct ts_python_thread *seen,
			 const struct ts_stack_options *options);

/* Of a zeroed struct; a failed one must be released, too. Errors as of ts_python_reader_open(). */
int ts_stack_capture(struct ts_stack_process *process, pid_t pid,
		     const struct ts_stack_options *options, struct ts_error *err);
void ts_stack_process_release(struct ts_stack_process *process);

/* Waits so long, whatever signals come. */
void ts_stack_sleep(int64_t ns);

/* ---- native frames (stack_native.c) ---- */

#define TS_STACK_NATIVE_FRAMES 512u

/*
 * Puts native frames between those of Python that are there. A thread whose two stacks do not fit
 * together keeps Python's and says why.
 */
int ts_stack_add_native(struct ts_stack_process *process, const struct ts_stack_options *options,
			struct ts_error *err);

/* ---- showing ---- */

void ts_stack_put_text(struct ts_text *out, const struct ts_stack_process *process, bool colour);
/* One line. */
void ts_stack_put_json(struct ts_text *out, const struct ts_stack_process *process);
/* "all_reduce (/x/dist.py:120)". */
void ts_stack_put_frame(struct ts_text *out, const struct ts_stack_frame *frame, bool colour);
/* An array, innermost first. */
void ts_stack_put_json_frames(struct ts_text *out, const struct ts_stack_frame *frames,
			      size_t count);
/* "idle", "running", "gil", "waiting for gil", "collecting", as of rows of samples. */
const char *ts_stack_state_name(uint32_t state);

/* Begins and ends a colour (stack_text.c). */
enum ts_stack_colour { TS_STACK_BOLD, TS_STACK_DIM, TS_STACK_GREEN, TS_STACK_YELLOW };
void ts_stack_put_coloured(struct ts_text *out, bool colour, enum ts_stack_colour which,
			   const char *text);

/* ---- groups ---- */

/* A thread that stands somewhere. */
struct ts_stack_group_thread {
	const struct ts_stack_process *process;
	const struct ts_stack_thread *thread;
};

struct ts_stack_group {
	const struct ts_stack_group_thread *places; /* by rank and pid; `count` of them */
	size_t count;
	size_t process_count; /* different ones among them */
};

struct ts_stack_groups {
	struct ts_stack_group_thread *places; /* group by group */
	struct ts_stack_group *groups;        /* the greatest first */
	size_t place_count, group_count;
	size_t process_count; /* in all groups together */
	size_t common;        /* outermost frames that all have, before they part */
};

/* Main threads, or all others. Threads without a stack are in none. */
int ts_stack_groups_init(struct ts_stack_groups *ret_groups,
			 const struct ts_stack_process *processes, size_t count, bool main);
void ts_stack_groups_release(struct ts_stack_groups *groups);
bool ts_stack_frames_same(const struct ts_stack_frame *a, const struct ts_stack_frame *b);

int ts_stack_put_groups_text(struct ts_text *out, const struct ts_stack_process *processes,
			     size_t count, bool colour);
int ts_stack_put_groups_json(struct ts_text *out, const struct ts_stack_process *processes,
			     size_t count);

#endif
