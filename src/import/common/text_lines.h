/* SPDX-License-Identifier: Apache-2.0 */
/* Reads text line by line, for importers of formats that are not JSON. */
#ifndef TS_IMPORT_COMMON_TEXT_LINES_H
#define TS_IMPORT_COMMON_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "import/import.h"

struct ts_text_line {
	const char *text; /* in the buffer: valid until the next line; NULL: there is none */
	size_t length;    /* without the line end */
	bool is_complete; /* false: the last line, without a line end */
};

int ts_import_next_line(struct ts_import *import, struct ts_text_line *ret_line,
			struct ts_error *err);

/*
 * The same for a probe: the next of the lines that a file begins with; NULL if there is none, or if
 * it has bytes that no text has.
 */
const char *ts_probe_next_line(const char **data, const char *end, size_t *ret_length);

#endif
