/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dependency graph: nodes, the growing edge list, and the order in which edge groups are added.
 * Each group decides what depends on what (graph_device.c and its neighbours).
 */
#include "state/graph/graph.h"

#include "base/ns.h"
#include "state/graph/graph_build.h"

static const char *const KIND_NAMES[TS_EDGE_KIND_COUNT] = {
	[TS_EDGE_PROGRAM] = "program", [TS_EDGE_LAUNCH] = "launch",
	[TS_EDGE_STREAM] = "stream",   [TS_EDGE_EVENT] = "event",
	[TS_EDGE_SYNC] = "sync",       [TS_EDGE_COPY] = "copy",
	[TS_EDGE_GRAPH] = "graph",     [TS_EDGE_COLLECTIVE] = "collective",
	[TS_EDGE_FORWARD] = "forward", [TS_EDGE_FLOW] = "flow",
	[TS_EDGE_WAKE] = "wake",
};

const char *ts_edge_kind_name(enum ts_edge_kind kind)
{
	return (unsigned int)kind < TS_EDGE_KIND_COUNT ? KIND_NAMES[kind] : "?";
}

/* ---- nodes ---- */

int64_t ts_graph_node_start(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;

	if (node < work->command_count)
		return work->commands[node].start;
	node -= work->command_count;
	if (node < work->call_count)
		return work->calls[node].start;
	return graph->stretches[node - work->call_count].start;
}

int64_t ts_graph_node_end(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;
	int64_t start, end;

	if (node < work->command_count) {
		start = work->commands[node].start;
		end = work->commands[node].end;
	} else if (node - work->command_count < work->call_count) {
		start = work->calls[node - work->command_count].start;
		end = work->calls[node - work->command_count].end;
	} else {
		return graph->stretches[node - work->command_count - work->call_count].end;
	}
	return end < start ? start : end;
}

const char *ts_graph_node_name(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;
	uint32_t slice;

	if (node < work->command_count)
		return ts_work_text(work, work->commands[node].name);
	node -= work->command_count;
	if (node < work->call_count)
		return ts_work_text(work, work->calls[node].name);
	slice = graph->stretches[node - work->call_count].slice;
	return slice == TS_WORK_NONE ? "(host)" : ts_work_text(work, work->slices[slice].name);
}

uint32_t ts_graph_node_rank(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;

	if (node < work->command_count)
		return work->commands[node].rank;
	node -= work->command_count;
	if (node < work->call_count)
		return work->calls[node].rank;
	return work->threads[graph->stretches[node - work->call_count].thread].rank;
}

/* ---- edges while they are collected ---- */

int64_t ts_edge_from_time(const struct ts_graph *graph, const struct ts_edge *edge)
{
	return edge->flags & TS_EDGE_FROM_START ? ts_graph_node_start(graph, edge->from)
						: ts_graph_node_end(graph, edge->from);
}

int64_t ts_edge_to_time(const struct ts_graph *graph, const struct ts_edge *edge)
{
	return edge->flags & TS_EDGE_TO_END ? ts_graph_node_end(graph, edge->to)
					    : ts_graph_node_start(graph, edge->to);
}

size_t ts_graph_decisive(const struct ts_graph *graph, uint32_t node, bool end)
{
	size_t best = TS_EDGE_NONE;
	int64_t latest = INT64_MIN;

	for (uint32_t i = graph->first_in[node]; i < graph->first_in[node + 1]; i++) {
		const struct ts_edge *edge = &graph->edges[i];
		int64_t time = ts_edge_from_time(graph, edge);

		if (!!(edge->flags & TS_EDGE_TO_END) != end ||
		    (end && time <= ts_graph_node_start(graph, node)))
			continue;
		if (best == TS_EDGE_NONE || time > latest) {
			best = i;
			latest = time;
		}
	}
	return best;
}

/* How far an edge between two ranks may go back in time. */
static int64_t tolerance(const struct ts_graph *graph, const struct ts_edge *edge)
{
	uint32_t from = ts_graph_node_rank(graph, edge->from);
	uint32_t to = ts_graph_node_rank(graph, edge->to);
	int64_t one, other;

	if (from == to)
		return 0;
	one = TS_MAX(graph->work->ranks[from].uncertainty_ns, 0);
	other = TS_MAX(graph->work->ranks[to].uncertainty_ns, 0);
	return ts_ns_add(one, other);
}

/* False: the edge goes back in time, and is counted. */
static bool is_forward(struct ts_graph_build *build, struct ts_edge *edge)
{
	struct ts_graph *graph = build->graph;
	int64_t back = ts_ns_sub(ts_edge_from_time(graph, edge), ts_edge_to_time(graph, edge));

	if (back == 0)
		edge->flags |= TS_EDGE_INSTANT;
	if (back <= 0)
		return true;
	if (back <= tolerance(graph, edge)) {
		build->any_back = true;
		return true;
	}
	graph->backward_count++;
	graph->worst_backward_ns = TS_MAX(graph->worst_backward_ns, back);
	return false;
}

void ts_graph_add(struct ts_graph_build *build, uint32_t from, uint32_t to, enum ts_edge_kind kind,
		  unsigned int flags)
{
	struct ts_graph *graph = build->graph;
	struct ts_edge edge = {
		.from = from, .to = to, .kind = (uint8_t)kind, .flags = (uint8_t)flags
	};

	if (build->rc || from == to || !is_forward(build, &edge))
		return;
	if (graph->edge_count == build->edge_capacity)
		build->rc = ts_grow_array((void **)&graph->edges, &build->edge_capacity,
					  graph->edge_count + 1, sizeof(edge));
	if (!build->rc)
		graph->edges[graph->edge_count++] = edge;
}

void *ts_graph_array(struct ts_graph_build *build, size_t count, size_t item_bytes)
{
	void *array = build->rc ? NULL : ts_alloc_array(count, item_bytes);

	if (!array)
		build->rc = TS_ENOMEM;
	return array;
}

/* ---- entry points ---- */

static void add_edges(struct ts_graph_build *build)
{
	static void (*const GROUPS[])(struct ts_graph_build *) = {
		ts_graph_issue_order, ts_graph_add_device, ts_graph_add_syncs, ts_graph_add_events,
		ts_graph_add_host,    ts_graph_add_wakes,  ts_graph_add_flows, ts_graph_add_ranks,
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(GROUPS) && !build->rc; i++)
		GROUPS[i](build);
}

static void release_build(struct ts_graph_build *build)
{
	free(build->order);
	free(build->position);
	free(build->latest);
	free(build->issued);
	free(build->begins);
	free(build->by_end);
	free(build->has_operands);
	ts_pairmap_release(&build->records);
	free(build->names);
	free(build->items);
	free(build->threads);
	free(build->gaps);
}

static void count_edges(struct ts_graph *graph)
{
	for (size_t i = 0; i < graph->edge_count; i++) {
		graph->edges[i].flags &= (uint8_t)~TS_EDGE_INSTANT;
		graph->kind_count[graph->edges[i].kind]++;
		graph->inferred_count += (graph->edges[i].flags & TS_EDGE_INFERRED) != 0;
	}
}

static int finish(struct ts_graph *graph, bool any_back, struct ts_error *err)
{
	uint64_t nodes = (uint64_t)graph->work->command_count + graph->work->call_count +
			 graph->stretch_count;
	int rc;

	if (nodes > UINT32_MAX / 2 || graph->edge_count >= UINT32_MAX)
		return ts_error_set(err, TS_ENOSPC,
				    "too large for one graph: %llu events and %zu dependencies; "
				    "select a smaller range",
				    (unsigned long long)nodes, graph->edge_count);
	graph->node_count = (uint32_t)nodes;
	rc = ts_graph_index(graph);
	if (!rc)
		rc = ts_graph_break_cycles(graph, any_back);
	if (rc)
		return ts_error_set(err, rc, "out of memory for the dependency graph");
	count_edges(graph);
	return TS_OK;
}

int ts_graph_new(struct ts_graph **ret_graph, const struct ts_work *work, unsigned int flags,
		 struct ts_error *err)
{
	TS_AUTO(ts_graph) graph = calloc(1, sizeof(*graph));
	struct ts_graph_build build = { .work = work, .graph = graph, .flags = flags };
	int rc;

	if (!graph)
		return ts_error_set(err, TS_ENOMEM, "out of memory for the dependency graph");
	graph->work = work;
	/* Most commands have a launch edge and a stream edge. */
	build.rc = ts_grow_array((void **)&graph->edges, &build.edge_capacity,
				 (size_t)work->command_count * 2 + 1, sizeof(*graph->edges));
	add_edges(&build);
	release_build(&build);
	if (build.rc)
		return ts_error_set(err, build.rc, "out of memory for the dependency graph");
	rc = finish(graph, build.any_back, err);
	if (rc)
		return rc;
	*ret_graph = TS_STEAL(graph);
	return TS_OK;
}

void ts_graph_free(struct ts_graph *graph)
{
	if (!graph)
		return;
	free(graph->stretches);
	free(graph->edges);
	free(graph->first_in);
	free(graph->out);
	free(graph->first_out);
	free(graph);
}
