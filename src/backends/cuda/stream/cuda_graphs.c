/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executables of graphs (docs/cuda-replay.md, 4.2): their nodes are read when they are instantiated
 * (cuda_graph_nodes.c), and updates of the executable are applied to what was read. A window has an
 * executable as an object, with its nodes as commands, from its first launch on; an update makes
 * another object at the next launch.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_graph_nodes.h"
#include "base/local/stream_text.h"

struct executable {
	struct executable *next;
	void *handle;
	struct node_list nodes;
	unsigned long long flags;
	uint64_t number; /* of the object in this window; 0: not described, or changed since */
	bool has_copied; /* nodes have bytes of memory that is not pinned */
};

/* capture_lock is held for all of these. */
static struct executable *executables;

/* ---- executables ---- */

static struct executable *executable_of(void *handle)
{
	struct executable *executable = executables;

	while (executable && executable->handle != handle)
		executable = executable->next;
	return executable;
}

static void remove_executable(void *handle)
{
	struct executable **link = &executables;

	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	if (*link) {
		struct executable *executable = *link;

		*link = executable->next;
		graph_blocks_end(handle);
		if (executable->number)
			capture_gone(executable->number);
		graph_nodes_release(&executable->nodes);
		free(executable);
	}
}

/* executable, graph, ... */
static int instantiate(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct executable *executable;
	bool has_params = strstr(call->name, "WithParams") != NULL;

	if (result != CUDA_SUCCESS_ || !args[0] || !args[1])
		return result;
	capture_lock();
	remove_executable(*(void **)args[0]);
	executable = calloc(1, sizeof(*executable));
	if (executable) {
		executable->handle = *(void **)args[0];
		if (has_params && args[2])
			executable->flags = *(const unsigned long long *)args[2];
		else if (strstr(call->name, "WithFlags"))
			executable->flags = args[2];
		graph_nodes_read(&executable->nodes, (void *)args[1], 0);
		graph_blocks_copy((void *)args[1], executable->handle);
		if (executable->flags & CUDA_GRAPH_DEVICE_LAUNCH)
			graph_nodes_refuse(&executable->nodes, "graph that the device launches");
		executable->next = executables;
		executables = executable;
	}
	capture_unlock();
	return result;
}

static int destroy_executable(struct cuda_call *call, uintptr_t *args)
{
	int result;

	/* Its handle may be given to another thread as soon as it is free. */
	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_)
		remove_executable((void *)args[0]);
	capture_unlock();
	return result;
}

/* ---- updates ---- */

/* The next launch has another object. */
static void changed(struct executable *executable)
{
	if (executable->number)
		capture_gone(executable->number);
	executable->number = 0;
}

/*
 * Later updates name nodes of the graph that was instantiated; that one of them is disabled stays,
 * unless the driver says otherwise.
 */
static void keep_identity(const struct executable *executable, struct node_list *nodes)
{
	for (uint32_t i = 0; i < nodes->count && nodes->count == executable->nodes.count; i++) {
		const struct graph_node *old = &executable->nodes.items[i];
		struct graph_node *node = &nodes->items[i];
		unsigned int is_enabled;

		if (old->type != node->type)
			continue;
		node->first_handle = old->first_handle;
		node->is_disabled = old->is_disabled;
		if (old->is_disabled &&
		    !cu.GraphNodeGetEnabled(executable->handle, old->first_handle, &is_enabled))
			node->is_disabled = !is_enabled;
	}
}

/* executable, graph, ...: a graph of the same shape. */
static int update(struct cuda_call *call, uintptr_t *args)
{
	struct executable *executable;
	int result = cuda_invoke(call, args);

	if (result != CUDA_SUCCESS_)
		return result;
	capture_lock();
	executable = executable_of((void *)args[0]);
	if (executable) {
		struct node_list nodes = { 0 };

		graph_nodes_read(&nodes, (void *)args[1], 0);
		graph_blocks_end(executable->handle);
		graph_blocks_copy((void *)args[1], executable->handle);
		keep_identity(executable, &nodes);
		graph_nodes_release(&executable->nodes);
		executable->nodes = nodes;
		changed(executable);
	}
	capture_unlock();
	return result;
}

/* The node that an update of the executable names, once it has succeeded; NULL: nothing to do. */
static struct graph_node *updated_node(const uintptr_t *args, struct node_list **ret_list)
{
	struct executable *executable = executable_of((void *)args[0]);
	void *handle = (void *)args[1];

	if (!executable)
		return NULL;
	changed(executable);
	*ret_list = &executable->nodes;
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		struct graph_node *node = &executable->nodes.items[i];

		if (node->first_handle == handle || node->handle == handle)
			return node;
	}
	graph_nodes_refuse(&executable->nodes, "update of a graph node that is not known");
	return NULL;
}

static void update_child(struct node_list *list, struct graph_node *node, void *graph)
{
	struct node_list nodes = { 0 };
	uint32_t first = node->first, count = (uint32_t)(node - list->items) - first;

	graph_nodes_read(&nodes, graph, 1);
	if (nodes.refused[0])
		graph_nodes_refuse(list, nodes.refused);
	if (nodes.count != count)
		graph_nodes_refuse(list, "update of a child graph that cannot be followed");
	for (uint32_t i = 0; i < count && nodes.count == count; i++) {
		struct graph_node *to = &list->items[first + i], *from = &nodes.items[i];
		struct graph_node old = *to;

		*to = *from;
		to->after = old.after;
		to->after_count = old.after_count;
		to->first_handle = old.first_handle;
		to->first = old.first;
		from->attributes = old.attributes;
		from->block = old.block;
		from->copied = old.copied;
	}
	graph_nodes_release(&nodes);
}

/* executable, node, parameters: by type of the node; `has_kernel`: those of cuda_kernel_node. */
static void take_params(struct node_list *list, struct graph_node *node, const void *params,
			bool has_kernel)
{
	switch (node->type) {
	case CUDA_NODE_KERNEL: {
		struct cuda_kernel_node kernel = { 0 };

		memcpy(&kernel, params,
		       has_kernel ? sizeof(kernel) : offsetof(struct cuda_kernel_node, kernel));
		graph_node_take_kernel(list, node, &kernel, has_kernel);
		break;
	}
	case CUDA_NODE_COPY:
		memcpy(&node->copy, params, sizeof(node->copy));
		break;
	case CUDA_NODE_FILL:
		memcpy(&node->fill, params, sizeof(node->fill));
		break;
	case CUDA_NODE_GRAPH:
		update_child(list, node, *(void *const *)params);
		break;
	case CUDA_NODE_EVENT_WAIT:
	case CUDA_NODE_EVENT_RECORD:
		node->event = *(void *const *)params;
		break;
	default:
		break;
	}
}

static int set_node(struct cuda_call *call, const uintptr_t *args, const void *params,
		    bool has_kernel)
{
	int result = cuda_invoke(call, args);
	struct node_list *list = NULL;
	struct graph_node *node;

	if (result != CUDA_SUCCESS_)
		return result;
	capture_lock();
	node = updated_node(args, &list);
	if (node && params)
		take_params(list, node, params, has_kernel);
	capture_unlock();
	return result;
}

static int set_params(struct cuda_call *call, uintptr_t *args)
{
	return set_node(call, args, (const void *)args[2], strstr(call->name, "_v2") != NULL);
}

/* executable, node, event or graph: the value itself */
static int set_handle(struct cuda_call *call, uintptr_t *args)
{
	return set_node(call, args, &args[2], false);
}

/* executable, node, CUgraphNodeParams: a type, then the parameters at 16; a copy has a header. */
static int set_any_params(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_node_params *params = (const struct cuda_node_params *)args[2];
	const char *content = params ? (const char *)params->words : NULL;

	if (params && params->type == CUDA_NODE_COPY)
		content += 16;
	return set_node(call, args, content, true);
}

/* executable, node, is_enabled */
static int set_enabled(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct node_list *list = NULL;
	struct graph_node *node;

	if (result != CUDA_SUCCESS_)
		return result;
	capture_lock();
	node = updated_node(args, &list);
	if (node)
		node->is_disabled = !(unsigned int)args[2];
	capture_unlock();
	return result;
}

/* ---- rows ---- */

/* False: the window has failed. */
static bool append_node(struct executable *executable, uint32_t number)
{
	struct graph_node *node = &executable->nodes.items[number];
	struct ts_replay_command row = capture_row(TS_COMMAND_SYNC);
	struct stream_text text;
	bool is_known = true;

	stream_text_begin(&text);
	stream_text_uint(&text, "node", number);
	stream_text_open(&text, "after", '[');
	for (uint32_t i = 0; i < node->after_count; i++)
		stream_text_item(&text, node->after[i]);
	stream_text_close(&text, '[');
	switch (node->is_disabled ? CUDA_NODE_EMPTY : node->type) {
	case CUDA_NODE_KERNEL:
		row.kind = TS_COMMAND_LAUNCH;
		row.object = capture_function_number(node->function);
		row.blob = capture_blob(node->block, node->block_bytes);
		host_look_for_pointers(node->block, node->block_bytes);
		is_known = row.object && capture_launch_details(&text, &node->config, false);
		break;
	case CUDA_NODE_COPY:
		free(node->copied);
		is_known = capture_copy_node(&node->copy, &row, &text, &node->copied);
		executable->has_copied |= node->copied != NULL;
		break;
	case CUDA_NODE_FILL:
		is_known = capture_fill_node(&node->fill, &row, &text);
		break;
	case CUDA_NODE_EVENT_WAIT:
		row.kind = TS_COMMAND_WAIT;
		stream_text_open(&text, "wait", '[');
		stream_text_item(&text, capture_event_number(node->event));
		stream_text_close(&text, '[');
		break;
	case CUDA_NODE_EVENT_RECORD:
		row.kind = TS_COMMAND_RECORD;
		stream_text_uint(&text, "event", capture_event_number(node->event));
		break;
	default:
		break;
	}
	if (!is_known)
		return false;
	row.queue = executable->number;
	row.correlation = 0;
	row.details = stream_text_end(&text);
	if (!row.details) {
		capture_fail("graph node with %u dependencies", node->after_count);
		return false;
	}
	if (row.kind == TS_COMMAND_LAUNCH)
		row.details = capture_foreign(row.details, node->block, node->block_bytes);
	return capture_command(&row) != 0;
}

/* False: the window has failed. */
static bool describe(struct executable *executable, struct capture_context *context)
{
	struct ts_replay_object object = {
		.size = sizeof(object),
		.kind = TS_OBJECT_GRAPH,
		.address = (uint64_t)(uintptr_t)executable->handle,
		.bytes = TS_UNKNOWN,
	};
	struct stream_text text;

	if (executable->nodes.refused[0]) {
		capture_fail("%s", executable->nodes.refused);
		return false;
	}
	/* What the nodes name comes first: rows of one graph follow each other. */
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		struct graph_node *node = &executable->nodes.items[i];

		if (!node->function || node->is_disabled)
			continue;
		if (context)
			node->function = capture_function_in(node->function, context);
		if (!node->function || !capture_function_number(node->function))
			return false;
	}
	object.parent = context ? capture_context_number(context) : 0;
	object.number = ts_replay_new_object();
	stream_text_begin(&text);
	stream_text_uint(&text, "nodes", executable->nodes.count);
	stream_text_uint(&text, "flags", executable->flags);
	object.details = stream_text_end(&text);
	capture_object(&object);
	executable->number = object.number;
	executable->has_copied = false;
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		if (!append_node(executable, i))
			return false;
	}
	return true;
}

/* Does a copy of any graph write what this node reads, perhaps while it is launched? */
static bool is_fed(const struct graph_node *node)
{
	const struct executable *executable = executables;

	for (; executable; executable = executable->next) {
		for (uint32_t i = 0; i < executable->nodes.count; i++) {
			const struct graph_node *other = &executable->nodes.items[i];

			if (other->type == CUDA_NODE_COPY && !other->is_disabled &&
			    capture_copy_node_feeds(&other->copy, &node->copy))
				return true;
		}
	}
	return false;
}

/*
 * What copies from memory that is not pinned read is known as it was when the graph was described:
 * if it is something else, this launch is one of another graph.
 */
static void look_at_copied(struct executable *executable)
{
	bool differs = false;

	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		const struct graph_node *node = &executable->nodes.items[i];

		if (node->type == CUDA_NODE_COPY && node->copied && !node->is_disabled)
			differs = differs || capture_copy_node_differs(&node->copy, node->copied);
	}
	if (differs)
		changed(executable);
}

/* False: the window has failed. */
static bool check_copied(const struct executable *executable)
{
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		const struct graph_node *node = &executable->nodes.items[i];

		if (!node->copied || node->is_disabled || !is_fed(node))
			continue;
		capture_fail("graph node: copy from memory that is not pinned, and that a graph "
			     "writes");
		return false;
	}
	return true;
}

/* The graph as it would run now is an object of the window. False: the window has failed. */
static bool prepare(struct executable *executable, struct capture_context *context)
{
	if (executable->number && executable->has_copied)
		look_at_copied(executable);
	if (!executable->number && !describe(executable, context))
		return false;
	return !executable->has_copied || check_copied(executable);
}

/* Copies and fills of pinned memory: its bytes are not known until the launch is done. */
static void note_copies_to_host(const struct executable *executable, struct capture_stream *stream)
{
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		const struct graph_node *node = &executable->nodes.items[i];

		if (node->is_disabled)
			continue;
		if (node->type == CUDA_NODE_COPY)
			capture_copy_node_pending(&node->copy, stream);
		else if (node->type == CUDA_NODE_FILL)
			capture_fill_node_pending(&node->fill, stream);
	}
}

/* Who waits for these events from now on waits for this launch. */
static void note_records(const struct executable *executable)
{
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		const struct graph_node *node = &executable->nodes.items[i];

		if (node->type == CUDA_NODE_EVENT_RECORD && !node->is_disabled)
			capture_event_recorded(node->event);
	}
}

/* executable, stream */
static int launch(struct cuda_call *call, uintptr_t *args)
{
	struct executable *executable;
	struct capture_stream *stream;
	int result;
	bool is_known;

	if (!capture_is_open() || capture_is_captured(call, args[1]))
		return cuda_invoke(call, args);
	capture_lock();
	stream = capture_stream_of(call, args[1]);
	executable = executable_of((void *)args[0]);
	if (!executable)
		capture_fail("graph of unknown origin");
	is_known = executable && prepare(executable, stream ? stream->context : NULL);
	if (is_known)
		host_emit_changes();
	result = cuda_invoke(call, args);
	if (is_known && result == CUDA_SUCCESS_) {
		struct ts_replay_command row = capture_row(TS_COMMAND_LAUNCH);
		struct stream_text text;
		uint64_t sequence;

		row.queue = capture_stream_number(call, args[1]);
		row.object = executable->number;
		stream_text_begin(&text);
		stream_text_string(&text, "call", call->name);
		row.details = stream_text_end(&text);
		sequence = capture_command(&row);
		note_copies_to_host(executable, stream);
		note_records(executable);
		if (sequence)
			capture_check_each(sequence);
	}
	capture_unlock();
	return result;
}

void capture_graphs_forget(void)
{
	for (struct executable *executable = executables; executable; executable = executable->next)
		executable->number = 0;
}

const struct cuda_handler_entry capture_graph_handlers[] = {
	{ "cuGraphInstantiate", instantiate, CAPTURE_ALWAYS },
	{ "cuGraphInstantiateWithFlags", instantiate, CAPTURE_ALWAYS },
	{ "cuGraphInstantiateWithParams", instantiate, CAPTURE_ALWAYS },
	{ "cuGraphExecDestroy", destroy_executable, CAPTURE_ALWAYS },
	{ "cuGraphExecUpdate", update, CAPTURE_ALWAYS },
	{ "cuGraphExecKernelNodeSetParams", set_params, CAPTURE_ALWAYS },
	{ "cuGraphExecMemcpyNodeSetParams", set_params, CAPTURE_ALWAYS },
	{ "cuGraphExecMemsetNodeSetParams", set_params, CAPTURE_ALWAYS },
	{ "cuGraphExecChildGraphNodeSetParams", set_handle, CAPTURE_ALWAYS },
	{ "cuGraphExecEventRecordNodeSetEvent", set_handle, CAPTURE_ALWAYS },
	{ "cuGraphExecEventWaitNodeSetEvent", set_handle, CAPTURE_ALWAYS },
	{ "cuGraphExecNodeSetParams", set_any_params, CAPTURE_ALWAYS },
	{ "cuGraphNodeSetEnabled", set_enabled, CAPTURE_ALWAYS },
	{ "cuGraphLaunch", launch, 0 },
	{ 0 },
};
