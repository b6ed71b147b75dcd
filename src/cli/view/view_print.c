/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows as a text table or as JSON lines. */
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/common/terminal.h"
#include "cli/view/view.h"
#include "trace/trace_totals.h"

static bool is_number(const struct ts_view *view, const struct ts_view_column *column)
{
	if (column->special == TS_SHOW_TIME || column->special == TS_SHOW_DURATION)
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

/*
 * What a narrow line leaves out first: what only repeats the name, and of tables without time all
 * but what names their rows. Columns that the user chose stay as long as possible.
 */
static unsigned int detail_of(const struct ts_view *view, size_t column)
{
	static const char *const naming[] = { "id",      "name",   "number", "pid",  "tid",
					      "process", "device", "key",    "value" };

	if (view->column_names.count)
		return 0;
	switch (view->columns[column].special) {
	case 0:
		for (size_t i = 0; i < TS_ARRAY_SIZE(naming); i++)
			if (!strcmp(naming[i], view->columns[column].name))
				return 0;
		return (unsigned int)column + 1;
	case TS_SHOW_TABLE:
		return 2;
	case TS_SHOW_CATEGORY:
		return 1;
	default:
		return 0;
	}
}

void ts_view_print_start(struct ts_view *view)
{
	ts_text_init(&view->cell);
	ts_text_table_init(&view->grid);
	/* A column of a narrow table would truncate the reason of a loss. */
	view->show.reasons_apart = !view->json && !view->column_names.count &&
				   ts_terminal_stdout_width();
	for (size_t i = 0; i < view->column_count; i++) {
		ts_text_table_add_column(&view->grid, view->columns[i].name,
					 is_number(view, &view->columns[i]));
		ts_text_table_set_detail(&view->grid, detail_of(view, i));
	}
}

static void print_cells(struct ts_view *view, const struct ts_row *row)
{
	for (size_t i = 0; i < view->column_count; i++) {
		const struct ts_view_column *column = &view->columns[i];
		int position = column->positions[row->table->id];

		ts_text_clear(&view->cell);
		if (column->special)
			ts_show_cell(&view->show, &view->cell, row, column->special);
		else if (position >= 0)
			ts_show_cell(&view->show, &view->cell, row, (unsigned int)position);
		/* Dictionary ids are not in a column. */
		else if (row->id && !strcmp(column->name, "id"))
			ts_text_append_int(&view->cell, row->id);
		ts_text_table_cell(&view->grid, view->cell.data, view->cell.length);
	}
}

/* ---- stacks, below their row ---- */

static void print_heading(struct ts_view *view, const char *heading, const char *text)
{
	ts_text_clear(&view->cell);
	ts_text_printf(&view->cell, "%s:%s%s", heading, text ? " " : "", text ? text : "");
	ts_text_table_below_wrapped(&view->grid, ts_text_cstr(&view->cell), 2);
}

/* One line per frame, innermost first. */
static int print_stack(struct ts_view *view, const char *heading, int64_t stack,
		       struct ts_error *err)
{
	if (ts_stack_list_load(&view->frames, view->reader, stack))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (heading && view->frames.count)
		print_heading(view, heading, NULL);
	for (size_t i = view->frames.count; i-- > 0;) {
		ts_text_clear(&view->cell);
		ts_text_append_str(&view->cell, "    ");
		ts_show_frame(view->reader, &view->cell, view->frames.frames[i]);
		ts_text_table_below(&view->grid, ts_text_cstr(&view->cell), view->cell.length);
	}
	return TS_OK;
}

/*
 * Prints the row's own stack, its launch stack and its forward operator. A graph's kernel has two
 * stacks.
 */
static int print_stacks(struct ts_view *view, const struct ts_row *row, struct ts_error *err)
{
	int column = ts_column_by_name(row->table, "stack");
	int64_t stack = column < 0 ? 0 : row->columns[column];
	struct ts_view_launch *launch = &view->launch;
	bool is_captured, is_several;
	int rc;

	ts_view_launches_find(view->launches, row, launch);
	is_captured = stack && launch->stack;
	is_several = is_captured || launch->forward.length;
	rc = print_stack(view,
			 is_captured  ? "captured at"
			 : is_several ? "launched at"
				      : NULL,
			 stack, err);
	if (!rc)
		rc = print_stack(view, is_several ? "launched at" : NULL, launch->stack, err);
	if (!rc && launch->forward.length) {
		print_heading(view, "for the backward pass of", ts_text_cstr(&launch->forward));
		rc = print_stack(view, NULL, launch->forward_stack, err);
	}
	return rc;
}

static void print_reason(struct ts_view *view, const struct ts_row *row)
{
	const struct ts_loss_row *loss = (const struct ts_loss_row *)(const void *)row->columns;
	struct ts_string reason;

	if (row->table->id != TS_TABLE_LOSS || !loss->reason || !view->show.reasons_apart)
		return;
	reason = ts_reader_string(view->reader, loss->reason);
	ts_text_clear(&view->cell);
	ts_text_append(&view->cell, reason.data, reason.length);
	ts_text_table_below_wrapped(&view->grid, ts_text_cstr(&view->cell), 4);
}

static int print_text(struct ts_view *view, const struct ts_row *row, struct ts_error *err)
{
	int rc;

	print_cells(view, row);
	print_reason(view, row);
	rc = view->stacks ? print_stacks(view, row, err) : TS_OK;
	ts_text_table_end_row(&view->grid);
	return rc;
}

/* ---- JSON ---- */

/* The same in JSON, where the row's own stack is an ordinary column. */
static void append_launch_json(struct ts_view *view, struct ts_text *out, const struct ts_row *row)
{
	struct ts_view_launch *launch = &view->launch;

	ts_view_launches_find(view->launches, row, launch);
	if (launch->stack) {
		ts_text_append_str(out, "\"launch_stack\":");
		ts_show_json_stack(&view->show, out, launch->stack);
		ts_text_append_char(out, ',');
	}
	if (launch->forward.length) {
		ts_text_append_str(out, "\"forward\":");
		ts_text_append_json(out, launch->forward.data, launch->forward.length);
		ts_text_append_char(out, ',');
	}
	if (launch->forward_stack) {
		ts_text_append_str(out, "\"forward_stack\":");
		ts_show_json_stack(&view->show, out, launch->forward_stack);
		ts_text_append_char(out, ',');
	}
}

static void append_special_json(struct ts_view *view, struct ts_text *out, const struct ts_row *row,
				const struct ts_view_column *column)
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

static void print_json(struct ts_view *view, const struct ts_row *row)
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

		/* Exact values take precedence over formatted ones. */
		if (position >= 0)
			ts_show_json_column(&view->show, out, row, (unsigned int)position);
		else if (view->columns[i].special)
			append_special_json(view, out, row, &view->columns[i]);
		else if (row->id && !strcmp(view->columns[i].name, "id"))
			ts_text_printf(out, "\"id\":%lld,", (long long)row->id);
	}
	append_launch_json(view, out, row);
	if (out->length > begin + 1)
		out->length--;
	ts_text_append_str(out, "}\n");
}

int ts_view_print_row(struct ts_view *view, const struct ts_row *row, struct ts_error *err)
{
	int rc = TS_OK;

	view->rows++;
	if (view->json)
		print_json(view, row);
	else
		rc = print_text(view, row, err);
	/* The progress bar would overwrite the rows. */
	if (ts_terminal_stdout())
		view->progress.terminal = false;
	return rc ? rc : ts_stdout_drain(err);
}

int ts_view_print_finish(struct ts_view *view, struct ts_error *err)
{
	int rc = view->json ? TS_OK : ts_text_table_finish(&view->grid, err);

	ts_text_table_release(&view->grid);
	ts_text_release(&view->cell);
	ts_stack_list_release(&view->frames);
	ts_text_release(&view->launch.forward);
	ts_view_launches_free(view->launches);
	view->launches = NULL;
	return rc;
}
