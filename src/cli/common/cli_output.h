/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of verbs: buffered standard output, and checks of output files. Nothing else in the tool
 * writes to standard output.
 */
#ifndef TS_CLI_COMMON_CLI_OUTPUT_H
#define TS_CLI_COMMON_CLI_OUTPUT_H

#include <stdbool.h>

#include <tracesmith/error.h>

#include "base/text.h"

/* ---- standard output ---- */

/* The buffer: append here. main() writes the rest when the verb returns. */
struct ts_text *ts_stdout(void);

/*
 * Call between rows: writes the buffer when it is full (on a terminal: always). Every call after an
 * error fails, so that a loop can end, but only the first has a message. If the reader went away
 * (`| head`) the message is empty: print nothing then.
 */
int ts_stdout_drain(struct ts_error *err);

/* Writes the whole buffer. */
int ts_stdout_flush(struct ts_error *err);

/* ---- files ---- */

/* Reports an output that names a directory. Returns an exit code, like the next one. */
int ts_output_check_file(const char *path);

/* For verbs that write a trace: also reports a file that is not a trace and would be replaced. */
int ts_output_check_trace(const char *path);

/* The same as an error, for who may choose another output. */
int ts_output_test_trace(const char *path, struct ts_error *err);

/* Is an output the same regular file as an input ("-": standard input)? */
bool ts_output_is_input(const char *output, const char *input);

#endif
