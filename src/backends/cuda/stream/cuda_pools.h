/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of stream-ordered memory, shared by cuda_pools.c and cuda_pool_calls.c. Functions whose
 * names end in _locked are called with arena_lock() held.
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_POOLS_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_POOLS_H

#include "backends/cuda/stream/cuda_arena.h"

/* Free memory. */
struct free_range {
	uint64_t address, bytes;
	struct capture_stream *stream; /* NULL: the device no longer uses it */
	uint64_t serial;
};

/* An event behind all frees of a stream up to a serial. */
struct mark {
	struct mark *next;
	struct capture_stream *stream;
	void *event;
	uint64_t serial;
	uint64_t window, number; /* of the window in which it was recorded, there */
};

struct arena_pool {
	struct arena_pool *next;
	struct arena *arena;
	void *handle; /* of the driver; NULL: it is gone, or a graph's */
	bool is_graph;
	unsigned int references; /* of a graph's: graphs and executables */
	struct free_range *free;
	size_t free_count, free_capacity;
	struct mark *marks;
	uint64_t reserved, reserved_high, used, used_high;
};

/* Of a handle of the driver, NULL: the default; it is made if it is not known. NULL: no memory. */
struct arena_pool *pools_find_locked(struct arena *arena, void *handle);
struct arena_pool *pools_known_locked(const void *handle); /* NULL: it is not */
/* A result of the driver. */
int pools_alloc_locked(struct arena_pool *pool, uint64_t bytes, struct capture_context *context,
		       const struct capture_stream *stream, uint64_t *ret_address);
/* The same from the pool of a graph. */
int pools_alloc_in_graph_locked(struct arena *arena, const void *graph, uint64_t bytes,
				const struct capture_stream *stream, uint64_t *ret_address);
/* Unmaps what is free until no more than `keep` bytes are mapped, as far as it is complete. */
void pools_trim_to_locked(struct arena_pool *pool, uint64_t keep);
/* What is in use stays until it is freed, then in the default pool. */
void pools_end_locked(struct arena_pool *pool);

/*
 * A graph is being destroyed: what keeps its memory, under its handle, which another graph may get.
 * Then whether it has ended. Takes arena_lock().
 */
struct keeper;
struct keeper *graph_blocks_take(const void *handle);
void graph_blocks_return(struct keeper *taken, bool has_ended);

#endif
