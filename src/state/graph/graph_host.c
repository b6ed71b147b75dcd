/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host side: splits each thread's time into calls and, between them, stretches with the same
 * innermost slice, joined in program order. Long gaps without activity are left to graph_wake.c.
 */
#include "base/ns.h"
#include "state/graph/graph_build.h"

/* Longer than this without a call or operator: the thread may have waited. */
#define GAP_NS 1000000

/* A call that has not ended yet; other calls may nest in it. */
struct open_call {
	uint32_t node;
	uint32_t last_child; /* TS_WORK_NONE: none yet */
};

/* State of a walk along a thread. */
struct walk {
	struct ts_graph_build *build;
	const struct ts_work_thread *thread;
	uint32_t number;               /* of the thread */
	uint32_t next_call, end_calls; /* not taken yet */
	uint32_t last;                 /* node that ended last; TS_WORK_NONE: none */
	int64_t covered;               /* calls reach up to this time */
	size_t open_gap;               /* ends with the next item; SIZE_MAX: none */
	struct open_call *calls;
	size_t call_depth, call_capacity;
	uint32_t *slices; /* slices that enclose the current position */
	size_t slice_depth, slice_capacity;
};

uint32_t ts_graph_add_stretch(struct ts_graph_build *build, const struct ts_graph_stretch *stretch)
{
	struct ts_graph *graph = build->graph;

	if (!build->rc && graph->stretch_count == UINT32_MAX / 2)
		build->rc = TS_ENOMEM;
	if (!build->rc)
		build->rc = ts_grow_array((void **)&graph->stretches, &build->stretch_capacity,
					  (size_t)graph->stretch_count + 1, sizeof(*stretch));
	if (build->rc)
		return TS_WORK_NONE;
	graph->stretches[graph->stretch_count] = *stretch;
	return ts_graph_stretch_node(graph, graph->stretch_count++);
}

/* ---- items in turn ---- */

static size_t add_gap(struct walk *walk, int64_t from, int64_t to, uint32_t slice)
{
	struct ts_graph_build *build = walk->build;
	struct ts_graph_gap gap = {
		.from = from,
		.to = to,
		.thread = walk->number,
		.slice = slice,
		.prev = walk->last,
		.next = TS_WORK_NONE,
	};

	if (!build->rc)
		build->rc = ts_grow_array((void **)&build->gaps, &build->gap_capacity,
					  build->gap_count + 1, sizeof(gap));
	if (build->rc)
		return SIZE_MAX;
	build->gaps[build->gap_count] = gap;
	return build->gap_count++;
}

static void add_item(struct walk *walk, uint32_t node)
{
	struct ts_graph_build *build = walk->build;

	if (walk->last == TS_WORK_NONE && walk->open_gap == SIZE_MAX)
		walk->open_gap = add_gap(walk, INT64_MAX, ts_graph_node_start(build->graph, node),
					 TS_WORK_NONE);
	if (!build->rc)
		build->rc = ts_grow_array((void **)&build->items, &build->item_capacity,
					  build->item_count + 1, sizeof(*build->items));
	if (build->rc)
		return;
	build->items[build->item_count++] = node;
	if (walk->open_gap != SIZE_MAX)
		build->gaps[walk->open_gap].next = node;
	walk->open_gap = SIZE_MAX;
}

static void follow(struct walk *walk, uint32_t node)
{
	if (walk->last != TS_WORK_NONE)
		ts_graph_add(walk->build, walk->last, node, TS_EDGE_PROGRAM, 0);
}

/* Time between calls with the same innermost slice. */
static void add_piece(struct walk *walk, int64_t from, int64_t to, uint32_t slice)
{
	struct ts_graph_stretch stretch = {
		.start = from, .end = to, .thread = walk->number, .slice = slice
	};
	const struct ts_work *work = walk->build->work;
	uint32_t node;

	if (slice == TS_WORK_NONE && walk->last == TS_WORK_NONE)
		return;
	if (ts_ns_sub(to, from) > GAP_NS &&
	    (slice == TS_WORK_NONE || work->slices[slice].class != TS_SLICE_OP)) {
		walk->open_gap = add_gap(walk, from, to, slice);
		return;
	}
	node = ts_graph_add_stretch(walk->build, &stretch);
	if (node == TS_WORK_NONE)
		return;
	add_item(walk, node);
	follow(walk, node);
	walk->last = node;
}

/* ---- calls, and calls inside them ---- */

static int64_t end_of(const struct walk *walk, uint32_t node)
{
	return ts_graph_node_end(walk->build->graph, node);
}

static void close_call(struct walk *walk)
{
	struct open_call closed = walk->calls[--walk->call_depth];

	if (closed.last_child != TS_WORK_NONE)
		ts_graph_add(walk->build, closed.last_child, closed.node, TS_EDGE_PROGRAM,
			     TS_EDGE_TO_END);
	if (walk->call_depth) {
		struct open_call *parent = &walk->calls[walk->call_depth - 1];

		if (end_of(walk, closed.node) <= end_of(walk, parent->node))
			parent->last_child = closed.node;
	}
	if (walk->last == TS_WORK_NONE || end_of(walk, closed.node) >= end_of(walk, walk->last))
		walk->last = closed.node;
}

/* Depends on the previous item inside the enclosing call, else on that call's start. */
static void open_call(struct walk *walk, uint32_t node)
{
	struct ts_graph_build *build = walk->build;

	add_item(walk, node);
	if (walk->call_depth) {
		const struct open_call *parent = &walk->calls[walk->call_depth - 1];

		if (parent->last_child != TS_WORK_NONE)
			ts_graph_add(build, parent->last_child, node, TS_EDGE_PROGRAM, 0);
		else
			ts_graph_add(build, parent->node, node, TS_EDGE_PROGRAM,
				     TS_EDGE_FROM_START);
	} else {
		follow(walk, node);
	}
	if (!build->rc)
		build->rc = ts_grow_array((void **)&walk->calls, &walk->call_capacity,
					  walk->call_depth + 1, sizeof(*walk->calls));
	if (!build->rc)
		walk->calls[walk->call_depth++] = (struct open_call){ node, TS_WORK_NONE };
}

/* Takes the next call, with all nested calls that end before it. */
static void take_calls(struct walk *walk)
{
	const struct ts_work *work = walk->build->work;

	do {
		uint32_t node = ts_graph_call_node(walk->build->graph, walk->next_call);
		int64_t start = work->calls[walk->next_call++].start;

		while (walk->call_depth &&
		       end_of(walk, walk->calls[walk->call_depth - 1].node) <= start)
			close_call(walk);
		open_call(walk, node);
		walk->covered = TS_MAX(walk->covered, end_of(walk, node));
	} while (!walk->build->rc && walk->next_call < walk->end_calls &&
		 work->calls[walk->next_call].start < walk->covered);
	while (walk->call_depth)
		close_call(walk);
}

/* ---- a thread ---- */

/* The innermost slice is constant over this range; calls are cut out. */
static void pass(struct walk *walk, int64_t from, int64_t to, uint32_t slice)
{
	const struct ts_work_call *calls = walk->build->work->calls;

	from = TS_MAX(from, walk->covered);
	while (!walk->build->rc && walk->next_call < walk->end_calls &&
	       calls[walk->next_call].start < to) {
		if (calls[walk->next_call].start > from)
			add_piece(walk, from, calls[walk->next_call].start, slice);
		take_calls(walk);
		from = TS_MAX(from, walk->covered);
	}
	if (from < to && to != INT64_MAX)
		add_piece(walk, from, to, slice);
}

static uint32_t innermost(const struct walk *walk)
{
	return walk->slice_depth ? walk->slices[walk->slice_depth - 1] : TS_WORK_NONE;
}

/* Pops slices that end by then; returns the time reached. */
static int64_t leave_slices(struct walk *walk, int64_t time, int64_t until)
{
	const struct ts_work_slice *slices = walk->build->work->slices;

	while (walk->slice_depth && slices[innermost(walk)].end <= until) {
		pass(walk, time, slices[innermost(walk)].end, innermost(walk));
		time = TS_MAX(time, slices[innermost(walk)].end);
		walk->slice_depth--;
	}
	return time;
}

static void walk_thread(struct walk *walk)
{
	const struct ts_work *work = walk->build->work;
	struct ts_graph_build *build = walk->build;
	int64_t time = INT64_MIN;

	for (uint32_t i = 0; i < walk->thread->slice_count && !build->rc; i++) {
		uint32_t slice = walk->thread->first_slice + i;

		if (work->slices[slice].class == TS_SLICE_GPU_ANNOTATION)
			continue;
		time = leave_slices(walk, time, work->slices[slice].start);
		pass(walk, time, work->slices[slice].start, innermost(walk));
		time = TS_MAX(time, work->slices[slice].start);
		build->rc = build->rc ? build->rc
				      : ts_grow_array((void **)&walk->slices, &walk->slice_capacity,
						      walk->slice_depth + 1, sizeof(*walk->slices));
		if (!build->rc)
			walk->slices[walk->slice_depth++] = slice;
	}
	time = leave_slices(walk, time, INT64_MAX);
	pass(walk, time, INT64_MAX, TS_WORK_NONE);
}

void ts_graph_add_host(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;
	struct walk walk = { .build = build };

	if (!(build->flags & TS_GRAPH_HOST))
		return;
	build->threads = ts_graph_array(build, work->thread_count, sizeof(*build->threads));
	for (uint32_t t = 0; t < work->thread_count && !build->rc; t++) {
		walk.thread = &work->threads[t];
		walk.number = t;
		walk.next_call = walk.thread->first_call;
		walk.end_calls = walk.thread->first_call + walk.thread->call_count;
		walk.last = TS_WORK_NONE;
		walk.covered = INT64_MIN;
		walk.open_gap = SIZE_MAX;
		build->threads[t].first = build->item_count;
		walk_thread(&walk);
		build->threads[t].count = build->item_count - build->threads[t].first;
	}
	free(walk.calls);
	free(walk.slices);
}
