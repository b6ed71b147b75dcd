/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's edges between host events: calls that are assumed to share the runtime's lock, and the
 * stacks of operators and calls of each thread.
 */
#include "analyze/hta/critical_path_hta.h"

#include <string.h>

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for HTA's critical path");
}

static int64_t distance(const struct ts_hta_graph *graph, uint32_t from, uint32_t to)
{
	return ts_ns_sub(ts_hta_point_time(graph, to), ts_hta_point_time(graph, from));
}

/* ---- the runtime's lock ---- */

struct timed_point {
	int64_t time;
	uint32_t point;
};

static int compare_points(const void *a, const void *b)
{
	const struct timed_point *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->point > y->point) - (x->point < y->point);
}

/* Starts and ends of calls that take the lock, sorted by time; the caller frees the list. */
static struct timed_point *lock_points(const struct ts_hta_graph *graph, size_t *ret_count)
{
	struct timed_point *points =
		ts_alloc_array((size_t)graph->work->call_count * 2, sizeof(*points));
	size_t count = 0;

	for (uint32_t event = graph->first_call; points && event < graph->first_command; event++) {
		if (!graph->kept[event] || !(ts_hta_call_flags(graph, event) & TS_HTA_LOCK))
			continue;
		for (uint32_t point = ts_hta_start(event); point <= ts_hta_end(event); point++)
			points[count++] = (struct timed_point){
				.time = ts_hta_point_time(graph, point),
				.point = point,
			};
	}
	if (points)
		qsort(points, count, sizeof(*points), compare_points);
	*ret_count = count;
	return points;
}

/*
 * All calls that wait for the lock depend on the call that ends first; waiting[] has those that
 * began since.
 */
static int end_lock(struct ts_hta_graph *graph, uint32_t *waiting, size_t *waiting_count,
		    uint32_t end, uint32_t last, struct ts_error *err)
{
	int rc = TS_OK;

	while (*waiting_count && !rc) {
		uint32_t start = waiting[--*waiting_count];
		bool is_same_event = start / 2 == end / 2;

		rc = ts_hta_add_edge(graph, start, end,
				     is_same_event ? TS_HTA_OPERATOR : TS_HTA_DEPENDENCY,
				     is_same_event ? distance(graph, start, end) : 0, err);
	}
	if (!rc && last != TS_WORK_NONE && (last & 1))
		rc = ts_hta_add_edge(graph, last, end, TS_HTA_DEPENDENCY, 0, err);
	return rc;
}

int ts_hta_add_locks(struct ts_hta_graph *graph, struct ts_error *err)
{
	size_t count, waiting_count = 0;
	TS_AUTO_FREE struct timed_point *points = lock_points(graph, &count);
	TS_AUTO_FREE uint32_t *waiting = points ? ts_alloc_array(count, sizeof(*waiting)) : NULL;
	uint32_t last = TS_WORK_NONE;

	if (!waiting)
		return no_memory(err);
	for (size_t i = 0; i < count; i++) {
		uint32_t point = points[i].point;

		if (point & 1) {
			int rc = end_lock(graph, waiting, &waiting_count, point, last, err);

			if (rc)
				return rc;
		} else {
			waiting[waiting_count++] = point;
		}
		last = point;
	}
	return TS_OK;
}

/* ---- merged threads ---- */

/*
 * Number of the only thread with operators or annotations whose names contain `part`; TS_ABSENT:
 * none or several.
 */
static int64_t thread_with(const struct ts_hta_graph *graph, const char *part)
{
	const struct ts_work *work = graph->work;
	uint32_t annotation = ts_work_find_text(work, "user_annotation");
	int64_t found = TS_ABSENT;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];
		int64_t tid;

		if (!graph->kept[i] || !slice->category ||
		    (slice->category != graph->operator_category && slice->category != annotation))
			continue;
		tid = work->threads[slice->thread].tid;
		if (tid == found || !strstr(ts_work_text(work, slice->name), part))
			continue;
		if (found != TS_ABSENT)
			return TS_ABSENT;
		found = tid;
	}
	return found;
}

struct thread_position {
	int64_t pid, tid;
	uint32_t thread;
};

static int compare_positions(const void *a, const void *b)
{
	const struct thread_position *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/*
 * The rank's threads sorted by process and number. The thread of the backward pass counts as that
 * of the forward pass. The caller frees the list.
 */
static struct thread_position *order_threads(const struct ts_hta_graph *graph)
{
	const struct ts_work_rank *rank = &graph->work->ranks[graph->rank];
	int64_t forward = thread_with(graph, "forward"), backward = thread_with(graph, "autograd");
	struct thread_position *positions = ts_alloc_array(rank->thread_count, sizeof(*positions));
	bool join = forward != TS_ABSENT && backward != TS_ABSENT && forward && backward;

	for (uint32_t i = 0; positions && i < rank->thread_count; i++) {
		const struct ts_work_thread *thread = &graph->work->threads[rank->first_thread + i];

		positions[i] = (struct thread_position){
			.pid = thread->pid,
			.tid = join && thread->tid == backward ? forward : thread->tid,
			.thread = rank->first_thread + i,
		};
	}
	if (positions)
		qsort(positions, rank->thread_count, sizeof(*positions), compare_positions);
	return positions;
}

/* ---- stacks ---- */

struct stack_point {
	int64_t time, duration;
	uint32_t event;
	bool end;
};

/* At equal times ends come first, and the longer event begins earlier and ends later. */
static int compare_stack_points(const void *a, const void *b)
{
	const struct stack_point *x = a, *y = b;
	int order;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->end != y->end)
		return x->end ? -1 : 1;
	order = x->duration != y->duration ? (x->duration > y->duration ? -1 : 1)
					   : (x->event > y->event) - (x->event < y->event);
	return x->end ? -order : order;
}

struct stack_walk {
	struct ts_hta_graph *graph;
	struct stack_point *points;
	size_t count, capacity;
	uint32_t *open; /* events that have begun, outermost first */
	size_t open_capacity;
	uint32_t last;  /* point; TS_WORK_NONE: none yet */
	uint32_t depth; /* of events with points */
};

static int take_event(struct stack_walk *walk, uint32_t event)
{
	struct stack_point point = { .event = event };
	int64_t start = ts_hta_point_time(walk->graph, ts_hta_start(event));
	int64_t end = ts_hta_point_time(walk->graph, ts_hta_end(event));

	if (!walk->graph->kept[event])
		return TS_OK;
	if (ts_grow_array((void **)&walk->points, &walk->capacity, walk->count + 2,
			  sizeof(*walk->points)))
		return TS_ENOMEM;
	point.duration = ts_ns_sub(end, start);
	point.time = start;
	walk->points[walk->count++] = point;
	point.time = end;
	point.end = true;
	walk->points[walk->count++] = point;
	return TS_OK;
}

static int take_thread(struct stack_walk *walk, const struct ts_work_thread *thread)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < thread->slice_count && !rc; i++)
		rc = take_event(walk, thread->first_slice + i);
	for (uint32_t i = 0; i < thread->call_count && !rc; i++)
		rc = take_event(walk, walk->graph->first_call + thread->first_call + i);
	return rc;
}

/* Edges between such points were already added with the locks. */
static bool shares_lock(const struct ts_hta_graph *graph, uint32_t a, uint32_t b)
{
	return (ts_hta_call_flags(graph, a / 2) & TS_HTA_LOCK) &&
	       (ts_hta_call_flags(graph, b / 2) & TS_HTA_LOCK) && (!(a & 1) || (b & 1));
}

static int enter_event(struct stack_walk *walk, uint32_t event, struct ts_error *err)
{
	struct ts_hta_graph *graph = walk->graph;
	uint32_t point = ts_hta_start(event), last = walk->last;

	if (!ts_hta_has_points(graph, event))
		return TS_OK;
	walk->last = point;
	if (walk->depth++ == 0) {
		if (last == TS_WORK_NONE || shares_lock(graph, last, point))
			return TS_OK;
		return ts_hta_add_edge(graph, last, point, TS_HTA_DEPENDENCY, 0, err);
	}
	if (last == TS_WORK_NONE || shares_lock(graph, last, point))
		return TS_OK;
	return ts_hta_add_edge(graph, last, point, TS_HTA_OPERATOR, distance(graph, last, point),
			       err);
}

static int leave_event(struct stack_walk *walk, uint32_t event, struct ts_error *err)
{
	struct ts_hta_graph *graph = walk->graph;
	uint32_t point = ts_hta_end(event), last = walk->last;
	bool blocking = ts_hta_call_flags(graph, event) & TS_HTA_BLOCKING;

	if (!ts_hta_has_points(graph, event))
		return TS_OK;
	walk->last = point;
	walk->depth--;
	if (last == TS_WORK_NONE || shares_lock(graph, last, point))
		return TS_OK;
	return ts_hta_add_edge(graph, last, point, TS_HTA_OPERATOR,
			       blocking ? 0 : distance(graph, last, point), err);
}

/*
 * An end closes the innermost event, whichever event it ends: HTA mixes up overlapping events in
 * the same way.
 */
static int walk_stack(struct stack_walk *walk, struct ts_error *err)
{
	size_t open_count = 0;
	int rc = TS_OK;

	if (!walk->count)
		return TS_OK;
	qsort(walk->points, walk->count, sizeof(*walk->points), compare_stack_points);
	if (ts_grow_array((void **)&walk->open, &walk->open_capacity, walk->count / 2 + 1,
			  sizeof(*walk->open)))
		return no_memory(err);
	walk->last = TS_WORK_NONE;
	walk->depth = 0;
	for (size_t i = 0; i < walk->count && !rc; i++) {
		if (walk->points[i].end) {
			rc = leave_event(walk, walk->open[--open_count], err);
		} else {
			walk->open[open_count++] = walk->points[i].event;
			rc = enter_event(walk, walk->points[i].event, err);
		}
	}
	walk->count = 0;
	return rc;
}

int ts_hta_add_stacks(struct ts_hta_graph *graph, struct ts_error *err)
{
	uint32_t count = graph->work->ranks[graph->rank].thread_count;
	TS_AUTO_FREE struct thread_position *positions = order_threads(graph);
	struct stack_walk walk = { .graph = graph };
	int rc = TS_OK;

	if (!positions)
		return no_memory(err);
	for (uint32_t i = 0; i < count && !rc; i++) {
		if (take_thread(&walk, &graph->work->threads[positions[i].thread]))
			rc = no_memory(err);
		else if (i + 1 == count || positions[i + 1].pid != positions[i].pid ||
			 positions[i + 1].tid != positions[i].tid)
			rc = walk_stack(&walk, err);
	}
	free(walk.points);
	free(walk.open);
	return rc;
}
