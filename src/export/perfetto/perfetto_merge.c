/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of all EVENT tables in order of time, of equally early ones the longest first, so that what
 * is inside comes behind what it is in. Chunks are opened in the order in which they begin, and
 * few of them overlap.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/ns.h"
#include "export/perfetto/perfetto_export.h"

#define MAX_OPEN 32

struct place {
	int64_t start;
	size_t chunk;
};

struct walk {
	struct ts_pf_export *x;
	struct place *places; /* chunks, by time */
	size_t count, next;
	struct ts_pf_cursor open[MAX_OPEN]; /* those beyond open_count hold batches to use again */
	size_t open_count;
	uint64_t bytes_done;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->chunk, b->chunk);
}

static int order_chunks(struct walk *walk)
{
	struct ts_reader *reader = walk->x->reader;
	size_t all = ts_reader_chunk_count(reader);

	walk->places = ts_alloc_array(all, sizeof(*walk->places));
	if (!walk->places)
		return ts_error_set(walk->x->err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < all; i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);
		const struct ts_table_info *table = ts_table_info(chunk->table);

		if (table && table->kind == TS_KIND_EVENT)
			walk->places[walk->count++] = (struct place){ chunk->min_start, i };
	}
	ts_sort(walk->places, walk->count, sizeof(*walk->places), compare_places);
	return TS_OK;
}

static int64_t start_of(const struct ts_batch *batch, uint32_t row)
{
	return batch->columns[batch->table->start][row];
}

static int64_t end_of(const struct ts_batch *batch, uint32_t row)
{
	int64_t duration = 0;

	if (batch->table->duration >= 0)
		duration = batch->columns[batch->table->duration][row];
	return duration < 0 ? INT64_MAX : ts_ns_add(start_of(batch, row), duration);
}

static void look(struct ts_pf_cursor *cursor)
{
	cursor->row = cursor->is_sequenced ? cursor->sequence[cursor->at] : cursor->at;
	cursor->start = start_of(cursor->batch, cursor->row);
	/* Points of arrows come ahead of the spans that begin there. */
	cursor->end = cursor->batch->table->id == TS_TABLE_FLOW
			      ? INT64_MAX
			      : end_of(cursor->batch, cursor->row);
}

struct tie {
	int64_t end;
	uint32_t row;
};

static int compare_ties(const void *left, const void *right)
{
	const struct tie *a = left, *b = right;

	return a->end != b->end ? TS_COMPARE(b->end, a->end) : TS_COMPARE(a->row, b->row);
}

static bool is_out_of_order(const struct ts_batch *batch)
{
	if (batch->table->duration < 0)
		return false;
	for (uint32_t row = 1; row < batch->rows; row++)
		if (start_of(batch, row) == start_of(batch, row - 1) &&
		    end_of(batch, row) > end_of(batch, row - 1))
			return true;
	return false;
}

/* Rows of a chunk rise in time, but those that begin at once are as they were written. */
static int sequence(struct ts_pf_cursor *cursor)
{
	const struct ts_batch *batch = cursor->batch;
	TS_AUTO_FREE struct tie *ties = NULL;
	uint32_t behind;

	cursor->is_sequenced = is_out_of_order(batch);
	if (!cursor->is_sequenced)
		return TS_OK;
	ties = ts_alloc_array(batch->rows, sizeof(*ties));
	if (!ties || ts_grow_array((void **)&cursor->sequence, &cursor->sequence_capacity,
				   batch->rows, sizeof(*cursor->sequence)))
		return TS_ENOMEM;
	for (uint32_t row = 0; row < batch->rows; row++)
		ties[row] = (struct tie){ end_of(batch, row), row };
	for (uint32_t row = 0; row < batch->rows; row = behind) {
		for (behind = row + 1;
		     behind < batch->rows && start_of(batch, behind) == start_of(batch, row);)
			behind++;
		ts_sort(&ties[row], behind - row, sizeof(*ties), compare_ties);
	}
	for (uint32_t row = 0; row < batch->rows; row++)
		cursor->sequence[row] = ties[row].row;
	return TS_OK;
}

/* The columns of EVENT tables have ids that a byte of a varint holds. */
#define MAX_ID 127

static void add_active(struct ts_pf_cursor *cursor, unsigned int position, bool is_shown)
{
	const struct ts_column_info *column = &cursor->batch->table->columns[position];

	assert(column->id <= MAX_ID);
	if (is_shown)
		cursor->shown[cursor->shown_count++] = cursor->active_count;
	cursor->active[cursor->active_count++] = (struct ts_pf_column){
		.values = cursor->batch->columns[position],
		.none = column->none,
		.position = (uint8_t)position,
		.id = (uint8_t)column->id,
		.is_text = column->type == TS_COLUMN_STRING || column->type == TS_COLUMN_JSON,
	};
}

static void find_active(struct ts_pf_cursor *cursor)
{
	const struct ts_batch *batch = cursor->batch;
	uint64_t wanted = ts_pf_columns_wanted(batch->table->id);

	cursor->active_count = cursor->shown_count = 0;
	for (unsigned int i = 0; i < batch->table->column_count; i++) {
		const struct ts_column_info *column = &batch->table->columns[i];
		int64_t differs = 0;

		if (column->type == TS_COLUMN_SHAPE || column->type == TS_COLUMN_BYTES)
			continue;
		for (uint32_t row = 0; row < batch->rows; row++)
			differs |= batch->columns[i][row] ^ column->none;
		if (differs)
			add_active(cursor, i, wanted >> i & 1);
	}
}

int ts_pf_cursor_read(struct ts_pf_cursor *cursor, struct ts_reader *reader, size_t chunk,
		      struct ts_error *err)
{
	int result = cursor->batch ? TS_OK : ts_batch_new(&cursor->batch, reader, err);

	if (!result)
		result = ts_batch_read(cursor->batch, chunk, TS_MASK_ALL, err);
	if (result)
		return result;
	cursor->at = 0;
	if (!cursor->batch->rows)
		return TS_OK;
	if (sequence(cursor))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	find_active(cursor);
	look(cursor);
	return TS_OK;
}

void ts_pf_cursor_release(struct ts_pf_cursor *cursor)
{
	ts_batch_free(cursor->batch);
	free(cursor->sequence);
}

static int open_chunk(struct walk *walk)
{
	struct ts_pf_export *x = walk->x;
	size_t chunk = walk->places[walk->next].chunk;
	struct ts_pf_cursor *cursor = &walk->open[walk->open_count];
	int result;

	if (x->chrome.options->progress &&
	    x->chrome.options->progress(x->chrome.options->context, walk->bytes_done,
					ts_reader_state(x->reader)->file_bytes))
		return ts_error_set(x->err, TS_ECANCELED, "interrupted");
	result = ts_pf_read_wait(x, chunk, cursor);
	if (result)
		return result;
	cursor->order = (uint32_t)walk->next++;
	if (walk->next < walk->count)
		ts_pf_read(x, walk->places[walk->next].chunk);
	walk->bytes_done += ts_reader_chunk(x->reader, chunk)->bytes;
	if (cursor->batch->rows)
		walk->open_count++;
	/* No text is in use between two rows, and none by reading a chunk. */
	ts_reader_trim(x->reader, TS_PF_TEXT_BYTES);
	return TS_OK;
}

static bool is_ahead(const struct ts_pf_cursor *a, const struct ts_pf_cursor *b)
{
	if (a->start != b->start)
		return a->start < b->start;
	return a->end != b->end ? a->end > b->end : a->order < b->order;
}

/* The open chunk whose next row is first, and the one behind it. */
static struct ts_pf_cursor *earliest(struct walk *walk, struct ts_pf_cursor **ret_second)
{
	struct ts_pf_cursor *best = NULL, *second = NULL;

	for (size_t i = 0; i < walk->open_count; i++) {
		struct ts_pf_cursor *cursor = &walk->open[i];

		if (!best || is_ahead(cursor, best)) {
			second = best;
			best = cursor;
		} else if (!second || is_ahead(cursor, second)) {
			second = cursor;
		}
	}
	*ret_second = second;
	return best;
}

/* Must another chunk be opened ahead of the next row? */
static bool is_due(const struct walk *walk, const struct ts_pf_cursor *next)
{
	if (walk->next == walk->count || walk->open_count == MAX_OPEN)
		return false;
	return !next || walk->places[walk->next].start <= next->start;
}

/* The batch of a chunk that is done goes behind those in use. */
static void close_cursor(struct walk *walk, struct ts_pf_cursor *cursor)
{
	struct ts_pf_cursor closed = *cursor;

	*cursor = walk->open[--walk->open_count];
	walk->open[walk->open_count] = closed;
}

/* Rows of the earliest chunk, as long as it is. */
static int step(struct walk *walk)
{
	struct ts_pf_cursor *second, *first = earliest(walk, &second);

	if (is_due(walk, first))
		return open_chunk(walk);
	do {
		int result = ts_pf_put_event(walk->x, first);

		if (result)
			return result;
		if (++first->at == first->batch->rows) {
			close_cursor(walk, first);
			return TS_OK;
		}
		look(first);
	} while ((!second || is_ahead(first, second)) && !is_due(walk, first));
	return TS_OK;
}

int ts_pf_walk(struct ts_pf_export *x)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int result;

	if (!walk)
		return ts_error_set(x->err, TS_ENOMEM, "no memory");
	walk->x = x;
	result = order_chunks(walk);
	while (!result && (walk->open_count || walk->next < walk->count))
		result = step(walk);
	for (size_t i = 0; i < MAX_OPEN; i++)
		ts_pf_cursor_release(&walk->open[i]);
	free(walk->places);
	free(walk);
	return result;
}
