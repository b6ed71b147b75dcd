/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of EVENT tables, filtered and strictly sorted over all chunks, in bounded memory. The order
 * is that of docs/format.md 3.4, or the longest first.
 *
 * The axis of the order (time or duration) is cut into windows of some 100,000 rows. For each
 * window the chunks that reach into it are read, and its rows selected, sorted and emitted. Chunks
 * that reach into the next window stay cached while memory allows. To stream all rows by time, the
 * merge of row_merge.h is faster.
 */
#ifndef TS_TRACE_ROW_QUERY_H
#define TS_TRACE_ROW_QUERY_H

#include <stdint.h>

#include <tracesmith/reader.h>

#include "trace/filter.h"
#include "trace/row.h"

enum ts_row_order {
	TS_ROW_ORDER_START,
	TS_ROW_ORDER_DURATION, /* the longest first; those that did not end before all others */
};

struct ts_row_query {
	uint64_t tables;                /* TS_TABLE_BIT() of EVENT tables */
	int64_t from, to;               /* rows that touch [from, to], in trace time */
	uint64_t masks[TS_TABLE_COUNT]; /* columns that `emit` looks at */
	const struct ts_filter *filter;
	enum ts_row_order order;
	uint64_t limit; /* rows to give at most; UINT64_MAX: all */
	/* Given each row in order; anything but 0 ends the walk and is returned. */
	int (*emit)(void *context, const struct ts_row *row, struct ts_error *err);
	void *context;
	/* Told rows done and in all; not 0 ends the walk with TS_ECANCELED. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

int ts_row_query_run(struct ts_reader *reader, const struct ts_row_query *query,
		     struct ts_error *err);

#endif
