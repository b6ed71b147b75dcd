/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls about stream-ordered memory and its pools, and nodes of graphs that allocate
 * (docs/cuda-replay.md, 3.1).
 */
#include <string.h>

#include "backends/cuda/stream/cuda_pools.h"

/* Under arena_lock(): cuDeviceSetMemPool, cuMemSetMemPool; NULL: the default. */
static void *device_pools[ARENAS_AT_MOST];

/* ---- allocating ---- */

/* The graph that the stream is captured into; NULL: none. */
static void *captured_graph(const struct capture_stream *stream)
{
	void *graph = NULL;
	int status = 0;

	if (!capture_is_capturing(stream->handle) ||
	    cu.StreamGetCaptureInfo((void *)stream->handle, &status, NULL, &graph, NULL, NULL) ||
	    status != CUDA_CAPTURE_ACTIVE)
		return NULL;
	return graph;
}

static int alloc_for(struct cuda_call *call, uintptr_t *args, struct arena *arena, void *handle,
		     uintptr_t stream_handle)
{
	struct capture_stream *stream = capture_stream_of(call, stream_handle);
	uint64_t *ret_address = (uint64_t *)args[0];
	struct arena_pool *pool;
	struct arena_mode mode;
	int result = CUDA_OUT_OF_MEMORY;
	void *graph;

	if (!stream)
		return cuda_invoke(call, args);
	capture_lock();
	graph = captured_graph(stream);
	arena_mode_begin(&mode);
	arena_lock();
	if (graph) {
		result = pools_alloc_in_graph_locked(arena, graph, args[1], stream, ret_address);
	} else {
		pool = pools_find_locked(arena, handle);
		if (pool)
			result = pools_alloc_locked(pool, args[1], stream->context, stream,
						    ret_address);
	}
	arena_unlock();
	arena_mode_end(&mode);
	capture_unlock();
	return result;
}

/* address, bytes, stream */
int pools_alloc_async(struct cuda_call *call, uintptr_t *args)
{
	struct capture_context *context = capture_context_current();
	struct arena *arena = context ? arena_of(context->device) : NULL;
	void *handle = NULL;

	if (!arena || !args[0] || !args[1])
		return cuda_invoke(call, args);
	arena_lock();
	handle = device_pools[context->device->ordinal];
	arena_unlock();
	return alloc_for(call, args, arena, handle, args[2]);
}

static struct arena *arena_of_pool(void *handle, bool *ret_is_default)
{
	struct capture_context *context = capture_context_next(NULL);
	const struct arena_pool *pool;
	struct arena *arena;

	*ret_is_default = false;
	for (; context; context = capture_context_next(context)) {
		void *usual = NULL;

		if (!cu.DeviceGetDefaultMemPool(&usual, context->device->ordinal) &&
		    usual == handle) {
			*ret_is_default = true;
			return arena_of(context->device);
		}
	}
	arena_lock();
	pool = pools_known_locked(handle);
	arena = pool ? pool->arena : NULL;
	arena_unlock();
	return arena;
}

/* address, bytes, pool, stream */
int pools_alloc_from(struct cuda_call *call, uintptr_t *args)
{
	void *handle = (void *)args[2];
	struct arena *arena;
	bool is_default;

	if (!args[0] || !args[1] || !handle)
		return cuda_invoke(call, args);
	arena = arena_of_pool(handle, &is_default);
	if (!arena) {
		/* A pool of host memory, or imported. */
		capture_prevent("memory of a pool that is not captured (%s)", call->name);
		return cuda_invoke(call, args);
	}
	return alloc_for(call, args, arena, is_default ? NULL : handle, args[3]);
}

/* Memory of cuMemAlloc, which a driver frees when the host waits for the stream: that is now. */
static int free_block(struct cuda_call *call, struct arena *arena, uint64_t address)
{
	struct arena_mode mode;
	int result;

	arena_mode_begin(&mode);
	result = allocate_free(call, arena, address);
	arena_mode_end(&mode);
	return result;
}

/* address, stream */
int pools_free_async(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[0]);
	struct capture_stream *stream;
	struct arena_item *item;
	int result = CUDA_SUCCESS_;
	bool is_captured, is_block = false;

	if (!arena) {
		int rc = cuda_invoke(call, args);

		if (rc == CUDA_SUCCESS_)
			capture_managed_freed(args[0]);
		return rc;
	}
	stream = capture_stream_of(call, args[1]);
	if (!stream)
		return CUDA_INVALID_HANDLE;
	capture_lock();
	is_captured = captured_graph(stream) != NULL;
	arena_lock();
	item = arena_item_locked(args[0]);
	if (!item || item->range.address != args[0] ||
	    (is_captured && (!item->pool || !item->pool->is_graph)))
		result = CUDA_INVALID_VALUE;
	else if (!item->pool)
		is_block = true;
	else if (!item->pool->is_graph || is_captured)
		pools_free_locked(arena, item, stream);
	else
		item->is_freed = true; /* behind a launch of the graph, whose memory it stays */
	arena_unlock();
	capture_unlock();
	return is_block ? free_block(call, arena, args[0]) : result;
}

/* ---- pools ---- */

/* pool, properties */
int pools_create(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_pool_prop *prop = (const struct cuda_pool_prop *)args[1];
	int result = cuda_invoke(call, args);
	struct capture_device *device;
	struct arena *arena;

	if (result != CUDA_SUCCESS_ || !prop || prop->type != CUDA_ALLOCATION_PINNED ||
	    prop->location.type != CUDA_LOCATION_DEVICE)
		return result;
	device = capture_device_of(prop->location.id);
	arena = device ? arena_of(device) : NULL;
	if (arena) {
		arena_lock();
		pools_find_locked(arena, *(void **)args[0]);
		arena_unlock();
	}
	return result;
}

int pools_destroy(struct cuda_call *call, uintptr_t *args)
{
	void *handle = (void *)args[0];
	struct arena_pool *pool;
	int result;

	/* The handle is that of another pool, or of none, as soon as the driver returns. */
	capture_lock();
	arena_lock();
	result = cuda_invoke(call, args);
	for (size_t i = 0; i < ARENAS_AT_MOST && result == CUDA_SUCCESS_; i++)
		if (device_pools[i] == handle)
			device_pools[i] = NULL;
	pool = result == CUDA_SUCCESS_ ? pools_known_locked(handle) : NULL;
	if (pool)
		pools_end_locked(pool);
	arena_unlock();
	capture_unlock();
	return result;
}

/* The pool that a handle means; arena_lock() is held. */
static struct arena_pool *pool_by_handle(void *handle)
{
	struct arena *arena;
	bool is_default;

	arena_unlock();
	arena = arena_of_pool(handle, &is_default);
	arena_lock();
	return arena ? pools_find_locked(arena, is_default ? NULL : handle) : NULL;
}

/* pool, bytes to keep */
int pools_trim(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct arena_pool *pool;

	if (result != CUDA_SUCCESS_)
		return result;
	capture_lock();
	arena_lock();
	pool = pool_by_handle((void *)args[0]);
	if (pool)
		pools_trim_to_locked(pool, args[1]);
	arena_unlock();
	capture_unlock();
	return result;
}

static uint64_t *counter_of(struct arena_pool *pool, uintptr_t attribute)
{
	switch (attribute) {
	case CUDA_POOL_RESERVED:
		return &pool->reserved;
	case CUDA_POOL_RESERVED_HIGH:
		return &pool->reserved_high;
	case CUDA_POOL_USED:
		return &pool->used;
	case CUDA_POOL_USED_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

/* pool, attribute, value */
int pools_get_attribute(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct arena_pool *pool;
	const uint64_t *counter;

	if (result != CUDA_SUCCESS_ || (uint32_t)args[1] < CUDA_POOL_RESERVED ||
	    (uint32_t)args[1] > CUDA_POOL_USED_HIGH)
		return result;
	arena_lock();
	pool = pool_by_handle((void *)args[0]);
	counter = pool ? counter_of(pool, (uint32_t)args[1]) : NULL;
	if (counter)
		*(uint64_t *)args[2] = *counter;
	arena_unlock();
	return result;
}

/* High-water marks can be reset. */
int pools_set_attribute(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct arena_pool *pool;

	if (result != CUDA_SUCCESS_ ||
	    (args[1] != CUDA_POOL_RESERVED_HIGH && args[1] != CUDA_POOL_USED_HIGH))
		return result;
	arena_lock();
	pool = pool_by_handle((void *)args[0]);
	if (pool && args[1] == CUDA_POOL_RESERVED_HIGH)
		pool->reserved_high = pool->reserved;
	else if (pool)
		pool->used_high = pool->used;
	arena_unlock();
	return result;
}

static void set_device_pool(int device, void *handle)
{
	void *usual = NULL;

	if (device < 0 || device >= ARENAS_AT_MOST)
		return;
	cu.DeviceGetDefaultMemPool(&usual, device);
	arena_lock();
	device_pools[device] = handle == usual ? NULL : handle;
	arena_unlock();
}

/* device, pool */
int pools_set_device(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		set_device_pool((int)args[0], (void *)args[1]);
	return result;
}

/* location, type of memory, pool: the same, for memory of a device */
int pools_set_location(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_location *location = (const struct cuda_location *)args[0];
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_ && location && location->type == CUDA_LOCATION_DEVICE &&
	    (uint32_t)args[1] == CUDA_ALLOCATION_PINNED)
		set_device_pool(location->id, (void *)args[2]);
	return result;
}

/* ---- graphs ---- */

/* Nodes that allocate and free are empty ones: the memory is there as long as the graph. */
static int add_empty_node(const uintptr_t *args)
{
	return cu.GraphAddEmptyNode((void **)args[0], (void *)args[1], (void *const *)args[2],
				    args[3]);
}

static int add_alloc_node(const uintptr_t *args, struct cuda_alloc_node *params)
{
	struct capture_device *device = params->prop.location.type == CUDA_LOCATION_DEVICE
						? capture_device_of(params->prop.location.id)
						: NULL;
	struct arena *arena = device ? arena_of(device) : NULL;
	struct arena_mode mode;
	int result;

	if (!arena || !params->bytes)
		return CUDA_INVALID_VALUE;
	capture_lock();
	arena_mode_begin(&mode);
	arena_lock();
	/* Two nodes have no order that is known here: their memory is never shared. */
	result = pools_alloc_in_graph_locked(arena, (void *)args[1], params->bytes, NULL,
					     &params->address);
	arena_unlock();
	arena_mode_end(&mode);
	capture_unlock();
	return result ? result : add_empty_node(args);
}

/* node, graph, dependencies, count, parameters */
int pools_add_alloc_node(struct cuda_call *call, uintptr_t *args)
{
	if (!args[4])
		return cuda_invoke(call, args);
	return add_alloc_node(args, (struct cuda_alloc_node *)args[4]);
}

/* node, graph, dependencies, count, address */
int pools_add_free_node(struct cuda_call *call, uintptr_t *args)
{
	return arena_contains(args[4]) ? add_empty_node(args) : cuda_invoke(call, args);
}

/* node, graph, dependencies, (data of edges,) count, parameters */
int pools_add_node(struct cuda_call *call, uintptr_t *args)
{
	bool has_edges = strstr(call->name, "_v2") != NULL;
	uintptr_t plain[5] = { args[0], args[1], args[2], args[has_edges ? 4 : 3], 0 };
	struct cuda_node_params *params = (struct cuda_node_params *)args[has_edges ? 5 : 4];

	if (params && params->type == CUDA_NODE_ALLOC)
		return add_alloc_node(plain, &params->alloc);
	if (params && params->type == CUDA_NODE_FREE && arena_contains(params->free_address))
		return add_empty_node(plain);
	return cuda_invoke(call, args);
}

int pools_graph_destroy(struct cuda_call *call, uintptr_t *args)
{
	/* A graph that another thread captures may have the handle as soon as it is free. */
	struct keeper *taken = graph_blocks_take((void *)args[0]);
	int result = cuda_invoke(call, args);

	graph_blocks_return(taken, result == CUDA_SUCCESS_);
	return result;
}

/* clone, original */
int pools_graph_clone(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		graph_blocks_copy((void *)args[1], *(void **)args[0]);
	return result;
}
