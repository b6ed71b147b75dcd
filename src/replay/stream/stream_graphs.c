/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs (docs/cuda-replay.md, 4.2): rows that describe nodes are kept with their graph, and each
 * launch becomes one command per node. What a node names is checked where it is described, what
 * depends on the moment (events, mapped memory) at each launch.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

static bool is_graph(const struct ts_replay_load *load, uint32_t object)
{
	return object != TS_REPLAY_NONE && load->stream->objects[object].kind == TS_OBJECT_GRAPH;
}

bool ts_replay_is_node(const struct ts_replay_load *load, const struct ts_command_row *row)
{
	return is_graph(load, ts_replay_object_by_id(load, row->queue));
}

bool ts_replay_is_graph_launch(const struct ts_replay_load *load, const struct ts_command_row *row)
{
	return row->kind == TS_COMMAND_LAUNCH &&
	       is_graph(load, ts_replay_object_by_id(load, row->object));
}

int ts_replay_prepare_nodes(struct ts_replay_load *load)
{
	load->nodes = calloc(load->stream->object_count + 1u, sizeof(*load->nodes));
	return load->nodes ? TS_OK : TS_ENOMEM;
}

void ts_replay_release_nodes(struct ts_replay_load *load)
{
	for (uint32_t i = 0; load->nodes && i < load->stream->object_count; i++)
		free(load->nodes[i].items);
	free(load->nodes);
}

size_t ts_replay_count_row(const struct ts_replay_load *load, const struct ts_command_row *row,
			   uint32_t *counts)
{
	if (ts_replay_is_node(load, row)) {
		counts[ts_replay_object_by_id(load, row->queue)]++;
		return 0;
	}
	if (!ts_replay_is_graph_launch(load, row))
		return 1;
	return TS_MAX(counts[ts_replay_object_by_id(load, row->object)], 1u);
}

/* ---- nodes ---- */

static int check_node(struct ts_replay_load *load, uint32_t index, uint32_t graph,
		      const struct ts_replay_details *details, struct ts_error *err)
{
	const struct ts_replay_command_info *command = &load->stream->commands[index];
	const struct ts_replay_nodes *nodes = &load->nodes[graph];
	uint64_t number = load->stream->objects[graph].number;

	if (nodes->is_launched)
		return ts_replay_command_error(load->stream, index, err,
					       "a node of graph %" PRIu64 " behind its launch",
					       number);
	if (!details->node.is_known || details->node.value != nodes->count)
		return ts_replay_command_error(load->stream, index, err,
					       "it is not node %" PRIu32 " of graph %" PRIu64,
					       nodes->count, number);
	for (uint32_t i = 0; i < details->after.count; i++)
		if (details->after.items[i] >= nodes->count)
			return ts_replay_command_error(
				load->stream, index, err,
				"node %" PRIu32 " of graph %" PRIu64 " depends on node %" PRIu64
				", which is not before it",
				nodes->count, number, details->after.items[i]);
	switch (command->kind) {
	case TS_COMMAND_LAUNCH:
		if (!is_graph(load, command->object))
			return TS_OK;
		return ts_replay_command_error(load->stream, index, err,
					       "a node of graph %" PRIu64 " launches a graph",
					       number);
	case TS_COMMAND_COPY:
	case TS_COMMAND_FILL:
	case TS_COMMAND_RECORD:
	case TS_COMMAND_WAIT:
	case TS_COMMAND_SYNC:
	case TS_COMMAND_HOST:
	case TS_COMMAND_UNKNOWN:
		return TS_OK;
	default:
		return ts_replay_command_error(load->stream, index, err,
					       "graph %" PRIu64 " has a node of this kind", number);
	}
}

int ts_replay_keep_node(struct ts_replay_load *load, uint32_t index,
			const struct ts_command_row *row, const struct ts_replay_details *details,
			struct ts_error *err)
{
	uint32_t graph = ts_replay_object_by_id(load, row->queue), *after;
	struct ts_replay_nodes *nodes = &load->nodes[graph];
	struct ts_replay_command_info *node;
	size_t capacity = nodes->capacity;
	int rc = check_node(load, index, graph, details, err);

	if (rc)
		return rc;
	after = ts_arena_alloc_zeroed(&load->stream->arena, details->after.count + 1u,
				      sizeof(*after));
	if (!after || ts_grow_array((void **)&nodes->items, &capacity, nodes->count + 1u,
				    sizeof(*nodes->items)))
		return ts_replay_no_memory(err);
	nodes->capacity = (uint32_t)capacity;
	node = &nodes->items[nodes->count];
	*node = load->stream->commands[index];
	for (uint32_t i = 0; i < details->after.count; i++)
		after[i] = (uint32_t)details->after.items[i];
	node->graph = graph;
	node->node = nodes->count++;
	node->node_after = after;
	node->node_after_count = details->after.count;
	/* An empty node. */
	if (node->kind == TS_COMMAND_SYNC) {
		node->kind = TS_COMMAND_WAIT;
		node->what = NULL;
		node->object = TS_REPLAY_NONE;
		node->event_count = 0;
	}
	return TS_OK;
}

/* ---- launches ---- */

/* What all nodes have of the launch. */
static void set_launch(struct ts_replay_command_info *node,
		       const struct ts_replay_command_info *launch, uint32_t first, uint32_t count)
{
	node->sequence = launch->sequence;
	node->start_ns = launch->start_ns;
	node->correlation = launch->correlation;
	node->thread = launch->thread;
	node->queue = launch->queue;
	node->named_queue = launch->named_queue;
	node->call = node->call ? node->call : launch->call;
	node->blocking = false;
	node->graph_first = first;
	node->graph_nodes = count;
}

/* The implicit waits of the first node are those of each node that depends on none. */
static int share_waits(struct ts_replay_load *load, uint32_t first, uint32_t index,
		       struct ts_error *err)
{
	const struct ts_replay_command_info *from = &load->stream->commands[first];
	struct ts_replay_command_info *to = &load->stream->commands[index];
	uint32_t count = from->implicit_waits, *waits;
	const uint32_t *implicit;

	if (first == index || !count || to->node_after_count)
		return TS_OK;
	implicit = from->waits + (from->wait_count - count);
	if (to->wait_count) {
		waits = ts_arena_alloc_zeroed(&load->stream->arena, (size_t)to->wait_count + count,
					      sizeof(*waits));
		if (!waits)
			return ts_replay_no_memory(err);
		memcpy(waits, to->waits, to->wait_count * sizeof(*waits));
		memcpy(waits + to->wait_count, implicit, count * sizeof(*waits));
		implicit = waits;
	}
	to->waits = implicit;
	to->wait_count += count;
	to->implicit_waits = count;
	return TS_OK;
}

static int check_complete(struct ts_replay_load *load, uint32_t index, uint32_t graph,
			  struct ts_error *err)
{
	const struct ts_replay_object_info *object = &load->stream->objects[graph];

	if (object->graph_nodes == load->nodes[graph].count)
		return TS_OK;
	return ts_replay_command_error(
		load->stream, index, err,
		"graph %" PRIu64 " has %" PRIu64 " nodes, the trace %" PRIu32, object->number,
		object->graph_nodes, load->nodes[graph].count);
}

/* A graph without nodes still has its place in the order. */
static int expand_empty(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];

	command->kind = TS_COMMAND_WAIT;
	command->unknown_access = false;
	command->has_wait_list = true;
	command->blocking = false;
	command->graph = command->object;
	command->graph_first = index;
	command->object = TS_REPLAY_NONE;
	return ts_replay_submit(load, index, 0, err);
}

int ts_replay_expand(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	struct ts_replay_command_info launch = stream->commands[index];
	struct ts_replay_nodes *nodes = &load->nodes[launch.object];
	const struct ts_replay_object_info *graph = &stream->objects[launch.object];
	int rc;

	nodes->is_launched = true;
	if (graph->unreplayable)
		ts_replay_spoil(load, index, "graph %" PRIu64 ": %s", graph->number,
				graph->unreplayable);
	if (stream->commands[index].unreplayable)
		return ts_replay_submit(load, index, 0, err);
	rc = check_complete(load, index, launch.object, err);
	if (rc || !nodes->count)
		return rc ? rc : expand_empty(load, index, err);
	for (uint32_t i = 0; !rc && i < nodes->count; i++) {
		stream->commands[index + i] = nodes->items[i];
		set_launch(&stream->commands[index + i], &launch, index, nodes->count);
		rc = ts_replay_submit(load, index + i, 0, err);
		if (!rc)
			rc = share_waits(load, index, index + i, err);
	}
	return rc;
}
