/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: reserved addresses, physical memory, and the mappings of one at the other.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/driver/ranges.h"

struct physical {
	uint8_t *host;
	uint64_t bytes;
	uint64_t *written;
	size_t users; /* the handle, and each mapping */
	int device;
	bool is_released;
	struct physical *next;
};
struct reservation {
	struct reservation *next;
	uint64_t address, bytes;
};

static struct reservation *reservations;
static struct physical *physicals;

API cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_allocation_prop *prop,
				  int option)
{
	(void)option;
	if (settings.no_vmm)
		return NOT_SUPPORTED;
	*bytes = PAGE_BYTES;
	return prop->type == 1 ? 0 : INVALID_VALUE;
}

API cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t hint,
			unsigned long long flags)
{
	struct reservation *reservation;

	if (settings.no_vmm)
		return NOT_SUPPORTED;
	if (!bytes || bytes % PAGE_BYTES || flags || (alignment && alignment & (alignment - 1)))
		return INVALID_VALUE;
	/* As measured: hints are ignored for small ranges. */
	*address = reserve_addresses(bytes, alignment > PAGE_BYTES ? alignment : PAGE_BYTES,
				     bytes >= (uint64_t)32 << 20 ? hint : 0);
	if (!*address)
		return OUT_OF_MEMORY;
	reservation = calloc(1, sizeof(*reservation));
	reservation->address = *address;
	reservation->bytes = bytes;
	pthread_rwlock_wrlock(&ranges_lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_rwlock_unlock(&ranges_lock);
	return 0;
}

API cuMemAddressFree(uint64_t address, size_t bytes)
{
	struct reservation **at, *found = NULL;

	pthread_rwlock_wrlock(&ranges_lock);
	for (at = &reservations; *at; at = &(*at)->next) {
		if ((*at)->address == address && (*at)->bytes == bytes) {
			found = *at;
			*at = found->next;
			break;
		}
	}
	pthread_rwlock_unlock(&ranges_lock);
	if (!found)
		return INVALID_VALUE;
	munmap((void *)address, bytes);
	free(found);
	return 0;
}

static struct physical *physical_of(unsigned long long handle)
{
	for (struct physical *each = physicals; each; each = each->next) {
		if ((uintptr_t)each == handle)
			return each;
	}
	return NULL;
}

/* `ranges_lock` is held. */
static void drop(struct physical *physical)
{
	if (--physical->users)
		return;
	used_memory -= physical->bytes;
	munmap(physical->host, physical->bytes);
	free(physical->written);
	for (struct physical **at = &physicals; *at; at = &(*at)->next) {
		if (*at == physical) {
			*at = physical->next;
			break;
		}
	}
	free(physical);
}

API cuMemCreate(unsigned long long *handle, size_t bytes, const struct cuda_allocation_prop *prop,
		unsigned long long flags)
{
	struct physical *physical;
	bool fits;

	if (settings.no_vmm)
		return NOT_SUPPORTED;
	if (!bytes || bytes % PAGE_BYTES || flags || prop->type != 1 || prop->location.type != 1 ||
	    prop->location.id < 0 || prop->location.id >= settings.devices)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&ranges_lock);
	fits = take_memory(bytes);
	pthread_rwlock_unlock(&ranges_lock);
	if (!fits)
		return OUT_OF_MEMORY;
	physical = calloc(1, sizeof(*physical));
	physical->host = map_host(bytes);
	physical->written = fresh_versions(bytes);
	physical->bytes = bytes;
	physical->device = prop->location.id;
	physical->users = 1;
	/* Fresh memory holds anything. */
	memset(physical->host, 0x5a, 65536);
	memset(physical->host + bytes - 4096, 0x5a, 4096);
	pthread_rwlock_wrlock(&ranges_lock);
	physical->next = physicals;
	physicals = physical;
	pthread_rwlock_unlock(&ranges_lock);
	*handle = (uintptr_t)physical;
	return 0;
}

API cuMemRelease(unsigned long long handle)
{
	struct physical *physical;

	pthread_rwlock_wrlock(&ranges_lock);
	physical = physical_of(handle);
	if (physical && !physical->is_released) {
		physical->is_released = true;
		drop(physical);
	} else if (physical && physical->users) {
		physical = NULL;
	}
	pthread_rwlock_unlock(&ranges_lock);
	return physical ? 0 : INVALID_VALUE;
}

API cuMemRetainAllocationHandle(unsigned long long *handle, void *address)
{
	struct range *range;

	pthread_rwlock_wrlock(&ranges_lock);
	range = range_at((uintptr_t)address);
	if (range && range->kind == MAPPED_MEMORY) {
		struct physical *physical = range->owner;

		physical->is_released = false;
		physical->users++;
		*handle = (uintptr_t)physical;
	} else {
		range = NULL;
	}
	pthread_rwlock_unlock(&ranges_lock);
	return range ? 0 : INVALID_VALUE;
}

API cuMemGetAllocationPropertiesFromHandle(struct cuda_allocation_prop *prop,
					   unsigned long long handle)
{
	struct physical *physical;

	pthread_rwlock_rdlock(&ranges_lock);
	physical = physical_of(handle);
	if (physical) {
		memset(prop, 0, sizeof(*prop));
		prop->type = 1;
		prop->location.type = 1;
		prop->location.id = physical->device;
	}
	pthread_rwlock_unlock(&ranges_lock);
	return physical ? 0 : INVALID_VALUE;
}

API cuMemMap(uint64_t address, size_t bytes, size_t offset, unsigned long long handle,
	     unsigned long long flags)
{
	struct range range = { .address = address, .bytes = bytes, .kind = MAPPED_MEMORY };
	struct physical *physical;
	bool is_reserved = false;
	int result = INVALID_VALUE;

	if (flags || !bytes || bytes % PAGE_BYTES || address % PAGE_BYTES || offset)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&ranges_lock);
	physical = physical_of(handle);
	for (struct reservation *each = reservations; each; each = each->next) {
		if (address >= each->address && address + bytes <= each->address + each->bytes)
			is_reserved = true;
	}
	/* A mapping is of a whole handle. */
	if (physical && is_reserved && bytes == physical->bytes) {
		range.host = physical->host;
		range.owner = physical;
		range.written = physical->written;
		if (range_insert(&range)) {
			physical->users++;
			result = 0;
		}
	}
	pthread_rwlock_unlock(&ranges_lock);
	return result;
}

/* Mappings from `address` on that fill `bytes` exactly. `ranges_lock` is held. */
static bool are_mappings(uint64_t address, uint64_t bytes)
{
	uint64_t at = address;

	while (at < address + bytes) {
		struct range *range = range_at(at);

		if (!range || range->kind != MAPPED_MEMORY || range->address != at)
			return false;
		at += range->bytes;
	}
	return at == address + bytes;
}

API cuMemUnmap(uint64_t address, size_t bytes)
{
	bool is_right;

	pthread_rwlock_wrlock(&ranges_lock);
	is_right = bytes && are_mappings(address, bytes);
	for (uint64_t at = address; is_right && at < address + bytes;) {
		struct range *range = range_at(at);

		at += range->bytes;
		drop(range->owner);
		range_erase(range);
	}
	pthread_rwlock_unlock(&ranges_lock);
	return is_right ? 0 : INVALID_VALUE;
}

API cuMemSetAccess(uint64_t address, size_t bytes, const struct cuda_access *access, size_t count)
{
	bool is_right;

	pthread_rwlock_wrlock(&ranges_lock);
	is_right = bytes && count && are_mappings(address, bytes);
	for (uint64_t at = address; is_right && at < address + bytes;) {
		struct range *range = range_at(at);

		at += range->bytes;
		range->is_accessible = access[0].flags == 3;
	}
	pthread_rwlock_unlock(&ranges_lock);
	return is_right ? 0 : INVALID_VALUE;
}

API cuMemGetAccess(unsigned long long *flags, const void *location, uint64_t address)
{
	struct range range;

	(void)location;
	*flags = memory_find(address, &range) && range.is_accessible ? 3 : 0;
	return 0;
}
