/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of importers: imports a text into a trace, reads it back, and compares the rows of a
 * table as lines of JSON (columns that have a value; arguments; members beside them). Every text is
 * imported twice, at once and in small pieces, which must make no difference. JSON is written with
 * ' for ", which reads better in C.
 */
#ifndef TS_TESTS_UNIT_IMPORT_IMPORT_SUPPORT_H
#define TS_TESTS_UNIT_IMPORT_IMPORT_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/import.h>
#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/text.h"
#include "import/import.h"
#include "trace/json_row.h"

#include "unit/runner.h"
#include "unit/temporary.h"

struct imported {
	struct ts_import_result result;
	struct ts_error err;
	int rc;
	struct ts_reader *reader;
};

/* Opens a writer on a new file without threads. */
static inline struct ts_writer *open_writer(char path[64])
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_writer *writer;
	struct ts_error err;

	temporary_path(path);
	if (ts_writer_open(&writer, path, &options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return writer;
}

static inline struct ts_reader *finish_and_read(struct ts_writer *writer, const char *path)
{
	struct ts_reader *reader;
	struct ts_error err;

	if (ts_writer_finish(writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(writer);
	if (ts_verify(path, NULL, NULL, NULL, &err))
		ts_test_fail(__FILE__, __LINE__, "verify: %s", err.message);
	if (ts_reader_open(&reader, path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	unlink(path);
	return reader;
}

static inline void replace_bytes(char *text, size_t bytes, char from, char to)
{
	for (size_t i = 0; i < bytes; i++)
		if (text[i] == from)
			text[i] = to;
}

/* As ts_import_memory(), with ' for ". */
static inline int import_quoted(struct ts_writer *writer, const char *name, const char *data,
				size_t bytes, size_t step, size_t capacity,
				const struct ts_import_options *options,
				struct ts_import_result *result, struct ts_error *err)
{
	char *copy = malloc(bytes + 1);
	int rc;

	TS_CHECK(copy != NULL);
	memcpy(copy, data, bytes);
	replace_bytes(copy, bytes, '\'', '"');
	rc = ts_import_memory(writer, name, copy, bytes, step, capacity, options, result, err);
	free(copy);
	return rc;
}

/* Pieces of 7 bytes through a buffer of 16, or all at once. */
static inline void import_bytes(struct imported *imported, const char *data, size_t bytes,
				bool in_pieces)
{
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = import_quoted(writer, "test.json", data, bytes, in_pieces ? 7 : 0,
				     in_pieces ? 16 : 0, NULL, &imported->result, &imported->err);
	imported->reader = finish_and_read(writer, path);
}

static inline void release_imported(struct imported *imported)
{
	ts_reader_close(imported->reader);
}

/* ---- rows as text ---- */

static inline void dump_row(struct ts_reader *reader, struct ts_text *out,
			    const struct ts_table_info *info, const int64_t *columns,
			    const int64_t *values)
{
	struct ts_row row = { .table = info, .columns = columns, .values = values };

	ts_text_append_char(out, '{');
	ts_json_row_columns(reader, out, &row, TS_MASK_ALL);
	for (int beside = 0; beside < 2 && info->shape >= 0 && columns[info->shape]; beside++) {
		size_t before = out->length;

		ts_text_append_str(out, beside ? "\"beside\":{" : "\"args\":{");
		if (ts_json_row_fields(reader, out, &row, beside)) {
			ts_json_row_close(out, '}');
			ts_text_append_char(out, ',');
		} else {
			out->length = before;
		}
	}
	ts_json_row_close(out, '}');
	ts_text_append_char(out, '\n');
	replace_bytes(out->data, out->length, '"', '\'');
}

static inline void dump_table(struct ts_reader *reader, struct ts_text *out, const char *name)
{
	int table = ts_table_by_name(name);
	const struct ts_table_info *info;
	struct ts_batch *batch;
	struct ts_error err;

	TS_CHECK(table > 0);
	info = ts_table_info((uint32_t)table);
	if (info->kind == TS_KIND_ENTITY || info->kind == TS_KIND_DICTIONARY) {
		size_t cursor = 0;
		int64_t id;
		const int64_t *row;

		while ((row = ts_reader_entity_next(reader, (enum ts_table_id)table, &cursor, &id)))
			dump_row(reader, out, info, row, NULL);
		return;
	}
	TS_CHECK_INT(ts_batch_new(&batch, reader, &err), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != table)
			continue;
		if (ts_batch_read(batch, i, TS_MASK_ALL, &err))
			ts_test_fail(__FILE__, __LINE__, "%s", err.message);
		for (uint32_t r = 0; r < batch->rows; r++) {
			int64_t columns[TS_MAX_COLUMNS];

			ts_batch_row(batch, r, columns);
			dump_row(reader, out, info, columns,
				 batch->arg_offsets ? batch->arg_values + batch->arg_offsets[r]
						    : NULL);
		}
	}
	ts_batch_free(batch);
}

static inline void check_table(const char *file, int line, struct ts_reader *reader,
			       const char *table, const char *expected)
{
	struct ts_text out;

	ts_text_init(&out);
	dump_table(reader, &out, table);
	ts_test_check_str(file, line, table, ts_text_cstr(&out), expected);
	ts_text_release(&out);
}

/* A text whose import must succeed: the rows of one table. */
static inline void check_rows(const char *file, int line, const char *json, const char *table,
			      const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_bytes(&imported, json, strlen(json), in_pieces);
		if (imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

/*
 * A text whose import must fail, with what was read before. `message` must be a part of the error
 * message.
 */
static inline void check_error(const char *file, int line, const char *json, size_t bytes, int code,
			       const char *message, const char *table, const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_bytes(&imported, json, bytes, in_pieces);
		ts_test_check_int(file, line, "code", imported.rc, code);
		ts_test_check_int(file, line, "code in the error", imported.err.code, code);
		if (!strstr(imported.err.message, message))
			ts_test_fail(file, line, "\"%s\" is not in: %s", message,
				     imported.err.message);
		if (table)
			check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define CHECK_ROWS(json, table, expected) check_rows(__FILE__, __LINE__, json, table, expected)
#define CHECK_TABLE(reader, table, expected) \
	check_table(__FILE__, __LINE__, reader, table, expected)
#define CHECK_ERROR(json, message, table, expected) \
	check_error(__FILE__, __LINE__, json, strlen(json), TS_EFORMAT, message, table, expected)

#endif
