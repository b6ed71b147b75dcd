/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own virtual memory management, as allocators use it that grow in place: addresses
 * come from the arena, physical memory from the driver. What a replay cannot do again (memory that
 * is mapped twice, or again with contents) prevents windows as long as it matters.
 */
#include <stdlib.h>

#include "backends/cuda/stream/cuda_arena.h"

#define ACCESS_NONE 0

/* Physical memory of the program. */
struct physical {
	struct physical *next;
	unsigned long long handle;
	bool is_on_device;
	bool was_mapped;
	bool is_released;
	unsigned int mappings;
};

static struct physical *physicals; /* under arena_lock() */

static struct physical *physical_of(unsigned long long handle)
{
	struct physical *physical = physicals;

	while (physical && (physical->is_released || physical->handle != handle))
		physical = physical->next;
	return physical;
}

static void forget(struct physical *physical)
{
	struct physical **link = &physicals;

	if (!physical->is_released || physical->mappings)
		return;
	while (*link != physical)
		link = &(*link)->next;
	*link = physical->next;
	free(physical);
}

/* ---- physical memory ---- */

/* handle, bytes, properties, flags */
int virtual_create(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_allocation_prop *prop = (const struct cuda_allocation_prop *)args[2];
	int result = cuda_invoke(call, args);
	struct physical *physical;

	if (result == CUDA_OUT_OF_MEMORY && prop && prop->location.type == CUDA_LOCATION_DEVICE) {
		struct capture_device *device = capture_device_of(prop->location.id);
		struct arena *arena = device ? arena_of(device) : NULL;
		bool has_more = false;

		if (arena) {
			capture_lock();
			arena_lock();
			has_more = pools_trim_locked(arena) || snapshot_give_memory_back(device);
			arena_unlock();
			capture_unlock();
		}
		if (has_more)
			result = cuda_invoke(call, args);
	}
	if (result != CUDA_SUCCESS_ || !prop)
		return result;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return result; /* it is not known: mapping it prevents windows */
	physical->handle = *(unsigned long long *)args[0];
	physical->is_on_device = prop->location.type == CUDA_LOCATION_DEVICE;
	arena_lock();
	physical->next = physicals;
	physicals = physical;
	arena_unlock();
	return result;
}

int virtual_release(struct cuda_call *call, uintptr_t *args)
{
	int result;
	struct physical *physical;

	/* The driver may give the handle to another thread as soon as it is free. */
	arena_lock();
	result = cuda_invoke(call, args);
	physical = result == CUDA_SUCCESS_ ? physical_of(args[0]) : NULL;
	if (physical) {
		physical->is_released = true;
		forget(physical);
	}
	arena_unlock();
	return result;
}

/* handle, address: the program may map it again. */
int virtual_retain(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[1]);
	struct arena_piece *piece = NULL;
	int result;

	if (arena) {
		arena_lock();
		piece = table_find(&arena->pieces, args[1]);
		if (piece && piece->use != ARENA_PROGRAM)
			piece = NULL;
		arena_unlock();
		/* As for memory of cuMemAlloc. */
		if (!piece)
			return CUDA_INVALID_VALUE;
	}
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_)
		capture_prevent("shared handle of memory (cuMemRetainAllocationHandle)");
	return result;
}

/* ---- addresses ---- */

/* address, bytes, alignment, wanted address, flags */
int virtual_reserve(struct cuda_call *call, uintptr_t *args)
{
	struct capture_context *context = capture_context_current();
	struct arena *arena = context ? arena_of(context->device) : NULL;
	uint64_t bytes = args[1], alignment = args[2] > ARENA_PAGE ? args[2] : ARENA_PAGE;
	struct block_range *range;
	uint64_t address = 0;

	if (!arena || !args[0] || !bytes || bytes % ARENA_PAGE || (alignment & (alignment - 1)) ||
	    args[4])
		return cuda_invoke(call, args);
	range = calloc(1, sizeof(*range));
	if (!range)
		return CUDA_OUT_OF_MEMORY;
	arena_lock();
	if (args[3] && blocks_take_at(&arena->addresses, args[3], bytes))
		address = args[3];
	else
		address = blocks_take(&arena->addresses, bytes, alignment);
	*range = (struct block_range){ address, bytes };
	if (address && !table_add(&arena->reservations, range)) {
		blocks_give(&arena->addresses, address, bytes);
		address = 0;
	}
	arena_unlock();
	if (!address) {
		/* Elsewhere; what is mapped there prevents windows. */
		free(range);
		return cuda_invoke(call, args);
	}
	*(uint64_t *)args[0] = address;
	return CUDA_SUCCESS_;
}

static bool has_pieces(const struct arena *arena, uint64_t address, uint64_t bytes)
{
	size_t at = table_position(&arena->pieces, address);

	return at < arena->pieces.count && arena->pieces.items[at]->address < address + bytes;
}

/* address, bytes */
int virtual_free(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[0]);
	struct block_range *range;
	int result = CUDA_SUCCESS_;

	if (!arena)
		return cuda_invoke(call, args);
	arena_lock();
	range = table_find(&arena->reservations, args[0]);
	if (!range || range->address != args[0] || range->bytes != args[1] ||
	    has_pieces(arena, args[0], args[1])) {
		result = CUDA_INVALID_VALUE;
	} else {
		table_remove(&arena->reservations, range);
		blocks_give(&arena->addresses, range->address, range->bytes);
		free(range);
	}
	arena_unlock();
	return result;
}

/* ---- mapping ---- */

/* address, bytes, offset, handle, flags */
int virtual_map(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[0]);
	const struct block_range *range;
	struct arena_piece *piece;
	struct physical *physical;
	int result;

	if (!arena) {
		result = cuda_invoke(call, args);
		if (result == CUDA_SUCCESS_)
			capture_prevent("memory that is mapped outside of the arena (cuMemMap)");
		return result;
	}
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return CUDA_OUT_OF_MEMORY;
	*piece = (struct arena_piece){ .range = { args[0], args[1] }, .use = ARENA_PROGRAM };
	capture_lock();
	arena_lock();
	range = table_find(&arena->reservations, args[0]);
	if (!range || args[1] > range->address + range->bytes - args[0] ||
	    has_pieces(arena, args[0], args[1]))
		result = CUDA_INVALID_VALUE;
	else
		result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_ && !table_add(&arena->pieces, &piece->range)) {
		cu.MemUnmap(args[0], args[1]);
		result = CUDA_OUT_OF_MEMORY;
	}
	physical = result == CUDA_SUCCESS_ ? physical_of(args[3]) : NULL;
	if (physical) {
		/* Contents that come with it, or are seen at two addresses. */
		if (!physical->is_on_device)
			capture_prevent("memory of the host that is mapped for a device "
					"(cuMemMap)");
		else if (physical->was_mapped)
			capture_prevent("memory that is mapped again (cuMemMap)");
		physical->was_mapped = true;
		physical->mappings++;
		piece->handle = physical;
	} else if (result == CUDA_SUCCESS_) {
		capture_prevent("memory of unknown origin (cuMemMap)");
	}
	arena_unlock();
	capture_unlock();
	if (result)
		free(piece);
	return result;
}

static void change_access(struct arena *arena, struct arena_piece *piece, bool is_accessible)
{
	if (piece->is_accessible == is_accessible)
		return;
	piece->is_accessible = is_accessible;
	if (is_accessible)
		arena_mapped_locked(arena, piece->range.address, piece->range.bytes, true);
	else
		/* Its contents stay, but a replay's would not. */
		capture_prevent("memory whose access is taken away (cuMemSetAccess)");
}

/* address, bytes, descriptions, count */
int virtual_set_access(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_access *access = (const struct cuda_access *)args[2];
	struct arena *arena = arena_at(args[0]);
	struct arena_mode mode;
	int result;

	if (!arena)
		return cuda_invoke(call, args);
	capture_lock();
	arena_mode_begin(&mode);
	arena_lock();
	result = cuda_invoke(call, args);
	for (size_t i = 0; result == CUDA_SUCCESS_ && i < args[3]; i++) {
		if (access[i].location.type != CUDA_LOCATION_DEVICE ||
		    access[i].location.id != arena->device->ordinal)
			continue;
		for (size_t at = table_position(&arena->pieces, args[0]);
		     at < arena->pieces.count &&
		     arena->pieces.items[at]->address < args[0] + args[1];
		     at++)
			change_access(arena, (struct arena_piece *)arena->pieces.items[at],
				      access[i].flags != ACCESS_NONE);
	}
	arena_unlock();
	arena_mode_end(&mode);
	capture_unlock();
	return result;
}

/* address, bytes */
int virtual_unmap(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[0]);
	int result;

	if (!arena)
		return cuda_invoke(call, args);
	capture_lock();
	arena_lock();
	result = table_find(&arena->reservations, args[0]) ? cuda_invoke(call, args)
							   : CUDA_INVALID_VALUE;
	for (size_t at = table_position(&arena->pieces, args[0]);
	     result == CUDA_SUCCESS_ && at < arena->pieces.count &&
	     arena->pieces.items[at]->address < args[0] + args[1];) {
		struct arena_piece *piece = (struct arena_piece *)arena->pieces.items[at];
		struct physical *physical = piece->handle;

		if (piece->is_accessible)
			arena_unmapped_locked(arena, piece->range.address, piece->range.bytes);
		table_remove(&arena->pieces, &piece->range);
		if (physical) {
			physical->mappings--;
			forget(physical);
		}
		free(piece);
	}
	arena_unlock();
	capture_unlock();
	return result;
}
