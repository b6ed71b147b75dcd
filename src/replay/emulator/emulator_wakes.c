/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for other threads: after a long inactive stretch, a thread continues after the
 * event that woke it (docs/state.md, "Stretches and wakes"). Without this a thread would keep its
 * recorded times whatever happens to the others.
 */
#include "base/ns.h"
#include "replay/emulator/emulator_internal.h"

static uint32_t thread_of(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;

	node -= work->command_count;
	return node < work->call_count ? work->calls[node].thread
				       : graph->stretches[node - work->call_count].thread;
}

/* Number of a thread's points recorded before `time`; also_at: or at it. */
static uint32_t points_before(const struct ts_emulator_build *build, uint32_t t, int64_t time,
			      bool also_at)
{
	const struct ts_emulator_thread *thread = &build->model->threads[t];
	uint32_t low = 0, high = thread->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int64_t at = build->recorded[thread->first + middle];

		if (at < time || (also_at && at == time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* When the thread began to wait: the end of its previous activity. */
static int64_t waits_since(const struct ts_graph *graph, uint32_t node)
{
	int64_t since = INT64_MIN;

	for (uint32_t e = graph->first_in[node]; e < graph->first_in[node + 1]; e++)
		if (graph->edges[e].kind == TS_EDGE_PROGRAM &&
		    !(graph->edges[e].flags & (TS_EDGE_TO_END | TS_EDGE_FROM_START)))
			since = TS_MAX(since, ts_graph_node_end(graph, graph->edges[e].from));
	return since;
}

/* Removes the time the thread waited: the wake decides when it continues. */
static void shorten(struct ts_emulator_build *build, uint32_t point, bool is_first, int64_t since,
		    int64_t until)
{
	struct ts_emulator_point *at = &build->model->points[point];

	if (is_first) {
		at->gap_ns = INT64_MIN;
		return;
	}
	since = TS_MAX(since, build->recorded[point - 1]);
	if (until > since)
		at->gap_ns = TS_MAX(at->gap_ns - (until - since), 0);
}

/* is_other: another node than in the previous wake; its waiting time was not removed yet. */
static void add_wake(struct ts_emulator_build *build, const struct ts_edge *edge, bool is_other)
{
	const struct ts_graph *graph = build->graph;
	uint32_t from = thread_of(graph, edge->from), to = thread_of(graph, edge->to);
	const struct ts_emulator_thread *waker = &build->model->threads[from];
	const struct ts_emulator_thread *woken = &build->model->threads[to];
	int64_t time = ts_edge_from_time(graph, edge), until = ts_edge_to_time(graph, edge);
	uint32_t ahead = points_before(build, from, time, true);
	uint32_t next = points_before(build, to, until, false);
	uint32_t source = waker->first + ahead - 1, target = woken->first + next;

	/* Without a call before and after the wake there is nothing to move. */
	if (ahead == 0 || next == woken->count)
		return;
	if (is_other)
		shorten(build, target, next == 0, waits_since(graph, edge->to), until);
	ts_emulator_add_arrow(build, ts_emulator_point_node(build->model, source),
			      ts_emulator_point_node(build->model, target),
			      ts_ns_sub(build->recorded[target], build->recorded[source]));
}

/* Threads of the model are those of the work, followed by synthetic ones. */
void ts_emulator_add_wakes(struct ts_emulator_build *build)
{
	const struct ts_graph *graph = build->graph;
	uint32_t last = TS_WORK_NONE;

	for (size_t i = 0; i < graph->edge_count && !build->rc; i++) {
		const struct ts_edge *edge = &graph->edges[i];

		if (edge->kind != TS_EDGE_WAKE || edge->from < graph->work->command_count ||
		    edge->to < graph->work->command_count || edge->flags & TS_EDGE_TO_END)
			continue;
		add_wake(build, edge, edge->to != last);
		last = edge->to;
	}
}
