/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a job, in memory: what its devices did (commands), the calls that asked for it, what
 * the host did meanwhile (slices), of one or several traces, joined and put in order. Everything in
 * src/state and src/analyze stands on this; nothing below it reads a trace again, but for rows that
 * only one analysis wants.
 *
 *	struct ts_work_options options = { .parts = TS_WORK_SLICES };
 *	ts_work_new(&work, &options);
 *	ts_work_add(work, reader, &err);        // each trace; readers stay open as long as the work
 *	ts_work_finish(work, &err);
 *	...
 *	ts_work_free(work);
 *
 * Times are int64 ns of trace time, within +-2^61, so that no difference overflows. With
 * TS_ROUNDING_HTA they are rounded to us as HTA does it, and an end may then lie 1 us before its
 * start. After finish everything is read-only and may be read by several threads.
 */
#ifndef TS_STATE_WORK_WORK_H
#define TS_STATE_WORK_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/api_names.h"

#define TS_WORK_NONE UINT32_MAX /* no such index */

/* ---- what is there ---- */

/* A source of a trace: one rank of a job. */
struct ts_work_rank {
	int64_t rank; /* its number; where the source says none, its place among all sources */
	int64_t world_size; /* TS_ABSENT: unknown */
	uint32_t name;      /* file or recording */
	uint32_t trace;     /* index of the trace that it is in */
	int64_t source;     /* id there */
	uint32_t clock;     /* of its events */
	int64_t base_ns;    /* trace time of its clock's 0 (Kineto's baseTimeNanoseconds) */
	/*
	 * Where a rank's times come from: 0 as in the trace; set by ts_clock_alignment_apply()
	 * (clock_alignment.h), which moves them. uncertainty_ns: how far off they may be against
	 * other ranks; TS_ABSENT: unknown.
	 */
	int64_t uncertainty_ns;
	uint32_t first_device, device_count;
	uint32_t first_stream, stream_count;
	uint32_t first_thread, thread_count;
	uint32_t first_command, command_count;
	uint32_t first_step, step_count;
	uint32_t steps_in_trace; /* before any were left out */
	int64_t last_step_start; /* of the last step's annotation, the host's or the device's */
	/*
	 * Time range of the commands and calls that were kept, which does not depend on what else
	 * is loaded, and of all rows; from > to where there are none.
	 */
	int64_t from, to;
	int64_t rows_from, rows_to;
};

struct ts_work_device {
	uint32_t rank;
	int64_t number; /* TS_ABSENT: unknown */
	int64_t id;     /* in its trace */
	uint32_t name;  /* model */
	uint32_t first_stream, stream_count;
};

/* Flags of a stream. */
#define TS_STREAM_OUT_OF_ORDER 1u /* its commands are ordered by events and barriers only */

/* A queue. Rows of a display that show the same queue (Kineto's "stream 7 (sync)") are one here. */
struct ts_work_stream {
	uint32_t rank, device;
	int64_t number;   /* TS_ABSENT: unknown */
	int64_t id;       /* in its trace */
	int64_t priority; /* as its driver counts: the lower, the sooner; TS_ABSENT: unknown */
	uint32_t name;
	uint32_t flags; /* TS_STREAM_* */
	uint32_t first_command, command_count;
};

struct ts_work_thread {
	uint32_t rank;
	int64_t pid, tid; /* TS_ABSENT where they are no numbers */
	int64_t id;       /* in its trace */
	uint32_t name;
	uint32_t first_call, call_count;
	uint32_t first_slice, slice_count;
};

/* A step of training or inference: a ProfilerStep#N annotation. */
struct ts_work_step {
	uint32_t rank;
	uint32_t thread;
	int64_t number;
	int64_t start, end;
};

/* ---- what happened ---- */

/* Flags of a command. */
#define TS_COMMAND_UNTIMED \
	1u /* did not end in the trace, or its device time is missing: end == start */
#define TS_COMMAND_EARLY 2u       /* began before its call did: the clocks disagree */
#define TS_COMMAND_SHARES_CALL 4u /* its call launched others, too: a graph */
#define TS_COMMAND_DISORDERED 8u  /* began before one that was issued earlier to the same stream */
#define TS_COMMAND_CONCURRENT 16u /* began before its predecessor in the stream ended */

/*
 * Something that a device did: a row of gpu_op but for synchronisations, which are struct
 * ts_work_sync.
 */
struct ts_work_command {
	int64_t start, end;
	int64_t issued;      /* its call's start, else the column `queued`, else TS_ABSENT */
	int64_t correlation; /* TS_ABSENT: none */
	int64_t bytes;       /* TS_ABSENT: unknown */
	uint64_t row;        /* number in its trace's gpu_op rows, chunk by chunk */
	uint32_t rank, stream;
	uint32_t call; /* that issued it; TS_WORK_NONE: not in the trace */
	uint32_t name;
	uint32_t category;         /* a text, as names are */
	uint32_t collective;       /* what it communicates; TS_WORK_NONE: nothing known */
	uint32_t step;             /* in which it was issued (index of steps); TS_WORK_NONE */
	int32_t graph, graph_node; /* -1: none */
	uint8_t kind;              /* enum ts_gpu_op_kind */
	uint8_t copy_kind;         /* enum ts_copy_kind */
	uint8_t class;             /* enum ts_command_class */
	uint8_t flags;             /* TS_COMMAND_* */
};

/* A call into a driver or runtime. */
struct ts_work_call {
	int64_t start, end;
	int64_t correlation;
	uint64_t row;
	uint32_t rank, thread;
	uint32_t name;
	uint32_t command;       /* first of those that it issued (by start), TS_WORK_NONE: none */
	uint32_t command_count; /* the rest: ts_work_next_of_call() */
	uint8_t kind;           /* enum ts_api_kind */
};

enum ts_sync_kind {
	TS_SYNC_STREAM,      /* the host waited for a stream */
	TS_SYNC_EVENT,       /* ... for an event */
	TS_SYNC_CONTEXT,     /* ... for all streams of a device */
	TS_SYNC_STREAM_WAIT, /* a stream was told to wait for an event */
	TS_SYNC_OTHER,
};

/* A synchronisation that the trace tells of by itself (Kineto's cuda_sync), with its operands. */
struct ts_work_sync {
	int64_t start, end;
	int64_t correlation;
	uint64_t row;
	uint32_t rank;
	uint32_t call; /* TS_WORK_NONE: not in the trace */
	uint32_t device;
	uint32_t stream; /* that was waited for (STREAM), or that waits (STREAM_WAIT); else NONE */
	uint32_t on_stream;         /* where the event was recorded; NONE: unknown */
	int64_t record_correlation; /* call that recorded the event; TS_ABSENT: unknown */
	int64_t event;              /* the event's number; TS_ABSENT: unknown */
	int64_t row_stream; /* number of the stream whose row it stands in, as the trace has it, so
			       also -1 or 4294967295 */
	uint32_t name;
	uint8_t kind; /* enum ts_sync_kind */
};

/* A command that was told to wait for another one (OpenCL's wait lists). */
struct ts_work_wait {
	uint32_t command, on;
};

/* What a collective command says of itself. */
struct ts_work_collective {
	uint32_t command;
	uint32_t group;     /* process group; 0: unsaid */
	uint32_t operation; /* allreduce ...; 0: unsaid */
	uint32_t type;      /* of elements; 0: unsaid */
	int64_t group_size; /* TS_ABSENT: unsaid, as those below */
	int64_t sequence;
	int64_t in_elements, out_elements;
};

enum ts_slice_class {
	TS_SLICE_OP,             /* cpu_op, Operator */
	TS_SLICE_ANNOTATION,     /* user_annotation */
	TS_SLICE_GPU_ANNOTATION, /* gpu_user_annotation: the span of an annotation's kernels */
	TS_SLICE_PYTHON,         /* python_function */
	TS_SLICE_OTHER,
};

/* Work on a thread. Ordered by start inside a thread; of equal starts the longer one first. */
struct ts_work_slice {
	int64_t start, end; /* one that did not end: end of its thread's rows */
	uint64_t row;
	uint32_t rank, thread;
	uint32_t name, category;
	uint32_t parent; /* the slice around it on its thread; TS_WORK_NONE: none. Always a smaller
			    index */
	uint8_t class;   /* enum ts_slice_class */
};

/* An arrow between two instants of threads (fwdbwd and others; never a launch's). */
struct ts_work_flow {
	int64_t from_time, to_time;
	uint32_t from_thread, to_thread;
	uint32_t category;
};

/* ---- what to load ---- */

#define TS_WORK_SLICES 1u /* operators, annotations */
#define TS_WORK_PYTHON 2u /* python_function slices, too */
#define TS_WORK_FLOWS 4u
#define TS_WORK_DETAILS 8u /* collectives: arguments of commands are read */

enum ts_rounding {
	TS_ROUNDING_NONE,
	TS_ROUNDING_HTA, /* starts up, ends down to whole us, in doubles; classes as HTA sees them
			  */
};

struct ts_work_options {
	unsigned int parts; /* TS_WORK_*; commands, calls, syncs and steps are always there */
	enum ts_rounding rounding;
	/*
	 * Which part: calls and slices of [from_step, to_step] by number, and the commands that
	 * they issued. Default (both TS_ABSENT): with two steps or more, everything before the last
	 * step's annotation, the host's or, where there is one, the device's: the last step is
	 * seldom whole on the device, unless the trace has its span there. Else everything. all:
	 * really everything. Commands whose calls are not in the trace were issued before it began,
	 * so that no step has them. Those that name no call are where they begin, as are all of a
	 * rank where none has its call.
	 */
	int64_t from_step, to_step;
	bool all;
	int64_t from, to; /* trace time; calls and slices that begin in it; TS_ABSENT: no bound */
	/*
	 * Only these ranks, by number; rank_count 0: all. Read by ts_work_add() and
	 * ts_work_finish().
	 */
	const int64_t *ranks;
	size_t rank_count;
	/*
	 * Told now and then of rows done and rows in all; stops by returning non-zero. May be NULL.
	 */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

#define TS_WORK_OPTIONS_NONE                                                                     \
	{                                                                                        \
		.from_step = TS_ABSENT, .to_step = TS_ABSENT, .from = TS_ABSENT, .to = TS_ABSENT \
	}

struct ts_work {
	struct ts_work_options options;
	struct ts_reader **readers; /* borrowed */
	uint32_t trace_count;

	struct ts_work_rank *ranks;             /* by rank number, then in order of traces */
	struct ts_work_device *devices;         /* by rank */
	struct ts_work_stream *streams;         /* by rank, device, number */
	struct ts_work_thread *threads;         /* by rank */
	struct ts_work_step *steps;             /* by rank, start; those that were kept */
	struct ts_work_command *commands;       /* by rank, stream, start, row */
	struct ts_work_call *calls;             /* by rank, thread, start */
	struct ts_work_sync *syncs;             /* by rank, start */
	struct ts_work_wait *waits;             /* by command, then by what it waits for */
	struct ts_work_collective *collectives; /* in order of commands */
	struct ts_work_slice *slices;           /* by rank, thread, start, falling end */
	struct ts_work_flow *flows;
	uint32_t rank_count, device_count, stream_count, thread_count, step_count;
	uint32_t command_count, call_count, sync_count, wait_count, collective_count, slice_count,
		flow_count;
	uint32_t *next_of_call; /* of each command: the next one of its call, TS_WORK_NONE at the
				   end */

	/* What was not as it should be. */
	uint64_t commands_without_call; /* missing launches */
	uint64_t calls_without_command; /* launches, copies, fills of which no device time is there
					 */
	uint64_t untimed_commands;
	uint64_t early_commands; /* TS_COMMAND_EARLY */
	int64_t earliest_ns;     /* how far the worst of them is ahead of its call */
	uint64_t disordered_commands;
	uint64_t concurrent_commands;
	uint64_t shared_calls;     /* correlations that several calls use: the first one counts */
	uint64_t dropped_commands; /* not in the part that was asked for */
	uint64_t dropped_between;  /* of these, on a device amid those that are */

	struct ts_strmap names; /* all texts; id 0 is "" */
	struct ts_arena arena;
	struct ts_work_load *load; /* private, until finish */
};

int ts_work_new(struct ts_work **ret_work, const struct ts_work_options *options,
		struct ts_error *err);
int ts_work_add(struct ts_work *work, struct ts_reader *reader, struct ts_error *err);
int ts_work_finish(struct ts_work *work, struct ts_error *err);
void ts_work_free(struct ts_work *work); /* accepts NULL, and work that was never finished */
TS_DEFINE_AUTO(ts_work, ts_work_free);

/* Text of a name, category ...; never NULL, valid until free. */
const char *ts_work_text(const struct ts_work *work, uint32_t name);

/* The id of a text, or 0 where nothing has it. */
uint32_t ts_work_find_text(const struct ts_work *work, const char *text);

/* Commands of a call, in order of start: begin with calls[c].command. */
static inline uint32_t ts_work_next_of_call(const struct ts_work *work, uint32_t command)
{
	return work->next_of_call[command];
}

/*
 * Indices of all commands of a rank in order of start (streams merged), and of all slices and calls
 * of a thread at an instant: made when first asked for would break "read-only", so the caller owns
 * the array. NULL: no memory.
 */
uint32_t *ts_work_commands_by_start(const struct ts_work *work, uint32_t rank);

/* The innermost slice of a thread at an instant; TS_WORK_NONE: none. O(depth + log n). */
uint32_t ts_work_slice_at(const struct ts_work *work, uint32_t thread, int64_t time);

/*
 * The step of a rank around an instant: the last one that began, if it has not ended; else
 * TS_WORK_NONE.
 */
uint32_t ts_work_step_at(const struct ts_work *work, uint32_t rank, int64_t time);

/*
 * Where a rank's calls begin. Correlations rise: a command whose is lower than those of all calls
 * was issued before the first of them, which the trace does not have.
 */
struct ts_work_begin {
	int64_t first_call; /* INT64_MAX: there are none */
	int64_t lowest_correlation;
};

/* One a rank, for ts_work_is_before(); caller frees. NULL: no memory. */
struct ts_work_begin *ts_work_begins(const struct ts_work *work);

static inline bool ts_work_is_before(const struct ts_work_begin *begins,
				     const struct ts_work_command *command)
{
	return command->issued == TS_ABSENT && command->correlation > 0 &&
	       command->correlation < begins[command->rank].lowest_correlation;
}

/* The last call of a thread that begins at or before an instant; TS_WORK_NONE: none. */
uint32_t ts_work_call_before(const struct ts_work *work, uint32_t thread, int64_t time);

#endif
