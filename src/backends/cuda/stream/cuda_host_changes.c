/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host changes in memory that kernels can read (docs/cuda-replay.md, 2.2). Most of it no
 * kernel reads: it only is the host's side of copies. A range counts as visible once a pointer to
 * it was seen; from then on its pages are compared before each launch.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_host_memory.h"
#include "base/local/macros.h"

#define PAGE_BYTES 4096u /* compared at once */
#define FINISH_NS ((int64_t)1000000000)
#define BUSY_AT_MOST 16u /* streams that are not asked twice */

static bool overlaps(uint64_t address, uint64_t bytes, uint64_t other, uint64_t other_bytes)
{
	return address < other + other_bytes && other < address + bytes;
}

/* ---- copies to the host that may be pending ---- */

static int compare_pending(const void *a, const void *b)
{
	const struct pending *left = a, *right = b;

	if (left->address != right->address)
		return TS_COMPARE(left->address, right->address);
	if (left->bytes != right->bytes)
		return TS_COMPARE(left->bytes, right->bytes);
	return TS_COMPARE((uintptr_t)left->stream, (uintptr_t)right->stream);
}

/* Programs copy to the same places again: each counts once. The lock is held. */
static void drop_repeated(void)
{
	struct pending *pending = host_registry.pending;
	size_t kept = 0;

	if (host_registry.pending_count)
		qsort(pending, host_registry.pending_count, sizeof(*pending), compare_pending);
	for (size_t i = 0; i < host_registry.pending_count; i++)
		if (!kept || compare_pending(&pending[kept - 1], &pending[i]))
			pending[kept++] = pending[i];
	host_registry.pending_count = kept;
}

/* Room for one more. The lock is held. */
static bool grow_pending(void)
{
	size_t capacity = host_registry.pending_capacity ? 2 * host_registry.pending_capacity : 64;
	struct pending *pending;

	if (host_registry.pending_count < host_registry.pending_capacity)
		return true;
	drop_repeated();
	/* Or it is sorted again soon. */
	if (2 * host_registry.pending_count < host_registry.pending_capacity)
		return true;
	pending = realloc(host_registry.pending, capacity * sizeof(*pending));
	if (pending) {
		host_registry.pending = pending;
		host_registry.pending_capacity = capacity;
	}
	return host_registry.pending_count < host_registry.pending_capacity;
}

void host_copy_pending(uint64_t address, uint64_t bytes, struct capture_stream *stream)
{
	bool is_noted;

	pthread_mutex_lock(&host_registry.lock);
	is_noted = grow_pending();
	if (is_noted)
		host_registry.pending[host_registry.pending_count++] =
			(struct pending){ address, bytes, stream };
	pthread_mutex_unlock(&host_registry.lock);
	if (!is_noted)
		capture_stream_finish(stream);
}

/* The lock is held: what the copy wrote is not known. A launch stores it again, which is right. */
static void forget_pages(uint64_t address, uint64_t bytes)
{
	struct host_entry *range = host_registry.visible ? host_entry_at(address) : NULL;

	if (!range || !range->known)
		return;
	for (uint64_t at = (address - range->address) / PAGE_BYTES;
	     at * PAGE_BYTES < address + bytes - range->address && at * PAGE_BYTES < range->bytes;
	     at++)
		range->known[at] = 0;
}

/* The lock is held. NULL: all streams. */
static void complete(const struct capture_stream *stream)
{
	size_t kept = 0;

	for (size_t i = 0; i < host_registry.pending_count; i++) {
		if (!stream || host_registry.pending[i].stream == stream)
			forget_pages(host_registry.pending[i].address,
				     host_registry.pending[i].bytes);
		else
			host_registry.pending[kept++] = host_registry.pending[i];
	}
	host_registry.pending_count = kept;
}

void host_synchronized(void)
{
	const struct capture_stream *busy[BUSY_AT_MOST];
	size_t busy_count = 0;

	/* A query of a stream would break a capture. */
	if (!__atomic_load_n(&host_registry.pending_count, __ATOMIC_RELAXED) ||
	    capture_any_capturing())
		return;
	pthread_mutex_lock(&host_registry.lock);
	for (size_t i = 0; i < host_registry.pending_count;) {
		const struct capture_stream *stream = host_registry.pending[i].stream;
		size_t known = 0;

		while (known < busy_count && busy[known] != stream)
			known++;
		/* Copies of one that cannot be asked are waited for when it matters. */
		if (known == busy_count && capture_stream_is_idle(stream)) {
			complete(stream);
			continue;
		}
		if (known == busy_count && busy_count < BUSY_AT_MOST)
			busy[busy_count++] = stream;
		i++;
	}
	pthread_mutex_unlock(&host_registry.lock);
}

/* The stream of a pending copy to these bytes; false: none. */
static bool find_pending(uint64_t address, uint64_t bytes, struct capture_stream **ret_stream)
{
	bool is_found = false;

	pthread_mutex_lock(&host_registry.lock);
	for (size_t i = 0; !is_found && i < host_registry.pending_count; i++) {
		is_found = overlaps(address, bytes, host_registry.pending[i].address,
				    host_registry.pending[i].bytes);
		*ret_stream = host_registry.pending[i].stream;
	}
	pthread_mutex_unlock(&host_registry.lock);
	return is_found;
}

void host_wait_for_copies(uint64_t address, uint64_t bytes)
{
	struct capture_stream *stream;

	if (!__atomic_load_n(&host_registry.pending_count, __ATOMIC_RELAXED))
		return;
	while (find_pending(address, bytes, &stream)) {
		capture_stream_finish(stream);
		pthread_mutex_lock(&host_registry.lock);
		complete(stream);
		pthread_mutex_unlock(&host_registry.lock);
	}
}

/* ---- what kernels can see ---- */

static void make_visible(struct host_entry *range)
{
	size_t pages = (size_t)((range->bytes + PAGE_BYTES - 1) / PAGE_BYTES);

	if (range->known)
		return;
	range->known = calloc(pages, sizeof(*range->known));
	if (range->known)
		__atomic_fetch_add(&host_registry.visible, 1, __ATOMIC_RELAXED);
	else
		capture_fail("no memory for the hashes of pinned memory");
}

void host_make_visible(uint64_t address)
{
	struct host_entry *range;

	pthread_mutex_lock(&host_registry.lock);
	range = host_entry_at(address);
	if (range)
		make_visible(range);
	pthread_mutex_unlock(&host_registry.lock);
}

bool host_is_visible(uint64_t address)
{
	const struct host_entry *range;
	bool is_visible;

	if (!__atomic_load_n(&host_registry.visible, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&host_registry.lock);
	range = host_entry_at(address);
	is_visible = range && range->known;
	pthread_mutex_unlock(&host_registry.lock);
	return is_visible;
}

void host_look_for_pointers(const void *data, uint64_t bytes)
{
	uint64_t lowest = __atomic_load_n(&host_registry.lowest, __ATOMIC_RELAXED);
	uint64_t highest = __atomic_load_n(&host_registry.highest, __ATOMIC_RELAXED);
	const unsigned char *at = data;

	for (uint64_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, at + i, sizeof(word));
		if (__builtin_expect(word >= lowest && word < highest, 0))
			host_make_visible(word);
	}
}

/* The lock is held. Appends [from, to) of a range, in pages. */
static void append_pages(const struct host_entry *range, uint64_t from, uint64_t to)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_HOST_WRITE);
	uint64_t begin = from * PAGE_BYTES, end = to * PAGE_BYTES;

	if (end > range->bytes)
		end = range->bytes;
	row.object = host_registry.number;
	row.offset = (int64_t)(range->address + begin);
	row.bytes = (int64_t)(end - begin);
	row.blob = capture_blob((const void *)(uintptr_t)(range->address + begin), end - begin);
	capture_command(&row);
}

/* Of a page, never 0. */
static uint64_t hash_of(const struct host_entry *range, uint64_t page)
{
	uint64_t begin = page * PAGE_BYTES;
	uint64_t bytes = range->bytes - begin < PAGE_BYTES ? range->bytes - begin : PAGE_BYTES;
	uint64_t hash =
		ts_replay_hash((const void *)(uintptr_t)(range->address + begin), (size_t)bytes);

	return hash ? hash : 1;
}

static bool is_pending(uint64_t address, uint64_t bytes)
{
	for (size_t i = 0; i < host_registry.pending_count; i++) {
		if (overlaps(address, bytes, host_registry.pending[i].address,
			     host_registry.pending[i].bytes))
			return true;
	}
	return false;
}

/* Is there a page that the host, or a kernel, has changed? */
static bool has_changes(void)
{
	bool has_changed = false;

	pthread_mutex_lock(&host_registry.lock);
	for (size_t i = 0; i < host_registry.count && !has_changed; i++) {
		const struct host_entry *range = &host_registry.ranges[i];
		uint64_t pages = (range->bytes + PAGE_BYTES - 1) / PAGE_BYTES;

		for (uint64_t page = 0; range->known && page < pages && !has_changed; page++)
			has_changed = hash_of(range, page) != range->known[page];
	}
	pthread_mutex_unlock(&host_registry.lock);
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
	/* Also copies in streams that are gone, or another thread's: no capture was in the way. */
	if (!capture_any_capturing()) {
		pthread_mutex_lock(&host_registry.lock);
		complete(NULL);
		pthread_mutex_unlock(&host_registry.lock);
	}
	return true;
}

static void emit_changes_of(struct host_entry *range)
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

		pthread_mutex_lock(&host_registry.lock);
		for (size_t i = 0; !bytes && i < host_registry.pending_count; i++) {
			const struct pending *pending = &host_registry.pending[i];
			const struct host_entry *range = host_entry_at(pending->address);
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
		pthread_mutex_unlock(&host_registry.lock);
		if (!bytes)
			return;
		host_wait_for_copies(address, bytes);
	}
}

void host_emit_changes(void)
{
	if (__builtin_expect(!__atomic_load_n(&host_registry.visible, __ATOMIC_RELAXED), 1))
		return;
	/* What changes from here on is the work of a kernel that is a command, or a later change.
	 */
	if (!has_changes())
		return;
	if (!finish_writers())
		return;
	if (capture_any_capturing())
		wait_for_unknown();
	pthread_mutex_lock(&host_registry.lock);
	for (size_t i = 0; i < host_registry.count; i++) {
		if (host_registry.ranges[i].known)
			emit_changes_of(&host_registry.ranges[i]);
	}
	pthread_mutex_unlock(&host_registry.lock);
}
