/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith state --edges`: the derived table `edge`, all dependencies with their slack. */
#include "cli/state/state_show.h"

#define SHOWN_EDGES 100

static const struct ts_result_column columns[] = {
	{ "kind", "kind", TS_CELL_TEXT },       { "inferred", "inferred", TS_CELL_BOOL },
	{ "from_table", NULL, TS_CELL_TEXT },   { "from_row", NULL, TS_CELL_INTEGER },
	{ "from_point", "from", TS_CELL_TEXT }, { "from_name", "of", TS_CELL_TEXT },
	{ "from_ns", "at", TS_CELL_INSTANT },   { "to_table", NULL, TS_CELL_TEXT },
	{ "to_row", NULL, TS_CELL_INTEGER },    { "to_point", "to", TS_CELL_TEXT },
	{ "to_name", "of", TS_CELL_TEXT },      { "to_ns", "at", TS_CELL_INSTANT },
	{ "slack_us", "slack", TS_CELL_TIME },
};

static void put_row(struct ts_result_table *table, const struct ts_dependency_point *point)
{
	const struct ts_table_info *info =
		point->table == TS_ABSENT ? NULL : ts_table_info((uint32_t)point->table);

	ts_cell_text(table, info ? info->name : NULL);
	ts_cell_integer(table, point->row);
	ts_cell_text(table, point->is_end ? "end" : "start");
	ts_cell_text(table, point->name);
	ts_cell_instant(table, point->time);
}

void ts_state_fill_edges(const struct ts_state_view *view, const struct ts_graph *graph,
			 struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "edges", columns, TS_ARRAY_SIZE(columns));

	table->shown_rows = SHOWN_EDGES;
	table->details = "from_ns to_ns inferred";
	for (size_t i = 0; i < graph->edge_count; i++) {
		struct ts_dependency dependency;

		ts_edge_describe(graph, &graph->edges[i], &dependency);
		if (!ts_state_filter_edge(&view->filter, &dependency))
			continue;
		ts_cell_text(table, dependency.kind);
		ts_cell_bool(table, dependency.is_inferred);
		put_row(table, &dependency.from);
		put_row(table, &dependency.to);
		ts_cell_time(table, dependency.to.time - dependency.from.time);
	}
}
