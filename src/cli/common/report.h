/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on stderr, wrapped at the width of the terminal, and exit codes. Only src/cli prints.
 */
#ifndef TS_CLI_COMMON_REPORT_H
#define TS_CLI_COMMON_REPORT_H

#include <tracesmith/error.h>

enum ts_exit {
	TS_EXIT_DONE = 0,
	TS_EXIT_NO = 1,         /* the answer is no: damaged, different */
	TS_EXIT_USAGE = 2,      /* invalid command line */
	TS_EXIT_INPUT = 3,      /* bad input, or a file that cannot be read or written */
	TS_EXIT_CAPABILITY = 4, /* not supported by this build or machine */
	TS_EXIT_SIGNAL = 128,   /* plus the signal that ended the work */
};

/* Call once with the verb (NULL: none yet), which is borrowed. */
void ts_report_start(const char *verb);

/*
 * From now on each message names its rank, since those of other ranks go to the same terminal:
 * "tracesmith record: rank 3 of 8: warning: TEXT", "rank 3 of 8: NOTE". Copied; "": no rank.
 */
void ts_report_set_rank(const char *rank);

/* "tracesmith view: TEXT (see 'tracesmith view --help')". Returns TS_EXIT_USAGE. */
int ts_report_usage(const char *format, ...) TS_PRINTF_LIKE(1, 2);

/* "tracesmith view: MESSAGE" of an error, unless the user interrupted it. Returns its exit code. */
int ts_report_error(const struct ts_error *err);

/* From now on, errors of either kind are not printed: somebody else gets the last one. */
void ts_report_keep_errors(void);

/* The message of the last error of either kind; "": none. */
const char *ts_report_last_error(void);

/* "tracesmith view: warning: TEXT". */
void ts_report_warning(const char *format, ...) TS_PRINTF_LIKE(1, 2);

/* "tracesmith record: TEXT", of something that has happened meanwhile. */
void ts_report_event(const char *format, ...) TS_PRINTF_LIKE(1, 2);

/* Prints the text without a prefix. */
void ts_report_note(const char *format, ...) TS_PRINTF_LIKE(1, 2);

/* The exit code for a TS_E* code. */
int ts_report_exit_code(int code);

#endif
