/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow streams: schemas, cells of every type, ranges, limits, several traces, hostile values, the
 * order of releases. Larger traces, of random values that make the writer use every encoding, are
 * compared with what ts_batch_read() and ts_reader_entity() return.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/arrow.h>

#include "base/memory.h"
#include "base/ns.h"
#include "lib/arrow_check.h"
#include "trace/stack_lists.h"
#include "unit/export/export_support.h"

/* The smallest that the writer makes. */
#define CHUNK_ROWS 1024

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* ---- a consumer ---- */

#define MOST_BATCHES 256

struct table {
	struct ArrowSchema schema;
	struct ArrowArray batches[MOST_BATCHES];
	size_t batch_count;
	int64_t rows;
};

static void read_stream(struct ArrowArrayStream *stream, struct table *table)
{
	TS_CHECK_INT(stream->get_schema(stream, &table->schema), 0);
	for (;;) {
		struct ArrowArray *batch = &table->batches[table->batch_count];
		const char *fault;

		if (stream->get_next(stream, batch))
			ts_test_fail(__FILE__, __LINE__, "%s", stream->get_last_error(stream));
		if (!batch->release)
			break;
		fault = arrow_fault(&table->schema, batch);
		if (fault)
			ts_test_fail(__FILE__, __LINE__, "%s", fault);
		table->rows += batch->length;
		TS_CHECK(++table->batch_count < MOST_BATCHES);
	}
	/* The end stays the end. */
	TS_CHECK_INT(stream->get_next(stream, &table->batches[table->batch_count]), 0);
	TS_CHECK(!table->batches[table->batch_count].release);
}

static struct table read_readers(struct ts_reader *const *readers, size_t count, const char *name,
				 const struct ts_arrow_options *options)
{
	struct ArrowArrayStream stream;
	struct table table = { .rows = 0 };
	struct ts_error err;

	if (ts_arrow_stream(&stream, readers, count, name, options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	read_stream(&stream, &table);
	stream.release(&stream);
	TS_CHECK(!stream.release);
	return table;
}

#define READ(reader, name, ...)                                                           \
	read_readers(&(reader), 1, name,                                                  \
		     &(struct ts_arrow_options){ .size = sizeof(struct ts_arrow_options), \
						 __VA_ARGS__ })

static void table_release(struct table *table)
{
	for (size_t i = 0; i < table->batch_count; i++)
		table->batches[i].release(&table->batches[i]);
	table->schema.release(&table->schema);
}

static int64_t find_column(const struct table *table, const char *name)
{
	for (int64_t i = 0; i < table->schema.n_children; i++)
		if (!strcmp(table->schema.children[i]->name, name))
			return i;
	ts_test_fail(__FILE__, __LINE__, "no column '%s'", name);
}

static struct arrow_cell cell_of(const struct table *table, const char *name, int64_t row)
{
	int64_t column = find_column(table, name);

	for (size_t i = 0; i < table->batch_count; i++) {
		const struct ArrowArray *batch = &table->batches[i];

		if (row < batch->length)
			return arrow_cell(table->schema.children[column], batch->children[column],
					  row);
		row -= batch->length;
	}
	ts_test_fail(__FILE__, __LINE__, "no row %lld", (long long)row);
}

static bool is_text(const struct arrow_cell *cell, const char *text)
{
	return !cell->is_null && cell->length == strlen(text) &&
	       !memcmp(cell->text, text, cell->length);
}

/* "-": null. */
static void check_cell(int line, const struct table *table, const char *name, int64_t row,
		       const char *expected)
{
	struct arrow_cell cell = cell_of(table, name, row);
	char format = table->schema.children[find_column(table, name)]->format[0];
	bool is_text = strchr("uUZ", format) ||
		       table->schema.children[find_column(table, name)]->dictionary;
	char text[256];

	if (cell.is_null)
		snprintf(text, sizeof(text), "-");
	else if (is_text)
		snprintf(text, sizeof(text), "%.*s", (int)cell.length, cell.text);
	else
		snprintf(text, sizeof(text), "%lld", (long long)cell.integer);
	ts_test_check_str(__FILE__, line, name, text, expected);
}

#define CHECK_CELL(table, name, row, expected) check_cell(__LINE__, &(table), name, row, expected)

/* ---- schemas ---- */

static void append_schema(struct ts_text *out, const struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++) {
		const struct ArrowSchema *child = schema->children[i];

		ts_text_printf(out, "%s:%s%s%s ", child->name, child->format,
			       child->dictionary ? child->dictionary->format : "",
			       child->flags & ARROW_FLAG_NULLABLE ? "?" : "");
	}
}

static void check_schema(int line, const char *table, size_t readers,
			 const struct ts_arrow_options *options, const char *expected)
{
	TS_SCOPED(ts_text) text = { 0 };
	struct ArrowSchema schema;
	struct ts_error err = { 0 };

	if (ts_arrow_schema(&schema, readers, table, options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_STR(schema.format, "+s");
	append_schema(&text, &schema);
	schema.release(&schema);
	TS_CHECK(!schema.release);
	ts_test_check_str(__FILE__, line, table, ts_text_cstr(&text), expected);
}

TS_TEST(schemas)
{
	struct ts_arrow_options options = { .size = sizeof(options) };

	check_schema(__LINE__, "mark", 1, NULL,
		     "start:l thread:l? thread_pid:l? thread_tid:l? thread_name:iu? name:iu? "
		     "category:iu? scope:cu? phase:iu? id:U? stack:l? stack_function:iu? ");
	options.flags = TS_ARROW_PLAIN_STRINGS | TS_ARROW_ALL_COLUMNS;
	check_schema(__LINE__, "mark", 3, &options,
		     "trace:l start:l thread:l? thread_pid:l? thread_tid:l? thread_name:U? name:U? "
		     "category:U? scope:cu? phase:U? id:U? stack:l? stack_function:U? args:U? "
		     "beside:U? ");
	check_schema(__LINE__, "counter", 1, NULL,
		     "start:l thread:l? thread_pid:l? thread_tid:l? thread_name:iu? device:l? "
		     "device_number:l? device_name:iu? name:iu? category:iu? id:U? process:l? "
		     "process_pid:l? process_name:iu? args:U? ");
	check_schema(__LINE__, "string", 1, NULL, "id:l text:U ");
	check_schema(__LINE__, "blob", 1, NULL, "id:l hash:l bytes:l previous:l? ");
	check_schema(__LINE__, "stack", 1, NULL,
		     "id:l parent:l? parent_function:iu? frame:l? frame_function:iu? ");
}

TS_TEST(columns_of_every_table)
{
	for (uint32_t table = 0; table < TS_TABLE_COUNT; table++) {
		const struct ts_table_info *info = ts_table_info(table);
		struct ts_arrow_column columns[128];
		size_t count = 0;

		if (!info || info->kind == TS_KIND_INTERNAL)
			continue;
		TS_CHECK_INT(ts_arrow_columns(info->name, columns, 128, &count, NULL), 0);
		TS_CHECK(count >= info->column_count && count < 128);
		for (size_t i = 0; i < count; i++)
			TS_CHECK(columns[i].name[0] && columns[i].doc && columns[i].doc[0]);
	}
}

static void check_refused(int line, const char *table, const char *column, int code,
			  const char *message)
{
	struct ts_arrow_options options = { .size = sizeof(options),
					    .columns = &column,
					    .column_count = column ? 1 : 0 };
	struct ArrowArrayStream stream = { .release = NULL };
	struct fixture fixture;
	struct ts_error err = { 0 };
	struct ts_reader *reader;

	make_trace(&fixture, 0);
	reader = open_fixture(&fixture);
	options.columns = column ? &column : NULL;
	ts_test_check_int(__FILE__, line, table,
			  ts_arrow_stream(&stream, &reader, 1, table, &options, &err), code);
	TS_CHECK(!stream.release);
	err.message[TS_MIN(strlen(message), sizeof(err.message) - 1)] = '\0';
	ts_test_check_str(__FILE__, line, table, err.message, message);
	ts_reader_close(reader);
}

TS_TEST(unknown_names_are_refused)
{
	check_refused(__LINE__, "kernel", NULL, TS_ENOTFOUND, "unknown table 'kernel'");
	check_refused(__LINE__, "shape", NULL, TS_EINVAL,
		      "table 'shape' describes the file itself");
	check_refused(__LINE__, "flow", "color", TS_ENOTFOUND,
		      "table 'flow' has no column 'color'; it has start, thread, ");
}

/* ---- cells ---- */

static void add_device(struct fixture *fixture)
{
	struct ts_device_row device = ts_device_none;
	struct ts_stream_row stream = ts_stream_none;

	device.id = ts_writer_new_id(fixture->writer, TS_TABLE_DEVICE);
	device.number = 3;
	device.name = text_id(fixture, "H200");
	ts_writer_add(fixture->writer, TS_TABLE_DEVICE, &device, NULL);
	for (int i = 0; i < 4; i++) {
		stream.id = ts_writer_new_id(fixture->writer, TS_TABLE_STREAM);
		stream.device = device.id;
		stream.number = i == 3 ? TS_ABSENT : 7 * i;
		ts_writer_add(fixture->writer, TS_TABLE_STREAM, &stream, NULL);
	}
}

TS_TEST(cells)
{
	struct ts_gpu_op_row op = ts_gpu_op_none;
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;

	make_trace(&fixture, 0);
	add_device(&fixture);
	op.start = 1000;
	op.duration = 50;
	op.device = 1;
	op.stream = 2;
	op.kind = TS_GPU_OP_COPY;
	op.name = text_id(&fixture, "Memcpy HtoD");
	op.copy_kind = TS_COPY_HOST_TO_DEVICE;
	op.bytes = 4096;
	ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, &op, NULL);
	op = ts_gpu_op_none;
	op.start = 2000;
	op.duration = -1;
	op.stream = 4;
	op.kind = 77;
	op.name = text_id(&fixture, "k\xff");
	ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, &op, NULL);
	op.start = 3000;
	op.stream = 99;
	op.kind = 1000;
	op.name = 123456;
	ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, &op, NULL);
	reader = open_fixture(&fixture);
	table = READ(reader, "gpu_op");
	ts_reader_close(reader);
	TS_CHECK_INT(table.rows, 3);
	CHECK_CELL(table, "start", 0, "1000");
	CHECK_CELL(table, "duration", 0, "50");
	CHECK_CELL(table, "device_number", 0, "3");
	CHECK_CELL(table, "device_name", 0, "H200");
	CHECK_CELL(table, "stream", 0, "2");
	CHECK_CELL(table, "stream_number", 0, "7");
	CHECK_CELL(table, "kind", 0, "copy");
	CHECK_CELL(table, "copy_kind", 0, "host_to_device");
	CHECK_CELL(table, "name", 0, "Memcpy HtoD");
	CHECK_CELL(table, "bytes", 0, "4096");
	CHECK_CELL(table, "category", 0, "-");
	CHECK_CELL(table, "queued", 0, "-");
	CHECK_CELL(table, "duration", 1, "-");
	CHECK_CELL(table, "device", 1, "-");
	CHECK_CELL(table, "device_name", 1, "-");
	CHECK_CELL(table, "stream_number", 1, "-");
	CHECK_CELL(table, "kind", 1, "77");
	CHECK_CELL(table, "name", 1, "k\xef\xbf\xbd");
	CHECK_CELL(table, "bytes", 1, "-");
	CHECK_CELL(table, "stream", 2, "99");
	CHECK_CELL(table, "stream_number", 2, "-");
	CHECK_CELL(table, "kind", 2, "-");
	CHECK_CELL(table, "name", 2, "(lost)");
	table_release(&table);
}

TS_TEST(projection_in_the_given_order)
{
	const char *const columns[] = { "name", "start", "name", "kind" };
	struct ts_slice_row slice = ts_slice_none;
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;
	uint64_t before;

	make_trace(&fixture, 0);
	slice.start = 5;
	slice.kind = TS_SLICE_ASYNC;
	slice.name = text_id(&fixture, "load");
	for (int i = 0; i < 20000; i++) {
		slice.id = (int64_t)(next_random() >> 1);
		ts_writer_add(fixture.writer, TS_TABLE_SLICE, &slice, NULL);
	}
	reader = open_fixture(&fixture);
	before = ts_reader_bytes_read(reader);
	table = READ(reader, "slice", .columns = columns, .column_count = 4);
	/* The ids alone are larger. */
	TS_CHECK(ts_reader_bytes_read(reader) - before < 20000);
	TS_CHECK_INT(table.schema.n_children, 4);
	TS_CHECK_STR(table.schema.children[0]->name, "name");
	TS_CHECK_STR(table.schema.children[1]->name, "start");
	TS_CHECK_STR(table.schema.children[2]->name, "name");
	CHECK_CELL(table, "name", 0, "load");
	CHECK_CELL(table, "kind", 0, "async");
	table_release(&table);
	table = READ(reader, "slice", .columns = columns, .column_count = 0);
	TS_CHECK_INT(table.schema.n_children, 0);
	TS_CHECK_INT(table.rows, 20000);
	table_release(&table);
	ts_reader_close(reader);
}

TS_TEST(arguments)
{
	const char *const columns[] = { "args", "beside", "start" };
	struct ts_gpu_op_row op = ts_gpu_op_none;
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;
	struct ts_field fields[4];
	int64_t values[3];

	make_trace(&fixture, 0);
	fields[0] =
		(struct ts_field){ .key = (uint32_t)text_id(&fixture, "n"), .type = TS_ARG_INT };
	fields[1] = (struct ts_field){ .key = (uint32_t)text_id(&fixture, "bytes"),
				       .type = TS_ARG_COLUMN,
				       .column = 20 };
	fields[2] = (struct ts_field){ .key = (uint32_t)text_id(&fixture, "who"),
				       .type = TS_ARG_STRING };
	fields[3] = (struct ts_field){ .key = (uint32_t)text_id(&fixture, "cname"),
				       .type = TS_ARG_STRING,
				       .beside = 1 };
	op.shape = ts_writer_shape(fixture.writer, fields, 4);
	for (int i = 0; i < 3; i++) {
		op.start = 10 * i;
		op.bytes = 100 + i;
		values[0] = i;
		values[1] = text_id(&fixture, "a\"b");
		values[2] = text_id(&fixture, "good");
		op.shape = i == 1 ? 0 : op.shape ? op.shape : 1;
		ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, &op, values);
	}
	reader = open_fixture(&fixture);
	table = READ(reader, "gpu_op", .columns = columns, .column_count = 3);
	CHECK_CELL(table, "args", 0, "{\"n\":0,\"bytes\":100,\"who\":\"a\\\"b\"}");
	CHECK_CELL(table, "beside", 0, "{\"cname\":\"good\"}");
	CHECK_CELL(table, "args", 1, "-");
	CHECK_CELL(table, "args", 2, "{\"n\":2,\"bytes\":102,\"who\":\"a\\\"b\"}");
	table_release(&table);
	/* Those of the rows that are left. */
	table = READ(reader, "gpu_op", .columns = columns, .column_count = 3, .from = 15, .to = 25);
	TS_CHECK_INT(table.rows, 1);
	CHECK_CELL(table, "args", 0, "{\"n\":2,\"bytes\":102,\"who\":\"a\\\"b\"}");
	table_release(&table);
	ts_reader_close(reader);
}

TS_TEST(entities_and_dictionaries)
{
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;
	int64_t process;
	struct ts_thread_row thread = ts_thread_none;
	static const char blob[] = "\0\1\2\xff";
	const char *const columns[] = { "id", "data" };

	make_trace(&fixture, 0);
	process = make_process(&fixture, 4242, "train", TS_ABSENT);
	thread.id = ts_writer_new_id(fixture.writer, TS_TABLE_THREAD);
	thread.process = process;
	thread.tid = 1;
	ts_writer_add(fixture.writer, TS_TABLE_THREAD, &thread, NULL);
	thread.name = text_id(&fixture, "main");
	ts_writer_add(fixture.writer, TS_TABLE_THREAD, &thread, NULL);
	ts_writer_blob(fixture.writer, blob, sizeof(blob));
	reader = open_fixture(&fixture);

	/* Its newest row. */
	table = READ(reader, "thread");
	TS_CHECK_INT(table.rows, 1);
	CHECK_CELL(table, "id", 0, "1");
	CHECK_CELL(table, "process_pid", 0, "4242");
	CHECK_CELL(table, "process_name", 0, "train");
	CHECK_CELL(table, "name", 0, "main");
	table_release(&table);
	table = READ(reader, "string");
	TS_CHECK_INT(table.rows, 2);
	CHECK_CELL(table, "id", 1, "2");
	CHECK_CELL(table, "text", 1, "main");
	table_release(&table);
	table = READ(reader, "blob", .columns = columns, .column_count = 2);
	TS_CHECK_INT(cell_of(&table, "data", 0).length, sizeof(blob));
	TS_CHECK_MEM(cell_of(&table, "data", 0).text, blob, sizeof(blob));
	table_release(&table);
	ts_reader_close(reader);
}

/* ---- many rows ---- */

/* Values of a kind that the writer encodes in its own way. */
static int64_t value_of_kind(int kind, int64_t row, int64_t none)
{
	static int64_t walk;

	switch (kind) {
	case 0:
		return none;
	case 1:
		return 42;
	case 2:
		return 1 + (int64_t)(next_random() % 3);
	case 3:
		return next_random() % 5 ? 1 + (int64_t)(next_random() % 200) : none;
	case 4:
		return 1 + (int64_t)(next_random() % 5000);
	case 5:
		return row * 3;
	case 6:
		return (int64_t)next_random();
	case 7:
		return walk += (int64_t)(next_random() % 4096);
	default:
		return next_random() % 7 ? (int64_t)(next_random() % 10) << 40 : none;
	}
}

#define KINDS 9

static int64_t legal(const struct ts_column_info *column, int64_t value)
{
	switch (column->type) {
	case TS_COLUMN_DURATION:
		return value < 0 ? -1 : value >> 2;
	case TS_COLUMN_TIME:
		return value;
	case TS_COLUMN_ENUM:
		return value & 7;
	case TS_COLUMN_STRING:
	case TS_COLUMN_JSON:
		return value == 0 ? 0 : 1 + (int64_t)((uint64_t)value % 300);
	case TS_COLUMN_BOOL:
		return value == TS_ABSENT ? value : value & 1;
	default:
		return value;
	}
}

static void add_texts(struct fixture *fixture)
{
	char text[32];

	for (int i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), i % 10 ? "\"text %d\"" : "{\"n\":%d}", i);
		text_id(fixture, text);
	}
}

static void add_random_rows(struct fixture *fixture, const struct ts_table_info *table, int count,
			    int first_kind)
{
	int64_t start = 1000;

	for (int i = 0; i < count; i++) {
		int64_t row[TS_MAX_COLUMNS];

		for (int k = 0; k < table->column_count; k++) {
			const struct ts_column_info *column = &table->columns[k];
			int kind = (first_kind + k) % KINDS;

			row[k] = legal(column, value_of_kind(kind, i, column->none));
			if (column->type == TS_COLUMN_SHAPE)
				row[k] = 0;
		}
		start += (int64_t)(next_random() % 300);
		row[table->start] = start;
		if (table->duration >= 0)
			row[table->duration] = next_random() % 50
						       ? (int64_t)(next_random() % 5000)
						       : (int64_t)(next_random() % 5000000);
		ts_writer_add(fixture->writer, (enum ts_table_id)table->id, row, NULL);
	}
}

/* The cell that a value of a column must be. */
static void compare_cell(struct ts_reader *reader, const struct ts_column_info *column,
			 const struct arrow_cell *cell, int64_t value, bool is_start)
{
	struct ts_string text;
	const char *name;

	switch (column->type) {
	case TS_COLUMN_STRING:
		text = ts_reader_string(reader, value);
		TS_CHECK_INT(cell->is_null, value == 0);
		TS_CHECK(cell->is_null || cell->length == text.length);
		if (!cell->is_null)
			TS_CHECK_MEM(cell->text, text.data, text.length);
		break;
	case TS_COLUMN_JSON:
		TS_CHECK_INT(cell->is_null, value == 0);
		break;
	case TS_COLUMN_ENUM:
		name = ts_enum_name(column->refers, value);
		TS_CHECK(!cell->is_null);
		TS_CHECK(!name || is_text(cell, name));
		break;
	case TS_COLUMN_REF:
	case TS_COLUMN_FLOAT:
		TS_CHECK_INT(cell->is_null, value == 0);
		TS_CHECK(cell->is_null || cell->integer == value);
		break;
	case TS_COLUMN_DURATION:
		TS_CHECK_INT(cell->is_null, value == -1);
		TS_CHECK(cell->is_null || cell->integer == value);
		break;
	default:
		TS_CHECK_INT(cell->is_null,
			     value == TS_ABSENT && column->none == TS_ABSENT && !is_start);
		TS_CHECK(cell->is_null || cell->integer == value);
	}
}

static void compare_chunk(struct ts_reader *reader, const struct table *table,
			  const struct ts_batch *batch, int64_t first, int64_t from, int64_t to,
			  int64_t *ret_rows)
{
	const struct ts_table_info *info = batch->table;
	int64_t count = 0;

	for (uint32_t row = 0; row < batch->rows; row++) {
		int64_t values[TS_MAX_COLUMNS], end;

		ts_batch_row(batch, row, values);
		end = info->duration >= 0 ? ts_ns_add(values[info->start], values[info->duration])
					  : values[info->start];
		if (values[info->start] > to || end < from)
			continue;
		for (int i = 0; i < info->column_count; i++) {
			struct arrow_cell cell;

			if (info->columns[i].type == TS_COLUMN_SHAPE)
				continue;
			cell = cell_of(table, info->columns[i].name, first + count);
			compare_cell(reader, &info->columns[i], &cell, values[i], i == info->start);
		}
		count++;
	}
	*ret_rows = count;
}

static void compare_table(struct ts_reader *reader, const char *name, int threads, int64_t from,
			  int64_t to)
{
	struct table table = READ(reader, name, .threads = threads, .from = from, .to = to);
	struct ts_batch *batch;
	int64_t first = 0;

	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		int64_t rows;

		if (ts_reader_chunk(reader, i)->table != (unsigned int)ts_table_by_name(name))
			continue;
		TS_CHECK_INT(ts_batch_read(batch, i, TS_MASK_ALL, NULL), 0);
		compare_chunk(reader, &table, batch, first, from || to ? from : INT64_MIN,
			      from || to ? to : INT64_MAX, &rows);
		first += rows;
	}
	TS_CHECK_INT(table.rows, first);
	ts_batch_free(batch);
	table_release(&table);
}

TS_TEST(many_rows_equal_batches)
{
	static const char *const names[] = { "gpu_op", "slice", "tensor", "flow", "torch_trace" };

	for (int kind = 0; kind < KINDS; kind++) {
		const char *name = names[kind % 5];
		struct fixture fixture;
		struct ts_reader *reader;
		const struct ts_chunk *last;

		make_trace(&fixture, CHUNK_ROWS);
		add_device(&fixture);
		add_texts(&fixture);
		add_random_rows(&fixture, ts_table_info((uint32_t)ts_table_by_name(name)), 5000,
				kind);
		reader = open_fixture(&fixture);
		last = ts_reader_chunk(reader, ts_reader_chunk_count(reader) - 1);
		compare_table(reader, name, 2, 0, 0);
		compare_table(reader, name, -1, 100000, 300000);
		compare_table(reader, name, 3, 250000, INT64_MAX);
		compare_table(reader, name, 1, last->max_end, last->max_end);
		ts_reader_close(reader);
	}
}

/* References to rows that are there, in chunks that store them as dictionaries and as words. */
TS_TEST(references_equal_entities)
{
	const struct ts_table_info *info = ts_table_info(TS_TABLE_GPU_OP);
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;

	make_trace(&fixture, CHUNK_ROWS);
	add_device(&fixture);
	for (int i = 0; i < 5000; i++) {
		int64_t row[TS_MAX_COLUMNS];

		memcpy(row, &ts_gpu_op_none, sizeof(ts_gpu_op_none));
		row[info->start] = i;
		row[TS_COLUMN_OF(gpu_op, stream)] = (int64_t)(next_random() % 6);
		ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, row, NULL);
	}
	reader = open_fixture(&fixture);
	table = READ(reader, "gpu_op");
	for (int64_t i = 0; i < table.rows; i++) {
		struct arrow_cell id = cell_of(&table, "stream", i);
		struct arrow_cell number = cell_of(&table, "stream_number", i);
		const struct ts_stream_row *stream =
			ts_reader_entity(reader, TS_TABLE_STREAM, id.is_null ? 0 : id.integer);

		TS_CHECK_INT(number.is_null, !stream || stream->number == TS_ABSENT);
		TS_CHECK(number.is_null || number.integer == stream->number);
	}
	table_release(&table);
	ts_reader_close(reader);
}

TS_TEST(stack_functions)
{
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;
	struct ts_sample_row sample = ts_sample_none;
	struct ts_frame_row frame = ts_frame_none;
	uint32_t stacks[200];

	make_trace(&fixture, CHUNK_ROWS);
	for (int i = 0; i < 200; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%d", i % 150);
		frame.name = text_id(&fixture, name);
		frame.line = i;
		stacks[i] =
			ts_writer_stack(fixture.writer, 0, ts_writer_frame(fixture.writer, &frame));
	}
	for (int i = 0; i < 4000; i++) {
		sample.start = i;
		sample.stack = i % 9 ? stacks[next_random() % 200] : 0;
		ts_writer_add(fixture.writer, TS_TABLE_SAMPLE, &sample, NULL);
	}
	reader = open_fixture(&fixture);
	table = READ(reader, "sample");
	for (int64_t i = 0; i < table.rows; i++) {
		struct arrow_cell stack = cell_of(&table, "stack", i);
		struct arrow_cell function = cell_of(&table, "stack_function", i);
		struct ts_string expected =
			ts_stack_leaf_name(reader, stack.is_null ? 0 : stack.integer);

		TS_CHECK_INT(function.is_null, stack.is_null);
		TS_CHECK_INT(function.length, expected.length);
		TS_CHECK(function.is_null ||
			 !memcmp(function.text, expected.data, expected.length));
	}
	table_release(&table);
	ts_reader_close(reader);
}

/* More texts than a shared dictionary has: batches then have their own. */
TS_TEST(many_texts)
{
	struct ts_slice_row slice = ts_slice_none;
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;

	make_trace(&fixture, 20000);
	for (int i = 0; i < 100000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %d", i);
		slice.start = i;
		slice.name = i % 10 ? text_id(&fixture, name) : 0;
		slice.category = text_id(&fixture, i < 99000 ? "few" : name);
		ts_writer_add(fixture.writer, TS_TABLE_SLICE, &slice, NULL);
	}
	reader = open_fixture(&fixture);
	table = READ(reader, "slice", .threads = 2);
	TS_CHECK_INT(table.rows, 100000);
	TS_CHECK(table.batches[table.batch_count - 1]
			 .children[find_column(&table, "name")]
			 ->dictionary->length < 20000);
	for (int64_t i = 0; i < table.rows; i += 97) {
		char name[32];

		snprintf(name, sizeof(name), "name %d", (int)i);
		check_cell(__LINE__, &table, "name", i, i % 10 ? name : "-");
		check_cell(__LINE__, &table, "category", i, i < 99000 ? "few" : name);
	}
	table_release(&table);
	table = READ(reader, "slice", .threads = 2, .flags = TS_ARROW_SHARED_DICTIONARIES);
	TS_CHECK_INT(table.batches[table.batch_count - 1]
			     .children[find_column(&table, "name")]
			     ->dictionary->length,
		     90000);
	check_cell(__LINE__, &table, "name", 99999, "name 99999");
	table_release(&table);
	ts_reader_close(reader);
}

/* ---- limits, several traces ---- */

static struct ts_reader *numbered_marks(int count, const char *name)
{
	struct ts_mark_row mark = ts_mark_none;
	struct fixture fixture;

	make_trace(&fixture, CHUNK_ROWS);
	mark.name = text_id(&fixture, name);
	for (int i = 0; i < count; i++) {
		mark.start = i;
		ts_writer_add(fixture.writer, TS_TABLE_MARK, &mark, NULL);
	}
	return open_fixture(&fixture);
}

TS_TEST(limit)
{
	struct ts_reader *reader = numbered_marks(5000, "tick");

	for (uint64_t limit = 1; limit < 5600; limit += 341) {
		struct table table = READ(reader, "mark", .limit = limit, .threads = 2);

		TS_CHECK_INT(table.rows, TS_MIN(limit, 5000u));
		TS_CHECK_INT(cell_of(&table, "start", table.rows - 1).integer, table.rows - 1);
		table_release(&table);
	}
	ts_reader_close(reader);
}

TS_TEST(several_traces)
{
	struct ts_reader *readers[3] = { numbered_marks(2500, "a"), numbered_marks(0, "b"),
					 numbered_marks(1300, "c") };
	struct table table = read_readers(readers, 3, "mark", NULL);
	uint64_t rows;

	TS_CHECK_INT(ts_arrow_rows(readers, 3, "mark", &rows, NULL), 0);
	TS_CHECK_INT(rows, 3800);
	TS_CHECK_INT(table.rows, 3800);
	CHECK_CELL(table, "trace", 0, "0");
	CHECK_CELL(table, "name", 0, "a");
	CHECK_CELL(table, "trace", 2499, "0");
	CHECK_CELL(table, "trace", 2500, "2");
	CHECK_CELL(table, "name", 2500, "c");
	CHECK_CELL(table, "start", 3799, "1299");
	table_release(&table);
	table = read_readers(readers, 3, "state", NULL);
	TS_CHECK_INT(table.rows, 0);
	table_release(&table);
	TS_CHECK_INT(ts_arrow_rows(readers, 3, "state", &rows, NULL), TS_EINVAL);
	for (int i = 0; i < 3; i++)
		ts_reader_close(readers[i]);
}

/* ---- derived tables ---- */

TS_TEST(states_and_edges)
{
	struct ts_api_call_row call = ts_api_call_none;
	struct ts_gpu_op_row op = ts_gpu_op_none;
	struct ts_thread_row thread = ts_thread_none;
	struct ts_source_row source = ts_source_none;
	struct fixture fixture;
	struct ts_reader *reader;
	struct table table;
	bool runs = false;

	make_trace(&fixture, 0);
	source.id = ts_writer_new_id(fixture.writer, TS_TABLE_SOURCE);
	ts_writer_add(fixture.writer, TS_TABLE_SOURCE, &source, NULL);
	add_device(&fixture);
	thread.id = ts_writer_new_id(fixture.writer, TS_TABLE_THREAD);
	thread.process = make_process(&fixture, 1, "p", TS_ABSENT);
	thread.tid = 1;
	ts_writer_add(fixture.writer, TS_TABLE_THREAD, &thread, NULL);
	for (int i = 0; i < 3; i++) {
		call.start = 1000 + 100 * i;
		call.duration = 20;
		call.thread = 1;
		call.name = text_id(&fixture, "cudaLaunchKernel");
		call.correlation = op.correlation = i + 1;
		op.start = 1010 + 300 * i;
		op.duration = 300;
		op.device = 1;
		op.stream = 1;
		op.kind = TS_GPU_OP_KERNEL;
		op.name = text_id(&fixture, "gemm");
		ts_writer_add(fixture.writer, TS_TABLE_API_CALL, &call, NULL);
		ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, &op, NULL);
	}
	reader = open_fixture(&fixture);
	table = READ(reader, "state");
	for (int64_t i = 0; i < table.rows; i++) {
		struct arrow_cell correlation = cell_of(&table, "correlation", i);
		struct arrow_cell name = cell_of(&table, "state", i);

		TS_CHECK_INT(cell_of(&table, "device", i).integer, 1);
		if (!correlation.is_null && correlation.integer == 3 && is_text(&name, "running")) {
			TS_CHECK_INT(cell_of(&table, "start", i).integer, 1610);
			TS_CHECK_INT(cell_of(&table, "duration", i).integer, 300);
			runs = true;
		}
	}
	TS_CHECK(runs);
	table_release(&table);
	table = READ(reader, "state", .from = 1700, .to = 1800);
	TS_CHECK(table.rows);
	for (int64_t i = 0; i < table.rows; i++) {
		int64_t start = cell_of(&table, "start", i).integer;

		TS_CHECK(start <= 1800);
		TS_CHECK(start + cell_of(&table, "duration", i).integer >= 1700);
	}
	table_release(&table);
	table = READ(reader, "edge");
	runs = false;
	for (int64_t i = 0; i < table.rows; i++) {
		struct arrow_cell kind = cell_of(&table, "kind", i);

		runs |= is_text(&kind, "launch") &&
			cell_of(&table, "from_table", i).integer == TS_TABLE_API_CALL &&
			cell_of(&table, "to_table", i).integer == TS_TABLE_GPU_OP &&
			cell_of(&table, "to_row", i).integer == 2;
	}
	TS_CHECK(runs);
	table_release(&table);
	ts_reader_close(reader);
}

/* ---- memory ---- */

static void count_release(void *owner)
{
	++*(int *)owner;
}

TS_TEST(released_in_any_order)
{
	struct ts_reader *reader = numbered_marks(9000, "tick");
	struct ArrowArray batch, second, moved, dictionary;
	struct ArrowArrayStream stream;
	struct ArrowSchema schema, name;
	int released = 0;
	struct ts_arrow_options options = { .size = sizeof(options),
					    .threads = 2,
					    .release_owner = count_release,
					    .owner = &released };

	TS_CHECK_INT(ts_arrow_stream(&stream, &reader, 1, "mark", &options, NULL), 0);
	TS_CHECK_INT(stream.get_schema(&stream, &schema), 0);
	TS_CHECK_INT(stream.get_next(&stream, &batch), 0);
	TS_CHECK_INT(stream.get_next(&stream, &second), 0);
	TS_CHECK_INT(released, 0);
	/* In the middle of it: threads still convert. */
	stream.release(&stream);
	TS_CHECK_INT(released, 1);
	ts_reader_close(reader);
	for (int64_t i = 0; i < schema.n_children; i++) {
		if (strcmp(schema.children[i]->name, "name"))
			continue;
		name = *schema.children[i];
		schema.children[i]->release = NULL;
		/* A column that outlives its batch, and the one after it. */
		moved = *batch.children[i];
		batch.children[i]->release = NULL;
	}
	schema.release(&schema);
	batch.release(&batch);
	second.release(&second);
	TS_CHECK_INT(moved.length, CHUNK_ROWS);
	TS_CHECK_MEM(arrow_cell(&name, &moved, 99).text, "tick", 4);
	dictionary = *moved.dictionary;
	moved.dictionary->release = NULL;
	moved.release(&moved);
	TS_CHECK_MEM(arrow_cell(name.dictionary, &dictionary, 0).text, "tick", 4);
	dictionary.release(&dictionary);
	name.release(&name);
}

static void *consume(void *context)
{
	struct ArrowArrayStream *stream = context;
	struct table table = { .rows = 0 };

	read_stream(stream, &table);
	stream->release(stream);
	TS_CHECK_INT(table.rows, 9000);
	table_release(&table);
	return NULL;
}

TS_TEST(another_thread_reads)
{
	struct ts_reader *reader = numbered_marks(9000, "tick");
	struct ArrowArrayStream streams[3];
	pthread_t threads[3];

	for (int i = 0; i < 3; i++) {
		TS_CHECK_INT(ts_arrow_stream(&streams[i], &reader, 1, "mark", NULL, NULL), 0);
		TS_CHECK_INT(pthread_create(&threads[i], NULL, consume, &streams[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ts_reader_close(reader);
}

/* Large enough for segments that outlive their stream. */
TS_TEST(memory_of_an_earlier_stream)
{
	struct ts_reader *readers[2] = { numbered_marks(250000, "a"), numbered_marks(250000, "b") };

	for (int i = 0; i < 4; i++) {
		struct table table = READ(readers[i % 2], "mark");

		TS_CHECK_INT(table.rows, 250000);
		CHECK_CELL(table, "start", 0, "0");
		CHECK_CELL(table, "start", 249999, "249999");
		CHECK_CELL(table, "name", 249999, i % 2 ? "b" : "a");
		CHECK_CELL(table, "thread", 249999, "-");
		table_release(&table);
	}
	for (int i = 0; i < 2; i++)
		ts_reader_close(readers[i]);
}

TS_TEST(unread_stream)
{
	struct ts_reader *reader = numbered_marks(10, "tick");
	struct ArrowArrayStream stream;

	TS_CHECK_INT(ts_arrow_stream(&stream, &reader, 1, "mark", NULL, NULL), 0);
	TS_CHECK(!stream.get_last_error(&stream));
	stream.release(&stream);
	ts_reader_close(reader);
}

/* A child has none of the threads: it must not wait for them. */
TS_TEST(forked_child)
{
	struct ts_reader *reader = numbered_marks(9000, "tick");
	struct ts_arrow_options options = { .size = sizeof(options), .threads = 2 };
	struct ArrowArrayStream stream;
	struct ArrowArray batch;
	int status = -1;
	pid_t child;

	TS_CHECK_INT(ts_arrow_stream(&stream, &reader, 1, "mark", &options, NULL), 0);
	TS_CHECK_INT(stream.get_next(&stream, &batch), 0);
	child = fork();
	if (!child) {
		int result = stream.get_next(&stream, &batch);
		const char *message = stream.get_last_error(&stream);

		stream.release(&stream);
		_exit(result == EINVAL && message && strstr(message, "fork") ? 0 : 1);
	}
	TS_CHECK(child > 0 && waitpid(child, &status, 0) == child);
	TS_CHECK_INT(status, 0);
	batch.release(&batch);
	TS_CHECK_INT(stream.get_next(&stream, &batch), 0);
	batch.release(&batch);
	stream.release(&stream);
	ts_reader_close(reader);
}

/* ---- damage ---- */

TS_TEST(damage_is_an_error)
{
	struct ts_mark_row mark = ts_mark_none;
	struct ArrowArrayStream stream;
	struct ArrowArray batch;
	struct fixture fixture;
	struct ts_reader *reader;
	struct ts_error err;
	int result = 0, given = 0;
	FILE *file;

	make_trace(&fixture, CHUNK_ROWS);
	for (int i = 0; i < 10000; i++) {
		mark.start = (int64_t)(next_random() % 100000);
		ts_writer_add(fixture.writer, TS_TABLE_MARK, &mark, NULL);
	}
	ts_writer_finish(fixture.writer, &err);
	ts_writer_close(fixture.writer);
	TS_CHECK_INT(ts_reader_open(&reader, fixture.path, &err), 0);
	file = fopen(fixture.path, "r+b");
	TS_CHECK(file != NULL);
	fseek(file,
	      (long)(ts_reader_chunk(reader, 5)->offset + ts_reader_chunk(reader, 5)->bytes - 3),
	      SEEK_SET);
	fwrite("xyz", 1, 3, file);
	fclose(file);
	unlink(fixture.path);
	TS_CHECK_INT(
		ts_arrow_stream(&stream, &reader, 1, "mark",
				&(struct ts_arrow_options){ .size = sizeof(struct ts_arrow_options),
							    .threads = 2 },
				NULL),
		0);
	while (!(result = stream.get_next(&stream, &batch)) && batch.release) {
		batch.release(&batch);
		given++;
	}
	TS_CHECK(result != 0);
	TS_CHECK(given >= 4 && given < 10);
	TS_CHECK(strstr(stream.get_last_error(&stream), "checksum differs"));
	/* It stays. */
	TS_CHECK_INT(stream.get_next(&stream, &batch), result);
	stream.release(&stream);
	ts_reader_close(reader);
}
