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
 * Call between rows: writes the buffer when it is full (on a terminal: always). Every call after an
 * error fails, so that a loop can end, but only the first has a message. If the reader went away
 * (`| head`) the message is empty: print nothing then.
 */
int ts_stdout_drain(struct ts_error *err);

/* Writes the whole buffer. */
int ts_stdout_flush(struct ts_error *err);

/* ---- files ---- */

/* The state of a path before a verb writes to it. */
struct ts_output_file {
	const char *path;
	bool existed;
	struct stat before;
};

/* Does not create the file. */
void ts_output_file_init(struct ts_output_file *file, const char *path);

/* Is it the same file as another path, or as standard input ("-")? Compares device and inode. */
bool ts_output_file_is(const struct ts_output_file *file, const char *path);

/*
 * Removes the output of a failed verb: a regular file that is new or was modified. Devices, pipes
 * and unmodified files stay.
 */
void ts_output_file_discard(const struct ts_output_file *file);

#endif
