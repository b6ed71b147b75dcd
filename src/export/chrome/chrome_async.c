/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async slices of a chunk as begin and end events. Viewers sort by time and keep file order for
 * equal times, so that order must nest: ends before begins, later begins end first, longer slices
 * begin first.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "export/chrome/chrome_export.h"

struct span {
	int64_t start, end;
	uint32_t row;
	bool is_open; /* has no end event */
};

static int compare_begins(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->row < b->row ? -1 : 1;
}

/* True if a ends before b. */
static bool ends_first(const struct span *a, const struct span *b)
{
	if (a->end != b->end)
		return a->end < b->end;
	return compare_begins(a, b) > 0;
}

/* A heap of open slices, the next to end on top. */
struct ends {
	const struct span **heap;
	size_t count;
};

static void push(struct ends *ends, const struct span *span)
{
	size_t at = ends->count++;

	while (at && ends_first(span, ends->heap[(at - 1) / 2])) {
		ends->heap[at] = ends->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	ends->heap[at] = span;
}

static const struct span *pop(struct ends *ends)
{
	const struct span *top = ends->heap[0], *last = ends->heap[--ends->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < ends->count) {
		if (child + 1 < ends->count && ends_first(ends->heap[child + 1], ends->heap[child]))
			child++;
		if (!ends_first(ends->heap[child], last))
			break;
		ends->heap[at] = ends->heap[child];
		at = child;
	}
	ends->heap[at] = last;
	return top;
}

static uint32_t collect(const struct ts_batch *batch, struct span *spans)
{
	const int64_t *start = batch->columns[TS_COLUMN_OF(slice, start)];
	const int64_t *duration = batch->columns[TS_COLUMN_OF(slice, duration)];
	const int64_t *kind = batch->columns[TS_COLUMN_OF(slice, kind)];
	uint32_t count = 0;

	for (uint32_t row = 0; row < batch->rows; row++) {
		struct span span = { .start = start[row],
				     .row = row,
				     .is_open = duration[row] < 0 };

		if (kind[row] != TS_SLICE_ASYNC)
			continue;
		if (span.is_open || __builtin_add_overflow(span.start, duration[row], &span.end))
			span.end = INT64_MAX;
		spans[count++] = span;
	}
	return count;
}

int ts_chrome_put_async(struct ts_chrome_export *x, const struct ts_batch *batch)
{
	TS_AUTO_FREE struct span *spans = ts_alloc_array(batch->rows, sizeof(*spans));
	TS_AUTO_FREE const struct span **heap = ts_alloc_array(batch->rows, sizeof(*heap));
	struct ends ends = { .heap = heap };
	uint32_t count;

	if (!spans || !heap)
		return ts_error_set(x->err, TS_ENOMEM, "no memory");
	count = collect(batch, spans);
	if (count)
		qsort(spans, count, sizeof(*spans), compare_begins);
	for (uint32_t i = 0; i < count; i++) {
		while (ends.count && ends.heap[0]->end <= spans[i].start)
			ts_chrome_put_async_end(x, batch, pop(&ends)->row);
		ts_chrome_put_async_begin(x, batch, spans[i].row);
		if (!spans[i].is_open)
			push(&ends, &spans[i]);
	}
	while (ends.count)
		ts_chrome_put_async_end(x, batch, pop(&ends)->row);
	return TS_OK;
}
