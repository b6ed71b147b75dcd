/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by idle.c, idle_hta.c and idle_causes.c. */
#ifndef TS_ANALYZE_IDLE_H
#define TS_ANALYZE_IDLE_H

#include "analyze/analyze.h"
#include "analyze/busy.h"

enum ts_gap_kind {
	TS_GAP_HOST_WAIT,   /* the next command was issued after the stream had run dry */
	TS_GAP_KERNEL_WAIT, /* short: the device's normal delay between two commands */
	TS_GAP_OTHER,
	TS_GAP_KIND_COUNT
};

struct ts_gaps {
	double *ns;
	size_t count, capacity;
	int64_t sum_ns;
	bool shown; /* emit a row for this kind */
};

/* The gaps of one stream. */
struct ts_stream_gaps {
	struct ts_gaps kinds[TS_GAP_KIND_COUNT];
	int64_t wait_ns; /* a gap below this is caused by the device */
	int64_t all_ns;  /* of all streams so far */
};

/*
 * Adds a gap; `issued` is when the command that ended it was issued (TS_ABSENT: unknown). 0 or
 * TS_ENOMEM.
 */
int ts_stream_gaps_add(struct ts_stream_gaps *gaps, int64_t from, int64_t to, int64_t issued);

/* Puts one row per kind that occurs and resets `gaps` for the next stream. */
void ts_stream_gaps_put(struct ts_stream_gaps *gaps, struct ts_result_table *table,
			const struct ts_work *work, const struct ts_work_stream *stream);

/* Puts the gaps of a rank as HTA computes them. 0 or TS_ENOMEM. */
int ts_idle_put_rank_hta(struct ts_result_table *table, const struct ts_work *work, uint32_t rank,
			 struct ts_stream_gaps *gaps);

/* Puts the table `causes`, of streams that had gaps of `gaps_ns` in all. */
int ts_idle_put_causes(struct ts_analyze_request *request, int64_t gaps_ns,
		       struct ts_result *result, struct ts_error *err);

#endif
