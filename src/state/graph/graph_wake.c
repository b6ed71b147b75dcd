/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Infers what let a thread continue or start after a long gap: work of another thread of its rank
 * that ended right before. A gap inside a slice without such an explanation counts as the thread's
 * own work.
 */
#include "state/graph/graph_build.h"

/* Work that ended longer ago than this wakes nobody. */
#define WAKE_NS 1000000
/* Number of candidates examined. */
#define LOOK_BACK 64

/* Items of all threads of a rank by end. */
struct ended {
	int64_t end;
	size_t item; /* in build->items */
	uint32_t thread;
};

static int compare_ends(const void *one, const void *other)
{
	const struct ended *a = one, *b = other;

	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

static bool is_sorted(const struct ended *ended, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (ended[i - 1].end > ended[i].end)
			return false;
	}
	return true;
}

/* Threads of a rank are adjacent, and so are their items. */
static void sort_rank(struct ts_graph_build *build, const struct ts_work_rank *rank,
		      struct ended *ended)
{
	size_t first = SIZE_MAX, count = 0;

	for (uint32_t i = 0; i < rank->thread_count; i++) {
		uint32_t t = rank->first_thread + i;
		const struct ts_graph_thread *thread = &build->threads[t];

		if (first == SIZE_MAX)
			first = thread->first;
		for (size_t j = thread->first; j < thread->first + thread->count; j++) {
			ended[j].end = ts_graph_node_end(build->graph, build->items[j]);
			ended[j].item = j;
			ended[j].thread = t;
		}
		count += thread->count;
	}
	if (count && !is_sorted(ended + first, count))
		ts_sort(ended + first, count, sizeof(*ended), compare_ends);
}

static size_t ended_by(const struct ended *ended, size_t first, size_t end, int64_t time)
{
	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (ended[middle].end <= time)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Was the other thread done for now? Only then can it have been waited for inside a slice. */
static bool is_done(const struct ts_graph_build *build, const struct ended *candidate, int64_t time)
{
	const struct ts_graph_thread *thread = &build->threads[candidate->thread];
	size_t next = candidate->item + 1;

	return next == thread->first + thread->count ||
	       ts_graph_node_start(build->graph, build->items[next]) > time;
}

static uint32_t find_waker(const struct ts_graph_build *build, const struct ended *ended,
			   const struct ts_graph_gap *gap)
{
	const struct ts_work *work = build->work;
	const struct ts_work_rank *rank = &work->ranks[work->threads[gap->thread].rank];
	const struct ts_graph_thread *last =
		&build->threads[rank->first_thread + rank->thread_count - 1];
	size_t first = build->threads[rank->first_thread].first;
	int64_t earliest = gap->to - WAKE_NS;
	size_t i;

	if (rank->thread_count < 2)
		return TS_WORK_NONE;
	i = ended_by(ended, first, last->first + last->count, gap->to);
	if (gap->prev != TS_WORK_NONE)
		earliest = TS_MAX(earliest, gap->from);
	for (int n = 0; i-- > first && n < LOOK_BACK && ended[i].end >= earliest; n++) {
		if (ended[i].thread != gap->thread &&
		    (gap->slice == TS_WORK_NONE || is_done(build, &ended[i], gap->to)))
			return build->items[ended[i].item];
	}
	return TS_WORK_NONE;
}

static void add_thread_work(struct ts_graph_build *build, const struct ts_graph_gap *gap)
{
	struct ts_graph_stretch stretch = {
		.start = gap->from, .end = gap->to, .thread = gap->thread, .slice = gap->slice
	};
	uint32_t node = ts_graph_add_stretch(build, &stretch);

	if (node == TS_WORK_NONE)
		return;
	if (gap->prev != TS_WORK_NONE)
		ts_graph_add(build, gap->prev, node, TS_EDGE_PROGRAM, 0);
	if (gap->next != TS_WORK_NONE)
		ts_graph_add(build, node, gap->next, TS_EDGE_PROGRAM, 0);
}

void ts_graph_add_wakes(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;
	struct ended *ended;

	if (build->gap_count == 0)
		return;
	ended = ts_graph_array(build, build->item_count, sizeof(*ended));
	for (uint32_t r = 0; r < work->rank_count && !build->rc; r++) {
		if (work->ranks[r].thread_count > 1)
			sort_rank(build, &work->ranks[r], ended);
	}
	for (size_t i = 0; i < build->gap_count && !build->rc; i++) {
		const struct ts_graph_gap *gap = &build->gaps[i];
		uint32_t waker = gap->next == TS_WORK_NONE ? TS_WORK_NONE
							   : find_waker(build, ended, gap);

		if (waker != TS_WORK_NONE)
			ts_graph_add(build, waker, gap->next, TS_EDGE_WAKE, TS_EDGE_INFERRED);
		else if (gap->slice != TS_WORK_NONE)
			add_thread_work(build, gap);
	}
	free(ended);
}
