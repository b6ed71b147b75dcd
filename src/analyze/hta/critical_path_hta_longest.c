/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The longest path through HTA's graph. Ties are broken as HTA's library (networkx) does: points in
 * order of topological generations, predecessors in the order in which their edges were added.
 */
#include "analyze/hta/critical_path_hta.h"

#include <string.h>

struct longest {
	const struct ts_hta_graph *graph;
	uint32_t
		*position; /* of each point, in order of first appearance; TS_WORK_NONE: no edges */
	uint32_t *points;  /* by position */
	uint32_t *first_out; /* by position, count + 1: into out */
	uint32_t *out;       /* edge numbers */
	uint32_t *first_in, *in;
	uint32_t *left;  /* incoming edges not yet processed */
	uint32_t *order; /* positions, by generation */
	uint32_t *best;  /* predecessor on the longest path to it; itself: none */
	int64_t *length; /* of that path */
	uint32_t count;  /* positions */
};

static void release(struct longest *longest)
{
	free(longest->position);
	free(longest->points);
	free(longest->first_out);
	free(longest->out);
	free(longest->first_in);
	free(longest->in);
	free(longest->left);
	free(longest->order);
	free(longest->best);
	free(longest->length);
}

static void appear(struct longest *longest, uint32_t point)
{
	if (longest->position[point] != TS_WORK_NONE)
		return;
	longest->position[point] = longest->count;
	longest->points[longest->count++] = point;
}

static int number_points(struct longest *longest)
{
	const struct ts_hta_graph *graph = longest->graph;
	size_t points = (size_t)graph->event_count * 2;

	longest->position = ts_alloc_array(points, sizeof(*longest->position));
	longest->points = ts_alloc_array(points, sizeof(*longest->points));
	if (!longest->position || !longest->points)
		return TS_ENOMEM;
	memset(longest->position, 0xff, points * sizeof(*longest->position));
	for (size_t i = 0; i < graph->edge_count; i++) {
		appear(longest, graph->edges[i].from);
		appear(longest, graph->edges[i].to);
	}
	return TS_OK;
}

/* Indexes edges by one of their ends, in the order in which they were added. */
static int index_edges(const struct longest *longest, bool by_from, uint32_t **ret_first,
		       uint32_t **ret_edges)
{
	const struct ts_hta_graph *graph = longest->graph;
	uint32_t *first = calloc((size_t)longest->count + 2, sizeof(*first));
	uint32_t *edges = ts_alloc_array(graph->edge_count, sizeof(*edges));

	*ret_first = first;
	*ret_edges = edges;
	if (!first || !edges)
		return TS_ENOMEM;
	/*
	 * Counting sort: first[p + 2] counts p's edges, then first[p + 1] is where they begin, then
	 * where they end.
	 */
	for (size_t i = 0; i < graph->edge_count; i++) {
		uint32_t point = by_from ? graph->edges[i].from : graph->edges[i].to;

		first[longest->position[point] + 2]++;
	}
	for (uint32_t p = 1; p < longest->count; p++)
		first[p + 1] += first[p];
	for (size_t i = 0; i < graph->edge_count; i++) {
		uint32_t point = by_from ? graph->edges[i].from : graph->edges[i].to;

		edges[first[longest->position[point] + 1]++] = (uint32_t)i;
	}
	return TS_OK;
}

/* Topological order; false if the graph has a cycle. */
static bool order_points(struct longest *longest)
{
	uint32_t done = 0, count = 0;

	for (uint32_t p = 0; p < longest->count; p++) {
		longest->left[p] = longest->first_in[p + 1] - longest->first_in[p];
		if (!longest->left[p])
			longest->order[count++] = p;
	}
	for (; done < count; done++) {
		uint32_t p = longest->order[done];

		for (uint32_t i = longest->first_out[p]; i < longest->first_out[p + 1]; i++) {
			uint32_t to = longest->position[longest->graph->edges[longest->out[i]].to];

			if (--longest->left[to] == 0)
				longest->order[count++] = to;
		}
	}
	return count == longest->count;
}

static void measure(struct longest *longest, uint32_t p)
{
	longest->best[p] = p;
	longest->length[p] = 0;
	for (uint32_t i = longest->first_in[p]; i < longest->first_in[p + 1]; i++) {
		const struct ts_hta_edge *edge = &longest->graph->edges[longest->in[i]];
		uint32_t from = longest->position[edge->from];
		int64_t length = ts_ns_add(longest->length[from], TS_MAX(edge->weight, 0));

		if (longest->best[p] != p && length <= longest->length[p])
			continue;
		longest->best[p] = from;
		longest->length[p] = length;
	}
}

static int read_path(const struct longest *longest, struct ts_hta_path *path)
{
	uint32_t end = longest->order[0], p;
	size_t count = 1;

	for (uint32_t i = 0; i < longest->count; i++)
		if (longest->length[longest->order[i]] > longest->length[end])
			end = longest->order[i];
	for (p = end; longest->best[p] != p; p = longest->best[p])
		count++;
	path->points = ts_alloc_array(count, sizeof(*path->points));
	if (!path->points)
		return TS_ENOMEM;
	path->point_count = count;
	for (p = end; count--; p = longest->best[p])
		path->points[count] = longest->points[p];
	return TS_OK;
}

/*
 * The sum of the edges' weights, which may be below the path's length: negative weights count as 0
 * there.
 */
static void weigh(const struct ts_hta_graph *graph, struct ts_hta_path *path)
{
	for (size_t i = 1; i < path->point_count; i++) {
		uint64_t position = 0;

		ts_pairmap_get(&graph->by_points, path->points[i - 1], path->points[i], &position);
		path->weight = ts_ns_add(path->weight, graph->edges[position].weight);
	}
}

/* HTA rejects a wait between two commands of the same stream. */
static bool is_valid(const struct ts_hta_graph *graph)
{
	const struct ts_work *work = graph->work;

	for (size_t i = 0; i < graph->edge_count; i++) {
		uint32_t from = graph->edges[i].from / 2, to = graph->edges[i].to / 2;
		uint32_t first = graph->first_command;

		if (graph->edges[i].type != TS_HTA_SYNC || !ts_hta_is_command(graph, from) ||
		    !ts_hta_is_command(graph, to))
			continue;
		if (work->streams[work->commands[from - first].stream].number ==
		    work->streams[work->commands[to - first].stream].number)
			return false;
	}
	return true;
}

static int find_path(struct longest *longest, struct ts_hta_path *path)
{
	size_t count;

	if (number_points(longest) ||
	    index_edges(longest, true, &longest->first_out, &longest->out) ||
	    index_edges(longest, false, &longest->first_in, &longest->in))
		return TS_ENOMEM;
	count = longest->count;
	path->node_count = count;
	longest->left = ts_alloc_array(count, sizeof(*longest->left));
	longest->order = ts_alloc_array(count, sizeof(*longest->order));
	longest->best = ts_alloc_array(count, sizeof(*longest->best));
	longest->length = ts_alloc_array(count, sizeof(*longest->length));
	if (!longest->left || !longest->order || !longest->best || !longest->length)
		return TS_ENOMEM;
	path->valid = count && is_valid(longest->graph) && order_points(longest);
	if (!path->valid)
		return TS_OK;
	for (uint32_t i = 0; i < longest->count; i++)
		measure(longest, longest->order[i]);
	return read_path(longest, path);
}

int ts_hta_longest_path(const struct ts_hta_graph *graph, struct ts_hta_path *ret_path,
			struct ts_error *err)
{
	struct longest longest = { .graph = graph };
	int rc;

	*ret_path = (struct ts_hta_path){ 0 };
	for (size_t i = 0; i < graph->edge_count; i++)
		ret_path->types[graph->edges[i].type]++;
	rc = find_path(&longest, ret_path);
	release(&longest);
	if (rc)
		return ts_error_set(err, rc, "no memory for HTA's critical path");
	weigh(graph, ret_path);
	return TS_OK;
}

void ts_hta_path_release(struct ts_hta_path *path)
{
	free(path->points);
	*path = (struct ts_hta_path){ 0 };
}
