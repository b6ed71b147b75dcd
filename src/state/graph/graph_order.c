/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts edges by node and breaks cycles. Edges go forward in time, so a cycle can only consist of
 * zero-time edges through events of zero length (common with microsecond times): only those are
 * walked.
 */
#include "state/graph/graph_build.h"

/* ---- by node ---- */

/* first[n + 1] counts the edges of node n; afterwards first[n] is where they begin. */
static void sum_up(uint32_t *first, uint32_t node_count)
{
	for (uint32_t n = 0; n < node_count; n++)
		first[n + 1] += first[n];
}

/* Sorts edges by `to`, keeping insertion order within a node. */
static int order_in(struct ts_graph *graph)
{
	struct ts_edge *sorted = calloc(graph->edge_count + 1, sizeof(*sorted));
	uint32_t *next = ts_alloc_array((size_t)graph->node_count + 1, sizeof(*next));

	free(graph->first_in);
	graph->first_in = calloc((size_t)graph->node_count + 1, sizeof(*graph->first_in));
	if (!sorted || !next || !graph->first_in) {
		free(sorted);
		free(next);
		return TS_ENOMEM;
	}
	for (size_t i = 0; i < graph->edge_count; i++)
		graph->first_in[graph->edges[i].to + 1]++;
	sum_up(graph->first_in, graph->node_count);
	memcpy(next, graph->first_in, ((size_t)graph->node_count + 1) * sizeof(*next));
	for (size_t i = 0; i < graph->edge_count; i++)
		sorted[next[graph->edges[i].to]++] = graph->edges[i];
	free(next);
	free(graph->edges);
	graph->edges = sorted;
	return TS_OK;
}

static int order_out(struct ts_graph *graph)
{
	uint32_t *next = ts_alloc_array((size_t)graph->node_count + 1, sizeof(*next));

	free(graph->first_out);
	free(graph->out);
	graph->first_out = calloc((size_t)graph->node_count + 1, sizeof(*graph->first_out));
	graph->out = ts_alloc_array(graph->edge_count, sizeof(*graph->out));
	if (!next || !graph->first_out || !graph->out) {
		free(next);
		return TS_ENOMEM;
	}
	for (size_t i = 0; i < graph->edge_count; i++)
		graph->first_out[graph->edges[i].from + 1]++;
	sum_up(graph->first_out, graph->node_count);
	memcpy(next, graph->first_out, ((size_t)graph->node_count + 1) * sizeof(*next));
	for (size_t i = 0; i < graph->edge_count; i++)
		graph->out[next[graph->edges[i].from]++] = (uint32_t)i;
	free(next);
	return TS_OK;
}

int ts_graph_index(struct ts_graph *graph)
{
	int rc = order_in(graph);

	return rc ? rc : order_out(graph);
}

/* ---- cycles ---- */

/*
 * Points are the starts (2n) and ends (2n + 1) of nodes. `waits` counts the unvisited zero-time
 * predecessors of each; points with none are visited in turn (`queue`).
 */
struct walk {
	struct ts_graph *graph;
	bool all; /* some edges go back in time: all edges count, not only zero-time ones */
	uint32_t *waits;
	uint32_t *queue;
	size_t head, tail;
	bool *passed;
	bool *dropped; /* edges */
	size_t drop_count;
};

static uint32_t from_point(const struct ts_edge *edge)
{
	return 2 * edge->from + !(edge->flags & TS_EDGE_FROM_START);
}

static uint32_t to_point(const struct ts_edge *edge)
{
	return 2 * edge->to + !!(edge->flags & TS_EDGE_TO_END);
}

static int64_t point_time(const struct ts_graph *graph, uint32_t point)
{
	return point & 1 ? ts_graph_node_end(graph, point / 2)
			 : ts_graph_node_start(graph, point / 2);
}

static bool counts(const struct walk *walk, const struct ts_edge *edge)
{
	return walk->all ||
	       point_time(walk->graph, from_point(edge)) == point_time(walk->graph, to_point(edge));
}

static bool inner_counts(const struct walk *walk, uint32_t node)
{
	return walk->all ||
	       ts_graph_node_start(walk->graph, node) == ts_graph_node_end(walk->graph, node);
}

static void arrive(struct walk *walk, uint32_t point)
{
	if (--walk->waits[point] == 0 && !walk->passed[point]) {
		walk->passed[point] = true;
		walk->queue[walk->tail++] = point;
	}
}

static void pass(struct walk *walk, uint32_t point)
{
	const struct ts_graph *graph = walk->graph;
	uint32_t node = point / 2;

	if (!(point & 1) && inner_counts(walk, node))
		arrive(walk, point + 1);
	for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++) {
		const struct ts_edge *edge = &graph->edges[graph->out[i]];

		if (from_point(edge) == point && !walk->dropped[graph->out[i]] &&
		    counts(walk, edge))
			arrive(walk, to_point(edge));
	}
}

/* A point in a cycle: drops its remaining incoming edges. */
static void force(struct walk *walk, uint32_t point)
{
	const struct ts_graph *graph = walk->graph;
	uint32_t node = point / 2;

	for (uint32_t i = graph->first_in[node]; i < graph->first_in[node + 1]; i++) {
		const struct ts_edge *edge = &graph->edges[i];

		if (to_point(edge) == point && !walk->passed[from_point(edge)] &&
		    counts(walk, edge)) {
			walk->dropped[i] = true;
			walk->drop_count++;
		}
	}
	walk->passed[point] = true;
	walk->queue[walk->tail++] = point;
}

static void walk_queue(struct walk *walk)
{
	while (walk->head < walk->tail)
		pass(walk, walk->queue[walk->head++]);
}

struct timed_point {
	int64_t time;
	uint32_t point;
};

static int compare_points(const void *one, const void *other)
{
	const struct timed_point *a = one, *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->point < b->point ? -1 : a->point > b->point;
}

/* There are cycles: forces the earliest unvisited point, in time order. */
static int force_rest(struct walk *walk, size_t points)
{
	size_t count = 0;
	struct timed_point *rest = ts_alloc_array(points, sizeof(*rest));

	if (!rest)
		return TS_ENOMEM;
	for (size_t p = 0; p < points; p++) {
		if (!walk->passed[p])
			rest[count++] = (struct timed_point){ point_time(walk->graph, (uint32_t)p),
							      (uint32_t)p };
	}
	ts_sort(rest, count, sizeof(*rest), compare_points);
	for (size_t i = 0; i < count; i++) {
		if (walk->passed[rest[i].point])
			continue;
		force(walk, rest[i].point);
		walk_queue(walk);
	}
	free(rest);
	return TS_OK;
}

/*
 * Cycles are only possible through zero-length events, or from the start of one collective to the
 * end of another.
 */
static bool may_have_cycles(const struct walk *walk)
{
	const struct ts_graph *graph = walk->graph;

	if (walk->all || graph->work->rank_count > 1)
		return true;
	for (uint32_t n = 0; n < graph->node_count; n++) {
		if (inner_counts(walk, n))
			return true;
	}
	return false;
}

static void count_waits(struct walk *walk)
{
	const struct ts_graph *graph = walk->graph;

	for (size_t i = 0; i < graph->edge_count; i++) {
		if (counts(walk, &graph->edges[i]))
			walk->waits[to_point(&graph->edges[i])]++;
	}
	for (uint32_t n = 0; n < graph->node_count; n++) {
		if (inner_counts(walk, n))
			walk->waits[2 * n + 1]++;
	}
}

static int walk_all(struct walk *walk, size_t points)
{
	count_waits(walk);
	for (size_t p = 0; p < points; p++) {
		if (walk->waits[p] == 0) {
			walk->passed[p] = true;
			walk->queue[walk->tail++] = (uint32_t)p;
		}
	}
	walk_queue(walk);
	return walk->tail < points ? force_rest(walk, points) : TS_OK;
}

static void drop_edges(struct walk *walk)
{
	struct ts_graph *graph = walk->graph;
	size_t kept = 0;

	for (size_t i = 0; i < graph->edge_count; i++) {
		if (!walk->dropped[i])
			graph->edges[kept++] = graph->edges[i];
	}
	graph->backward_count += graph->edge_count - kept;
	graph->edge_count = kept;
}

int ts_graph_break_cycles(struct ts_graph *graph, bool any_back)
{
	size_t points = (size_t)graph->node_count * 2;
	struct walk walk = { .graph = graph, .all = any_back };
	int rc = TS_ENOMEM;

	if (!may_have_cycles(&walk))
		return TS_OK;
	walk.waits = calloc(points + 1, sizeof(*walk.waits));
	walk.queue = ts_alloc_array(points, sizeof(*walk.queue));
	walk.passed = calloc(points + 1, sizeof(*walk.passed));
	walk.dropped = calloc(graph->edge_count + 1, sizeof(*walk.dropped));
	if (walk.waits && walk.queue && walk.passed && walk.dropped)
		rc = walk_all(&walk, points);
	if (!rc && walk.drop_count) {
		drop_edges(&walk);
		rc = ts_graph_index(graph);
	}
	free(walk.waits);
	free(walk.queue);
	free(walk.passed);
	free(walk.dropped);
	return rc;
}
