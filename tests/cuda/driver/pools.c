/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: pools, and memory that is allocated and freed in the order of a stream. */
#include <stdlib.h>

#include "cuda/driver/ranges.h"

struct pool {
	int device;
	uint64_t attributes[16];
	bool is_gone;
};

static struct handles pool_handles = HANDLES;

static bool is_pool(const void *handle)
{
	const struct pool *pool = handle;

	return handles_have(&pool_handles, handle) && !pool->is_gone;
}

static struct pool *pool_new(int device)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	pool->device = device;
	pool->attributes[1] = pool->attributes[2] = pool->attributes[3] = 1;
	handles_add(&pool_handles, pool);
	return pool;
}

API cuDeviceGetDefaultMemPool(struct pool **pool, int device)
{
	static struct pool *default_pools[8];

	if (device < 0 || device >= settings.devices)
		return INVALID_DEVICE;
	pthread_rwlock_wrlock(&ranges_lock);
	if (!default_pools[device])
		default_pools[device] = pool_new(device);
	*pool = default_pools[device];
	pthread_rwlock_unlock(&ranges_lock);
	return 0;
}

static struct pool *current_pools[8];

API cuDeviceGetMemPool(struct pool **pool, int device)
{
	if (device < 0 || device >= settings.devices)
		return INVALID_DEVICE;
	if (!current_pools[device])
		return cuDeviceGetDefaultMemPool(pool, device);
	*pool = current_pools[device];
	return 0;
}

API cuDeviceSetMemPool(int device, struct pool *pool)
{
	if (device < 0 || device >= settings.devices || !is_pool(pool))
		return INVALID_VALUE;
	current_pools[device] = pool;
	return 0;
}

API cuMemPoolCreate(struct pool **ret_pool, const uint32_t *props)
{
	/* type, handle types, location: type, id */
	if (props[0] != 1 || props[2] != 1)
		return INVALID_VALUE;
	*ret_pool = pool_new((int)props[3]);
	return 0;
}

API cuMemPoolDestroy(struct pool *pool)
{
	if (!is_pool(pool))
		return INVALID_VALUE;
	pool->is_gone = true;
	return 0;
}

API cuMemPoolTrimTo(struct pool *pool, size_t bytes)
{
	(void)bytes;
	return is_pool(pool) ? 0 : INVALID_VALUE;
}

API cuMemPoolSetAttribute(struct pool *pool, unsigned int attribute, void *value)
{
	int error = refuse_in_capture();

	if (error)
		return error;
	if (!is_pool(pool) || attribute >= 16)
		return INVALID_VALUE;
	pool->attributes[attribute] = attribute <= 3 ? *(uint32_t *)value : *(uint64_t *)value;
	return 0;
}

API cuMemPoolGetAttribute(struct pool *pool, unsigned int attribute, void *value)
{
	int error = refuse_in_capture();

	if (error)
		return error;
	if (!is_pool(pool) || attribute >= 16)
		return INVALID_VALUE;
	if (attribute <= 3)
		*(uint32_t *)value = (uint32_t)pool->attributes[attribute];
	else
		*(uint64_t *)value = pool->attributes[attribute];
	return 0;
}

API cuMemPoolSetAccess(struct pool *pool, const struct cuda_access *map, size_t count)
{
	(void)map;
	(void)count;
	return is_pool(pool) ? 0 : INVALID_VALUE;
}

API cuMemPoolGetAccess(uint32_t *flags, struct pool *pool, const void *location)
{
	(void)location;
	*flags = 3;
	return is_pool(pool) ? 0 : INVALID_VALUE;
}

static int alloc_in(struct stream *on, uint64_t *address, size_t bytes)
{
	int error;

	if (!on)
		return INVALID_HANDLE;
	error = memory_alloc(on->context, bytes, address);
	if (!error && on->capture) {
		struct op op = { .kind = OP_EMPTY };
		struct node *node;

		error = capture_add(on, &op, &node);
		if (!error) {
			node->type = NODE_ALLOC;
			node->address = *address;
			node->bytes = bytes;
		}
	}
	return error;
}

static int free_in(struct stream *on, uint64_t address)
{
	struct op op = { .kind = OP_FREE, .address = address };
	struct range range;

	if (!on)
		return INVALID_HANDLE;
	if (on->capture) {
		struct node *node;
		int error;

		op.kind = OP_EMPTY;
		error = capture_add(on, &op, &node);
		if (!error) {
			node->type = NODE_FREE;
			node->address = address;
		}
		return error;
	}
	if (!memory_find(address, &range) || range.kind != DEVICE_MEMORY ||
	    range.address != address)
		return INVALID_VALUE;
	return submit(on, &op);
}

API cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream)
{
	return alloc_in(stream_of(stream, false), address, bytes);
}

API cuMemAllocAsync_ptsz(uint64_t *address, size_t bytes, void *stream)
{
	return alloc_in(stream_of(stream, true), address, bytes);
}

API cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, struct pool *pool, void *stream)
{
	return is_pool(pool) ? alloc_in(stream_of(stream, false), address, bytes) : INVALID_VALUE;
}

API cuMemAllocFromPoolAsync_ptsz(uint64_t *address, size_t bytes, struct pool *pool, void *stream)
{
	return is_pool(pool) ? alloc_in(stream_of(stream, true), address, bytes) : INVALID_VALUE;
}

API cuMemFreeAsync(uint64_t address, void *stream)
{
	return free_in(stream_of(stream, false), address);
}

API cuMemFreeAsync_ptsz(uint64_t address, void *stream)
{
	return free_in(stream_of(stream, true), address);
}
