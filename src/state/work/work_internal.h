/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the loader share: work_load.c reads rows of a trace (work_texts.c and
 * work_entities.c know what their ids stand for, work_args.c what is in their arguments); then
 * others put all in order. Until ts_work_number() rows refer to ranks, devices, streams and threads
 * in the order in which these came.
 */
#ifndef TS_STATE_WORK_WORK_INTERNAL_H
#define TS_STATE_WORK_WORK_INTERNAL_H

#include <string.h>

#include "base/arena.h"
#include "state/work/work.h"

/* Times are kept inside these, so that no difference of two overflows. */
#define TS_WORK_TIME_LIMIT (INT64_C(1) << 61)

/* What is known of a text of the trace that is being read; found out when it is first met. */
struct ts_text_facts {
	uint32_t name;       /* in work->names */
	uint8_t call_kind;   /* as the name of a call */
	uint8_t slice_class; /* as the category of a slice; SLICE_DROPPED: of no interest */
	bool is_step;
	bool is_marker; /* as the category of a synchronisation: it is a command of a queue
			   (OpenCL's markers) */
	bool met;
	uint8_t classes[TS_GPU_OP_COLLECTIVE +
			1]; /* as the name of a command, by kind; CLASS_UNMET */
	int64_t step;
};

/* A wait as a row tells it, until both commands have their numbers. */
struct ts_pending_wait {
	uint64_t row; /* of gpu_op */
	int64_t correlation;
	uint32_t trace;
};

#define TS_SLICE_DROPPED 255
#define TS_CLASS_UNMET 255

struct ts_work_load {
	struct ts_batch *batch;
	struct ts_reader *reader; /* of the trace that is being read */
	uint32_t trace;
	struct ts_text_facts *facts; /* by string id */
	size_t fact_count;
	struct ts_map far_facts; /* string ids beyond DENSE_FACTS, to the address of their facts */
	struct ts_arena
		far; /* where these lie: callers hold on to one while they ask for another */
	/* ids of this trace to places in work's arrays */
	struct ts_map ranks, devices, streams, threads;
	struct ts_map clock_ranks; /* clock to rank: for rows that belong to nobody else */
	struct ts_pairmap lanes;   /* (device place, number) to stream place */
	size_t rank_capacity, device_capacity, stream_capacity, thread_capacity, step_capacity;
	size_t command_capacity, call_capacity, sync_capacity, collective_capacity, slice_capacity,
		flow_capacity;
	struct ts_pending_wait *waits; /* by trace and row */
	size_t wait_count, wait_capacity;
	bool tells_waits;          /* the trace that is being read: rows may have lists of waits */
	struct ts_map flow_starts; /* ids of arrows whose beginning was met, to a place in flows */
	uint64_t rows_done, rows_total;
};

/*
 * A new, zeroed item at the end of one of work's arrays; NULL: no memory, or as many as an index
 * can tell.
 */
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

/* Start and end of a row as the options round them; true if it did not end. */
bool ts_work_times(const struct ts_work *work, uint32_t rank, int64_t start, int64_t duration,
		   int64_t *ret_start, int64_t *ret_end);

/* ---- work_texts.c ---- */

/* Forgets what was known of another trace's texts, and makes room for this one's. */
int ts_work_start_texts(struct ts_work_load *load);

const struct ts_text_facts *ts_work_facts(struct ts_work *work, int64_t string);
uint32_t ts_work_name(struct ts_work *work, int64_t string); /* 0 for none */

/* The class of a command of this name and kind. */
uint8_t ts_work_class(struct ts_work *work, int64_t string, int64_t kind);

/* ---- work_entities.c ---- */

/* The sources of a trace as ranks. */
int ts_work_add_ranks(struct ts_work *work);

/* The place of an id of the trace that is read, made where it is new. TS_WORK_NONE: no memory. */
uint32_t ts_work_device(struct ts_work *work, int64_t id, uint32_t clock);
uint32_t ts_work_stream(struct ts_work *work, int64_t id, uint32_t device);
uint32_t ts_work_thread(struct ts_work *work, int64_t id, uint32_t clock);

/* The lane of a device and number; made where it is not there. TS_WORK_NONE: no memory. */
uint32_t ts_work_lane(struct ts_work *work, uint32_t device, int64_t number, int64_t id);

/* ---- work_args.c ---- */

/* A row of gpu_op that is a synchronisation, or collective: the batch has its shape. */
int ts_work_add_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		     struct ts_work_sync *sync);
int ts_work_add_collective(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			   uint32_t command);

/* The key of a list of correlations that a command waits for. */
#define TS_WAITS_KEY "waits_for"

/* Notes what the row at hand, number `number` of its table, was told to wait for. */
int ts_work_add_waits(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		      uint64_t number);

/* ---- work_ranks.c ---- */

/* Is any rank of the trace that is being read among those asked for? */
bool ts_work_wants_trace(const struct ts_work *work);

/* Leaves out ranks that were not asked for. 0 or TS_ENOMEM. */
int ts_work_choose_ranks(struct ts_work *work);

/* ---- putting in order: each 0 or TS_ENOMEM ---- */

int ts_work_number(struct ts_work *work);    /* work_number.c: final numbers of ranks, devices,
						streams, threads */
int ts_work_sort(struct ts_work *work);      /* work_sort.c: rows lane by lane */
int ts_work_join(struct ts_work *work);      /* work_join.c: commands and syncs to their calls */
int ts_work_select_range(struct ts_work *work); /* work_range.c: leaves out what was not asked for */
int ts_work_validate(struct ts_work *work);     /* work_validate.c: ranges, parents, and what is odd */
int ts_work_resolve_waits(
	struct ts_work *work); /* work_waits.c: commands find what they wait for */

#endif
