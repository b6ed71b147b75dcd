/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON, and what JSON and CSV have in common. */
#ifndef TS_ANALYZE_RESULT_JSON_H
#define TS_ANALYZE_RESULT_JSON_H

#include "analyze/result.h"
#include "base/text.h"

/* Text, whose cells hold text. */
bool ts_cell_is_text(enum ts_cell_type type);

/* No value, or one that neither JSON nor CSV can represent. */
bool ts_cell_is_null(const struct ts_cell *cell, enum ts_cell_type type);

/* The exact value of a cell that is neither text nor null. */
void ts_cell_append_value(struct ts_text *out, const struct ts_cell *cell, enum ts_cell_type type);

/*
 * Appends the tables: a list of objects; if there are several, an object of lists. No newline at
 * the end. `drain` (may be NULL) is called after each row, and may empty `out`; an error of it ends
 * the call.
 */
int ts_result_append_json(const struct ts_result *result, struct ts_text *out,
			  int (*drain)(struct ts_error *err), struct ts_error *err);

#endif
