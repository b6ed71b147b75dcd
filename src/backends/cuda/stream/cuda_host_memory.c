/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that kernels can read: pinned memory, which comes from a fixed range of addresses,
 * and registered memory (docs/cuda-replay.md, 2.2). Most of it no kernel reads: it only is the
 * host's side of copies. A range counts as visible once a pointer to it was seen; from then on its
 * pages are compared before each launch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/stream/cuda_capture.h"
#include "base/local/stream_text.h"

#define FIRST_ADDRESS UINT64_C(0x180000000000)
#define LAST_ADDRESS UINT64_C(0x1c0000000000)
#define LARGE ((uint64_t)2 << 20) /* aligned, so that the kernel may use large pages */
#define PAGE_BYTES 4096u          /* compared at once */
#define FINISH_NS ((int64_t)1000000000)
#define SPACE_BYTES ((uint64_t)1 << 48)
#define MAPPINGS_IN_ROW 100u

struct range {
	uint64_t address, bytes;
	unsigned int flags;
	bool is_registered;
	uint64_t mapped_bytes; /* of our own mapping */
	/* Of each page, as commands know it; 0: not known. NULL: it is not visible. */
	uint64_t *known;
};

/* A copy of the device to host memory that may not be complete. */
struct pending {
	uint64_t address, bytes;
	struct capture_stream *stream;
};

/* `lock` comes after capture_lock; the driver is called under it only to query streams. */
static struct {
	pthread_mutex_t lock;
	struct range *ranges; /* by address */
	size_t count, capacity;
	uint64_t lowest, highest; /* of all ranges, so that most words need no search */
	size_t visible;
	uint64_t next; /* address of the next mapping */
	struct pending *pending;
	size_t pending_count, pending_capacity;
	uint64_t number; /* of the object in this window; 0: not described */
} host = { .lock = PTHREAD_MUTEX_INITIALIZER, .lowest = UINT64_MAX, .next = FIRST_ADDRESS };

/* ---- ranges; the lock is held ---- */

/* The number of ranges that begin at or before the address. */
static size_t ranges_to(uint64_t address)
{
	size_t low = 0, high = host.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (host.ranges[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct range *range_at(uint64_t address)
{
	size_t at = ranges_to(address);
	struct range *range = at ? &host.ranges[at - 1] : NULL;

	return range && address - range->address < range->bytes ? range : NULL;
}

static void set_bounds(void)
{
	uint64_t lowest = UINT64_MAX, highest = 0;

	if (host.count) {
		const struct range *last = &host.ranges[host.count - 1];

		lowest = host.ranges[0].address;
		highest = last->address + last->bytes;
	}
	__atomic_store_n(&host.lowest, lowest, __ATOMIC_RELAXED);
	__atomic_store_n(&host.highest, highest, __ATOMIC_RELAXED);
}

static bool insert(const struct range *range)
{
	size_t at = ranges_to(range->address);

	if (host.count == host.capacity) {
		size_t capacity = host.capacity ? 2 * host.capacity : 64;
		struct range *ranges = realloc(host.ranges, capacity * sizeof(*ranges));

		if (!ranges)
			return false;
		host.ranges = ranges;
		host.capacity = capacity;
	}
	memmove(&host.ranges[at + 1], &host.ranges[at], (host.count - at) * sizeof(host.ranges[0]));
	host.ranges[at] = *range;
	host.count++;
	set_bounds();
	return true;
}

static void hide(struct range *range)
{
	if (range->known)
		__atomic_fetch_sub(&host.visible, 1, __ATOMIC_RELAXED);
	free(range->known);
	range->known = NULL;
}

static void take_out(struct range *range)
{
	size_t at = (size_t)(range - host.ranges);

	hide(range);
	memmove(range, range + 1, (host.count - at - 1) * sizeof(*range));
	host.count--;
	set_bounds();
}

static bool overlaps(uint64_t address, uint64_t bytes, uint64_t other, uint64_t other_bytes)
{
	return address < other + other_bytes && other < address + bytes;
}

bool host_contains(uint64_t address, uint64_t bytes)
{
	const struct range *range;
	bool contains;

	if (address < __atomic_load_n(&host.lowest, __ATOMIC_RELAXED) ||
	    address >= __atomic_load_n(&host.highest, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&host.lock);
	range = range_at(address);
	contains = range && bytes <= range->bytes - (address - range->address);
	pthread_mutex_unlock(&host.lock);
	return contains;
}

size_t host_ranges(struct host_range **ret_ranges)
{
	struct host_range *ranges;
	size_t count;

	pthread_mutex_lock(&host.lock);
	count = host.count;
	ranges = calloc(count + 1, sizeof(*ranges));
	for (size_t i = 0; ranges && i < count; i++)
		ranges[i] = (struct host_range){
			.address = host.ranges[i].address,
			.bytes = host.ranges[i].bytes,
			.flags = host.ranges[i].flags,
			.is_registered = host.ranges[i].is_registered,
		};
	pthread_mutex_unlock(&host.lock);
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
		.number = host.number,
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

	host.number = ts_replay_new_object();
	do {
		size_t part = count - done < MAPPINGS_IN_ROW ? count - done : MAPPINGS_IN_ROW;

		describe(ranges + done, part, done == 0);
		done += part;
	} while (done < count);
	free(ranges);
}

uint64_t host_space_number(void)
{
	return host.number;
}

/* capture_lock is held. */
static void append_change(uint32_t kind, const struct cuda_call *call, const struct range *range)
{
	struct ts_replay_command row = capture_row(kind);
	struct stream_text text;

	if (!capture_is_open() || !host.number)
		return;
	row.object = host.number;
	row.offset = (int64_t)range->address;
	row.bytes = (int64_t)range->bytes;
	stream_text_begin(&text);
	stream_text_string(&text, "call", call->name);
	if (kind == TS_COMMAND_ALLOC && range->is_registered)
		stream_text_uint(&text, "registered", range->flags);
	row.details = stream_text_end(&text);
	capture_command(&row);
}

static bool add_range(const struct cuda_call *call, const struct range *range)
{
	bool is_kept;

	capture_lock();
	pthread_mutex_lock(&host.lock);
	is_kept = insert(range);
	pthread_mutex_unlock(&host.lock);
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

		pthread_mutex_lock(&host.lock);
		address = (host.next + step - 1) & ~(step - 1);
		host.next = address + bytes;
		if (host.next > LAST_ADDRESS)
			host.next = FIRST_ADDRESS;
		pthread_mutex_unlock(&host.lock);
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
	    !add_range(call, &(struct range){ .address = (uint64_t)(uintptr_t)memory,
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
			 struct range *ret_range)
{
	struct range *range;
	bool is_found;

	capture_lock();
	pthread_mutex_lock(&host.lock);
	range = range_at(address);
	is_found = range && range->address == address && range->is_registered == is_registered;
	if (is_found) {
		*ret_range = *range;
		take_out(range);
	}
	pthread_mutex_unlock(&host.lock);
	if (is_found)
		append_change(TS_COMMAND_FREE, call, ret_range);
	capture_unlock();
	return is_found;
}

static int free_host(struct cuda_call *call, uintptr_t *args)
{
	struct range range;
	uint64_t address = args[0];

	host_wait_for_copies(address, 1);
	if (!remove_range(call, address, false, &range))
		return cuda_invoke(call, args);
	cu.MemHostUnregister((void *)(uintptr_t)address); /* waits for the device */
	munmap((void *)(uintptr_t)address, range.mapped_bytes);
	return CUDA_SUCCESS_;
}

/* pointer, bytes, flags */
static int register_host(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		add_range(call, &(struct range){ .address = args[0],
						 .bytes = args[1],
						 .flags = (unsigned int)args[2],
						 .is_registered = true });
	return result;
}

static int unregister_host(struct cuda_call *call, uintptr_t *args)
{
	struct range range;
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		remove_range(call, args[0], true, &range);
	return result;
}

/* flags, pointer: those that it was allocated with */
static int get_flags(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	const struct range *range;

	if (result != CUDA_SUCCESS_ || !args[0])
		return result;
	pthread_mutex_lock(&host.lock);
	range = range_at(args[1]);
	if (range && !range->is_registered)
		*(unsigned int *)args[0] = range->flags | CUDA_HOST_ALLOC_MAPPED;
	pthread_mutex_unlock(&host.lock);
	return result;
}

/* ---- copies to the host that may be pending ---- */

void host_copy_pending(uint64_t address, uint64_t bytes, struct capture_stream *stream)
{
	pthread_mutex_lock(&host.lock);
	if (host.pending_count == host.pending_capacity) {
		size_t capacity = host.pending_capacity ? 2 * host.pending_capacity : 64;
		struct pending *pending = realloc(host.pending, capacity * sizeof(*pending));

		if (!pending) {
			pthread_mutex_unlock(&host.lock);
			capture_stream_finish(stream);
			return;
		}
		host.pending = pending;
		host.pending_capacity = capacity;
	}
	host.pending[host.pending_count++] = (struct pending){ address, bytes, stream };
	pthread_mutex_unlock(&host.lock);
}

/* The lock is held: what the copy wrote is not known. A launch stores it again, which is right. */
static void forget_pages(uint64_t address, uint64_t bytes)
{
	struct range *range = host.visible ? range_at(address) : NULL;

	if (!range || !range->known)
		return;
	for (uint64_t at = (address - range->address) / PAGE_BYTES;
	     at * PAGE_BYTES < address + bytes - range->address && at * PAGE_BYTES < range->bytes;
	     at++)
		range->known[at] = 0;
}

/* The lock is held. */
static void complete(const struct capture_stream *stream)
{
	size_t kept = 0;

	for (size_t i = 0; i < host.pending_count; i++) {
		if (host.pending[i].stream == stream)
			forget_pages(host.pending[i].address, host.pending[i].bytes);
		else
			host.pending[kept++] = host.pending[i];
	}
	host.pending_count = kept;
}

void host_synchronized(void)
{
	/* A query of a stream would break a capture. */
	if (!__atomic_load_n(&host.pending_count, __ATOMIC_RELAXED) || capture_any_capturing())
		return;
	pthread_mutex_lock(&host.lock);
	for (size_t i = 0; i < host.pending_count;) {
		const struct capture_stream *stream = host.pending[i].stream;

		/* Copies of one that cannot be asked are waited for when it matters. */
		if (capture_stream_is_idle(stream))
			complete(stream);
		else
			i++;
	}
	pthread_mutex_unlock(&host.lock);
}

/* The stream of a pending copy to these bytes; false: none. */
static bool find_pending(uint64_t address, uint64_t bytes, struct capture_stream **ret_stream)
{
	bool is_found = false;

	pthread_mutex_lock(&host.lock);
	for (size_t i = 0; !is_found && i < host.pending_count; i++) {
		is_found = overlaps(address, bytes, host.pending[i].address, host.pending[i].bytes);
		*ret_stream = host.pending[i].stream;
	}
	pthread_mutex_unlock(&host.lock);
	return is_found;
}

void host_wait_for_copies(uint64_t address, uint64_t bytes)
{
	struct capture_stream *stream;

	if (!__atomic_load_n(&host.pending_count, __ATOMIC_RELAXED))
		return;
	while (find_pending(address, bytes, &stream)) {
		capture_stream_finish(stream);
		pthread_mutex_lock(&host.lock);
		complete(stream);
		pthread_mutex_unlock(&host.lock);
	}
}

/* ---- what kernels can see ---- */

static void make_visible(struct range *range)
{
	size_t pages = (size_t)((range->bytes + PAGE_BYTES - 1) / PAGE_BYTES);

	if (range->known)
		return;
	range->known = calloc(pages, sizeof(*range->known));
	if (range->known)
		__atomic_fetch_add(&host.visible, 1, __ATOMIC_RELAXED);
	else
		capture_fail("no memory for the hashes of pinned memory");
}

void host_make_visible(uint64_t address)
{
	struct range *range;

	pthread_mutex_lock(&host.lock);
	range = range_at(address);
	if (range)
		make_visible(range);
	pthread_mutex_unlock(&host.lock);
}

bool host_is_visible(uint64_t address)
{
	const struct range *range;
	bool is_visible;

	if (!__atomic_load_n(&host.visible, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&host.lock);
	range = range_at(address);
	is_visible = range && range->known;
	pthread_mutex_unlock(&host.lock);
	return is_visible;
}

void host_look_for_pointers(const void *data, uint64_t bytes)
{
	uint64_t lowest = __atomic_load_n(&host.lowest, __ATOMIC_RELAXED);
	uint64_t highest = __atomic_load_n(&host.highest, __ATOMIC_RELAXED);
	const unsigned char *at = data;

	for (uint64_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, at + i, sizeof(word));
		if (__builtin_expect(word >= lowest && word < highest, 0))
			host_make_visible(word);
	}
}

/* The lock is held. Appends [from, to) of a range, in pages. */
static void append_pages(const struct range *range, uint64_t from, uint64_t to)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_HOST_WRITE);
	uint64_t begin = from * PAGE_BYTES, end = to * PAGE_BYTES;

	if (end > range->bytes)
		end = range->bytes;
	row.object = host.number;
	row.offset = (int64_t)(range->address + begin);
	row.bytes = (int64_t)(end - begin);
	row.blob = capture_blob((const void *)(uintptr_t)(range->address + begin), end - begin);
	capture_command(&row);
}

/* Of a page, never 0. */
static uint64_t hash_of(const struct range *range, uint64_t page)
{
	uint64_t begin = page * PAGE_BYTES;
	uint64_t bytes = range->bytes - begin < PAGE_BYTES ? range->bytes - begin : PAGE_BYTES;
	uint64_t hash =
		ts_replay_hash((const void *)(uintptr_t)(range->address + begin), (size_t)bytes);

	return hash ? hash : 1;
}

static bool is_pending(uint64_t address, uint64_t bytes)
{
	for (size_t i = 0; i < host.pending_count; i++) {
		if (overlaps(address, bytes, host.pending[i].address, host.pending[i].bytes))
			return true;
	}
	return false;
}

/* Is there a page that the host, or a kernel, has changed? */
static bool has_changes(void)
{
	bool has_changed = false;

	pthread_mutex_lock(&host.lock);
	for (size_t i = 0; i < host.count && !has_changed; i++) {
		const struct range *range = &host.ranges[i];
		uint64_t pages = (range->bytes + PAGE_BYTES - 1) / PAGE_BYTES;

		for (uint64_t page = 0; range->known && page < pages && !has_changed; page++)
			has_changed = hash_of(range, page) != range->known[page];
	}
	pthread_mutex_unlock(&host.lock);
	return has_changed;
}

/*
 * What a kernel or a copy is writing is only known when it is done, and the host may have seen the
 * end of a copy in a stream that is still busy. A kernel that waits for the host would not end in a
 * replay either.
 */
static bool finish_writers(void)
{
	int64_t deadline_ns = ts_replay_clock_ns() + FINISH_NS;
	struct ts_replay_command row = capture_row(TS_COMMAND_SYNC);
	char why[160];

	if (!capture_contexts_finish(deadline_ns, why, sizeof(why))) {
		capture_fail("the host writes memory that a running kernel can see: %s", why);
		return false;
	}
	/* What is stored next belongs behind all commands so far. */
	row.details = "{\"what\":\"context\"}";
	capture_command(&row);
	host_synchronized();
	return true;
}

static void emit_changes_of(struct range *range)
{
	uint64_t pages = (range->bytes + PAGE_BYTES - 1) / PAGE_BYTES, first = UINT64_MAX;

	for (uint64_t page = 0; page <= pages; page++) {
		bool has_changed = false;

		if (page < pages && !is_pending(range->address + page * PAGE_BYTES, PAGE_BYTES)) {
			uint64_t hash = hash_of(range, page);

			has_changed = hash != range->known[page];
			range->known[page] = hash;
		}
		if (has_changed && first == UINT64_MAX)
			first = page;
		if (!has_changed && first != UINT64_MAX) {
			append_pages(range, first, page);
			first = UINT64_MAX;
		}
	}
}

/* Of what a pending copy leaves as it is, nothing is known yet. */
static void wait_for_unknown(void)
{
	for (;;) {
		uint64_t address = 0, bytes = 0;

		pthread_mutex_lock(&host.lock);
		for (size_t i = 0; !bytes && i < host.pending_count; i++) {
			const struct pending *pending = &host.pending[i];
			const struct range *range = range_at(pending->address);
			uint64_t first, last;

			if (!range || !range->known)
				continue;
			first = pending->address - range->address;
			last = first + pending->bytes - 1;
			if ((first % PAGE_BYTES && !range->known[first / PAGE_BYTES]) ||
			    ((last + 1) % PAGE_BYTES && last + 1 < range->bytes &&
			     !range->known[last / PAGE_BYTES])) {
				address = pending->address;
				bytes = pending->bytes;
			}
		}
		pthread_mutex_unlock(&host.lock);
		if (!bytes)
			return;
		host_wait_for_copies(address, bytes);
	}
}

void host_emit_changes(void)
{
	if (__builtin_expect(!__atomic_load_n(&host.visible, __ATOMIC_RELAXED), 1))
		return;
	/* What changes from here on is the work of a kernel that is a command, or a later change.
	 */
	if (!has_changes())
		return;
	if (!finish_writers())
		return;
	if (capture_any_capturing())
		wait_for_unknown();
	pthread_mutex_lock(&host.lock);
	for (size_t i = 0; i < host.count; i++) {
		if (host.ranges[i].known)
			emit_changes_of(&host.ranges[i]);
	}
	pthread_mutex_unlock(&host.lock);
}

/* Everything is idle: nothing is pending, and nothing is known to the new window. */
void host_window_opens(void)
{
	pthread_mutex_lock(&host.lock);
	for (size_t i = 0; i < host.count; i++)
		hide(&host.ranges[i]);
	host.pending_count = 0;
	host.number = 0;
	pthread_mutex_unlock(&host.lock);
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
