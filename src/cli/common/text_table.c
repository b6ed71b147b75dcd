/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out text tables. A character counts as one column. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/common/cli_output.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"

/* Initial widths come from this many rows. */
#define BLOCK_ROWS 1000
#define GAP 2
/* On a narrow terminal: minimum width of a text column, and share (1/3) of the last column. */
#define MIN_ALLOTTED 6
#define LAST_SHARE 3

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

/*
 * Control characters of ASCII, and of Latin-1 (U+0080 to U+009F), which some terminals interpret.
 */
static bool is_control(const char *text, size_t bytes)
{
	unsigned char first = (unsigned char)text[0];

	return first < ' ' || first == 0x7f ||
	       (bytes == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0);
}

static void append_escape(struct ts_text *out, unsigned char byte)
{
	if (byte == '\n')
		ts_text_append_str(out, "\\n");
	else if (byte == '\t')
		ts_text_append_str(out, "\\t");
	else
		ts_text_printf(out, "\\x%02x", byte);
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
		else if (is_control(text, bytes))
			append_escape(out, (unsigned char)text[bytes - 1]);
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

void ts_text_table_below(struct ts_text_table *table, const char *text, size_t length)
{
	ts_text_append_shown(&table->below, text, length);
	ts_text_append_char(&table->below, '\n');
}

static void append_spaces(struct ts_text *out, size_t count)
{
	while (count--)
		ts_text_append_char(out, ' ');
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

/* The widest text column that may be narrowed, except the last column; or NULL. */
static struct ts_text_table_column *widest(struct ts_text_table *table)
{
	struct ts_text_table_column *found = NULL;

	for (size_t i = 0; i + 1 < table->column_count; i++) {
		struct ts_text_table_column *column = &table->columns[i];

		if (!column->right && column->allotted > MIN_ALLOTTED &&
		    (!found || column->allotted > found->allotted))
			found = column;
	}
	return found;
}

/*
 * Divides the terminal's line among the columns. The last column, usually the longest, gets at
 * least its share.
 */
static void divide_line(struct ts_text_table *table)
{
	size_t used = 0, last = table->column_count - 1;
	struct ts_text_table_column *cut;

	if (table->column_count == 0)
		return;
	for (size_t i = 0; i < table->column_count; i++) {
		table->columns[i].allotted = table->columns[i].width;
		if (i < last)
			used += table->columns[i].allotted + GAP;
	}
	if (!table->line_width)
		return;
	used += TS_MIN(table->columns[last].width, table->line_width / LAST_SHARE);
	while (used > table->line_width && (cut = widest(table))) {
		cut->allotted--;
		used--;
	}
}

/* Appends a cell, padded unless it is the last; returns the columns left in the line. */
static size_t append_cell(struct ts_text *out, const struct ts_text_table *table, size_t index,
			  const char *text, size_t left)
{
	const struct ts_text_table_column *column = &table->columns[index];
	bool last = index + 1 == table->column_count;
	size_t allotted = TS_MIN(column->allotted, left),
	       width = ts_text_shown_width(text, strlen(text));

	if (allotted == 0)
		return left;
	if (column->right && width < allotted)
		append_spaces(out, allotted - width);
	if (width > allotted)
		append_cut(out, text, allotted);
	else
		ts_text_append_str(out, text);
	if (!last && !column->right && width < allotted)
		append_spaces(out, allotted - width);
	left -= allotted;
	if (!last)
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

static void write_rows(struct ts_text_table *table)
{
	struct ts_text *out = ts_stdout();
	const char *cell = table->cells.data;

	divide_line(table);
	if (!table->header_shown && !table->bare)
		append_header(out, table);
	table->header_shown = true;
	for (size_t row = 0; row < table->rows; row++) {
		size_t begin = out->length, left = table->line_width ? table->line_width : SIZE_MAX;

		for (size_t i = 0; i < table->column_count; i++) {
			left = append_cell(out, table, i, cell, left);
			cell += strlen(cell) + 1;
		}
		trim_line(out, begin);
		ts_text_append_str(out, cell);
		cell += strlen(cell) + 1;
	}
	ts_text_clear(&table->cells);
	table->rows = 0;
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
	table->rows++;
	if (table->rows == BLOCK_ROWS && !table->cells.failed)
		write_rows(table);
}

int ts_text_table_finish(struct ts_text_table *table, struct ts_error *err)
{
	if (table->cells.failed)
		return ts_error_set(err, TS_ENOMEM, "no memory for a table of text");
	write_rows(table);
	return TS_OK;
}
