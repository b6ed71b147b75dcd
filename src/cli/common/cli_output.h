/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of verbs: buffered standard output, and files that are removed if the verb fails. Nothing
 * else in the tool writes to standard output.
 */
#ifndef TS_CLI_COMMON_CLI_OUTPUT_H
#define TS_CLI_COMMON_CLI_OUTPUT_H

#include <stdbool.h>
#include <sys/stat.h>

#include <tracesmith/error.h>

#include "base/text.h"

/* ---- standard output ---- */

/* The buffer: append here. main() writes the rest when the verb returns. */
struct ts_text *ts_stdout(void);

/*
 * Call between rows: writes the buffer when it is full (on a terminal: always). Errors stick, so
 * that a loop can end, but the message is given out once. That of a reader that went away
 * (`| head`) is empty from the start: say nothing then.
 */
int ts_stdout_drain(struct ts_error *err);

/* Writes all. */
int ts_stdout_flush(struct ts_error *err);

/* ---- files ---- */

/* The state of a path before a verb writes to it. */
struct ts_output_file {
	const char *path;
	bool existed;
	struct stat before;
};

/* Only looks; creates nothing. */
void ts_output_file_init(struct ts_output_file *file, const char *path);

/* Is it the same file as another path, or "-" as standard input? Compares device and inode. */
bool ts_output_file_is(const struct ts_output_file *file, const char *path);

/*
 * Removes what a failed verb has left: a regular file that was not there before, or that is not as
 * it was. Others (devices, pipes, a file never touched) stay.
 */
void ts_output_file_discard(const struct ts_output_file *file);

#endif
