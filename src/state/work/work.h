/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a job in memory: device commands, the calls that issued them, and host activity
 * (slices), from one or several traces, joined and sorted. All of src/state and src/analyze builds
 * on it; a trace is read again only for rows that a single analysis needs.
 *
 *	struct ts_work_options options = { .load_flags = TS_WORK_SLICES };
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
	/*
	 * Its number. If the source has none: its index among all sources, or, if others of its
	 * trace have one, the first number above these.
	 */
	int64_t rank;
	int64_t world_size; /* TS_ABSENT: unknown */
	uint32_t name;      /* file or recording */
	uint32_t trace;     /* index of its trace */
	int64_t source;     /* id there */
	uint32_t clock;     /* of its events */
	int64_t base_ns; /* trace time at which its clock reads 0 (Kineto's baseTimeNanoseconds) */
	/*
	 * Error bound of this rank's times relative to other ranks. 0: times are as in the trace;
	 * ts_clock_alignment_apply() (clock_alignment.h) moves the times and sets it. TS_ABSENT:
	 * unknown.
	 */
	int64_t uncertainty_ns;
	uint32_t first_device, device_count;
	uint32_t first_stream, stream_count;
	uint32_t first_thread, thread_count;
	uint32_t first_command, command_count;
	uint32_t first_step, step_count;
	uint32_t cut_steps;       /* left out because their window closed */
	uint32_t steps_in_trace;  /* others, before any were dropped */
	bool is_besides;          /* its trace has ranks, but this source has no number */
	bool has_issued_commands; /* some command has its call in the trace */
	int64_t last_step;        /* number of the last one of these; meaningless without any */
	int64_t last_step_start;  /* on the host; TS_ROUNDING_HTA: or on the device */
	int64_t trace_end;        /* end of its last row in the trace, selected or not */
	/*
	 * Time range of the selected commands and calls (independent of what else is loaded), and
	 * of all rows; from > to if there are none.
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

/* A queue. Display rows that show the same queue (Kineto's "stream 7 (sync)") are merged. */
struct ts_work_stream {
	uint32_t rank, device;
	int64_t number;   /* TS_ABSENT: unknown */
	int64_t id;       /* in its trace */
	int64_t priority; /* as the driver counts: lower runs first; TS_ABSENT: unknown */
	uint32_t name;
	uint32_t flags; /* TS_STREAM_* */
	uint32_t first_command, command_count;
};

struct ts_work_thread {
	uint32_t rank;
	int64_t pid, tid; /* TS_ABSENT if not numeric */
	int64_t id;       /* in its trace */
	uint32_t name;
	uint32_t first_call, call_count;
	uint32_t first_slice, slice_count;
};

/* A step of training or inference: a span (options.step_span), or a mark of TS_STEP(). */
struct ts_work_step {
	uint32_t rank;
	uint32_t thread;
	/*
	 * Lasts until the next mark of its thread, the last one to the end; no longer than the
	 * recording window.
	 */
	bool is_mark;
	bool is_cut; /* its window closed before the next mark */
	int64_t number;
	int64_t start, end;
};

/* A time between recording windows: nothing of the trace was recorded. */
struct ts_work_gap {
	uint32_t trace;
	int64_t start, end;
};

/* ---- what happened ---- */

/* Flags of a command. */
#define TS_COMMAND_UNTIMED 1u      /* no end or no device time in the trace: end == start */
#define TS_COMMAND_EARLY 2u        /* started before its call: the clocks disagree */
#define TS_COMMAND_SHARES_CALL 4u  /* its call launched other commands too: a graph */
#define TS_COMMAND_DISORDERED 8u   /* started before a command issued earlier to the same stream */
#define TS_COMMAND_CONCURRENT 16u  /* started before its predecessor in the stream ended */
#define TS_COMMAND_ELEMENTWISE 32u /* by its full name, as the next one */
#define TS_COMMAND_SINGLE_PRECISION 64u /* a matrix product in FP32 without tensor cores */

/* Device work: a row of gpu_op, except synchronisations (struct ts_work_sync). */
struct ts_work_command {
	int64_t start, end;
	int64_t issued;      /* start of its call, else the column `queued`, else TS_ABSENT */
	int64_t correlation; /* TS_ABSENT: none */
	int64_t bytes;       /* TS_ABSENT: unknown */
	uint64_t row;        /* row number in the gpu_op table of its trace, chunk by chunk */
	uint32_t rank, stream;
	uint32_t call; /* the issuing call; TS_WORK_NONE: not in the trace */
	uint32_t name;
	uint32_t category;   /* a text, like names */
	uint32_t collective; /* its collective; TS_WORK_NONE: unknown */
	uint32_t step;       /* step in which it was issued (index of steps), or TS_WORK_NONE */
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
	uint32_t command;       /* first command it issued (by start), TS_WORK_NONE: none */
	uint32_t command_count; /* the rest: ts_work_next_of_call() */
	uint8_t kind;           /* enum ts_api_kind */
};

enum ts_sync_kind {
	TS_SYNC_STREAM,      /* the host waits for a stream */
	TS_SYNC_EVENT,       /* ... for an event */
	TS_SYNC_CONTEXT,     /* ... for all streams of a device */
	TS_SYNC_STREAM_WAIT, /* a stream waits for an event */
	TS_SYNC_OTHER,
};

/* A synchronisation row of the trace (Kineto's cuda_sync), with its operands. */
struct ts_work_sync {
	int64_t start, end;
	int64_t correlation;
	uint64_t row;
	uint32_t rank;
	uint32_t call; /* TS_WORK_NONE: not in the trace */
	uint32_t device;
	uint32_t stream;            /* waited for (STREAM) or waiting (STREAM_WAIT); else NONE */
	uint32_t on_stream;         /* stream that recorded the event; NONE: unknown */
	int64_t record_correlation; /* call that recorded the event; TS_ABSENT: unknown */
	int64_t event;              /* event id; TS_ABSENT: unknown */
	int64_t row_stream; /* stream number of its display row, as in the trace: may be -1 or
			       4294967295 */
	uint32_t name;
	uint8_t kind; /* enum ts_sync_kind */
};

/* An explicit dependency between commands (OpenCL wait lists). */
struct ts_work_wait {
	uint32_t command, on;
};

/* Properties of a collective command. */
struct ts_work_collective {
	uint32_t command;
	uint32_t group;     /* process group; 0: unknown */
	uint32_t operation; /* allreduce ...; 0: unknown */
	uint32_t type;      /* of elements; 0: unknown */
	int64_t group_size; /* TS_ABSENT: unknown, as below */
	int64_t sequence;
	int64_t in_elements, out_elements;
};

enum ts_slice_class {
	TS_SLICE_OP,             /* cpu_op, Operator */
	TS_SLICE_ANNOTATION,     /* user_annotation, nvtx, nvtx:DOMAIN, roctx */
	TS_SLICE_GPU_ANNOTATION, /* gpu_user_annotation: span of an annotation's kernels */
	TS_SLICE_PYTHON,         /* python_function */
	TS_SLICE_OTHER,
};

/* Work on a thread. Sorted by start within a thread; for equal starts the longer slice first. */
struct ts_work_slice {
	int64_t start, end; /* without an end: end of its thread's rows */
	uint64_t row;
	uint32_t rank, thread;
	uint32_t name, category;
	uint32_t parent; /* enclosing slice on its thread; TS_WORK_NONE: none. Always a smaller
			    index */
	uint8_t class;   /* enum ts_slice_class */
};

/* A flow between two instants on threads (fwdbwd and others; launches are excluded). */
struct ts_work_flow {
	int64_t from_time, to_time;
	uint32_t from_thread, to_thread;
	uint32_t category;
};

/* ---- what to load ---- */

#define TS_WORK_SLICES 1u /* operators, annotations */
#define TS_WORK_PYTHON 2u /* python_function slices, too */
#define TS_WORK_FLOWS 4u
#define TS_WORK_DETAILS 8u /* collectives: decode the arguments of commands */

enum ts_rounding {
	TS_ROUNDING_NONE,
	TS_ROUNDING_HTA, /* starts up, ends down to full us, in doubles; classes as in HTA */
};

struct ts_work_options {
	unsigned int load_flags; /* TS_WORK_*; commands, calls, syncs and steps are always loaded */
	enum ts_rounding rounding;
	/*
	 * Name of the spans that are steps, which a number may follow ("iteration 7"); without one
	 * they are counted from 0. NULL: ProfilerStep#N, or the marks of TS_STEP() if a rank has no
	 * such spans. Borrowed.
	 */
	const char *step_span;
	/*
	 * Selection: calls and slices of [from_step, to_step] by number, and the commands that they
	 * issued. Default (both TS_ABSENT): with two or more steps, everything before the last
	 * step's annotation (on the host or, if present, on the device), because the last step is
	 * rarely complete on the device unless the trace has its device span. Otherwise, and for
	 * spans of a rank without device work, everything.
	 * all: no selection. A command whose call is missing was issued before the trace began and
	 * belongs to no step. A command without a call reference is selected by its start, as are
	 * all commands of a rank in which no command has its call.
	 */
	int64_t from_step, to_step;
	bool all;
	bool short_names; /* of kernels and operators: without arguments (model/short_name.h) */
	int64_t from,
		to; /* trace time; selects calls and slices that start in it; TS_ABSENT: no bound */
	/*
	 * Only these ranks, by number; rank_count 0: all. Used by ts_work_add() and
	 * ts_work_finish().
	 */
	const int64_t *ranks;
	size_t rank_count;
	/* Called periodically with rows done and total rows; non-zero cancels. May be NULL. */
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

	struct ts_work_rank *ranks;             /* by rank number, then in trace order */
	struct ts_work_device *devices;         /* by rank */
	struct ts_work_stream *streams;         /* by rank, device, number */
	struct ts_work_thread *threads;         /* by rank */
	struct ts_work_step *steps;             /* by rank, start; selected ones only */
	struct ts_work_gap *gaps;               /* by trace, start */
	struct ts_work_command *commands;       /* by rank, stream, start, row */
	struct ts_work_call *calls;             /* by rank, thread, start */
	struct ts_work_sync *syncs;             /* by rank, start */
	struct ts_work_wait *waits;             /* by command, then by dependency */
	struct ts_work_collective *collectives; /* in command order */
	struct ts_work_slice *slices;           /* by rank, thread, start, descending end */
	struct ts_work_flow *flows;
	uint32_t rank_count, device_count, stream_count, thread_count, step_count, gap_count;
	uint32_t command_count, call_count, sync_count, wait_count, collective_count, slice_count,
		flow_count;
	uint32_t *next_of_call; /* per command: next command of its call, TS_WORK_NONE at the end */

	/* Anomalies. */
	uint64_t commands_without_call; /* missing launches */
	uint64_t calls_without_command; /* launches, copies, fills without device time */
	uint64_t untimed_commands;
	uint64_t early_commands; /* TS_COMMAND_EARLY */
	int64_t earliest_ns;     /* how far the worst one is ahead of its call */
	uint64_t disordered_commands;
	uint64_t concurrent_commands;
	uint64_t shared_calls;     /* correlation ids used by several calls: the first one counts */
	uint64_t dropped_commands; /* not in the selected range */
	uint64_t dropped_between;  /* of these, on a device between selected ones */

	struct ts_strmap names; /* all texts; id 0 is "" */
	struct ts_arena arena;
	struct ts_work_load *load; /* private, until finish */
};

int ts_work_new(struct ts_work **ret_work, const struct ts_work_options *options,
		struct ts_error *err);
int ts_work_add(struct ts_work *work, struct ts_reader *reader, struct ts_error *err);
int ts_work_finish(struct ts_work *work, struct ts_error *err);
void ts_work_free(struct ts_work *work); /* accepts NULL and unfinished work */
TS_DEFINE_AUTO(ts_work, ts_work_free);

/* Text of a name, category ...; never NULL, valid until free. */
const char *ts_work_text(const struct ts_work *work, uint32_t name);

/* Id of a text, or 0 if it does not occur. */
uint32_t ts_work_find_text(const struct ts_work *work, const char *text);

/* What spans that are steps are called, without their number. */
const char *ts_work_step_name(const struct ts_work *work);

/* Whether a slice is a step. */
bool ts_work_is_step(const struct ts_work *work, const struct ts_work_slice *slice);

/* Commands of a call by start: begin with calls[c].command. */
static inline uint32_t ts_work_next_of_call(const struct ts_work *work, uint32_t command)
{
	return work->next_of_call[command];
}

/*
 * Indices of all commands of a rank by start, streams merged. Caching it would break "read-only",
 * so the caller owns the array. NULL: out of memory.
 */
uint32_t *ts_work_commands_by_start(const struct ts_work *work, uint32_t rank);

/* The innermost slice of a thread at an instant; TS_WORK_NONE: none. O(depth + log n). */
uint32_t ts_work_slice_at(const struct ts_work *work, uint32_t thread, int64_t time);

/*
 * The step of a rank at an instant: the last one that started, if it has not ended; else
 * TS_WORK_NONE.
 */
uint32_t ts_work_step_at(const struct ts_work *work, uint32_t rank, int64_t time);

/* Time between recording windows, from the first to the last selected command or call of a rank. */
int64_t ts_work_unrecorded_ns(const struct ts_work *work, uint32_t rank);

/* Did the default selection leave out the last step of the rank? ranks[rank].last_step names it. */
bool ts_work_leaves_out_last_step(const struct ts_work *work, uint32_t rank);

/*
 * Where the calls of a rank begin. Correlation ids increase: a command whose id is below those of
 * all calls was issued before the first call in the trace.
 */
struct ts_work_begin {
	int64_t first_call; /* INT64_MAX: no calls */
	int64_t lowest_correlation;
};

/* One per rank, for ts_work_is_before(); caller frees. NULL: out of memory. */
struct ts_work_begin *ts_work_begins(const struct ts_work *work);

static inline bool ts_work_is_before(const struct ts_work_begin *begins,
				     const struct ts_work_command *command)
{
	return command->issued == TS_ABSENT && command->correlation > 0 &&
	       command->correlation < begins[command->rank].lowest_correlation;
}

/* The last call of a thread that starts at or before an instant; TS_WORK_NONE: none. */
uint32_t ts_work_call_before(const struct ts_work *work, uint32_t thread, int64_t time);

#endif
