/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicate IN.sbt OUT.sbt --events N [--threads N]
 *
 * Makes a trace of at least N events from a small one: repeats all events, each copy after the
 * previous one, with new correlations, arrows and steps, like a longer run of the same program.
 * Uses only the public reader and writer. Prints one JSON line.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#define STEP_PREFIX "ProfilerStep#"
#define PAUSE_NS 1000000 /* between copies */

struct replicate {
	struct ts_reader *reader;
	struct ts_writer *writer;
	struct ts_batch *batch;
	int64_t *strings; /* old id to new, 0: not yet */
	int64_t *shapes;
	size_t shape_count;
	int64_t *values;
	size_t value_count;
	int64_t period_ns, correlations, steps;
	uint64_t copy;
};

static void die(const char *what)
{
	fprintf(stderr, "replicate: %s\n", what);
	exit(1);
}

static void check(int result, const struct ts_error *err)
{
	if (result)
		die(err->message);
}

static void *grown(void *array, size_t *count, size_t need, size_t item_bytes)
{
	char *grown = array;
	size_t had = *count;

	if (need <= had)
		return array;
	*count = need * 2;
	grown = realloc(array, *count * item_bytes);
	if (!grown)
		die("no memory");
	memset(grown + had * item_bytes, 0, (*count - had) * item_bytes);
	return grown;
}

/* ---- counts ---- */

static bool is_event(uint32_t table)
{
	const struct ts_table_info *info = ts_table_info(table);

	return info && info->kind == TS_KIND_EVENT && table != TS_TABLE_COMMAND &&
	       table != TS_TABLE_LOSS;
}

/* The tables that `tracesmith info` counts as events. */
static uint64_t count_events(const struct ts_reader *reader)
{
	static const enum ts_table_id tables[] = { TS_TABLE_SLICE,    TS_TABLE_GPU_OP,
						   TS_TABLE_API_CALL, TS_TABLE_SAMPLE,
						   TS_TABLE_MARK,     TS_TABLE_COUNTER };
	uint64_t events = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		events += ts_reader_rows(reader, tables[i]);
	return events;
}

static bool step_number(struct ts_string name, int64_t *ret_number)
{
	size_t prefix = strlen(STEP_PREFIX);

	if (name.length <= prefix || memcmp(name.data, STEP_PREFIX, prefix) != 0)
		return false;
	*ret_number = strtoll(name.data + prefix, NULL, 10);
	return true;
}

static void measure_steps(struct replicate *replicate)
{
	int64_t first = INT64_MAX, last = INT64_MIN, number;

	for (uint32_t i = 1; i < ts_reader_string_end(replicate->reader); i++) {
		if (!step_number(ts_reader_string(replicate->reader, i), &number))
			continue;
		first = number < first ? number : first;
		last = number > last ? number : last;
	}
	replicate->steps = first <= last ? last - first + 1 : 0;
}

static void measure_column(struct replicate *replicate, size_t chunk, const char *name)
{
	const struct ts_table_info *info =
		ts_table_info(ts_reader_chunk(replicate->reader, chunk)->table);
	int column = ts_column_by_name(info, name);
	struct ts_error err;

	if (column < 0)
		return;
	check(ts_batch_read(replicate->batch, chunk, UINT64_C(1) << column, &err), &err);
	for (uint32_t i = 0; i < replicate->batch->rows; i++) {
		int64_t value = replicate->batch->columns[column][i];

		if (value != TS_ABSENT && value >= replicate->correlations)
			replicate->correlations = value + 1;
	}
}

static void measure(struct replicate *replicate)
{
	int64_t from = INT64_MAX, to = INT64_MIN;

	for (size_t i = 0; i < ts_reader_chunk_count(replicate->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(replicate->reader, i);

		if (!is_event(chunk->table))
			continue;
		from = chunk->min_start < from ? chunk->min_start : from;
		to = chunk->max_end > to ? chunk->max_end : to;
		measure_column(replicate, i, "correlation");
		if (chunk->table == TS_TABLE_FLOW)
			measure_column(replicate, i, "id");
	}
	if (from > to)
		die("no events to replicate");
	replicate->period_ns = to - from + PAUSE_NS;
	measure_steps(replicate);
}

/* ---- ids and times of a copy ---- */

/* Step numbers continue; all other strings are the same in each copy. */
static int64_t new_string(struct replicate *replicate, int64_t old)
{
	struct ts_string text;
	int64_t number;
	char step[64];

	if (!old)
		return 0;
	if (replicate->strings[old] > 0)
		return replicate->strings[old];
	text = ts_reader_string(replicate->reader, old);
	if (step_number(text, &number)) {
		number += (int64_t)replicate->copy * replicate->steps;
		snprintf(step, sizeof(step), STEP_PREFIX "%" PRId64, number);
		return ts_writer_string(replicate->writer, step, strlen(step));
	}
	return replicate->strings[old] =
		       ts_writer_string(replicate->writer, text.data, text.length);
}

static int64_t new_shape(struct replicate *replicate, int64_t old)
{
	const struct ts_shape *shape = ts_reader_shape(replicate->reader, old);
	struct ts_field *fields;

	if (!old || !shape->field_count)
		return 0;
	replicate->shapes = grown(replicate->shapes, &replicate->shape_count, (size_t)old + 1,
				  sizeof(*replicate->shapes));
	if (replicate->shapes[old])
		return replicate->shapes[old];
	fields = malloc(shape->field_count * sizeof(*fields));
	if (!fields)
		die("no memory");
	for (uint32_t i = 0; i < shape->field_count; i++) {
		fields[i] = shape->fields[i];
		fields[i].key = (uint32_t)new_string(replicate, fields[i].key);
	}
	replicate->shapes[old] = ts_writer_shape(replicate->writer, fields, shape->field_count);
	free(fields);
	return replicate->shapes[old];
}

/* The event of a synchronization is identified by the correlation of the call that recorded it. */
static int64_t new_integer(struct replicate *replicate, uint32_t key, int64_t value)
{
	struct ts_string text = ts_reader_string(replicate->reader, key);

	if (value >= 0 && strstr(text.data, "corr_id"))
		return value + (int64_t)replicate->copy * replicate->correlations;
	return value;
}

static const int64_t *new_values(struct replicate *replicate, uint32_t row, int64_t old_shape)
{
	const struct ts_shape *shape = ts_reader_shape(replicate->reader, old_shape);
	const int64_t *values;
	size_t count = 0;

	if (!old_shape || !shape->value_count)
		return NULL;
	replicate->values = grown(replicate->values, &replicate->value_count, shape->value_count,
				  sizeof(*replicate->values));
	values = replicate->batch->arg_values + replicate->batch->arg_offsets[row];
	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];

		if (!ts_arg_has_value(field->type))
			continue;
		replicate->values[count] = values[count];
		if (field->type == TS_ARG_STRING || field->type == TS_ARG_JSON)
			replicate->values[count] = new_string(replicate, values[count]);
		else if (field->type == TS_ARG_INT)
			replicate->values[count] =
				new_integer(replicate, field->key, values[count]);
		count++;
	}
	return replicate->values;
}

static bool is_kept_reference(const char *table)
{
	return strcmp(table, "stack") != 0 && strcmp(table, "frame") != 0 &&
	       strcmp(table, "blob") != 0 && strcmp(table, "object") != 0;
}

static void new_row(struct replicate *replicate, const struct ts_table_info *table, int64_t *row)
{
	for (int i = 0; i < table->column_count; i++) {
		const struct ts_column_info *column = &table->columns[i];
		bool is_arrow = !strcmp(column->name, "correlation") ||
				(table->id == TS_TABLE_FLOW && !strcmp(column->name, "id"));

		if (column->type == TS_COLUMN_STRING || column->type == TS_COLUMN_JSON)
			row[i] = new_string(replicate, row[i]);
		else if (column->type == TS_COLUMN_SHAPE)
			row[i] = new_shape(replicate, row[i]);
		else if (column->type == TS_COLUMN_REF && !is_kept_reference(column->refers))
			row[i] = 0;
		else if (column->type == TS_COLUMN_TIME && row[i] != TS_ABSENT)
			row[i] += (int64_t)replicate->copy * replicate->period_ns;
		else if (is_arrow && row[i] >= 0)
			row[i] += (int64_t)replicate->copy * replicate->correlations;
	}
}

/* ---- rows ---- */

static void copy_entities(struct replicate *replicate)
{
	static const enum ts_table_id tables[] = { TS_TABLE_SOURCE,  TS_TABLE_HOST,
						   TS_TABLE_PROCESS, TS_TABLE_THREAD,
						   TS_TABLE_DEVICE,  TS_TABLE_STREAM };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct ts_table_info *info = ts_table_info(tables[i]);
		int64_t row[TS_MAX_COLUMNS];
		const void *found;
		size_t cursor = 0;
		int64_t id;

		while ((found = ts_reader_entity_next(replicate->reader, tables[i], &cursor,
						      &id))) {
			memcpy(row, found, info->column_count * sizeof(*row));
			new_row(replicate, info, row);
			ts_writer_add(replicate->writer, tables[i], row, NULL);
		}
	}
}

static void copy_chunk(struct replicate *replicate, size_t chunk)
{
	struct ts_batch *batch = replicate->batch;
	struct ts_error err;

	check(ts_batch_read(batch, chunk, TS_MASK_ALL, &err), &err);
	for (uint32_t i = 0; i < batch->rows; i++) {
		const struct ts_table_info *table = batch->table;
		const int64_t *values = NULL;
		int64_t row[TS_MAX_COLUMNS];

		ts_batch_row(batch, i, row);
		if (table->shape >= 0)
			values = new_values(replicate, i, row[table->shape]);
		new_row(replicate, table, row);
		if (ts_writer_add(replicate->writer, (enum ts_table_id)table->id, row, values))
			check(ts_writer_status(replicate->writer, &err), &err);
	}
}

static void copy_all(struct replicate *replicate)
{
	for (size_t i = 0; i < ts_reader_chunk_count(replicate->reader); i++) {
		uint32_t table = ts_reader_chunk(replicate->reader, i)->table;
		bool is_once = table == TS_TABLE_META || table == TS_TABLE_CLOCK_SYNC;

		if (is_event(table) || (is_once && replicate->copy == 0))
			copy_chunk(replicate, i);
	}
}

int main(int argc, char **argv)
{
	struct ts_writer_options options = { .size = sizeof(options) };
	struct replicate replicate = { 0 };
	uint64_t events = 0, wanted = 0, copies;
	struct ts_error err;

	for (int i = 3; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--events"))
			wanted = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--threads"))
			options.threads = (int)strtol(argv[i + 1], NULL, 10);
		else
			wanted = 0;
	}
	if (argc < 5 || argc % 2 == 0 || !wanted)
		die("replicate IN.sbt OUT.sbt --events N [--threads N]");
	check(ts_reader_open(&replicate.reader, argv[1], &err), &err);
	check(ts_batch_new(&replicate.batch, replicate.reader, &err), &err);
	check(ts_writer_open(&replicate.writer, argv[2], &options, &err), &err);
	replicate.strings = calloc(ts_reader_string_end(replicate.reader) + 1, sizeof(int64_t));
	if (!replicate.strings)
		die("no memory");
	events = count_events(replicate.reader);
	measure(&replicate);
	copies = events ? (wanted + events - 1) / events : 0;
	copy_entities(&replicate);
	for (; replicate.copy < copies; replicate.copy++)
		copy_all(&replicate);
	check(ts_reader_status(replicate.reader, &err), &err);
	check(ts_writer_finish(replicate.writer, &err), &err);
	printf("{\"events\":%" PRIu64 ",\"copies\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
	       copies * events, copies, ts_writer_bytes(replicate.writer));
	ts_writer_close(replicate.writer);
	ts_batch_free(replicate.batch);
	ts_reader_close(replicate.reader);
	free(replicate.strings);
	free(replicate.shapes);
	free(replicate.values);
	return 0;
}
