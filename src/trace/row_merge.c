/* SPDX-License-Identifier: Apache-2.0 */
/* See row_merge.h. Few chunks overlap, so the earliest of the open ones is found by a scan. */
#include "trace/row_merge.h"

#include <stdlib.h>

#include "trace/trace_totals.h"

#define TEXT_BYTES ((size_t)64 << 20)

struct ts_merge_chunk {
	int64_t start;
	size_t chunk;
};

/* ---- cursors ---- */

struct tie {
	int64_t end;
	uint32_t row;
};

static int compare_ties(const void *left, const void *right)
{
	const struct tie *a = left, *b = right;

	return a->end != b->end ? TS_COMPARE(b->end, a->end) : TS_COMPARE(a->row, b->row);
}

static int64_t end_of(const struct ts_merge_cursor *cursor, uint32_t row)
{
	int64_t duration = cursor->durations[row];

	return duration < 0 ? INT64_MAX : ts_ns_add(cursor->starts[row], duration);
}

static bool is_out_of_order(const struct ts_merge_cursor *cursor)
{
	if (!cursor->durations)
		return false;
	for (uint32_t row = 1; row < cursor->batch->rows; row++)
		if (cursor->starts[row] == cursor->starts[row - 1] &&
		    end_of(cursor, row) > end_of(cursor, row - 1))
			return true;
	return false;
}

/* Starts never fall within a chunk, but rows with equal starts are in any order. */
static int sequence(struct ts_merge_cursor *cursor)
{
	const struct ts_batch *batch = cursor->batch;
	TS_AUTO_FREE struct tie *ties = NULL;
	uint32_t end;

	cursor->is_sequenced = is_out_of_order(cursor);
	if (!cursor->is_sequenced)
		return TS_OK;
	ties = ts_alloc_array(batch->rows, sizeof(*ties));
	if (!ties || ts_grow_array((void **)&cursor->sequence, &cursor->sequence_capacity,
				   batch->rows, sizeof(*cursor->sequence)))
		return TS_ENOMEM;
	for (uint32_t row = 0; row < batch->rows; row++)
		ties[row] = (struct tie){ end_of(cursor, row), row };
	for (uint32_t row = 0; row < batch->rows; row = end) {
		for (end = row + 1;
		     end < batch->rows && cursor->starts[end] == cursor->starts[row];)
			end++;
		ts_sort(&ties[row], end - row, sizeof(*ties), compare_ties);
	}
	for (uint32_t row = 0; row < batch->rows; row++)
		cursor->sequence[row] = ties[row].row;
	return TS_OK;
}

static void find_keys(struct ts_merge_cursor *cursor, const struct ts_row_merge_options *options)
{
	const struct ts_table_info *table = cursor->batch->table;

	cursor->starts = cursor->batch->columns[table->start];
	cursor->durations = NULL;
	cursor->fixed_end = 0;
	if (!options->longest_first)
		return;
	if (options->ahead_tables & TS_TABLE_BIT(table->id))
		cursor->fixed_end = INT64_MAX;
	else if (table->duration < 0)
		cursor->fixed_end = TS_ABSENT;
	else
		cursor->durations = cursor->batch->columns[table->duration];
}

/* The columns that the caller, the order and the tests look at. */
static uint64_t mask_of(const struct ts_table_info *table,
			const struct ts_row_merge_options *options)
{
	uint64_t mask = options->masks ? options->masks[table->id] : TS_MASK_ALL;

	mask |= UINT64_C(1) << table->start;
	if (table->duration >= 0 && (options->longest_first || options->from || options->to))
		mask |= UINT64_C(1) << table->duration;
	return options->filter ? mask | ts_filter_mask(options->filter, table->id) : mask;
}

int ts_merge_cursor_read(struct ts_merge_cursor *cursor, struct ts_reader *reader, size_t chunk,
			 const struct ts_row_merge_options *options, struct ts_error *err)
{
	const struct ts_table_info *table = ts_table_info(ts_reader_chunk(reader, chunk)->table);
	int rc = cursor->batch ? TS_OK : ts_batch_new(&cursor->batch, reader, err);

	if (!rc)
		rc = ts_batch_read(cursor->batch, chunk, mask_of(table, options), err);
	if (rc)
		return rc;
	cursor->passed = 0;
	if (!cursor->batch->rows)
		return TS_OK;
	find_keys(cursor, options);
	if (sequence(cursor))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	ts_merge_cursor_look_(cursor);
	return TS_OK;
}

void ts_merge_cursor_free(struct ts_merge_cursor *cursor)
{
	if (!cursor)
		return;
	ts_batch_free(cursor->batch);
	free(cursor->sequence);
	free(cursor);
}

/* ---- chunks ---- */

static int compare_chunks(const void *left, const void *right)
{
	const struct ts_merge_chunk *a = left, *b = right;

	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->chunk, b->chunk);
}

static bool is_wanted(const struct ts_row_merge *merge, const struct ts_chunk *chunk)
{
	const struct ts_row_merge_options *options = &merge->options;

	return chunk->table < TS_TABLE_COUNT && options->tables & TS_TABLE_BIT(chunk->table) &&
	       (!(options->from || options->to) ||
		ts_chunk_overlaps(chunk, options->from, options->to)) &&
	       (!options->filter || ts_filter_table(options->filter, chunk->table));
}

static int list_chunks(struct ts_row_merge *merge, struct ts_error *err)
{
	size_t count = ts_reader_chunk_count(merge->reader);

	merge->chunks = ts_alloc_array(count, sizeof(*merge->chunks));
	if (!merge->chunks)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < count; i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(merge->reader, i);

		if (is_wanted(merge, chunk))
			merge->chunks[merge->chunk_count++] =
				(struct ts_merge_chunk){ chunk->min_start, i };
	}
	ts_sort(merge->chunks, merge->chunk_count, sizeof(*merge->chunks), compare_chunks);
	return TS_OK;
}

static int read_chunk(struct ts_row_merge *merge, size_t chunk, struct ts_merge_cursor **cursor,
		      struct ts_error *err)
{
	const struct ts_row_merge_options *options = &merge->options;
	size_t next = merge->next + 1 < merge->chunk_count ? merge->chunks[merge->next + 1].chunk
							   : SIZE_MAX;

	if (options->read)
		return options->read(options->context, chunk, next, cursor, err);
	if (!*cursor)
		*cursor = calloc(1, sizeof(**cursor));
	if (!*cursor) {
		ts_error_set(err, TS_ENOMEM, "no memory");
		return TS_ENOMEM; /* the analyzer does not know what ts_error_set() returns */
	}
	return ts_merge_cursor_read(*cursor, merge->reader, chunk, options, err);
}

static int open_chunk(struct ts_row_merge *merge, struct ts_error *err)
{
	const struct ts_row_merge_options *options = &merge->options;
	size_t chunk = merge->chunks[merge->next].chunk;
	struct ts_merge_cursor **cursor = &merge->open[merge->open_count];
	int rc;

	if (options->progress && options->progress(options->context, merge->bytes_done))
		return ts_error_set(err, TS_ECANCELED, "interrupted");
	rc = read_chunk(merge, chunk, cursor, err);
	if (rc)
		return rc;
	(*cursor)->order = (uint32_t)merge->next++;
	merge->bytes_done += ts_reader_chunk(merge->reader, chunk)->bytes;
	if ((*cursor)->batch->rows)
		merge->open_count++;
	ts_reader_trim(merge->reader, TEXT_BYTES);
	return TS_OK;
}

/* Keeps the cursor, behind those in use, for the next chunk. */
static void close_first(struct ts_row_merge *merge)
{
	for (size_t i = 0; i < merge->open_count; i++) {
		if (merge->open[i] == merge->first) {
			merge->open[i] = merge->open[--merge->open_count];
			merge->open[merge->open_count] = merge->first;
		}
	}
}

/* ---- rows ---- */

static void find_first(struct ts_row_merge *merge)
{
	struct ts_merge_cursor *first = NULL, *second = NULL;

	for (size_t i = 0; i < merge->open_count; i++) {
		struct ts_merge_cursor *cursor = merge->open[i];

		if (!first || ts_merge_cursor_precedes_(cursor, first)) {
			second = first;
			first = cursor;
		} else if (!second || ts_merge_cursor_precedes_(cursor, second)) {
			second = cursor;
		}
	}
	merge->first = first;
	merge->second = second;
}

/* Can a chunk that is not open yet have the next row? */
static bool is_due(const struct ts_row_merge *merge)
{
	if (merge->next == merge->chunk_count || merge->open_count == merge->options.max_open)
		return false;
	return !merge->first || merge->chunks[merge->next].start <= merge->first->start;
}

/* The slow path of ts_row_merge_next(): another cursor, or another chunk, comes next. */
int ts_row_merge_advance_(struct ts_row_merge *merge, struct ts_merge_cursor **ret_cursor,
			  struct ts_error *err)
{
	int rc = TS_OK;

	if (merge->first && merge->first->passed == merge->first->batch->rows)
		close_first(merge);
	find_first(merge);
	while (!rc && is_due(merge)) {
		rc = open_chunk(merge, err);
		find_first(merge);
	}
	merge->due = INT64_MAX;
	if (merge->next < merge->chunk_count && merge->open_count < merge->options.max_open)
		merge->due = merge->chunks[merge->next].start;
	*ret_cursor = merge->first;
	return rc;
}

bool ts_row_merge_passes_(const struct ts_row_merge *merge, const struct ts_merge_cursor *cursor)
{
	const struct ts_row_merge_options *options = &merge->options;
	const struct ts_table_info *table = cursor->batch->table;
	int64_t duration = 0;

	if (table->duration >= 0 && (options->from || options->to))
		duration = cursor->batch->columns[table->duration][cursor->row];
	if ((options->from || options->to) &&
	    (cursor->start > options->to ||
	     (duration >= 0 && ts_ns_add(cursor->start, duration) < options->from)))
		return false;
	return !options->filter || ts_filter_batch(options->filter, cursor->batch, cursor->row);
}

int ts_row_merge_open(struct ts_row_merge *merge, struct ts_reader *reader,
		      const struct ts_row_merge_options *options, struct ts_error *err)
{
	*merge = (struct ts_row_merge){ .reader = reader, .options = *options };
	if (!options->max_open || options->max_open > TS_ROW_MERGE_MAX_OPEN)
		merge->options.max_open = TS_ROW_MERGE_MAX_OPEN;
	merge->is_filtered = options->filter || options->from || options->to;
	return list_chunks(merge, err);
}

void ts_row_merge_close(struct ts_row_merge *merge)
{
	for (size_t i = 0; i < TS_ROW_MERGE_MAX_OPEN; i++)
		ts_merge_cursor_free(merge->open[i]);
	free(merge->chunks);
	*merge = (struct ts_row_merge){ 0 };
}
