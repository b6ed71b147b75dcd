/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text screen: builds lines with styles, and encodes the lines that changed since the last frame
 * for an ANSI terminal. Control characters are filtered, and no line is wider than the screen. Does
 * no I/O.
 */
#ifndef TS_CLI_COMMON_SCREEN_H
#define TS_CLI_COMMON_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/text.h"

enum ts_style {
	TS_STYLE_PLAIN,
	TS_STYLE_BOLD,
	TS_STYLE_DIM,
	TS_STYLE_REVERSE,
	TS_STYLE_RED,
	TS_STYLE_GREEN,
	TS_STYLE_YELLOW,
	TS_STYLE_CYAN,
};

#define TS_SCREEN_ROWS 1000u
#define TS_SCREEN_COLUMNS 1000u

struct ts_screen_line {
	struct ts_text bytes; /* with styles */
	unsigned int columns; /* width of the text */
};

struct ts_screen {
	unsigned int rows, columns;
	bool utf8;   /* else non-ASCII becomes '?' */
	bool colour; /* else only bold and reverse */
	struct ts_screen_line *shown, *next;
	bool forgotten;   /* the content of the terminal is unknown */
	unsigned int row; /* being built */
	enum ts_style style;
	struct ts_text out;
};

void ts_screen_init(struct ts_screen *screen, bool utf8, bool colour);
void ts_screen_release(struct ts_screen *screen);

/* Sizes are limited to the maxima above; 0: 24 and 80. The next frame is drawn completely. */
int ts_screen_resize(struct ts_screen *screen, unsigned int rows, unsigned int columns,
		     struct ts_error *err);
void ts_screen_forget(struct ts_screen *screen);

/* Begins a frame with empty lines; the first row is current. */
void ts_screen_begin(struct ts_screen *screen);
/* Makes a row current: text is appended to it. Text for rows off the screen is dropped. */
void ts_screen_row(struct ts_screen *screen, unsigned int row);
/* Clears the row. */
void ts_screen_clear_row(struct ts_screen *screen, unsigned int row);
void ts_screen_put(struct ts_screen *screen, enum ts_style style, const char *text, size_t length);
void ts_screen_str(struct ts_screen *screen, enum ts_style style, const char *text);
/* Puts the text in exactly `columns` columns, truncated or padded. */
void ts_screen_cell(struct ts_screen *screen, enum ts_style style, const char *text,
		    unsigned int columns, bool right);
/* Pads with spaces up to a column. */
void ts_screen_pad(struct ts_screen *screen, enum ts_style style, unsigned int column);
/* The column of the next text. */
unsigned int ts_screen_column(const struct ts_screen *screen);

/* The bytes to write to the terminal; empty if nothing has changed. Valid until the next call. */
const struct ts_text *ts_screen_finish(struct ts_screen *screen);

/* Columns of a character on a terminal: 0 for combining characters, 2 for wide ones. */
unsigned int ts_screen_width(uint32_t code_point);
/* Columns of a text after unsafe characters have been replaced. */
unsigned int ts_screen_text_width(bool utf8, const char *text, size_t length);

/* Does the environment ask for UTF-8 (LC_ALL, LC_CTYPE, LANG)? */
bool ts_screen_wants_utf8(void);

#endif
