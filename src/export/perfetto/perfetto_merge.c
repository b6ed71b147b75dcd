/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds all events to the encoder in time order, parents before children (trace/row_merge.h), from
 * chunks that a thread reads ahead.
 */
#include <assert.h>
#include <stdlib.h>

#include "export/perfetto/perfetto_export.h"
#include "trace/trace_totals.h"

/* The columns of EVENT tables have ids that fit into one byte of a varint. */
#define MAX_ID 127

static void add_active(struct ts_pf_cursor *cursor, unsigned int position, bool is_shown)
{
	const struct ts_batch *batch = cursor->merge.batch;
	const struct ts_column_info *column = &batch->table->columns[position];

	assert(column->id <= MAX_ID);
	if (is_shown)
		cursor->shown[cursor->shown_count++] = cursor->active_count;
	cursor->active[cursor->active_count++] = (struct ts_pf_column){
		.values = batch->columns[position],
		.none = column->none,
		.position = (uint8_t)position,
		.id = (uint8_t)column->id,
		.is_text = column->type == TS_COLUMN_STRING || column->type == TS_COLUMN_JSON,
	};
}

static void find_active(struct ts_pf_cursor *cursor)
{
	const struct ts_batch *batch = cursor->merge.batch;
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

static const struct ts_row_merge_options merge_options = {
	.longest_first = true,
	/* Ends of arrows precede the spans that begin there. */
	.ahead_tables = TS_TABLE_BIT(TS_TABLE_FLOW),
};

int ts_pf_cursor_read(struct ts_pf_cursor *cursor, struct ts_reader *reader, size_t chunk,
		      struct ts_error *err)
{
	int result = ts_merge_cursor_read(&cursor->merge, reader, chunk, &merge_options, err);

	if (!result && cursor->merge.batch->rows)
		find_active(cursor);
	return result;
}

static int read_chunk(void *context, size_t chunk, size_t next, struct ts_merge_cursor **cursor,
		      struct ts_error *err)
{
	struct ts_pf_export *x = context;
	int result = ts_pf_read_wait(x, chunk, (struct ts_pf_cursor **)cursor);

	(void)err; /* the same as x->err */
	if (!result && next != SIZE_MAX)
		ts_pf_read(x, next);
	return result;
}

static int on_progress(void *context, uint64_t bytes_done)
{
	const struct ts_pf_export *x = context;
	const struct ts_export_options *options = x->chrome.options;

	return options->progress && options->progress(options->context, bytes_done,
						      ts_reader_state(x->reader)->file_bytes);
}

int ts_pf_walk(struct ts_pf_export *x)
{
	struct ts_row_merge_options options = merge_options;
	struct ts_merge_cursor *cursor;
	struct ts_row_merge merge;
	int result;

	options.tables = ts_trace_event_tables(x->reader);
	options.read = read_chunk;
	options.progress = on_progress;
	options.context = x;
	result = ts_row_merge_open(&merge, x->reader, &options, x->err);
	while (!result && !(result = ts_row_merge_next(&merge, &cursor, x->err)) && cursor)
		result = ts_pf_put_event(x, (const struct ts_pf_cursor *)cursor);
	ts_row_merge_close(&merge);
	return result;
}
