/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the pages of all captured memory, and runs our kernels over them (code/cuda/local), in a
 * stream of our own in each context. What these need on the device is the driver's memory, not the
 * arena's.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_code.h"
#include "backends/cuda/stream/cuda_pages.h"
#include "base/local/macros.h"

/* What we have in a context. */
struct reader {
	struct reader *next;
	struct capture_context *context;
	void *module, *hash, *move, *stream;
	uint64_t table; /* on the device: ranges, then results */
	size_t capacity;
};
static struct reader *readers;

/* ---- our kernels ---- */

static bool load(struct reader *reader)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	int rc;

	cu.ThreadExchangeStreamCaptureMode(&mode);
	rc = cu.ModuleLoadData(&reader->module, ts_page_kernels_ptx);
	if (!rc)
		rc = cu.ModuleGetFunction(&reader->hash, reader->module, TS_HASH_PAGES);
	if (!rc)
		rc = cu.ModuleGetFunction(&reader->move, reader->module, TS_MOVE_WORDS);
	if (!rc)
		rc = cu.StreamCreate(&reader->stream, CUDA_STREAM_NON_BLOCKING);
	cu.ThreadExchangeStreamCaptureMode(&mode);
	if (rc)
		capture_fail("our kernels cannot be loaded: the driver's error %d", rc);
	return rc == 0;
}

/* The context is current. */
static struct reader *reader_of(struct capture_context *context)
{
	struct reader *reader = readers;

	while (reader && reader->context != context)
		reader = reader->next;
	if (reader)
		return reader->stream ? reader : NULL;
	reader = calloc(1, sizeof(*reader));
	if (!reader) {
		capture_fail("no memory to read the device");
		return NULL;
	}
	reader->context = context;
	reader->next = readers;
	readers = reader;
	return load(reader) ? reader : NULL;
}

void *pages_stream(struct capture_context *context)
{
	struct reader *reader = reader_of(context);

	return reader ? reader->stream : NULL;
}

#define ENTRY_BYTES (sizeof(struct ts_page_range) + sizeof(uint64_t))

static bool reserve(struct reader *reader, size_t count)
{
	size_t capacity = reader->capacity ? reader->capacity : 1024;

	if (count <= reader->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;
	if (reader->table)
		cu.MemFree(reader->table);
	reader->capacity = 0;
	if (cu.MemAlloc(&reader->table, capacity * ENTRY_BYTES)) {
		reader->table = 0;
		capture_fail("no device memory to hash memory");
		return false;
	}
	reader->capacity = capacity;
	return true;
}

static bool run(struct reader *reader, void *function, size_t pages, void **params)
{
	return !cu.LaunchKernel(function, (unsigned int)pages, 1, 1, TS_PAGE_KERNEL_THREADS, 1, 1,
				0, reader->stream, params, NULL);
}

static bool upload_ranges(struct reader *reader, const struct capture_page *pages, size_t count)
{
	struct ts_page_range *ranges = malloc(count * sizeof(*ranges));
	bool is_good = ranges != NULL;

	for (size_t i = 0; is_good && i < count; i++)
		ranges[i] = pages[i].range;
	is_good = is_good &&
		  !cu.MemcpyHtoDAsync(reader->table, ranges, count * sizeof(*ranges),
				      reader->stream) &&
		  !cu.StreamSynchronize(reader->stream);
	free(ranges);
	return is_good;
}

/* Pages of one context, which is current. */
static bool hash_pages(struct reader *reader, struct capture_page *pages, size_t count)
{
	uint64_t hashes_at, moves = 0, *hashes;
	uint32_t move_count = 0;
	void *params[] = { &reader->table, &hashes_at, &moves, &move_count };
	bool is_good;

	if (!reserve(reader, count))
		return false;
	hashes_at = reader->table + reader->capacity * sizeof(struct ts_page_range);
	hashes = malloc(count * sizeof(*hashes));
	is_good = hashes && upload_ranges(reader, pages, count) &&
		  run(reader, reader->hash, count, params) &&
		  !cu.MemcpyDtoHAsync(hashes, hashes_at, count * sizeof(*hashes), reader->stream) &&
		  !cu.StreamSynchronize(reader->stream);
	for (size_t i = 0; is_good && i < count; i++)
		pages[i].hash = hashes[i];
	free(hashes);
	if (!is_good)
		capture_fail("memory cannot be hashed on the device");
	return is_good;
}

/* Calls `work` for the pages of each context. */
static bool each_context(struct page_list *list,
			 bool (*work)(struct reader *reader, struct capture_page *pages,
				      size_t count))
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	bool is_good = true;

	/* Captures of other threads would forbid some calls. */
	cu.ThreadExchangeStreamCaptureMode(&mode);
	for (size_t first = 0, end; is_good && first < list->count; first = end) {
		struct capture_context *context = list->items[first].context;
		struct reader *reader;

		for (end = first; end < list->count && list->items[end].context == context; end++)
			;
		if (!capture_context_push(context)) {
			capture_fail("memory of a context that is gone");
			is_good = false;
			break;
		}
		reader = reader_of(context);
		is_good = reader && work(reader, list->items + first, end - first);
		capture_context_pop();
	}
	cu.ThreadExchangeStreamCaptureMode(&mode);
	return is_good;
}

/* ---- the list ---- */

static bool add(struct page_list *list, struct capture_context *context, uint64_t object,
		uint64_t base, uint64_t offset, uint64_t bytes)
{
	uint64_t end = offset + bytes;

	while (offset < end) {
		uint64_t next = TS_MIN((offset / TS_PAGE_BYTES + 1) * TS_PAGE_BYTES, end);

		if (list->count == list->capacity) {
			size_t capacity = list->capacity ? 2 * list->capacity : 1024;
			struct capture_page *items =
				realloc(list->items, capacity * sizeof(*items));

			if (!items) {
				capture_fail("no memory for a list of pages");
				return false;
			}
			list->items = items;
			list->capacity = capacity;
		}
		list->items[list->count++] = (struct capture_page){
			.object = object,
			.offset = offset,
			.range = { base + offset, next - offset },
			.context = context,
		};
		offset = next;
	}
	return true;
}

static bool add_arena(struct page_list *list, struct capture_context *context)
{
	const struct capture_device *device = context->device;
	struct arena_mapping *mappings = NULL;
	size_t count = arena_mappings(device, &mappings);
	bool is_good = true;

	/* Mappings that touch are one run: pages do not end between them. */
	for (size_t first = 0, next; is_good && first < count; first = next) {
		uint64_t start = mappings[first].address;
		uint64_t end = start + mappings[first].bytes;

		for (next = first + 1; next < count && mappings[next].address == end; next++)
			end += mappings[next].bytes;
		is_good = add(list, context, device->arena_number, device->arena,
			      start - device->arena, end - start);
	}
	free(mappings);
	return is_good;
}

static bool list_pages(struct page_list *list)
{
	struct capture_global **globals = NULL;
	struct capture_context *context;
	const struct capture_device *done[64];
	size_t count, devices = 0;
	bool is_good = true;

	for (context = capture_context_next(NULL); is_good && context;
	     context = capture_context_next(context)) {
		bool is_done = context->is_gone || !context->device->arena_number;

		for (size_t i = 0; i < devices; i++)
			is_done |= done[i] == context->device;
		if (is_done || devices == sizeof(done) / sizeof(done[0]))
			continue;
		done[devices++] = context->device;
		is_good = add_arena(list, context);
	}
	count = is_good ? capture_globals(&globals) : 0;
	for (size_t i = 0; is_good && i < count; i++)
		is_good = globals[i]->module->context->is_gone ||
			  add(list, globals[i]->module->context, globals[i]->number,
			      globals[i]->address, 0, globals[i]->bytes);
	return is_good;
}

bool pages_read(struct page_list *ret_list)
{
	*ret_list = (struct page_list){ 0 };
	if (list_pages(ret_list) && each_context(ret_list, hash_pages))
		return true;
	pages_release(ret_list);
	return false;
}

void pages_release(struct page_list *list)
{
	free(list->items);
	*list = (struct page_list){ 0 };
}

/* Most pages have the same size. */
bool page_is_zero(const struct capture_page *page)
{
	static __thread uint64_t bytes, hash;

	if (bytes != page->range.bytes) {
		bytes = page->range.bytes;
		hash = ts_hash_zeros(bytes);
	}
	return page->hash == hash;
}

/* ---- pointers to host memory ---- */

static bool find_pointers(struct reader *reader, struct capture_page *pages, size_t count)
{
	struct host_range *ranges = NULL;
	size_t range_count = host_ranges(&ranges);
	struct ts_page_move *moves = calloc(range_count + 1, sizeof(*moves));
	uint64_t *counts = calloc(range_count + 1, sizeof(*counts));
	uint64_t at = 0, counts_at;
	uint32_t move_count = (uint32_t)range_count, changes = 0;
	size_t moves_bytes = range_count * sizeof(*moves),
	       counts_bytes = range_count * sizeof(*counts);
	void *params[] = { &reader->table, &counts_at, &at, &move_count, &changes };
	bool is_good = moves && counts;

	for (size_t i = 0; is_good && i < range_count; i++)
		moves[i] = (struct ts_page_move){ ranges[i].address, ranges[i].bytes, 0 };
	is_good = is_good && reserve(reader, count) && upload_ranges(reader, pages, count) &&
		  !cu.MemAlloc(&at, moves_bytes + counts_bytes);
	counts_at = at + moves_bytes;
	is_good = is_good && !cu.MemcpyHtoDAsync(at, moves, moves_bytes, reader->stream) &&
		  !cu.MemcpyHtoDAsync(counts_at, counts, counts_bytes, reader->stream) &&
		  run(reader, reader->move, count, params) &&
		  !cu.MemcpyDtoHAsync(counts, counts_at, counts_bytes, reader->stream) &&
		  !cu.StreamSynchronize(reader->stream);
	if (at)
		cu.MemFree(at);
	for (size_t i = 0; is_good && i < range_count; i++) {
		if (counts[i])
			host_make_visible(ranges[i].address);
	}
	free(moves);
	free(counts);
	free(ranges);
	if (!is_good)
		capture_fail("memory cannot be searched for pointers to the host's");
	return is_good;
}

bool pages_look_for_host(const struct page_list *list)
{
	struct host_range *ranges = NULL;
	size_t count = host_ranges(&ranges);
	struct page_list copy = *list;

	free(ranges);
	return !count || each_context(&copy, find_pointers);
}
