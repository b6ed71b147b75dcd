/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: memory of the device and of global variables, and questions about it. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/driver/ranges.h"

static int add_memory(struct context *context, uint64_t bytes, uint64_t hint, enum memory_kind kind,
		      uint64_t *ret_address)
{
	uint64_t size = round_up(bytes, 4096);
	uint64_t alignment = kind == GLOBAL_MEMORY ? 4096 : PAGE_BYTES;
	struct range range = {
		.bytes = kind == GLOBAL_MEMORY ? size : bytes,
		.kind = kind,
		.context = context,
		.is_accessible = true,
	};

	range.host = map_host(size);
	if (range.host)
		range.address = reserve_addresses(size, alignment, hint);
	if (!range.address)
		return OUT_OF_MEMORY;
	/* Fresh memory holds anything. */
	if (kind == DEVICE_MEMORY)
		memset(range.host, 0xa5, bytes < 65536 ? bytes : 65536);
	pthread_rwlock_wrlock(&ranges_lock);
	range_insert(&range);
	pthread_rwlock_unlock(&ranges_lock);
	*ret_address = range.address;
	return 0;
}

int memory_alloc(struct context *context, uint64_t bytes, uint64_t *ret_address)
{
	bool fits;

	if (!bytes)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&ranges_lock);
	fits = take_memory(round_up(bytes, 512));
	pthread_rwlock_unlock(&ranges_lock);
	return fits ? add_memory(context, bytes, 0, DEVICE_MEMORY, ret_address) : OUT_OF_MEMORY;
}

bool memory_free(uint64_t address, struct context *context)
{
	struct range *range, old;

	(void)context;
	pthread_rwlock_wrlock(&ranges_lock);
	range = range_at(address);
	if (range && (range->kind != DEVICE_MEMORY || range->address != address))
		range = NULL;
	if (range) {
		old = *range;
		used_memory -= round_up(old.bytes, 512);
		range_erase(range);
	}
	pthread_rwlock_unlock(&ranges_lock);
	if (!range)
		return false;
	munmap(old.host, round_up(old.bytes, 4096));
	munmap((void *)old.address, round_up(old.bytes, 4096));
	return true;
}

/* Waited for. */
void memory_free_all(const struct context *context)
{
	struct range *range;
	uint64_t address = 0;

	do {
		pthread_rwlock_wrlock(&ranges_lock);
		range = range_after(address);
		while (range && (range->kind != DEVICE_MEMORY || range->context != context))
			range = range_after(range->address + range->bytes);
		address = range ? range->address : 0;
		pthread_rwlock_unlock(&ranges_lock);
	} while (address && memory_free(address, NULL));
}

static uint64_t globals_next;

int globals_map(struct context *context, uint64_t bytes, uint64_t *ret_address)
{
	int result;

	if (!globals_next) {
		/* Not in the range that a program gets at other times. */
		globals_next = settings.globals;
		if (!globals_next)
			globals_next = 0x7e0000000000 +
				       (((uint64_t)getpid() * 7919 + settings.seed) % 4096 << 24);
	}
	result = add_memory(context, bytes, globals_next, GLOBAL_MEMORY, ret_address);
	globals_next += round_up(bytes, 65536) + 65536;
	return result;
}

void globals_unmap(uint64_t address)
{
	struct range *range;

	pthread_rwlock_wrlock(&ranges_lock);
	range = range_at(address);
	if (range && range->kind == GLOBAL_MEMORY) {
		munmap(range->host, range->bytes);
		munmap((void *)range->address, range->bytes);
		range_erase(range);
	}
	pthread_rwlock_unlock(&ranges_lock);
}

API cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	struct context *context = current_context();
	int error = refuse_in_capture();

	if (!context)
		return INVALID_CONTEXT;
	return error ? error : memory_alloc(context, bytes, address);
}

API cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height,
		       unsigned int element)
{
	(void)element;
	*pitch = round_up(width, 512);
	return cuMemAlloc_v2(address, *pitch * height);
}

API cuMemFree_v2(uint64_t address)
{
	struct context *context = current_context();
	int error = refuse_in_capture();

	if (!context)
		return INVALID_CONTEXT;
	if (!address || error)
		return error;
	error = wait_for_context(context);
	return error ? error : memory_free(address, context) ? 0 : INVALID_VALUE;
}

API cuMemGetInfo_v2(size_t *available, size_t *total)
{
	if (!current_context())
		return INVALID_CONTEXT;
	*available = settings.memory - used_memory;
	*total = settings.memory;
	return 0;
}

API cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address)
{
	struct range range;

	if (!memory_find(address, &range) || range.kind == REGISTERED_MEMORY)
		return NOT_FOUND;
	if (start)
		*start = range.address;
	if (bytes)
		*bytes = range.bytes;
	return 0;
}
