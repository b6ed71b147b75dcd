/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A screen of text: lines with styles are put together, and what has changed since the last time
 * becomes bytes for an ANSI terminal. Whatever is put, no control character comes out, and no line
 * is wider than the screen. Does no input and no output, and knows nothing of what is shown.
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
	unsigned int columns; /* that it takes */
};

struct ts_screen {
	unsigned int rows, columns;
	bool utf8;   /* else other than ASCII becomes '?' */
	bool colour; /* else bold and reverse only */
	struct ts_screen_line *shown, *next;
	bool forgotten;   /* the content of the terminal is unknown */
	unsigned int row; /* being built */
	enum ts_style style;
	struct ts_text out;
};

void ts_screen_init(struct ts_screen *screen, bool utf8, bool colour);
void ts_screen_release(struct ts_screen *screen);

/* Sizes beyond the limits above are cut; 0: 24 and 80. All is drawn anew afterwards. */
int ts_screen_resize(struct ts_screen *screen, unsigned int rows, unsigned int columns,
		     struct ts_error *err);
void ts_screen_forget(struct ts_screen *screen);

/* Begins with empty lines; the first row is current. */
void ts_screen_begin(struct ts_screen *screen);
/*
 * The following goes to that row, behind what is there. Rows that are not on the screen take
 * nothing.
 */
void ts_screen_row(struct ts_screen *screen, unsigned int row);
/* Clears the row. */
void ts_screen_clear_row(struct ts_screen *screen, unsigned int row);
void ts_screen_put(struct ts_screen *screen, enum ts_style style, const char *text, size_t length);
void ts_screen_str(struct ts_screen *screen, enum ts_style style, const char *text);
/* The text in exactly so many columns, cut or padded. */
void ts_screen_cell(struct ts_screen *screen, enum ts_style style, const char *text,
		    unsigned int columns, bool right);
/* Spaces up to a column. */
void ts_screen_pad(struct ts_screen *screen, enum ts_style style, unsigned int column);
/* Where the next text goes. */
unsigned int ts_screen_column(const struct ts_screen *screen);

/* The bytes to write to the terminal; empty if nothing has changed. Valid until the next call. */
const struct ts_text *ts_screen_finish(struct ts_screen *screen);

/* Columns of a character on a terminal: 0 for those that join the one before, 2 for wide ones. */
unsigned int ts_screen_width(uint32_t code_point);
/* Columns of a text, once what may not be shown has been replaced. */
unsigned int ts_screen_text_width(bool utf8, const char *text, size_t length);

/* Does the environment ask for UTF-8 (LC_ALL, LC_CTYPE, LANG)? */
bool ts_screen_wants_utf8(void);

#endif
