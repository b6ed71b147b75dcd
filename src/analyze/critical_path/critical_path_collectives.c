/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups commands into collectives by the graph's edges between their starts and ends. Each member
 * waits for all members, whichever came last in the recording.
 */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

bool ts_path_is_collective_edge(const struct ts_edge *edge, const struct ts_graph *graph)
{
	return edge->kind == TS_EDGE_COLLECTIVE && (edge->flags & TS_EDGE_FROM_START) &&
	       (edge->flags & TS_EDGE_TO_END) && edge->from < graph->work->command_count &&
	       edge->to < graph->work->command_count;
}

/* Puts both ends of an edge into one collective, unless they are already in two. */
static void join(struct ts_path_collectives *collectives, const struct ts_edge *edge)
{
	uint32_t *from = &collectives->of_node[edge->from], *to = &collectives->of_node[edge->to];

	if (*from == TS_WORK_NONE && *to == TS_WORK_NONE)
		*from = *to = collectives->count++;
	else if (*from == TS_WORK_NONE)
		*from = *to;
	else if (*to == TS_WORK_NONE)
		*to = *from;
}

/* Lists the members of each collective. */
static int list_members(struct ts_path_collectives *collectives, uint32_t node_count)
{
	collectives->first = calloc((size_t)collectives->count + 2, sizeof(*collectives->first));
	if (!collectives->first)
		return TS_ENOMEM;
	/*
	 * Counting sort: first[m + 2] counts m's members, then first[m + 1] is where they begin,
	 * then where they end.
	 */
	for (uint32_t node = 0; node < node_count; node++)
		if (collectives->of_node[node] != TS_WORK_NONE)
			collectives->first[collectives->of_node[node] + 2]++;
	for (uint32_t m = 1; m <= collectives->count; m++)
		collectives->first[m + 1] += collectives->first[m];
	collectives->members = ts_alloc_array(collectives->first[collectives->count + 1],
					      sizeof(*collectives->members));
	if (!collectives->members)
		return TS_ENOMEM;
	for (uint32_t node = 0; node < node_count; node++) {
		uint32_t collective = collectives->of_node[node];

		if (collective != TS_WORK_NONE)
			collectives->members[collectives->first[collective + 1]++] = node;
	}
	return TS_OK;
}

int ts_path_collectives_init(struct ts_path_collectives *collectives, const struct ts_graph *graph)
{
	*collectives = (struct ts_path_collectives){ 0 };
	if (!graph->kind_count[TS_EDGE_COLLECTIVE])
		return TS_OK;
	collectives->of_node = ts_alloc_array(graph->node_count, sizeof(*collectives->of_node));
	if (!collectives->of_node)
		return TS_ENOMEM;
	memset(collectives->of_node, 0xff,
	       (size_t)graph->node_count * sizeof(*collectives->of_node));
	for (size_t i = 0; i < graph->edge_count; i++)
		if (ts_path_is_collective_edge(&graph->edges[i], graph))
			join(collectives, &graph->edges[i]);
	return list_members(collectives, graph->node_count);
}

void ts_path_collectives_release(struct ts_path_collectives *collectives)
{
	free(collectives->of_node);
	free(collectives->first);
	free(collectives->members);
	*collectives = (struct ts_path_collectives){ 0 };
}
