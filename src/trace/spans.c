/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External sort of spans by thread and time: pieces that fit into memory are sorted; if there is
 * more than one, they go to a temporary file and are merged from there. See spans.h.
 */
#include "trace/spans.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ns.h"
#include "base/temporary.h"

/* Rows sorted in memory at once: 40 MiB. */
#define PIECE_ROWS ((size_t)1 << 20)
/* Rows read ahead of each piece during the merge. */
#define AHEAD_ROWS ((size_t)1 << 10)
/* Low bits of struct span.order. */
#define IS_CALL 1u
#define IS_OPEN 2u /* did not end */

/* All columns but the last have the same place in both tables. */
#define MASK                                                                                  \
	(TS_MASK_OF(slice, start) | TS_MASK_OF(slice, duration) | TS_MASK_OF(slice, thread) | \
	 TS_MASK_OF(slice, name))
_Static_assert(TS_COLUMN_OF(slice, start) == TS_COLUMN_OF(api_call, start) &&
		       TS_COLUMN_OF(slice, duration) == TS_COLUMN_OF(api_call, duration) &&
		       TS_COLUMN_OF(slice, thread) == TS_COLUMN_OF(api_call, thread) &&
		       TS_COLUMN_OF(slice, name) == TS_COLUMN_OF(api_call, name),
	       "columns of slices and calls");

/* A slice or call. */
struct span {
	int64_t thread, start,
		end; /* of one that did not end the greatest time, which puts it outside */
	int64_t name;
	uint64_t order; /* slices ahead of calls, then as in the file; with IS_CALL, IS_OPEN */
};

/* A sorted run in the temporary file, and its read buffer. */
struct piece {
	uint64_t next, end; /* in rows */
	struct span *rows;
	size_t count, at;
};

struct open_span {
	int64_t name, start, end;
	int64_t inner; /* ns covered by children */
};

struct ts_spans {
	struct ts_reader *reader;
	struct ts_spans_options options;
	struct ts_spans_counts counts;
	int64_t last_ns; /* of all threads */
	size_t piece_rows;
	struct span *rows; /* of the current piece */
	size_t count, capacity;
	int fd; /* -1: everything is in rows */
	uint64_t stored;
	struct piece *pieces;
	size_t piece_count, piece_capacity;
	size_t *heap; /* pieces that have rows left, the earliest on top */
	size_t heap_count;
	struct open_span *open;
	size_t depth, open_capacity;
};

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory");
}

/* ---- sorting ---- */

static int compare_spans(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	if (a->thread != b->thread)
		return TS_COMPARE(a->thread, b->thread);
	if (a->start != b->start)
		return TS_COMPARE(a->start, b->start);
	return a->end != b->end ? TS_COMPARE(b->end, a->end) : TS_COMPARE(a->order, b->order);
}

static int store_piece(struct ts_spans *spans, struct ts_error *err)
{
	struct piece piece = { .next = spans->stored, .end = spans->stored + spans->count };
	int rc = TS_OK;

	if (spans->fd < 0)
		rc = ts_temporary_open(&spans->fd, err);
	if (rc)
		return rc;
	if (ts_grow_array((void **)&spans->pieces, &spans->piece_capacity, spans->piece_count + 1,
			  sizeof(*spans->pieces)))
		return no_memory(err);
	ts_sort(spans->rows, spans->count, sizeof(*spans->rows), compare_spans);
	rc = ts_temporary_write(spans->fd, spans->rows, spans->count * sizeof(*spans->rows),
				spans->stored * sizeof(*spans->rows), err);
	spans->stored = piece.end;
	spans->pieces[spans->piece_count++] = piece;
	spans->count = 0;
	return rc;
}

static int add_span(struct ts_spans *spans, const struct span *span, struct ts_error *err)
{
	int rc = spans->count == spans->piece_rows ? store_piece(spans, err) : TS_OK;

	if (rc)
		return rc;
	if (ts_grow_array((void **)&spans->rows, &spans->capacity, spans->count + 1,
			  sizeof(*spans->rows)))
		return no_memory(err);
	spans->rows[spans->count++] = *span;
	spans->last_ns = TS_MAX(spans->last_ns, span->order & IS_OPEN ? span->start : span->end);
	spans->counts.first_ns = TS_MIN(spans->counts.first_ns, span->start);
	spans->counts.spans++;
	return TS_OK;
}

/* ---- reading ---- */

static int add_chunk(struct ts_spans *spans, struct ts_batch *batch, size_t chunk,
		     struct ts_error *err)
{
	bool are_calls = ts_reader_chunk(spans->reader, chunk)->table == TS_TABLE_API_CALL;
	uint64_t mask = are_calls ? MASK : MASK | TS_MASK_OF(slice, kind);
	int rc = ts_batch_read(batch, chunk, mask, err);

	for (uint32_t row = 0; !rc && row < batch->rows; row++) {
		int64_t duration = batch->columns[TS_COLUMN_OF(slice, duration)][row];
		struct span span = {
			.thread = batch->columns[TS_COLUMN_OF(slice, thread)][row],
			.start = batch->columns[TS_COLUMN_OF(slice, start)][row],
			.name = batch->columns[TS_COLUMN_OF(slice, name)][row],
			.order = are_calls ? UINT64_C(1) << 63 | IS_CALL : 0,
			.end = INT64_MAX,
		};

		if (!are_calls &&
		    batch->columns[TS_COLUMN_OF(slice, kind)][row] != TS_SLICE_NESTED) {
			spans->counts.async++;
			continue;
		}
		if (duration >= 0)
			span.end = ts_ns_add(span.start, duration);
		else
			span.order |= IS_OPEN;
		span.order |= spans->counts.spans << 2;
		rc = add_span(spans, &span, err);
	}
	return rc;
}

static int read_rows(struct ts_spans *spans, struct ts_error *err)
{
	struct ts_batch *batch = NULL;
	int rc = ts_batch_new(&batch, spans->reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(spans->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(spans->reader, i);

		if (chunk->table != TS_TABLE_SLICE && chunk->table != TS_TABLE_API_CALL)
			continue;
		if (spans->options.progress &&
		    spans->options.progress(spans->options.context, chunk->offset,
					    ts_reader_state(spans->reader)->file_bytes))
			rc = ts_error_set(err, TS_ECANCELED, "interrupted");
		else
			rc = add_chunk(spans, batch, i, err);
	}
	ts_batch_free(batch);
	if (!rc && spans->piece_count)
		rc = store_piece(spans, err);
	else
		ts_sort(spans->rows, spans->count, sizeof(*spans->rows), compare_spans);
	return rc;
}

int ts_spans_new(struct ts_spans **ret_spans, struct ts_reader *reader,
		 const struct ts_spans_options *options, struct ts_error *err)
{
	TS_AUTO(ts_spans) spans = calloc(1, sizeof(*spans));
	int rc;

	if (!spans)
		return no_memory(err);
	spans->fd = -1;
	spans->reader = reader;
	if (options)
		spans->options = *options;
	spans->last_ns = INT64_MIN;
	spans->counts.first_ns = INT64_MAX;
	spans->piece_rows = spans->options.piece_rows ? spans->options.piece_rows : PIECE_ROWS;
	rc = read_rows(spans, err);
	if (!rc)
		*ret_spans = TS_STEAL(spans);
	return rc;
}

void ts_spans_free(struct ts_spans *spans)
{
	if (!spans)
		return;
	if (spans->fd >= 0)
		close(spans->fd);
	for (size_t i = 0; i < spans->piece_count; i++)
		free(spans->pieces[i].rows);
	free(spans->pieces);
	free(spans->heap);
	free(spans->rows);
	free(spans->open);
	free(spans);
}

/* ---- merging ---- */

static const struct span *head_of(const struct ts_spans *spans, size_t piece)
{
	return &spans->pieces[piece].rows[spans->pieces[piece].at];
}

/* Fills the buffer of a piece if it is empty; *ret_any is false at its end. */
static int read_ahead(struct ts_spans *spans, struct piece *piece, bool *ret_any,
		      struct ts_error *err)
{
	int rc;

	*ret_any = piece->at < piece->count || piece->next < piece->end;
	if (piece->at < piece->count || !*ret_any)
		return TS_OK;
	if (!piece->rows)
		piece->rows = ts_alloc_array(AHEAD_ROWS, sizeof(*piece->rows));
	if (!piece->rows)
		return no_memory(err);
	piece->count = (size_t)TS_MIN(piece->end - piece->next, AHEAD_ROWS);
	piece->at = 0;
	rc = ts_temporary_read(spans->fd, piece->rows, piece->count * sizeof(*piece->rows),
			       piece->next * sizeof(*piece->rows), err);
	piece->next += piece->count;
	return rc;
}

static bool comes_first(const struct ts_spans *spans, size_t a, size_t b)
{
	return compare_spans(head_of(spans, spans->heap[a]), head_of(spans, spans->heap[b])) < 0;
}

static void sink(struct ts_spans *spans, size_t at)
{
	for (;;) {
		size_t first = at, child = 2 * at + 1;
		size_t moved;

		if (child < spans->heap_count && comes_first(spans, child, first))
			first = child;
		if (child + 1 < spans->heap_count && comes_first(spans, child + 1, first))
			first = child + 1;
		if (first == at)
			return;
		moved = spans->heap[at];
		spans->heap[at] = spans->heap[first];
		spans->heap[first] = moved;
		at = first;
	}
}

static int start_merge(struct ts_spans *spans, struct ts_error *err)
{
	int rc = TS_OK;

	spans->heap = calloc(TS_MAX(spans->piece_count, (size_t)1), sizeof(*spans->heap));
	if (!spans->heap)
		return no_memory(err);
	for (size_t i = 0; !rc && i < spans->piece_count; i++) {
		bool any = false;

		rc = read_ahead(spans, &spans->pieces[i], &any, err);
		if (any)
			spans->heap[spans->heap_count++] = i;
	}
	for (size_t i = spans->heap_count / 2; !rc && i > 0; i--)
		sink(spans, i - 1);
	return rc;
}

/* The next row of all pieces. There must be one. */
static int merge(struct ts_spans *spans, struct span *ret_span, struct ts_error *err)
{
	struct piece *piece = &spans->pieces[spans->heap[0]];
	bool any = false;
	int rc;

	*ret_span = piece->rows[piece->at++];
	rc = read_ahead(spans, piece, &any, err);
	if (!any)
		spans->heap[0] = spans->heap[--spans->heap_count];
	if (!rc && spans->heap_count)
		sink(spans, 0);
	return rc;
}

/* ---- nesting ---- */

struct walker {
	struct ts_spans *spans;
	int (*visit)(void *context, const struct ts_span_step *step);
	void *context;
	int64_t thread;
};

static int close_innermost(struct walker *walker)
{
	struct ts_spans *spans = walker->spans;
	const struct open_span *open = &spans->open[--spans->depth];
	int64_t length = ts_ns_sub(open->end, open->start);

	if (spans->depth)
		spans->open[spans->depth - 1].inner =
			ts_ns_add(spans->open[spans->depth - 1].inner, length);
	return walker->visit(walker->context,
			     &(struct ts_span_step){ .thread = walker->thread,
						     .name = open->name,
						     .time = open->end,
						     .self = ts_ns_sub(length, open->inner) });
}

/* Closes spans that end at or before a time. An empty span is no child of one that ends there. */
static int close_until(struct walker *walker, int64_t time)
{
	struct ts_spans *spans = walker->spans;
	int rc = TS_OK;

	while (!rc && spans->depth && spans->open[spans->depth - 1].end <= time)
		rc = close_innermost(walker);
	return rc;
}

static int open_span(struct walker *walker, const struct span *span, struct ts_error *err)
{
	struct ts_spans *spans = walker->spans;
	struct open_span open = { .name = span->name, .start = span->start, .end = span->end };

	if (span->order & IS_OPEN)
		open.end = spans->last_ns;
	if (spans->depth && open.end > spans->open[spans->depth - 1].end) {
		open.end = spans->open[spans->depth - 1].end;
		if (!(span->order & IS_OPEN) && span->order & IS_CALL)
			spans->counts.cut_calls++;
		else if (!(span->order & IS_OPEN))
			spans->counts.cut_slices++;
	}
	if (ts_grow_array((void **)&spans->open, &spans->open_capacity, spans->depth + 1,
			  sizeof(*spans->open)))
		return no_memory(err);
	spans->open[spans->depth++] = open;
	return walker->visit(walker->context, &(struct ts_span_step){ .thread = walker->thread,
								      .name = open.name,
								      .time = open.start,
								      .begins = true });
}

static int take(struct walker *walker, const struct span *span, struct ts_error *err)
{
	int rc;

	if (span->thread != walker->thread) {
		rc = close_until(walker, INT64_MAX);
		walker->thread = span->thread;
	} else {
		rc = close_until(walker, span->start);
	}
	return rc ? rc : open_span(walker, span, err);
}

int ts_spans_walk(struct ts_spans *spans,
		  int (*visit)(void *context, const struct ts_span_step *step), void *context,
		  struct ts_error *err)
{
	struct walker walker = { .spans = spans, .visit = visit, .context = context };
	int rc = spans->piece_count ? start_merge(spans, err) : TS_OK;

	for (uint64_t i = 0; !rc && i < spans->counts.spans; i++) {
		struct span span;

		if (spans->piece_count)
			rc = merge(spans, &span, err);
		else
			span = spans->rows[i];
		if (!rc)
			rc = take(&walker, &span, err);
	}
	return rc ? rc : close_until(&walker, INT64_MAX);
}

struct ts_spans_counts ts_spans_counts(const struct ts_spans *spans)
{
	return spans->counts;
}
