/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution order for opencl_random.c: a graph of commands in which any two that access the same
 * memory, one of them writing, are ordered by OpenCL's guarantees: in-order queues, barriers,
 * events, host waits. Works on numbers and ranges only, without OpenCL.
 */
#ifndef OPENCL_GRAPH_H
#define OPENCL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_NODES = 256, MAX_QUEUES = 6, MAX_RANGES = 3 };

/* A set of commands. */
struct bits {
	uint64_t words[MAX_NODES / 64];
};

static inline bool bits_has(const struct bits *bits, int node)
{
	return bits->words[node / 64] >> (node % 64) & 1;
}

static inline void bits_set(struct bits *bits, int node)
{
	bits->words[node / 64] |= UINT64_C(1) << (node % 64);
}

static inline void bits_add(struct bits *bits, const struct bits *more)
{
	for (size_t i = 0; i < sizeof(bits->words) / sizeof(*bits->words); i++)
		bits->words[i] |= more->words[i];
}

struct range {
	int root; /* memory */
	size_t from, to;
	bool writes;
};

struct node {
	int queue;
	struct bits upto; /* itself, and all that have completed when it has */
	struct range ranges[MAX_RANGES];
	int range_count;
};

struct order_queue {
	bool out_of_order;
	struct bits all;   /* submitted to it, with all predecessors */
	struct bits fence; /* what every later command of it follows */
};

struct order {
	struct node nodes[MAX_NODES];
	int count;
	struct order_queue queues[MAX_QUEUES];
	struct bits done; /* known to the host to be complete */
};

/* What a command submitted to this queue now follows, regardless of its wait list. */
static inline struct bits order_behind(const struct order *order, int queue)
{
	struct bits bits = order->queues[queue].out_of_order ? order->queues[queue].fence
							     : order->queues[queue].all;

	bits_add(&bits, &order->done);
	return bits;
}

static inline bool ranges_meet(const struct range *a, const struct range *b)
{
	return a->root == b->root && (a->writes || b->writes) && a->from < b->to && b->from < a->to;
}

static inline bool node_meets(const struct node *node, const struct range *ranges, int count)
{
	for (int i = 0; i < node->range_count; i++) {
		for (int j = 0; j < count; j++) {
			if (ranges_meet(&node->ranges[i], &ranges[j]))
				return true;
		}
	}
	return false;
}

/*
 * The latest command that accesses these ranges and is not among `behind`; -1: everything is
 * ordered.
 */
static inline int order_next(const struct order *order, const struct bits *behind,
			     const struct range *ranges, int count)
{
	for (int i = order->count - 1; i >= 0; i--) {
		if (!bits_has(behind, i) && node_meets(&order->nodes[i], ranges, count))
			return i;
	}
	return -1;
}

/* Adds a submitted command; `behind` is what it follows. Returns its number. */
static inline int order_add(struct order *order, int queue, const struct bits *behind,
			    const struct range *ranges, int count)
{
	int number = order->count++;
	struct node *node = &order->nodes[number];

	memset(node, 0, sizeof(*node));
	node->queue = queue;
	node->upto = *behind;
	bits_set(&node->upto, number);
	if (count)
		memcpy(node->ranges, ranges, (size_t)count * sizeof(*ranges));
	node->range_count = count;
	bits_add(&order->queues[queue].all, &node->upto);
	return number;
}

#endif
