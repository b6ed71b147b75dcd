/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: graphs, copies of them, their nodes and dependencies. */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/graphs.h"

static struct handles graph_handles = HANDLES, node_handles = HANDLES;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	graph->end = &graph->first;
	handles_add(&graph_handles, graph);
	return graph;
}

bool is_graph(const void *handle)
{
	const struct graph *graph = handle;

	return handles_have(&graph_handles, handle) && !graph->is_gone;
}

bool is_node(const void *handle)
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

struct graph *graph_copy(const struct graph *graph)
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
