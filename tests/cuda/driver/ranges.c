/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: which addresses mean what, and access to them. Device addresses are reserved
 * without access: whoever uses one without the driver gets SIGSEGV, as on a machine with a GPU.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/driver/ranges.h"

pthread_rwlock_t ranges_lock = PTHREAD_RWLOCK_INITIALIZER;
uint64_t used_memory;
static struct range *ranges; /* by address */
static size_t range_count, range_most;
static uint64_t next_id;

static size_t find(uint64_t address)
{
	size_t from = 0, to = range_count;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (ranges[middle].address + ranges[middle].bytes <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

struct range *range_at(uint64_t address)
{
	size_t i = find(address);

	return i < range_count && ranges[i].address <= address ? &ranges[i] : NULL;
}

struct range *range_after(uint64_t address)
{
	size_t i = find(address);

	return i < range_count ? &ranges[i] : NULL;
}

bool range_insert(const struct range *range)
{
	size_t i = find(range->address);

	if (i < range_count && ranges[i].address < range->address + range->bytes)
		return false;
	if (range_count == range_most) {
		range_most = range_most ? range_most * 2 : 64;
		ranges = realloc(ranges, range_most * sizeof(ranges[0]));
	}
	memmove(&ranges[i + 1], &ranges[i], (range_count - i) * sizeof(ranges[0]));
	ranges[i] = *range;
	ranges[i].id = ++next_id;
	range_count++;
	return true;
}

void range_erase(struct range *range)
{
	size_t i = (size_t)(range - ranges);

	memmove(&ranges[i], &ranges[i + 1], (range_count - i - 1) * sizeof(ranges[0]));
	range_count--;
}

bool memory_find(uint64_t address, struct range *ret_range)
{
	struct range *range;

	pthread_rwlock_rdlock(&ranges_lock);
	range = range_at(address);
	if (range)
		*ret_range = *range;
	pthread_rwlock_unlock(&ranges_lock);
	return range;
}

void *memory_at(uint64_t address, uint64_t bytes)
{
	struct range range;

	if (!memory_find(address, &range) || !range.is_accessible ||
	    bytes > range.address + range.bytes - address)
		return NULL;
	return range.host + (address - range.address);
}

static bool transfer(void *host, uint64_t address, uint64_t bytes, int direction)
{
	while (bytes) {
		struct range range;
		uint64_t part;

		if (!memory_find(address, &range) || !range.is_accessible)
			return false;
		part = range.address + range.bytes - address;
		if (part > bytes)
			part = bytes;
		for (uint64_t at = address - range.address; direction > 0 && range.written;
		     at = (at / PAGE_BYTES + 1) * PAGE_BYTES) {
			if (at >= address - range.address + part)
				break;
			__atomic_fetch_add(&range.written[at / PAGE_BYTES], 1, __ATOMIC_RELAXED);
		}
		if (direction > 0)
			memmove(range.host + (address - range.address), host, part);
		if (direction < 0)
			memmove(host, range.host + (address - range.address), part);
		if (host)
			host = (char *)host + part;
		address += part;
		bytes -= part;
	}
	return true;
}

uint64_t memory_version(uint64_t address, uint64_t bytes)
{
	struct range range;
	uint64_t first, last;

	if (!memory_find(address, &range) || !range.written ||
	    address + bytes > range.address + range.bytes)
		return 0;
	first = (address - range.address) / PAGE_BYTES;
	last = (address - range.address + bytes - 1) / PAGE_BYTES;
	return range.written[first] + (last == first ? 0 : range.written[last]);
}

bool memory_is_valid(uint64_t address, uint64_t bytes)
{
	return transfer(NULL, address, bytes, 0);
}

bool memory_read(void *to, uint64_t from, uint64_t bytes)
{
	return transfer(to, from, bytes, -1);
}

bool memory_write(uint64_t to, const void *from, uint64_t bytes)
{
	return transfer((void *)(uintptr_t)from, to, bytes, 1);
}

bool is_device_address(uint64_t address)
{
	struct range range;

	return memory_find(address, &range) && range.kind <= GLOBAL_MEMORY;
}

uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

void *map_host(uint64_t bytes)
{
	void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return host == MAP_FAILED ? NULL : host;
}

uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment, uint64_t hint)
{
	void *found;
	uint64_t address;

	if (hint && hint % alignment == 0) {
		found = mmap((void *)hint, bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			     0);
		if (found == (void *)hint)
			return hint;
		if (found != MAP_FAILED)
			munmap(found, bytes);
	}
	found = mmap(NULL, bytes + alignment, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (found == MAP_FAILED)
		return 0;
	address = round_up((uint64_t)found, alignment);
	if (address > (uint64_t)found)
		munmap(found, address - (uint64_t)found);
	munmap((void *)(address + bytes), (uint64_t)found + alignment - address);
	return address;
}

uint64_t *fresh_versions(uint64_t bytes)
{
	static uint64_t next;
	size_t count = round_up(bytes, PAGE_BYTES) / PAGE_BYTES;
	uint64_t *versions = calloc(count, sizeof(versions[0]));

	for (size_t i = 0; i < count; i++)
		versions[i] = __atomic_add_fetch(&next, (uint64_t)1 << 32, __ATOMIC_RELAXED);
	return versions;
}

bool take_memory(uint64_t bytes)
{
	bool fits = bytes <= settings.memory && used_memory <= settings.memory - bytes;

	if (fits)
		used_memory += bytes;
	return fits;
}
