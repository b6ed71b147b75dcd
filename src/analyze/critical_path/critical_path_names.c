/* SPDX-License-Identifier: Apache-2.0 */
/* Names the segments of a path and sums their time by name. */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

static const char *const GAP_NAMES[TS_EDGE_KIND_COUNT + 1] = {
	[TS_EDGE_PROGRAM] = "(nothing recorded)",
	[TS_EDGE_STREAM] = "(next in stream)",
	[TS_EDGE_EVENT] = "(event of another stream)",
	[TS_EDGE_GRAPH] = "(next in graph)",
	[TS_EDGE_FORWARD] = "(hand-over between threads)",
	[TS_EDGE_FLOW] = "(hand-over between threads)",
	[TS_EDGE_WAKE] = "(hand-over between threads)",
	[TS_PATH_NODE_TIME] = "(unknown)",
};

/*
 * The node that a segment belongs to; TS_WORK_NONE: none, it is a gap. Inside a call, the time
 * between nested calls belongs to the outer call.
 */
static uint32_t owner(const struct ts_graph *graph, const struct ts_path_segment *segment)
{
	uint32_t node = segment->node, cause = segment->cause;

	if (node == TS_WORK_NONE)
		return TS_WORK_NONE;
	switch (segment->kind) {
	case TS_PATH_NODE_TIME:
	case TS_EDGE_COLLECTIVE:
	case TS_EDGE_SYNC:
	case TS_EDGE_COPY:
		return node;
	case TS_EDGE_LAUNCH:
		return cause;
	case TS_EDGE_PROGRAM:
		if (ts_graph_node_end(graph, cause) > ts_graph_node_start(graph, node))
			return ts_graph_node_start(graph, node) < ts_graph_node_start(graph, cause)
				       ? node
				       : cause;
		return TS_WORK_NONE;
	default:
		return TS_WORK_NONE;
	}
}

/* Host work in a step and in no operator: a step encloses work, it is none to make faster. */
static bool is_of_step(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;
	uint32_t first = work->command_count + work->call_count, slice;

	if (node < first)
		return false;
	slice = graph->stretches[node - first].slice;
	return slice != TS_WORK_NONE && ts_work_is_step(work, &work->slices[slice]);
}

uint64_t ts_path_describe(const struct ts_graph *graph, const struct ts_path_segment *segment,
			  struct ts_path_sum *ret_sum)
{
	uint32_t node = owner(graph, segment);

	*ret_sum = (struct ts_path_sum){ .category = segment->category };
	if (node == TS_WORK_NONE) {
		ret_sum->text = GAP_NAMES[segment->kind] ? GAP_NAMES[segment->kind] : "(other)";
		return UINT64_C(1) << 32 | segment->kind;
	}
	ret_sum->text = ts_graph_node_name(graph, node);
	ret_sum->name = ts_path_node_name(graph, node);
	ret_sum->work = segment->category != TS_PATH_LAUNCH &&
			segment->category != TS_PATH_UNKNOWN && !is_of_step(graph, node);
	return ret_sum->name.name;
}

static int add_segment(struct ts_path_sums *sums, const struct ts_graph *graph,
		       const struct ts_path_segment *segment)
{
	struct ts_path_sum fresh, *sum;
	uint64_t what = ts_path_describe(graph, segment, &fresh);
	bool is_new = false;
	uint64_t *position = ts_pairmap_insert(&sums->positions, segment->category, what, &is_new);

	if (!position)
		return TS_ENOMEM;
	if (is_new) {
		if (ts_grow_array((void **)&sums->sums, &sums->capacity, sums->count + 1,
				  sizeof(*sums->sums)))
			return TS_ENOMEM;
		*position = sums->count;
		sums->sums[sums->count++] = fresh;
	}
	sum = &sums->sums[*position];
	sum->count++;
	sum->path_ns = ts_ns_add(sum->path_ns, ts_ns_sub(segment->end, segment->start));
	return TS_OK;
}

/*
 * Duration of all work in the window, by name: device, then host. The caller frees it; NULL: no
 * memory.
 */
static int64_t *sum_work(const struct ts_path_model *model, const struct ts_path_window *window)
{
	const struct ts_graph *graph = model->graph;
	size_t names = (size_t)ts_strmap_count(&graph->work->names) + 1;
	int64_t *totals = calloc(names * 2, sizeof(*totals));

	for (uint32_t node = 0; totals && node < graph->node_count; node++) {
		int64_t start = ts_graph_node_start(graph, node);
		struct ts_path_name name;
		int64_t *total;

		if (model->position[node * 2] == TS_WORK_NONE || start < window->from ||
		    start > window->to)
			continue;
		name = ts_path_node_name(graph, node);
		total = &totals[(name.device ? 0 : names) + name.name];
		*total = ts_ns_add(*total, ts_ns_sub(ts_graph_node_end(graph, node), start));
	}
	return totals;
}

static int compare_sums(const void *a, const void *b)
{
	const struct ts_path_sum *x = a, *y = b;

	if (x->path_ns != y->path_ns)
		return x->path_ns > y->path_ns ? -1 : 1;
	if (x->category != y->category)
		return x->category < y->category ? -1 : 1;
	return strcmp(x->text, y->text);
}

int ts_path_sum_names(struct ts_path_sums *sums, const struct ts_path_model *model,
		      const struct ts_path_window *window, const struct ts_path *path)
{
	size_t names = (size_t)ts_strmap_count(&model->graph->work->names) + 1;
	TS_AUTO_FREE int64_t *totals = sum_work(model, window);
	int rc = totals ? TS_OK : TS_ENOMEM;

	for (size_t i = 0; i < path->count && !rc; i++)
		rc = add_segment(sums, model->graph, &path->segments[i]);
	for (size_t i = 0; i < sums->count && !rc; i++) {
		struct ts_path_sum *sum = &sums->sums[i];

		sum->total_ns = totals[(sum->name.device ? 0 : names) + sum->name.name];
	}
	if (!rc && sums->count)
		qsort(sums->sums, sums->count, sizeof(*sums->sums), compare_sums);
	return rc;
}

void ts_path_sums_release(struct ts_path_sums *sums)
{
	free(sums->sums);
	ts_pairmap_release(&sums->positions);
}
