/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs (docs/cuda-replay.md, 4.2). The nodes of an executable are read when it is instantiated,
 * as the graph may change or go afterwards; updates of the executable are applied to what was read.
 * A window has an executable as an object, with its nodes as commands, from its first launch on; an
 * update makes another object at the next launch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"
#include "base/local/stream_text.h"

#define DEPTH_AT_MOST 16u
#define NODES_AT_MOST (1u << 20)
#define BLOCK_AT_MOST 65536u /* of parameters; the driver's limit is lower */

/* Those of kernel nodes; edges have what programmatic ones mean. */
static const int kernel_attributes[] = { 1, 2, 4, 5, 8, 9, 10, 11, 13, 14, 16 };
#define ATTRIBUTE_COUNT (sizeof(kernel_attributes) / sizeof(kernel_attributes[0]))
#define ATTRIBUTE_DEVICE_UPDATABLE 13
#define ATTRIBUTE_CARVEOUT 14 /* -1: the driver chooses */

struct graph_node {
	void *handle;       /* in the graph that it was read from */
	void *first_handle; /* in the one that was instantiated */
	int type;
	bool is_disabled;
	uint32_t *after; /* smaller numbers */
	uint32_t after_count;
	/* A child graph is its nodes, from `first` on, and then itself, empty. */
	uint32_t first;
	struct capture_function *function;
	struct cuda_launch_config config;
	struct cuda_launch_attribute *attributes;
	unsigned char *block;
	uint32_t block_bytes;
	struct cuda_copy_3d copy;
	struct cuda_fill_node fill;
	void *event;
};

struct node_list {
	struct graph_node *items;
	uint32_t count, capacity;
	char refused[128]; /* why it cannot be replayed; "": it can */
};

struct executable {
	struct executable *next;
	void *handle;
	struct node_list nodes;
	unsigned long long flags;
	uint64_t number; /* of the object in this window; 0: not described, or changed since */
};

/* capture_lock is held for all of these. */
static struct executable *executables;

/* ---- lists of nodes ---- */

static void clear_content(struct graph_node *node)
{
	free(node->attributes);
	free(node->block);
	node->attributes = NULL;
	node->block = NULL;
}

static void release_nodes(struct node_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		clear_content(&list->items[i]);
		free(list->items[i].after);
	}
	free(list->items);
	*list = (struct node_list){ 0 };
}

static void refuse(struct node_list *list, const char *why)
{
	if (!list->refused[0])
		snprintf(list->refused, sizeof(list->refused), "%s", why);
}

static struct graph_node *add_node(struct node_list *list)
{
	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
		struct graph_node *items;

		items = capacity > NODES_AT_MOST ? NULL
						 : realloc(list->items, capacity * sizeof(*items));
		if (!items) {
			refuse(list, "graph with too many nodes, or no memory for them");
			return NULL;
		}
		list->items = items;
		list->capacity = capacity;
	}
	memset(&list->items[list->count], 0, sizeof(list->items[0]));
	return &list->items[list->count++];
}

static void add_after(struct node_list *list, struct graph_node *node, uint32_t number)
{
	uint32_t *after;

	for (uint32_t i = 0; i < node->after_count; i++) {
		if (node->after[i] == number)
			return;
	}
	after = realloc(node->after, (node->after_count + 1) * sizeof(*after));
	if (!after) {
		refuse(list, "no memory for the nodes of a graph");
		return;
	}
	after[node->after_count++] = number;
	node->after = after;
}

/* ---- the content of a node ---- */

static void read_attributes(struct node_list *list, struct graph_node *node)
{
	struct cuda_launch_attribute found[ATTRIBUTE_COUNT];
	static const uint8_t zeros[sizeof(found[0].value)];
	uint32_t count = 0;

	for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
		struct cuda_launch_attribute *attribute = &found[count];
		int32_t value;

		memset(attribute, 0, sizeof(*attribute));
		attribute->id = (uint32_t)kernel_attributes[i];
		if (cu.GraphKernelNodeGetAttribute(node->handle, kernel_attributes[i],
						   attribute->value) != CUDA_SUCCESS_)
			continue;
		memcpy(&value, attribute->value, sizeof(value));
		if (attribute->id == ATTRIBUTE_CARVEOUT && value < 0)
			continue;
		if (attribute->id == ATTRIBUTE_DEVICE_UPDATABLE) {
			if (value)
				refuse(list, "launch attribute 13 (device-updatable kernel node)");
			continue;
		}
		if (memcmp(attribute->value, zeros, sizeof(zeros)))
			count++;
	}
	if (!count)
		return;
	node->attributes = malloc(count * sizeof(*found));
	if (!node->attributes) {
		refuse(list, "no memory for the nodes of a graph");
		return;
	}
	memcpy(node->attributes, found, count * sizeof(*found));
	node->config.attributes = node->attributes;
	node->config.attribute_count = count;
}

static void take_kernel(struct node_list *list, struct graph_node *node,
			const struct cuda_kernel_node *params, bool has_kernel)
{
	static unsigned char block[BLOCK_AT_MOST];
	void *handle = params->function || !has_kernel ? params->function : params->kernel;
	uint32_t bytes = 0;

	free(node->block);
	node->block = NULL;
	node->block_bytes = 0;
	node->function = capture_function_of(handle);
	if (!node->function) {
		refuse(list, "graph node: kernel of unknown origin");
		return;
	}
	capture_function_used(node->function);
	if (!capture_pack(node->function, params->params, params->extra, block, sizeof(block),
			  &bytes)) {
		refuse(list, "graph node: kernel with unknown parameters");
		return;
	}
	if (bytes) {
		node->block = malloc(bytes);
		if (!node->block) {
			refuse(list, "no memory for the nodes of a graph");
			return;
		}
		memcpy(node->block, block, bytes);
	}
	node->block_bytes = bytes;
	memcpy(node->config.grid, params->grid, sizeof(params->grid));
	memcpy(node->config.block, params->block, sizeof(params->block));
	node->config.shared_bytes = params->shared_bytes;
}

static void read_content(struct node_list *list, struct graph_node *node)
{
	static const char *const refused[] = {
		[CUDA_NODE_HOST] = "graph node: host function",
		[CUDA_NODE_SEMAPHORE_SIGNAL] = "graph node: external semaphore",
		[CUDA_NODE_SEMAPHORE_WAIT] = "graph node: external semaphore",
		[CUDA_NODE_ALLOC] = "graph node: memory allocation",
		[CUDA_NODE_FREE] = "graph node: memory free",
		[CUDA_NODE_MEMORY_OPERATION] = "graph node: memory operation",
		[CUDA_NODE_CONDITIONAL] = "graph node: conditional",
	};
	int rc = CUDA_SUCCESS_;

	clear_content(node);
	switch (node->type) {
	case CUDA_NODE_KERNEL: {
		struct cuda_kernel_node params = { 0 };

		rc = cu.GraphKernelNodeGetParams(node->handle, &params);
		if (rc == CUDA_SUCCESS_) {
			take_kernel(list, node, &params, true);
			read_attributes(list, node);
		}
		break;
	}
	case CUDA_NODE_COPY:
		rc = cu.GraphMemcpyNodeGetParams(node->handle, &node->copy);
		break;
	case CUDA_NODE_FILL:
		rc = cu.GraphMemsetNodeGetParams(node->handle, &node->fill);
		break;
	case CUDA_NODE_EVENT_WAIT:
		rc = cu.GraphEventWaitNodeGetEvent(node->handle, &node->event);
		break;
	case CUDA_NODE_EVENT_RECORD:
		rc = cu.GraphEventRecordNodeGetEvent(node->handle, &node->event);
		break;
	case CUDA_NODE_EMPTY:
	case CUDA_NODE_GRAPH:
		break;
	default:
		if (node->type >= 0 && (size_t)node->type < sizeof(refused) / sizeof(refused[0]) &&
		    refused[node->type])
			refuse(list, refused[node->type]);
		else
			refuse(list, "graph node of a kind that this version does not know");
		break;
	}
	if (rc != CUDA_SUCCESS_)
		refuse(list, "graph node whose parameters the driver does not tell");
}

/* ---- reading a graph ---- */

/* What is needed of the nodes of one graph until they are in order. */
struct reading {
	void **handles; /* as the driver lists them */
	size_t count;
	struct position {
		void *handle;
		uint32_t at;
	} * sorted;
	void ***after; /* lists of handles */
	size_t *after_count;
	uint32_t *number; /* in the list; UINT32_MAX: not yet */
};

static int compare_positions(const void *a, const void *b)
{
	const struct position *left = a, *right = b;

	return left->handle < right->handle ? -1 : left->handle > right->handle;
}

static uint32_t position_of(const struct reading *reading, void *handle)
{
	const struct position key = { .handle = handle };
	const struct position *found =
		bsearch(&key, reading->sorted, reading->count, sizeof(key), compare_positions);

	return found ? found->at : UINT32_MAX;
}

static void release_reading(struct reading *reading)
{
	for (size_t i = 0; reading->after && i < reading->count; i++)
		free(reading->after[i]);
	free(reading->handles);
	free(reading->sorted);
	free(reading->after);
	free(reading->after_count);
	free(reading->number);
}

/* Drivers before CUDA 12.3 have no edges. With `after` NULL, tells the number. */
static int dependencies_of(void *node, void **after, struct cuda_graph_edge *edges, size_t *count)
{
	int result = cu.GraphNodeGetDependencies(node, after, edges, count);

	return result == CUDA_NOT_FOUND ? cu.GraphNodeGetDependenciesOld(node, after, count)
					: result;
}

static bool read_dependencies(struct reading *reading, size_t at)
{
	void *node = reading->handles[at];
	void **after;
	struct cuda_graph_edge *edges;
	size_t count = 0;
	bool is_done;

	if (dependencies_of(node, NULL, NULL, &count) != CUDA_SUCCESS_)
		return false;
	if (!count)
		return true;
	after = calloc(count, sizeof(*after));
	edges = calloc(count, sizeof(*edges));
	/* An edge that lets a node begin early counts as one that does not. */
	is_done = after && edges && dependencies_of(node, after, edges, &count) == CUDA_SUCCESS_;
	free(edges);
	reading->after[at] = after;
	reading->after_count[at] = is_done ? count : 0;
	return is_done;
}

static bool begin_reading(struct reading *reading, void *graph)
{
	if (cu.GraphGetNodes(graph, NULL, &reading->count) != CUDA_SUCCESS_ ||
	    reading->count > NODES_AT_MOST)
		return false;
	reading->handles = calloc(reading->count + 1, sizeof(*reading->handles));
	reading->sorted = calloc(reading->count + 1, sizeof(*reading->sorted));
	reading->after = calloc(reading->count + 1, sizeof(*reading->after));
	reading->after_count = calloc(reading->count + 1, sizeof(*reading->after_count));
	reading->number = malloc((reading->count + 1) * sizeof(*reading->number));
	if (!reading->handles || !reading->sorted || !reading->after || !reading->after_count ||
	    !reading->number)
		return false;
	if (reading->count &&
	    cu.GraphGetNodes(graph, reading->handles, &reading->count) != CUDA_SUCCESS_)
		return false;
	for (uint32_t i = 0; i < reading->count; i++) {
		reading->sorted[i] = (struct position){ reading->handles[i], i };
		reading->number[i] = UINT32_MAX;
	}
	qsort(reading->sorted, reading->count, sizeof(*reading->sorted), compare_positions);
	for (size_t i = 0; i < reading->count; i++) {
		if (!read_dependencies(reading, i))
			return false;
	}
	return true;
}

static void read_graph(struct node_list *list, void *graph, const uint32_t *before,
		       uint32_t before_count, unsigned int depth);

/* A child graph is done when all of its nodes are: when those are that no other waits for. */
static void add_last_of_child(struct node_list *list, struct graph_node *node)
{
	uint32_t number = (uint32_t)(node - list->items), count = number - node->first;
	bool *is_awaited = calloc(count + 1, sizeof(*is_awaited));

	for (uint32_t i = 0; is_awaited && i < count; i++) {
		const struct graph_node *child = &list->items[node->first + i];

		for (uint32_t j = 0; j < child->after_count; j++) {
			if (child->after[j] >= node->first)
				is_awaited[child->after[j] - node->first] = true;
		}
	}
	for (uint32_t i = 0; is_awaited && i < count; i++) {
		if (!is_awaited[i])
			add_after(list, node, node->first + i);
	}
	if (!is_awaited)
		refuse(list, "no memory for the nodes of a graph");
	free(is_awaited);
}

/* All that node `at` depends on is in the list. */
static void read_node(struct node_list *list, struct reading *reading, size_t at,
		      const uint32_t *before, uint32_t before_count, unsigned int depth)
{
	struct graph_node content = { .handle = reading->handles[at],
				      .first_handle = reading->handles[at] };
	struct graph_node *node;
	void *child = NULL;
	uint32_t *after = NULL, count = 0;

	if (cu.GraphNodeGetType(content.handle, &content.type) != CUDA_SUCCESS_)
		content.type = -1;
	after = malloc((reading->after_count[at] + before_count + 1) * sizeof(*after));
	if (!after) {
		refuse(list, "no memory for the nodes of a graph");
		return;
	}
	for (size_t i = 0; i < reading->after_count[at]; i++)
		after[count++] = reading->number[position_of(reading, reading->after[at][i])];
	for (uint32_t i = 0; !count && i < before_count; i++)
		after[count++] = before[i];
	content.first = list->count;
	if (content.type == CUDA_NODE_GRAPH) {
		if (cu.GraphChildGraphNodeGetGraph(content.handle, &child) == CUDA_SUCCESS_ &&
		    child)
			read_graph(list, child, after, count, depth + 1);
		else
			refuse(list, "graph node whose parameters the driver does not tell");
	}
	reading->number[at] = list->count;
	node = add_node(list);
	if (node) {
		*node = content;
		for (uint32_t i = 0; i < count; i++)
			add_after(list, node, after[i]);
		add_last_of_child(list, node);
		read_content(list, node);
	}
	free(after);
}

/* Appends the nodes, each behind those that it depends on; the first ones depend on `before`. */
static void read_graph(struct node_list *list, void *graph, const uint32_t *before,
		       uint32_t before_count, unsigned int depth)
{
	struct reading reading = { 0 };
	size_t done = 0;
	bool goes_on = true;

	if (depth > DEPTH_AT_MOST || !begin_reading(&reading, graph)) {
		refuse(list, "graph that cannot be read");
		goes_on = false;
	}
	/* Mostly one round: the driver lists nodes as they were made. */
	while (goes_on && done < reading.count && !list->refused[0]) {
		goes_on = false;
		for (size_t i = 0; i < reading.count; i++) {
			bool is_ready = reading.number[i] == UINT32_MAX;

			for (size_t j = 0; is_ready && j < reading.after_count[i]; j++) {
				uint32_t at = position_of(&reading, reading.after[i][j]);

				is_ready = at != UINT32_MAX && reading.number[at] != UINT32_MAX;
			}
			if (!is_ready)
				continue;
			read_node(list, &reading, i, before, before_count, depth);
			goes_on = true;
			done++;
		}
	}
	if (done < reading.count)
		refuse(list, "graph that cannot be read");
	release_reading(&reading);
}

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
		release_nodes(&executable->nodes);
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
		read_graph(&executable->nodes, (void *)args[1], NULL, 0, 0);
		graph_blocks_copy((void *)args[1], executable->handle);
		if (executable->flags & CUDA_GRAPH_DEVICE_LAUNCH)
			refuse(&executable->nodes, "graph that the device launches");
		executable->next = executables;
		executables = executable;
	}
	capture_unlock();
	return result;
}

static int destroy_executable(struct cuda_call *call, uintptr_t *args)
{
	void *handle = (void *)args[0];
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_) {
		capture_lock();
		remove_executable(handle);
		capture_unlock();
	}
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

		read_graph(&nodes, (void *)args[1], NULL, 0, 0);
		keep_identity(executable, &nodes);
		release_nodes(&executable->nodes);
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
	refuse(&executable->nodes, "update of a graph node that is not known");
	return NULL;
}

static void update_child(struct node_list *list, struct graph_node *node, void *graph)
{
	struct node_list nodes = { 0 };
	uint32_t first = node->first, count = (uint32_t)(node - list->items) - first;

	read_graph(&nodes, graph, NULL, 0, 1);
	if (nodes.refused[0])
		refuse(list, nodes.refused);
	if (nodes.count != count)
		refuse(list, "update of a child graph that cannot be followed");
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
	}
	release_nodes(&nodes);
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
		take_kernel(list, node, &kernel, has_kernel);
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

static int set_params(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	bool has_kernel = strstr(call->name, "_v2") != NULL;
	struct node_list *list = NULL;
	struct graph_node *node;

	if (result != CUDA_SUCCESS_ || !args[2])
		return result;
	capture_lock();
	node = updated_node(args, &list);
	if (node)
		take_params(list, node, (const void *)args[2], has_kernel);
	capture_unlock();
	return result;
}

/* executable, node, event or graph: the value itself */
static int set_handle(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct node_list *list = NULL;
	struct graph_node *node;

	if (result != CUDA_SUCCESS_)
		return result;
	capture_lock();
	node = updated_node(args, &list);
	if (node)
		take_params(list, node, &args[2], false);
	capture_unlock();
	return result;
}

/* executable, node, CUgraphNodeParams: a type, then the parameters at 16; a copy has a header. */
static int set_any_params(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	const unsigned char *params = (const unsigned char *)args[2];
	struct node_list *list = NULL;
	struct graph_node *node;

	if (result != CUDA_SUCCESS_ || !params)
		return result;
	capture_lock();
	node = updated_node(args, &list);
	if (node)
		take_params(list, node, params + (node->type == CUDA_NODE_COPY ? 32 : 16), true);
	capture_unlock();
	return result;
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
static bool append_node(const struct executable *executable, uint32_t number)
{
	const struct graph_node *node = &executable->nodes.items[number];
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
		is_known = capture_copy_node(&node->copy, &row, &text);
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
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		if (!append_node(executable, i))
			return false;
	}
	return true;
}

/* Copies to pinned memory: its bytes are not known until the launch is done. */
static void note_copies_to_host(const struct executable *executable, uintptr_t stream)
{
	for (uint32_t i = 0; i < executable->nodes.count; i++) {
		const struct graph_node *node = &executable->nodes.items[i];

		if (node->type == CUDA_NODE_COPY && !node->is_disabled)
			capture_copy_node_pending(&node->copy, stream);
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
	is_known = executable &&
		   (executable->number || describe(executable, stream ? stream->context : NULL));
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
		note_copies_to_host(executable, args[1]);
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
