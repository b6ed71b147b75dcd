/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a filter into tests of integer columns, a list per table. To add a kind of filter, add a
 * set of ids and the columns that hold such ids.
 */
#include <string.h>

#include "base/text.h"
#include "trace/filter.h"
#include "trace/idset.h"

#define MAX_TESTS 8

/* A column's value must be in a set, or else the fallback column's value in another set. */
struct test {
	int column;
	int fallback; /* -1: none */
	bool either;  /* try the fallback even where the first column is not 0 */
	struct ts_idset *set;
	struct ts_idset *fallback_set;
};

struct table_tests {
	struct test tests[MAX_TESTS];
	unsigned int count;
	bool never; /* no row of this table can pass */
};

enum set_name {
	SET_NAMES,
	SET_NAME_STACKS, /* samples are named by their innermost function */
	SET_CATEGORIES,
	SET_DEVICES,
	SET_STREAMS,
	SET_PROCESSES,
	SET_PROCESS_THREADS, /* threads and streams of the wanted processes */
	SET_PROCESS_STREAMS,
	SET_THREADS,
	SET_THREAD_STREAMS, /* streams shown under a wanted thread */
	SET_COUNT,
};

struct ts_filter {
	struct ts_reader *reader;
	struct ts_filter_spec spec;
	struct ts_idset sets[SET_COUNT];
	struct table_tests tables[TS_TABLE_COUNT];
};

/* ---- sets ---- */

static int check_numbers(const struct ts_patterns *patterns, const char *what, struct ts_error *err)
{
	int64_t number;

	for (size_t i = 0; i < patterns->count; i++) {
		if (ts_parse_int64(patterns->items[i], strlen(patterns->items[i]), &number))
			return ts_error_set(err, TS_EINVAL, "the %s must be a number, not '%s'",
					    what, patterns->items[i]);
	}
	return TS_OK;
}

/* Does the number equal, or its name or its number as text match any of the patterns? */
static bool matches_any(struct ts_reader *reader, const struct ts_patterns *patterns,
			int64_t number, int64_t number_text, int64_t name)
{
	int64_t wanted;

	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->items[i];
		struct ts_string text = ts_reader_string(reader, number_text);

		if (!ts_parse_int64(pattern, strlen(pattern), &wanted) && wanted == number)
			return true;
		if (number_text && ts_glob_match(pattern, text.data, text.length))
			return true;
		text = ts_reader_string(reader, name);
		if (name && ts_glob_match(pattern, text.data, text.length))
			return true;
	}
	return false;
}

static bool device_matches(struct ts_filter *filter, const void *row)
{
	const struct ts_device_row *device = row;

	return matches_any(filter->reader, &filter->spec.devices, device->number, 0, 0);
}

static bool stream_matches(struct ts_filter *filter, const void *row)
{
	const struct ts_stream_row *stream = row;

	return matches_any(filter->reader, &filter->spec.streams, stream->number, 0, 0);
}

static bool process_matches(struct ts_filter *filter, const void *row)
{
	const struct ts_process_row *process = row;

	return matches_any(filter->reader, &filter->spec.processes, process->pid, process->pid_text,
			   process->name);
}

static bool thread_matches(struct ts_filter *filter, const void *row)
{
	const struct ts_thread_row *thread = row;

	return matches_any(filter->reader, &filter->spec.threads, thread->tid, thread->tid_text,
			   thread->name);
}

static bool thread_is_of_process(struct ts_filter *filter, const void *row)
{
	const struct ts_thread_row *thread = row;

	return ts_idset_has(&filter->sets[SET_PROCESSES], thread->process);
}

static bool stream_is_of_process(struct ts_filter *filter, const void *row)
{
	const struct ts_stream_row *stream = row;

	return ts_idset_has(&filter->sets[SET_PROCESS_THREADS], stream->thread);
}

static bool stream_is_of_thread(struct ts_filter *filter, const void *row)
{
	const struct ts_stream_row *stream = row;

	return ts_idset_has(&filter->sets[SET_THREADS], stream->thread);
}

/* Collects the entities of a table that match. */
static int choose(struct ts_filter *filter, enum set_name name, enum ts_table_id table,
		  bool (*matches)(struct ts_filter *filter, const void *row), struct ts_error *err)
{
	const void *row;
	size_t cursor = 0;
	int64_t id;

	while ((row = ts_reader_entity_next(filter->reader, table, &cursor, &id))) {
		if (matches(filter, row) && ts_idset_add(&filter->sets[name], id))
			return ts_error_set(err, TS_ENOMEM, "no memory for a set of ids");
	}
	return TS_OK;
}

static void start_sets(struct ts_filter *filter)
{
	const struct ts_filter_spec *spec = &filter->spec;

	for (int i = 0; i < SET_COUNT; i++)
		ts_idset_init(&filter->sets[i], TS_IDSET_LISTED, filter->reader, NULL);
	ts_idset_init(&filter->sets[SET_NAMES], TS_IDSET_STRINGS, filter->reader, &spec->names);
	ts_idset_init(&filter->sets[SET_NAME_STACKS], TS_IDSET_STACKS, filter->reader,
		      &spec->names);
	ts_idset_init(&filter->sets[SET_CATEGORIES], TS_IDSET_STRINGS, filter->reader,
		      &spec->categories);
}

static int choose_entities(struct ts_filter *filter, struct ts_error *err)
{
	const struct ts_filter_spec *spec = &filter->spec;
	int rc = TS_OK;

	if (spec->devices.count)
		rc = choose(filter, SET_DEVICES, TS_TABLE_DEVICE, device_matches, err);
	if (!rc && spec->streams.count)
		rc = choose(filter, SET_STREAMS, TS_TABLE_STREAM, stream_matches, err);
	if (!rc && spec->processes.count) {
		rc = choose(filter, SET_PROCESSES, TS_TABLE_PROCESS, process_matches, err);
		if (!rc)
			rc = choose(filter, SET_PROCESS_THREADS, TS_TABLE_THREAD,
				    thread_is_of_process, err);
		if (!rc)
			rc = choose(filter, SET_PROCESS_STREAMS, TS_TABLE_STREAM,
				    stream_is_of_process, err);
	}
	if (!rc && spec->threads.count) {
		rc = choose(filter, SET_THREADS, TS_TABLE_THREAD, thread_matches, err);
		if (!rc)
			rc = choose(filter, SET_THREAD_STREAMS, TS_TABLE_STREAM,
				    stream_is_of_thread, err);
	}
	return rc;
}

/* ---- tests of a table ---- */

/* The column that refers to the table of that name, or the id column of that table itself. */
static int find_reference(const struct ts_table_info *table, const char *refers)
{
	if (!strcmp(table->name, refers))
		return ts_column_by_name(table, "id");
	for (int i = 0; i < table->column_count; i++) {
		if (table->columns[i].type == TS_COLUMN_REF &&
		    !strcmp(table->columns[i].refers, refers))
			return i;
	}
	return -1;
}

/* Tests `column`, or `fallback` if the table lacks it. With neither, no row can pass. */
static void add_test(struct ts_filter *filter, struct table_tests *tests, int column,
		     enum set_name set, int fallback, enum set_name fallback_set)
{
	struct test *test = &tests->tests[tests->count++];

	if (column < 0) {
		column = fallback;
		set = fallback_set;
		fallback = -1;
	}
	if (column < 0)
		tests->never = true;
	*test = (struct test){
		.column = column,
		.fallback = fallback,
		.set = &filter->sets[set],
		.fallback_set = &filter->sets[fallback_set],
		.either = fallback_set == SET_NAME_STACKS,
	};
}

static void add_tests(struct ts_filter *filter, const struct ts_table_info *table)
{
	const struct ts_filter_spec *spec = &filter->spec;
	struct table_tests *tests = &filter->tables[table->id];
	int process = find_reference(table, "process"), thread = find_reference(table, "thread");
	int stream = find_reference(table, "stream"), device = find_reference(table, "device");
	int stack = table->id == TS_TABLE_SAMPLE ? ts_column_by_name(table, "stack") : -1;

	/* A string is its own name, and has no id in a column: see ts_filter_row(). */
	if (spec->names.count && table->id != TS_TABLE_STRING)
		add_test(filter, tests, ts_row_name_column(table), SET_NAMES, stack,
			 SET_NAME_STACKS);
	if (spec->categories.count)
		add_test(filter, tests, ts_column_by_name(table, "category"), SET_CATEGORIES, -1,
			 SET_CATEGORIES);
	if (spec->devices.count)
		add_test(filter, tests, device, SET_DEVICES, -1, SET_DEVICES);
	if (spec->streams.count)
		add_test(filter, tests, stream, SET_STREAMS, -1, SET_STREAMS);
	/* Device work without a thread belongs to the process that shows its stream. */
	if (spec->processes.count)
		add_test(filter, tests, process, SET_PROCESSES, thread >= 0 ? thread : stream,
			 thread >= 0 ? SET_PROCESS_THREADS : SET_PROCESS_STREAMS);
	if (spec->threads.count)
		add_test(filter, tests, thread, SET_THREADS, stream, SET_THREAD_STREAMS);
}

int ts_filter_new(struct ts_filter **ret_filter, struct ts_reader *reader,
		  const struct ts_filter_spec *spec, struct ts_error *err)
{
	TS_AUTO(ts_filter) filter = calloc(1, sizeof(*filter));
	int rc;

	if (!filter)
		return ts_error_set(err, TS_ENOMEM, "no memory for a filter");
	filter->reader = reader;
	filter->spec = *spec;
	start_sets(filter);
	rc = check_numbers(&spec->devices, "device", err);
	if (!rc)
		rc = check_numbers(&spec->streams, "stream", err);
	if (!rc)
		rc = choose_entities(filter, err);
	if (rc)
		return rc;
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *table = ts_table_info(id);

		if (table)
			add_tests(filter, table);
	}
	*ret_filter = TS_STEAL(filter);
	return TS_OK;
}

void ts_filter_free(struct ts_filter *filter)
{
	for (int i = 0; filter && i < SET_COUNT; i++)
		ts_idset_release(&filter->sets[i]);
	free(filter);
}

/* ---- use ---- */

bool ts_filter_table(const struct ts_filter *filter, unsigned int table)
{
	return table < TS_TABLE_COUNT && !filter->tables[table].never;
}

uint64_t ts_filter_mask(const struct ts_filter *filter, unsigned int table)
{
	const struct table_tests *tests = &filter->tables[table];
	uint64_t mask = 0;

	if (tests->never)
		return 0;
	for (unsigned int i = 0; i < tests->count; i++) {
		mask |= UINT64_C(1) << tests->tests[i].column;
		if (tests->tests[i].fallback >= 0)
			mask |= UINT64_C(1) << tests->tests[i].fallback;
	}
	return mask;
}

static bool passes(const struct test *test, int64_t value, int64_t fallback)
{
	if (test->fallback < 0 || (value != 0 && !test->either))
		return ts_idset_has(test->set, value);
	return (value != 0 && ts_idset_has(test->set, value)) ||
	       ts_idset_has(test->fallback_set, fallback);
}

bool ts_filter_batch(const struct ts_filter *filter, const struct ts_batch *batch, uint32_t row)
{
	const struct table_tests *tests = &filter->tables[batch->table->id];

	for (unsigned int i = 0; i < tests->count; i++) {
		const struct test *test = &tests->tests[i];
		int64_t fallback = 0;

		if (test->fallback >= 0)
			fallback = batch->columns[test->fallback][row];
		if (!passes(test, batch->columns[test->column][row], fallback))
			return false;
	}
	return true;
}

bool ts_filter_row(const struct ts_filter *filter, const struct ts_row *row)
{
	const struct table_tests *tests = &filter->tables[row->table->id];
	struct ts_string text = { row->bytes, row->bytes_length };

	if (row->table->id == TS_TABLE_STRING && filter->spec.names.count &&
	    !ts_patterns_match(&filter->spec.names, text))
		return false;
	for (unsigned int i = 0; !tests->never && i < tests->count; i++) {
		const struct test *test = &tests->tests[i];
		int64_t fallback = test->fallback >= 0 ? row->columns[test->fallback] : 0;

		if (!passes(test, row->columns[test->column], fallback))
			return false;
	}
	return !tests->never;
}
