/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the device can read: pinned memory, which comes from a fixed range of addresses,
 * and registered memory (docs/cuda-replay.md, 2.2 and 3.3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/stream/cuda_host_memory.h"
#include "base/local/stream_text.h"

/*
 * Two 32-bit numbers beside each other must not look like an address of pinned memory: not
 * 0x180000000000, whose upper half is 6144, a usual size, with any small number before it.
 */
#define FIRST_ADDRESS UINT64_C(0x1801a0000000)
#define LAST_ADDRESS UINT64_C(0x1c0000000000)
#define LARGE ((uint64_t)2 << 20) /* aligned, so that the kernel may use large pages */
#define SPACE_BYTES ((uint64_t)1 << 48)
#define MAPPINGS_IN_ROW 100u

struct host_registry host_registry = { .lock = PTHREAD_MUTEX_INITIALIZER,
				       .lowest = UINT64_MAX,
				       .next = FIRST_ADDRESS };

/* ---- ranges; the lock is held ---- */

/* The number of ranges that begin at or before the address. */
static size_t ranges_to(uint64_t address)
{
	size_t low = 0, high = host_registry.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (host_registry.ranges[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct host_entry *host_entry_at(uint64_t address)
{
	size_t at = ranges_to(address);
	struct host_entry *range = at ? &host_registry.ranges[at - 1] : NULL;

	return range && address - range->address < range->bytes ? range : NULL;
}

static void set_bounds(void)
{
	uint64_t lowest = UINT64_MAX, highest = 0;

	if (host_registry.count) {
		const struct host_entry *last = &host_registry.ranges[host_registry.count - 1];

		lowest = host_registry.ranges[0].address;
		highest = last->address + last->bytes;
	}
	__atomic_store_n(&host_registry.lowest, lowest, __ATOMIC_RELAXED);
	__atomic_store_n(&host_registry.highest, highest, __ATOMIC_RELAXED);
	capture_addresses_changed();
}

static bool insert(const struct host_entry *range)
{
	size_t at = ranges_to(range->address);

	if (host_registry.count == host_registry.capacity) {
		size_t capacity = host_registry.capacity ? 2 * host_registry.capacity : 64;
		struct host_entry *ranges =
			realloc(host_registry.ranges, capacity * sizeof(*ranges));

		if (!ranges)
			return false;
		host_registry.ranges = ranges;
		host_registry.capacity = capacity;
	}
	memmove(&host_registry.ranges[at + 1], &host_registry.ranges[at],
		(host_registry.count - at) * sizeof(host_registry.ranges[0]));
	host_registry.ranges[at] = *range;
	host_registry.count++;
	set_bounds();
	return true;
}

void host_entry_hide(struct host_entry *range)
{
	if (range->known)
		__atomic_fetch_sub(&host_registry.visible, 1, __ATOMIC_RELAXED);
	free(range->known);
	range->known = NULL;
}

static void take_out(struct host_entry *range)
{
	size_t at = (size_t)(range - host_registry.ranges);

	host_entry_hide(range);
	memmove(range, range + 1, (host_registry.count - at - 1) * sizeof(*range));
	host_registry.count--;
	set_bounds();
}

bool host_contains(uint64_t address, uint64_t bytes)
{
	const struct host_entry *range;
	bool contains;

	if (address < __atomic_load_n(&host_registry.lowest, __ATOMIC_RELAXED) ||
	    address >= __atomic_load_n(&host_registry.highest, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&host_registry.lock);
	range = host_entry_at(address);
	contains = range && bytes <= range->bytes - (address - range->address);
	pthread_mutex_unlock(&host_registry.lock);
	return contains;
}

size_t host_ranges(struct host_range **ret_ranges)
{
	struct host_range *ranges;
	size_t count;

	pthread_mutex_lock(&host_registry.lock);
	count = host_registry.count;
	ranges = calloc(count + 1, sizeof(*ranges));
	for (size_t i = 0; ranges && i < count; i++)
		ranges[i] = (struct host_range){
			.address = host_registry.ranges[i].address,
			.bytes = host_registry.ranges[i].bytes,
			.flags = host_registry.ranges[i].flags,
			.is_registered = host_registry.ranges[i].is_registered,
		};
	pthread_mutex_unlock(&host_registry.lock);
	*ret_ranges = ranges;
	return ranges ? count : 0;
}

/* ---- the object ---- */

static void describe(const struct host_range *ranges, size_t count, bool is_first)
{
	struct capture_context *context = capture_context_current();
	struct ts_replay_object object = {
		.size = sizeof(object),
		.kind = TS_OBJECT_MEMORY,
		.number = host_registry.number,
		.parent = context ? capture_device_number(context->device) : 0,
		.bytes = (int64_t)SPACE_BYTES,
		.name = "host",
	};
	struct stream_text text;

	stream_text_begin(&text);
	stream_text_true(&text, "sparse");
	stream_text_string(&text, "space", "host");
	if (!is_first)
		stream_text_true(&text, "more");
	stream_text_open(&text, "mapped", '[');
	for (size_t i = 0; i < count; i++) {
		stream_text_open(&text, NULL, '[');
		stream_text_item(&text, ranges[i].address);
		stream_text_item(&text, ranges[i].bytes);
		if (ranges[i].is_registered)
			stream_text_item(&text, ranges[i].flags);
		stream_text_close(&text, '[');
	}
	stream_text_close(&text, '[');
	object.details = stream_text_end(&text);
	capture_object(&object);
}

void host_memory_describe(void)
{
	struct host_range *ranges;
	size_t count = host_ranges(&ranges), done = 0;

	host_registry.number = ts_replay_new_object();
	do {
		size_t part = count - done < MAPPINGS_IN_ROW ? count - done : MAPPINGS_IN_ROW;

		describe(ranges + done, part, done == 0);
		done += part;
	} while (done < count);
	free(ranges);
}

uint64_t host_space_number(void)
{
	return host_registry.number;
}

/* capture_lock is held. */
static void append_change(uint32_t kind, const struct cuda_call *call,
			  const struct host_entry *range)
{
	struct ts_replay_command row = capture_row(kind);
	struct stream_text text;

	if (!capture_is_open() || !host_registry.number)
		return;
	row.object = host_registry.number;
	row.offset = (int64_t)range->address;
	row.bytes = (int64_t)range->bytes;
	stream_text_begin(&text);
	stream_text_string(&text, "call", call->name);
	if (kind == TS_COMMAND_ALLOC && range->is_registered)
		stream_text_uint(&text, "registered", range->flags);
	row.details = stream_text_end(&text);
	capture_command(&row);
}

static bool add_range(const struct cuda_call *call, const struct host_entry *range)
{
	bool is_kept;

	capture_lock();
	pthread_mutex_lock(&host_registry.lock);
	is_kept = insert(range);
	pthread_mutex_unlock(&host_registry.lock);
	if (is_kept)
		append_change(TS_COMMAND_ALLOC, call, range);
	else
		capture_fail("no memory for the addresses of pinned memory");
	capture_unlock();
	return is_kept;
}

/* ---- the program's calls ---- */

static void *map_pages(uint64_t bytes)
{
	uint64_t step = bytes >= LARGE ? LARGE : (uint64_t)sysconf(_SC_PAGESIZE);

	/* What is occupied is passed over. */
	for (unsigned int i = 0; i < 1000; i++) {
		uint64_t address;
		void *memory;

		pthread_mutex_lock(&host_registry.lock);
		address = (host_registry.next + step - 1) & ~(step - 1);
		host_registry.next = address + bytes;
		if (host_registry.next > LAST_ADDRESS)
			host_registry.next = FIRST_ADDRESS;
		pthread_mutex_unlock(&host_registry.lock);
		memory = mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (memory == (void *)(uintptr_t)address)
			return memory;
		if (memory != MAP_FAILED)
			munmap(memory, bytes); /* a kernel that does not know the flag */
		else if (errno != EEXIST)
			return NULL;
	}
	return NULL;
}

static int allocate(struct cuda_call *call, uintptr_t *args, unsigned int flags)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = args[1], mapped;
	void *memory;
	int result;

	/* What is an error stays one, in the driver's words. */
	if (!args[0] || !bytes || bytes > SPACE_BYTES)
		return cuda_invoke(call, args);
	mapped = (bytes + page - 1) & ~(page - 1);
	memory = map_pages(mapped);
	if (!memory)
		return CUDA_OUT_OF_MEMORY;
	result = cu.MemHostRegister(memory, mapped,
				    CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_MAPPED);
	if (result == CUDA_SUCCESS_ &&
	    !add_range(call, &(struct host_entry){ .address = (uint64_t)(uintptr_t)memory,
						   .bytes = mapped,
						   .flags = flags,
						   .mapped_bytes = mapped })) {
		cu.MemHostUnregister(memory);
		result = CUDA_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS_)
		*(void **)args[0] = memory;
	else
		munmap(memory, mapped);
	return result;
}

/* pointer, bytes */
static int alloc_host(struct cuda_call *call, uintptr_t *args)
{
	return allocate(call, args, 0);
}

/* pointer, bytes, flags */
static int host_alloc(struct cuda_call *call, uintptr_t *args)
{
	if ((unsigned int)args[2] & ~7u)
		return cuda_invoke(call, args);
	return allocate(call, args, (unsigned int)args[2]);
}

/* Takes the range that begins there out of the registry; false: there is none of this kind. */
static bool remove_range(const struct cuda_call *call, uint64_t address, bool is_registered,
			 struct host_entry *ret_range)
{
	struct host_entry *range;
	bool is_found;

	capture_lock();
	pthread_mutex_lock(&host_registry.lock);
	range = host_entry_at(address);
	is_found = range && range->address == address && range->is_registered == is_registered;
	if (is_found) {
		*ret_range = *range;
		take_out(range);
	}
	pthread_mutex_unlock(&host_registry.lock);
	if (is_found)
		append_change(TS_COMMAND_FREE, call, ret_range);
	capture_unlock();
	return is_found;
}

static bool is_ours(uint64_t address)
{
	const struct host_entry *range;
	bool is_found;

	pthread_mutex_lock(&host_registry.lock);
	range = host_entry_at(address);
	is_found = range && range->address == address && !range->is_registered;
	pthread_mutex_unlock(&host_registry.lock);
	return is_found;
}

static int free_host(struct cuda_call *call, uintptr_t *args)
{
	struct host_entry range;
	uint64_t address = args[0];
	int result;

	if (!is_ours(address))
		return cuda_invoke(call, args);
	host_wait_for_copies(address, 1);
	/* Waits for the device. During a capture it may be forbidden, as to free is. */
	result = cu.MemHostUnregister((void *)(uintptr_t)address);
	/* It ends with the context that was current when it was allocated. */
	if (result == CUDA_HOST_MEMORY_NOT_REGISTERED)
		result = CUDA_SUCCESS_;
	if (result != CUDA_SUCCESS_)
		return result;
	if (!remove_range(call, address, false, &range))
		return CUDA_INVALID_VALUE; /* another thread was faster */
	munmap((void *)(uintptr_t)address, range.mapped_bytes);
	return CUDA_SUCCESS_;
}

/* pointer, bytes, flags */
static int register_host(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		add_range(call, &(struct host_entry){ .address = args[0],
						      .bytes = args[1],
						      .flags = (unsigned int)args[2],
						      .is_registered = true });
	return result;
}

static int unregister_host(struct cuda_call *call, uintptr_t *args)
{
	struct host_entry range;
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		remove_range(call, args[0], true, &range);
	return result;
}

/* flags, pointer: those that it was allocated with */
static int get_flags(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	const struct host_entry *range;

	if (result != CUDA_SUCCESS_ || !args[0])
		return result;
	pthread_mutex_lock(&host_registry.lock);
	range = host_entry_at(args[1]);
	if (range && !range->is_registered)
		*(unsigned int *)args[0] = range->flags | CUDA_HOST_ALLOC_MAPPED;
	pthread_mutex_unlock(&host_registry.lock);
	return result;
}

/* ---- windows ---- */

/* Everything is idle: nothing is pending, and nothing is known to the new window. */
void host_window_opens(void)
{
	pthread_mutex_lock(&host_registry.lock);
	for (size_t i = 0; i < host_registry.count; i++)
		host_entry_hide(&host_registry.ranges[i]);
	host_registry.pending_count = 0;
	host_registry.number = 0;
	pthread_mutex_unlock(&host_registry.lock);
}

const struct cuda_handler_entry capture_host_handlers[] = {
	{ "cuMemAllocHost", alloc_host, CAPTURE_ALWAYS },
	{ "cuMemHostAlloc", host_alloc, CAPTURE_ALWAYS },
	{ "cuMemFreeHost", free_host, CAPTURE_ALWAYS },
	{ "cuMemHostRegister", register_host, CAPTURE_ALWAYS },
	{ "cuMemHostUnregister", unregister_host, CAPTURE_ALWAYS },
	{ "cuMemHostGetFlags", get_flags, CAPTURE_ALWAYS },
	{ 0 },
};
