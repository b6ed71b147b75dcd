/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program asks about memory of the arena: answered for the block, as the driver would for
 * memory of its own.
 */
#include <string.h>

#include "backends/cuda/stream/cuda_arena.h"
#include "base/local/macros.h"

enum {
	POINTER_CONTEXT = 1,
	POINTER_SYNC_MEMOPS = 6,
	POINTER_BUFFER_ID = 7,
	POINTER_RANGE_START = 11,
	POINTER_RANGE_SIZE = 12,
	POINTER_MEMPOOL = 17,
	POINTER_MAPPING_SIZE = 18,
	POINTER_MAPPING_BASE = 19,
	POINTER_BLOCK_ID = 20,
};

/* The program's block or reservation that has the address. */
static bool find_range(uint64_t address, struct arena_item *ret_item, struct block_range *ret_range)
{
	struct arena *arena = arena_at(address);
	const struct block_range *range = NULL;
	const struct arena_item *item;

	*ret_item = (struct arena_item){ 0 };
	if (!arena)
		return false;
	arena_lock();
	item = table_find(&arena->items, address);
	if (item)
		*ret_item = *item;
	range = item ? &item->range : table_find(&arena->reservations, address);
	if (range)
		*ret_range = *range;
	arena_unlock();
	return range != NULL;
}

/*
 * free, total. A copy that the snapshot has made counts as free: the program gets its memory if it
 * needs that.
 */
int attributes_memory_info(struct cuda_call *call, uintptr_t *args)
{
	size_t length = strlen(call->name);
	const struct capture_context *context = capture_context_current();
	uint64_t shadow;
	size_t *available = (size_t *)args[0];
	const size_t *total = (const size_t *)args[1];
	int result;

	/* The oldest one has numbers of 32 bits. */
	if (!context || !available || !total || length < 3 ||
	    strcmp(call->name + length - 3, "_v2") != 0)
		return cuda_invoke(call, args);
	do {
		shadow = snapshot_shadow_bytes(context->device);
		result = cuda_invoke(call, args);
	} while (result == CUDA_SUCCESS_ && shadow != snapshot_shadow_bytes(context->device));
	/* For a moment, what was just freed counts twice. */
	if (result == CUDA_SUCCESS_)
		*available = TS_MIN(*available + shadow, *total);
	return result;
}

/* start, bytes, address */
int attributes_range(struct cuda_call *call, uintptr_t *args)
{
	struct block_range range;
	struct arena_item item;

	if (!arena_contains(args[2]))
		return cuda_invoke(call, args);
	if (!find_range(args[2], &item, &range))
		return CUDA_NOT_FOUND;
	if (args[0])
		*(uint64_t *)args[0] = range.address;
	if (args[1])
		*(size_t *)args[1] = range.bytes;
	return CUDA_SUCCESS_;
}

/* Replaces the driver's answer where that is about our reservation or mappings. */
static void correct(uint32_t attribute, void *value, const struct arena_item *item,
		    const struct block_range *range)
{
	bool is_block = item->id != 0;

	switch (attribute) {
	case POINTER_RANGE_START:
		*(uint64_t *)value = range->address;
		break;
	case POINTER_RANGE_SIZE:
		*(size_t *)value = range->bytes;
		break;
	case POINTER_CONTEXT:
		if (is_block)
			*(void **)value = item->context ? item->context->handle : NULL;
		break;
	case POINTER_SYNC_MEMOPS:
		if (is_block)
			*(uint32_t *)value = item->is_sync;
		break;
	case POINTER_BUFFER_ID:
	case POINTER_BLOCK_ID:
		if (is_block)
			*(uint64_t *)value = item->id;
		break;
	case POINTER_MEMPOOL:
		if (is_block)
			*(void **)value = item->pool ? pools_handle(item->pool) : NULL;
		break;
	case POINTER_MAPPING_SIZE:
		if (is_block)
			*(size_t *)value = range->bytes;
		break;
	case POINTER_MAPPING_BASE:
		if (is_block)
			*(uint64_t *)value = range->address;
		break;
	default:
		break;
	}
}

static bool is_ours(uint32_t attribute)
{
	return attribute == POINTER_CONTEXT || attribute == POINTER_SYNC_MEMOPS ||
	       attribute == POINTER_BUFFER_ID || attribute == POINTER_RANGE_START ||
	       attribute == POINTER_RANGE_SIZE || attribute >= POINTER_MEMPOOL;
}

/* value, attribute, address */
int attributes_get(struct cuda_call *call, uintptr_t *args)
{
	struct block_range range;
	struct arena_item item;
	int result;

	if (!args[0] || !arena_contains(args[2]))
		return cuda_invoke(call, args);
	/* Of a chunk, but of no block. */
	if (!find_range(args[2], &item, &range))
		return CUDA_INVALID_VALUE;
	result = cuda_invoke(call, args);
	/* For the driver it is not memory that was allocated in a context. */
	if (result == CUDA_SUCCESS_ ||
	    (item.id && is_ours((uint32_t)args[1]) && args[1] <= POINTER_BLOCK_ID)) {
		correct((uint32_t)args[1], (void *)args[0], &item, &range);
		result = CUDA_SUCCESS_;
	}
	return result;
}

/* count, attributes, values, address */
int attributes_get_several(struct cuda_call *call, uintptr_t *args)
{
	const uint32_t *attributes = (const uint32_t *)args[1];
	void **values = (void **)args[2];
	struct block_range range;
	struct arena_item item;
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_ && arena_contains(args[3]) &&
	    find_range(args[3], &item, &range))
		for (uint32_t i = 0; i < (uint32_t)args[0]; i++)
			correct(attributes[i], values[i], &item, &range);
	return result;
}

/* value, attribute, address */
int attributes_set(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[2]);
	struct arena_item *item;
	bool is_known;

	if (!arena || args[1] != POINTER_SYNC_MEMOPS || !args[0])
		return cuda_invoke(call, args);
	arena_lock();
	item = arena_item_locked(args[2]);
	is_known = item != NULL;
	if (item)
		item->is_sync = *(const unsigned int *)args[0] != 0;
	arena_unlock();
	return is_known ? CUDA_SUCCESS_ : cuda_invoke(call, args);
}
