/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory at fixed addresses (docs/cuda-replay.md, section 3): the range that is reserved for
 * each device, what is mapped in it, and blocks.
 */
#include <stdlib.h>

#include "backends/cuda/stream/cuda_arena.h"

#pragma weak snapshot_give_memory_back

#define ARENA_BYTES (UINT64_C(4) << 40)
#define ARENA_BYTES_LEAST CUDA_ARENA_BYTES_LEAST
#define MODE_RELAXED 2

/* Descriptions ask for what is mapped while it changes. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* By device; never freed. An entry is set once. */
static struct arena *arenas[ARENAS_AT_MOST];
static uint64_t last_id = UINT64_C(1) << 40; /* apart from the driver's ids of buffers */

void arena_lock(void)
{
	pthread_mutex_lock(&lock);
}

void arena_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

uint64_t arena_pages(uint64_t bytes)
{
	return (bytes + ARENA_PAGE - 1) & ~(ARENA_PAGE - 1);
}

struct arena *arena_of(const struct capture_device *device)
{
	return device->ordinal < ARENAS_AT_MOST
		       ? __atomic_load_n(&arenas[device->ordinal], __ATOMIC_ACQUIRE)
		       : NULL;
}

struct arena *arena_at(uint64_t address)
{
	for (size_t i = 0; i < ARENAS_AT_MOST; i++) {
		struct arena *arena = __atomic_load_n(&arenas[i], __ATOMIC_ACQUIRE);

		if (arena && address - arena->address < arena->bytes)
			return arena;
	}
	return NULL;
}

bool arena_contains(uint64_t address)
{
	return arena_at(address) != NULL;
}

struct capture_device *arena_device(uint64_t address)
{
	const struct arena *arena = arena_at(address);

	return arena ? arena->device : NULL;
}

/* ---- captures of streams ---- */

void arena_mode_begin(struct arena_mode *mode)
{
	mode->mode = MODE_RELAXED;
	mode->is_changed = capture_any_capturing() &&
			   cu.ThreadExchangeStreamCaptureMode(&mode->mode) == CUDA_SUCCESS_;
}

void arena_mode_end(struct arena_mode *mode)
{
	if (mode->is_changed)
		cu.ThreadExchangeStreamCaptureMode(&mode->mode);
}

int arena_may_allocate(void)
{
	uint64_t probe;
	int result;

	if (!capture_any_capturing())
		return CUDA_SUCCESS_;
	result = cu.MemAlloc(&probe, 1);
	if (result == CUDA_SUCCESS_)
		cu.MemFree(probe);
	/* The caller may find some, or frees it. */
	return result == CUDA_OUT_OF_MEMORY ? CUDA_SUCCESS_ : result;
}

/* ---- reserving ---- */

static bool has_virtual_memory(const struct capture_device *device)
{
	enum { ATTRIBUTE_VIRTUAL_MEMORY = 102 };
	int value = 0;

	return cu.DeviceGetAttribute(&value, ATTRIBUTE_VIRTUAL_MEMORY, device->ordinal) ==
		       CUDA_SUCCESS_ &&
	       value;
}

static struct cuda_allocation_prop properties(const struct capture_device *device)
{
	struct cuda_allocation_prop prop = { .type = CUDA_ALLOCATION_PINNED };

	prop.location.type = CUDA_LOCATION_DEVICE;
	prop.location.id = device->ordinal;
	return prop;
}

static bool has_page_size(const struct capture_device *device)
{
	struct cuda_allocation_prop prop = properties(device);
	size_t bytes = 0;

	return cu.MemGetAllocationGranularity(&bytes, &prop, 0) == CUDA_SUCCESS_ && bytes &&
	       ARENA_PAGE % bytes == 0;
}

/* The driver may give another range than the one asked for. */
static bool reserve(uint64_t base, uint64_t bytes)
{
	uint64_t address = 0;

	if (cu.MemAddressReserve(&address, bytes, ARENA_PAGE, base, 0))
		return false;
	if (address == base)
		return true;
	cu.MemAddressFree(address, bytes);
	return false;
}

/* Large, since allocators reserve more addresses than there is memory. */
static bool reserve_any(struct arena *arena, int ordinal)
{
	static const uint64_t bases[] = { CUDA_ARENA_BASES };

	for (arena->bytes = ARENA_BYTES; arena->bytes >= ARENA_BYTES_LEAST; arena->bytes /= 2) {
		for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
			arena->address = bases[i] + (uint64_t)ordinal * ARENA_BYTES;
			if (reserve(arena->address, arena->bytes))
				return true;
		}
	}
	return false;
}

bool arena_open(struct capture_device *device)
{
	struct arena *arena;

	if (device->ordinal >= ARENAS_AT_MOST || !has_virtual_memory(device) ||
	    !has_page_size(device))
		return false;
	arena = calloc(1, sizeof(*arena));
	if (!arena)
		return false;
	arena->device = device;
	/* The first page stays empty: no block begins where the arena does. */
	if (!reserve_any(arena, device->ordinal) ||
	    !blocks_give(&arena->addresses, arena->address + ARENA_PAGE,
			 arena->bytes - ARENA_PAGE)) {
		free(arena);
		return false;
	}
	device->arena = arena->address;
	device->arena_bytes = arena->bytes;
	__atomic_store_n(&arenas[device->ordinal], arena, __ATOMIC_RELEASE);
	return true;
}

/* ---- mapping ---- */

/* In a stream of our own: the default one may not be used while others are captured. */
static bool fill_with_zeros(uint64_t address, uint64_t bytes)
{
	void *stream;
	bool is_filled;

	if (cu.StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING))
		return false;
	is_filled = !cu.MemsetD8Async(address, 0, bytes, stream) && !cu.StreamSynchronize(stream);
	cu.StreamDestroy(stream);
	return is_filled;
}

/* The calling thread may have no context, or one of another device. */
static bool zero(const struct arena *arena, uint64_t address, uint64_t bytes)
{
	struct capture_context *context = capture_context_next(NULL);
	bool is_filled;

	while (context && context->device != arena->device)
		context = capture_context_next(context);
	if (!context || !capture_context_push(context))
		return false;
	is_filled = fill_with_zeros(address, bytes);
	capture_context_pop();
	return is_filled;
}

void arena_mapped_locked(struct arena *arena, uint64_t address, uint64_t bytes, bool is_new)
{
	if (!capture_is_open())
		return;
	if (is_new && !zero(arena, address, bytes))
		capture_fail("memory could not be filled with zeros");
	capture_mapped(arena->device, address, bytes);
}

void arena_unmapped_locked(struct arena *arena, uint64_t address, uint64_t bytes)
{
	if (capture_is_open())
		capture_unmapped(arena->device, address, bytes);
}

/* Memory of the device at an address. It belongs to the mapping alone. */
static int map(struct arena *arena, uint64_t address, uint64_t bytes)
{
	struct cuda_allocation_prop prop = properties(arena->device);
	struct cuda_access access = { .flags = CUDA_ACCESS_READ_WRITE };
	unsigned long long handle;
	int result = cu.MemCreate(&handle, bytes, &prop, 0);

	if (result)
		return result;
	access.location.type = CUDA_LOCATION_DEVICE;
	access.location.id = arena->device->ordinal;
	result = cu.MemMap(address, bytes, 0, handle, 0);
	if (!result) {
		result = cu.MemSetAccess(address, bytes, &access, 1);
		if (result)
			cu.MemUnmap(address, bytes);
	}
	cu.MemRelease(handle);
	return result;
}

uint64_t arena_map_locked(struct arena *arena, uint64_t bytes, enum arena_use use,
			  struct arena_pool *pool, int *ret_result)
{
	struct arena_piece *piece = calloc(1, sizeof(*piece));
	uint64_t address = 0;
	struct arena_mode mode;

	*ret_result = CUDA_OUT_OF_MEMORY;
	if (piece)
		address = blocks_take(&arena->addresses, bytes, ARENA_PAGE);
	if (!address) {
		free(piece);
		return 0;
	}
	*piece = (struct arena_piece){
		.range = { address, bytes }, .use = use, .is_accessible = true, .pool = pool
	};
	arena_mode_begin(&mode);
	*ret_result = map(arena, address, bytes);
	if (*ret_result == CUDA_OUT_OF_MEMORY && use != ARENA_POOL && pools_trim_locked(arena))
		*ret_result = map(arena, address, bytes);
	if (*ret_result == CUDA_OUT_OF_MEMORY && snapshot_give_memory_back &&
	    snapshot_give_memory_back(arena->device))
		*ret_result = map(arena, address, bytes);
	if (*ret_result || !table_add(&arena->pieces, &piece->range)) {
		if (!*ret_result) {
			cu.MemUnmap(address, bytes);
			*ret_result = CUDA_OUT_OF_MEMORY;
		}
		blocks_give(&arena->addresses, address, bytes);
		free(piece);
		address = 0;
	} else {
		arena_mapped_locked(arena, address, bytes, true);
	}
	arena_mode_end(&mode);
	return address;
}

void arena_unmap_locked(struct arena *arena, struct arena_piece *piece)
{
	struct arena_mode mode;

	arena_mode_begin(&mode);
	/* Addresses whose memory stays cannot be used again. */
	if (!cu.MemUnmap(piece->range.address, piece->range.bytes))
		blocks_give(&arena->addresses, piece->range.address, piece->range.bytes);
	arena_mode_end(&mode);
	arena_unmapped_locked(arena, piece->range.address, piece->range.bytes);
	table_remove(&arena->pieces, &piece->range);
	free(piece);
}

size_t arena_mappings(const struct capture_device *device, struct arena_mapping **ret_mappings)
{
	struct arena *arena = arena_of(device);
	struct arena_mapping *mappings = NULL, *last = NULL;
	size_t count = 0;

	arena_lock();
	if (arena && arena->pieces.count)
		mappings = calloc(arena->pieces.count, sizeof(*mappings));
	for (size_t i = 0; mappings && i < arena->pieces.count; i++) {
		const struct arena_piece *piece =
			(const struct arena_piece *)arena->pieces.items[i];

		if (!piece->is_accessible)
			continue;
		if (last && last->address + last->bytes == piece->range.address) {
			last->bytes += piece->range.bytes;
			continue;
		}
		last = &mappings[count++];
		*last = (struct arena_mapping){ piece->range.address, piece->range.bytes };
	}
	arena_unlock();
	*ret_mappings = mappings;
	return count;
}

uint64_t arena_mapped_bytes(const struct capture_device *device)
{
	const struct arena *arena = arena_of(device);
	uint64_t sum = 0;

	arena_lock();
	for (size_t i = 0; arena && i < arena->pieces.count; i++)
		if (((const struct arena_piece *)arena->pieces.items[i])->is_accessible)
			sum += arena->pieces.items[i]->bytes;
	arena_unlock();
	return sum;
}

/* ---- blocks ---- */

struct arena_item *arena_item_locked(uint64_t address)
{
	struct arena *arena = arena_at(address);

	return arena ? table_find(&arena->items, address) : NULL;
}

struct arena_item *arena_add_item_locked(struct arena *arena, uint64_t address, uint64_t bytes,
					 uint64_t occupied, struct capture_context *context,
					 struct arena_pool *pool)
{
	struct arena_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	*item = (struct arena_item){ .range = { address, bytes },
				     .bytes = occupied,
				     .id = ++last_id,
				     .context = context,
				     .pool = pool };
	if (table_add(&arena->items, &item->range))
		return item;
	free(item);
	return NULL;
}

void arena_remove_item_locked(struct arena *arena, struct arena_item *item)
{
	table_remove(&arena->items, &item->range);
	free(item);
}

static uint64_t take_small(struct arena *arena, uint64_t bytes, int *ret_result)
{
	uint64_t address = blocks_take(&arena->small, bytes, ARENA_ALIGNMENT), chunk;

	if (address)
		return address;
	chunk = arena_map_locked(arena, ARENA_PAGE, ARENA_CHUNK, NULL, ret_result);
	if (!chunk || !blocks_give(&arena->small, chunk, ARENA_PAGE))
		return 0;
	return blocks_take(&arena->small, bytes, ARENA_ALIGNMENT);
}

/* Returns memory of chunks; those that are empty then are unmapped. */
static void give_small(struct arena *arena, uint64_t address, uint64_t bytes)
{
	uint64_t first = address & ~(ARENA_PAGE - 1);
	uint64_t end = arena_pages(address + bytes);

	if (!blocks_give(&arena->small, address, bytes))
		return;
	for (uint64_t chunk = first; chunk < end; chunk += ARENA_PAGE)
		if (blocks_take_at(&arena->small, chunk, ARENA_PAGE))
			arena_unmap_locked(arena, table_find(&arena->pieces, chunk));
}

int arena_alloc_locked(struct arena *arena, uint64_t bytes, struct capture_context *context,
		       uint64_t *ret_address)
{
	bool is_small = bytes <= ARENA_SMALL;
	uint64_t occupied, address;
	int result = CUDA_OUT_OF_MEMORY;

	if (bytes > arena->bytes)
		return CUDA_OUT_OF_MEMORY;
	occupied = is_small ? (bytes + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1)
			    : arena_pages(bytes);
	address = is_small ? take_small(arena, occupied, &result)
			   : arena_map_locked(arena, occupied, ARENA_BLOCK, NULL, &result);
	if (!address)
		return result;
	if (!arena_add_item_locked(arena, address, bytes, occupied, context, NULL)) {
		if (is_small)
			give_small(arena, address, occupied);
		else
			arena_unmap_locked(arena, table_find(&arena->pieces, address));
		return CUDA_OUT_OF_MEMORY;
	}
	*ret_address = address;
	return CUDA_SUCCESS_;
}

void arena_free_locked(struct arena *arena, struct arena_item *item)
{
	uint64_t address = item->range.address, bytes = item->bytes;
	bool is_small = item->range.bytes <= ARENA_SMALL;

	if (item->pool) {
		pools_free_locked(arena, item, NULL);
		return;
	}
	arena_remove_item_locked(arena, item);
	if (is_small)
		give_small(arena, address, bytes);
	else
		arena_unmap_locked(arena, table_find(&arena->pieces, address));
}

void capture_memory_context_gone(struct capture_context *context)
{
	struct arena *arena = arena_of(context->device);

	if (!arena)
		return;
	capture_lock();
	arena_lock();
	for (size_t i = 0; i < arena->items.count;) {
		struct arena_item *item = (struct arena_item *)arena->items.items[i];

		if (item->context == context)
			arena_free_locked(arena, item);
		else
			i++;
	}
	pools_context_gone_locked(context);
	arena_unlock();
	capture_unlock();
}
