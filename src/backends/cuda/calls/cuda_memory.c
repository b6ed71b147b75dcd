/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program has allocated: rows of `allocation`, with the memory in use after each.
 * The table of live allocations has its own mapping and a lock that is held for a few instructions;
 * a forked child never uses it.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cuda/calls/cuda_calls.h"

#define SLOTS_FIRST 4096u
#define DEVICES 64u
#define LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */

/* Separate address spaces: an address may also be a handle, or a registered pointer. */
enum space { SPACE_DEVICE = 1, SPACE_HOST, SPACE_REGISTERED, SPACE_PHYSICAL };

struct block {
	uint64_t address;
	int64_t bytes;
	const void *context;
	uint32_t device; /* TS_ALLOCATION_HOST: host memory */
	uint8_t space;   /* 0: the slot is free */
	uint8_t site;
};

static struct {
	struct block *slots;
	uint64_t slot_count, used;
	int64_t device_total[DEVICES], host_total;
	uint32_t is_locked;
} memory;

enum { SITE_DEVICE, SITE_MANAGED, SITE_POOL, SITE_PINNED, SITE_REGISTERED, SITE_PHYSICAL };
static struct ts_emit_site sites[] = {
	[SITE_DEVICE] = TS_ALLOCATION_SITE("device", "cuda"),
	[SITE_MANAGED] = TS_ALLOCATION_SITE("managed", "cuda"),
	[SITE_POOL] = TS_ALLOCATION_SITE("pool", "cuda"),
	[SITE_PINNED] = TS_ALLOCATION_SITE("pinned", "cuda"),
	[SITE_REGISTERED] = TS_ALLOCATION_SITE("registered", "cuda"),
	[SITE_PHYSICAL] = TS_ALLOCATION_SITE("physical", "cuda"),
};

/* ---- meaning of calls, by name without version ---- */

static const struct allocator {
	const char *name;
	uint8_t space;
	uint8_t site;
	bool is_free;
} allocators[] = {
	{ "cuMemAllocFromPoolAsync", SPACE_DEVICE, SITE_POOL, false },
	{ "cuMemAllocAsync", SPACE_DEVICE, SITE_POOL, false },
	{ "cuMemAllocManaged", SPACE_DEVICE, SITE_MANAGED, false },
	{ "cuMemAllocHost", SPACE_HOST, SITE_PINNED, false },
	{ "cuMemAllocPitch", SPACE_DEVICE, SITE_DEVICE, false },
	{ "cuMemAlloc", SPACE_DEVICE, SITE_DEVICE, false },
	{ "cuMemHostAlloc", SPACE_HOST, SITE_PINNED, false },
	{ "cuMemHostRegister", SPACE_REGISTERED, SITE_REGISTERED, false },
	{ "cuMemCreate", SPACE_PHYSICAL, SITE_PHYSICAL, false },
	{ "cuMemFreeHost", SPACE_HOST, SITE_PINNED, true },
	{ "cuMemFreeAsync", SPACE_DEVICE, SITE_POOL, true },
	{ "cuMemFree", SPACE_DEVICE, SITE_DEVICE, true },
	{ "cuMemHostUnregister", SPACE_REGISTERED, SITE_REGISTERED, true },
	{ "cuMemRelease", SPACE_PHYSICAL, SITE_PHYSICAL, true },
};

static const struct allocator *allocator_of(const char *name)
{
	for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++) {
		size_t length = strlen(allocators[i].name);

		if (!strncmp(name, allocators[i].name, length) &&
		    (!name[length] || name[length] == '_'))
			return &allocators[i];
	}
	return NULL; /* arrays: only the driver knows their sizes */
}

/* The first versions of these have 32-bit addresses. */
static bool is_narrow(const struct cuda_call *call)
{
	return call == &cuda_calls[CUDA_INDEX_cuMemAlloc] ||
	       call == &cuda_calls[CUDA_INDEX_cuMemAllocPitch];
}

static uint64_t load(uintptr_t from, bool narrow)
{
	uint64_t wide = 0;

	if (from)
		memcpy(&wide, (const void *)from, narrow ? sizeof(uint32_t) : sizeof(wide));
	return wide;
}

static int64_t bytes_of(const struct cuda_call *call, const uintptr_t *args)
{
	bool narrow = is_narrow(call);
	uint64_t bytes;

	if (call == &cuda_calls[CUDA_INDEX_cuMemAllocPitch] ||
	    call == &cuda_calls[CUDA_INDEX_cuMemAllocPitch_v2]) {
		uint64_t height = narrow ? (uint32_t)args[3] : args[3];

		if (__builtin_mul_overflow(load(args[1], narrow), height, &bytes))
			return TS_UNKNOWN;
	} else {
		bytes = narrow ? (uint32_t)args[1] : args[1];
	}
	return bytes > INT64_MAX ? TS_UNKNOWN : (int64_t)bytes;
}

/* ---- where: the current context and its device ---- */

static uint32_t current_device(const void **ret_context)
{
	static __thread void *known __attribute__((tls_model("initial-exec")));
	static __thread uint32_t known_device __attribute__((tls_model("initial-exec")));
	static int (*get_current)(void **context);
	static int (*get_device)(int *device);
	void *context = NULL;
	int device = 0;

	if (!get_current)
		get_current = (int (*)(void **))cuda_driver("cuCtxGetCurrent");
	if (!get_device)
		get_device = (int (*)(int *))cuda_driver("cuCtxGetDevice");
	cuda_thread.is_ours++;
	if (get_current && get_device && !get_current(&context) && context && context != known &&
	    !get_device(&device)) {
		known = context;
		known_device = (uint32_t)device;
	}
	cuda_thread.is_ours--;
	*ret_context = context;
	return context && context == known ? known_device : 0;
}

/* CUmemAllocationProp: two numbers, then the location. */
static uint32_t physical_device(uintptr_t properties)
{
	int32_t args[4] = { 0 };

	if (properties)
		memcpy(args, (const void *)properties, sizeof(args));
	return args[2] == LOCATION_DEVICE ? (uint32_t)args[3] : TS_ALLOCATION_HOST;
}

/* ---- the table; all with the lock held ---- */

static void lock(void)
{
	while (__atomic_exchange_n(&memory.is_locked, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&memory.is_locked, 0, __ATOMIC_RELEASE);
}

static uint64_t slot_of(uint64_t address, uint8_t space, uint64_t slot_count)
{
	return ((address >> 8 ^ address ^ space) * 0x9e3779b97f4a7c15u >> 20) & (slot_count - 1);
}

/* The slot of that block, or the free slot for it. */
static struct block *find(struct block *slots, uint64_t slot_count, uint64_t address, uint8_t space)
{
	uint64_t at = slot_of(address, space, slot_count);

	while (slots[at].space && (slots[at].address != address || slots[at].space != space))
		at = (at + 1) & (slot_count - 1);
	return &slots[at];
}

/* Makes a new table, without the blocks of `gone`. False: no memory, and the old table stays. */
static bool rebuild(uint64_t slot_count, const void *gone)
{
	size_t bytes = slot_count * sizeof(struct block);
	struct block *slots =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slots == MAP_FAILED)
		return false;
	memory.used = 0;
	for (uint64_t i = 0; memory.slots && i < memory.slot_count; i++) {
		const struct block *block = &memory.slots[i];

		if (!block->space || (gone && block->context == gone))
			continue;
		*find(slots, slot_count, block->address, block->space) = *block;
		memory.used++;
	}
	if (memory.slots)
		munmap(memory.slots, memory.slot_count * sizeof(struct block));
	memory.slots = slots;
	memory.slot_count = slot_count;
	return true;
}

static bool has_free_slot(void)
{
	if (!memory.slots)
		return rebuild(SLOTS_FIRST, NULL);
	return memory.used < memory.slot_count / 4 * 3 || rebuild(memory.slot_count * 2, NULL);
}

/* Moves later blocks of the probe sequence into the gap. */
static void erase(struct block *block)
{
	uint64_t mask = memory.slot_count - 1;
	uint64_t hole = (uint64_t)(block - memory.slots), at = hole;

	for (;;) {
		uint64_t home;

		at = (at + 1) & mask;
		if (!memory.slots[at].space)
			break;
		home = slot_of(memory.slots[at].address, memory.slots[at].space, memory.slot_count);
		if (((at - home) & mask) >= ((at - hole) & mask)) {
			memory.slots[hole] = memory.slots[at];
			hole = at;
		}
	}
	memory.slots[hole].space = 0;
	memory.used--;
}

static int64_t *total_of(uint32_t device)
{
	return device < DEVICES ? &memory.device_total[device] : &memory.host_total;
}

static int64_t change_total(const struct block *block, int sign)
{
	int64_t *total = total_of(block->device);

	if (block->bytes != TS_UNKNOWN)
		*total += sign * block->bytes;
	return *total;
}

/* Both return the memory in use afterwards. */
static int64_t store(const struct block *block)
{
	int64_t total;

	lock();
	if (has_free_slot()) {
		struct block *slot =
			find(memory.slots, memory.slot_count, block->address, block->space);

		/* A block whose free we did not see. */
		if (slot->space)
			change_total(slot, -1);
		else
			memory.used++;
		*slot = *block;
		total = change_total(block, 1);
	} else {
		total = TS_UNKNOWN;
	}
	unlock();
	return total;
}

/* `block` has address and space; fills in the rest, as far as known. */
static int64_t take_out(struct block *block)
{
	int64_t total = TS_UNKNOWN;
	struct block *slot;

	lock();
	slot = memory.slots ? find(memory.slots, memory.slot_count, block->address, block->space)
			    : NULL;
	if (slot && slot->space) {
		*block = *slot;
		total = change_total(block, -1);
		erase(slot);
	}
	unlock();
	return total;
}

/*
 * Blocks of that context or, without one, all blocks of that device. A table that cannot be rebuilt
 * keeps them, without a size.
 */
void cuda_memory_forget(const void *context, uint32_t device)
{
	lock();
	for (uint64_t i = 0; memory.slots && i < memory.slot_count; i++) {
		struct block *block = &memory.slots[i];

		if (!block->space || block->space == SPACE_PHYSICAL ||
		    (context ? block->context != context : block->device != device))
			continue;
		change_total(block, -1);
		block->bytes = TS_UNKNOWN;
		block->context = &memory; /* matches no context */
	}
	if (memory.slots)
		rebuild(memory.slot_count, &memory);
	unlock();
}

/* ---- rows ---- */

static void emit(const struct cuda_call *call, const uintptr_t *args, const struct block *block,
		 bool is_free, int64_t total, uint32_t stack)
{
	struct ts_accelerator_allocation row = { .size = sizeof(row),
						 .device = block->device,
						 .stream = UINT32_MAX,
						 .is_free = is_free,
						 .stack = stack,
						 .address = block->address,
						 .bytes = block->bytes,
						 .total = total,
						 .reserved = TS_UNKNOWN };

	if (!ts_enabled())
		return;
	if (call->stream >= 0)
		row.stream = cuda_stream_number((void *)args[call->stream], &row.context);
	ts_accelerator_allocation(&sites[block->site], &row);
}

void cuda_memory_changed(const struct cuda_call *call, const uintptr_t *args, uint32_t stack)
{
	const struct allocator *allocator = allocator_of(call->name);
	struct block block = { .bytes = TS_UNKNOWN };
	int64_t total;
	int saved = errno;

	if (!allocator)
		return;
	block.space = allocator->space;
	block.site = allocator->site;
	block.device = current_device(&block.context);
	if (allocator->space == SPACE_HOST || allocator->space == SPACE_REGISTERED)
		block.device = TS_ALLOCATION_HOST;
	if (allocator->is_free || allocator->space == SPACE_REGISTERED)
		block.address = args[0];
	else
		block.address = load(args[0], is_narrow(call));
	if (!allocator->is_free) {
		block.bytes = bytes_of(call, args);
		if (allocator->space == SPACE_PHYSICAL) {
			block.device = physical_device(args[2]);
			block.context = NULL;
		}
	}
	if (block.address) { /* freeing NULL is not an event */
		total = allocator->is_free ? take_out(&block) : store(&block);
		emit(call, args, &block, allocator->is_free, total, stack);
	}
	errno = saved;
}
