/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host wrote to memory that it may write without a call, and what commands wrote to it.
 * Before a command uses the memory, pages whose hash is another one become host writes. When a
 * command that writes it is complete, its pages are hashed again. Only inside windows; all under
 * the host lock.
 */
#include <stdlib.h>

#include "backends/opencl/stream/capture_areas.h"

/* Memory with writers that may be incomplete. */
static struct ocl_stream *written;

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
		stream_lost("host writes to shared memory", "no memory to find them");
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
	uint64_t offset = area->offset + chunk * AREA_CHUNK;
	size_t bytes = area_chunk_bytes(area, chunk),
	       got = area_read_chunk(root, area, chunk, copy);
	bool is_all = got == bytes && range->offset <= offset &&
		      offset + bytes <= range->offset + range->bytes &&
		      !is_being_written(memory, offset, bytes, false);

	for (size_t at = 0; at < bytes; at += AREA_PAGE) {
		size_t count = bytes - at < AREA_PAGE ? bytes - at : AREA_PAGE;

		if (is_all || (meet(range->offset, range->bytes, offset + at, count) &&
			       !is_being_written(memory, offset + at, count, false)))
			area->pages[(chunk * AREA_CHUNK + at) / AREA_PAGE] =
				at + count <= got ? area_hash_page(copy, at, bytes) : 0;
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
			area_read_pixels(root, area, &area->chunks[0], NULL);
		return;
	}
	for (uint64_t i = 0; i < area_chunk_count(area); i++) {
		if (meet(range->offset, range->bytes, area->offset + i * AREA_CHUNK,
			 area_chunk_bytes(area, i)))
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
	if (!ts_replay_lock_window())
		return;
	row.blob = ts_replay_blob(data, bytes);
	ts_replay_append(&row);
	ts_replay_unlock();
	stream_memory_written(root);
}

/* Emits runs of pages that differ, except those that a command is writing. */
static void emit_differences(struct ocl_stream *root, uint64_t offset, uint64_t *pages,
			     const unsigned char *copy, size_t bytes)
{
	bool is_busy = is_being_written(&root->as.memory, offset, bytes, false);
	size_t begin = bytes; /* of the current run; none */

	for (size_t at = 0; at < bytes; at += AREA_PAGE) {
		uint64_t hash = area_hash_page(copy, at, bytes);
		size_t count = bytes - at < AREA_PAGE ? bytes - at : AREA_PAGE;

		if (hash != pages[at / AREA_PAGE] &&
		    !(is_busy && is_being_written(&root->as.memory, offset + at, count, false))) {
			pages[at / AREA_PAGE] = hash;
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
	uint64_t offset = area->offset + chunk * AREA_CHUNK;
	size_t bytes = area_chunk_bytes(area, chunk), got;
	uint64_t hash;

	if (is_being_written(&root->as.memory, offset, bytes, true))
		return;
	got = area_read_chunk(root, area, chunk, copy);
	hash = got == bytes ? ts_replay_hash(copy, bytes) : 0;
	if (hash && hash == area->chunks[chunk])
		return;
	/* Of a page that is cut off, nothing is known. */
	got -= got < bytes ? got % AREA_PAGE : 0;
	emit_differences(root, offset, area->pages + chunk * (AREA_CHUNK / AREA_PAGE), copy, got);
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
	if (!ts_replay_lock_window())
		return;
	if (area_read_pixels(root, area, &area->chunks[0], &row.blob))
		ts_replay_append(&row);
	ts_replay_unlock();
	stream_memory_written(root);
}

static void compare_pixels(struct ocl_stream *root, struct stream_area *area)
{
	uint64_t hash;

	if (!are_pixels_being_written(root, area) && area_read_pixels(root, area, &hash, NULL) &&
	    hash != area->chunks[0])
		emit_pixels(root, area);
}

static void compare_area(struct ocl_stream *root, struct stream_area *area,
			 const struct stream_range *range, unsigned char *copy)
{
	if (!meet(range->offset, range->bytes, area->offset, stream_area_span(area)) ||
	    !area_allocate(area))
		return;
	if (area->image) {
		compare_pixels(root, area);
		return;
	}
	for (uint64_t i = 0; i < area_chunk_count(area); i++) {
		if (meet(range->offset, range->bytes, area->offset + i * AREA_CHUNK,
			 area_chunk_bytes(area, i)))
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

bool stream_pages_begin(struct ocl_stream *root, uint64_t *ret_blob)
{
	stream_pages_end(root);
	return area_begin(root, &root->as.memory.area, ret_blob);
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

bool stream_pages_final(const struct ocl_stream *root)
{
	const struct stream_region *region = root->as.memory.regions;
	bool are_known = true;

	if (root->as.memory.area.host) {
		area_check(root, &root->as.memory.area);
		return true;
	}
	for (; region; region = region->next)
		are_known =
			(area_check(root, &region->area) || !stream_region_is_written(region)) &&
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

cl_uint stream_pages_hold(cl_event event)
{
	cl_uint holds = 0;

	for (const struct ocl_stream *root = written; root; root = root->as.memory.next_written) {
		for (const struct stream_writer *writer = root->as.memory.writers; writer;
		     writer = writer->next)
			holds += writer->event == event;
	}
	return holds;
}
