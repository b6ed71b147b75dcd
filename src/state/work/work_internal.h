/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the loader's files. work_load.c reads the rows of a trace; work_texts.c and
 * work_entities.c resolve ids, work_args.c decodes arguments; the other files sort and join. Until
 * ts_work_number() rows refer to ranks, devices, streams and threads in order of appearance.
 */
#ifndef TS_STATE_WORK_WORK_INTERNAL_H
#define TS_STATE_WORK_WORK_INTERNAL_H

#include <string.h>

#include "base/arena.h"
#include "state/work/work.h"

/* Times are clamped to this, so that no difference overflows. */
#define TS_WORK_TIME_LIMIT (INT64_C(1) << 61)

/* Cached facts about a string of the trace being read; filled on first use. */
struct ts_text_facts {
	uint32_t name;       /* in work->names */
	uint32_t code_name;  /* as the name of a kernel or operator, which --short-names shortens */
	uint8_t traits;      /* as the name of a kernel: TS_KERNEL_* */
	uint8_t call_kind;   /* as the name of a call */
	uint8_t slice_class; /* as the category of a slice; SLICE_DROPPED: ignored */
	bool is_step;
	bool is_marker; /* as the category of a sync: it is a command of a queue (OpenCL's markers)
			 */
	bool met;
	uint8_t classes[TS_GPU_OP_COLLECTIVE +
			1]; /* as the name of a command, by kind; CLASS_UNMET */
	int64_t step;
};

/* A wait as stored in a row, until both commands have their final numbers. */
struct ts_pending_wait {
	uint64_t row; /* of gpu_op */
	int64_t correlation;
	uint32_t trace;
};

#define TS_SLICE_DROPPED 255
#define TS_CLASS_UNMET 255

/* A recording window, in trace time; INT64_MAX: it has no end. */
struct ts_work_window {
	int64_t process, start, end;
	bool cuts; /* it may have closed in the middle of a step */
};

struct ts_work_load {
	struct ts_batch *batch;
	struct ts_reader *reader; /* of the trace being read */
	uint32_t trace;
	struct ts_text_facts *facts; /* by string id */
	size_t fact_count;
	struct ts_map far_facts; /* string ids beyond DENSE_FACTS to the address of their facts */
	struct ts_arena far; /* storage of far facts: callers keep one while asking for another */
	/* ids of this trace to indices of work's arrays */
	struct ts_map ranks, devices, streams, threads;
	struct ts_map clock_ranks; /* clock to rank, for rows without any other reference */
	struct ts_pairmap lanes;   /* (device index, number) to stream index */
	size_t rank_capacity, device_capacity, stream_capacity, thread_capacity, step_capacity,
		gap_capacity;
	size_t command_capacity, call_capacity, sync_capacity, collective_capacity, slice_capacity,
		flow_capacity;
	struct ts_pending_wait *waits; /* by trace and row */
	size_t wait_count, wait_capacity;
	struct ts_work_window *windows; /* of the trace being read */
	size_t window_count, window_capacity;
	bool are_windows_sorted;
	bool has_waits;            /* rows of the trace being read may have wait lists */
	bool has_marks;            /* marks of the trace being read may be steps */
	struct ts_map flow_starts; /* ids of flows whose start was seen, to an index in flows */
	uint64_t rows_done, rows_total;
};

/* Appends a zeroed item to one of work's arrays. NULL: out of memory, or too many for an index. */
static inline void *ts_work_add_item(void **array, size_t *capacity, uint32_t *count, size_t bytes)
{
	char *item;

	if (*count == TS_WORK_NONE - 1 || ts_grow_array(array, capacity, (size_t)*count + 1, bytes))
		return NULL;
	item = (char *)*array + bytes * *count;
	memset(item, 0, bytes);
	(*count)++;
	return item;
}

/* TS_WORK_ADD(work, streams, stream) */
#define TS_WORK_ADD(work, items, singular)                                            \
	ts_work_add_item((void **)&(work)->items, &(work)->load->singular##_capacity, \
			 &(work)->singular##_count, sizeof(*(work)->items))

/* ---- work_load.c ---- */

int64_t ts_work_clamp(int64_t time);

/* Start and end of a row, rounded as the options say; true if it has no end. */
bool ts_work_times(const struct ts_work *work, uint32_t rank, int64_t start, int64_t duration,
		   int64_t *ret_start, int64_t *ret_end);

/* Notes that the rank has a row until this instant. */
static inline void ts_work_extend(struct ts_work_rank *rank, int64_t until)
{
	rank->trace_end = TS_MAX(rank->trace_end, until);
}

/* ---- work_steps.c ---- */

/*
 * Whether a span of this name is a step, and its number; TS_ABSENT: the name has none. `name` ends
 * in a NUL.
 */
bool ts_work_parse_step(const struct ts_work_options *options, const char *name, size_t length,
			int64_t *ret_number);

/* Adds the steps that marks announce. */
int ts_work_load_marks(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		       uint32_t clock);

/* Closes and numbers the steps, which must be sorted. 0 or TS_ENOMEM. */
int ts_work_finish_steps(struct ts_work *work);

/* ---- work_windows.c ---- */

int ts_work_load_windows(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
			 uint32_t clock);

/* Notes when no process of the trace had an open window, if any had one. 0 or TS_ENOMEM. */
int ts_work_find_gaps(struct ts_work *work);

/*
 * When the window closes that was open in the thread's process at this time; INT64_MAX: never, or
 * it was none. *ret_cuts: that may be in the middle of a step.
 */
int64_t ts_work_window_end(struct ts_work_load *load, int64_t thread, int64_t time, bool *ret_cuts);

/* ---- work_texts.c ---- */

/* Clears the string facts of the previous trace and allocates those of this one. */
int ts_work_start_texts(struct ts_work_load *load);

const struct ts_text_facts *ts_work_facts(struct ts_work *work, int64_t string);
uint32_t ts_work_name(struct ts_work *work, int64_t string); /* 0 for none */

/* Class of a command with this name and kind. */
uint8_t ts_work_class(struct ts_work *work, int64_t string, int64_t kind);

/* ---- work_entities.c ---- */

/* Adds the sources of a trace as ranks. */
int ts_work_add_ranks(struct ts_work *work);

/* Index for an id of the trace being read, added if new. TS_WORK_NONE: out of memory. */
uint32_t ts_work_device(struct ts_work *work, int64_t id, uint32_t clock);
uint32_t ts_work_stream(struct ts_work *work, int64_t id, uint32_t device);
uint32_t ts_work_thread(struct ts_work *work, int64_t id, uint32_t clock);

/* Lane of a device and stream number, added if new. TS_WORK_NONE: out of memory. */
uint32_t ts_work_lane(struct ts_work *work, uint32_t device, int64_t number, int64_t id);

/* ---- work_args.c ---- */

/* Adds a gpu_op row that is a synchronisation or collective; the batch has its shape. */
int ts_work_add_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		     struct ts_work_sync *sync);
int ts_work_add_collective(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			   uint32_t command);

/* Argument key of the list of correlations that a command waits for. */
#define TS_WAITS_KEY "waits_for"

/* Records the wait list of the current row, number `number` of its table. */
int ts_work_add_waits(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		      uint64_t number);

/* ---- work_ranks.c ---- */

/* Is any rank of the trace being read selected? */
bool ts_work_wants_trace(const struct ts_work *work);

/* Drops ranks that are not selected. 0 or TS_ENOMEM. */
int ts_work_choose_ranks(struct ts_work *work);

/* ---- putting in order: each 0 or TS_ENOMEM ---- */

int ts_work_number(struct ts_work *work); /* work_number.c: final numbers of ranks, devices,
					     streams, threads */
int ts_work_sort(struct ts_work *work);   /* work_sort.c: sorts rows by lane; finishes steps */
int ts_work_join(struct ts_work *work);   /* work_join.c: joins commands and syncs to their calls */
int ts_work_select_range(struct ts_work *work); /* work_range.c: drops what is not selected */
int ts_work_validate(struct ts_work *work);     /* work_validate.c: ranges, parents and anomalies */
int ts_work_resolve_waits(struct ts_work *work); /* work_waits.c: resolves wait lists to commands */

#endif
