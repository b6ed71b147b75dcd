/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out text tables. A character counts as one column. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "cli/common/cli_output.h"
#include "cli/common/fit_names.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"

/* Initial widths come from this many rows. */
#define BLOCK_ROWS 1000
#define GAP 2
/*
 * Columns of numbers are left out until the widest text has a third of the line, within these
 * limits, and each other text as many columns as it needs up to OTHER_TEXT.
 */
#define WIDEST_SHARE 3
#define WIDEST_LEAST 20
#define WIDEST_MOST 36
#define OTHER_TEXT 12

#define HEADER_ON "\033[1m"
#define HEADER_OFF "\033[0m"
#define ELLIPSIS "\xe2\x80\xa6"

void ts_text_table_init(struct ts_text_table *table)
{
	*table = (struct ts_text_table){
		.line_width = ts_terminal_stdout_width(),
		.colour = ts_terminal_colour(),
	};
}

void ts_text_table_release(struct ts_text_table *table)
{
	ts_text_release(&table->cells);
	ts_text_release(&table->below);
}

size_t ts_text_shown_width(const char *text, size_t length)
{
	size_t width = 0;

	/* Skips UTF-8 continuation bytes. */
	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

void ts_text_table_add_column(struct ts_text_table *table, const char *title, bool right)
{
	if (table->column_count == TS_TEXT_TABLE_COLUMNS)
		return;
	table->columns[table->column_count++] = (struct ts_text_table_column){
		.title = title,
		.right = right,
		.width = ts_text_shown_width(title, strlen(title)),
	};
}

void ts_text_table_set_detail(struct ts_text_table *table, unsigned int detail)
{
	table->columns[table->column_count - 1].detail = detail;
}

void ts_text_table_set_limit(struct ts_text_table *table, size_t limit)
{
	table->columns[table->column_count - 1].limit = limit;
}

void ts_text_table_set_prose(struct ts_text_table *table)
{
	table->columns[table->column_count - 1].is_prose = true;
}

static void append_escape(struct ts_text *out, uint32_t control)
{
	if (control == '\n')
		ts_text_append_str(out, "\\n");
	else if (control == '\t')
		ts_text_append_str(out, "\\t");
	else
		ts_text_printf(out, control < 0x100 ? "\\x%02x" : "\\u%04x", control);
}

void ts_text_append_shown(struct ts_text *out, const char *text, size_t length)
{
	const char *end = text + length, *plain = text;

	while (text < end) {
		bool valid;
		size_t bytes;

		while (plain < end && *plain >= ' ' && *plain < 0x7f)
			plain++;
		ts_text_append(out, text, (size_t)(plain - text));
		if (plain == end)
			return;
		text = plain;
		bytes = ts_utf8_step(text, end, &valid);
		if (!valid)
			ts_text_append_str(out, TS_UTF8_REPLACEMENT);
		else if (ts_utf8_is_control(ts_utf8_decode(text, bytes)))
			append_escape(out, ts_utf8_decode(text, bytes));
		else
			ts_text_append(out, text, bytes);
		text += bytes;
		plain = text;
	}
}

void ts_text_table_cell(struct ts_text_table *table, const char *text, size_t length)
{
	struct ts_text_table_column *column = &table->columns[table->column++];
	size_t begin = table->cells.length, width;

	ts_text_append_shown(&table->cells, text, length);
	ts_text_append_char(&table->cells, '\0');
	if (table->cells.failed)
		return;
	width = ts_text_shown_width(table->cells.data + begin, table->cells.length - begin - 1);
	column->width = TS_MAX(column->width, width);
	column->has_values |= width && strcmp(table->cells.data + begin, "-") != 0;
}

void ts_text_table_str(struct ts_text_table *table, const char *text)
{
	ts_text_table_cell(table, text, strlen(text));
}

void ts_text_table_count(struct ts_text_table *table, uint64_t count)
{
	char text[TS_FORMAT_BYTES];

	ts_text_table_str(table, ts_format_count(text, sizeof(text), (int64_t)count));
}

static void append_spaces(struct ts_text *out, size_t count)
{
	while (count--)
		ts_text_append_char(out, ' ');
}

void ts_text_append_wrapped(struct ts_text *out, const char *text, size_t column, size_t indent,
			    size_t width)
{
	bool is_first = true;

	if (!width) {
		ts_text_append_shown(out, text, strlen(text));
		return;
	}
	while (*text) {
		size_t length = strcspn(text, " ");
		size_t shown = ts_text_shown_width(text, length);

		if (!is_first && column + 1 + shown > width) {
			ts_text_append_char(out, '\n');
			append_spaces(out, indent);
			column = indent;
		} else if (!is_first) {
			ts_text_append_char(out, ' ');
			column++;
		}
		ts_text_append_shown(out, text, length);
		column += shown;
		text += length;
		text += strspn(text, " ");
		is_first = false;
	}
}

void ts_text_table_below(struct ts_text_table *table, const char *text, size_t length)
{
	ts_text_append_shown(&table->below, text, length);
	ts_text_append_char(&table->below, '\n');
}

void ts_text_table_below_wrapped(struct ts_text_table *table, const char *text, size_t indent)
{
	append_spaces(&table->below, indent);
	ts_text_append_wrapped(&table->below, text, indent, 2 * indent, table->line_width);
	ts_text_append_char(&table->below, '\n');
}

/* Truncates the text to `width` columns, including an ellipsis. */
static void append_cut(struct ts_text *out, const char *text, size_t width)
{
	size_t shown = 0;

	for (; *text && width > 1; text++) {
		bool begins = ((unsigned char)*text & 0xc0) != 0x80;

		if (begins && ++shown == width)
			break;
		ts_text_append_char(out, *text);
	}
	ts_text_append_str(out, ELLIPSIS);
}

/* ---- layout ---- */

static bool is_text(const struct ts_text_table_column *column)
{
	return !column->right && !column->left_out;
}

static void allot_all(struct ts_text_table *table)
{
	for (size_t i = 0; i < table->column_count; i++) {
		struct ts_text_table_column *column = &table->columns[i];

		column->allotted = column->limit ? TS_MIN(column->width, column->limit)
						 : column->width;
	}
}

/* The widest text that has more than `least` columns, or NULL. */
static struct ts_text_table_column *widest_text(struct ts_text_table *table, size_t least)
{
	struct ts_text_table_column *found = NULL;

	for (size_t i = 0; i < table->column_count; i++) {
		struct ts_text_table_column *column = &table->columns[i];

		if (is_text(column) && column->allotted > least &&
		    (!found || column->allotted > found->allotted))
			found = column;
	}
	return found;
}

/* Does the table fit if texts are shortened, but not beyond recognition? */
static bool fits_line(struct ts_text_table *table)
{
	const struct ts_text_table_column *widest = widest_text(table, 0);
	size_t share = TS_MIN(TS_MAX(table->line_width / WIDEST_SHARE, (size_t)WIDEST_LEAST),
			      (size_t)WIDEST_MOST);
	size_t used = 0;

	/* The end of a prose is lost, so it matters more than other columns. */
	if (widest && widest->is_prose)
		share = table->line_width * 2 / 3;

	for (size_t i = 0; i < table->column_count; i++) {
		const struct ts_text_table_column *column = &table->columns[i];
		size_t width = column->allotted;

		if (column->left_out)
			continue;
		if (!column->right)
			width = TS_MIN(width, column == widest ? share : (size_t)OTHER_TEXT);
		used += width + (used ? GAP : 0);
	}
	return used <= table->line_width;
}

/* The column to leave out next, or NULL. The first one names the row. */
static struct ts_text_table_column *least_important(struct ts_text_table *table)
{
	struct ts_text_table_column *found = NULL;

	for (size_t i = 0; i < table->column_count; i++) {
		struct ts_text_table_column *column = &table->columns[i];

		if (!column->left_out && (column->detail || (column->right && i > 0)) &&
		    (!found || column->detail >= found->detail))
			found = column;
	}
	return found;
}

/* Decided once, with the first rows: the header stays true. */
static void choose_columns(struct ts_text_table *table)
{
	struct ts_text_table_column *least;

	allot_all(table);
	if (!table->line_width || table->bare || fits_line(table))
		return;
	for (size_t i = 1; table->rows && i < table->column_count; i++)
		table->columns[i].left_out = !table->columns[i].has_values;
	while (!fits_line(table) && (least = least_important(table))) {
		least->left_out = true;
		for (size_t i = 0; least->detail && i < table->column_count; i++)
			table->columns[i].left_out |= table->columns[i].detail == least->detail;
	}
}

/* Divides the line among the columns: the widest texts are shortened first. */
static void divide_line(struct ts_text_table *table)
{
	struct ts_text_table_column *cut;
	size_t used = 0;

	allot_all(table);
	for (size_t i = 0; i < table->column_count; i++)
		used += table->columns[i].left_out ? 0 : table->columns[i].allotted + GAP;
	while (table->line_width && used > table->line_width + GAP &&
	       (cut = widest_text(table, TS_FIT_NAMES_MINIMUM))) {
		cut->allotted--;
		used--;
	}
}

/* ---- writing ---- */

/* Cells that wait to be written, row by row; behind each row its lines below. */
struct block {
	const char **cells;
	struct ts_arena texts; /* shortened ones */
};

/* Shortens the texts of a column to its width. */
static int fit_column(const struct ts_text_table *table, struct block *block, size_t index)
{
	const struct ts_text_table_column *column = &table->columns[index];
	size_t step = table->column_count + 1;
	TS_AUTO_FREE const char **names = NULL;
	int rc;

	if (!is_text(column) || column->is_prose || column->allotted >= column->width ||
	    column->allotted < TS_FIT_NAMES_MINIMUM)
		return TS_OK;
	names = ts_alloc_array(table->rows, sizeof(*names));
	if (!names)
		return TS_ENOMEM;
	for (size_t row = 0; row < table->rows; row++)
		names[row] = block->cells[row * step + index];
	rc = ts_fit_names(&block->texts, names, table->rows, column->allotted);
	for (size_t row = 0; !rc && row < table->rows; row++)
		block->cells[row * step + index] = names[row];
	return rc;
}

/* ---- lines below rows ---- */

/* A line that is too long: blanks, a name, and perhaps " (file.c:12)" or " (libc.so.6)". */
struct long_line {
	size_t indent, length; /* bytes of the blanks, of all */
	size_t name;           /* bytes of the name; the location follows */
};

/* Finds the next line in `*text`, moves behind it, and says whether it is too long. */
static bool next_line(const struct ts_text_table *table, const char **text, struct long_line *line)
{
	const char *begin = *text, *at;

	line->length = strcspn(begin, "\n");
	line->indent = strspn(begin, " ");
	line->name = line->length - line->indent;
	*text += line->length + (begin[line->length] == '\n');
	if (ts_text_shown_width(begin, line->length) <= table->line_width)
		return false;
	if (begin[line->length - 1] != ')')
		return true;
	/* Arguments of a call, and what they contain, are part of the name. */
	for (at = begin + line->length - 1; at > begin + line->indent + 1; at--) {
		if (at[-1] == '(' && at[-2] == ' ')
			line->name = (size_t)(at - 2 - (begin + line->indent));
		if (at[-1] == '(' || at[-1] == ')')
			break;
	}
	return true;
}

static size_t location_bytes(const struct long_line *line)
{
	return line->length - line->indent - line->name;
}

/* Copies the names of long lines into the arena, and says how many columns they may have. */
static int collect_names(const struct ts_text_table *table, struct block *block,
			 const char ***ret_names, size_t *ret_count, size_t *ret_width)
{
	size_t step = table->column_count + 1, count = 0, capacity = 0, around = 0;

	for (size_t row = 0; row < table->rows; row++) {
		const char *text = block->cells[row * step + table->column_count], *begin = text;
		struct long_line line;

		for (; *text; begin = text) {
			if (!next_line(table, &text, &line))
				continue;
			if (ts_grow_array((void **)ret_names, &capacity, count + 1,
					  sizeof(**ret_names)))
				return TS_ENOMEM;
			around = TS_MAX(around, line.indent + location_bytes(&line));
			(*ret_names)[count] =
				ts_arena_strdup_len(&block->texts, begin + line.indent, line.name);
			if (!(*ret_names)[count++])
				return TS_ENOMEM;
		}
	}
	*ret_count = count;
	*ret_width = TS_MAX(table->line_width - TS_MIN(table->line_width, around),
			    (size_t)TS_FIT_NAMES_MINIMUM);
	return TS_OK;
}

/* Shortens the names in lines below rows that are too long. */
static int fit_below(const struct ts_text_table *table, struct block *block)
{
	size_t step = table->column_count + 1, count = 0, width = 0;
	TS_AUTO_FREE const char **names = NULL;
	TS_SCOPED(ts_text) lines = { 0 };
	const char **name;
	int rc;

	if (!table->line_width)
		return TS_OK;
	rc = collect_names(table, block, &names, &count, &width);
	if (!rc && count)
		rc = ts_fit_names(&block->texts, names, count, width);
	if (rc || !count)
		return rc;
	name = names;
	for (size_t row = 0; row < table->rows; row++) {
		const char **cell = &block->cells[row * step + table->column_count];
		const char *text = *cell, *begin = text;
		struct long_line line;

		ts_text_clear(&lines);
		for (; *text; begin = text) {
			if (!next_line(table, &text, &line)) {
				ts_text_append(&lines, begin, (size_t)(text - begin));
				continue;
			}
			ts_text_append(&lines, begin, line.indent);
			ts_text_append_str(&lines, *name++);
			ts_text_append(&lines, begin + line.indent + line.name,
				       (size_t)(text - begin) - line.indent - line.name);
		}
		*cell = lines.failed ? NULL
				     : ts_arena_strdup_len(&block->texts, ts_text_cstr(&lines),
							   lines.length);
		if (!*cell)
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int take_cells(const struct ts_text_table *table, struct block *block)
{
	const char *text = table->cells.data, **cell;
	int rc = TS_OK;

	cell = block->cells =
		ts_alloc_array(table->rows * (table->column_count + 1), sizeof(*block->cells));
	if (!cell)
		return TS_ENOMEM;
	for (size_t row = 0; row < table->rows; row++) {
		for (size_t i = 0; i <= table->column_count; i++) {
			*cell++ = text;
			text += strlen(text) + 1;
		}
	}
	for (size_t i = 0; !rc && i < table->column_count; i++)
		rc = fit_column(table, block, i);
	return rc ? rc : fit_below(table, block);
}

/* Appends a padded cell; returns the columns left in the line. */
static size_t append_cell(struct ts_text *out, const struct ts_text_table *table, size_t index,
			  const char *text, size_t left)
{
	const struct ts_text_table_column *column = &table->columns[index];
	size_t allotted = TS_MIN(column->allotted, left),
	       width = ts_text_shown_width(text, strlen(text));

	if (column->left_out || allotted == 0)
		return left;
	if (column->right && width < allotted)
		append_spaces(out, allotted - width);
	if (width > allotted)
		append_cut(out, text, allotted);
	else
		ts_text_append_str(out, text);
	if (!column->right && width < allotted)
		append_spaces(out, allotted - width);
	left -= allotted;
	append_spaces(out, TS_MIN((size_t)GAP, left));
	return left > GAP ? left - GAP : 0;
}

static void trim_line(struct ts_text *out, size_t begin)
{
	while (out->length > begin && out->data[out->length - 1] == ' ')
		out->length--;
	ts_text_append_char(out, '\n');
}

static void append_header(struct ts_text *out, const struct ts_text_table *table)
{
	size_t begin, left = table->line_width ? table->line_width : SIZE_MAX;

	if (table->colour)
		ts_text_append_str(out, HEADER_ON);
	begin = out->length;
	for (size_t i = 0; i < table->column_count; i++)
		left = append_cell(out, table, i, table->columns[i].title, left);
	trim_line(out, begin);
	if (table->colour) {
		out->length -= out->failed ? 0 : 1;
		ts_text_append_str(out, HEADER_OFF "\n");
	}
}

static void append_rows(struct ts_text *out, const struct ts_text_table *table, const char **cell)
{
	for (size_t row = 0; row < table->rows; row++) {
		size_t begin = out->length, left = table->line_width ? table->line_width : SIZE_MAX;

		for (size_t i = 0; i < table->column_count; i++)
			left = append_cell(out, table, i, *cell++, left);
		trim_line(out, begin);
		ts_text_append_str(out, *cell++);
	}
}

static void write_rows(struct ts_text_table *table)
{
	struct block block = { 0 };

	if (!table->header_shown)
		choose_columns(table);
	divide_line(table);
	if (!table->header_shown && !table->bare)
		append_header(ts_stdout(), table);
	table->header_shown = true;
	if (take_cells(table, &block))
		table->cells.failed = true;
	else
		append_rows(ts_stdout(), table, block.cells);
	free(block.cells);
	ts_arena_release(&block.texts);
	table->cells.length = 0;
	table->rows = 0;
}

void ts_text_table_append_left_out(struct ts_text *out, const char *names, size_t line_width)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_text_printf(&text, "not shown at %zu columns: %s (use --width 0 or --json)", line_width,
		       names);
	ts_text_append_wrapped(out, ts_text_cstr(&text), 0, 2, line_width);
	ts_text_append_char(out, '\n');
}

static void append_left_out(struct ts_text *out, const struct ts_text_table *table)
{
	TS_SCOPED(ts_text) names = { 0 };

	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].left_out)
			ts_text_printf(&names, "%s%s", names.length ? ", " : "",
				       table->columns[i].title);
	if (names.length && table->has_rows)
		ts_text_table_append_left_out(out, ts_text_cstr(&names), table->line_width);
}

void ts_text_table_end_row(struct ts_text_table *table)
{
	while (table->column < table->column_count)
		ts_text_table_str(table, "");
	ts_text_append(&table->cells, ts_text_cstr(&table->below), table->below.length);
	ts_text_append_char(&table->cells, '\0');
	table->cells.failed |= table->below.failed;
	ts_text_clear(&table->below);
	table->column = 0;
	table->has_rows = true;
	table->rows++;
	if (table->rows == BLOCK_ROWS && !table->cells.failed)
		write_rows(table);
}

int ts_text_table_finish(struct ts_text_table *table, struct ts_error *err)
{
	if (table->cells.failed)
		return ts_error_set(err, TS_ENOMEM, "no memory for a table of text");
	write_rows(table);
	ts_text_append_str(ts_stdout(), table->footer ? table->footer : "");
	append_left_out(ts_stdout(), table);
	if (table->cells.failed)
		return ts_error_set(err, TS_ENOMEM, "no memory for a table of text");
	return TS_OK;
}
