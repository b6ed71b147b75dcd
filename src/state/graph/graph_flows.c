/* SPDX-License-Identifier: Apache-2.0 */
/* Edges from flows between threads: forward operator to backward operator, and others. */
#include "state/graph/graph_build.h"

/* Number of items around an instant that are examined. */
#define LOOK_BACK 64

/* Index of a thread's first item that starts at or after an instant. */
static size_t first_from(const struct ts_graph_build *build, const struct ts_graph_thread *thread,
			 int64_t time)
{
	size_t low = thread->first, high = thread->first + thread->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ts_graph_node_start(build->graph, build->items[middle]) < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A thread's last item that ended by an instant; TS_WORK_NONE. */
static uint32_t last_by(const struct ts_graph_build *build, uint32_t thread, int64_t time)
{
	const struct ts_graph_thread *in = &build->threads[thread];
	size_t i = first_from(build, in, time);

	for (int n = 0; i-- > in->first && n < LOOK_BACK; n++) {
		if (ts_graph_node_end(build->graph, build->items[i]) <= time)
			return build->items[i];
	}
	return TS_WORK_NONE;
}

static uint32_t item_from(const struct ts_graph_build *build, uint32_t thread, int64_t time)
{
	const struct ts_graph_thread *in = &build->threads[thread];
	size_t i = first_from(build, in, time);

	return i < in->first + in->count ? build->items[i] : TS_WORK_NONE;
}

/* End of the operator that started at an instant; the instant itself if there is none. */
static int64_t operator_end(const struct ts_work *work, uint32_t thread, int64_t time)
{
	uint32_t slice = ts_work_slice_at(work, thread, time);

	while (slice != TS_WORK_NONE && work->slices[slice].parent != TS_WORK_NONE &&
	       work->slices[work->slices[slice].parent].start == time &&
	       work->slices[work->slices[slice].parent].class == TS_SLICE_OP)
		slice = work->slices[slice].parent;
	return slice == TS_WORK_NONE ? time : work->slices[slice].end;
}

static void add_flow(struct ts_graph_build *build, const struct ts_work_flow *flow, bool forward)
{
	const struct ts_work *work = build->work;
	int64_t time = flow->from_time;
	uint32_t from, to;

	if (flow->from_thread >= work->thread_count || flow->to_thread >= work->thread_count)
		return;
	if (forward)
		time = operator_end(work, flow->from_thread, time);
	from = last_by(build, flow->from_thread, time);
	to = item_from(build, flow->to_thread, flow->to_time);
	if (from != TS_WORK_NONE && to != TS_WORK_NONE)
		ts_graph_add(build, from, to, forward ? TS_EDGE_FORWARD : TS_EDGE_FLOW, 0);
}

void ts_graph_add_flows(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;
	uint32_t forward = ts_work_find_text(work, "fwdbwd");

	if (!(build->flags & TS_GRAPH_HOST))
		return;
	for (uint32_t i = 0; i < work->flow_count && !build->rc; i++)
		add_flow(build, &work->flows[i],
			 forward != 0 && work->flows[i].category == forward);
}
