/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows and their arguments as JSON, for exporters and `view`. The trace may be hostile; the output
 * is always valid JSON.
 */
#ifndef TS_TRACE_JSON_ROW_H
#define TS_TRACE_JSON_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "trace/row.h"

/* The text of a string id, quoted. */
void ts_json_row_string(struct ts_reader *reader, struct ts_text *out, int64_t string);

/* A string that holds JSON, verbatim; quoted if it is not valid JSON. */
void ts_json_row_raw(struct ts_reader *reader, struct ts_text *out, int64_t string);

/* The value of a column; references and times as plain integers. */
void ts_json_row_scalar(struct ts_reader *reader, struct ts_text *out,
			const struct ts_column_info *column, int64_t value);

/*
 * The arguments of a row (beside 0), or what stood beside them in the source file (1), as members
 * "key":value, each followed by a comma. True if there was any.
 */
bool ts_json_row_fields(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			int beside);

/* The columns of the mask that have a value, as members, each followed by a comma. */
bool ts_json_row_columns(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			 uint64_t mask);

/* Replaces a comma at the end by this character, or appends it. */
void ts_json_row_close(struct ts_text *out, char bracket);

#endif
