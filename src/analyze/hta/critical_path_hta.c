/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's critical path, for `--rounding hta`: selects the events of the window and computes HTA's
 * numbers. The passes that add edges are in critical_path_hta_edges.c and
 * critical_path_hta_commands.c.
 */
#include "analyze/hta/critical_path_hta.h"

#include <string.h>

#include "base/text.h"

/* ---- names ---- */

static const struct {
	const char *name;
	uint8_t flags;
} call_flags[] = {
	{ "cudaLaunchKernel", TS_HTA_LAUNCH | TS_HTA_LOCK },
	{ "cudaLaunchKernelExC", TS_HTA_LAUNCH },
	{ "cuLaunchKernel", TS_HTA_LAUNCH },
	{ "cuLaunchKernelEx", TS_HTA_LAUNCH },
	{ "cudaMemcpyAsync", TS_HTA_LAUNCH | TS_HTA_LOCK | TS_HTA_BLOCKING },
	{ "cudaMemsetAsync", TS_HTA_LAUNCH },
	{ "runFunction - job_prep_and_submit_for_execution", TS_HTA_LAUNCH },
	{ "hipLaunchKernel", TS_HTA_LAUNCH },
	{ "hipExtModuleLaunchKernel", TS_HTA_LAUNCH },
	{ "hipMemsetAsync", TS_HTA_LAUNCH },
	{ "hipMemcpyAsync", TS_HTA_LAUNCH },
	{ "hipMemcpyWithStream", TS_HTA_LAUNCH },
	{ "cudaHostAlloc", TS_HTA_LOCK },
	{ "cudaDeviceSynchronize", TS_HTA_BLOCKING },
	{ "cudaStreamSynchronize", TS_HTA_BLOCKING },
	{ "cudaEventQuery", TS_HTA_BLOCKING },
	{ "cudaEventSynchronize", TS_HTA_BLOCKING },
	{ "cudaMemcpy", TS_HTA_BLOCKING },
	{ "cudaEventRecord", TS_HTA_RECORD },
};

static int find_call_flags(struct ts_hta_graph *graph)
{
	graph->flags = calloc((size_t)ts_strmap_count(&graph->work->names) + 1, 1);
	if (!graph->flags)
		return TS_ENOMEM;
	for (size_t i = 0; i < TS_ARRAY_SIZE(call_flags); i++) {
		uint32_t name = ts_work_find_text(graph->work, call_flags[i].name);

		if (name)
			graph->flags[name] = call_flags[i].flags;
	}
	graph->operator_category = ts_work_find_text(graph->work, "cpu_op");
	return TS_OK;
}

uint8_t ts_hta_call_flags(const struct ts_hta_graph *graph, uint32_t event)
{
	if (!ts_hta_is_call(graph, event))
		return 0;
	return graph->flags[graph->work->calls[event - graph->first_call].name];
}

/* ---- events ---- */

static int find_commands(struct ts_hta_graph *graph)
{
	const struct ts_work *work = graph->work;

	graph->command_of_call = ts_alloc_array(work->call_count, sizeof(*graph->command_of_call));
	if (!graph->command_of_call)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->call_count; i++) {
		uint32_t last = work->calls[i].command;

		for (uint32_t c = last; c != TS_WORK_NONE; c = ts_work_next_of_call(work, c))
			last = c;
		graph->command_of_call[i] = last;
	}
	return TS_OK;
}

bool ts_hta_has_points(const struct ts_hta_graph *graph, uint32_t event)
{
	if (!graph->kept[event])
		return false;
	if (event < graph->first_call)
		return graph->operator_category &&
		       graph->work->slices[event].category == graph->operator_category;
	return event < graph->first_sync;
}

int64_t ts_hta_point_time(const struct ts_hta_graph *graph, uint32_t point)
{
	const struct ts_work *work = graph->work;
	uint32_t event = point / 2;
	bool end = point & 1;

	if (event < graph->first_call)
		return end ? work->slices[event].end : work->slices[event].start;
	if (ts_hta_is_call(graph, event)) {
		const struct ts_work_call *call = &work->calls[event - graph->first_call];

		return end ? call->end : call->start;
	}
	return end ? work->commands[event - graph->first_command].end
		   : work->commands[event - graph->first_command].start;
}

static bool host_row_counts(const struct ts_hta_graph *graph, int64_t start, int64_t end)
{
	return start >= graph->from && start <= graph->to && end > start;
}

/* A device row counts if its call does. */
static bool call_counts(const struct ts_hta_graph *graph, uint32_t call)
{
	return call != TS_WORK_NONE && graph->kept[graph->first_call + call];
}

static void keep_host_rows(struct ts_hta_graph *graph)
{
	const struct ts_work *work = graph->work;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];

		graph->kept[i] = slice->rank == graph->rank &&
				 slice->class != TS_SLICE_GPU_ANNOTATION &&
				 host_row_counts(graph, slice->start, slice->end);
	}
	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		graph->kept[graph->first_call + i] = call->rank == graph->rank &&
						     host_row_counts(graph, call->start, call->end);
	}
}

/*
 * Every "Stream Wait Event" of the trace counts. Waits of the host have no stream and count like
 * host rows.
 */
static bool sync_counts(const struct ts_hta_graph *graph, const struct ts_work_sync *sync)
{
	if (sync->rank != graph->rank)
		return false;
	switch ((enum ts_sync_kind)sync->kind) {
	case TS_SYNC_STREAM_WAIT:
		return true;
	case TS_SYNC_STREAM:
		return call_counts(graph, sync->call);
	default:
		return host_row_counts(graph, sync->start, sync->end);
	}
}

static void keep_device_rows(struct ts_hta_graph *graph)
{
	const struct ts_work *work = graph->work;

	for (uint32_t i = 0; i < work->call_count; i++) {
		uint32_t command;

		if (!call_counts(graph, i))
			continue;
		command = graph->command_of_call[i];
		if (command != TS_WORK_NONE)
			graph->kept[graph->first_command + command] = 1;
	}
	for (uint32_t i = 0; i < work->sync_count; i++)
		graph->kept[graph->first_sync + i] = sync_counts(graph, &work->syncs[i]);
}

int ts_hta_graph_init(struct ts_hta_graph *graph, const struct ts_work *work, uint32_t rank,
		      int64_t from, int64_t to, struct ts_error *err)
{
	uint64_t events = (uint64_t)work->slice_count + work->call_count + work->command_count +
			  work->sync_count;

	*graph = (struct ts_hta_graph){ .work = work, .rank = rank, .from = from, .to = to };
	if (events > UINT32_MAX / 4)
		return ts_error_set(
			err, TS_EINVAL,
			"%llu events are too many for HTA's critical path: choose fewer steps",
			(unsigned long long)events);
	graph->first_call = work->slice_count;
	graph->first_command = graph->first_call + work->call_count;
	graph->first_sync = graph->first_command + work->command_count;
	graph->event_count = (uint32_t)events;
	graph->kept = calloc(events + 1, 1);
	if (!graph->kept || find_call_flags(graph) || find_commands(graph))
		return ts_error_set(err, TS_ENOMEM, "no memory for HTA's critical path");
	keep_host_rows(graph);
	keep_device_rows(graph);
	return TS_OK;
}

void ts_hta_graph_release(struct ts_hta_graph *graph)
{
	free(graph->kept);
	free(graph->flags);
	free(graph->command_of_call);
	free(graph->edges);
	ts_pairmap_release(&graph->by_points);
	*graph = (struct ts_hta_graph){ 0 };
}

/* Bounds memory: each device-wide wait has an edge from each stream. */
#define EDGES_MAX (1u << 27)
#define EDGES_LEAST (1u << 20)
#define EDGES_AN_EVENT 16

static size_t most_edges(const struct ts_hta_graph *graph)
{
	return TS_MIN(EDGES_LEAST + (uint64_t)graph->event_count * EDGES_AN_EVENT, EDGES_MAX);
}

int ts_hta_add_edge(struct ts_hta_graph *graph, uint32_t from, uint32_t to,
		    enum ts_hta_edge_type type, int64_t weight, struct ts_error *err)
{
	struct ts_hta_edge edge = { .from = from, .to = to, .type = type, .weight = weight };
	bool is_new = false;
	uint64_t *position = ts_pairmap_insert(&graph->by_points, from, to, &is_new);

	if (position && !is_new) {
		graph->edges[*position] = edge;
		return TS_OK;
	}
	if (graph->edge_count >= most_edges(graph))
		return ts_error_set(err, TS_ENOSPC,
				    "HTA's graph has more than %zu edges: choose fewer steps",
				    most_edges(graph));
	if (!position || ts_grow_array((void **)&graph->edges, &graph->edge_capacity,
				       graph->edge_count + 1, sizeof(edge)))
		return ts_error_set(err, TS_ENOMEM, "no memory for HTA's critical path");
	*position = graph->edge_count;
	graph->edges[graph->edge_count++] = edge;
	return TS_OK;
}

/* ---- the window ---- */

/* HTA takes instances in file order: those of the host by start, then the device's annotations. */
static int compare_instances(const void *a, const void *b)
{
	const struct ts_work_slice *x = *(const struct ts_work_slice *const *)a;
	const struct ts_work_slice *y = *(const struct ts_work_slice *const *)b;
	int x_late = x->class == TS_SLICE_GPU_ANNOTATION;
	int y_late = y->class == TS_SLICE_GPU_ANNOTATION;

	if (x_late != y_late)
		return x_late - y_late;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x > y) - (x < y);
}

/*
 * Slices of a rank whose name contains the annotation; the caller frees the list. NULL: no memory.
 */
static const struct ts_work_slice **find_instances(const struct ts_work *work, uint32_t rank,
						   const char *annotation, size_t *ret_count)
{
	const struct ts_work_slice **found = NULL;
	size_t count = 0, capacity = 0;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		if (work->slices[i].rank != rank ||
		    !strstr(ts_work_text(work, work->slices[i].name), annotation))
			continue;
		if (ts_grow_array((void **)&found, &capacity, count + 1, sizeof(*found))) {
			free(found);
			return NULL;
		}
		found[count++] = &work->slices[i];
	}
	*ret_count = count;
	if (!found)
		return calloc(1, sizeof(*found));
	qsort(found, count, sizeof(*found), compare_instances);
	return found;
}

/* Sets *ret_found to false, without an error, if the rank has no such instance. */
static int find_window(const struct ts_analyze_request *request, uint32_t rank, int64_t *ret_from,
		       int64_t *ret_to, bool *ret_found, struct ts_error *err)
{
	const struct ts_work_slice **instances;
	int64_t wanted = request->options.instance;
	size_t count;

	*ret_from = request->work->ranks[rank].rows_from;
	*ret_to = request->work->ranks[rank].rows_to;
	*ret_found = *ret_from <= *ret_to;
	if (!request->options.annotation || !*request->options.annotation)
		return TS_OK;
	instances = find_instances(request->work, rank, request->options.annotation, &count);
	if (!instances)
		return ts_error_set(err, TS_ENOMEM, "no memory for HTA's critical path");
	*ret_found = wanted >= 0 && (uint64_t)wanted < count;
	if (*ret_found) {
		*ret_from = instances[wanted]->start;
		*ret_to = instances[wanted]->end;
	}
	free(instances);
	return TS_OK;
}

/* ---- bound-by shares ---- */

enum bound {
	BOUND_HOST,
	BOUND_COMPUTE,
	BOUND_COMMUNICATION,
	BOUND_KERNEL_DELAY,
	BOUND_LAUNCH_DELAY,
	BOUND_NONE,
	BOUND_COUNT
};

/*
 * HTA matches its communication pattern against a name without template and function arguments and
 * without anything before its last blank: "void hipcub::f<int>(long)" becomes "hipcub::f", which it
 * classes as communication.
 */
static bool communicates(const char *name)
{
	struct ts_text kept = { 0 };
	const char *behind_blank, *text;
	size_t length = strlen(name);
	bool answer;

	if (ts_command_class_hta(name, length) == TS_CLASS_MEMORY || !strpbrk(name, "<("))
		return ts_command_class_hta(name, length) == TS_CLASS_COMMUNICATION;
	for (size_t i = 0; i < length; i++) {
		char open = name[i] == '>' ? '<' : name[i] == ')' ? '(' : 0;

		if (name[i] == '-' && name[i + 1] == '>') {
			i++;
			continue;
		}
		if (!open)
			ts_text_append(&kept, &name[i], 1);
		while (open && kept.length && kept.data[kept.length - 1] != open)
			kept.length--;
		if (open && kept.length)
			kept.length--;
	}
	text = ts_text_cstr(&kept);
	behind_blank = text ? strrchr(text, ' ') : NULL;
	text = behind_blank ? behind_blank + 1 : text;
	answer = text && ts_command_class_hta(text, strlen(text)) == TS_CLASS_COMMUNICATION;
	ts_text_release(&kept);
	return answer;
}

static enum bound edge_bound(const struct ts_hta_graph *graph, const struct ts_hta_edge *edge)
{
	uint32_t event = edge->from / 2;

	switch ((enum ts_hta_edge_type)edge->type) {
	case TS_HTA_KERNEL_DELAY:
		return BOUND_KERNEL_DELAY;
	case TS_HTA_LAUNCH_DELAY:
		return BOUND_LAUNCH_DELAY;
	case TS_HTA_OPERATOR:
		break;
	default:
		return BOUND_NONE;
	}
	if (!ts_hta_is_command(graph, event))
		return BOUND_HOST;
	return communicates(ts_work_text(graph->work,
					 graph->work->commands[event - graph->first_command].name))
		       ? BOUND_COMMUNICATION
		       : BOUND_COMPUTE;
}

static void sum_bounds(const struct ts_hta_graph *graph, const struct ts_hta_path *path,
		       int64_t ret_bounds[BOUND_COUNT])
{
	memset(ret_bounds, 0, BOUND_COUNT * sizeof(*ret_bounds));
	for (size_t i = 1; i < path->point_count; i++) {
		const struct ts_hta_edge *edge;
		int64_t *sum;
		uint64_t position = 0;

		ts_pairmap_get(&graph->by_points, path->points[i - 1], path->points[i], &position);
		edge = &graph->edges[position];
		sum = &ret_bounds[edge_bound(graph, edge)];
		*sum = ts_ns_add(*sum, edge->weight);
	}
}

/* ---- the table ---- */

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "ok", "ok", TS_CELL_BOOL },
	{ "nodes", "nodes", TS_CELL_INTEGER },
	{ "edges", "edges", TS_CELL_INTEGER },
	{ "path_nodes", "path nodes", TS_CELL_INTEGER },
	{ "path_edges", "path edges", TS_CELL_INTEGER },
	{ "events_on_path", "events on path", TS_CELL_INTEGER },
	{ "path_weight_us", "path weight", TS_CELL_TIME },
	{ "operator_kernel_edges", NULL, TS_CELL_INTEGER },
	{ "dependency_edges", NULL, TS_CELL_INTEGER },
	{ "kernel_launch_delay_edges", NULL, TS_CELL_INTEGER },
	{ "kernel_kernel_delay_edges", NULL, TS_CELL_INTEGER },
	{ "sync_dependency_edges", NULL, TS_CELL_INTEGER },
	{ "cpu_bound_pct", "cpu", TS_CELL_PERCENT },
	{ "gpu_compute_bound_pct", "gpu compute", TS_CELL_PERCENT },
	{ "gpu_communication_bound_pct", "gpu communication", TS_CELL_PERCENT },
	{ "gpu_kernel_kernel_overhead_pct", "kernel-kernel", TS_CELL_PERCENT },
	{ "gpu_kernel_launch_overhead_pct", "launch", TS_CELL_PERCENT },
};

static int compare_events(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a / 2, y = *(const uint32_t *)b / 2;

	return (x > y) - (x < y);
}

/* Sorts the points: call it last. */
static size_t count_events(struct ts_hta_path *path)
{
	size_t count = 0;

	if (!path->point_count)
		return 0;
	qsort(path->points, path->point_count, sizeof(*path->points), compare_events);
	for (size_t i = 0; i < path->point_count; i++)
		count += i == 0 || path->points[i] / 2 != path->points[i - 1] / 2;
	return count;
}

static void put_row(struct ts_result_table *table, const struct ts_hta_graph *graph,
		    struct ts_hta_path *path)
{
	int64_t bounds[BOUND_COUNT];

	sum_bounds(graph, path, bounds);
	ts_cell_integer(table, graph->work->ranks[graph->rank].rank);
	ts_cell_bool(table, path->valid);
	ts_cell_integer(table, (int64_t)path->node_count);
	ts_cell_integer(table, (int64_t)graph->edge_count);
	ts_cell_integer(table, (int64_t)path->point_count);
	ts_cell_integer(table, path->point_count ? (int64_t)path->point_count - 1 : 0);
	ts_cell_integer(table, (int64_t)count_events(path));
	ts_cell_time(table, path->weight);
	for (int type = 0; type < TS_HTA_EDGE_TYPES; type++)
		ts_cell_integer(table, (int64_t)path->types[type]);
	for (int bound = 0; bound < BOUND_NONE; bound++)
		ts_cell_share(table, bounds[bound], path->weight);
}

static int add_rank(const struct ts_work *work, uint32_t rank, int64_t from, int64_t to,
		    struct ts_result_table *table, struct ts_error *err)
{
	struct ts_hta_graph graph;
	struct ts_hta_path path = { 0 };
	int rc = ts_hta_graph_init(&graph, work, rank, from, to, err);

	if (!rc)
		rc = ts_hta_add_locks(&graph, err);
	if (!rc)
		rc = ts_hta_add_stacks(&graph, err);
	if (!rc)
		rc = ts_hta_add_commands(&graph, err);
	if (!rc)
		rc = ts_hta_longest_path(&graph, &path, err);
	if (!rc)
		put_row(table, &graph, &path);
	ts_hta_path_release(&path);
	ts_hta_graph_release(&graph);
	return rc;
}

int ts_critical_path_hta(struct ts_analyze_request *request, struct ts_result *result,
			 struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "hta", columns, TS_ARRAY_SIZE(columns));

	if (!request->work->command_count) {
		ts_result_note(result, "no device commands: there is no path to follow");
		return TS_OK;
	}
	for (uint32_t rank = 0; rank < request->work->rank_count; rank++) {
		int64_t from, to;
		bool found;
		int rc = find_window(request, rank, &from, &to, &found, err);

		if (!rc && found)
			rc = add_rank(request->work, rank, from, to, table, err);
		if (rc)
			return rc;
		if (!found)
			ts_result_note(result, "rank %lld has no events in that window",
				       (long long)request->work->ranks[rank].rank);
	}
	ts_result_note(
		result,
		"HTA's algorithm, for comparison: where a launch and a start of a command fall into one microsecond, HTA's choice between launch delay and kernel-kernel delay depends on an unstable sort");
	return TS_OK;
}
