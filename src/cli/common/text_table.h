/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text tables on standard output: aligned columns, right-aligned numbers, a header. On a terminal
 * lines are truncated to its width (…) and the header is highlighted; elsewhere nothing is
 * truncated. Memory is bounded: widths come from the first rows and only grow later. Control
 * characters and invalid UTF-8 in cells are escaped.
 */
#ifndef TS_CLI_COMMON_TEXT_TABLE_H
#define TS_CLI_COMMON_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include <tracesmith/error.h>

#include "base/text.h"

#define TS_TEXT_TABLE_COLUMNS 80

struct ts_text_table_column {
	const char *title;
	bool right;      /* right-aligned, for numbers */
	size_t width;    /* widest cell so far */
	size_t allotted; /* columns it gets in a line */
};

struct ts_text_table {
	struct ts_text_table_column columns[TS_TEXT_TABLE_COLUMNS];
	size_t column_count;
	/*
	 * Cells of rows not yet written, each NUL-terminated; after a row's last cell come the
	 * lines below the row.
	 */
	struct ts_text cells;
	struct ts_text below; /* lines below the current row */
	size_t column;        /* next cell */
	size_t rows;          /* in cells */
	size_t line_width;    /* 0: no limit */
	bool colour;
	bool header_shown;
	bool bare; /* no header */
};

/* Add all columns before the first cell. */
void ts_text_table_init(struct ts_text_table *table);
void ts_text_table_release(struct ts_text_table *table);
void ts_text_table_add_column(struct ts_text_table *table, const char *title, bool right);

/* Cells from left to right, row after row. */
void ts_text_table_cell(struct ts_text_table *table, const char *text, size_t length);
void ts_text_table_str(struct ts_text_table *table, const char *text);
void ts_text_table_count(struct ts_text_table *table, uint64_t count); /* "1,234" */

/* A line below the current row, never truncated. */
void ts_text_table_below(struct ts_text_table *table, const char *text, size_t length);

/* Call after each row: writes blocks of rows to ts_stdout(), which the caller drains. */
void ts_text_table_end_row(struct ts_text_table *table);

/* Writes the remaining rows; a table without rows still shows its header. */
int ts_text_table_finish(struct ts_text_table *table, struct ts_error *err);

/*
 * Appends text made safe for a terminal: control characters as \n, \t, \x1b, invalid UTF-8 as
 * U+FFFD.
 */
void ts_text_append_shown(struct ts_text *out, const char *text, size_t length);

/* Columns of a text: one per character. */
size_t ts_text_shown_width(const char *text, size_t length);

#endif
