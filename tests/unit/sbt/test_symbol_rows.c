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

struct made {
	char path[64];
	struct ts_writer *writer;
	struct ts_reader *reader;
};

static void begin(struct made *made, uint32_t chunk_rows)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .chunk_rows = chunk_rows };
	int fd;

	snprintf(made->path, sizeof(made->path), "/tmp/tracesmith-symbols-XXXXXX");
	fd = mkstemp(made->path);
	TS_CHECK(fd >= 0);
	close(fd);
	TS_CHECK_INT(ts_writer_open(&made->writer, made->path, &options, NULL), 0);
}

static void add(struct made *made, int64_t frame, int64_t depth, const char *name)
{
	struct ts_symbol_row row = ts_symbol_none;

	row.frame = frame;
	row.depth = depth;
	row.name = ts_writer_string(made->writer, name, strlen(name));
	TS_CHECK_INT(ts_writer_add(made->writer, TS_TABLE_SYMBOL, &row, NULL), 0);
}

static void open_made(struct made *made)
{
	TS_CHECK_INT(ts_writer_finish(made->writer, NULL), 0);
	ts_writer_close(made->writer);
	TS_CHECK_INT(ts_reader_open(&made->reader, made->path, NULL), 0);
}

static void end(struct made *made)
{
	TS_CHECK_INT(ts_reader_status(made->reader, NULL), 0);
	ts_reader_close(made->reader);
	unlink(made->path);
}

/* "a b c": innermost first; "": none. */
static void check(struct made *made, int64_t frame, const char *expected)
{
	uint32_t count;
	const struct ts_symbol_row *rows = ts_reader_symbols(made->reader, frame, &count);
	TS_SCOPED(ts_text) names = { 0 };

	for (uint32_t i = 0; i < count; i++)
		ts_text_printf(&names, "%s%s", i ? " " : "",
			       ts_reader_string(made->reader, rows[i].name).data);
	TS_CHECK_STR(ts_text_cstr(&names), expected);
	TS_CHECK_INT(rows != NULL, count > 0);
}

TS_TEST(frames_have_their_functions)
{
	struct made made;

	begin(&made, 0);
	add(&made, 3, 0, "inner");
	add(&made, 3, 1, "outer");
	add(&made, 1, 0, "main");
	open_made(&made);
	check(&made, 3, "inner outer");
	check(&made, 1, "main");
	check(&made, 2, "");
	check(&made, 0, "");
	check(&made, -1, "");
	end(&made);
}

TS_TEST(chunks_end_anywhere)
{
	struct made made;
	char name[16];

	begin(&made, 2);
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		add(&made, 5, i, name);
	}
	open_made(&made);
	check(&made, 5, "f0 f1 f2 f3 f4 f5 f6");
	end(&made);
}

TS_TEST(later_names_count)
{
	struct made made;

	begin(&made, 0);
	add(&made, 5, 0, "old");
	add(&made, 5, 1, "older");
	add(&made, 6, 0, "other");
	add(&made, 5, 0, "new");
	open_made(&made);
	check(&made, 5, "new");
	check(&made, 6, "other");
	end(&made);
}

TS_TEST(rows_without_a_beginning_are_left_out)
{
	struct made made;

	begin(&made, 0);
	add(&made, 5, 1, "lost");
	add(&made, 6, 0, "a");
	add(&made, 7, 1, "lost");
	add(&made, 6, 2, "lost");
	add(&made, 6, 1, "b");
	add(&made, 6, -1, "lost");
	add(&made, INT64_MIN, 0, "odd");
	open_made(&made);
	check(&made, 5, "");
	check(&made, 6, "a b");
	check(&made, 7, "");
	check(&made, INT64_MIN, "odd");
	end(&made);
}

TS_TEST(stacks_show_them_as_frames)
{
	struct made made;
	struct ts_frame_row frame = ts_frame_none;
	struct ts_mapping_row mapping = ts_mapping_none;
	struct ts_stack_list path = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	uint32_t stack;

	begin(&made, 0);
	mapping.path = ts_writer_string(made.writer, "/lib/libx.so", 12);
	ts_writer_add(made.writer, TS_TABLE_MAPPING, &mapping, NULL);
	frame.mapping = 1;
	frame.kind = TS_FRAME_NATIVE;
	frame.pc = 0x10;
	stack = ts_writer_stack(made.writer, 0, ts_writer_frame(made.writer, &frame));
	frame.pc = 0x20;
	stack = ts_writer_stack(made.writer, stack, ts_writer_frame(made.writer, &frame));
	add(&made, 2, 0, "inner");
	add(&made, 2, 1, "outer");
	open_made(&made);
	TS_CHECK_INT(ts_stack_list_load(&path, made.reader, stack), 0);
	TS_CHECK_INT(path.count, 3);
	for (size_t i = 0; i < path.count; i++) {
		ts_frame_append_function(made.reader, &text, path.frames[i]);
		ts_text_append_char(&text, ' ');
	}
	TS_CHECK_STR(ts_text_cstr(&text), "libx.so+0x10 outer inner ");
	ts_stack_list_release(&path);
	end(&made);
}
