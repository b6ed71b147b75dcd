/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a graph node to the stack of the call that created it, by CUPTI's node id, through all
 * clones. Written by threads of the program when graphs are captured and instantiated, read by the
 * buffer reader.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "backends/cuda/cupti/cupti_device.h"

/* Two generations: if a program keeps creating graphs, the older one is dropped. */
#define NODES_AT_MOST (1u << 19)
#define ENTRIES (2 * NODES_AT_MOST)

struct node {
	uint64_t id; /* 0: not used */
	uint32_t stack;
};

static struct generation {
	struct node *nodes;
	uint32_t count;
} younger, older;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is called while it is held */

static struct node *find(const struct generation *in, uint64_t id)
{
	uint64_t at = id * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	for (at %= ENTRIES; in->nodes[at].id && in->nodes[at].id != id; at = (at + 1) % ENTRIES)
		;
	return &in->nodes[at];
}

static bool reserve(void)
{
	struct generation empty = { NULL, 0 };
	size_t bytes = sizeof(struct node) * ENTRIES;

	if (younger.nodes && younger.count < NODES_AT_MOST)
		return true;
	empty.nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (empty.nodes == MAP_FAILED)
		return false;
	if (older.nodes)
		munmap(older.nodes, bytes);
	older = younger;
	younger = empty;
	return true;
}

static void set(uint64_t id, uint32_t stack)
{
	struct node *node;

	if (!id || !stack || !reserve())
		return;
	node = find(&younger, id);
	younger.count += !node->id;
	*node = (struct node){ id, stack };
}

static uint32_t get(uint64_t id)
{
	const struct node *node = younger.nodes ? find(&younger, id) : NULL;

	if ((!node || !node->id) && older.nodes)
		node = find(&older, id);
	return node && node->id ? node->stack : 0;
}

void cuda_device_captured(uint64_t node, uint32_t stack)
{
	pthread_mutex_lock(&lock);
	set(node, stack);
	pthread_mutex_unlock(&lock);
}

uint32_t cuda_graphs_stack(uint64_t node)
{
	uint32_t stack;

	pthread_mutex_lock(&lock);
	stack = get(node);
	pthread_mutex_unlock(&lock);
	return stack;
}

static uint64_t id_of(void *node)
{
	uint64_t id = 0;

	if (!node || !cupti.GetGraphNodeId || cupti.GetGraphNodeId(node, &id))
		return 0;
	return id;
}

/*
 * The call on this thread has the stack of all nodes that it creates; it is taken when the call
 * returns, or with its second node.
 */
void cuda_graphs_created(const struct cupti_graph *graph)
{
	uint64_t id = graph ? id_of(graph->node) : 0;

	if (!id)
		return;
	if (cuda_thread.node) {
		if (!cuda_thread.stack)
			cuda_thread.stack = ts_accelerator_stack_always();
		cuda_device_captured(cuda_thread.node, cuda_thread.stack);
	}
	cuda_thread.node = id;
}

void cuda_graphs_cloned(const struct cupti_graph *graph)
{
	uint64_t id = graph ? id_of(graph->node) : 0;
	uint64_t original = graph ? id_of(graph->original_node) : 0;
	uint32_t stack;

	if (!id || !original)
		return;
	pthread_mutex_lock(&lock);
	stack = get(original);
	if (stack)
		set(id, stack);
	pthread_mutex_unlock(&lock);
}
