/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of stdout and stderr: terminal or not, width, colours. */
#ifndef TS_CLI_COMMON_TERMINAL_H
#define TS_CLI_COMMON_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

bool ts_terminal_stdout(void);

/* Also false for a terminal that cannot move the cursor back (TERM=dumb). */
bool ts_terminal_stderr(void);

/* Columns of the terminal of stdout (or stderr), 80 if unknown; 0: not a terminal. */
size_t ts_terminal_stdout_width(void);
size_t ts_terminal_stderr_width(void);

/* Colours on stdout: a terminal, and the user has not set NO_COLOR. */
bool ts_terminal_colour(void);

#endif
