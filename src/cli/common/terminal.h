/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of stdout and stderr: terminal or not, width, colours. */
#ifndef TS_CLI_COMMON_TERMINAL_H
#define TS_CLI_COMMON_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ts_terminal_stdout(void);

/* Also false for a terminal that cannot move the cursor back (TERM=dumb). */
bool ts_terminal_stderr(void);

/*
 * The option --width of verbs that show tables, for their option tables (options.h). It overrides
 * the width of stdout's terminal.
 */
#define TS_TERMINAL_WIDTH_OPTION                                                                \
	TS_OPTION_INTEGER("width", 0, "N", ts_terminal_width_option(), 0, 1000000,              \
			  "lay out text for N columns, 0: without a limit; default: the width " \
			  "of the terminal, without a limit in files and pipes")

int64_t *ts_terminal_width_option(void); /* -1: not given */

/*
 * Columns of the terminal of stdout (or stderr), 80 if unknown; 0: not a terminal, or no limit.
 */
size_t ts_terminal_stdout_width(void);
size_t ts_terminal_stderr_width(void);

/* Colours on stdout: a terminal, and the user has not set NO_COLOR. */
bool ts_terminal_colour(void);

#endif
