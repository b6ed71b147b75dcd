/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows and their arguments as JSON: what exporters and `view` share. The trace may be hostile;
 * what comes out is always valid JSON.
 */
#ifndef TS_TRACE_JSON_ROW_H
#define TS_TRACE_JSON_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "trace/row.h"

/* Text of a string id in quotes. */
void ts_json_row_string(struct ts_reader *reader, struct ts_text *out, int64_t string);

/* A string that is JSON text, as it is; in quotes where it is not valid. */
void ts_json_row_raw(struct ts_reader *reader, struct ts_text *out, int64_t string);

/* The value of a column; references and times as plain integers. */
void ts_json_row_scalar(struct ts_reader *reader, struct ts_text *out,
			const struct ts_column_info *column, int64_t value);

/*
 * The arguments of a row (beside 0), or what stood beside them (1), as members "key":value with a
 * comma behind each. True if there was any.
 */
bool ts_json_row_fields(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			int beside);

/* The columns of the mask that have a value, as members with a comma behind each. */
bool ts_json_row_columns(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			 uint64_t mask);

/* Replaces a comma at the end by this character, or appends it. */
void ts_json_row_close(struct ts_text *out, char bracket);

#endif
