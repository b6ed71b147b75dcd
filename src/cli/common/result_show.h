/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints results of analyses (analyze/result.h) as text, JSON or CSV (docs/analyze.md, "What comes
 * out").
 */
#ifndef TS_CLI_COMMON_RESULT_SHOW_H
#define TS_CLI_COMMON_RESULT_SHOW_H

#include "analyze/result.h"

/* Tables, with titles if there are several, then notes. `top` above 0: maximum rows per list. */
int ts_result_show_text(const struct ts_result *result, int64_t top, struct ts_error *err);

/* A list of objects; if there are several tables, an object of lists. No newline at the end. */
int ts_result_show_json(const struct ts_result *result, struct ts_error *err);

/* One table, with a header line. */
int ts_result_show_csv(const struct ts_result_table *table, struct ts_error *err);

/* Prints notes on stderr, for results that are not shown as text. */
void ts_result_print_notes(const struct ts_result *result);

/* The table of that name; NULL: the first one. If there is none, reports it and returns NULL. */
const struct ts_result_table *ts_result_choose_table(const struct ts_result *result,
						     const char *name);

/* A heading; highlighted on a terminal. */
void ts_result_show_heading(const char *name, const char *text);

#endif
