/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What idle.c, idle_hta.c and idle_causes.c share. For these files alone.
 */
#ifndef TS_ANALYZE_IDLE_H
#define TS_ANALYZE_IDLE_H

#include "analyze/analyze.h"
#include "analyze/busy.h"

enum ts_gap_kind {
	TS_GAP_HOST_WAIT,   /* the next command was issued after the stream had run dry */
	TS_GAP_KERNEL_WAIT, /* short: what a device needs from one command to the next */
	TS_GAP_OTHER,
	TS_GAP_KIND_COUNT
};

struct ts_gaps {
	double *ns;
	size_t count, capacity;
	int64_t sum_ns;
	bool shown; /* there is a row for it */
};

/* The gaps of one stream. */
struct ts_stream_gaps {
	struct ts_gaps kinds[TS_GAP_KIND_COUNT];
	int64_t wait_ns; /* a gap below this is the device's own */
};

/* A gap, ended by a command that was issued then (TS_ABSENT: unknown). 0 or TS_ENOMEM. */
int ts_stream_gaps_add(struct ts_stream_gaps *gaps, int64_t from, int64_t to, int64_t issued);

/* A row for each kind that there is; then there are none, and it is the next stream's turn. */
void ts_stream_gaps_put(struct ts_stream_gaps *gaps, struct ts_result_table *table,
			const struct ts_work *work, const struct ts_work_stream *stream);

/* The gaps of a rank as HTA has them. 0 or TS_ENOMEM. */
int ts_idle_put_rank_hta(struct ts_result_table *table, const struct ts_work *work, uint32_t rank,
			 struct ts_stream_gaps *gaps);

/* The table of causes. */
int ts_idle_put_causes(struct ts_analyze_request *request, struct ts_result *result,
		       struct ts_error *err);

#endif
