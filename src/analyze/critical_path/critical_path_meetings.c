/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which commands meet in a collective, by the graph's edges between their starts and ends. All of
 * them wait for all of them, whoever came last when the trace was recorded.
 */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

bool ts_path_is_meeting_edge(const struct ts_edge *edge, const struct ts_graph *graph)
{
	return edge->kind == TS_EDGE_COLLECTIVE && (edge->flags & TS_EDGE_FROM_START) &&
	       (edge->flags & TS_EDGE_TO_END) && edge->from < graph->work->command_count &&
	       edge->to < graph->work->command_count;
}

/* Both ends of an edge are in one meeting; where they are in two already, it is left at that. */
static void join(struct ts_path_meetings *meetings, const struct ts_edge *edge)
{
	uint32_t *from = &meetings->of_node[edge->from], *to = &meetings->of_node[edge->to];

	if (*from == TS_WORK_NONE && *to == TS_WORK_NONE)
		*from = *to = meetings->count++;
	else if (*from == TS_WORK_NONE)
		*from = *to;
	else if (*to == TS_WORK_NONE)
		*to = *from;
}

/* Members by meeting. */
static int list_members(struct ts_path_meetings *meetings, uint32_t node_count)
{
	meetings->first = calloc((size_t)meetings->count + 2, sizeof(*meetings->first));
	if (!meetings->first)
		return TS_ENOMEM;
	/*
	 * first[m + 2] counts, then first[m + 1] is where m's members begin, then where they end.
	 */
	for (uint32_t node = 0; node < node_count; node++)
		if (meetings->of_node[node] != TS_WORK_NONE)
			meetings->first[meetings->of_node[node] + 2]++;
	for (uint32_t m = 1; m <= meetings->count; m++)
		meetings->first[m + 1] += meetings->first[m];
	meetings->members =
		ts_alloc_array(meetings->first[meetings->count + 1], sizeof(*meetings->members));
	if (!meetings->members)
		return TS_ENOMEM;
	for (uint32_t node = 0; node < node_count; node++) {
		uint32_t meeting = meetings->of_node[node];

		if (meeting != TS_WORK_NONE)
			meetings->members[meetings->first[meeting + 1]++] = node;
	}
	return TS_OK;
}

int ts_path_meetings_init(struct ts_path_meetings *meetings, const struct ts_graph *graph)
{
	*meetings = (struct ts_path_meetings){ 0 };
	if (!graph->kind_count[TS_EDGE_COLLECTIVE])
		return TS_OK;
	meetings->of_node = ts_alloc_array(graph->node_count, sizeof(*meetings->of_node));
	if (!meetings->of_node)
		return TS_ENOMEM;
	memset(meetings->of_node, 0xff, (size_t)graph->node_count * sizeof(*meetings->of_node));
	for (size_t i = 0; i < graph->edge_count; i++)
		if (ts_path_is_meeting_edge(&graph->edges[i], graph))
			join(meetings, &graph->edges[i]);
	return list_members(meetings, graph->node_count);
}

void ts_path_meetings_release(struct ts_path_meetings *meetings)
{
	free(meetings->of_node);
	free(meetings->first);
	free(meetings->members);
	*meetings = (struct ts_path_meetings){ 0 };
}
