/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a graph as they are when it is instantiated (docs/cuda-replay.md, 4.2), as the graph
 * may change or go afterwards: in an order in which each is behind those that it depends on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_graph_nodes.h"

#define DEPTH_AT_MOST 16u
#define NODES_AT_MOST (1u << 20)
#define BLOCK_AT_MOST 65536u /* of parameters; the driver's limit is lower */

/* Those of kernel nodes; edges have what programmatic ones mean. */
static const int kernel_attributes[] = { 1, 2, 4, 5, 8, 9, 10, 11, 13, 14, 16 };
#define ATTRIBUTE_COUNT (sizeof(kernel_attributes) / sizeof(kernel_attributes[0]))
#define ATTRIBUTE_DEVICE_UPDATABLE 13
#define ATTRIBUTE_CARVEOUT 14 /* -1: the driver chooses */

/* ---- lists of nodes ---- */

static void clear_content(struct graph_node *node)
{
	free(node->attributes);
	free(node->block);
	free(node->copied);
	node->attributes = NULL;
	node->block = NULL;
	node->copied = NULL;
}

void graph_nodes_release(struct node_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		clear_content(&list->items[i]);
		free(list->items[i].after);
	}
	free(list->items);
	*list = (struct node_list){ 0 };
}

void graph_nodes_refuse(struct node_list *list, const char *why)
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
			graph_nodes_refuse(list,
					   "graph with too many nodes, or no memory for them");
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
		graph_nodes_refuse(list, "no memory for the nodes of a graph");
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
				graph_nodes_refuse(
					list, "launch attribute 13 (device-updatable kernel node)");
			continue;
		}
		if (memcmp(attribute->value, zeros, sizeof(zeros)))
			count++;
	}
	if (!count)
		return;
	node->attributes = malloc(count * sizeof(*found));
	if (!node->attributes) {
		graph_nodes_refuse(list, "no memory for the nodes of a graph");
		return;
	}
	memcpy(node->attributes, found, count * sizeof(*found));
	node->config.attributes = node->attributes;
	node->config.attribute_count = count;
}

void graph_node_take_kernel(struct node_list *list, struct graph_node *node,
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
		graph_nodes_refuse(list, "graph node: kernel of unknown origin");
		return;
	}
	capture_function_used(node->function);
	if (!capture_pack(node->function, params->params, params->extra, block, sizeof(block),
			  &bytes)) {
		graph_nodes_refuse(list, "graph node: kernel with unknown parameters");
		return;
	}
	if (bytes) {
		node->block = malloc(bytes);
		if (!node->block) {
			graph_nodes_refuse(list, "no memory for the nodes of a graph");
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
			graph_node_take_kernel(list, node, &params, true);
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
			graph_nodes_refuse(list, refused[node->type]);
		else
			graph_nodes_refuse(list,
					   "graph node of a kind that this version does not know");
		break;
	}
	if (rc != CUDA_SUCCESS_)
		graph_nodes_refuse(list, "graph node whose parameters the driver does not tell");
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
		graph_nodes_refuse(list, "no memory for the nodes of a graph");
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
		graph_nodes_refuse(list, "no memory for the nodes of a graph");
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
			graph_nodes_refuse(list,
					   "graph node whose parameters the driver does not tell");
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
		graph_nodes_refuse(list, "graph that cannot be read");
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
		graph_nodes_refuse(list, "graph that cannot be read");
	release_reading(&reading);
}

void graph_nodes_read(struct node_list *list, void *graph, unsigned int depth)
{
	read_graph(list, graph, NULL, 0, depth);
}
