/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the dependency graph and command lists: nodes by correlation, and
 * invariants of every graph.
 */
#ifndef TS_TESTS_UNIT_STATE_GRAPH_GRAPH_SUPPORT_H
#define TS_TESTS_UNIT_STATE_GRAPH_GRAPH_SUPPORT_H

#include "state/graph/graph.h"
#include "unit/state/work/work_support.h"

#define SYNC(kind, stream, ts, dur, correlation, rest) \
	DEVICE("cuda_sync", kind, stream, ts, dur, correlation, ",'cuda_sync_kind':'" kind "'" rest)

struct graphed {
	struct loaded loaded;
	struct ts_graph *graph;
};

/* For all open readers. */
static inline void build_graph(struct graphed *graphed, unsigned int flags)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_error err;

	options.load_flags = TS_WORK_SLICES | TS_WORK_FLOWS | TS_WORK_DETAILS;
	options.all = true;
	load_readers(&graphed->loaded, &options);
	if (ts_graph_new(&graphed->graph, graphed->loaded.work, flags, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static inline void unload_graph(struct graphed *graphed)
{
	ts_graph_free(graphed->graph);
	unload(&graphed->loaded);
}

/* ---- nodes and edges ---- */

static inline uint32_t command_of(const struct graphed *graphed, int64_t correlation)
{
	for (uint32_t i = 0; i < graphed->loaded.work->command_count; i++)
		if (graphed->loaded.work->commands[i].correlation == correlation)
			return i;
	ts_test_fail(__FILE__, __LINE__, "no command %lld", (long long)correlation);
}

static inline uint32_t call_of(const struct graphed *graphed, int64_t correlation)
{
	for (uint32_t i = 0; i < graphed->loaded.work->call_count; i++)
		if (graphed->loaded.work->calls[i].correlation == correlation)
			return ts_graph_call_node(graphed->graph, i);
	ts_test_fail(__FILE__, __LINE__, "no call %lld", (long long)correlation);
}

/* Flags of the edge of that kind between two nodes; -1: there is none. */
static inline int edge_flags(const struct ts_graph *graph, uint32_t from, uint32_t to,
			     enum ts_edge_kind kind)
{
	for (uint32_t i = graph->first_in[to]; i < graph->first_in[to + 1]; i++)
		if (graph->edges[i].from == from && graph->edges[i].kind == kind)
			return graph->edges[i].flags;
	return -1;
}

/* ---- invariants of every graph ---- */

static inline void check_index(const struct ts_graph *graph)
{
	uint64_t kinds = 0;

	TS_CHECK_INT(graph->first_in[0], 0);
	TS_CHECK_INT(graph->first_out[0], 0);
	TS_CHECK_INT(graph->first_in[graph->node_count], graph->edge_count);
	TS_CHECK_INT(graph->first_out[graph->node_count], graph->edge_count);
	for (uint32_t n = 0; n < graph->node_count; n++) {
		TS_CHECK(graph->first_in[n] <= graph->first_in[n + 1]);
		for (uint32_t i = graph->first_in[n]; i < graph->first_in[n + 1]; i++)
			TS_CHECK_INT(graph->edges[i].to, n);
		for (uint32_t i = graph->first_out[n]; i < graph->first_out[n + 1]; i++)
			TS_CHECK_INT(graph->edges[graph->out[i]].from, n);
	}
	for (int k = 0; k < TS_EDGE_KIND_COUNT; k++)
		kinds += graph->kind_count[k];
	TS_CHECK_INT(kinds, graph->edge_count);
}

/* No edge goes back by more than the ranks' uncertainty. */
static inline void check_times(const struct ts_graph *graph, int64_t uncertainty_ns)
{
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct ts_edge *edge = &graph->edges[i];

		TS_CHECK(edge->from != edge->to);
		TS_CHECK(ts_edge_from_time(graph, edge) <=
			 ts_edge_to_time(graph, edge) + uncertainty_ns);
		if (uncertainty_ns &&
		    ts_graph_node_rank(graph, edge->from) == ts_graph_node_rank(graph, edge->to))
			TS_CHECK(ts_edge_from_time(graph, edge) <= ts_edge_to_time(graph, edge));
	}
}

/* Starts and ends of nodes have a topological order. */
static inline void check_acyclic(const struct ts_graph *graph)
{
	size_t points = (size_t)graph->node_count * 2, head = 0, tail = 0;
	uint32_t *waits = calloc(points + 1, sizeof(*waits));
	uint32_t *queue = calloc(points + 1, sizeof(*queue));

	TS_CHECK(waits && queue);
	for (uint32_t n = 0; n < graph->node_count; n++)
		waits[2 * n + 1]++;
	for (size_t i = 0; i < graph->edge_count; i++)
		waits[2 * graph->edges[i].to + !!(graph->edges[i].flags & TS_EDGE_TO_END)]++;
	for (size_t p = 0; p < points; p++)
		if (waits[p] == 0)
			queue[tail++] = (uint32_t)p;
	while (head < tail) {
		uint32_t point = queue[head++], node = point / 2;

		if (!(point & 1) && --waits[point + 1] == 0)
			queue[tail++] = point + 1;
		for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++) {
			const struct ts_edge *edge = &graph->edges[graph->out[i]];
			uint32_t to = 2 * edge->to + !!(edge->flags & TS_EDGE_TO_END);

			if ((edge->flags & TS_EDGE_FROM_START ? 0u : 1u) == (point & 1) &&
			    --waits[to] == 0)
				queue[tail++] = to;
		}
	}
	TS_CHECK_INT(tail, points);
	free(waits);
	free(queue);
}

static inline void check_graph(const struct ts_graph *graph, int64_t uncertainty_ns)
{
	check_index(graph);
	check_times(graph, uncertainty_ns);
	check_acyclic(graph);
}

/* Takes the reader; the graph is valid. */
static inline void load_graph_of(struct graphed *graphed, unsigned int flags,
				 struct ts_reader *reader)
{
	memset(graphed, 0, sizeof(*graphed));
	graphed->loaded.readers[graphed->loaded.count++] = reader;
	build_graph(graphed, flags);
	check_graph(graphed->graph, 0);
}

static inline void load_graph(struct graphed *graphed, unsigned int flags, const char *events)
{
	load_graph_of(graphed, flags, read_events(events, 0));
}

#endif
