/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: pinned and registered memory of the host. */
#include <sys/mman.h>

#include "cuda/driver/ranges.h"

static int pinned(void **address, size_t bytes, unsigned int flags)
{
	struct range range = { .bytes = bytes, .kind = PINNED_MEMORY, .is_accessible = true };
	int error;

	if (!current_context())
		return INVALID_CONTEXT;
	if (!bytes)
		return INVALID_VALUE;
	error = refuse_in_capture();
	if (error)
		return error;
	range.host = map_host(round_up(bytes, 4096));
	range.address = (uintptr_t)range.host;
	range.context = current_context();
	range.flags = flags;
	pthread_rwlock_wrlock(&ranges_lock);
	range_insert(&range);
	pthread_rwlock_unlock(&ranges_lock);
	*address = range.host;
	return 0;
}

API cuMemAllocHost_v2(void **address, size_t bytes)
{
	return pinned(address, bytes, 0);
}

API cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
	return pinned(address, bytes, flags);
}

API cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned int flags)
{
	return pinned((void **)address, bytes, flags);
}

API cuMemFreeHost(void *address)
{
	struct range *range, old;
	struct context *context = current_context();

	int error = refuse_in_capture();

	if (!context)
		return INVALID_CONTEXT;
	if (error)
		return error;
	(void)wait_for_context(context);
	pthread_rwlock_wrlock(&ranges_lock);
	range = range_at((uintptr_t)address);
	if (range && (range->kind != PINNED_MEMORY || range->host != address))
		range = NULL;
	if (range) {
		old = *range;
		range_erase(range);
	}
	pthread_rwlock_unlock(&ranges_lock);
	if (!range)
		return INVALID_VALUE;
	munmap(old.host, round_up(old.bytes, 4096));
	return 0;
}

API cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
	struct range range = {
		.address = (uintptr_t)address,
		.bytes = bytes,
		.host = address,
		.kind = REGISTERED_MEMORY,
		.flags = flags,
		.is_accessible = true,
		.context = current_context(),
	};
	int error = refuse_in_capture();
	bool is_new;

	if (!range.context)
		return INVALID_CONTEXT;
	if (!address || !bytes)
		return INVALID_VALUE;
	if (error)
		return error;
	pthread_rwlock_wrlock(&ranges_lock);
	is_new = range_insert(&range);
	pthread_rwlock_unlock(&ranges_lock);
	return is_new ? 0 : ALREADY_REGISTERED;
}

API cuMemHostUnregister(void *address)
{
	struct range *range;
	int error = refuse_in_capture();

	if (!current_context())
		return INVALID_CONTEXT;
	if (error)
		return error;
	(void)wait_for_context(current_context());
	pthread_rwlock_wrlock(&ranges_lock);
	range = range_at((uintptr_t)address);
	if (range && (range->kind != REGISTERED_MEMORY || range->host != address))
		range = NULL;
	if (range)
		range_erase(range);
	pthread_rwlock_unlock(&ranges_lock);
	return range ? 0 : NOT_REGISTERED;
}

API cuMemHostGetDevicePointer_v2(uint64_t *ret_address, void *address, unsigned int flags)
{
	struct range range;

	if (flags || !memory_find((uintptr_t)address, &range) || range.kind < PINNED_MEMORY)
		return INVALID_VALUE;
	*ret_address = (uintptr_t)address;
	return 0;
}

API cuMemHostGetFlags(unsigned int *flags, void *address)
{
	struct range range;

	if (!memory_find((uintptr_t)address, &range) || range.kind < PINNED_MEMORY)
		return INVALID_VALUE;
	*flags = range.flags;
	return 0;
}
