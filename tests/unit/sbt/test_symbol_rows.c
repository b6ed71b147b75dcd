/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols that frames get later: in order, over chunks, twice; and malformed rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "trace/stack_lists.h"
#include "unit/runner.h"

struct fixture {
	char path[64];
	struct ts_writer *writer;
	struct ts_reader *reader;
};

static void begin(struct fixture *fixture, uint32_t chunk_rows)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .chunk_rows = chunk_rows };
	int fd;

	snprintf(fixture->path, sizeof(fixture->path), "/tmp/tracesmith-symbols-XXXXXX");
	fd = mkstemp(fixture->path);
	TS_CHECK(fd >= 0);
	close(fd);
	TS_CHECK_INT(ts_writer_open(&fixture->writer, fixture->path, &options, NULL), 0);
}

static void add(struct fixture *fixture, int64_t frame, int64_t depth, const char *name)
{
	struct ts_symbol_row row = ts_symbol_none;

	row.frame = frame;
	row.depth = depth;
	row.name = ts_writer_string(fixture->writer, name, strlen(name));
	TS_CHECK_INT(ts_writer_add(fixture->writer, TS_TABLE_SYMBOL, &row, NULL), 0);
}

static void open_fixture(struct fixture *fixture)
{
	TS_CHECK_INT(ts_writer_finish(fixture->writer, NULL), 0);
	ts_writer_close(fixture->writer);
	TS_CHECK_INT(ts_reader_open(&fixture->reader, fixture->path, NULL), 0);
}

static void end(struct fixture *fixture)
{
	TS_CHECK_INT(ts_reader_status(fixture->reader, NULL), 0);
	ts_reader_close(fixture->reader);
	unlink(fixture->path);
}

/* "a b c": innermost first; "": none. */
static void check(struct fixture *fixture, int64_t frame, const char *expected)
{
	uint32_t count;
	const struct ts_symbol_row *rows = ts_reader_symbols(fixture->reader, frame, &count);
	TS_SCOPED(ts_text) names = { 0 };

	for (uint32_t i = 0; i < count; i++)
		ts_text_printf(&names, "%s%s", i ? " " : "",
			       ts_reader_string(fixture->reader, rows[i].name).data);
	TS_CHECK_STR(ts_text_cstr(&names), expected);
	TS_CHECK_INT(rows != NULL, count > 0);
}

TS_TEST(frames_have_their_functions)
{
	struct fixture fixture;

	begin(&fixture, 0);
	add(&fixture, 3, 0, "inner");
	add(&fixture, 3, 1, "outer");
	add(&fixture, 1, 0, "main");
	open_fixture(&fixture);
	check(&fixture, 3, "inner outer");
	check(&fixture, 1, "main");
	check(&fixture, 2, "");
	check(&fixture, 0, "");
	check(&fixture, -1, "");
	end(&fixture);
}

TS_TEST(chunks_end_anywhere)
{
	struct fixture fixture;
	char name[16];

	begin(&fixture, 2);
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		add(&fixture, 5, i, name);
	}
	open_fixture(&fixture);
	check(&fixture, 5, "f0 f1 f2 f3 f4 f5 f6");
	end(&fixture);
}

TS_TEST(later_names_count)
{
	struct fixture fixture;

	begin(&fixture, 0);
	add(&fixture, 5, 0, "old");
	add(&fixture, 5, 1, "older");
	add(&fixture, 6, 0, "other");
	add(&fixture, 5, 0, "new");
	open_fixture(&fixture);
	check(&fixture, 5, "new");
	check(&fixture, 6, "other");
	end(&fixture);
}

TS_TEST(rows_without_a_beginning_are_left_out)
{
	struct fixture fixture;

	begin(&fixture, 0);
	add(&fixture, 5, 1, "lost");
	add(&fixture, 6, 0, "a");
	add(&fixture, 7, 1, "lost");
	add(&fixture, 6, 2, "lost");
	add(&fixture, 6, 1, "b");
	add(&fixture, 6, -1, "lost");
	add(&fixture, INT64_MIN, 0, "odd");
	open_fixture(&fixture);
	check(&fixture, 5, "");
	check(&fixture, 6, "a b");
	check(&fixture, 7, "");
	check(&fixture, INT64_MIN, "odd");
	end(&fixture);
}

TS_TEST(stacks_show_them_as_frames)
{
	struct fixture fixture;
	struct ts_frame_row frame = ts_frame_none;
	struct ts_mapping_row mapping = ts_mapping_none;
	struct ts_stack_list path = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	uint32_t stack;

	begin(&fixture, 0);
	mapping.path = ts_writer_string(fixture.writer, "/lib/libx.so", 12);
	ts_writer_add(fixture.writer, TS_TABLE_MAPPING, &mapping, NULL);
	frame.mapping = 1;
	frame.kind = TS_FRAME_NATIVE;
	frame.pc = 0x10;
	stack = ts_writer_stack(fixture.writer, 0, ts_writer_frame(fixture.writer, &frame));
	frame.pc = 0x20;
	stack = ts_writer_stack(fixture.writer, stack, ts_writer_frame(fixture.writer, &frame));
	add(&fixture, 2, 0, "inner");
	add(&fixture, 2, 1, "outer");
	open_fixture(&fixture);
	TS_CHECK_INT(ts_stack_list_load(&path, fixture.reader, stack), 0);
	TS_CHECK_INT(path.count, 3);
	for (size_t i = 0; i < path.count; i++) {
		ts_frame_append_function(fixture.reader, &text, path.frames[i]);
		ts_text_append_char(&text, ' ');
	}
	TS_CHECK_STR(ts_text_cstr(&text), "libx.so+0x10 outer inner ");
	ts_stack_list_release(&path);
	end(&fixture);
}
