/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that serve device memory from an arena: cuda_arena.c, cuda_pools.c,
 * cuda_pool_calls.c, cuda_virtual.c, cuda_attributes.c, cuda_allocate.c. Functions whose names end
 * in _locked are called with arena_lock() held, which comes after capture_lock.
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_ARENA_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_ARENA_H

#include "backends/cuda/stream/cuda_blocks.h"
#include "backends/cuda/stream/cuda_capture.h"

#define ARENA_SMALL (UINT64_C(1) << 20) /* blocks up to this size share chunks */
#define ARENA_ALIGNMENT UINT64_C(512)

#define ARENAS_AT_MOST 64 /* devices */

struct arena_pool;

/* What the program allocated. */
struct arena_item {
	struct block_range range; /* as much as it asked for */
	uint64_t bytes;           /* that it occupies */
	uint64_t id;
	struct capture_context *context;
	struct arena_pool *pool; /* NULL: cuMemAlloc */
	bool is_freed;           /* memory of a graph: until the graph ends */
	bool is_sync;            /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
};

enum arena_use { ARENA_CHUNK, ARENA_BLOCK, ARENA_POOL, ARENA_PROGRAM };

/* Physical memory behind addresses. */
struct arena_piece {
	struct block_range range;
	enum arena_use use;
	bool is_accessible;
	struct arena_pool *pool;
	void *handle; /* ARENA_PROGRAM: of cuda_virtual.c */
};

struct arena {
	struct capture_device *device;
	uint64_t address, bytes;
	struct block_space addresses;    /* not in use, in pages */
	struct block_space small;        /* free memory of chunks */
	struct block_table items;        /* struct arena_item */
	struct block_table pieces;       /* struct arena_piece */
	struct block_table reservations; /* struct block_range: cuMemAddressReserve */
};

void arena_lock(void);
void arena_unlock(void);
/* NULL: the address is in none. */
struct arena *arena_at(uint64_t address);
struct arena *arena_of(const struct capture_device *device);
uint64_t arena_pages(uint64_t bytes); /* rounded up to pages */

/*
 * Around driver calls of ours while the program captures streams: they are not part of a capture,
 * and do not end it.
 */
struct arena_mode {
	bool is_changed;
	int mode;
};
void arena_mode_begin(struct arena_mode *mode);
void arena_mode_end(struct arena_mode *mode);
/*
 * The answer of the driver to a call that allocates while streams are captured, which may be
 * forbidden: CUDA_SUCCESS_ if it is not.
 */
int arena_may_allocate(void);

/* Memory of ours at the first address that is free; 0: `ret_result` says why. */
uint64_t arena_map_locked(struct arena *arena, uint64_t bytes, enum arena_use use,
			  struct arena_pool *pool, int *ret_result);
void arena_unmap_locked(struct arena *arena, struct arena_piece *piece);
/* Takes a range of `bytes`; for pools the caller has found memory. NULL: no memory. */
struct arena_item *arena_add_item_locked(struct arena *arena, uint64_t address, uint64_t bytes,
					 uint64_t occupied, struct capture_context *context,
					 struct arena_pool *pool);
void arena_remove_item_locked(struct arena *arena, struct arena_item *item);
struct arena_item *arena_item_locked(uint64_t address);
int arena_alloc_locked(struct arena *arena, uint64_t bytes, struct capture_context *context,
		       uint64_t *ret_address);
void arena_free_locked(struct arena *arena, struct arena_item *item);
/* Memory became accessible, or not: for the stream; fills it with zeros if `is_new`. */
void arena_mapped_locked(struct arena *arena, uint64_t address, uint64_t bytes, bool is_new);
void arena_unmapped_locked(struct arena *arena, uint64_t address, uint64_t bytes);

/* ---- cuda_allocate.c ---- */

/* Frees a block when its context is done, for which the host waits. A result of the driver. */
int allocate_free(struct cuda_call *call, struct arena *arena, uint64_t address);

/* ---- cuda_pools.c ---- */

/* Gives back what no block needs, after waiting for the device. True: there was some. */
bool pools_trim_locked(struct arena *arena);
/* The block is no longer used: by the device at all, or in the order of `stream`. */
void pools_free_locked(struct arena *arena, struct arena_item *item, struct capture_stream *stream);
/* Its events are gone with it. */
void pools_context_gone_locked(const struct capture_context *context);
void *pools_handle(const struct arena_pool *pool); /* the driver's; NULL: of a graph */
bool pools_is_graph(const struct arena_pool *pool);

/* ---- cuda_pool_calls.c ---- */

int pools_alloc_async(struct cuda_call *call, uintptr_t *args);
int pools_alloc_from(struct cuda_call *call, uintptr_t *args);
int pools_free_async(struct cuda_call *call, uintptr_t *args);
int pools_create(struct cuda_call *call, uintptr_t *args);
int pools_destroy(struct cuda_call *call, uintptr_t *args);
int pools_trim(struct cuda_call *call, uintptr_t *args);
int pools_get_attribute(struct cuda_call *call, uintptr_t *args);
int pools_set_attribute(struct cuda_call *call, uintptr_t *args);
int pools_set_device(struct cuda_call *call, uintptr_t *args);
int pools_set_location(struct cuda_call *call, uintptr_t *args);
int pools_add_alloc_node(struct cuda_call *call, uintptr_t *args);
int pools_add_free_node(struct cuda_call *call, uintptr_t *args);
int pools_add_node(struct cuda_call *call, uintptr_t *args);
int pools_graph_destroy(struct cuda_call *call, uintptr_t *args);
int pools_graph_clone(struct cuda_call *call, uintptr_t *args);

/* ---- cuda_virtual.c ---- */

int virtual_reserve(struct cuda_call *call, uintptr_t *args);
int virtual_free(struct cuda_call *call, uintptr_t *args);
int virtual_create(struct cuda_call *call, uintptr_t *args);
int virtual_release(struct cuda_call *call, uintptr_t *args);
int virtual_map(struct cuda_call *call, uintptr_t *args);
int virtual_set_access(struct cuda_call *call, uintptr_t *args);
int virtual_unmap(struct cuda_call *call, uintptr_t *args);
int virtual_retain(struct cuda_call *call, uintptr_t *args);

/* ---- cuda_attributes.c ---- */

int attributes_memory_info(struct cuda_call *call, uintptr_t *args);
int attributes_range(struct cuda_call *call, uintptr_t *args);
int attributes_get(struct cuda_call *call, uintptr_t *args);
int attributes_get_several(struct cuda_call *call, uintptr_t *args);
int attributes_set(struct cuda_call *call, uintptr_t *args);

/* ---- cuda_snapshot.c ---- */

/* Frees device memory that a snapshot needs, by waiting for it. False: there is none. */
bool snapshot_give_memory_back(const struct capture_device *device);
/* What a copy of memory takes on the device, until it is stored. */
uint64_t snapshot_shadow_bytes(const struct capture_device *device);

#endif
