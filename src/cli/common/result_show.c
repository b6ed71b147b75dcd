/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints results of analyses. JSON and CSV are exact and complete; text is rounded, and long lists
 * are truncated.
 */
#include "cli/common/result_show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/result_json.h"
#include "base/ns.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"

/* Kernel names can have thousands of characters: only the last column has no limit. */
#define NAME_COLUMNS 80
#define BELOW_INDENT 2
#define HEADING_ON "\033[1m"
#define HEADING_OFF "\033[0m"

/* ---- text: one cell ---- */

/* Is the integer an identifier (a rank, a stream)? Then its digits are not grouped. */
static bool is_name(const char *key)
{
	static const char *const entities[] = { "rank",        "device", "stream",   "thread",
						"pid",         "tid",    "step",     "row",
						"id",          "number", "event",    "instance",
						"correlation", "graph",  "sequence", "collective",
						"fastest",     "slowest" };
	const char *last = strrchr(key, '_');

	last = last ? last + 1 : key;
	for (size_t i = 0; i < TS_ARRAY_SIZE(entities); i++) {
		if (!strcmp(entities[i], last))
			return true;
	}
	return false;
}

/* Four significant digits. */
static void append_real(struct ts_text *out, double value)
{
	double size = fabs(value);
	char count[TS_FORMAT_BYTES];

	if (value == 0)
		ts_text_append_char(out, '0');
	else if (size >= 1e15 || size < 1e-3 || isinf(value))
		ts_text_printf(out, "%.4g", value);
	else if (size >= 1000)
		ts_text_append_str(out,
				   ts_format_count(count, sizeof(count), (int64_t)round(value)));
	else
		ts_text_printf(out, "%.*f", size >= 100 ? 1 : size >= 10 ? 2 : 3, value);
}

/* To the ns as in `view`, so that it can be found there. */
static void append_instant(struct ts_text *out, int64_t instant, int64_t start)
{
	char text[TS_FORMAT_BYTES];

	ts_text_append_str(out,
			   ts_format_instant_ns(text, sizeof(text), ts_ns_between(start, instant)));
}

static void append_bytes(struct ts_text *out, int64_t bytes)
{
	char text[TS_FORMAT_BYTES];

	if (bytes < 0)
		ts_text_append_char(out, '-');
	ts_text_append_str(out, ts_format_bytes(text, sizeof(text),
						bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes));
}

static void append_text_cell(struct ts_text *out, const struct ts_result_table *table,
			     size_t column, const struct ts_cell *cell)
{
	char text[TS_FORMAT_BYTES];

	switch (table->columns[column].type) {
	case TS_CELL_TEXT:
	case TS_CELL_AMOUNT:
		ts_text_append_str(out, cell->text);
		break;
	case TS_CELL_INTEGER:
		if (is_name(table->columns[column].key))
			ts_text_append_int(out, cell->integer);
		else
			ts_text_append_str(out, ts_format_count(text, sizeof(text), cell->integer));
		break;
	case TS_CELL_REAL:
		append_real(out, cell->real);
		break;
	case TS_CELL_TIME:
		ts_text_append_str(out, ts_format_duration_ns(text, sizeof(text), cell->integer));
		break;
	case TS_CELL_INSTANT:
		append_instant(out, cell->integer, table->result->start);
		break;
	case TS_CELL_PERCENT:
		ts_text_printf(out, "%.2f %%", cell->real);
		break;
	case TS_CELL_BYTES:
		append_bytes(out, cell->integer);
		break;
	case TS_CELL_BOOL:
		ts_text_append_str(out, cell->integer ? "yes" : "no");
		break;
	}
}

/* ---- text: tables ---- */

static bool is_below(const struct ts_result_table *table, size_t column)
{
	return column < 64 && table->below >> column & 1;
}

/* Is it one of the grid's columns? */
static bool is_column(const struct ts_result_table *table, size_t column)
{
	return table->columns[column].title && !is_below(table, column);
}

/* The last column that text shows; column_count where it shows none. */
static size_t last_shown(const struct ts_result_table *table)
{
	size_t last = table->column_count;

	for (size_t i = 0; i < table->column_count; i++) {
		if (is_column(table, i))
			last = i;
	}
	return last;
}

/* "launched at:", then one line for each part of the text; a single part is on the same line. */
static void show_below(struct ts_text_table *grid, const struct ts_result_table *table,
		       size_t column, const char *value, struct ts_text *text)
{
	const char *end = strstr(value, table->divider);

	ts_text_clear(text);
	ts_text_printf(text, "%s:%s%s", table->columns[column].title, end ? "" : " ",
		       end ? "" : value);
	ts_text_table_below_wrapped(grid, ts_text_cstr(text), BELOW_INDENT);
	if (!end)
		return;
	for (; value; value = end ? end + strlen(table->divider) : NULL) {
		end = strstr(value, table->divider);
		ts_text_clear(text);
		ts_text_printf(text, "%*s", 2 * BELOW_INDENT, "");
		ts_text_append(text, value, end ? (size_t)(end - value) : strlen(value));
		ts_text_table_below(grid, ts_text_cstr(text), text->length);
	}
}

static void show_row(struct ts_text_table *grid, const struct ts_result_table *table, size_t row,
		     struct ts_text *text)
{
	for (size_t i = 0; i < table->column_count; i++) {
		const struct ts_cell *cell = &table->cells[row * table->column_count + i];

		if (is_below(table, i) && !cell->none)
			show_below(grid, table, i, cell->text, text);
		if (!is_column(table, i))
			continue;
		ts_text_clear(text);
		if (cell->none)
			ts_text_append_char(text, '-');
		else
			append_text_cell(text, table, i, cell);
		ts_text_table_cell(grid, text->data ? text->data : "", text->length);
	}
	ts_text_table_end_row(grid);
}

static size_t shown_rows(const struct ts_result_table *table, int64_t top)
{
	size_t rows = ts_result_rows(table), most = top > 0 ? (size_t)top : table->shown_rows;

	return most ? TS_MIN(rows, most) : rows;
}

/* The number of a column in the table's list of details, from its end; 0: not in the list. */
static unsigned int detail_of(const struct ts_result_table *table, const char *key)
{
	const char *at = table->details ? table->details : "";
	unsigned int groups = 0, found = 0;

	while (*at) {
		size_t length = strcspn(at, " +");

		if (!strncmp(at, key, length) && !key[length])
			found = groups + 1;
		groups += at[length] != '+';
		at += length + (at[length] != '\0');
	}
	return found ? groups + 1 - found : 0;
}

static void add_columns(struct ts_text_table *grid, const struct ts_result_table *table)
{
	size_t last = last_shown(table);

	ts_text_table_init(grid);
	for (size_t i = 0; i < table->column_count; i++) {
		const struct ts_result_column *column = &table->columns[i];

		if (!is_column(table, i))
			continue;
		ts_text_table_add_column(grid, column->title, column->type != TS_CELL_TEXT);
		ts_text_table_set_detail(grid, detail_of(table, column->key));
		ts_text_table_set_limit(grid, i == last ? 0 : NAME_COLUMNS);
	}
}

#define FOOTER_BYTES (TS_FORMAT_COUNTED_BYTES + 64)

/* Says how many rows are not shown; NULL: none. */
static const char *footer_of(char *buffer, size_t more)
{
	snprintf(buffer, FOOTER_BYTES, "... %s (--top N, or --json)\n",
		 TS_COUNTED(more, "more row"));
	return more ? buffer : NULL;
}

static int show_table(const struct ts_result_table *table, int64_t top, struct ts_error *err)
{
	TS_SCOPED(ts_text_table) grid = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	size_t rows = shown_rows(table, top);
	char footer[FOOTER_BYTES];
	int rc = TS_OK;

	add_columns(&grid, table);
	for (size_t row = 0; !rc && row < rows; row++) {
		show_row(&grid, table, row, &text);
		rc = ts_stdout_drain(err);
	}
	grid.footer = footer_of(footer, ts_result_rows(table) - rows + table->left_out);
	return rc ? rc : ts_text_table_finish(&grid, err);
}

/* ---- text: paragraphs ---- */

#define LIST_WIDTH 100 /* without a terminal */
#define LIST_LEAST 40
#define LIST_INDENT 3

/*
 * "1. could save at most 501.7 ms (41 % of the window)", then each text as a paragraph. Without
 * numbers the first text is on the line of "1.". A yes before a number qualifies it ("at most").
 */
static void show_paragraph(const struct ts_result_table *table, size_t row, size_t width)
{
	const struct ts_cell *cells = &table->cells[row * table->column_count];
	struct ts_text *out = ts_stdout();
	bool has_numbers = false, has_others = false;
	const char *qualifier = NULL;

	for (size_t i = 0; i < table->column_count; i++) {
		if (!table->columns[i].title || table->columns[i].type == TS_CELL_TEXT ||
		    cells[i].none)
			continue;
		if (table->columns[i].type == TS_CELL_BOOL) {
			qualifier = cells[i].integer ? table->columns[i].title : NULL;
			continue;
		}
		has_numbers |= i > 0;
		if (table->columns[i].type == TS_CELL_PERCENT) {
			ts_text_printf(out, " (%.*f %% %s)", cells[i].real < 10 ? 1 : 0,
				       cells[i].real, table->columns[i].title);
			continue;
		}
		if (i > 0) {
			ts_text_printf(out, "%s %s ", has_others ? "," : "",
				       table->columns[i].title);
			ts_text_printf(out, "%s%s", qualifier ? qualifier : "",
				       qualifier ? " " : "");
			qualifier = NULL;
			has_others = true;
		}
		append_text_cell(out, table, i, &cells[i]);
		ts_text_append_str(out, i == 0 ? "." : "");
	}
	for (size_t i = 0; i < table->column_count; i++) {
		TS_SCOPED(ts_text) line = { 0 };

		if (table->columns[i].type != TS_CELL_TEXT || cells[i].none)
			continue;
		ts_text_printf(&line, "%s: %s", table->columns[i].title, cells[i].text);
		if (has_numbers)
			ts_text_printf(out, "\n%*s", LIST_INDENT, "");
		else
			ts_text_append_char(out, ' ');
		has_numbers = true;
		ts_text_append_wrapped(out, ts_text_cstr(&line), LIST_INDENT, LIST_INDENT,
				       table->commands >> i & 1 ? 0 : width);
	}
	ts_text_append_char(out, '\n');
}

static int show_list_table(const struct ts_result_table *table, int64_t top, struct ts_error *err)
{
	size_t width = ts_terminal_stdout_width(), rows = shown_rows(table, top);
	char buffer[FOOTER_BYTES];
	const char *footer = footer_of(buffer, ts_result_rows(table) - rows);
	int rc = TS_OK;

	width = width ? TS_MAX(width, (size_t)LIST_LEAST) : LIST_WIDTH;
	for (size_t row = 0; !rc && row < rows; row++) {
		ts_text_append_str(ts_stdout(), row ? "\n" : "");
		show_paragraph(table, row, width);
		rc = ts_stdout_drain(err);
	}
	ts_text_append_str(ts_stdout(), footer ? footer : "");
	return rc;
}

/* ---- text: a complete result ---- */

void ts_result_show_heading(const char *name, const char *text)
{
	bool colour = ts_terminal_colour();
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, colour ? HEADING_ON : "");
	/* Replaces underscores of keys by blanks. */
	for (; *name; name++)
		ts_text_append_char(out, *name == '_' ? ' ' : *name);
	ts_text_append_str(out, text ? ": " : ":");
	ts_text_append_str(out, text ? text : "");
	ts_text_append_str(out, colour ? HEADING_OFF "\n" : "\n");
}

static bool has_text(const struct ts_result_table *table)
{
	return last_shown(table) < table->column_count;
}

/* Where notes say what is missing, a header without rows says nothing. */
static bool is_shown(const struct ts_result_table *table)
{
	return has_text(table) && !(table->result->notes && ts_result_is_empty(table));
}

/* The next table that text shows, or NULL. */
static const struct ts_result_table *next_shown(const struct ts_result_table *table)
{
	while (table && !is_shown(table))
		table = table->next;
	return table;
}

/* Then each has a heading, also if the others are empty. */
static bool has_several(const struct ts_result *result)
{
	size_t count = 0;

	for (const struct ts_result_table *table = result->tables; table; table = table->next)
		count += has_text(table);
	return count > 1;
}

#define NOTE_INDENT 2

static int show_notes(const struct ts_result *result, struct ts_error *err)
{
	int rc = TS_OK;

	for (const struct ts_result_note *note = result->notes; !rc && note; note = note->next) {
		ts_text_append_wrapped(ts_stdout(), note->text, 0, NOTE_INDENT,
				       ts_terminal_stdout_width());
		ts_text_append_char(ts_stdout(), '\n');
		rc = ts_stdout_drain(err);
	}
	return rc;
}

int ts_result_show_text(const struct ts_result *result, int64_t top, struct ts_error *err)
{
	const struct ts_result_table *table = next_shown(result->tables), *next;
	bool several = has_several(result);
	int rc = TS_OK;

	for (; !rc && table; table = next) {
		next = next_shown(table->next);
		if (several)
			ts_result_show_heading(table->name, NULL);
		rc = table->as_list ? show_list_table(table, top, err)
				    : show_table(table, top, err);
		/* An empty list has no lines. */
		if (next || (result->notes && (!table->as_list || ts_result_rows(table))))
			ts_text_append_char(ts_stdout(), '\n');
	}
	return rc ? rc : show_notes(result, err);
}

void ts_result_print_notes(const struct ts_result *result)
{
	TS_SCOPED(ts_text) text = { 0 };

	for (const struct ts_result_note *note = result->notes; note; note = note->next) {
		ts_text_clear(&text);
		ts_text_append_shown(&text, note->text, strlen(note->text));
		ts_report_note("%s", ts_text_cstr(&text));
	}
}

/* ---- JSON ---- */

int ts_result_show_json(const struct ts_result *result, struct ts_error *err)
{
	return ts_result_append_json(result, ts_stdout(), ts_stdout_drain, err);
}

/* ---- CSV ---- */

/* RFC 4180: quotes values that contain a comma, a quote or a line break; doubles inner quotes. */
static void append_csv_text(struct ts_text *out, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		ts_text_append_str(out, text);
		return;
	}
	ts_text_append_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			ts_text_append_char(out, '"');
		ts_text_append_char(out, *text);
	}
	ts_text_append_char(out, '"');
}

static void append_csv_cell(struct ts_text *out, const struct ts_result_column *column,
			    const struct ts_cell *cell)
{
	if (ts_cell_is_null(cell, column->type))
		return;
	if (ts_cell_is_text(column->type))
		append_csv_text(out, cell->text);
	else
		ts_cell_append_value(out, cell, column->type);
}

int ts_result_show_csv(const struct ts_result_table *table, struct ts_error *err)
{
	size_t count = table->column_count, rows = ts_result_rows(table);
	struct ts_text *out = ts_stdout();
	int rc = TS_OK;

	for (size_t i = 0; i < count; i++) {
		ts_text_append_str(out, i ? "," : "");
		append_csv_text(out, table->columns[i].key);
	}
	ts_text_append_char(out, '\n');
	for (size_t row = 0; !rc && row < rows; row++) {
		for (size_t i = 0; i < count; i++) {
			ts_text_append_str(out, i ? "," : "");
			append_csv_cell(out, &table->columns[i], &table->cells[row * count + i]);
		}
		ts_text_append_char(out, '\n');
		rc = ts_stdout_drain(err);
	}
	return rc;
}

const struct ts_result_table *ts_result_choose_table(const struct ts_result *result,
						     const char *name)
{
	const struct ts_result_table *table = result->tables;
	TS_SCOPED(ts_text) names = { 0 };
	struct ts_nearest nearest;

	if (!name)
		return table;
	ts_nearest_init(&nearest, name);
	for (; table; table = table->next) {
		if (!strcmp(table->name, name))
			return table;
		ts_nearest_offer(&nearest, table->name);
		ts_text_printf(&names, "%s%s", names.length ? ", " : "", table->name);
	}
	if (nearest.best)
		ts_report_usage("there is no table '%s'; did you mean '%s'?", name, nearest.best);
	else
		ts_report_usage("there is no table '%s'; the tables are %s", name,
				ts_text_cstr(&names));
	return NULL;
}
