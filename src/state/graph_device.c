/* SPDX-License-Identifier: Apache-2.0 */
/* Edges that need no more than commands and their calls: launches, the order of streams, nodes of graphs. */
#include "state/graph_build.h"

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

/* In the order of a stream; nodes of one graph that follow each other there may well be independent. */
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
 * The command behind the one at place p - 1. One that still ran does not hold it: what does is the last one that began
 * ahead of it, if that had ended (two threads that issue at the same time are seen in the wrong order). And where
 * commands of a stream overlapped, the next one waits for the last to end, which need not be the last to be issued.
 */
static void add_place(struct ts_graph_build *build, uint32_t first, uint32_t p)
{
	const struct ts_work_command *commands = build->work->commands;
	uint32_t command = build->order[p];
	uint32_t ahead = build->order[p - 1];
	uint32_t latest = build->latest[p - 1];
	int64_t start = commands[command].start;

	if (commands[ahead].end <= start) {
		add_behind(build, ahead, command);
	} else if (command > first && commands[command - 1].end <= start &&
		   build->place[command - 1] < p) {
		add_behind(build, command - 1, command);
		return;
	}
	if (latest != ahead && commands[latest].end <= start)
		add_behind(build, latest, command);
}

static void add_streams(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	for (uint32_t s = 0; s < work->stream_count; s++) {
		uint32_t first = work->streams[s].first_command;
		uint32_t end = first + work->streams[s].command_count;

		for (uint32_t p = first + 1; p < end; p++)
			add_place(build, first, p);
	}
}

void ts_graph_add_device(struct ts_graph_build *build)
{
	add_launches(build);
	add_streams(build);
}
