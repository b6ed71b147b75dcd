/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text tables on standard output: aligned columns, right-aligned numbers, a header, which is
 * highlighted on a terminal. A table that is wider than the line (the terminal's or --width; there
 * is no limit elsewhere) leaves out columns of numbers, and says which; texts stay, shortened if
 * need be (fit_names.h). Memory is bounded: widths come from the first rows and only grow later.
 * Control characters and invalid UTF-8 in cells are escaped.
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
	bool right; /* right-aligned, for numbers */
	/*
	 * On a narrow line columns with the highest detail are left out first, all of the same
	 * detail at once. 0: numbers go one by one from the right after all others, texts stay.
	 * Columns without values go before all.
	 */
	unsigned int detail;
	size_t limit;    /* of the width of a text; 0: none */
	bool is_prose;   /* a text that is cut at its end, not shortened like a name */
	size_t width;    /* widest cell so far */
	size_t allotted; /* columns it gets in a line */
	bool has_values; /* a cell is neither empty nor "-" */
	bool left_out;
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
	bool has_rows;
	bool bare;          /* no header */
	const char *footer; /* lines after the rows; NULL: none */
};

/* Add all columns before the first cell. */
void ts_text_table_init(struct ts_text_table *table);
void ts_text_table_release(struct ts_text_table *table);
void ts_text_table_add_column(struct ts_text_table *table, const char *title, bool right);

/* Of the column that was added last; see struct ts_text_table_column. */
void ts_text_table_set_detail(struct ts_text_table *table, unsigned int detail);
void ts_text_table_set_limit(struct ts_text_table *table, size_t limit);
void ts_text_table_set_prose(struct ts_text_table *table);

/* Cells from left to right, row after row. */
void ts_text_table_cell(struct ts_text_table *table, const char *text, size_t length);
void ts_text_table_str(struct ts_text_table *table, const char *text);
void ts_text_table_count(struct ts_text_table *table, uint64_t count); /* "1,234" */

/*
 * A line below the current row: a name, which is shortened like those in the table, but not a
 * location at its end, " (file.c:12)"; or a sentence, which is wrapped.
 */
void ts_text_table_below(struct ts_text_table *table, const char *text, size_t length);
void ts_text_table_below_wrapped(struct ts_text_table *table, const char *text, size_t indent);

/* Call after each row: writes blocks of rows to ts_stdout(), which the caller drains. */
void ts_text_table_end_row(struct ts_text_table *table);

/*
 * Writes the remaining rows, and a line with the names of columns that were left out. A table
 * without rows still shows its header.
 */
int ts_text_table_finish(struct ts_text_table *table, struct ts_error *err);

/* That line: "not shown at 80 columns: min, max, p99 (use --width 0 or --json)". */
void ts_text_table_append_left_out(struct ts_text *out, const char *names, size_t line_width);

/*
 * Appends text made safe for a terminal: control characters as \n, \t, \x1b, invalid UTF-8 as
 * U+FFFD.
 */
void ts_text_append_shown(struct ts_text *out, const char *text, size_t length);

/*
 * Appends text wrapped at blanks into lines of at most `width` columns, made safe as above. The
 * cursor is at column `column`; further lines begin with `indent` blanks. 0: no limit.
 */
void ts_text_append_wrapped(struct ts_text *out, const char *text, size_t column, size_t indent,
			    size_t width);

/* Columns of a text: one per character. */
size_t ts_text_shown_width(const char *text, size_t length);

#endif
