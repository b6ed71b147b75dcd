/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the loader share: work_load.c reads rows of a trace, work_args.c what stands in their
 * arguments, work_order.c puts all in order and joins it. Rows refer to ranks, devices, streams and threads as
 * they came; finish renumbers them.
 */
#ifndef TS_STATE_WORK_PARTS_H
#define TS_STATE_WORK_PARTS_H

#include "state/work.h"

/* Times are kept inside these, so that no difference of two overflows. */
#define TS_WORK_TIME_LIMIT (INT64_C(1) << 61)

/* What is known of a text of the trace that is being read; found out when it is first met. */
struct ts_text_facts {
	uint32_t name;       /* in work->names */
	uint8_t call_kind;   /* as the name of a call */
	uint8_t slice_class; /* as the category of a slice; SLICE_DROPPED: of no interest */
	bool is_step;
	bool met;
	uint8_t classes[TS_GPU_OP_COLLECTIVE +
			1]; /* as the name of a command, by kind; CLASS_UNMET */
	int64_t step;
};

#define TS_SLICE_DROPPED 255
#define TS_CLASS_UNMET 255

struct ts_work_load {
	struct ts_batch *batch;
	struct ts_reader *reader; /* of the trace that is being read */
	uint32_t trace;
	struct ts_text_facts *facts; /* by string id */
	size_t fact_count;
	struct ts_map far_facts; /* string ids beyond DENSE_FACTS, to an index in far */
	struct ts_text_facts *far;
	size_t far_count, far_capacity;
	/* ids of this trace to places in work's arrays */
	struct ts_map ranks, devices, streams, threads;
	struct ts_map clock_ranks; /* clock to rank: for rows that belong to nobody else */
	struct ts_pairmap lanes;   /* (device place, number) to stream place */
	size_t rank_capacity, device_capacity, stream_capacity, thread_capacity, step_capacity;
	size_t command_capacity, call_capacity, sync_capacity, collective_capacity, slice_capacity,
		flow_capacity;
	struct ts_map flow_starts; /* ids of arrows whose beginning was met, to a place in flows */
	uint64_t rows_done, rows_total;
	uint32_t lost_name;
};

/* ---- work_load.c ---- */

int64_t ts_work_clamp(int64_t time);
const struct ts_text_facts *ts_work_facts(struct ts_work *work, int64_t string);
uint32_t ts_work_intern(struct ts_work *work, const char *text, size_t length);

/* Start and end of a row as the options round them; true if it did not end. */
bool ts_work_times(const struct ts_work *work, uint32_t rank, int64_t start, int64_t duration,
		   int64_t *ret_start, int64_t *ret_end);

/* The lane of a device and number; made where it is not there. TS_WORK_NONE: no memory. */
uint32_t ts_work_lane(struct ts_work *work, uint32_t device, int64_t number, int64_t id);

/* ---- work_args.c ---- */

/* A row of gpu_op that is a synchronisation, or collective: the batch has its shape. */
int ts_work_add_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		     struct ts_work_sync *sync);
int ts_work_add_collective(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			   uint32_t command);

/* ---- work_order.c ---- */

int ts_work_order(struct ts_work *work, struct ts_error *err);

#endif
