/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nested spans of threads, slices and the driver calls between them, as begins and ends:
 * thread by thread, each in order of time and properly nested, however the trace has its rows.
 * Rows are sorted in pieces, on disk where there are many: memory does not grow with the trace.
 *
 * rc = ts_spans_new(&spans, reader, options, 0, err);
 *	if (!rc)
 *		rc = ts_spans_walk(spans, visit, context, err);
 *	ts_spans_free(spans);
 *
 * Rules: of spans that begin together the longer one is outside; of those that are alike, slices.
 * A span that outlasts the one that it begins in ends with that one (and is counted in `cut`). One
 * that did not end in the trace ends with the last thing that any thread did. Async slices are not
 * nested and are passed over (`async`).
 */
#ifndef TS_EXPORT_COMMON_SPANS_H
#define TS_EXPORT_COMMON_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/export.h>

#include "base/memory.h"

struct ts_spans;

/* The begin or the end of a span. */
struct ts_span_step {
	int64_t thread; /* id; 0, or of no row: none */
	int64_t name;   /* string id */
	int64_t time;   /* trace time */
	int64_t self;   /* of an end: the ns that no span inside had */
	bool begins;
};

struct ts_spans_counts {
	uint64_t spans;                 /* slices and calls */
	uint64_t cut_slices, cut_calls; /* that outlast the span around them */
	uint64_t async;                 /* slices */
	int64_t first_ns;               /* when the first one begins; known ahead of the walk */
};

/*
 * Reads all rows. `options` (may be NULL) is told how far that is. piece_rows: how many are sorted
 * in memory at once; 0: the default.
 */
int ts_spans_new(struct ts_spans **ret_spans, struct ts_reader *reader,
		 const struct ts_export_options *options, size_t piece_rows, struct ts_error *err);
void ts_spans_free(struct ts_spans *spans);
TS_DEFINE_AUTO(ts_spans, ts_spans_free);

/* Gives each begin and end, once; what is not 0 ends it and is returned. */
int ts_spans_walk(struct ts_spans *spans,
		  int (*visit)(void *context, const struct ts_span_step *step), void *context,
		  struct ts_error *err);

/* All of them after the walk. */
struct ts_spans_counts ts_spans_counts(const struct ts_spans *spans);

#endif
