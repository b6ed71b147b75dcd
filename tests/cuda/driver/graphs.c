/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: graphs, their nodes and executables. */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver.h"

int launch_pack(struct launch *launch, void **params, void **extra);

static struct handles graph_handles = HANDLES, node_handles = HANDLES, exec_handles = HANDLES;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	graph->end = &graph->first;
	handles_add(&graph_handles, graph);
	return graph;
}

static bool is_graph(const void *handle)
{
	const struct graph *graph = handle;

	return handles_have(&graph_handles, handle) && !graph->is_gone;
}

static bool is_exec(const void *handle)
{
	const struct exec *exec = handle;

	return handles_have(&exec_handles, handle) && !exec->is_gone;
}

static bool is_node(const void *handle)
{
	const struct node *node = handle;

	return handles_have(&node_handles, handle) && !node->graph->is_gone;
}

int graph_add(struct graph *graph, struct node *const *after, size_t count, enum node_type type,
	      struct node **ret_node)
{
	struct node *node;

	if (!is_graph(graph))
		return INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (!is_node(after[i]) || after[i]->graph != graph)
			return INVALID_VALUE;
	}
	node = calloc(1, sizeof(*node));
	node->graph = graph;
	node->type = type;
	node->op.kind = OP_EMPTY;
	node->after = calloc(count + 1, sizeof(node->after[0]));
	if (count)
		memcpy(node->after, after, count * sizeof(node->after[0]));
	node->after_count = count;
	pthread_mutex_lock(&lock);
	*graph->end = node;
	graph->end = &node->next;
	pthread_mutex_unlock(&lock);
	handles_add(&node_handles, node);
	*ret_node = node;
	return 0;
}

/* `originals`: nodes know those that they were made from. */
static struct graph *graph_copy(const struct graph *graph)
{
	struct graph *copy = graph_new();

	for (struct node *each = graph->first; each; each = each->next) {
		struct node *node;

		(void)graph_add(copy, NULL, 0, each->type, &node);
		op_copy(&node->op, &each->op);
		node->event = each->event;
		node->original = each;
		each->copy = node;
		node->address = each->address;
		node->bytes = each->bytes;
		node->child = each->child ? graph_copy(each->child) : NULL;
		if (node->child)
			node->child->is_child = true;
		free(node->after);
		node->after = calloc(each->after_count + 1, sizeof(node->after[0]));
		node->after_count = each->after_count;
	}
	/* Dependencies may name later nodes. */
	for (struct node *node = copy->first; node; node = node->next) {
		for (size_t i = 0; i < node->after_count; i++)
			node->after[i] = node->original->after[i]->copy;
	}
	return copy;
}

/* ---- running ---- */

static bool graph_run(struct graph *graph);

static bool node_run(struct node *node)
{
	if (node->is_off)
		return true;
	return node->child ? graph_run(node->child) : op_run(&node->op);
}

/* Any legal order: backwards where the nodes allow it. */
static bool graph_run(struct graph *graph)
{
	bool progress = true, all = true;

	while (progress) {
		progress = false;
		all = true;
		for (struct node *node = graph->first; node; node = node->next) {
			bool is_ready = !node->is_done;

			for (size_t i = 0; i < node->after_count && is_ready; i++)
				is_ready = node->after[i]->is_done;
			if (is_ready && node_run(node)) {
				node->is_done = true;
				progress = true;
			}
			all = all && node->is_done;
		}
		if (all)
			break;
	}
	for (struct node *node = graph->first; node && all; node = node->next)
		node->is_done = false;
	return all;
}

bool exec_run(struct exec *exec)
{
	return graph_run(exec->graph);
}

/* ---- making graphs ---- */

API cuGraphCreate(struct graph **ret_graph, unsigned int flags)
{
	if (flags)
		return INVALID_VALUE;
	*ret_graph = graph_new();
	return 0;
}

API cuGraphDestroy(struct graph *graph)
{
	if (!is_graph(graph) || graph->is_child)
		return INVALID_VALUE;
	graph->is_gone = true;
	return 0;
}

API cuGraphClone(struct graph **ret_graph, struct graph *graph)
{
	if (!is_graph(graph))
		return INVALID_VALUE;
	*ret_graph = graph_copy(graph);
	return 0;
}

API cuGraphNodeFindInClone(struct node **ret_node, struct node *node, struct graph *clone)
{
	if (!is_graph(clone))
		return INVALID_VALUE;
	for (struct node *each = clone->first; each; each = each->next) {
		if (each->original == node) {
			*ret_node = each;
			return 0;
		}
	}
	return INVALID_VALUE;
}

static int set_kernel(struct op *op, const struct cuda_kernel_node *params)
{
	struct op made = { .kind = OP_LAUNCH };
	int error;

	made.launch.function = function_of(params->function ? params->function : params->kernel);
	if (!made.launch.function)
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

static void set_copy(struct op *op, const struct cuda_copy_3d *copy)
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

	if (!error)
		(*node)->event = event;
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

API cuGraphAddDependencies_v2(struct graph *graph, struct node *const *from, struct node *const *to,
			      const void *edges, size_t count)
{
	(void)edges;
	for (size_t i = 0; i < count; i++) {
		struct node **after;

		if (!is_node(from[i]) || !is_node(to[i]) || to[i]->graph != graph)
			return INVALID_VALUE;
		after = calloc(to[i]->after_count + 1, sizeof(after[0]));
		memcpy(after, to[i]->after, to[i]->after_count * sizeof(after[0]));
		after[to[i]->after_count++] = from[i];
		to[i]->after = after;
	}
	return 0;
}

API cuGraphAddDependencies(struct graph *graph, struct node *const *from, struct node *const *to,
			   size_t count)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

/* ---- looking at graphs ---- */

API cuGraphNodeGetType(struct node *node, int *type)
{
	if (!is_node(node))
		return INVALID_VALUE;
	*type = (int)node->type;
	return 0;
}

API cuGraphGetNodes(struct graph *graph, struct node **nodes, size_t *count)
{
	size_t most = *count, found = 0;

	if (!is_graph(graph))
		return INVALID_VALUE;
	for (struct node *each = graph->first; each; each = each->next) {
		if (nodes && found < most)
			nodes[found] = each;
		found++;
	}
	for (size_t i = found; nodes && i < most; i++)
		nodes[i] = NULL;
	if (!nodes || found < most)
		*count = found;
	return 0;
}

API cuGraphGetRootNodes(struct graph *graph, struct node **nodes, size_t *count)
{
	size_t most = *count, found = 0;

	if (!is_graph(graph))
		return INVALID_VALUE;
	for (struct node *each = graph->first; each; each = each->next) {
		if (each->after_count)
			continue;
		if (nodes && found < most)
			nodes[found] = each;
		found++;
	}
	if (!nodes || found < most)
		*count = found;
	return 0;
}

API cuGraphGetEdges_v2(struct graph *graph, struct node **from, struct node **to, uint8_t *edges,
		       size_t *count)
{
	size_t most = *count, found = 0;

	if (!is_graph(graph))
		return INVALID_VALUE;
	for (struct node *each = graph->first; each; each = each->next) {
		for (size_t i = 0; i < each->after_count; i++) {
			if (from && found < most) {
				from[found] = each->after[i];
				to[found] = each;
				if (edges)
					memset(edges + found * 8, 0, 8);
			}
			found++;
		}
	}
	if (!from || found < most)
		*count = found;
	return 0;
}

API cuGraphGetEdges(struct graph *graph, struct node **from, struct node **to, size_t *count)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

API cuGraphNodeGetDependencies_v2(struct node *node, struct node **nodes, uint8_t *edges,
				  size_t *count)
{
	if (!is_node(node))
		return INVALID_VALUE;
	for (size_t i = 0; nodes && i < *count; i++) {
		nodes[i] = i < node->after_count ? node->after[i] : NULL;
		if (edges)
			memset(edges + i * 8, 0, 8);
	}
	if (!nodes || *count > node->after_count)
		*count = node->after_count;
	return 0;
}

API cuGraphNodeGetDependencies(struct node *node, struct node **nodes, size_t *count)
{
	return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

/* ---- executables ---- */

static int instantiate(struct exec **ret_exec, struct graph *graph, uint64_t flags)
{
	struct exec *exec;

	if (!is_graph(graph))
		return INVALID_VALUE;
	exec = calloc(1, sizeof(*exec));
	exec->graph = graph_copy(graph);
	exec->flags = flags;
	handles_add(&exec_handles, exec);
	*ret_exec = exec;
	return 0;
}

API cuGraphInstantiateWithFlags(struct exec **exec, struct graph *graph, unsigned long long flags)
{
	return instantiate(exec, graph, flags);
}

API cuGraphInstantiate_v2(struct exec **exec, struct graph *graph, void **node, char *text,
			  size_t bytes)
{
	(void)node;
	(void)text;
	(void)bytes;
	return instantiate(exec, graph, 0);
}

struct instantiate_params {
	uint64_t flags;
	void *stream, *node;
	int result;
};

API cuGraphInstantiateWithParams(struct exec **exec, struct graph *graph,
				 struct instantiate_params *params)
{
	params->node = NULL;
	params->result = 0;
	return instantiate(exec, graph, params->flags);
}

API cuGraphInstantiateWithParams_ptsz(struct exec **exec, struct graph *graph,
				      struct instantiate_params *params)
{
	return cuGraphInstantiateWithParams(exec, graph, params);
}

API cuGraphExecGetFlags(struct exec *exec, uint64_t *flags)
{
	if (!is_exec(exec))
		return INVALID_VALUE;
	*flags = exec->flags;
	return 0;
}

API cuGraphExecDestroy(struct exec *exec)
{
	if (!is_exec(exec))
		return INVALID_VALUE;
	exec->is_gone = true;
	exec->graph->is_gone = true;
	return 0;
}

static struct node *node_in(struct exec *exec, struct node *node)
{
	if (!is_exec(exec))
		return NULL;
	for (struct node *each = exec->graph->first; each; each = each->next) {
		if (each->original == node)
			return each;
	}
	return NULL;
}

/* What was launched before runs with what it had then. */
static void finish(void)
{
	for (struct context *each = all_contexts; each; each = each->next)
		(void)wait_for_context(each);
}

API cuGraphExecKernelNodeSetParams_v2(struct exec *exec, struct node *node,
				      const struct cuda_kernel_node *params)
{
	struct node *found = node_in(exec, node);

	if (!found || found->type != NODE_KERNEL)
		return INVALID_VALUE;
	finish();
	return set_kernel(&found->op, params);
}

API cuGraphExecMemcpyNodeSetParams(struct exec *exec, struct node *node,
				   const struct cuda_copy_3d *copy, void *context)
{
	struct node *found = node_in(exec, node);

	(void)context;
	if (!found || found->type != NODE_COPY)
		return INVALID_VALUE;
	finish();
	set_copy(&found->op, copy);
	return 0;
}

API cuGraphExecMemsetNodeSetParams(struct exec *exec, struct node *node,
				   const struct cuda_fill_node *fill, void *context)
{
	struct node *found = node_in(exec, node);

	(void)context;
	if (!found || found->type != NODE_FILL)
		return INVALID_VALUE;
	finish();
	found->op.fill = *fill;
	return 0;
}

API cuGraphNodeSetEnabled(struct exec *exec, struct node *node, unsigned int is_enabled)
{
	struct node *found = node_in(exec, node);

	if (!found || found->type > NODE_FILL)
		return INVALID_VALUE;
	finish();
	found->is_off = !is_enabled;
	return 0;
}

API cuGraphNodeGetEnabled(struct exec *exec, struct node *node, unsigned int *is_enabled)
{
	struct node *found = node_in(exec, node);

	if (!found)
		return INVALID_VALUE;
	*is_enabled = !found->is_off;
	return 0;
}

/* The nodes are compared in their order. */
static bool same_shape(const struct graph *a, const struct graph *b)
{
	const struct node *x = a->first, *y = b->first;

	for (; x && y; x = x->next, y = y->next) {
		if (x->type != y->type || x->after_count != y->after_count)
			return false;
		if (x->child && !same_shape(x->child, y->child))
			return false;
	}
	return !x && !y;
}

static void take_over(struct graph *to, const struct graph *from)
{
	const struct node *source = from->first;

	for (struct node *node = to->first; node; node = node->next, source = source->next) {
		op_release(&node->op);
		op_copy(&node->op, &source->op);
		node->event = source->event;
		if (node->child)
			take_over(node->child, source->child);
	}
}

struct update_result {
	int result;
	void *node, *from;
};

API cuGraphExecUpdate_v2(struct exec *exec, struct graph *graph, struct update_result *result)
{
	if (!is_exec(exec) || !is_graph(graph))
		return INVALID_VALUE;
	memset(result, 0, sizeof(*result));
	if (!same_shape(exec->graph, graph) || getenv("STAND_IN_NO_UPDATE")) {
		result->result = 2;
		return UPDATE_FAILURE;
	}
	finish();
	take_over(exec->graph, graph);
	return 0;
}

static void find_events(struct graph *graph, struct stream *on, enum node_type type)
{
	for (struct node *node = graph->first; node; node = node->next) {
		if (node->child)
			find_events(node->child, on, type);
		if (node->type != type)
			continue;
		if (type == NODE_WAIT)
			add_wait(on, node->event->point);
		else
			node->event->point = (struct point){ on, on->submitted };
	}
}

static int graph_launch(struct stream *on, struct exec *exec)
{
	struct op op = { .kind = OP_GRAPH, .exec = exec };
	int error;

	if (!on || !is_exec(exec))
		return INVALID_VALUE;
	if (on->capture) {
		struct node *node;

		op.kind = OP_EMPTY;
		error = capture_add(on, &op, &node);
		if (!error) {
			node->type = NODE_CHILD;
			node->child = graph_copy(exec->graph);
			node->child->is_child = true;
		}
		return error;
	}
	pthread_mutex_lock(&queues);
	add_wait(on, exec->last);
	find_events(exec->graph, on, NODE_WAIT);
	pthread_mutex_unlock(&queues);
	error = submit(on, &op);
	pthread_mutex_lock(&queues);
	exec->last = (struct point){ on, on->submitted };
	find_events(exec->graph, on, NODE_RECORD);
	pthread_mutex_unlock(&queues);
	return error;
}

API cuGraphLaunch(struct exec *exec, void *stream)
{
	return graph_launch(stream_of(stream, false), exec);
}

API cuGraphLaunch_ptsz(struct exec *exec, void *stream)
{
	return graph_launch(stream_of(stream, true), exec);
}

API cuGraphUpload(struct exec *exec, void *stream)
{
	return is_exec(exec) && stream_of(stream, false) ? 0 : INVALID_VALUE;
}

API cuGraphUpload_ptsz(struct exec *exec, void *stream)
{
	return cuGraphUpload(exec, stream);
}
