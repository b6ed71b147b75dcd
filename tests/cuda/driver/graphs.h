/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: what the files of graphs know of each other. */
#ifndef TS_TESTS_CUDA_DRIVER_GRAPHS_H
#define TS_TESTS_CUDA_DRIVER_GRAPHS_H

#include "cuda/driver/driver.h"

bool is_graph(const void *handle);
bool is_node(const void *handle);
/* With all nodes, each of which knows its original. */
struct graph *graph_copy(const struct graph *graph);

/* graph_nodes.c: what a node does, as its parameters say. */
int set_kernel(struct op *op, const struct cuda_kernel_node *params);
void set_copy(struct op *op, const struct cuda_copy_3d *copy);

#endif
