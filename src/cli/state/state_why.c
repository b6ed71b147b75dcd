/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith state --why`: finds the requested event, and its decisive dependencies step by step
 * back.
 */
#include "cli/state/state_why.h"

#include <inttypes.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "trace/trace_totals.h"

/* ---- which event ---- */

/* Best match so far: of several, the one that waited longest. */
struct search {
	struct ts_why *why;
	int64_t longest;
};

static void offer(struct search *search, uint32_t node, int64_t waited)
{
	if (search->why->matches++ == 0 || waited > search->longest) {
		search->why->node = node;
		search->longest = waited;
	}
}

static void offer_command(struct search *search, uint32_t command)
{
	const struct ts_work_command *offered = &search->why->work->commands[command];
	int64_t waited = 0;

	if (offered->issued != TS_ABSENT && offered->issued < offered->start)
		waited = offered->start - offered->issued;
	offer(search, command, waited);
}

static void offer_call(struct search *search, uint32_t call)
{
	const struct ts_work_call *offered = &search->why->work->calls[call];

	offer(search, ts_graph_call_node(search->why->graph, call), offered->end - offered->start);
}

/* A command and its call share a number: the call is meant only if there is no command. */
static void find_correlation(struct search *search, int64_t correlation)
{
	const struct ts_work *work = search->why->work;

	for (uint32_t i = 0; i < work->command_count; i++) {
		if (work->commands[i].correlation == correlation)
			offer_command(search, i);
	}
	for (uint32_t i = 0; i < work->call_count; i++) {
		if (work->calls[i].correlation == correlation &&
		    work->calls[i].command == TS_WORK_NONE)
			offer_call(search, i);
	}
}

/* A synchronisation row stands for the call that waited. */
static void find_gpu_op(struct search *search, uint64_t row)
{
	const struct ts_work *work = search->why->work;

	for (uint32_t i = 0; i < work->command_count; i++) {
		if (work->commands[i].row == row)
			offer_command(search, i);
	}
	for (uint32_t i = 0; i < work->sync_count; i++) {
		if (work->syncs[i].row == row && work->syncs[i].call != TS_WORK_NONE)
			offer_call(search, work->syncs[i].call);
	}
}

static void find_api_call(struct search *search, uint64_t row)
{
	const struct ts_work *work = search->why->work;

	for (uint32_t i = 0; i < work->call_count; i++) {
		if (work->calls[i].row == row)
			offer_call(search, i);
	}
}

/* Which strings of the trace match; NULL: out of memory. */
static bool *match_names(const struct ts_work *work, const char *pattern)
{
	size_t count = ts_strmap_count(&work->names);
	bool *fits = ts_alloc_array(count, sizeof(*fits));

	for (size_t i = 0; fits && i < count; i++) {
		const char *text = ts_work_text(work, (uint32_t)i);

		fits[i] = ts_glob_match(pattern, text, strlen(text));
	}
	return fits;
}

/* Commands with that name; if there are none, calls. */
static int find_pattern(struct search *search, const char *pattern)
{
	const struct ts_work *work = search->why->work;
	TS_AUTO_FREE bool *fits = match_names(work, pattern);

	if (!fits)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->command_count; i++) {
		if (fits[work->commands[i].name])
			offer_command(search, i);
	}
	for (uint32_t i = 0; i < work->call_count && search->why->matches == 0; i++) {
		if (!fits[work->calls[i].name])
			continue;
		for (; i < work->call_count; i++) {
			if (fits[work->calls[i].name])
				offer_call(search, i);
		}
	}
	return TS_OK;
}

/* An exact name or glob; if nothing matches, a substring. */
static int find_name(struct search *search, const char *event)
{
	TS_SCOPED(ts_text) pattern = { 0 };
	int rc = find_pattern(search, event);

	if (rc || search->why->matches || strpbrk(event, "*?["))
		return rc;
	ts_text_printf(&pattern, "*%s*", event);
	return find_pattern(search, ts_text_cstr(&pattern));
}

/* "gpu_op:12": true, and the number. */
static bool is_row_of(const char *event, const char *table, int64_t *ret_row)
{
	size_t length = strlen(table);

	return strncmp(event, table, length) == 0 && event[length] == ':' &&
	       !ts_parse_int64(event + length + 1, strlen(event + length + 1), ret_row) &&
	       *ret_row >= 0;
}

static int find_event(struct ts_why *why, const char *event, struct ts_error *err)
{
	struct search search = { .why = why };
	int64_t number;
	int rc = TS_OK;

	if (!ts_parse_int64(event, strlen(event), &number))
		find_correlation(&search, number);
	else if (is_row_of(event, "gpu_op", &number))
		find_gpu_op(&search, (uint64_t)number);
	else if (is_row_of(event, "api_call", &number))
		find_api_call(&search, (uint64_t)number);
	else
		rc = find_name(&search, event);
	if (rc)
		return ts_error_set(err, rc, "out of memory while searching '%s'", event);
	if (why->matches)
		return TS_OK;
	return ts_error_set(
		err, TS_ENOTFOUND,
		"no event '%s' in this range: give a correlation number, gpu_op:ROW, api_call:ROW, or a name "
		"or glob of a kernel or call ('tracesmith view TRACE --commands' shows them)%s",
		event, why->work->dropped_commands ? "; '--all' includes the last step" : "");
}

/* ---- what was decisive ---- */

/* Limit on steps back; a thread's program may be long. */
#define MAX_STEPS 1000000

/* False: the list is full. */
static bool add_step(struct ts_why *why, size_t edge)
{
	const struct ts_edge *edges = why->graph->edges;
	struct ts_why_step *last = why->chain_count ? &why->chain[why->chain_count - 1] : NULL;

	if (last && edges[edge].kind == TS_EDGE_PROGRAM &&
	    edges[last->last].kind == TS_EDGE_PROGRAM) {
		last->last = edge;
		last->count++;
		return last->count < MAX_STEPS;
	}
	if (why->chain_count == TS_WHY_CHAIN)
		return false;
	why->chain[why->chain_count++] = (struct ts_why_step){ edge, edge, 1 };
	return true;
}

/*
 * Walks back from an instant of a node: the edge that came last, then on from its source. An end
 * that nothing else determined leads to the node's own start.
 */
static void follow_chain(struct ts_why *why)
{
	size_t edge = why->into_end != TS_EDGE_NONE ? why->into_end : why->into_start;

	while (edge != TS_EDGE_NONE && add_step(why, edge)) {
		const struct ts_edge *found = &why->graph->edges[edge];

		edge = TS_EDGE_NONE;
		if (!(found->flags & TS_EDGE_FROM_START))
			edge = ts_graph_decisive(why->graph, found->from, true);
		if (edge == TS_EDGE_NONE)
			edge = ts_graph_decisive(why->graph, found->from, false);
	}
}

static int64_t traces_start(const struct ts_work *work)
{
	int64_t start = INT64_MAX;

	for (uint32_t i = 0; i < work->trace_count; i++)
		start = TS_MIN(start, ts_trace_start(work->readers[i]));
	return work->trace_count ? start : 0;
}

int ts_state_why(const struct ts_work *work, const struct ts_graph *graph,
		 const struct ts_states *states, const char *event, bool json)
{
	struct ts_why why = { .work = work, .graph = graph, .states = states };
	struct ts_error err = { 0 };
	int rc = find_event(&why, event, &err);

	if (!rc) {
		why.start = traces_start(work);
		why.into_start = ts_graph_decisive(graph, why.node, false);
		why.into_end = ts_graph_decisive(graph, why.node, true);
		follow_chain(&why);
		rc = json ? ts_why_show_json(&why, &err) : ts_why_show_text(&why, &err);
	}
	if (rc && err.message[0])
		return ts_report_error(&err);
	return ts_report_exit_code(rc);
}

/* ---- for those who show it ---- */

struct timed_edge {
	int64_t time;
	uint32_t edge;
};

static int compare_edges(const void *one, const void *other)
{
	const struct timed_edge *a = one, *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->edge < b->edge ? -1 : a->edge > b->edge;
}

uint32_t *ts_why_out(const struct ts_why *why, uint32_t *ret_count)
{
	const struct ts_graph *graph = why->graph;
	uint32_t first = graph->first_out[why->node];
	uint32_t count = graph->first_out[why->node + 1] - first;
	uint32_t *edges = ts_alloc_array(count, sizeof(*edges));
	TS_AUTO_FREE struct timed_edge *timed = ts_alloc_array(count, sizeof(*timed));

	if (!edges || !timed) {
		free(edges);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		timed[i].edge = graph->out[first + i];
		timed[i].time = ts_edge_to_time(graph, &graph->edges[timed[i].edge]);
	}
	qsort(timed, count, sizeof(*timed), compare_edges);
	for (uint32_t i = 0; i < count; i++)
		edges[i] = timed[i].edge;
	*ret_count = count;
	return edges;
}

static void append_stream(struct ts_text *out, const struct ts_work *work, uint32_t stream)
{
	const struct ts_work_stream *at = &work->streams[stream];
	const struct ts_work_device *device = &work->devices[at->device];

	if (device->number != TS_ABSENT)
		ts_text_printf(out, "device %" PRId64 "/", device->number);
	if (at->number != TS_ABSENT)
		ts_text_printf(out, "stream %" PRId64, at->number);
	else
		ts_text_printf(out, "stream #%" PRId64, at->id);
}

static void append_thread(struct ts_text *out, const struct ts_work *work, uint32_t thread)
{
	const struct ts_work_thread *at = &work->threads[thread];

	ts_text_append_str(out, "thread ");
	if (at->pid != TS_ABSENT)
		ts_text_printf(out, "%" PRId64 "/", at->pid);
	if (at->tid != TS_ABSENT)
		ts_text_append_int(out, at->tid);
	else
		ts_text_append_str(out, ts_work_text(work, at->name));
}

void ts_why_append_where(struct ts_text *out, const struct ts_why *why, uint32_t node)
{
	const struct ts_work *work = why->work;

	if (work->rank_count > 1)
		ts_text_printf(out, "rank %" PRId64 "/",
			       work->ranks[ts_graph_node_rank(why->graph, node)].rank);
	if (node < work->command_count) {
		append_stream(out, work, work->commands[node].stream);
		return;
	}
	node -= work->command_count;
	append_thread(out, work,
		      node < work->call_count
			      ? work->calls[node].thread
			      : why->graph->stretches[node - work->call_count].thread);
}

void ts_why_append_row(struct ts_text *out, const struct ts_why *why, uint32_t node)
{
	const struct ts_work *work = why->work;

	if (node < work->command_count)
		ts_text_printf(out, "gpu_op:%" PRIu64, work->commands[node].row);
	else if (node - work->command_count < work->call_count)
		ts_text_printf(out, "api_call:%" PRIu64,
			       work->calls[node - work->command_count].row);
}
