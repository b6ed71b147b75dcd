/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto protobuf: tracks of spans, ends, arrows, stages, stacks; and importing an export gives
 * the same trace, with a value in every column of every table.
 */
#include <tracesmith/export.h>

#include "base/memory.h"
#include "base/proto.h"
#include "export/perfetto/perfetto_export.h"
#include "unit/import/import_support.h"

static void note_left_out(void *context, const char *table, uint64_t rows, const char *reason)
{
	ts_test_fail(__FILE__, __LINE__, "%llu rows of %s left out: %s", (unsigned long long)rows,
		     table, reason);
}

/* The bytes of an export; the caller releases them. */
static void export_trace(struct ts_reader *reader, unsigned int flags, struct ts_text *out)
{
	struct ts_export_options options = { .size = sizeof(options),
					     .flags = flags,
					     .left_out = note_left_out };
	struct ts_error err;
	FILE *file = tmpfile();
	char piece[4096];
	size_t bytes;

	TS_CHECK(file != NULL);
	if (ts_exporter_find("perfetto")->run(reader, fileno(file), &options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	rewind(file);
	ts_text_init(out);
	while ((bytes = fread(piece, 1, sizeof(piece), file)) > 0)
		ts_text_append(out, piece, bytes);
	fclose(file);
}

/* ---- events as lines: "begin 3 at 5", with tracks in file order ---- */

struct lines {
	struct ts_text text;
	unsigned int stages, samples, snapshots, stacks;
};

static uint64_t number_in(struct ts_proto_reader message, uint32_t number)
{
	struct ts_proto_field field;
	uint64_t value = 0;

	while (ts_proto_next(&message, &field))
		if (field.number == number)
			value = field.value;
	TS_CHECK(!message.failed);
	return value;
}

static void note_event(struct lines *lines, uint64_t time, struct ts_proto_reader event)
{
	static const char *const types[] = { "?", "begin", "end", "instant", "counter" };
	struct ts_proto_field field;
	uint64_t type = number_in(event, 9), track = number_in(event, 11);

	ts_text_printf(&lines->text, "%s %llu at %llu", types[type], (unsigned long long)track,
		       (unsigned long long)time);
	lines->stacks += number_in(event, 56) != 0;
	while (ts_proto_next(&event, &field))
		if (field.number == 47 || field.number == 48)
			ts_text_append_str(&lines->text, field.number == 47 ? " arrow" : " last");
	ts_text_append_char(&lines->text, '\n');
}

static void note_packet(struct lines *lines, struct ts_proto_reader packet)
{
	uint64_t time = number_in(packet, TS_PF_TIMESTAMP);
	struct ts_proto_field field;

	while (ts_proto_next(&packet, &field)) {
		if (field.number == TS_PF_TRACK_EVENT)
			note_event(lines, time, ts_proto_message(&field));
		lines->stages += field.number == TS_PF_GPU_STAGE;
		lines->samples += field.number == TS_PF_PERF_SAMPLE;
		lines->snapshots += field.number == TS_PF_CLOCK_SNAPSHOT;
	}
	TS_CHECK(!packet.failed);
}

static void read_lines(struct lines *lines, const struct ts_text *bytes)
{
	struct ts_proto_reader trace = ts_proto_reader(bytes->data, bytes->length);
	struct ts_proto_field field;

	memset(lines, 0, sizeof(*lines));
	while (ts_proto_next(&trace, &field)) {
		TS_CHECK_INT(field.number, 1);
		note_packet(lines, ts_proto_message(&field));
	}
	TS_CHECK(!trace.failed);
}

/* Exports Chrome JSON: its events. */
static void check_events(const char *file, int line, const char *json, const char *expected)
{
	struct imported imported;
	struct ts_text bytes;
	struct lines lines;

	import_bytes(&imported, json, strlen(json), false);
	if (imported.rc)
		ts_test_fail(file, line, "%s", imported.err.message);
	export_trace(imported.reader, 0, &bytes);
	read_lines(&lines, &bytes);
	ts_test_check_str(file, line, "events", ts_text_cstr(&lines.text), expected);
	ts_text_release(&lines.text);
	ts_text_release(&bytes);
	release_imported(&imported);
}
#define CHECK_EVENTS(json, expected) check_events(__FILE__, __LINE__, json, expected)

#define SPAN(ts, dur) "{'ph':'X','name':'n','pid':1,'tid':2,'ts':" #ts ",'dur':" #dur "}"

/* Track 1 is the process, 2 the thread. Time 0 is one ns before the first row. */
TS_TEST(nested_spans_share_a_track)
{
	CHECK_EVENTS("[" SPAN(0, 10) "," SPAN(2, 3) "," SPAN(5, 5) "," SPAN(10, 1) "]",
		     "begin 2 at 1\nend 2 at 10001\nbegin 2 at 2001\nend 2 at 5001\n"
		     "begin 2 at 5001\nend 2 at 10001\nbegin 2 at 10001\nend 2 at 11001\n");
}

TS_TEST(of_those_that_begin_at_once_the_longest_comes_first)
{
	CHECK_EVENTS("[" SPAN(0, 0) "," SPAN(0, 1) "," SPAN(0, 9) "]",
		     "begin 2 at 1\nend 2 at 9001\nbegin 2 at 1\nend 2 at 1001\n"
		     "begin 2 at 1\nend 2 at 1\n");
}

TS_TEST(spans_that_do_not_nest_have_lanes)
{
	CHECK_EVENTS("[" SPAN(0, 10) "," SPAN(5, 10) "," SPAN(7, 9) "," SPAN(20, 1) "]",
		     "begin 2 at 1\nend 2 at 10001\nbegin 3 at 5001\nend 3 at 15001\n"
		     "begin 4 at 7001\nend 4 at 16001\nbegin 2 at 20001\nend 2 at 21001\n");
}

TS_TEST(a_span_that_did_not_end_has_no_end)
{
	CHECK_EVENTS("[{'ph':'B','name':'n','pid':1,'tid':2,'ts':1}," SPAN(3, 1) "]",
		     "begin 2 at 1\nbegin 2 at 2001\nend 2 at 3001\n");
}

TS_TEST(async_spans_never_stand_inside_each_other)
{
	CHECK_EVENTS("[{'ph':'b','cat':'c','id':1,'name':'n','pid':1,'tid':2,'ts':0},"
		     "{'ph':'b','cat':'c','id':2,'name':'n','pid':1,'tid':2,'ts':1},"
		     "{'ph':'e','cat':'c','id':2,'name':'n','pid':1,'tid':2,'ts':2},"
		     "{'ph':'e','cat':'c','id':1,'name':'n','pid':1,'tid':2,'ts':9}]",
		     "begin 3 at 1\nend 3 at 9001\nbegin 4 at 1001\nend 4 at 2001\n");
}

#define FLOW(ph, ts, rest) \
	"{'ph':'" ph "','cat':'c','name':'f','id':5,'pid':1,'tid':2,'ts':" #ts rest "}"

/*
 * With the span that begins there; otherwise as an instant. The end of an arrow waits for the next
 * span.
 */
TS_TEST(points_of_arrows)
{
	CHECK_EVENTS("[" SPAN(0, 10) "," FLOW("s", 0, "") "," FLOW("t", 4, ",'bp':'e'") "," FLOW(
			     "f", 11, "") "," SPAN(20, 1) "]",
		     "begin 2 at 1 arrow\nend 2 at 10001\ninstant 2 at 4001 arrow\n"
		     "begin 2 at 20001 last\nend 2 at 21001\n");
}

#define KINETO                                                                            \
	"{'schemaVersion':1,'baseTimeNanoseconds':1700000000000000000,'traceEvents':["    \
	"{'ph':'X','cat':'cuda_runtime','name':'launch','pid':1,'tid':2,'ts':1,'dur':2,"  \
	"'args':{'correlation':9}},"                                                      \
	"{'ph':'s','id':9,'pid':1,'tid':2,'ts':1,'cat':'ac2g','name':'ac2g'},"            \
	"{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':5,'dur':2,"             \
	"'args':{'correlation':9,'device':0,'stream':7,'grid':[1,2,3],'block':[4,5,6]}}," \
	"{'ph':'f','id':9,'pid':0,'tid':7,'ts':5,'cat':'ac2g','name':'ac2g','bp':'e'}]}"

TS_TEST(devices)
{
	for (int with_stages = 0; with_stages < 2; with_stages++) {
		struct imported imported;
		struct ts_text bytes;
		struct lines lines;

		import_bytes(&imported, KINETO, strlen(KINETO), false);
		TS_CHECK_INT(imported.rc, 0);
		export_trace(imported.reader, with_stages ? 0 : TS_EXPORT_NO_GPU_STAGES, &bytes);
		read_lines(&lines, &bytes);
		TS_CHECK_STR(ts_text_cstr(&lines.text), "begin 3 at 1 arrow\nend 3 at 2001\n"
							"begin 4 at 4001 arrow\nend 4 at 6001\n");
		TS_CHECK_INT(lines.stages, with_stages);
		TS_CHECK_INT(lines.snapshots, 1);
		ts_text_release(&lines.text);
		ts_text_release(&bytes);
		release_imported(&imported);
	}
}

/* ---- round trip ---- */

/* A different value in every column, and arguments of every type. */
static int64_t value_for(struct ts_writer *writer, const struct ts_table_info *table, int column,
			 int64_t number)
{
	char text[64];
	double real = (double)number + 0.25;
	int64_t bits;

	switch (table->columns[column].type) {
	case TS_COLUMN_STRING:
	case TS_COLUMN_JSON:
		snprintf(text, sizeof(text), "\"%s %s %lld\"", table->name,
			 table->columns[column].name, (long long)number);
		return ts_writer_string(writer, text, strlen(text));
	case TS_COLUMN_FLOAT:
		memcpy(&bits, &real, sizeof(bits));
		return bits;
	case TS_COLUMN_REF:
	case TS_COLUMN_ENUM:
	case TS_COLUMN_BOOL:
		return 1;
	case TS_COLUMN_DURATION:
		return number % 3 ? number * 7 : -1;
	default:
		/* Clocks are numbered from 0. */
		if (strcmp(table->columns[column].name, "clock") == 0)
			return number;
		/* Times start below 0. */
		return number * 10 - 200;
	}
}

static uint32_t shape_for(struct ts_writer *writer, const struct ts_table_info *table)
{
	const struct ts_field fields[] = {
		{ .key = ts_writer_string(writer, "int", 3), .type = TS_ARG_INT },
		{ .key = ts_writer_string(writer, "double", 6), .type = TS_ARG_DOUBLE },
		{ .key = ts_writer_string(writer, "string", 6), .type = TS_ARG_STRING },
		{ .key = ts_writer_string(writer, "bool", 4), .type = TS_ARG_BOOL },
		{ .key = ts_writer_string(writer, "json", 4), .type = TS_ARG_JSON },
		{ .key = ts_writer_string(writer, "null", 4), .type = TS_ARG_NULL },
		{ .key = ts_writer_string(writer, "beside", 6), .type = TS_ARG_INT, .beside = 1 },
		{ .key = ts_writer_string(writer, "ts.int", 6), .type = TS_ARG_INT },
		{ .key = ts_writer_string(writer, "column", 6),
		  .type = TS_ARG_COLUMN,
		  .column = table->columns[0].id },
	};

	return ts_writer_shape(writer, fields, TS_ARRAY_SIZE(fields));
}

static uint32_t plain_shape_for(struct ts_writer *writer)
{
	const struct ts_field fields[] = {
		{ .key = ts_writer_string(writer, "int", 3), .type = TS_ARG_INT },
		{ .key = ts_writer_string(writer, "double", 6), .type = TS_ARG_DOUBLE },
		{ .key = ts_writer_string(writer, "string", 6), .type = TS_ARG_STRING },
		{ .key = ts_writer_string(writer, "bool", 4), .type = TS_ARG_BOOL },
	};

	return ts_writer_shape(writer, fields, TS_ARRAY_SIZE(fields));
}

static void add_row(struct ts_writer *writer, const struct ts_table_info *table, int64_t number)
{
	int64_t columns[TS_MAX_COLUMNS] = { 0 };
	double real = -0.5 * (double)number;
	int64_t values[] = { -number,           0, ts_writer_string(writer, "text", 4),
			     number % 2,        0, number,
			     INT64_MIN + number };

	memcpy(&values[1], &real, sizeof(real));
	values[4] = ts_writer_string(writer, "[1,{}]", 6);
	for (int i = 0; i < table->column_count; i++) {
		/* Every third row has half of them. */
		bool is_present = number % 3 || i % 2 == 0;

		columns[i] = is_present ? value_for(writer, table, i, number)
					: table->columns[i].none;
	}
	if (table->kind == TS_KIND_ENTITY)
		columns[0] = ts_writer_new_id(writer, table->id);
	if (table->shape >= 0)
		columns[table->shape] = number % 3 == 0   ? 0
					: number % 3 == 1 ? shape_for(writer, table)
							  : plain_shape_for(writer);
	TS_CHECK_INT(ts_writer_add(writer, table->id, columns, values), 0);
}

static bool has_fixed_rows(const struct ts_table_info *table)
{
	return table->kind == TS_KIND_ENTITY || table->kind == TS_KIND_EVENT ||
	       table->id == TS_TABLE_META || table->id == TS_TABLE_MAPPING ||
	       table->id == TS_TABLE_SYMBOL;
}

static struct ts_reader *make_everything(void)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);
	struct ts_frame_row frame = ts_frame_none;
	uint32_t blob;

	for (int64_t number = 1; number <= 30; number++)
		for (uint32_t i = 0; i < TS_TABLE_COUNT; i++) {
			const struct ts_table_info *table = ts_table_info(i);

			if (table && has_fixed_rows(table))
				add_row(writer, table, number);
		}
	frame.name = ts_writer_string(writer, "main", 4);
	frame.mapping = 1;
	frame.line = 7;
	ts_writer_stack(writer, ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame)),
			ts_writer_frame(writer, &ts_frame_none));
	blob = ts_writer_blob(writer, "a\0b", 3);
	TS_CHECK_INT(blob, 1);
	return finish_and_read(writer, path);
}

static int compare_lines(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* A table's rows, sorted: an import may reorder them. */
static void sorted_table(struct ts_reader *reader, const char *name, struct ts_text *out)
{
	struct ts_text rows = { 0 };
	char **lines = NULL, *next;
	size_t count = 0, capacity = 0;

	dump_table(reader, &rows, name);
	next = rows.length ? (char *)ts_text_cstr(&rows) : NULL;
	for (char *line = next ? strsep(&next, "\n") : NULL; line && *line;
	     line = strsep(&next, "\n")) {
		TS_CHECK_INT(ts_grow_array((void **)&lines, &capacity, count + 1, sizeof(*lines)),
			     0);
		lines[count++] = line;
	}
	ts_sort(lines, count, sizeof(*lines), compare_lines);
	ts_text_init(out);
	for (size_t i = 0; i < count; i++)
		ts_text_printf(out, "%s\n", lines[i]);
	free(lines);
	ts_text_release(&rows);
}

TS_TEST(there_and_back)
{
	struct ts_reader *before = make_everything(), *after;
	struct ts_import_result result;
	struct ts_error err;
	struct ts_text bytes;
	struct lines lines;
	char path[64];
	struct ts_writer *writer = open_writer(path);

	export_trace(before, 0, &bytes);
	read_lines(&lines, &bytes);
	TS_CHECK_INT(lines.stages, 30);
	TS_CHECK_INT(lines.samples, 20);
	TS_CHECK(lines.stacks > 0);
	if (ts_import_memory(writer, "t.pftrace", bytes.data, bytes.length, 0, 0, NULL, &result,
			     &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	after = finish_and_read(writer, path);
	for (uint32_t i = 0; i < TS_TABLE_COUNT; i++) {
		const struct ts_table_info *table = ts_table_info(i);
		struct ts_text left, right;

		if (!table || table->kind == TS_KIND_INTERNAL || table->kind == TS_KIND_DERIVED ||
		    i == TS_TABLE_STRING)
			continue;
		sorted_table(before, table->name, &left);
		sorted_table(after, table->name, &right);
		ts_test_check_str(__FILE__, __LINE__, table->name, ts_text_cstr(&right),
				  ts_text_cstr(&left));
		ts_text_release(&left);
		ts_text_release(&right);
	}
	ts_text_release(&lines.text);
	ts_text_release(&bytes);
	ts_reader_close(before);
	ts_reader_close(after);
}

/* ---- bytes and threads ---- */

TS_TEST(numbers_are_as_short_as_protobuf_has_them)
{
	for (unsigned int bit = 0; bit < 64; bit++)
		for (int off = -1; off <= 1; off++) {
			uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)off;
			unsigned char fast[16], plain[16];
			size_t bytes = (size_t)(ts_proto_encode_varint(plain, value) - plain);

			TS_CHECK_INT(ts_pf_varint(fast, value) - fast, bytes);
			TS_CHECK(memcmp(fast, plain, bytes) == 0);
		}
}

/* More than one write buffer, and several chunks. */
static void make_large(struct imported *imported)
{
	TS_SCOPED(ts_text) json = { 0 };

	ts_text_append_str(&json, "[");
	for (unsigned int i = 0; i < 80000; i++)
		ts_text_printf(&json,
			       "%s{'ph':'X','name':'n%u','pid':1,'tid':%u,'ts':%u,'dur':%u,"
			       "'args':{'a':%u,'b':'text'}}",
			       i ? "," : "", i % 100, i % 7, i, i % 50, i);
	ts_text_append_str(&json, "]");
	import_bytes(imported, json.data, json.length, false);
	if (imported->rc)
		ts_test_fail(__FILE__, __LINE__, "%s", imported->err.message);
}

TS_TEST(a_large_trace_gives_the_same_bytes_each_time)
{
	struct imported imported;
	struct ts_text first, second;
	struct lines lines;

	make_large(&imported);
	export_trace(imported.reader, 0, &first);
	export_trace(imported.reader, 0, &second);
	TS_CHECK(first.length > 3 * TS_PF_FLUSH_BYTES);
	TS_CHECK_INT(second.length, first.length);
	TS_CHECK(memcmp(first.data, second.data, first.length) == 0);
	read_lines(&lines, &first);
	ts_text_release(&lines.text);
	ts_text_release(&first);
	ts_text_release(&second);
	release_imported(&imported);
}

static int stop_at_second(void *context, uint64_t done, uint64_t total)
{
	unsigned int *calls = context;

	return ++*calls == 2;
}

TS_TEST(a_full_disk_and_a_stop_end_an_export)
{
	unsigned int calls = 0;
	struct ts_export_options options = { .size = sizeof(options),
					     .progress = stop_at_second,
					     .context = &calls };
	FILE *full = fopen("/dev/full", "w"), *null = fopen("/dev/null", "w");
	struct imported imported;
	struct ts_error err;

	TS_CHECK(full != NULL && null != NULL);
	make_large(&imported);
	TS_CHECK_INT(ts_exporter_find("perfetto")->run(imported.reader, fileno(full), NULL, &err),
		     TS_ENOSPC);
	TS_CHECK_STR(err.message, "cannot write: No space left on device");
	TS_CHECK_INT(
		ts_exporter_find("perfetto")->run(imported.reader, fileno(null), &options, &err),
		TS_ECANCELED);
	TS_CHECK_INT(calls, 2);
	fclose(full);
	fclose(null);
	release_imported(&imported);
}
