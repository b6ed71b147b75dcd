/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program may write without a call: that of USE_HOST_PTR, and regions that are
 * mapped for writing. A hash per page shows what it wrote since a command used the memory last, and
 * is the check at the end of a window: what the host writes after the last command and the last
 * wait is not part of what a replay does, and the memory may be gone by then. Only inside windows;
 * all under the host lock.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/foreign_memory.h"

#define PAGE ((size_t)4096)
#define CHUNK STREAM_COPY_BYTES

/* Memory with writers that may be incomplete. */
static struct ocl_stream *written;

/* ---- areas ---- */

/* Pages of pixels are not ranges of their image: they have one hash. */
static uint64_t page_count(const struct stream_area *area)
{
	return area->image ? 1 : (area->bytes + PAGE - 1) / PAGE;
}

static uint64_t chunk_count(const struct stream_area *area)
{
	return area->image ? 1 : (area->bytes + CHUNK - 1) / CHUNK;
}

static size_t chunk_bytes(const struct stream_area *area, uint64_t chunk)
{
	uint64_t left = area->bytes - chunk * CHUNK;

	return left < CHUNK ? (size_t)left : CHUNK;
}

static uint64_t hash_page(const unsigned char *copy, size_t at, size_t bytes)
{
	return ts_replay_hash(copy + at, bytes - at < PAGE ? bytes - at : PAGE);
}

/* Nothing is known of its bytes at first. */
static bool allocate(struct stream_area *area)
{
	if (area->pages)
		return true;
	area->pages = calloc(page_count(area), sizeof(uint64_t));
	area->chunks = calloc(chunk_count(area), sizeof(uint64_t));
	if (area->pages && area->chunks)
		return true;
	free(area->pages);
	free(area->chunks);
	area->pages = area->chunks = NULL;
	stream_lost("host writes to shared memory", "no memory to find them");
	return false;
}

void stream_area_end(struct stream_area *area)
{
	free(area->pages);
	free(area->chunks);
	area->pages = area->chunks = NULL;
	area->is_gone = false;
}

static void report_gone(const struct ocl_stream *root, struct stream_area *area)
{
	if (!area->is_gone)
		stream_lost_memory("contents of memory", root, "its host memory is gone");
	area->is_gone = true;
}

/* Copies a chunk. Returns how many bytes precede the first one that is not there. */
static size_t read_chunk(const struct ocl_stream *root, struct stream_area *area, uint64_t chunk,
			 unsigned char *copy)
{
	size_t bytes = chunk_bytes(area, chunk);
	size_t got = stream_area_read(area, chunk * CHUNK, copy, bytes);

	if (got < bytes)
		report_gone(root, area);
	return got;
}

/* Hash and, if asked for, blob of pixels. The hash is 0, and the result false, if they are gone. */
static bool read_pixels(const struct ocl_stream *root, struct stream_area *area, uint64_t *ret_hash,
			uint64_t *ret_blob)
{
	struct stream_foreign pixels = stream_area_foreign(area);

	*ret_hash = 0;
	if (stream_foreign_read(&pixels, ret_hash, ret_blob))
		return true;
	report_gone(root, area);
	return false;
}

/* The areas of a root: that of USE_HOST_PTR covers its regions. NULL: begin, end. */
static struct stream_area *next_area(struct stream_memory *memory, struct stream_region **position)
{
	if (memory->area.host)
		return NULL;
	do
		*position = *position ? (*position)->next : memory->regions;
	while (*position && !stream_region_is_written(*position));
	return *position ? &(*position)->area : NULL;
}

/* ---- writers ---- */

static void unlist(struct ocl_stream *root)
{
	struct ocl_stream **link = &written;

	if (!root->as.memory.is_listed)
		return;
	while (*link != root)
		link = &(*link)->as.memory.next_written;
	*link = root->as.memory.next_written;
	root->as.memory.is_listed = false;
}

void stream_pages_written(struct ocl_stream *root, uint64_t offset, uint64_t bytes, cl_event event)
{
	struct stream_memory *memory = &root->as.memory;
	struct stream_writer *writer;

	if (!memory->area.pages && !atomic_load(&memory->mapped_writing))
		return;
	writer = malloc(sizeof(*writer));
	if (!writer || ocl.next.clRetainEvent(event)) {
		free(writer);
		return;
	}
	*writer = (struct stream_writer){ memory->writers, event, offset, bytes };
	memory->writers = writer;
	if (!memory->is_listed) {
		memory->is_listed = true;
		memory->next_written = written;
		written = root;
	}
}

static bool meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* Whether a command that may be incomplete writes the range; with `all`, its every byte. */
static bool is_being_written(const struct stream_memory *memory, uint64_t offset, uint64_t bytes,
			     bool all)
{
	for (const struct stream_writer *writer = memory->writers; writer; writer = writer->next) {
		if (all ? writer->offset <= offset &&
				    offset + bytes <= writer->offset + writer->bytes
			: meet(writer->offset, writer->bytes, offset, bytes))
			return true;
	}
	return false;
}

static bool are_pixels_being_written(const struct ocl_stream *root, const struct stream_area *area)
{
	return is_being_written(&root->as.memory, area->offset, stream_area_span(area), false);
}

/* ---- what commands wrote ---- */

/* Learns the pages of a chunk that meet the range. */
static void learn_chunk(const struct ocl_stream *root, struct stream_area *area, uint64_t chunk,
			const struct stream_writer *range, unsigned char *copy)
{
	const struct stream_memory *memory = &root->as.memory;
	uint64_t offset = area->offset + chunk * CHUNK;
	size_t bytes = chunk_bytes(area, chunk), got = read_chunk(root, area, chunk, copy);
	bool is_all = got == bytes && range->offset <= offset &&
		      offset + bytes <= range->offset + range->bytes &&
		      !is_being_written(memory, offset, bytes, false);

	for (size_t at = 0; at < bytes; at += PAGE) {
		size_t count = bytes - at < PAGE ? bytes - at : PAGE;

		if (is_all || (meet(range->offset, range->bytes, offset + at, count) &&
			       !is_being_written(memory, offset + at, count, false)))
			area->pages[(chunk * CHUNK + at) / PAGE] =
				at + count <= got ? hash_page(copy, at, bytes) : 0;
	}
	area->chunks[chunk] = is_all ? ts_replay_hash(copy, bytes) : 0;
}

static void learn_area(const struct ocl_stream *root, struct stream_area *area,
		       const struct stream_writer *range, unsigned char *copy)
{
	if (!area->pages ||
	    !meet(range->offset, range->bytes, area->offset, stream_area_span(area)))
		return;
	if (area->image) {
		if (!are_pixels_being_written(root, area))
			read_pixels(root, area, &area->chunks[0], NULL);
		return;
	}
	for (uint64_t i = 0; i < chunk_count(area); i++) {
		if (meet(range->offset, range->bytes, area->offset + i * CHUNK,
			 chunk_bytes(area, i)))
			learn_chunk(root, area, i, range, copy);
	}
}

/* What a completed command wrote is what the host sees now. */
static void learn(struct ocl_stream *root, const struct stream_writer *range)
{
	struct stream_memory *memory = &root->as.memory;
	unsigned char *copy = stream_copy_take();
	struct stream_region *position = NULL;
	struct stream_area *area;

	if (!copy) {
		stream_lost("host writes to shared memory", "no memory to find them");
		return;
	}
	learn_area(root, &memory->area, range, copy);
	while ((area = next_area(memory, &position)) != NULL)
		learn_area(root, area, range, copy);
	stream_copy_give(copy);
}

/* Takes completed writers off the list. */
static struct stream_writer *take_complete(struct stream_memory *memory)
{
	struct stream_writer **link = &memory->writers, *complete = NULL;

	while (*link) {
		struct stream_writer *writer = *link;

		if (stream_event_status(writer->event) > CL_COMPLETE) {
			link = &writer->next;
			continue;
		}
		*link = writer->next;
		writer->next = complete;
		complete = writer;
	}
	return complete;
}

static void look_at_writers(struct ocl_stream *root)
{
	struct stream_writer *complete = take_complete(&root->as.memory);
	struct stream_writer last = { 0 };

	if (!root->as.memory.writers)
		unlist(root);
	while (complete) {
		struct stream_writer *writer = complete;

		complete = writer->next;
		/* Usually they all write the same. */
		if (writer->offset < last.offset ||
		    writer->offset + writer->bytes > last.offset + last.bytes) {
			last = *writer;
			learn(root, &last);
		}
		ocl.next.clReleaseEvent(writer->event);
		free(writer);
	}
}

void stream_pages_look(void)
{
	struct ocl_stream *root, *next;

	for (root = written; root; root = next) {
		next = root->as.memory.next_written;
		look_at_writers(root);
	}
}

/* ---- what the host wrote ---- */

static void emit_host_write(struct ocl_stream *root, uint64_t offset, const void *data,
			    size_t bytes)
{
	struct ts_replay_command row = stream_row(TS_COMMAND_HOST_WRITE);

	row.object = root->number;
	row.offset = (int64_t)offset;
	row.bytes = (int64_t)bytes;
	if (!stream_lock())
		return;
	row.blob = ts_replay_blob(data, bytes);
	stream_command(&row);
	stream_unlock();
	stream_memory_written(root);
}

/* Emits runs of pages that differ, except those that a command is writing. */
static void emit_differences(struct ocl_stream *root, uint64_t offset, uint64_t *pages,
			     const unsigned char *copy, size_t bytes)
{
	bool is_busy = is_being_written(&root->as.memory, offset, bytes, false);
	size_t begin = bytes; /* of the current run; none */

	for (size_t at = 0; at < bytes; at += PAGE) {
		uint64_t hash = hash_page(copy, at, bytes);
		size_t count = bytes - at < PAGE ? bytes - at : PAGE;

		if (hash != pages[at / PAGE] &&
		    !(is_busy && is_being_written(&root->as.memory, offset + at, count, false))) {
			pages[at / PAGE] = hash;
			begin = begin < at ? begin : at;
		} else if (begin < at) {
			emit_host_write(root, offset + begin, copy + begin, at - begin);
			begin = bytes;
		}
	}
	if (begin < bytes)
		emit_host_write(root, offset + begin, copy + begin, bytes - begin);
}

static void compare_chunk(struct ocl_stream *root, struct stream_area *area, uint64_t chunk,
			  unsigned char *copy)
{
	uint64_t offset = area->offset + chunk * CHUNK;
	size_t bytes = chunk_bytes(area, chunk), got;
	uint64_t hash;

	if (is_being_written(&root->as.memory, offset, bytes, true))
		return;
	got = read_chunk(root, area, chunk, copy);
	hash = got == bytes ? ts_replay_hash(copy, bytes) : 0;
	if (hash && hash == area->chunks[chunk])
		return;
	/* Of a page that is cut off, nothing is known. */
	got -= got < bytes ? got % PAGE : 0;
	emit_differences(root, offset, area->pages + chunk * (CHUNK / PAGE), copy, got);
	area->chunks[chunk] = is_being_written(&root->as.memory, offset, bytes, false) ? 0 : hash;
}

/* With the hash of what was stored. */
static void emit_pixels(struct ocl_stream *root, struct stream_area *area)
{
	struct stream_text text;
	struct ts_replay_command row = stream_row(TS_COMMAND_HOST_WRITE);

	row.object = area->image;
	row.offset = 0;
	row.bytes = (int64_t)area->bytes;
	stream_text_begin(&text);
	stream_text_rect(&text, &area->rect, NULL);
	row.details = stream_text_end(&text);
	if (!stream_lock())
		return;
	if (read_pixels(root, area, &area->chunks[0], &row.blob))
		stream_command(&row);
	stream_unlock();
	stream_memory_written(root);
}

static void compare_pixels(struct ocl_stream *root, struct stream_area *area)
{
	uint64_t hash;

	if (!are_pixels_being_written(root, area) && read_pixels(root, area, &hash, NULL) &&
	    hash != area->chunks[0])
		emit_pixels(root, area);
}

static void compare_area(struct ocl_stream *root, struct stream_area *area,
			 const struct stream_range *range, unsigned char *copy)
{
	if (!meet(range->offset, range->bytes, area->offset, stream_area_span(area)) ||
	    !allocate(area))
		return;
	if (area->image) {
		compare_pixels(root, area);
		return;
	}
	for (uint64_t i = 0; i < chunk_count(area); i++) {
		if (meet(range->offset, range->bytes, area->offset + i * CHUNK,
			 chunk_bytes(area, i)))
			compare_chunk(root, area, i, copy);
	}
}

void stream_pages_compare(struct ocl_stream *root, const struct stream_range *range)
{
	struct stream_memory *memory = &root->as.memory;
	struct stream_region *position = NULL;
	struct stream_area *area;
	unsigned char *copy;

	if (!memory->area.pages && (memory->area.host || !atomic_load(&memory->mapped_writing)))
		return;
	if (memory->is_listed)
		look_at_writers(root);
	copy = stream_copy_take();
	if (!copy) {
		stream_lost("host writes to shared memory", "no memory to find them");
		return;
	}
	if (memory->area.pages)
		compare_area(root, &memory->area, range, copy);
	while ((area = next_area(memory, &position)) != NULL)
		compare_area(root, area, range, copy);
	stream_copy_give(copy);
}

/* ---- begin and end of a window ---- */

/* The blob is complete in any case, so that the stream stays valid. */
bool stream_pages_begin(struct ocl_stream *root, uint64_t *ret_blob)
{
	struct stream_area *area = &root->as.memory.area;
	unsigned char *copy;

	stream_pages_end(root);
	if (ret_blob)
		*ret_blob = 0;
	if (!allocate(area))
		return false;
	if (area->image)
		return read_pixels(root, area, &area->chunks[0], ret_blob);
	copy = stream_copy_take();
	if (!copy)
		return false;
	if (ret_blob)
		*ret_blob = ts_replay_blob_begin(area->bytes);
	for (uint64_t i = 0; i < chunk_count(area); i++) {
		size_t bytes = chunk_bytes(area, i);
		size_t got = area->is_gone ? 0 : read_chunk(root, area, i, copy);

		memset(copy + got, 0, bytes - got);
		for (size_t at = 0; at < bytes; at += PAGE)
			area->pages[(i * CHUNK + at) / PAGE] = hash_page(copy, at, bytes);
		area->chunks[i] = ts_replay_hash(copy, bytes);
		if (ret_blob && *ret_blob)
			ts_replay_blob_part(copy, bytes);
	}
	stream_copy_give(copy);
	return !area->is_gone;
}

bool stream_pages_are_shared(const struct ocl_stream *root)
{
	const struct stream_area *area = &root->as.memory.area;
	const struct ocl_stream *context = root->parent;
	/* What drivers of integrated GPUs ask for; otherwise they copy. */
	bool is_aligned = (uintptr_t)area->host % 4096 == 0 && area->bytes % 64 == 0;
	bool are_shared = context && context->as.context.device_count > 0;

	for (uint32_t i = 0; are_shared && i < context->as.context.device_count; i++) {
		const struct stream_device *device = &context->as.context.devices[i]->as.device;

		are_shared = device->is_cpu ||
			     (device->is_unified && is_aligned && !root->as.memory.image);
	}
	return are_shared;
}

/* With contents, if these are kept and still there. */
static void check_known(const struct stream_check *check, const struct stream_area *area,
			uint64_t bytes, uint64_t hash)
{
	unsigned char *copy = ts_replay_settings()->keep_contents ? malloc(bytes) : NULL;

	if (copy && stream_area_read(area, check->offset - area->offset, copy, bytes) == bytes &&
	    ts_replay_hash(copy, bytes) == hash)
		stream_check_bytes(check, copy, bytes);
	else
		stream_emit_check(check, bytes, hash);
	free(copy);
}

/* Chunks; of those that are not known as a whole, pages. False: nothing is known. */
static bool check_area(const struct ocl_stream *root, const struct stream_area *area)
{
	struct stream_check check = { .sequence = stream_last_sequence(),
				      .memory = root->number,
				      .why = "final" };

	if (!area->pages)
		return false;
	/* A check of an image covers all of it. */
	if (area->image) {
		if (area->chunks[0] && area->bytes == root->as.memory.bytes)
			check_known(&check, area, area->bytes, area->chunks[0]);
		return area->bytes == root->as.memory.bytes;
	}
	for (uint64_t at = 0, bytes; at < area->bytes; at += bytes) {
		uint64_t left = area->bytes - at, hash = area->pages[at / PAGE];

		bytes = left < PAGE ? left : PAGE;
		if (at % CHUNK == 0 && area->chunks[at / CHUNK]) {
			bytes = left < CHUNK ? left : CHUNK;
			hash = area->chunks[at / CHUNK];
		}
		check.offset = area->offset + at;
		if (hash)
			check_known(&check, area, bytes, hash);
	}
	return true;
}

bool stream_pages_final(const struct ocl_stream *root)
{
	const struct stream_region *region = root->as.memory.regions;
	bool are_known = true;

	if (root->as.memory.area.host) {
		check_area(root, &root->as.memory.area);
		return true;
	}
	for (; region; region = region->next)
		are_known =
			(check_area(root, &region->area) || !stream_region_is_written(region)) &&
			are_known;
	return are_known;
}

void stream_pages_end(struct ocl_stream *root)
{
	struct stream_memory *memory = &root->as.memory;

	unlist(root);
	while (memory->writers) {
		struct stream_writer *next = memory->writers->next;

		stream_release_later(NULL, NULL, memory->writers->event);
		free(memory->writers);
		memory->writers = next;
	}
	stream_area_end(&memory->area);
	for (struct stream_region *region = memory->regions; region; region = region->next)
		stream_area_end(&region->area);
}

cl_uint stream_pages_holds(cl_event event)
{
	cl_uint holds = 0;

	pthread_mutex_lock(&stream_host_lock);
	for (const struct ocl_stream *root = written; root; root = root->as.memory.next_written) {
		for (const struct stream_writer *writer = root->as.memory.writers; writer;
		     writer = writer->next)
			holds += writer->event == event;
	}
	pthread_mutex_unlock(&stream_host_lock);
	return holds;
}
