/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolizes a trace with a progress bar, and reports the result: for `symbolize` and `record`. */
#ifndef TS_CLI_COMMON_SYMBOLIZE_REPORT_H
#define TS_CLI_COMMON_SYMBOLIZE_REPORT_H

#include "code/symbolize_trace.h"

/* ts_symbolize_trace() with a progress bar. */
int ts_cli_symbolize(const char *path, const struct ts_symbolize_choice *choice,
		     struct ts_symbolize_summary *ret_summary, struct ts_error *err);

/* Prints a summary line on stderr and, with `all`, a line for each binary without symbols. */
void ts_symbolize_report(const struct ts_symbolize_summary *summary, const char *path, bool all);

/* Prints on stderr how to symbolize a trace that has native frames without names. */
void ts_symbolize_advise(const char *path);

#endif
