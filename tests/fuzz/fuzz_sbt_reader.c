/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a trace: opened, every chunk read in two ways, all strings, shapes and rows looked
 * up, stacks and blobs walked, every table streamed as Arrow, verified, recovered, exported. Must
 * not crash, leak, loop or use more memory than the file justifies; and every chunk of a file that
 * passes `verify` must be readable without an error. The mutator fixes checksums, because random
 * changes would never get past them.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/arrow.h>
#include <tracesmith/export.h>
#include <tracesmith/reader.h>

#include "lib/arrow_check.h"
#include "lib/fuzz_check.h"
#include "lib/sbt_mutate.h"

/*
 * A chunk of equal rows takes no space: beyond this many, reading them all only costs time (see
 * crash/hostile).
 */
#define MAX_ROWS 100000u
#define MAX_STRINGS 50000u
#define MAX_BLOBS 200u

/* ---- reading ---- */

static uint64_t count_rows(const struct ts_reader *reader)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++)
		rows += ts_reader_chunk(reader, i)->rows;
	return rows;
}

/* Touches the text, so that a sanitizer detects an invalid one. */
static size_t touch(struct ts_string text)
{
	size_t sum = text.length;

	for (size_t i = 0; i <= text.length; i++)
		sum += (unsigned char)text.data[i];
	return sum;
}

static void look_up_row(struct ts_reader *reader, const struct ts_batch *batch, uint32_t row)
{
	const struct ts_table_info *table = batch->table;
	int64_t columns[TS_MAX_COLUMNS];
	const struct ts_shape *shape;
	const int64_t *values;

	ts_batch_row(batch, row, columns);
	for (int i = 0; i < table->column_count; i++) {
		uint8_t type = table->columns[i].type;

		if (type == TS_COLUMN_STRING || type == TS_COLUMN_JSON)
			touch(ts_reader_string(reader, columns[i]));
		else if (type == TS_COLUMN_REF)
			ts_reader_entity(
				reader,
				(enum ts_table_id)ts_table_by_name(table->columns[i].refers),
				columns[i]);
	}
	if (table->shape < 0 || !columns[table->shape])
		return;
	shape = ts_reader_shape(reader, columns[table->shape]);
	values = batch->arg_values + batch->arg_offsets[row];
	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];

		touch(ts_reader_string(reader, field->key));
		if (!ts_arg_has_value(field->type))
			continue;
		if (field->type == TS_ARG_STRING || field->type == TS_ARG_JSON)
			touch(ts_reader_string(reader, *values));
		values++;
	}
}

/* One column alone must equal the same column read with all others. */
static void check_start_alone(const struct ts_batch *all, struct ts_batch *alone, size_t chunk)
{
	int start = all->table ? all->table->start : -1;

	if (start < 0)
		return;
	check(ts_batch_read(alone, chunk, UINT64_C(1) << start, NULL) == 0,
	      "a column does not read alone");
	check(alone->rows == all->rows && memcmp(alone->columns[start], all->columns[start],
						 all->rows * sizeof(int64_t)) == 0,
	      "a column read alone is another");
}

static int read_chunks(struct ts_reader *reader)
{
	struct ts_batch *batch, *alone;
	int failures = 0;

	check(ts_batch_new(&batch, reader, NULL) == 0 && ts_batch_new(&alone, reader, NULL) == 0,
	      "no memory for a batch");
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		struct ts_error err = { 0 };

		if (ts_batch_read(batch, i, TS_MASK_ALL, &err)) {
			check(err.code && err.message[0], "an error without a message");
			failures++;
			continue;
		}
		for (uint32_t row = 0; row < batch->rows; row++)
			look_up_row(reader, batch, row);
		check_start_alone(batch, alone, i);
	}
	ts_batch_free(batch);
	ts_batch_free(alone);
	return failures;
}

static void walk_stack(struct ts_reader *reader, int64_t id)
{
	for (int depth = 0; id > 0 && depth < 100; depth++) {
		const struct ts_stack_row *stack = ts_reader_entity(reader, TS_TABLE_STACK, id);

		if (!stack)
			return;
		ts_reader_entity(reader, TS_TABLE_FRAME, stack->frame);
		id = stack->parent;
	}
}

static int touch_piece(void *context, uint64_t offset, const void *data, size_t bytes,
		       struct ts_error *err)
{
	(void)err;
	check(offset == *(uint64_t *)context, "pieces of a blob do not follow each other");
	touch((struct ts_string){ .data = data, .length = bytes });
	*(uint64_t *)context += bytes;
	return 0;
}

/* In full, and in part. A walk returns as much as its size says. */
static int read_blob(struct ts_reader *reader, int64_t id)
{
	struct ts_error err = { 0 };
	uint64_t bytes = 0, size = 0;
	char part[64];
	int result = ts_reader_blob_walk(reader, id, touch_piece, &bytes, &err);

	check(!result || err.message[0], "an error without a message");
	if (ts_reader_blob_size(reader, id, &size, NULL) == 0 && size)
		ts_reader_blob_read(reader, id, size / 2, part,
				    size - size / 2 < 64 ? size - size / 2 : 64, NULL);
	check(result || bytes == size, "a blob has another size than its pieces");
	return result;
}

static int read_blobs(struct ts_reader *reader)
{
	size_t cursor = 0, count = 0;
	int failures = 0;
	int64_t id;

	while (count++ < MAX_BLOBS && ts_reader_entity_next(reader, TS_TABLE_BLOB, &cursor, &id)) {
		int result = read_blob(reader, id);

		failures += result && result != TS_ENOTFOUND;
	}
	return failures;
}

static void look_up_all(struct ts_reader *reader)
{
	uint32_t end = ts_reader_string_end(reader);

	for (uint32_t id = 0; id < end && id < MAX_STRINGS; id++)
		touch(ts_reader_string(reader, id));
	touch(ts_reader_string(reader, end));
	touch(ts_reader_string(reader, -1));
	for (int table = 0; table < TS_TABLE_COUNT; table++) {
		size_t cursor = 0;
		const void *row;
		int64_t id;

		while ((row = ts_reader_entity_next(reader, (enum ts_table_id)table, &cursor,
						    &id))) {
			check(ts_reader_entity(reader, (enum ts_table_id)table, id) == row,
			      "an id leads to another row");
			if (table == TS_TABLE_STACK)
				walk_stack(reader, id);
		}
	}
	ts_reader_trim(reader, 0);
	touch(ts_reader_string(reader, 1));
}

/* ---- Arrow ---- */

/* Consumers trust what they are given: every batch must be exactly as its schema says. */
static int read_batches(struct ArrowArrayStream *stream, uint64_t *rows)
{
	struct ArrowSchema schema;
	struct ArrowArray batch;
	const char *fault = NULL;
	int result;

	check(stream->get_schema(stream, &schema) == 0, "no schema");
	while (!(result = stream->get_next(stream, &batch)) && batch.release) {
		fault = arrow_fault(&schema, &batch);
		check(!fault, fault ? fault : "");
		*rows += (uint64_t)batch.length;
		batch.release(&batch);
	}
	check(!result || stream->get_last_error(stream), "an error without a message");
	schema.release(&schema);
	return result;
}

static int stream_table(struct ts_reader *reader, const char *table, bool is_plain, int64_t from)
{
	struct ts_arrow_options options = { .size = sizeof(options),
					    .from = from,
					    .to = from ? INT64_MAX : 0,
					    .flags = TS_ARROW_ALL_COLUMNS |
						     (is_plain ? TS_ARROW_PLAIN_STRINGS : 0),
					    .threads = -1 };
	struct ArrowArrayStream stream;
	uint64_t rows = 0, expected;
	int result;

	check(ts_arrow_stream(&stream, &reader, 1, table, &options, NULL) == 0, "no stream");
	result = read_batches(&stream, &rows);
	stream.release(&stream);
	if (!result && !from && ts_arrow_rows(&reader, 1, table, &expected, NULL) == 0)
		check(rows == expected, "rows of a table are missing");
	return result;
}

/* How many stored tables cannot be read. */
static int stream_tables(struct ts_reader *reader)
{
	int failures = 0;

	for (uint32_t table = 0; table < TS_TABLE_COUNT; table++) {
		const struct ts_table_info *info = ts_table_info(table);

		if (!info || info->kind == TS_KIND_INTERNAL)
			continue;
		failures += stream_table(reader, info->name, table % 2, 0) &&
			    info->kind != TS_KIND_DERIVED;
		if (info->kind == TS_KIND_EVENT)
			stream_table(reader, info->name, table % 2 == 0, 1000);
	}
	return failures;
}

static void left_out(void *context, const char *table, uint64_t rows, const char *reason)
{
	(void)context;
	check(table && rows && reason && reason[0], "something that is left out, without a word");
}

/* Each table as CSV. */
static void export_tables(struct ts_reader *reader, const struct ts_exporter *exporter, int fd)
{
	for (uint32_t table = 0; table < TS_TABLE_COUNT; table++) {
		struct ts_export_options options = { .size = sizeof(options),
						     .left_out = left_out };

		if (!ts_table_info(table))
			continue;
		options.table = ts_table_info(table)->name;
		exporter->run(reader, fd, &options, NULL);
	}
}

/* With each flag alone, the first time with none. */
static void export_flags(struct ts_reader *reader, const struct ts_exporter *exporter, int fd)
{
	for (unsigned int flag = 0; flag < TS_EXPORT_TABLE; flag = flag ? flag << 1 : 1) {
		struct ts_export_options options = { .size = sizeof(options),
						     .flags = flag,
						     .left_out = left_out };

		if (!flag || exporter->takes & flag)
			exporter->run(reader, fd, &options, NULL);
	}
}

static void export_all(struct ts_reader *reader)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	size_t count;
	const struct ts_exporter *exporters = ts_exporter_list(&count);

	for (size_t i = 0; i < count; i++) {
		if (exporters[i].takes & TS_EXPORT_TABLE)
			export_tables(reader, &exporters[i], fd);
		else
			export_flags(reader, &exporters[i], fd);
	}
	close(fd);
}

/* ---- files ---- */

static void count_finding(void *context, const struct ts_verify_finding *finding)
{
	check(finding->message && finding->message[0], "a finding without a message");
	++*(int *)context;
}

/* All rows of a valid trace come back. */
static void check_recovered(const struct memory_file *from, const struct memory_file *to,
			    bool complete)
{
	struct ts_recovery recovery;
	struct ts_reader *reader;
	int result = ts_recover(from->path, to->path, NULL, NULL, &recovery, NULL);

	check(!complete || result == 0, "a valid trace is not recovered");
	if (result)
		return;
	check(ts_reader_open(&reader, to->path, NULL) == 0, "what was recovered does not open");
	check(ts_reader_state(reader)->finished, "what was recovered is not finished");
	check(count_rows(reader) >= recovery.rows, "recover counts missing rows");
	ts_reader_close(reader);
	if (complete)
		check(ts_verify(to->path, NULL, NULL, NULL, NULL) == 0,
		      "the recovered trace is incomplete");
}

static void run(const struct memory_file *file, const struct memory_file *other)
{
	struct ts_reader *reader;
	struct ts_error err = { 0 };
	bool complete, read_well;
	int findings = 0;

	if (ts_reader_open(&reader, file->path, &err)) {
		check(err.code && err.message[0], "an error without a message");
		check(ts_verify(file->path, NULL, NULL, NULL, NULL) != 0,
		      "valid, but does not open");
		ts_recover(file->path, other->path, NULL, NULL, NULL, NULL);
		return;
	}
	if (count_rows(reader) > MAX_ROWS) {
		ts_reader_close(reader);
		return;
	}
	read_well = read_chunks(reader) == 0;
	read_well = read_blobs(reader) == 0 && read_well;
	read_well = stream_tables(reader) == 0 && read_well;
	look_up_all(reader);
	export_all(reader);
	ts_reader_close(reader);

	complete = ts_verify(file->path, count_finding, NULL, &findings, &err) == 0;
	check(complete == (findings == 0), "verify does not say what is wrong");
	check(!complete || read_well, "verify accepts what cannot be read");
	check_recovered(file, other, complete);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memory_file file = { .fd = -1 }, other = { .fd = -1 };

	if (file.fd < 0) {
		memory_file_open(&file, "trace");
		memory_file_open(&other, "recovered");
	}
	memory_file_set(&file, data, size);
	memory_file_set(&other, data, 0);
	run(&file, &other);
	return 0;
}

/* ---- mutation ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static struct sbt_mutate mutate;

	sbt_mutate_init(&mutate, data, size, max_size, seed);
	return sbt_mutate_file(&mutate);
}

/* Copies a chunk of one file into the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
				 size_t other_size, uint8_t *out, size_t max_size,
				 unsigned int seed)
{
	static struct sbt_mutate mutate, donor;
	size_t from, at;

	if (size > max_size)
		size = max_size;
	memcpy(out, data, size);
	sbt_mutate_init(&mutate, out, size, max_size, seed);
	/* Read only: the caller's bytes are not modified. */
	sbt_mutate_init(&donor, (uint8_t *)(uintptr_t)other, other_size, other_size, seed);
	if (donor.chunk_count == 0)
		return size;
	sbt_mutate_drop_index(&mutate);
	from = sbt_mutate_random(&mutate, (uint32_t)donor.chunk_count);
	at = sbt_mutate_random(&mutate, (uint32_t)mutate.chunk_count + 1);
	sbt_mutate_insert(&mutate, at, other + donor.chunks[from].offset, donor.chunks[from].bytes);
	sbt_mutate_renumber(&mutate);
	sbt_mutate_add_index(&mutate);
	sbt_mutate_find_chunks(&mutate);
	sbt_mutate_stamp(&mutate);
	return mutate.size;
}
