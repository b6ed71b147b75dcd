/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: nodes of graphs by kind, and their parameters. */
#include <string.h>

#include "cuda/driver/graphs.h"

int set_kernel(struct op *op, const struct cuda_kernel_node *params)
{
	struct op made = { .kind = OP_LAUNCH };
	int error;

	made.launch.function = function_of(params->function ? params->function : params->kernel);
	if (!made.launch.function ||
	    params->shared_bytes > (uint32_t)made.launch.function->attributes[8])
		return INVALID_VALUE;
	memcpy(made.launch.grid, params->grid, sizeof(made.launch.grid));
	memcpy(made.launch.block, params->block, sizeof(made.launch.block));
	made.launch.shared = params->shared_bytes;
	memcpy(made.launch.attributes, op->launch.attributes, sizeof(made.launch.attributes));
	made.launch.attribute_count = op->launch.attribute_count;
	error = launch_pack(&made.launch, params->params, params->extra);
	if (error)
		return error;
	op_release(op);
	*op = made;
	return 0;
}

API cuGraphAddKernelNode_v2(struct node **node, struct graph *graph, struct node *const *after,
			    size_t count, const struct cuda_kernel_node *params)
{
	struct op op = { .kind = OP_EMPTY };
	int error = set_kernel(&op, params);

	if (!error)
		error = graph_add(graph, after, count, NODE_KERNEL, node);
	if (!error)
		(*node)->op = op;
	return error;
}

API cuGraphKernelNodeGetParams_v2(struct node *node, struct cuda_kernel_node *params)
{
	static __thread void *values[MOST_PARAMETERS];
	const struct launch *launch;

	if (!is_node(node) || node->type != NODE_KERNEL)
		return INVALID_VALUE;
	launch = &node->op.launch;
	memset(params, 0, sizeof(*params));
	params->function = launch->function;
	memcpy(params->grid, launch->grid, sizeof(params->grid));
	memcpy(params->block, launch->block, sizeof(params->block));
	params->shared_bytes = launch->shared;
	for (uint32_t i = 0; i < launch->function->param_count; i++)
		values[i] = launch->params + launch->function->offsets[i];
	params->params = values;
	return 0;
}

API cuGraphKernelNodeSetParams_v2(struct node *node, const struct cuda_kernel_node *params)
{
	return is_node(node) && node->type == NODE_KERNEL ? set_kernel(&node->op, params)
							  : INVALID_VALUE;
}

API cuGraphKernelNodeGetAttribute(struct node *node, uint32_t id, void *value)
{
	if (!is_node(node) || node->type != NODE_KERNEL)
		return INVALID_VALUE;
	memset(value, 0, 64);
	for (uint32_t i = 0; i < node->op.launch.attribute_count; i++) {
		if (node->op.launch.attributes[i].id == id)
			memcpy(value, node->op.launch.attributes[i].value, 64);
	}
	return 0;
}

API cuGraphKernelNodeSetAttribute(struct node *node, uint32_t id, const void *value)
{
	struct launch *launch;
	uint32_t i;

	if (!is_node(node) || node->type != NODE_KERNEL)
		return INVALID_VALUE;
	launch = &node->op.launch;
	for (i = 0; i < launch->attribute_count && launch->attributes[i].id != id; i++)
		;
	if (i == 16)
		return INVALID_VALUE;
	if (i == launch->attribute_count)
		launch->attribute_count++;
	launch->attributes[i].id = id;
	memcpy(launch->attributes[i].value, value, 64);
	return 0;
}

void set_copy(struct op *op, const struct cuda_copy_3d *copy)
{
	op->kind = OP_COPY;
	op->copy = *copy;
	/* As the real driver: what is unified is an address that both know. */
	if (copy->from_type == 4)
		op->copy.from_type = is_device_address(copy->from_device) ? 2 : 1;
	if (copy->to_type == 4)
		op->copy.to_type = is_device_address(copy->to_device) ? 2 : 1;
	if (copy->from_type == 4)
		op->copy.from_host = (void *)copy->from_device;
	if (copy->to_type == 4)
		op->copy.to_host = (void *)copy->to_device;
}

API cuGraphAddMemcpyNode(struct node **node, struct graph *graph, struct node *const *after,
			 size_t count, const struct cuda_copy_3d *copy, void *context)
{
	int error = graph_add(graph, after, count, NODE_COPY, node);

	(void)context;
	if (!error)
		set_copy(&(*node)->op, copy);
	return error;
}

API cuGraphMemcpyNodeGetParams(struct node *node, struct cuda_copy_3d *copy)
{
	if (!is_node(node) || node->type != NODE_COPY)
		return INVALID_VALUE;
	*copy = node->op.copy;
	return 0;
}

API cuGraphMemcpyNodeSetParams(struct node *node, const struct cuda_copy_3d *copy)
{
	if (!is_node(node) || node->type != NODE_COPY)
		return INVALID_VALUE;
	set_copy(&node->op, copy);
	return 0;
}

API cuGraphAddMemsetNode(struct node **node, struct graph *graph, struct node *const *after,
			 size_t count, const struct cuda_fill_node *fill, void *context)
{
	int error = graph_add(graph, after, count, NODE_FILL, node);

	(void)context;
	if (!error) {
		(*node)->op.kind = OP_FILL;
		(*node)->op.fill = *fill;
	}
	return error;
}

API cuGraphMemsetNodeGetParams(struct node *node, struct cuda_fill_node *fill)
{
	if (!is_node(node) || node->type != NODE_FILL)
		return INVALID_VALUE;
	*fill = node->op.fill;
	return 0;
}

API cuGraphMemsetNodeSetParams(struct node *node, const struct cuda_fill_node *fill)
{
	if (!is_node(node) || node->type != NODE_FILL)
		return INVALID_VALUE;
	node->op.fill = *fill;
	return 0;
}

struct host_node {
	void (*call)(void *data);
	void *data;
};

API cuGraphAddHostNode(struct node **node, struct graph *graph, struct node *const *after,
		       size_t count, const struct host_node *host)
{
	int error = graph_add(graph, after, count, NODE_HOST, node);

	if (!error) {
		(*node)->op.kind = OP_HOST;
		(*node)->op.call = host->call;
		(*node)->op.data = host->data;
	}
	return error;
}

API cuGraphAddChildGraphNode(struct node **node, struct graph *graph, struct node *const *after,
			     size_t count, struct graph *child)
{
	int error;

	if (!is_graph(child))
		return INVALID_VALUE;
	error = graph_add(graph, after, count, NODE_CHILD, node);
	if (!error) {
		(*node)->child = graph_copy(child);
		(*node)->child->is_child = true;
	}
	return error;
}

API cuGraphChildGraphNodeGetGraph(struct node *node, struct graph **graph)
{
	if (!is_node(node) || node->type != NODE_CHILD)
		return INVALID_VALUE;
	*graph = node->child;
	return 0;
}

API cuGraphAddEmptyNode(struct node **node, struct graph *graph, struct node *const *after,
			size_t count)
{
	return graph_add(graph, after, count, NODE_EMPTY, node);
}

static int add_event(struct node **node, struct graph *graph, struct node *const *after,
		     size_t count, enum node_type type, struct event *event)
{
	int error = is_event(event) ? graph_add(graph, after, count, type, node) : INVALID_VALUE;

	if (!error) {
		(*node)->event = event;
		event->is_in_graph = true;
	}
	return error;
}

API cuGraphAddEventRecordNode(struct node **node, struct graph *graph, struct node *const *after,
			      size_t count, struct event *event)
{
	return add_event(node, graph, after, count, NODE_RECORD, event);
}

API cuGraphAddEventWaitNode(struct node **node, struct graph *graph, struct node *const *after,
			    size_t count, struct event *event)
{
	return add_event(node, graph, after, count, NODE_WAIT, event);
}

API cuGraphEventRecordNodeGetEvent(struct node *node, struct event **event)
{
	if (!is_node(node) || node->type != NODE_RECORD)
		return INVALID_VALUE;
	*event = node->event;
	return 0;
}

API cuGraphEventWaitNodeGetEvent(struct node *node, struct event **event)
{
	if (!is_node(node) || node->type != NODE_WAIT)
		return INVALID_VALUE;
	*event = node->event;
	return 0;
}

/* CUDA_MEM_ALLOC_NODE_PARAMS: the properties of a pool (88 bytes), access, bytes, address */
API cuGraphAddMemAllocNode(struct node **node, struct graph *graph, struct node *const *after,
			   size_t count, uint8_t *params)
{
	uint64_t bytes, address;
	int error;

	memcpy(&bytes, params + 104, sizeof(bytes));
	error = memory_alloc(current_context(), bytes, &address);
	if (!error)
		error = graph_add(graph, after, count, NODE_ALLOC, node);
	if (!error) {
		(*node)->address = address;
		(*node)->bytes = bytes;
		memcpy(params + 112, &address, sizeof(address));
	}
	return error;
}

API cuGraphAddMemFreeNode(struct node **node, struct graph *graph, struct node *const *after,
			  size_t count, uint64_t address)
{
	int error = graph_add(graph, after, count, NODE_FREE, node);

	if (!error)
		(*node)->address = address;
	return error;
}

API cuGraphMemFreeNodeGetParams(struct node *node, uint64_t *address)
{
	if (!is_node(node) || node->type != NODE_FREE)
		return INVALID_VALUE;
	*address = node->address;
	return 0;
}

/* Only of the kinds that cannot be replayed: they do nothing. */
API cuGraphAddNode_v2(struct node **node, struct graph *graph, struct node *const *after,
		      const void *edges, size_t count, const int *params)
{
	if (edges || params[0] < 8)
		return NOT_SUPPORTED;
	return graph_add(graph, after, count, (enum node_type)params[0], node);
}
