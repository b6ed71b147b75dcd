/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the columns that `tracesmith view` prints, and those it must read for that. */
#include <string.h>

#include "cli/common/nearest.h"
#include "cli/common/report.h"
#include "cli/view/view.h"
#include "trace/trace_totals.h"

static const struct {
	const char *name;
	enum ts_show_special special;
} specials[] = {
	{ "time", TS_SHOW_TIME },   { "duration", TS_SHOW_DURATION }, { "where", TS_SHOW_WHERE },
	{ "table", TS_SHOW_TABLE }, { "category", TS_SHOW_CATEGORY }, { "name", TS_SHOW_NAME },
	{ "args", TS_SHOW_ARGS },
};

static bool is_chosen(const struct ts_view *view, unsigned int table)
{
	return ts_table_info(table) && view->tables & TS_TABLE_BIT(table);
}

static unsigned int find_special(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(specials); i++) {
		if (!strcmp(specials[i].name, name))
			return specials[i].special;
	}
	return 0;
}

/* Finds the column in every selected table; false: in none. Dictionary ids have no column. */
static bool find_positions(const struct ts_view *view, struct ts_view_column *column)
{
	bool found = false, is_id = !strcmp(column->name, "id");

	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		column->positions[id] = -1;
		if (!is_chosen(view, id))
			continue;
		column->positions[id] = ts_column_by_name(ts_table_info(id), column->name);
		found = found || column->positions[id] >= 0 ||
			(is_id && ts_table_info(id)->kind == TS_KIND_DICTIONARY);
	}
	return found;
}

static int unknown_column(const struct ts_view *view, const char *name)
{
	struct ts_nearest nearest;

	ts_nearest_init(&nearest, name);
	for (size_t i = 0; i < TS_ARRAY_SIZE(specials); i++)
		ts_nearest_offer(&nearest, specials[i].name);
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *table = ts_table_info(id);

		for (int i = 0; is_chosen(view, id) && i < table->column_count; i++)
			ts_nearest_offer(&nearest, table->columns[i].name);
	}
	if (nearest.best)
		return ts_report_usage("no selected table has a column '%s'; did you mean '%s'?",
				       name, nearest.best);
	return ts_report_usage("no selected table has a column '%s'", name);
}

static int add_column(struct ts_view *view, const char *name)
{
	struct ts_view_column column = { .name = name, .special = find_special(name) };
	bool found = find_positions(view, &column);

	if (view->column_count == TS_VIEW_MAX_COLUMNS)
		return ts_report_usage("more than %d columns", TS_VIEW_MAX_COLUMNS);
	if (!found && !column.special)
		return unknown_column(view, name);
	view->columns[view->column_count++] = column;
	return TS_EXIT_DONE;
}

static bool shows_kind(const struct ts_view *view, enum ts_table_kind kind)
{
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		if (is_chosen(view, id) && ts_table_info(id)->kind == kind)
			return true;
	}
	return false;
}

/* Tables without time show all their columns. */
static int add_table_columns(struct ts_view *view)
{
	int exit_code = TS_EXIT_DONE;

	if (view->tables & (view->tables - 1))
		exit_code = add_column(view, "table");
	if (!exit_code && shows_kind(view, TS_KIND_DICTIONARY))
		exit_code = add_column(view, "id");
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *table = ts_table_info(id);

		if (!is_chosen(view, id))
			continue;
		for (int i = 0; !exit_code && i < table->column_count; i++) {
			bool known = table->columns[i].type == TS_COLUMN_SHAPE;

			for (size_t k = 0; k < view->column_count; k++)
				known |= !strcmp(view->columns[k].name, table->columns[i].name);
			if (!known)
				exit_code = add_column(view, table->columns[i].name);
		}
	}
	return exit_code;
}

static int add_default_columns(struct ts_view *view)
{
	static const char *const names[] = { "time",  "duration", "where",
					     "table", "category", "name" };
	int exit_code = TS_EXIT_DONE;

	/* JSON shows every column by default. */
	if (view->json)
		return exit_code;
	if (view->tables && !shows_kind(view, TS_KIND_EVENT))
		return add_table_columns(view);
	for (size_t i = 0; !exit_code && i < TS_ARRAY_SIZE(names); i++)
		exit_code = add_column(view, names[i]);
	return exit_code;
}

int ts_view_choose_columns(struct ts_view *view)
{
	int exit_code = TS_EXIT_DONE;

	if (view->column_names.count == 0)
		exit_code = add_default_columns(view);
	for (size_t i = 0; !exit_code && i < view->column_names.count; i++)
		exit_code = add_column(view, view->column_names.items[i]);
	if (!exit_code && view->args && view->column_count)
		exit_code = add_column(view, "args");
	/* Text output prints stacks below the row. */
	if (!exit_code && view->stacks && view->json && view->column_count)
		exit_code = add_column(view, "stack");
	return exit_code;
}

uint64_t ts_view_mask(const struct ts_view *view, const struct ts_table_info *table)
{
	int stack = ts_column_by_name(table, "stack");
	uint64_t mask = 0;

	if (view->column_count == 0)
		return TS_MASK_ALL;
	for (size_t i = 0; i < view->column_count; i++) {
		const struct ts_view_column *column = &view->columns[i];

		/* JSON prefers a schema column of that name. */
		if (column->positions[table->id] >= 0)
			mask |= UINT64_C(1) << column->positions[table->id];
		if (column->special)
			mask |= ts_show_special_mask(table, column->special);
	}
	if (view->stacks && stack >= 0)
		mask |= UINT64_C(1) << stack;
	if (view->stacks)
		mask |= ts_view_launches_mask(table);
	if (view->show.short_names && table->id == TS_TABLE_GPU_OP)
		mask |= UINT64_C(1) << TS_COLUMN_OF(gpu_op, kind);
	/* Arguments may refer to any column of their row. */
	if (table->shape >= 0 && mask >> table->shape & 1)
		mask = TS_MASK_ALL;
	return mask;
}
