/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in time order over overlapping chunks: ties, ranges, filters, row_query beside it. */
#include "base/ns.h"
#include "trace/filter.h"
#include "trace/row_merge.h"
#include "trace/row_query.h"
#include "trace/trace_totals.h"

#include "unit/export/export_support.h"

#define ROWS 20000

static void make_row(struct fixture *fixture, int i, int64_t start, int64_t duration)
{
	struct ts_slice_row slice = ts_slice_none;
	struct ts_api_call_row call = ts_api_call_none;
	const char *name = i % 7 ? "other" : "wanted";

	slice.start = call.start = start;
	slice.duration = call.duration = duration;
	slice.name = call.name = text_id(fixture, name);
	TS_CHECK_INT(ts_writer_add(fixture->writer, i % 3 ? TS_TABLE_SLICE : TS_TABLE_API_CALL,
				   i % 3 ? (const void *)&slice : &call, NULL),
		     0);
}

/* Each chunk overlaps with some ten others. */
static struct ts_reader *make_rows(void)
{
	struct ts_reader *reader;
	struct ts_error err = { 0 };
	uint64_t state = 1;
	struct fixture fixture;

	make_trace(&fixture, 64);
	for (int i = 0; i < ROWS; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		make_row(&fixture, i, 1000 + i / 4 + (int64_t)(state >> 40 & 511),
			 state >> 50 & 15 ? (int64_t)(state >> 55) : -1);
	}
	if (ts_writer_finish(fixture.writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(fixture.writer);
	if (ts_reader_open(&reader, fixture.path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	unlink(fixture.path);
	return reader;
}

static int64_t end_of(int64_t start, int64_t duration)
{
	return duration < 0 ? INT64_MAX : ts_ns_add(start, duration);
}

/* Returns the number of rows; checks order and filters. */
static int walk(struct ts_reader *reader, const struct ts_row_merge_options *options)
{
	struct ts_error err = { 0 };
	struct ts_merge_cursor *cursor;
	struct ts_row_merge merge;
	int64_t last_start = INT64_MIN, last_end = INT64_MAX;
	int rc = ts_row_merge_open(&merge, reader, options, &err), count = 0;

	while (!rc && !(rc = ts_row_merge_next(&merge, &cursor, &err)) && cursor) {
		const struct ts_table_info *table = cursor->batch->table;
		int64_t start = cursor->batch->columns[table->start][cursor->row];
		int64_t end = end_of(start, cursor->batch->columns[table->duration][cursor->row]);

		TS_CHECK(options->tables & TS_TABLE_BIT(table->id));
		TS_CHECK_INT(cursor->start, start);
		TS_CHECK(start >= last_start);
		if (options->longest_first && start == last_start)
			TS_CHECK(end <= last_end);
		if (options->to)
			TS_CHECK(start <= options->to && end >= options->from);
		last_start = start;
		last_end = end;
		count++;
	}
	ts_row_merge_close(&merge);
	TS_CHECK_INT(rc, 0);
	return count;
}

static int count_row(void *context, const struct ts_row *row, struct ts_error *err)
{
	int *count = context;

	(void)row, (void)err;
	++*count;
	return TS_OK;
}

static int query(struct ts_reader *reader, const struct ts_filter *filter, int64_t from, int64_t to)
{
	int count = 0;
	struct ts_row_query rows = {
		.tables = ts_trace_event_tables(reader),
		.from = from,
		.to = to,
		.filter = filter,
		.limit = UINT64_MAX,
		.emit = count_row,
		.context = &count,
	};
	struct ts_error err = { 0 };

	TS_CHECK_INT(ts_row_query_run(reader, &rows, &err), 0);
	return count;
}

TS_TEST(rows_of_chunks_that_overlap_are_in_time_order)
{
	struct ts_reader *reader = make_rows();
	struct ts_row_merge_options options = { .tables = ts_trace_event_tables(reader) };

	TS_CHECK(ts_reader_chunk_count(reader) > 20);
	TS_CHECK_INT(walk(reader, &options), ROWS);
	options.longest_first = true;
	TS_CHECK_INT(walk(reader, &options), ROWS);
	options.tables = TS_TABLE_BIT(TS_TABLE_API_CALL);
	TS_CHECK_INT(walk(reader, &options), (int)ts_reader_rows(reader, TS_TABLE_API_CALL));
	options.tables = TS_TABLE_BIT(TS_TABLE_SAMPLE);
	TS_CHECK_INT(walk(reader, &options), 0);
	ts_reader_close(reader);
}

TS_TEST(rows_of_a_range_and_of_a_filter)
{
	struct ts_reader *reader = make_rows();
	static char wanted[] = "want*";
	char *const names[] = { wanted };
	const struct ts_filter_spec none = { 0 }, spec = { .names = { names, 1 } };
	struct ts_row_merge_options options = { .tables = ts_trace_event_tables(reader),
						.longest_first = true };
	struct ts_filter *filter = NULL, *all = NULL;
	struct ts_error err = { 0 };

	TS_CHECK_INT(ts_filter_new(&filter, reader, &spec, &err), 0);
	TS_CHECK_INT(ts_filter_new(&all, reader, &none, &err), 0);
	options.from = 2100;
	options.to = 2200;
	TS_CHECK(walk(reader, &options) > 0 && walk(reader, &options) < ROWS);
	TS_CHECK_INT(walk(reader, &options), query(reader, all, 2100, 2200));
	options.filter = filter;
	TS_CHECK(walk(reader, &options) > 0);
	TS_CHECK_INT(walk(reader, &options), query(reader, filter, 2100, 2200));
	options.from = options.to = 0;
	TS_CHECK_INT(walk(reader, &options), query(reader, filter, INT64_MIN, INT64_MAX));
	TS_CHECK_INT(walk(reader, &options), (ROWS + 6) / 7);
	ts_filter_free(filter);
	ts_filter_free(all);
	ts_reader_close(reader);
}

static int refuse(void *context, uint64_t bytes_done)
{
	(void)context, (void)bytes_done;
	return 1;
}

TS_TEST(a_merge_can_be_canceled)
{
	struct ts_reader *reader = make_rows();
	const struct ts_row_merge_options options = { .tables = ts_trace_event_tables(reader),
						      .progress = refuse };
	struct ts_merge_cursor *cursor;
	struct ts_row_merge merge;
	struct ts_error err = { 0 };

	TS_CHECK_INT(ts_row_merge_open(&merge, reader, &options, &err), 0);
	TS_CHECK_INT(ts_row_merge_next(&merge, &cursor, &err), TS_ECANCELED);
	ts_row_merge_close(&merge);
	ts_reader_close(reader);
}
