/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: cells of every type, omitted values, replaced rows, time ranges, invalid requests. */
#include <math.h>

#include "unit/export/export_support.h"

struct reported {
	uint64_t rows;
	char table[32], reason[64];
	unsigned int calls;
};

static void note(void *context, const char *table, uint64_t rows, const char *reason)
{
	struct reported *reported = context;

	reported->rows += rows;
	reported->calls++;
	snprintf(reported->table, sizeof(reported->table), "%s", table);
	snprintf(reported->reason, sizeof(reported->reason), "%s", reason);
}

/* The caller frees; *ret_length may be NULL. */
static char *write_csv(struct ts_reader *reader, const struct ts_export_options *options,
		       int expected, size_t *ret_length)
{
	FILE *file = tmpfile();
	struct ts_error err = { 0 };
	long length;
	char *text;

	TS_CHECK(file != NULL);
	if (ts_exporter_find("csv")->run(reader, fileno(file), options, &err) != expected)
		ts_test_fail(__FILE__, __LINE__, "another end than %d: %s", expected, err.message);
	TS_CHECK(!expected || err.message[0]);
	fseek(file, 0, SEEK_END);
	length = ftell(file);
	rewind(file);
	text = malloc((size_t)length + 1);
	TS_CHECK(text && fread(text, 1, (size_t)length, file) == (size_t)length);
	text[length] = 0;
	if (ret_length)
		*ret_length = (size_t)length;
	fclose(file);
	return text;
}

static void check_csv(int line, struct ts_reader *reader, const struct ts_export_options *options,
		      const char *expected)
{
	char *text = write_csv(reader, options, 0, NULL);

	ts_test_check_str(__FILE__, line, "csv", text, expected);
	free(text);
}

#define CHECK_CSV(reader, expected, ...)                                                 \
	check_csv(__LINE__, reader,                                                      \
		  &(struct ts_export_options){ .size = sizeof(struct ts_export_options), \
					       __VA_ARGS__ },                            \
		  expected)

static int64_t string_of(struct fixture *fixture, const char *text, size_t length)
{
	return ts_writer_string(fixture->writer, text, length);
}

TS_TEST(csv_texts_are_quoted_where_needed)
{
	static const char nul[] = "a\0b";
	struct ts_meta_row row = ts_meta_none;
	struct ts_reader *reader;
	struct fixture fixture;

	make_trace(&fixture, 0);
	row.value = string_of(&fixture, "[1, \"x\"]", 8);
	for (unsigned int i = 0; i < 8; i++) {
		static const struct {
			const char *text;
			size_t length;
		} texts[] = {
			{ "plain", 5 }, { "a,b", 3 },       { "say \"x\"", 7 }, { "l\r\nm", 4 },
			{ nul, 3 },     { "\xff\xc3(", 3 }, { " x", 2 },        { "\xc3\xa9", 2 },
		};

		row.key = string_of(&fixture, texts[i].text, texts[i].length);
		TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_META, &row, NULL), 0);
		row.value = 0;
	}
	reader = open_fixture(&fixture);
	CHECK_CSV(
		reader,
		"source,source_name,process,process_pid,process_name,thread,thread_pid,thread_tid,"
		"thread_name,key,value\n"
		",,,,,,,,,plain,\"[1,\"\"x\"\"]\"\n"
		",,,,,,,,,\"a,b\",\n"
		",,,,,,,,,\"say \"\"x\"\"\",\n"
		",,,,,,,,,\"l\r\nm\",\n"
		",,,,,,,,,\"a\xef\xbf\xbd"
		"b\",\n"
		",,,,,,,,,\xef\xbf\xbd\xef\xbf\xbd(,\n"
		",,,,,,,,,\" x\",\n"
		",,,,,,,,,\xc3\xa9,\n",
		.table = "meta");
	ts_reader_close(reader);
}

TS_TEST(csv_numbers_and_what_has_no_value)
{
	struct ts_torch_trace_row row = ts_torch_trace_none;
	struct ts_reader *reader;
	struct fixture fixture;

	make_trace(&fixture, 0);
	row.start = INT64_MIN + 1;
	row.stage = TS_STAGE_BACKWARD;
	row.allocated = 0.1;
	row.max_allocated = INFINITY;
	row.cached = -INFINITY;
	row.duration = NAN;
	TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_TORCH_TRACE, &row, NULL), 0);
	row = ts_torch_trace_none;
	row.start = INT64_MAX;
	row.step = -3;
	row.stage = 77;
	TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_TORCH_TRACE, &row, NULL), 0);
	reader = open_fixture(&fixture);
	CHECK_CSV(reader,
		  "start,process,process_pid,process_name,thread,thread_pid,thread_tid,thread_name,"
		  "step,seq,module,stage,allocated,max_allocated,cached,duration,rank,device,"
		  "device_number,device_name,device_time\n"
		  "-9223372036854775807,,,,,,,,,,,backward,0.1,inf,-inf,NaN,,,,,\n"
		  "9223372036854775807,,,,,,,,-3,,,77,,,,,,,,,\n",
		  .table = "torch_trace");
	ts_reader_close(reader);
}

TS_TEST(csv_entities_are_as_they_were_last)
{
	struct ts_process_row row = ts_process_none;
	struct ts_reader *reader;
	struct fixture fixture;

	make_trace(&fixture, 0);
	row.id = ts_writer_new_id(fixture.writer, TS_TABLE_PROCESS);
	row.pid = 5;
	row.name = text_id(&fixture, "old");
	TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_PROCESS, &row, NULL), 0);
	make_thread(&fixture, make_process(&fixture, 6, NULL, 9), 7, "t");
	row.name = text_id(&fixture, "new");
	row.pid = TS_ABSENT;
	row.pid_text = text_id(&fixture, "five");
	TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_PROCESS, &row, NULL), 0);
	row = ts_process_none;
	row.id = ts_writer_new_id(fixture.writer, TS_TABLE_PROCESS);
	row.parent = 1;
	TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_PROCESS, &row, NULL), 0);
	reader = open_fixture(&fixture);
	CHECK_CSV(
		reader,
		"id,source,source_name,host,pid,pid_text,parent,parent_pid,parent_name,name,labels,"
		"sort_index,command,start,end,exit_status\n"
		"1,,,,,five,,,,new,,,,,,\n"
		"2,,,,6,,,,,,,,,,9,\n"
		"3,,,,,,1,five,new,,,,,,,\n",
		.table = "process");
	CHECK_CSV(reader,
		  "id,process,process_pid,process_name,tid,tid_text,name,sort_index\n"
		  "1,2,6,,7,,t,\n",
		  .table = "thread");
	ts_reader_close(reader);
}

TS_TEST(csv_dictionaries_have_ids)
{
	struct ts_reader *reader;
	struct fixture fixture;

	make_trace(&fixture, 0);
	make_stack(&fixture, "main;a.py:work:3");
	reader = open_fixture(&fixture);
	CHECK_CSV(reader,
		  "id,parent,parent_function,frame,frame_function\n"
		  "1,,,1,main\n"
		  "2,1,main,2,work\n",
		  .table = "stack");
	ts_reader_close(reader);
}

TS_TEST(csv_long_bytes_are_left_out_and_told)
{
	static char bytes[5000];
	struct ts_export_options options = { .size = sizeof(options), .table = "blob" };
	struct reported reported = { 0 };
	struct ts_reader *reader;
	struct fixture fixture;
	char *text;

	make_trace(&fixture, 0);
	TS_CHECK(ts_writer_blob(fixture.writer, "\x00\x7f\xff", 3) > 0);
	TS_CHECK(ts_writer_blob(fixture.writer, bytes, 4096) > 0);
	TS_CHECK(ts_writer_blob(fixture.writer, bytes, sizeof(bytes)) > 0);
	reader = open_fixture(&fixture);
	options.left_out = note;
	options.context = &reported;
	text = write_csv(reader, &options, 0, NULL);
	TS_CHECK(strstr(text, ",3,,007fff\n") != NULL);
	TS_CHECK(strstr(text, ",5000,,\n") != NULL);
	TS_CHECK(strstr(text, ",4096,,0000") != NULL);
	free(text);
	TS_CHECK_INT((int64_t)reported.rows, 1);
	TS_CHECK_STR(reported.table, "blob");
	ts_reader_close(reader);
}

static void make_slice(struct fixture *fixture, int64_t start, int64_t duration, const char *name)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = start;
	row.duration = duration;
	row.name = text_id(fixture, name);
	TS_CHECK_INT(ts_writer_add(fixture->writer, TS_TABLE_SLICE, &row, NULL), 0);
}

static unsigned int count_lines(struct ts_reader *reader, int64_t from, int64_t to, uint64_t limit)
{
	struct ts_export_options options = {
		.size = sizeof(options), .table = "slice", .from = from, .to = to, .limit = limit
	};
	char *text = write_csv(reader, &options, 0, NULL);
	unsigned int lines = 0;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	free(text);
	return lines - 1;
}

TS_TEST(csv_takes_what_touches_a_range)
{
	struct ts_reader *reader;
	struct fixture fixture;

	/* Chunks of few rows, some of which are skipped entirely. */
	make_trace(&fixture, 4);
	for (int64_t i = 0; i < 40; i++)
		make_slice(&fixture, 100 * i, 10, "x");
	make_slice(&fixture, 50, -1, "never ends");
	make_slice(&fixture, 60, 3000, "long");
	reader = open_fixture(&fixture);
	TS_CHECK_INT(count_lines(reader, 0, 0, 0), 42);
	TS_CHECK_INT(count_lines(reader, 0, 0, 7), 7);
	TS_CHECK_INT(count_lines(reader, 1000, 1100, 0), 4);
	TS_CHECK_INT(count_lines(reader, 1010, 1010, 0), 3);
	TS_CHECK_INT(count_lines(reader, 1011, 1011, 0), 2);
	TS_CHECK_INT(count_lines(reader, 3061, 3099, 0), 1);
	TS_CHECK_INT(count_lines(reader, INT64_MIN, 49, 0), 1);
	TS_CHECK_INT(count_lines(reader, 9000, INT64_MAX, 0), 1);
	ts_reader_close(reader);
}

TS_TEST(csv_refuses_what_is_no_table_of_the_file)
{
	static const char *const names[] = { NULL, "slise", "index", "shape", "edge", "state" };
	struct ts_reader *reader;
	struct fixture fixture;

	make_trace(&fixture, 0);
	reader = open_fixture(&fixture);
	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		struct ts_export_options options = { .size = sizeof(options), .table = names[i] };

		free(write_csv(reader, &options, TS_EINVAL, NULL));
	}
	/* A caller built against an older version, without tables. */
	free(write_csv(
		reader,
		&(struct ts_export_options){ .size = offsetof(struct ts_export_options, table),
					     .table = "slice" },
		TS_EINVAL, NULL));
	free(write_csv(reader, NULL, TS_EINVAL, NULL));
	ts_reader_close(reader);
}

/* More distinct texts than the cache holds, and one too long for it: all are right. */
TS_TEST(csv_many_texts)
{
	enum { COUNT = 40000 };
	struct ts_export_options options = { .size = sizeof(options), .table = "slice" };
	struct ts_reader *reader;
	struct fixture fixture;
	char name[32], *text, *at, *end;
	char *longest = malloc(10000);

	TS_CHECK(longest != NULL);
	memset(longest, 'x', 9999);
	longest[9999] = 0;
	make_trace(&fixture, 0);
	make_slice(&fixture, 0, 1, longest);
	for (int i = 1; i < COUNT; i++) {
		snprintf(name, sizeof(name), "name %d", i * 7 % 20001);
		make_slice(&fixture, i, 1, name);
	}
	make_slice(&fixture, COUNT, 1, longest);
	reader = open_fixture(&fixture);
	text = write_csv(reader, &options, 0, NULL);
	/* Not strchr() and strncmp(): a strict sanitizer scans the entire text on each call. */
	end = text + strlen(text);
	at = strchr(text, '\n');
	for (int i = 1; i < COUNT; i++) {
		char line[64];
		size_t bytes;

		at = memchr(at + 1, '\n', (size_t)(end - at) - 1);
		TS_CHECK(at != NULL);
		bytes = (size_t)snprintf(line, sizeof(line), "\n%d,1,,,,,name %d,,nested,,,,,\n", i,
					 i * 7 % 20001);
		TS_CHECK((size_t)(end - at) >= bytes && !memcmp(at, line, bytes));
	}
	TS_CHECK(strstr(strchr(at + 1, '\n'), longest) != NULL);
	free(text);
	free(longest);
	ts_reader_close(reader);
}
