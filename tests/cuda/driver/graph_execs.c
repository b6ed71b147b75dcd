/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: executables of graphs, their updates and launches. */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/graphs.h"

static struct handles exec_handles = HANDLES;

static bool is_exec(const void *handle)
{
	const struct exec *exec = handle;

	return handles_have(&exec_handles, handle) && !exec->is_gone;
}

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
