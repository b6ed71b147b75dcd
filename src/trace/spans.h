/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nested spans of threads (slices and driver calls) as begin and end events: thread by thread,
 * in time order and properly nested, whatever the order of rows in the trace. Rows are sorted in
 * pieces, on disk if there are many: memory does not grow with the trace.
 *
 *	rc = ts_spans_new(&spans, reader, NULL, err);
 *	if (!rc)
 *		rc = ts_spans_walk(spans, visit, context, err);
 *	ts_spans_free(spans);
 *
 * Of spans that begin together, the longer one is the parent; of equal ones, the slice. A span that
 * outlasts its parent is cut at the parent's end (and counted in cut_*). A span without an end in
 * the trace ends with the last event of any thread. Async slices do not nest and are skipped
 * (counted in `async`).
 */
#ifndef TS_TRACE_SPANS_H
#define TS_TRACE_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"

struct ts_spans;

/* The begin or the end of a span. */
struct ts_span_step {
	int64_t thread; /* id; 0, or of no row: none */
	int64_t name;   /* string id */
	int64_t time;   /* trace time */
	int64_t self;   /* of an end: ns that no child covers */
	bool begins;
};

struct ts_spans_counts {
	uint64_t spans;                 /* slices and calls */
	uint64_t cut_slices, cut_calls; /* that outlast their parent */
	uint64_t async;                 /* slices */
	int64_t first_ns;               /* begin of the first one; known before the walk */
};

struct ts_spans_options {
	/* Told how far it is, in bytes; not 0 ends it with TS_ECANCELED. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	size_t piece_rows; /* rows to sort in memory at once; 0: the default */
};

/* Reads all rows. `options` may be NULL. */
int ts_spans_new(struct ts_spans **ret_spans, struct ts_reader *reader,
		 const struct ts_spans_options *options, struct ts_error *err);
void ts_spans_free(struct ts_spans *spans);
TS_DEFINE_AUTO(ts_spans, ts_spans_free);

/* Visits each begin and end; a visitor's non-zero result ends the walk. Can be called once. */
int ts_spans_walk(struct ts_spans *spans,
		  int (*visit)(void *context, const struct ts_span_step *step), void *context,
		  struct ts_error *err);

/* Complete after the walk. */
struct ts_spans_counts ts_spans_counts(const struct ts_spans *spans);

#endif
