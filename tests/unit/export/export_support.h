/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of stack exporters: writes a trace with processes, threads and samples, exports it and
 * compares the output. Stacks are texts, outermost first: "main;a.py:work:3;lib.so!poll" is a
 * function without a file, a Python and a native one.
 */
#ifndef TS_TESTS_UNIT_EXPORT_EXPORT_SUPPORT_H
#define TS_TESTS_UNIT_EXPORT_EXPORT_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/export.h>
#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/text.h"

#include "unit/runner.h"
#include "unit/temporary.h"

#define MS INT64_C(1000000)

struct fixture {
	char path[64];
	struct ts_writer *writer;
};

/* Rows per chunk; 0: the default. */
static inline void make_trace(struct fixture *fixture, uint32_t chunk_rows)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .chunk_rows = chunk_rows };
	struct ts_error err;

	temporary_path(fixture->path);
	if (ts_writer_open(&fixture->writer, fixture->path, &options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static inline int64_t text_id(struct fixture *fixture, const char *text)
{
	return text ? ts_writer_string(fixture->writer, text, strlen(text)) : 0;
}

static inline int64_t make_process(struct fixture *fixture, int64_t pid, const char *name,
				   int64_t end)
{
	struct ts_process_row row = ts_process_none;

	row.id = ts_writer_new_id(fixture->writer, TS_TABLE_PROCESS);
	row.pid = pid;
	row.name = text_id(fixture, name);
	row.end = end;
	ts_writer_add(fixture->writer, TS_TABLE_PROCESS, &row, NULL);
	return row.id;
}

static inline int64_t make_thread(struct fixture *fixture, int64_t process, int64_t tid,
				  const char *name)
{
	struct ts_thread_row row = ts_thread_none;

	row.id = ts_writer_new_id(fixture->writer, TS_TABLE_THREAD);
	row.process = process;
	row.tid = tid;
	row.name = text_id(fixture, name);
	ts_writer_add(fixture->writer, TS_TABLE_THREAD, &row, NULL);
	return row.id;
}

/* "name", "file:name:line" or "module!name". */
static inline int64_t make_frame(struct fixture *fixture, char *word)
{
	struct ts_frame_row row = ts_frame_none;
	char *name = strchr(word, ':'), *line;

	row.name = text_id(fixture, word);
	if (strchr(word, '!')) {
		row.kind = TS_FRAME_NATIVE;
		row.pc = 0x1234;
		name = strchr(word, '!');
		*name++ = 0;
		row.name = text_id(fixture, name);
		row.file = text_id(fixture, word);
	} else if (name && (line = strchr(name + 1, ':'))) {
		*name++ = 0;
		*line++ = 0;
		row.kind = TS_FRAME_PYTHON;
		row.file = text_id(fixture, word);
		row.name = text_id(fixture, name);
		row.line = strtol(line, NULL, 10);
	}
	return ts_writer_frame(fixture->writer, &row);
}

static inline int64_t make_stack(struct fixture *fixture, const char *words)
{
	char *copy = strdup(words), *rest = copy, *word;
	uint32_t stack = 0;

	TS_CHECK(copy != NULL);
	while ((word = strsep(&rest, ";")))
		if (*word)
			stack = ts_writer_stack(fixture->writer, stack,
						(uint32_t)make_frame(fixture, word));
	free(copy);
	return stack;
}

/* Weight in ns; TS_ABSENT: none. state may be NULL. */
static inline void make_sample(struct fixture *fixture, int64_t start, int64_t thread,
			       int64_t stack, int64_t weight, const char *state)
{
	struct ts_sample_row row = ts_sample_none;

	row.start = start;
	row.thread = thread;
	row.stack = stack;
	row.weight = weight;
	row.name = text_id(fixture, "python");
	row.state = text_id(fixture, state);
	TS_CHECK_INT(ts_writer_add(fixture->writer, TS_TABLE_SAMPLE, &row, NULL), 0);
}

/* Finishes the trace and opens it. */
static inline struct ts_reader *open_fixture(struct fixture *fixture)
{
	struct ts_reader *reader;
	struct ts_error err = { 0 };

	if (ts_writer_finish(fixture->writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(fixture->writer);
	if (ts_reader_open(&reader, fixture->path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	unlink(fixture->path);
	return reader;
}

/* Finishes the trace and exports it. The caller frees. */
static inline char *export_fixture(struct fixture *fixture, const char *format, unsigned int flags,
				   int expected)
{
	const struct ts_exporter *exporter = ts_exporter_find(format);
	struct ts_export_options options = { .size = sizeof(options), .flags = flags };
	FILE *file = tmpfile();
	struct ts_reader *reader;
	struct ts_error err = { 0 };
	long length;
	char *text;

	TS_CHECK(exporter != NULL);
	TS_CHECK(file != NULL);
	reader = open_fixture(fixture);
	if (exporter->run(reader, fileno(file), &options, &err) != expected)
		ts_test_fail(__FILE__, __LINE__, "another end than %d: %s", expected, err.message);
	TS_CHECK_INT(ts_reader_status(reader, &err), 0);
	ts_reader_close(reader);
	fseek(file, 0, SEEK_END);
	length = ftell(file);
	rewind(file);
	text = malloc((size_t)length + 1);
	TS_CHECK(text && fread(text, 1, (size_t)length, file) == (size_t)length);
	text[length] = 0;
	fclose(file);
	return text;
}

/* Exports and compares; ' stands for " in `expected`. */
static inline void check_export(const char *source, int line, struct fixture *fixture,
				const char *format, unsigned int flags, const char *expected)
{
	char *text = export_fixture(fixture, format, flags, 0);

	for (char *c = text; *c; c++)
		if (*c == '"')
			*c = '\'';
	ts_test_check_str(source, line, "export", text, expected);
	free(text);
}

#define CHECK_EXPORT(fixture, format, flags, expected) \
	check_export(__FILE__, __LINE__, fixture, format, flags, expected)

#endif
