/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes, and launches that become commands; the order of streams of CUDA. */
#include "unit/replay/stream/cuda_stream_support.h"

/* ---- nodes ---- */

static void add_node(enum ts_command_kind kind, int64_t graph, int node, const char *after,
		     const char *more)
{
	static const uint64_t block[2] = { CUDA_ARENA, 7 };
	struct fixture_command command = { .kind = kind, .queue = graph };
	char details[256];

	snprintf(details, sizeof(details), "{\"node\":%d,\"after\":[%s]%s}", node, after, more);
	command.details = details;
	if (kind == TS_COMMAND_LAUNCH) {
		command.object = CUDA_KERNEL;
		command.blob = fixture_blob(&fixture, block, sizeof(block));
	}
	if (kind == TS_COMMAND_COPY) {
		command.object = CUDA_MEMORY;
		command.other = CUDA_VARIABLE;
		command.bytes = 16;
	}
	fixture_command(&fixture, &command);
}

#define GRID ",\"grid\":[1,1,1],\"block\":[32,1,1]"

/* launch, copy, empty, launch: a diamond */
static void add_diamond(int64_t graph)
{
	cuda_graph(&fixture, graph, 4);
	add_node(TS_COMMAND_LAUNCH, graph, 0, "", GRID);
	add_node(TS_COMMAND_COPY, graph, 1, "0", "");
	add_node(TS_COMMAND_SYNC, graph, 2, "0", "");
	add_node(TS_COMMAND_LAUNCH, graph, 3, "1,2", GRID);
}

TS_TEST(launches_are_expanded)
{
	const struct ts_replay_command_info *command;
	struct ts_replay_stream *stream;
	int64_t first, second;
	char text[128];

	begin();
	cuda_begin(&fixture, 1, 0);
	add_diamond(CUDA_GRAPH);
	first = cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	cuda_launch(&fixture, CUDA_STREAM_2, CUDA_ARENA, "");
	second = cuda_launch_graph(&fixture, CUDA_STREAM_2, CUDA_GRAPH);
	cuda_pages(&fixture, second, CUDA_MEMORY, NULL, 0, "each");
	stream = load();
	TS_CHECK_INT(stream->command_count, 9);
	for (uint32_t i = 0; i < 4; i++) {
		command = &stream->commands[i];
		TS_CHECK_INT(command->sequence, first);
		TS_CHECK_INT(command->node, i);
		TS_CHECK_INT(command->graph_first, 0);
		TS_CHECK_INT(command->graph_nodes, 4);
		TS_CHECK_INT(stream->objects[command->graph].number, CUDA_GRAPH);
		TS_CHECK_INT(stream->objects[command->queue].number, CUDA_STREAM);
		TS_CHECK_STR(command->call, "cuGraphLaunch");
		TS_CHECK(!command->unreplayable);
		TS_CHECK_INT(command->ready, i);
	}
	TS_CHECK_INT(stream->commands[0].node_after_count, 0);
	TS_CHECK_INT(stream->commands[3].node_after_count, 2);
	TS_CHECK(stream->commands[3].node_after[0] == 1 && stream->commands[3].node_after[1] == 2);
	TS_CHECK_INT(stream->commands[2].kind, TS_COMMAND_WAIT);
	TS_CHECK(!stream->commands[2].unknown_access && stream->commands[3].unknown_access);
	TS_CHECK_INT(stream->commands[1].write_count, 1);
	TS_CHECK_INT(stream->commands[4].graph, TS_REPLAY_NONE);
	TS_CHECK_INT(stream->commands[5].graph_first, 5);
	TS_CHECK_INT(stream->objects[stream->commands[8].queue].number, CUDA_STREAM_2);
	/* The check of a launch belongs to its last node. */
	TS_CHECK_INT(stream->commands[8].check_count, 1);
	TS_CHECK_STR(ts_replay_command_text(stream, 1, text, sizeof(text)),
		     "command 6, node 1, copy of memory 11 to memory 9");
	done(stream);
}

/* Memory is that of the moment of the launch; a graph without nodes has its place. */
TS_TEST(moments)
{
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	add_diamond(CUDA_GRAPH);
	cuda_graph(&fixture, CUDA_NEXT, 0);
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_FREE,
							     .object = CUDA_MEMORY,
							     .bytes = CUDA_PAGE,
							     .details = "{}" });
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_NEXT);
	stream = load();
	TS_CHECK_INT(stream->command_count, 10);
	TS_CHECK(!stream->commands[1].unreplayable);
	TS_CHECK_STR(stream->commands[6].unreplayable,
		     "memory 9: 16 bytes at 0x200000000000 are not mapped");
	TS_CHECK_INT(stream->commands[9].kind, TS_COMMAND_WAIT);
	TS_CHECK(stream->commands[9].graph_nodes == 0 && stream->commands[9].graph_first == 9);
	TS_CHECK_INT(stream->objects[stream->commands[9].graph].number, CUDA_NEXT);
	done(stream);
}

TS_TEST(bad_graphs)
{
	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 2);
	add_node(TS_COMMAND_SYNC, CUDA_GRAPH, 0, "", "");
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	refuse(TS_EFORMAT, "command 3, launch of graph 12: graph 12 has 2 nodes, the trace 1");

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 1);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	add_node(TS_COMMAND_SYNC, CUDA_GRAPH, 0, "0", "");
	refuse(TS_EFORMAT,
	       "command 3, sync: node 0 of graph 12 depends on node 0, which is not before it");

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 1);
	add_node(TS_COMMAND_SYNC, CUDA_GRAPH, 1, "", "");
	refuse(TS_EFORMAT, "command 2, sync: it is not node 0 of graph 12");

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 0);
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	add_node(TS_COMMAND_SYNC, CUDA_GRAPH, 0, "", "");
	refuse(TS_EFORMAT, "command 3, sync: a node of graph 12 behind its launch");

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 1);
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
							     .queue = CUDA_GRAPH,
							     .object = CUDA_GRAPH,
							     .details = "{\"node\":0}" });
	refuse(TS_EFORMAT, "command 2, launch of graph 12: a node of graph 12 launches a graph");

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 1);
	add_node(TS_COMMAND_ALLOC, CUDA_GRAPH, 0, "", "");
	refuse(TS_EFORMAT, "command 2, alloc: graph 12 has a node of this kind");
}

/* A small file must not become many commands. */
TS_TEST(too_many_nodes)
{
	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 2100);
	for (int i = 0; i < 2100; i++)
		add_node(TS_COMMAND_SYNC, CUDA_GRAPH, i, "", "");
	for (int i = 0; i < 2100; i++)
		cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	refuse(TS_EFORMAT, "a window of 4410000 commands is too large");
}

/* ---- order ---- */

/* A wait is for the record before it, not for a later one. */
TS_TEST(events)
{
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_wait(&fixture, CUDA_STREAM_2, 7);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	cuda_record(&fixture, CUDA_STREAM, 7);
	cuda_wait(&fixture, CUDA_STREAM_2, 7);
	cuda_record(&fixture, CUDA_STREAM, 7);
	cuda_wait(&fixture, CUDA_FREE, 7);
	stream = load();
	TS_CHECK_INT(stream->commands[0].wait_count, 0);
	TS_CHECK(stream->commands[0].has_wait_list);
	TS_CHECK_INT(stream->commands[3].wait_count, 1);
	TS_CHECK_INT(stream->commands[3].waits[0], 2);
	TS_CHECK_INT(stream->commands[3].implicit_waits, 0);
	TS_CHECK_INT(stream->commands[5].waits[0], 4);
	TS_CHECK_INT(stream->commands[5].events[0], 7);
	done(stream);
}

/* Nodes of graphs record and wait for events, too. */
TS_TEST(events_in_graphs)
{
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 2);
	add_node(TS_COMMAND_WAIT, CUDA_GRAPH, 0, "", ",\"wait\":[8]");
	add_node(TS_COMMAND_RECORD, CUDA_GRAPH, 1, "0", ",\"event\":7");
	cuda_record(&fixture, CUDA_STREAM_2, 8);
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	cuda_record(&fixture, CUDA_STREAM_2, 8);
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
	cuda_wait(&fixture, CUDA_STREAM_2, 7);
	stream = load();
	TS_CHECK_INT(stream->command_count, 7);
	TS_CHECK_INT(stream->commands[1].waits[0], 0);
	TS_CHECK_INT(stream->commands[4].waits[0], 3);
	TS_CHECK_INT(stream->commands[6].waits[0], 5);
	done(stream);
}

TS_TEST(legacy_stream)
{
	const struct ts_replay_command_info *commands;
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");   /* 0 */
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");   /* 1 */
	cuda_launch(&fixture, CUDA_STREAM_2, CUDA_ARENA, ""); /* 2 */
	cuda_launch(&fixture, CUDA_FREE, CUDA_ARENA, "");     /* 3 */
	cuda_launch(&fixture, CUDA_LEGACY, CUDA_ARENA, "");   /* 4: 1, 2 */
	cuda_launch(&fixture, CUDA_LEGACY, CUDA_ARENA, "");   /* 5 */
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");   /* 6: 5 */
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");   /* 7 */
	cuda_launch(&fixture, CUDA_FREE, CUDA_ARENA, "");     /* 8 */
	cuda_record(&fixture, CUDA_STREAM_2, 7);              /* 9: 5 */
	cuda_wait(&fixture, CUDA_LEGACY, 7);                  /* 10: 9, then 7 and 9 */
	stream = load();
	commands = stream->commands;
	TS_CHECK_INT(commands[4].wait_count, 2);
	TS_CHECK_INT(commands[4].implicit_waits, 2);
	TS_CHECK_INT(commands[4].waits[0] + commands[4].waits[1], 3);
	TS_CHECK(!commands[4].has_wait_list);
	TS_CHECK_INT(commands[5].wait_count, 0);
	TS_CHECK_INT(commands[6].wait_count, 1);
	TS_CHECK_INT(commands[6].waits[0], 5);
	TS_CHECK_INT(commands[7].wait_count, 0);
	TS_CHECK_INT(commands[3].wait_count + commands[8].wait_count, 0);
	TS_CHECK_INT(commands[9].waits[0], 5);
	TS_CHECK_INT(commands[10].wait_count, 3);
	TS_CHECK_INT(commands[10].implicit_waits, 2);
	TS_CHECK_INT(commands[10].waits[0], 9);
	TS_CHECK_INT(commands[10].waits[1] + commands[10].waits[2], 16);
	done(stream);
}

/* All nodes of a graph that depend on none wait for the legacy stream, and it for all nodes. */
TS_TEST(legacy_stream_and_graphs)
{
	const struct ts_replay_command_info *commands;
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_graph(&fixture, CUDA_GRAPH, 4);
	add_node(TS_COMMAND_LAUNCH, CUDA_GRAPH, 0, "", GRID);
	add_node(TS_COMMAND_LAUNCH, CUDA_GRAPH, 1, "", GRID);
	add_node(TS_COMMAND_WAIT, CUDA_GRAPH, 2, "", ",\"wait\":[8]");
	add_node(TS_COMMAND_LAUNCH, CUDA_GRAPH, 3, "1", GRID);
	cuda_record(&fixture, CUDA_FREE, 8);                  /* 0 */
	cuda_launch(&fixture, CUDA_LEGACY, CUDA_ARENA, "");   /* 1 */
	cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH); /* 2 to 5 */
	cuda_launch(&fixture, CUDA_LEGACY, CUDA_ARENA, "");   /* 6: 5 */
	cuda_launch_graph(&fixture, CUDA_LEGACY, CUDA_GRAPH); /* 7 to 10 */
	cuda_launch(&fixture, CUDA_STREAM_2, CUDA_ARENA, ""); /* 11: 10 */
	stream = load();
	commands = stream->commands;
	TS_CHECK(commands[2].wait_count == 1 && commands[2].waits[0] == 1);
	TS_CHECK(commands[3].wait_count == 1 && commands[3].waits[0] == 1);
	TS_CHECK(commands[3].implicit_waits == 1);
	TS_CHECK(commands[4].wait_count == 2 && commands[4].implicit_waits == 1);
	TS_CHECK(commands[4].waits[0] == 0 && commands[4].waits[1] == 1);
	TS_CHECK_INT(commands[5].wait_count, 0);
	TS_CHECK(commands[6].wait_count == 1 && commands[6].waits[0] == 5);
	TS_CHECK_INT(commands[7].wait_count, 0);
	TS_CHECK(commands[11].wait_count == 1 && commands[11].waits[0] == 10);
	done(stream);
}

TS_TEST(host_waits)
{
	struct ts_replay_stream *stream;

	begin();
	cuda_begin(&fixture, 1, 0);
	cuda_launch(&fixture, CUDA_STREAM, CUDA_ARENA, "");
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_SYNC,
							     .queue = CUDA_STREAM,
							     .object = CUDA_CONTEXT,
							     .details = "{\"what\":\"context\"}" });
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_SYNC,
							     .queue = CUDA_STREAM,
							     .details = "{\"what\":\"queue\"}" });
	fixture_command(&fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_SET,
				.object = CUDA_KERNEL,
				.details = "{\"what\":\"attribute\",\"id\":8,\"value\":4}" });
	stream = load();
	TS_CHECK_INT(stream->commands[1].queue, TS_REPLAY_NONE);
	TS_CHECK_STR(stream->commands[1].what, "context");
	TS_CHECK_INT(stream->objects[stream->commands[1].object].number, CUDA_CONTEXT);
	TS_CHECK_INT(stream->objects[stream->commands[2].queue].number, CUDA_STREAM);
	TS_CHECK_INT(stream->commands[3].kind, TS_COMMAND_SET);
	TS_CHECK_STR(stream->commands[3].what, "attribute");
	TS_CHECK(!stream->commands[3].unreplayable && !stream->commands[3].unknown_access);
	TS_CHECK(strstr(stream->commands[3].details, "\"id\":8"));
	done(stream);
}
