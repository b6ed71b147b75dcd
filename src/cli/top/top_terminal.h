/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal while `top` has it: raw keys, the alternate screen, signals as something to be
 * waited for. It is given back however the program ends. For the main thread.
 */
#ifndef TS_CLI_TOP_TOP_TERMINAL_H
#define TS_CLI_TOP_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/* Takes the terminal behind standard input and output. */
int ts_top_terminal_open(struct ts_error *err);
/* Gives it back. Does nothing where it is not taken. */
void ts_top_terminal_close(void);

#define TS_TOP_TYPED 1u     /* keys can be read */
#define TS_TOP_RESIZED 2u   /* or shown anew: draw all */
#define TS_TOP_SUSPENDED 4u /* Ctrl-Z: call ts_top_terminal_suspend() */
#define TS_TOP_ENDED 8u     /* a signal asks to end, or the terminal has gone */

/* What has happened, or'ed; 0: nothing for so long. */
unsigned int ts_top_terminal_wait(int64_t timeout_ns);

void ts_top_terminal_size(unsigned int *ret_rows, unsigned int *ret_columns);

/* Bytes that were typed, or 0. */
size_t ts_top_terminal_read(void *buffer, size_t bytes);

/* Gives up when a signal asks to end. */
void ts_top_terminal_write(const void *data, size_t bytes);

/* Gives the terminal back, stops the process, and takes the terminal when it goes on. */
void ts_top_terminal_suspend(void);

/* The signal that asked to end, 0: none; that of Ctrl-C counts as the key q. */
int ts_top_terminal_signal(void);

#endif
