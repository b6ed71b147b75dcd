/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens what the user calls a trace: a trace, or any file that can be imported, which is imported
 * on the fly into memory or a file without a name. Whatever happens, nothing is left behind.
 */
#ifndef TS_CLI_COMMON_TRACE_OPEN_H
#define TS_CLI_COMMON_TRACE_OPEN_H

#include <tracesmith/reader.h>

/*
 * "-" is standard input, to be imported. Damage is warned of, and what is whole is used. Returns an
 * exit code; what is wrong has been said.
 */
int ts_trace_open(struct ts_reader **ret_reader, const char *path);

/* Warns on stderr about a trace that was not finished or is damaged. */
void ts_trace_warn(const struct ts_reader *reader, const char *path);

#endif
