/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a query: rows of one instant, or of one length, are divided like any others. */
#include "trace/row_query.h"
#include "trace/row_window.h"
#include "trace/trace_totals.h"

#include "unit/export/export_support.h"

/* All start at once; thread i has slice i, durations repeat. */
static struct ts_reader *make_rows(int count, int64_t durations)
{
	struct ts_reader *reader;
	struct ts_error err = { 0 };
	struct fixture fixture;

	make_trace(&fixture, 0);
	for (int i = 0; i < count; i++) {
		struct ts_slice_row row = ts_slice_none;

		row.start = 5;
		row.duration = i * INT64_C(7919) % durations;
		row.thread = i + 1;
		TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_SLICE, &row, NULL), 0);
	}
	if (ts_writer_finish(fixture.writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(fixture.writer);
	if (ts_reader_open(&reader, fixture.path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	unlink(fixture.path);
	return reader;
}

/* Adds the rows of the chunk from `begin` on; returns the last key of the window. */
static struct ts_row_key fill_window(struct ts_row_window *window,
				     const struct ts_cached_chunk *chunk, struct ts_row_key begin)
{
	struct ts_row_key end = { INT64_MAX, INT64_MAX, UINT64_MAX, UINT32_MAX };
	struct ts_error err = { 0 };

	ts_row_window_clear(window);
	for (uint32_t row = 0; row < chunk->keys->rows; row++) {
		int64_t duration = chunk->keys->columns[chunk->keys->table->duration][row];
		struct ts_row_key key = { 5, ~duration, chunk->chunk, row };

		if (ts_row_key_compare(&key, &begin) < 0 || ts_row_key_compare(&key, &end) > 0)
			continue;
		TS_CHECK_INT(ts_row_window_add(window, &key, chunk, &err), 0);
		TS_CHECK_INT(ts_row_window_shrink(window, &end, &err), 0);
		TS_CHECK(window->count < window->item_limit);
	}
	ts_row_window_sort(window);
	return end;
}

TS_TEST(windows_end_among_rows_of_one_instant)
{
	struct ts_reader *reader = make_rows(5000, 3);
	struct ts_row_key begin = { 5, INT64_MIN, 0, 0 };
	struct ts_cached_chunk *chunk;
	struct ts_chunk_cache cache;
	struct ts_row_window window;
	struct ts_error err = { 0 };
	size_t rows = 0, windows = 0;
	int64_t shortest = INT64_MAX;

	ts_chunk_cache_init(&cache, reader, 1 << 20);
	TS_CHECK_INT(ts_chunk_cache_get(&cache, 0, TS_MASK_ALL, 0, &chunk, &err), 0);
	ts_row_window_init(&window);
	window.item_limit = 64;
	do {
		begin = fill_window(&window, chunk, begin);
		for (size_t i = 0; i < window.count; i++) {
			struct ts_row row = ts_row_window_row(&window, i);
			int64_t duration = row.columns[row.table->duration];

			TS_CHECK(duration <= shortest);
			shortest = duration;
		}
		rows += window.count;
		windows++;
	} while (begin.row++ < UINT32_MAX);
	TS_CHECK_INT(rows, 5000);
	TS_CHECK(windows > 5000 / 64);
	ts_row_window_release(&window);
	ts_chunk_cache_release(&cache);
	ts_reader_close(reader);
}

struct seen {
	bool *threads;
	int count;
	int64_t shortest;
};

static int see(void *context, const struct ts_row *row, struct ts_error *err)
{
	const struct ts_slice_row *slice = (const struct ts_slice_row *)(const void *)row->columns;
	struct seen *seen = context;

	(void)err;
	TS_CHECK(!seen->threads[slice->thread]);
	TS_CHECK(slice->duration <= seen->shortest);
	seen->threads[slice->thread] = true;
	seen->shortest = slice->duration;
	seen->count++;
	return TS_OK;
}

/* More than a window holds. */
TS_TEST(each_row_of_one_instant_comes_once)
{
	const int rows = 700000;

	for (int64_t durations = 1; durations < 1000; durations += 900) {
		struct ts_reader *reader = make_rows(rows, durations);
		const struct ts_filter_spec spec = { 0 };
		struct ts_filter *filter = NULL;
		struct ts_error err = { 0 };

		TS_CHECK_INT(ts_filter_new(&filter, reader, &spec, &err), 0);
		for (int order = 0; order < 2; order++) {
			struct seen seen = { .threads = calloc((size_t)rows + 1, 1),
					     .shortest = INT64_MAX };
			struct ts_row_query query = {
				.tables = TS_TABLE_BIT(TS_TABLE_SLICE),
				.from = INT64_MIN,
				.to = INT64_MAX,
				.masks = { [TS_TABLE_SLICE] = TS_MASK_ALL },
				.filter = filter,
				.order = order ? TS_ROW_ORDER_DURATION : TS_ROW_ORDER_START,
				.limit = UINT64_MAX,
				.emit = see,
				.context = &seen,
			};

			TS_CHECK_INT(ts_row_query_run(reader, &query, &err), 0);
			TS_CHECK_INT(seen.count, rows);
			free(seen.threads);
		}
		ts_filter_free(filter);
		ts_reader_close(reader);
	}
}
