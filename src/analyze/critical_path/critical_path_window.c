/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the window of a critical path: all of the work, or an instance of an annotation with the
 * commands issued in it.
 */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

#include "base/text.h"

struct ts_path_name ts_path_node_name(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;
	uint32_t slice;

	if (node < work->command_count)
		return (struct ts_path_name){ work->commands[node].name, true };
	node -= work->command_count;
	if (node < work->call_count)
		return (struct ts_path_name){ work->calls[node].name, false };
	slice = graph->stretches[node - work->call_count].slice;
	return (struct ts_path_name){ slice == TS_WORK_NONE ? 0 : work->slices[slice].name, false };
}

/* The thread of a call or a stretch of host work; TS_WORK_NONE: a command. */
static uint32_t node_thread(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;

	if (node < work->command_count)
		return TS_WORK_NONE;
	node -= work->command_count;
	return node < work->call_count ? work->calls[node].thread
				       : graph->stretches[node - work->call_count].thread;
}

/* ---- instances ---- */

enum match { MATCH_EXACT, MATCH_GLOB, MATCH_PART, MATCH_COUNT };

static bool matches(const char *name, const char *wanted, enum match how)
{
	switch (how) {
	case MATCH_EXACT:
		return !strcmp(name, wanted);
	case MATCH_GLOB:
		return ts_glob_match(wanted, name, strlen(name));
	default:
		return strstr(name, wanted) != NULL;
	}
}

static int compare_slices(const void *a, const void *b)
{
	const struct ts_work_slice *x = *(const struct ts_work_slice *const *)a;
	const struct ts_work_slice *y = *(const struct ts_work_slice *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x > y) - (x < y);
}

struct instances {
	const struct ts_work_slice **slices;
	size_t count, capacity;
};

static int find_matches(struct instances *found, const struct ts_work *work, uint32_t rank,
			const char *wanted, enum match how)
{
	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];

		if (slice->rank != rank || slice->class == TS_SLICE_GPU_ANNOTATION ||
		    !matches(ts_work_text(work, slice->name), wanted, how))
			continue;
		if (ts_grow_array((void **)&found->slices, &found->capacity, found->count + 1,
				  sizeof(*found->slices)))
			return TS_ENOMEM;
		found->slices[found->count++] = slice;
	}
	if (found->count)
		qsort(found->slices, found->count, sizeof(*found->slices), compare_slices);
	return TS_OK;
}

/*
 * Finds the host slices of a rank with this name, else those that match it as a pattern, else those
 * whose name contains it.
 */
static int find_instance(const struct ts_work *work, uint32_t rank, const char *wanted,
			 int64_t instance, const struct ts_work_slice **ret_slice,
			 size_t *ret_count)
{
	struct instances found = { 0 };
	int rc = TS_OK;

	for (int how = 0; how < MATCH_COUNT && !found.count && !rc; how++)
		rc = find_matches(&found, work, rank, wanted, (enum match)how);
	*ret_count = found.count;
	*ret_slice = NULL;
	if (!rc && instance >= 0 && (uint64_t)instance < found.count)
		*ret_slice = found.slices[instance];
	free(found.slices);
	return rc;
}

/* ---- members ---- */

/* `members` has space for all nodes. Host work counts until `host_end`. */
static void add_member(struct ts_path_window *window, const struct ts_graph *graph, uint32_t node,
		       int64_t host_end)
{
	struct ts_path_member member = { .node = node, .limit = INT64_MAX };
	int64_t end = ts_graph_node_end(graph, node);

	if (node >= graph->work->command_count && end > host_end) {
		member.limit = ts_ns_sub(host_end, ts_graph_node_start(graph, node));
		end = host_end;
	}
	window->members[window->member_count++] = member;
	/* Among equal ends the first wins: a command rather than the call that waited for it. */
	if (window->last != TS_WORK_NONE && end <= window->to)
		return;
	window->last = node;
	window->to = end;
}

/*
 * Counts only threads that issue work, or all if none does: others may sleep beyond the end of the
 * work.
 */
static void mark_threads(const struct ts_path_model *model, uint8_t *threads)
{
	const struct ts_work *work = model->graph->work;
	bool any = false;

	for (uint32_t i = 0; i < work->call_count; i++) {
		if (work->calls[i].command == TS_WORK_NONE ||
		    (model->rank != TS_WORK_NONE && work->calls[i].rank != model->rank))
			continue;
		threads[work->calls[i].thread] = 1;
		any = true;
	}
	for (uint32_t i = 0; i < work->thread_count && !any; i++)
		threads[i] = 1;
}

static int take_all(struct ts_path_window *window, const struct ts_path_model *model)
{
	const struct ts_graph *graph = model->graph;
	TS_AUTO_FREE uint8_t *threads = calloc((size_t)graph->work->thread_count + 1, 1);

	if (!threads)
		return TS_ENOMEM;
	mark_threads(model, threads);
	for (uint32_t node = 0; node < graph->node_count; node++) {
		uint32_t thread = node_thread(graph, node);

		if (model->position[node * 2] == TS_WORK_NONE ||
		    (thread != TS_WORK_NONE && !threads[thread]))
			continue;
		window->from = TS_MIN(window->from, ts_graph_node_start(graph, node));
		add_member(window, graph, node, INT64_MAX);
	}
	return TS_OK;
}

static bool issued_in(const struct ts_work *work, uint32_t command,
		      const struct ts_work_slice *slice)
{
	int64_t issued = work->commands[command].issued;

	return issued != TS_ABSENT && issued >= slice->start && issued <= slice->end;
}

static void take_instance(struct ts_path_window *window, const struct ts_path_model *model,
			  const struct ts_work_slice *slice)
{
	const struct ts_graph *graph = model->graph;

	window->from = TS_MIN(window->from, slice->start);
	for (uint32_t node = 0; node < graph->node_count; node++) {
		uint32_t thread = node_thread(graph, node);
		bool inside;

		if (ts_graph_node_rank(graph, node) != slice->rank)
			continue;
		if (thread == TS_WORK_NONE)
			inside = issued_in(graph->work, node, slice);
		else
			inside = thread == slice->thread &&
				 ts_graph_node_start(graph, node) < slice->end &&
				 ts_graph_node_end(graph, node) > slice->start;
		if (inside)
			add_member(window, graph, node, slice->end);
	}
	/* The annotation ends here even if no host work is recorded up to its end. */
	window->to = TS_MAX(window->to, slice->end);
}

static int take_instances(struct ts_path_window *window, const struct ts_path_model *model,
			  const char *annotation, int64_t instance, struct ts_error *err)
{
	const struct ts_work *work = model->graph->work;
	uint32_t first = model->rank == TS_WORK_NONE ? 0 : model->rank;
	uint32_t end = model->rank == TS_WORK_NONE ? work->rank_count : first + 1;
	size_t most = 0;

	for (uint32_t rank = first; rank < end; rank++) {
		const struct ts_work_slice *slice;
		size_t count;

		if (find_instance(work, rank, annotation, instance, &slice, &count))
			return ts_error_set(err, TS_ENOMEM, "no memory for the critical path");
		most = TS_MAX(most, count);
		if (slice)
			take_instance(window, model, slice);
	}
	if (window->from != INT64_MAX)
		return TS_OK;
	if (most)
		return ts_error_set(
			err, TS_ENOTFOUND,
			"annotation '%s': instance %lld: there are %zu, numbered from 0",
			annotation, (long long)instance, most);
	return ts_error_set(
		err, TS_ENOTFOUND,
		"annotation '%s': no slice in this part of the trace has that name; 'annotations' lists them",
		annotation);
}

/*
 * Drops members that another member follows: they cannot end last, whatever becomes faster. Skipped
 * if a lag may be negative.
 */
static int drop_followed(struct ts_path_window *window, const struct ts_path_model *model)
{
	uint8_t *marks = model->tame ? calloc((size_t)model->graph->node_count + 1, 1) : NULL;
	size_t kept = 0;

	if (!model->tame)
		return TS_OK;
	if (!marks)
		return TS_ENOMEM;
	for (size_t i = 0; i < window->member_count; i++)
		marks[window->members[i].node] = window->members[i].limit == INT64_MAX ? 2 : 1;
	for (uint32_t at = 0; at < model->count; at++) {
		if (!(marks[model->point[at] / 2] & 2))
			continue;
		for (uint32_t a = model->first_arc[at]; a < model->first_arc[at + 1]; a++) {
			uint32_t from = model->point[model->arcs[a].from];

			if ((from & 1) && from / 2 != model->point[at] / 2)
				marks[from / 2] |= 4;
		}
	}
	for (size_t i = 0; i < window->member_count; i++)
		if (!(marks[window->members[i].node] & 4))
			window->members[kept++] = window->members[i];
	window->member_count = kept;
	free(marks);
	return TS_OK;
}

int ts_path_window_init(struct ts_path_window *window, const struct ts_path_model *model,
			const char *annotation, int64_t instance, struct ts_error *err)
{
	const struct ts_graph *graph = model->graph;
	int rc = TS_OK;

	*window =
		(struct ts_path_window){ .from = INT64_MAX, .to = INT64_MIN, .last = TS_WORK_NONE };
	window->members = calloc((size_t)graph->node_count + 1, sizeof(*window->members));
	if (!window->members)
		return ts_error_set(err, TS_ENOMEM, "no memory for the critical path");
	if (annotation && *annotation)
		rc = take_instances(window, model, annotation, instance, err);
	else if (take_all(window, model))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the critical path");
	if (!rc && drop_followed(window, model))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the critical path");
	return rc;
}

void ts_path_window_release(struct ts_path_window *window)
{
	free(window->members);
	*window = (struct ts_path_window){ 0 };
}
