/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges that follow from commands and their calls alone: launches, stream order, graph nodes, and
 * explicit wait lists.
 */
#include "state/graph/graph_build.h"

static void add_launches(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	for (uint32_t i = 0; i < work->command_count; i++) {
		if (work->commands[i].call != TS_WORK_NONE)
			ts_graph_add(build,
				     ts_graph_call_node(build->graph, work->commands[i].call), i,
				     TS_EDGE_LAUNCH, TS_EDGE_FROM_START);
	}
}

/* Stream order; consecutive nodes of one graph may be independent. */
static void add_behind(struct ts_graph_build *build, uint32_t from, uint32_t to)
{
	const struct ts_work_command *one = &build->work->commands[from];
	const struct ts_work_command *other = &build->work->commands[to];

	if (one->call != TS_WORK_NONE && one->call == other->call)
		ts_graph_add(build, from, to, TS_EDGE_GRAPH, TS_EDGE_INFERRED);
	else
		ts_graph_add(build, from, to, TS_EDGE_STREAM, 0);
}

/*
 * Edge to the command at p from its predecessor. A predecessor that was still running does not
 * block it: use the last command that started before it and had ended (two threads issuing
 * concurrently appear in the wrong order). Where commands of a stream overlap, the next one waits
 * for the last to end, which need not be the last issued.
 */
static void add_position(struct ts_graph_build *build, uint32_t first, uint32_t p)
{
	const struct ts_work_command *commands = build->work->commands;
	uint32_t command = build->order[p];
	uint32_t ahead = build->order[p - 1];
	uint32_t latest = build->latest[p - 1];
	int64_t start = commands[command].start;

	if (commands[ahead].end <= start) {
		add_behind(build, ahead, command);
	} else if (command > first && commands[command - 1].end <= start &&
		   build->position[command - 1] < p) {
		add_behind(build, command - 1, command);
		return;
	}
	if (latest != ahead && commands[latest].end <= start)
		add_behind(build, latest, command);
}

/* ---- streams without an order ---- */

/* Out-of-order streams: barriers and markers that block others or wait for all, by index. */
struct loose {
	uint32_t barrier; /* the last barrier; TS_WORK_NONE: none yet */
	uint32_t marker;  /* the last marker or barrier that waited for everything before it;
			     TS_WORK_NONE */
	uint32_t since;   /* the first index after that one */
};

static bool has_waits(const struct ts_work *work, uint32_t command)
{
	uint32_t low = 0, high = work->wait_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->waits[middle].command < command)
			low = middle + 1;
		else
			high = middle;
	}
	return low < work->wait_count && work->waits[low].command == command;
}

static uint8_t call_kind(const struct ts_work *work, uint32_t command)
{
	uint32_t call = work->commands[command].call;

	return call == TS_WORK_NONE ? TS_API_OTHER : work->calls[call].kind;
}

/*
 * A marker or barrier without a wait list waits for everything before it; work before the previous
 * marker is covered by that one.
 */
static void gather(struct ts_graph_build *build, struct loose *loose, uint32_t p)
{
	uint32_t command = build->order[p];

	if (loose->marker != TS_WORK_NONE)
		ts_graph_add(build, loose->marker, command, TS_EDGE_STREAM, 0);
	for (; loose->since < p; loose->since++)
		ts_graph_add(build, build->order[loose->since], command, TS_EDGE_STREAM, 0);
	loose->marker = command;
	loose->since = p + 1;
}

static void add_loose_stream(struct ts_graph_build *build, const struct ts_work_stream *stream)
{
	struct loose loose = { TS_WORK_NONE, TS_WORK_NONE, stream->first_command };
	uint32_t end = stream->first_command + stream->command_count;

	for (uint32_t p = stream->first_command; p < end; p++) {
		uint32_t command = build->order[p];
		uint8_t kind = call_kind(build->work, command);
		bool holds = kind == TS_API_STREAM_WAIT;

		if ((holds || kind == TS_API_EVENT_RECORD) && !has_waits(build->work, command))
			gather(build, &loose, p);
		else if (loose.barrier != TS_WORK_NONE)
			ts_graph_add(build, loose.barrier, command, TS_EDGE_STREAM, 0);
		if (holds)
			loose.barrier = command;
	}
}

static void add_streams(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	for (uint32_t s = 0; s < work->stream_count; s++) {
		uint32_t first = work->streams[s].first_command;
		uint32_t end = first + work->streams[s].command_count;

		if (work->streams[s].flags & TS_STREAM_OUT_OF_ORDER) {
			add_loose_stream(build, &work->streams[s]);
			continue;
		}
		for (uint32_t p = first + 1; p < end; p++)
			add_position(build, first, p);
	}
}

/* Within an in-order stream its edges already cover this. */
static void add_waits(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	for (uint32_t i = 0; i < work->wait_count; i++) {
		const struct ts_work_wait *wait = &work->waits[i];
		uint32_t stream = work->commands[wait->command].stream;

		if (stream != work->commands[wait->on].stream ||
		    work->streams[stream].flags & TS_STREAM_OUT_OF_ORDER)
			ts_graph_add(build, wait->on, wait->command, TS_EDGE_EVENT, 0);
	}
}

void ts_graph_add_device(struct ts_graph_build *build)
{
	add_launches(build);
	add_streams(build);
	add_waits(build);
}
