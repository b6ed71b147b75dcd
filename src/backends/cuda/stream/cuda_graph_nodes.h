/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_graph_nodes.c: what the driver tells about the nodes of a graph. capture_lock is held for
 * all of it.
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_GRAPH_NODES_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_GRAPH_NODES_H

#include "backends/cuda/stream/cuda_capture.h"

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
	unsigned char *copied; /* what it copies from memory that is not pinned; NULL */
	struct cuda_fill_node fill;
	void *event;
};

struct node_list {
	struct graph_node *items;
	uint32_t count, capacity;
	char refused[128]; /* why it cannot be replayed; "": it can */
};

/* Appends the nodes of a graph, at `depth` in others. What cannot be replayed is in `refused`. */
void graph_nodes_read(struct node_list *list, void *graph, unsigned int depth);
void graph_nodes_release(struct node_list *list);
/* The first reason stays. */
void graph_nodes_refuse(struct node_list *list, const char *why);
/* The function and parameters of a kernel node; `has_kernel`: those of CUDA 12 and later. */
void graph_node_take_kernel(struct node_list *list, struct graph_node *node,
			    const struct cuda_kernel_node *params, bool has_kernel);

#endif
