/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: memory. Device addresses are reserved without access: whoever uses one
 * without the driver gets SIGSEGV, as on a machine with a GPU.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/driver/driver.h"

#define PAGE ((uint64_t)2 << 20)

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
struct pool {
	int device;
	uint64_t attributes[16];
	bool is_gone;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct range *ranges; /* by address */
static size_t range_count, range_most;
static struct reservation *reservations;
static struct physical *physicals;
static struct handles pool_handles = HANDLES;
static uint64_t used, next_id, globals_next;

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

/* The range with the address; NULL. */
static struct range *range_at(uint64_t address)
{
	size_t i = find(address);

	return i < range_count && ranges[i].address <= address ? &ranges[i] : NULL;
}

static bool insert(const struct range *range)
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

static void erase(struct range *range)
{
	size_t i = (size_t)(range - ranges);

	memmove(&ranges[i], &ranges[i + 1], (range_count - i - 1) * sizeof(ranges[0]));
	range_count--;
}

bool memory_find(uint64_t address, struct range *ret_range)
{
	struct range *range;

	pthread_rwlock_rdlock(&lock);
	range = range_at(address);
	if (range)
		*ret_range = *range;
	pthread_rwlock_unlock(&lock);
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
		     at = (at / PAGE + 1) * PAGE) {
			if (at >= address - range.address + part)
				break;
			__atomic_fetch_add(&range.written[at / PAGE], 1, __ATOMIC_RELAXED);
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
	first = (address - range.address) / PAGE;
	last = (address - range.address + bytes - 1) / PAGE;
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

static uint64_t whole(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

static void *backing(uint64_t bytes)
{
	void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return host == MAP_FAILED ? NULL : host;
}

/* An address range without access, aligned; 0: none. */
static uint64_t reserve(uint64_t bytes, uint64_t alignment, uint64_t hint)
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
	address = whole((uint64_t)found, alignment);
	if (address > (uint64_t)found)
		munmap(found, address - (uint64_t)found);
	munmap((void *)(address + bytes), (uint64_t)found + alignment - address);
	return address;
}

/* No number is used twice, whatever is at an address later. */
static uint64_t *fresh_versions(uint64_t bytes)
{
	static uint64_t next;
	size_t count = whole(bytes, PAGE) / PAGE;
	uint64_t *versions = calloc(count, sizeof(versions[0]));

	for (size_t i = 0; i < count; i++)
		versions[i] = __atomic_add_fetch(&next, (uint64_t)1 << 32, __ATOMIC_RELAXED);
	return versions;
}

/* ---- allocations ---- */

/* `bytes` of the device are used or given back; false: there are not that many. */
static bool take(uint64_t bytes)
{
	bool fits = bytes <= settings.memory && used <= settings.memory - bytes;

	if (fits)
		used += bytes;
	return fits;
}

static int add_memory(struct context *context, uint64_t bytes, uint64_t hint, enum memory_kind kind,
		      uint64_t *ret_address)
{
	uint64_t size = whole(bytes, 4096);
	struct range range = {
		.bytes = kind == GLOBAL_MEMORY ? size : bytes,
		.kind = kind,
		.context = context,
		.is_accessible = true,
	};

	range.host = backing(size);
	range.address = range.host ? reserve(size, kind == GLOBAL_MEMORY ? 4096 : PAGE, hint) : 0;
	if (!range.address)
		return OUT_OF_MEMORY;
	/* Fresh memory holds anything. */
	if (kind == DEVICE_MEMORY)
		memset(range.host, 0xa5, bytes < 65536 ? bytes : 65536);
	pthread_rwlock_wrlock(&lock);
	insert(&range);
	pthread_rwlock_unlock(&lock);
	*ret_address = range.address;
	return 0;
}

int memory_alloc(struct context *context, uint64_t bytes, uint64_t *ret_address)
{
	bool fits;

	if (!bytes)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&lock);
	fits = take(whole(bytes, 512));
	pthread_rwlock_unlock(&lock);
	return fits ? add_memory(context, bytes, 0, DEVICE_MEMORY, ret_address) : OUT_OF_MEMORY;
}

bool memory_free(uint64_t address, struct context *context)
{
	struct range *range, old;

	(void)context;
	pthread_rwlock_wrlock(&lock);
	range = range_at(address);
	if (range && (range->kind != DEVICE_MEMORY || range->address != address))
		range = NULL;
	if (range) {
		old = *range;
		used -= whole(old.bytes, 512);
		erase(range);
	}
	pthread_rwlock_unlock(&lock);
	if (!range)
		return false;
	munmap(old.host, whole(old.bytes, 4096));
	munmap((void *)old.address, whole(old.bytes, 4096));
	return true;
}

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
	globals_next += whole(bytes, 65536) + 65536;
	return result;
}

void globals_unmap(uint64_t address)
{
	struct range *range;

	pthread_rwlock_wrlock(&lock);
	range = range_at(address);
	if (range && range->kind == GLOBAL_MEMORY) {
		munmap(range->host, range->bytes);
		munmap((void *)range->address, range->bytes);
		erase(range);
	}
	pthread_rwlock_unlock(&lock);
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
	*pitch = whole(width, 512);
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
	*available = settings.memory - used;
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

/* ---- in streams, and pools ---- */

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
	pthread_rwlock_wrlock(&lock);
	if (!default_pools[device])
		default_pools[device] = pool_new(device);
	*pool = default_pools[device];
	pthread_rwlock_unlock(&lock);
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
	if (!is_pool(pool) || attribute >= 16)
		return INVALID_VALUE;
	pool->attributes[attribute] = attribute <= 3 ? *(uint32_t *)value : *(uint64_t *)value;
	return 0;
}

API cuMemPoolGetAttribute(struct pool *pool, unsigned int attribute, void *value)
{
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

/* ---- virtual memory ---- */

API cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_allocation_prop *prop,
				  int option)
{
	(void)option;
	if (settings.no_vmm)
		return NOT_SUPPORTED;
	*bytes = PAGE;
	return prop->type == 1 ? 0 : INVALID_VALUE;
}

API cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t hint,
			unsigned long long flags)
{
	struct reservation *reservation;

	if (settings.no_vmm)
		return NOT_SUPPORTED;
	if (!bytes || bytes % PAGE || flags || (alignment && alignment & (alignment - 1)))
		return INVALID_VALUE;
	/* As measured: hints are ignored for small ranges. */
	*address = reserve(bytes, alignment > PAGE ? alignment : PAGE,
			   bytes >= (uint64_t)32 << 20 ? hint : 0);
	if (!*address)
		return OUT_OF_MEMORY;
	reservation = calloc(1, sizeof(*reservation));
	reservation->address = *address;
	reservation->bytes = bytes;
	pthread_rwlock_wrlock(&lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_rwlock_unlock(&lock);
	return 0;
}

API cuMemAddressFree(uint64_t address, size_t bytes)
{
	struct reservation **at, *found = NULL;

	pthread_rwlock_wrlock(&lock);
	for (at = &reservations; *at; at = &(*at)->next) {
		if ((*at)->address == address && (*at)->bytes == bytes) {
			found = *at;
			*at = found->next;
			break;
		}
	}
	pthread_rwlock_unlock(&lock);
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

/* `lock` is held. */
static void drop(struct physical *physical)
{
	if (--physical->users)
		return;
	used -= physical->bytes;
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
	if (!bytes || bytes % PAGE || flags || prop->type != 1 || prop->location.type != 1 ||
	    prop->location.id < 0 || prop->location.id >= settings.devices)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&lock);
	fits = take(bytes);
	pthread_rwlock_unlock(&lock);
	if (!fits)
		return OUT_OF_MEMORY;
	physical = calloc(1, sizeof(*physical));
	physical->host = backing(bytes);
	physical->written = fresh_versions(bytes);
	physical->bytes = bytes;
	physical->device = prop->location.id;
	physical->users = 1;
	/* Fresh memory holds anything. */
	memset(physical->host, 0x5a, 65536);
	memset(physical->host + bytes - 4096, 0x5a, 4096);
	pthread_rwlock_wrlock(&lock);
	physical->next = physicals;
	physicals = physical;
	pthread_rwlock_unlock(&lock);
	*handle = (uintptr_t)physical;
	return 0;
}

API cuMemRelease(unsigned long long handle)
{
	struct physical *physical;

	pthread_rwlock_wrlock(&lock);
	physical = physical_of(handle);
	if (physical && !physical->is_released) {
		physical->is_released = true;
		drop(physical);
	} else if (physical && physical->users) {
		physical = NULL;
	}
	pthread_rwlock_unlock(&lock);
	return physical ? 0 : INVALID_VALUE;
}

API cuMemRetainAllocationHandle(unsigned long long *handle, void *address)
{
	struct range *range;

	pthread_rwlock_wrlock(&lock);
	range = range_at((uintptr_t)address);
	if (range && range->kind == MAPPED_MEMORY) {
		struct physical *physical = range->owner;

		physical->is_released = false;
		physical->users++;
		*handle = (uintptr_t)physical;
	} else {
		range = NULL;
	}
	pthread_rwlock_unlock(&lock);
	return range ? 0 : INVALID_VALUE;
}

API cuMemGetAllocationPropertiesFromHandle(struct cuda_allocation_prop *prop,
					   unsigned long long handle)
{
	struct physical *physical;

	pthread_rwlock_rdlock(&lock);
	physical = physical_of(handle);
	if (physical) {
		memset(prop, 0, sizeof(*prop));
		prop->type = 1;
		prop->location.type = 1;
		prop->location.id = physical->device;
	}
	pthread_rwlock_unlock(&lock);
	return physical ? 0 : INVALID_VALUE;
}

API cuMemMap(uint64_t address, size_t bytes, size_t offset, unsigned long long handle,
	     unsigned long long flags)
{
	struct range range = { .address = address, .bytes = bytes, .kind = MAPPED_MEMORY };
	struct physical *physical;
	bool is_reserved = false;
	int result = INVALID_VALUE;

	if (flags || !bytes || bytes % PAGE || address % PAGE || offset)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&lock);
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
		if (insert(&range)) {
			physical->users++;
			result = 0;
		}
	}
	pthread_rwlock_unlock(&lock);
	return result;
}

/* Mappings from `address` on that fill `bytes` exactly. `lock` is held. */
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

	pthread_rwlock_wrlock(&lock);
	is_right = bytes && are_mappings(address, bytes);
	for (uint64_t at = address; is_right && at < address + bytes;) {
		struct range *range = range_at(at);

		at += range->bytes;
		drop(range->owner);
		erase(range);
	}
	pthread_rwlock_unlock(&lock);
	return is_right ? 0 : INVALID_VALUE;
}

API cuMemSetAccess(uint64_t address, size_t bytes, const struct cuda_access *access, size_t count)
{
	bool is_right;

	pthread_rwlock_wrlock(&lock);
	is_right = bytes && count && are_mappings(address, bytes);
	for (uint64_t at = address; is_right && at < address + bytes;) {
		struct range *range = range_at(at);

		at += range->bytes;
		range->is_accessible = access[0].flags == 3;
	}
	pthread_rwlock_unlock(&lock);
	return is_right ? 0 : INVALID_VALUE;
}

API cuMemGetAccess(unsigned long long *flags, const void *location, uint64_t address)
{
	struct range range;

	(void)location;
	*flags = memory_find(address, &range) && range.is_accessible ? 3 : 0;
	return 0;
}

/* ---- host memory ---- */

static int pinned(void **address, size_t bytes, unsigned int flags)
{
	struct range range = { .bytes = bytes, .kind = PINNED_MEMORY, .is_accessible = true };

	if (!current_context())
		return INVALID_CONTEXT;
	if (!bytes)
		return INVALID_VALUE;
	range.host = backing(whole(bytes, 4096));
	range.address = (uintptr_t)range.host;
	range.context = current_context();
	range.flags = flags;
	pthread_rwlock_wrlock(&lock);
	insert(&range);
	pthread_rwlock_unlock(&lock);
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

	if (!context)
		return INVALID_CONTEXT;
	(void)wait_for_context(context);
	pthread_rwlock_wrlock(&lock);
	range = range_at((uintptr_t)address);
	if (range && (range->kind != PINNED_MEMORY || range->host != address))
		range = NULL;
	if (range) {
		old = *range;
		erase(range);
	}
	pthread_rwlock_unlock(&lock);
	if (!range)
		return INVALID_VALUE;
	munmap(old.host, whole(old.bytes, 4096));
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
	bool is_new;

	if (!range.context)
		return INVALID_CONTEXT;
	if (!address || !bytes)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&lock);
	is_new = insert(&range);
	pthread_rwlock_unlock(&lock);
	return is_new ? 0 : ALREADY_REGISTERED;
}

API cuMemHostUnregister(void *address)
{
	struct range *range;

	pthread_rwlock_wrlock(&lock);
	range = range_at((uintptr_t)address);
	if (range && (range->kind != REGISTERED_MEMORY || range->host != address))
		range = NULL;
	if (range)
		erase(range);
	pthread_rwlock_unlock(&lock);
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

/* ---- attributes of pointers ---- */

API cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
	struct range range;

	if (!memory_find(address, &range))
		return INVALID_VALUE;
	switch (attribute) {
	case 1:
		*(void **)value = range.context;
		return range.context ? 0 : INVALID_VALUE;
	case 2:
		*(uint32_t *)value = range.kind >= PINNED_MEMORY ? 1 : 2;
		return 0;
	case 3:
		*(uint64_t *)value = address;
		return 0;
	case 4:
		if (range.kind < PINNED_MEMORY)
			return INVALID_VALUE;
		*(uint64_t *)value = address;
		return 0;
	case 6:
	case 8:
		*(uint32_t *)value = 0;
		return 0;
	case 7:
		*(uint64_t *)value = range.id;
		return 0;
	case 9:
		*(int *)value = range.context ? range.context->device : 0;
		return 0;
	case 10:
		*(uint32_t *)value = range.kind == DEVICE_MEMORY;
		return 0;
	case 11:
		*(uint64_t *)value = range.address;
		return 0;
	case 12:
		*(size_t *)value = range.bytes;
		return 0;
	case 13:
		*(uint32_t *)value = 1;
		return 0;
	case 14:
	case 17:
		*(uint64_t *)value = 0;
		return 0;
	default:
		return INVALID_VALUE;
	}
}

API cuPointerGetAttributes(unsigned int count, const int *attributes, void **values,
			   uint64_t address)
{
	for (unsigned int i = 0; i < count; i++) {
		if (cuPointerGetAttribute(values[i], attributes[i], address))
			memset(values[i], 0, attributes[i] == 2 || attributes[i] == 9 ? 4 : 8);
	}
	return 0;
}
