/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal while `top` runs: raw keys, alternate screen, signals as events. Restored however
 * the program ends. Main thread only.
 */
#ifndef TS_CLI_TOP_TOP_TERMINAL_H
#define TS_CLI_TOP_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/* Takes over the terminal of standard input and output. */
int ts_top_terminal_open(struct ts_error *err);
/* Restores it. No-op if not taken over. */
void ts_top_terminal_close(void);

#define TS_TOP_TYPED 1u     /* keys can be read */
#define TS_TOP_RESIZED 2u   /* or uncovered: redraw everything */
#define TS_TOP_SUSPENDED 4u /* Ctrl-Z: call ts_top_terminal_suspend() */
#define TS_TOP_ENDED 8u     /* a signal asks to quit, or the terminal is gone */

/* Event flags; 0: timeout. */
unsigned int ts_top_terminal_wait(int64_t timeout_ns);

void ts_top_terminal_size(unsigned int *ret_rows, unsigned int *ret_columns);

/* Bytes typed, or 0. */
size_t ts_top_terminal_read(void *buffer, size_t bytes);

/* Stops early when a signal asks to quit. */
void ts_top_terminal_write(const void *data, size_t bytes);

/* Restores the terminal, stops the process, and takes over the terminal when it continues. */
void ts_top_terminal_suspend(void);

/* The signal that asked to quit, 0: none; Ctrl-C counts as the key q. */
int ts_top_terminal_signal(void);

#endif
