/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/import/import_support.h for formats that cannot be recognized by their first 7 bytes: the
 * tests name the format.
 */
#ifndef TS_TESTS_UNIT_IMPORT_IMPORT_AS_H
#define TS_TESTS_UNIT_IMPORT_IMPORT_AS_H

#include "unit/import/import_support.h"

static inline void import_bytes_as(struct imported *imported, const char *format, const char *data,
				   size_t bytes, bool in_pieces)
{
	struct ts_import_options options = { .size = sizeof(options),
					     .format = in_pieces ? format : NULL };
	char path[64];
	struct ts_writer *writer = open_writer(path);

	memset(imported, 0, sizeof(*imported));
	imported->rc = import_quoted(writer, "test", data, bytes, in_pieces ? 7 : 0,
				     in_pieces ? 16 : 0, &options, &imported->result,
				     &imported->err);
	imported->reader = finish_and_read(writer, path);
}

/* `message` NULL: the import must succeed; otherwise a part of the error message. */
static inline void check_rows_as(const char *file, int line, const char *format, const char *data,
				 const char *message, const char *table, const char *expected)
{
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		struct imported imported;

		import_bytes_as(&imported, format, data, strlen(data), in_pieces);
		if (!message && imported.rc)
			ts_test_fail(file, line, "%s", imported.err.message);
		if (message)
			ts_test_check_int(file, line, "code", imported.rc, TS_EFORMAT);
		if (message && !strstr(imported.err.message, message))
			ts_test_fail(file, line, "\"%s\" is not in: %s", message,
				     imported.err.message);
		ts_test_check_str(file, line, "format", imported.result.format, format);
		if (table)
			check_table(file, line, imported.reader, table, expected);
		release_imported(&imported);
	}
}

#define ROWS_AS(format, data, table, expected) \
	check_rows_as(__FILE__, __LINE__, format, data, NULL, table, expected)
#define ERROR_AS(format, data, message, table, expected) \
	check_rows_as(__FILE__, __LINE__, format, data, message, table, expected)

#endif
