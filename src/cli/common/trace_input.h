/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens traces for verbs (<tracesmith/open.h>): warnings and errors go to stderr, imports show a
 * progress bar.
 */
#ifndef TS_CLI_COMMON_TRACE_INPUT_H
#define TS_CLI_COMMON_TRACE_INPUT_H

#include <tracesmith/open.h>

#include "open/trace_open.h"

/* Each returns an exit code; errors have been reported. */
int ts_trace_input_open(struct ts_reader **ret_reader, const char *path);
int ts_trace_input_open_job(struct ts_job **ret_job, const char *const *paths, size_t count);

/* Waits for a recorder that is finishing the trace; see ts_trace_await(). */
void ts_trace_input_await(const char *path, struct ts_trace_writer *ret_writer);

/*
 * Before rows are appended to a trace: refuses one that is still being written, or that was cut
 * off, since a recovery would not find them.
 */
int ts_trace_input_check_end(const char *path);

#endif
