/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What host calls wait for: as in the graph, or, if the graph has no edge, the only candidate. Only
 * ts_emulator_imply_waits(), which belongs to the observation, reads recorded times of commands.
 */
#include "replay/emulator/emulator_internal.h"

/* ---- observation ---- */

int64_t ts_emulator_waited_until(const struct ts_graph *graph, uint32_t call)
{
	uint32_t node = ts_graph_call_node(graph, call);
	int64_t until = INT64_MIN;

	for (uint32_t e = graph->first_in[node]; e < graph->first_in[node + 1]; e++)
		if (ts_emulator_is_host_wait(graph, &graph->edges[e]))
			until = TS_MAX(until, ts_graph_node_end(graph, graph->edges[e].from));
	return until;
}

/* A thread, and the only stream that it has used so far. */
struct user {
	uint32_t thread, stream; /* stream TS_WORK_NONE: none yet, or more than one */
	uint32_t last;           /* its last submitted command; TS_WORK_NONE */
};

static void note_use(struct user *user, const struct ts_work *work, const struct ts_work_call *call)
{
	if (call->thread != user->thread)
		*user = (struct user){ call->thread, TS_WORK_NONE, TS_WORK_NONE };
	for (uint32_t c = call->command; c != TS_WORK_NONE; c = ts_work_next_of_call(work, c)) {
		uint32_t stream = work->commands[c].stream;

		user->stream = user->last == TS_WORK_NONE || user->stream == stream ? stream
										    : TS_WORK_NONE;
		user->last = c;
	}
}

/*
 * What a wait for a stream in which nothing ended waited for is known only if there is one
 * candidate.
 */
static uint32_t implied_wait(const struct user *user, const struct ts_graph *graph, uint32_t number)
{
	const struct ts_work *work = graph->work;
	const struct ts_work_call *call = &work->calls[number];

	if (call->kind != TS_API_STREAM_SYNC || user->stream == TS_WORK_NONE ||
	    work->commands[user->last].end > call->end)
		return TS_WORK_NONE;
	return ts_emulator_waited_until(graph, number) == INT64_MIN ? user->last : TS_WORK_NONE;
}

int ts_emulator_imply_waits(struct ts_emulator_observed *observed, const struct ts_graph *graph)
{
	const struct ts_work *work = graph->work;
	struct user user = { TS_WORK_NONE, TS_WORK_NONE, TS_WORK_NONE };

	observed->implied = ts_alloc_array(work->call_count, sizeof(*observed->implied));
	if (!observed->implied)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->call_count; i++) {
		note_use(&user, work, &work->calls[i]);
		observed->implied[i] = implied_wait(&user, graph, i);
	}
	return TS_OK;
}

/* ---- the model ---- */

static void wait_for(struct ts_emulator_build *build, uint32_t call, uint32_t command)
{
	struct ts_emulator_model *model = build->model;
	uint32_t point = build->end[call], name = build->work->calls[call].name;

	/* Its own time counts from the previous point, usually its begin. */
	model->points[point].gap_ns =
		TS_MIN(model->points[point].gap_ns, build->observed->self_ns[name]);
	ts_emulator_add_arrow(build, command, ts_emulator_point_node(model, point),
			      build->observed->tail_ns[call]);
}

/*
 * Out-of-order streams: a wait for one waits for everything submitted to it, not for its last
 * command.
 */
struct loose {
	uint32_t *order; /* commands by stream and time of submission; a stream uses the indices of
			    its own commands */
	uint32_t *done;  /* by stream: how many of these were waited for */
};

struct submitted {
	int64_t time;
	uint32_t command;
};

static int compare_submitted(const void *a_, const void *b_)
{
	const struct submitted *a = a_, *b = b_;

	return a->time != b->time ? TS_COMPARE(a->time, b->time)
				  : TS_COMPARE(a->command, b->command);
}

static void order_loose(struct ts_emulator_build *build, struct loose *loose,
			const struct ts_work_stream *stream)
{
	struct submitted *submitted =
		ts_emulator_array(build, stream->command_count, sizeof(*submitted));

	if (!submitted)
		return;
	for (uint32_t i = 0; i < stream->command_count; i++)
		submitted[i] = (struct submitted){
			build->work->commands[stream->first_command + i].issued,
			stream->first_command + i,
		};
	ts_sort(submitted, stream->command_count, sizeof(*submitted), compare_submitted);
	for (uint32_t i = 0; i < stream->command_count; i++)
		loose->order[stream->first_command + i] = submitted[i].command;
	free(submitted);
}

static void find_loose(struct ts_emulator_build *build, struct loose *loose)
{
	const struct ts_work *work = build->work;

	loose->order = ts_emulator_array(build, work->command_count, sizeof(*loose->order));
	loose->done = ts_emulator_array(build, work->stream_count, sizeof(*loose->done));
	for (uint32_t s = 0; s < work->stream_count && !build->rc; s++) {
		loose->done[s] = 0;
		if (work->streams[s].flags & TS_STREAM_OUT_OF_ORDER)
			order_loose(build, loose, &work->streams[s]);
	}
}

/* Adds edges only from commands that no earlier call waited for. */
static void wait_for_stream(struct ts_emulator_build *build, struct loose *loose, uint32_t call,
			    uint32_t command)
{
	const struct ts_work *work = build->work;
	uint32_t s = work->commands[command].stream;
	const struct ts_work_stream *stream = &work->streams[s];

	wait_for(build, call, command);
	if (!(stream->flags & TS_STREAM_OUT_OF_ORDER) || !ts_api_is_sync(work->calls[call].kind) ||
	    work->calls[call].kind == TS_API_EVENT_SYNC)
		return;
	for (; loose->done[s] < stream->command_count; loose->done[s]++) {
		uint32_t other = loose->order[stream->first_command + loose->done[s]];

		if (work->commands[other].issued > work->calls[call].start)
			break;
		if (other != command)
			wait_for(build, call, other);
	}
}

static void add_waits_of(struct ts_emulator_build *build, struct loose *loose, uint32_t call)
{
	const struct ts_graph *graph = build->graph;
	uint32_t node = ts_graph_call_node(graph, call);
	uint32_t implied = build->observed->implied[call];

	for (uint32_t e = graph->first_in[node]; e < graph->first_in[node + 1]; e++)
		if (ts_emulator_is_host_wait(graph, &graph->edges[e]))
			wait_for_stream(build, loose, call, graph->edges[e].from);
	if (implied != TS_WORK_NONE)
		wait_for_stream(build, loose, call, implied);
}

void ts_emulator_add_waits(struct ts_emulator_build *build)
{
	struct loose loose = { 0 };

	find_loose(build, &loose);
	for (uint32_t i = 0; i < build->work->call_count && !build->rc; i++)
		add_waits_of(build, &loose, i);
	free(loose.order);
	free(loose.done);
}
