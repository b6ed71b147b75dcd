/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows: a line of a text table, or a JSON object a line. Must not know which rows. */
#include <string.h>

#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/trace.h"
#include "cli/view.h"

static bool is_number(const struct ts_view *view, const struct ts_view_column *column)
{
	if (column->special == TS_SHOW_TIME || column->special == TS_SHOW_DURATION ||
	    column->special == TS_SHOW_DEPTH || column->special == TS_SHOW_LINENO)
		return true;
	if (column->special)
		return false;
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		uint8_t type;

		if (column->positions[id] < 0 || !(view->tables & TS_TABLE_BIT(id)))
			continue;
		type = ts_table_info(id)->columns[column->positions[id]].type;
		if (type != TS_COLUMN_TIME && type != TS_COLUMN_DURATION && type != TS_COLUMN_INT &&
		    type != TS_COLUMN_FLOAT)
			return false;
	}
	return true;
}

void ts_view_print_start(struct ts_view *view)
{
	ts_text_init(&view->cell);
	ts_text_table_init(&view->grid);
	for (size_t i = 0; i < view->column_count; i++)
		ts_text_table_add_column(&view->grid, view->columns[i].name,
					 is_number(view, &view->columns[i]));
}

/* One line; behind the first, only what is told of a frame. */
static void print_line(struct ts_view *view, const struct ts_shown_row *row)
{
	for (size_t i = 0; i < view->column_count; i++) {
		const struct ts_view_column *column = &view->columns[i];
		int position = column->positions[row->table->id];
		bool is_blank = row->depth > 0 && column->special < TS_SHOW_DEPTH;

		ts_text_clear(&view->cell);
		if (column->special && !is_blank)
			ts_show_cell(&view->show, &view->cell, row, column->special);
		else if (position >= 0 && !is_blank)
			ts_show_cell(&view->show, &view->cell, row, (unsigned int)position);
		/* The ids of dictionaries stand in no column. */
		else if (row->id && !strcmp(column->name, "id"))
			ts_text_append_int(&view->cell, row->id);
		ts_text_table_cell(&view->grid, view->cell.data, view->cell.length);
	}
	ts_text_table_end_row(&view->grid);
}

/* With --stacks a line a frame, innermost first. */
static int print_text(struct ts_view *view, const struct ts_shown_row *row, struct ts_error *err)
{
	int stack = view->stacks ? ts_column_by_name(row->table, "stack") : -1;
	struct ts_shown_row shown = *row;
	size_t left;

	if (ts_stack_path(&view->frames, view->reader, stack < 0 ? 0 : row->columns[stack]))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	left = view->frames.count;
	shown.has_frame = left > 0;
	do {
		shown.frame = left ? view->frames.frames[--left] : 0;
		print_line(view, &shown);
		shown.depth++;
	} while (left);
	return TS_OK;
}

static void append_special_json(struct ts_view *view, struct ts_text *out,
				const struct ts_shown_row *row, const struct ts_view_column *column)
{
	int64_t ns;

	if (column->special == TS_SHOW_ARGS) {
		ts_show_json_args(&view->show, out, row);
	} else if (column->special == TS_SHOW_TIME) {
		if (row->table->start >= 0 &&
		    !__builtin_sub_overflow(row->columns[row->table->start], view->show.start, &ns))
			ts_text_printf(out, "\"time\":%lld,", (long long)ns);
	} else {
		ts_text_clear(&view->cell);
		ts_show_cell(&view->show, &view->cell, row, column->special);
		if (view->cell.length == 0)
			return;
		ts_text_printf(out, "\"%s\":", column->name);
		ts_text_append_json(out, view->cell.data, view->cell.length);
		ts_text_append_char(out, ',');
	}
}

static void print_json(struct ts_view *view, const struct ts_shown_row *row)
{
	struct ts_text *out = ts_stdout();
	size_t begin = out->length;

	ts_text_append_char(out, '{');
	if (view->column_count == 0) {
		ts_text_printf(out, "\"table\":\"%s\",", row->table->name);
		ts_show_json_members(&view->show, out, row);
	}
	for (size_t i = 0; i < view->column_count; i++) {
		int position = view->columns[i].positions[row->table->id];

		/* Exact values go before what is made for people. */
		if (position >= 0)
			ts_show_json_column(&view->show, out, row, (unsigned int)position);
		else if (view->columns[i].special)
			append_special_json(view, out, row, &view->columns[i]);
		else if (row->id && !strcmp(view->columns[i].name, "id"))
			ts_text_printf(out, "\"id\":%lld,", (long long)row->id);
	}
	if (out->length > begin + 1)
		out->length--;
	ts_text_append_str(out, "}\n");
}

int ts_view_print_row(struct ts_view *view, const struct ts_shown_row *row, struct ts_error *err)
{
	int rc = TS_OK;

	view->rows++;
	if (view->json)
		print_json(view, row);
	else
		rc = print_text(view, row, err);
	/* The bar and the rows would fight for the terminal. */
	if (ts_terminal_stdout())
		view->progress.terminal = false;
	return rc ? rc : ts_stdout_drain(err);
}

int ts_view_print_finish(struct ts_view *view, struct ts_error *err)
{
	int rc = view->json ? TS_OK : ts_text_table_finish(&view->grid, err);

	ts_text_table_release(&view->grid);
	ts_text_release(&view->cell);
	ts_stack_path_release(&view->frames);
	return rc;
}
