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

/* Table and row of a node; a host stretch refers to its enclosing slice, if any. */
static void put_row(struct ts_result_table *table, const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;
	const char *of = "gpu_op";
	int64_t row = TS_ABSENT;

	if (node < work->command_count) {
		row = (int64_t)work->commands[node].row;
	} else if (node - work->command_count < work->call_count) {
		of = "api_call";
		row = (int64_t)work->calls[node - work->command_count].row;
	} else {
		uint32_t stretch = node - work->command_count - work->call_count;
		uint32_t slice = graph->stretches[stretch].slice;

		of = slice == TS_WORK_NONE ? NULL : "slice";
		row = slice == TS_WORK_NONE ? TS_ABSENT : (int64_t)work->slices[slice].row;
	}
	ts_cell_text(table, of);
	ts_cell_integer(table, row);
}

static bool is_requested(const struct ts_state_view *view, int64_t from, int64_t to)
{
	return to >= view->from && from < view->to;
}

void ts_state_fill_edges(const struct ts_state_view *view, const struct ts_graph *graph,
			 struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "edges", columns, TS_ARRAY_SIZE(columns));

	table->shown_rows = SHOWN_EDGES;
	table->details = "from_ns to_ns inferred";
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct ts_edge *edge = &graph->edges[i];
		int64_t from = ts_edge_from_time(graph, edge), to = ts_edge_to_time(graph, edge);

		if (!is_requested(view, from, to))
			continue;
		ts_cell_text(table, ts_edge_kind_name((enum ts_edge_kind)edge->kind));
		ts_cell_bool(table, edge->flags & TS_EDGE_INFERRED);
		put_row(table, graph, edge->from);
		ts_cell_text(table, edge->flags & TS_EDGE_FROM_START ? "start" : "end");
		ts_cell_text(table, ts_graph_node_name(graph, edge->from));
		ts_cell_instant(table, from);
		put_row(table, graph, edge->to);
		ts_cell_text(table, edge->flags & TS_EDGE_TO_END ? "end" : "start");
		ts_cell_text(table, ts_graph_node_name(graph, edge->to));
		ts_cell_instant(table, to);
		ts_cell_time(table, to - from);
	}
}
