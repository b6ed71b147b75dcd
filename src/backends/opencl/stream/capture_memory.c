/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side of memory: reads that are not complete, and mapped regions. A read is hashed at the
 * first instant at which the program can know that it is complete, which is any wait of the host:
 * then the bytes are there, and the program has not changed them.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define WRITING (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)
#define READ_WAIT_NS \
	INT64_C(10000000000) /* for a read whose destination is the source of a write */
/*
 * The same while a user event is unset: this thread may have to set it, or another one, or the read
 * may not depend on it.
 */
#define READ_WAIT_UNSET_NS INT64_C(100000000)

/* An incomplete read. */
struct pending {
	struct pending *next;
	cl_event event; /* held */
	uint64_t sequence;
	const unsigned char *base;
	uint64_t from, bytes; /* relative to base: from the first byte to the last */
	bool is_rect;
	struct stream_rect rect;
	const char *why;
};

pthread_mutex_t stream_host_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *reads;
static _Atomic uint32_t read_count;

/* ---- reads ---- */

static void check_read(const struct pending *read)
{
	struct stream_foreign all = { read->base, read->bytes, NULL };
	struct stream_check check = { .sequence = read->sequence, .why = read->why };

	if (read->is_rect) {
		all.rect = &read->rect;
		all.bytes = stream_rect_bytes(&read->rect);
	}
	if (!stream_check_foreign(&check, &all))
		stream_lost("checks of reads", "the memory that they read into is gone");
}

void stream_read_given(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	struct pending *read, now = {
		.event = command->event,
		.sequence = command->sequence,
		.base = frozen->destination.base,
		.bytes = frozen->destination.bytes,
		.is_rect = frozen->destination.rect != NULL,
		.rect = frozen->rect,
		.why = frozen->check,
	};

	if (now.is_rect)
		stream_rect_extent(&now.rect, &now.from, &now.bytes);
	if (now.bytes == 0)
		return;
	if (command->blocking && !command->is_deferred) {
		check_read(&now);
		return;
	}
	read = command->event ? malloc(sizeof(*read)) : NULL;
	if (!read || ocl.next.clRetainEvent(command->event)) {
		free(read);
		stream_lost("checks of reads", "their events could not be kept");
		return;
	}
	*read = now;
	pthread_mutex_lock(&stream_host_lock);
	read->next = reads;
	reads = read;
	atomic_fetch_add(&read_count, 1);
	pthread_mutex_unlock(&stream_host_lock);
}

static void remove_read(struct pending **link)
{
	struct pending *read = *link;

	*link = read->next;
	atomic_fetch_sub(&read_count, 1);
	ocl.next.clReleaseEvent(read->event);
	free(read);
}

/* Checks a read if it is complete; false: it is not. */
static bool look_at_read(struct pending **link)
{
	cl_int status = stream_event_status((*link)->event);

	if (status > CL_COMPLETE)
		return false;
	if (status == CL_COMPLETE)
		check_read(*link);
	remove_read(link);
	return true;
}

static bool overlaps(const struct pending *read, const void *host, uint64_t bytes)
{
	uintptr_t a = (uintptr_t)read->base + read->from, b = (uintptr_t)host;

	return a < b + bytes && b < a + read->bytes;
}

/* The event, held, of an incomplete read into the range; NULL: none. Checks the complete ones. */
static cl_event find_overlap(const void *host, uint64_t bytes, bool forget)
{
	cl_event found = NULL;
	struct pending **link;

	pthread_mutex_lock(&stream_host_lock);
	for (link = &reads; *link && !found;) {
		if (!overlaps(*link, host, bytes)) {
			link = &(*link)->next;
		} else if (!look_at_read(link)) {
			if (forget)
				remove_read(link);
			else
				found = (*link)->event;
		}
	}
	if (found)
		ocl.next.clRetainEvent(found);
	pthread_mutex_unlock(&stream_host_lock);
	return found;
}

bool stream_reads_settle(const void *host, uint64_t bytes, bool forget)
{
	int64_t deadline = 0;
	bool is_complete = true;
	cl_event event;

	while (is_complete && atomic_load(&read_count) &&
	       (event = find_overlap(host, bytes, forget)) != NULL) {
		if (!deadline)
			deadline = ts_replay_clock_ns() +
				   (stream_events_blocking() ? READ_WAIT_UNSET_NS : READ_WAIT_NS);
		is_complete = !ts_replay_in_callback() && stream_event_finish(event, deadline);
		ocl.next.clReleaseEvent(event);
	}
	return is_complete;
}

void stream_look(void)
{
	struct pending **link;

	if (!ts_replay_is_open())
		return;
	stream_each_look();
	/*
	 * Waits for a thread that is hashing: when this returns, the program may change the bytes.
	 */
	pthread_mutex_lock(&stream_host_lock);
	for (link = &reads; *link;) {
		if (!look_at_read(link))
			link = &(*link)->next;
	}
	stream_pages_look();
	pthread_mutex_unlock(&stream_host_lock);
}

void stream_reads_forget(void)
{
	pthread_mutex_lock(&stream_host_lock);
	while (reads)
		remove_read(&reads);
	pthread_mutex_unlock(&stream_host_lock);
}

static cl_uint regions_hold(cl_event event, enum ocl_kind kind)
{
	struct ocl_stream *memory = stream_object_next(kind, NULL);
	const struct stream_region *region;
	cl_uint holds = 0;

	for (; memory; memory = stream_object_next(kind, memory)) {
		pthread_mutex_lock(&stream_host_lock);
		for (region = memory->as.memory.regions; region; region = region->next)
			holds += region->event == event;
		pthread_mutex_unlock(&stream_host_lock);
	}
	return holds;
}

cl_uint stream_event_holds(cl_event event)
{
	cl_uint holds;

	pthread_mutex_lock(&stream_host_lock);
	holds = stream_pages_hold(event);
	for (const struct pending *read = reads; read; read = read->next)
		holds += read->event == event;
	pthread_mutex_unlock(&stream_host_lock);
	return holds + regions_hold(event, OCL_MEMORY) + regions_hold(event, OCL_SVM);
}

/* ---- regions ---- */

void stream_region_free(struct stream_region *region)
{
	if (!region)
		return;
	if (region->event)
		stream_release_later(NULL, NULL, region->event);
	stream_area_end(&region->area);
	free(region);
}

void stream_region_add(struct ocl_stream *root, struct stream_region *region)
{
	pthread_mutex_lock(&stream_host_lock);
	region->next = root->as.memory.regions;
	root->as.memory.regions = region;
	if (region->flags & WRITING)
		atomic_fetch_add(&root->as.memory.mapped_writing, 1);
	pthread_mutex_unlock(&stream_host_lock);
}

/*
 * Several regions may begin at one address: prefers those for writing, whose bytes must not be
 * missed, then the largest.
 */
static struct stream_region **choose_region(struct stream_memory *memory, const void *host)
{
	struct stream_region **chosen = NULL, **link;

	for (link = &memory->regions; *link; link = &(*link)->next) {
		bool writes = (*link)->flags & WRITING;

		if ((*link)->area.host != host)
			continue;
		if (!chosen || (writes && !((*chosen)->flags & WRITING)) ||
		    (writes && (*link)->area.bytes > (*chosen)->area.bytes))
			chosen = link;
	}
	return chosen;
}

struct stream_region *stream_region_take(struct ocl_stream *root, const void *host)
{
	struct stream_region **link, *region = NULL;

	pthread_mutex_lock(&stream_host_lock);
	link = choose_region(&root->as.memory, host);
	if (link) {
		region = *link;
		*link = region->next;
		if (region->flags & WRITING)
			atomic_fetch_sub(&root->as.memory.mapped_writing, 1);
	}
	pthread_mutex_unlock(&stream_host_lock);
	return region;
}

bool stream_region_is_written(const struct stream_region *region)
{
	return region->flags & WRITING &&
	       (!region->event || stream_event_status(region->event) == CL_COMPLETE);
}

bool stream_region_after(const struct ocl_stream *root, uint64_t at, uint64_t *ret_begin,
			 uint64_t *ret_end)
{
	const struct stream_region *first = NULL, *region;

	for (region = root->as.memory.regions; region; region = region->next) {
		if (region->flags & WRITING &&
		    region->area.offset + stream_area_span(&region->area) > at &&
		    (!first || region->area.offset < first->area.offset))
			first = region;
	}
	if (!first)
		return false;
	*ret_begin = first->area.offset;
	*ret_end = first->area.offset + stream_area_span(&first->area);
	return true;
}

bool stream_range_is_mapped(const struct ocl_stream *root, uint64_t offset, uint64_t bytes)
{
	uint64_t begin, end;
	bool is_mapped;

	if (!atomic_load(&root->as.memory.mapped_writing))
		return false;
	pthread_mutex_lock(&stream_host_lock);
	is_mapped = stream_region_after(root, offset, &begin, &end) && begin < offset + bytes;
	pthread_mutex_unlock(&stream_host_lock);
	return is_mapped;
}

void stream_memory_written(struct ocl_stream *stream)
{
	struct stream_memory *memory = &stream->as.memory;

	atomic_fetch_add_explicit(&memory->writes, 1, memory_order_relaxed);
	atomic_store_explicit(&memory->written, ts_replay_window(), memory_order_relaxed);
}

void stream_memory_release(struct ocl_stream *stream)
{
	struct stream_memory *memory = &stream->as.memory;

	pthread_mutex_lock(&stream_host_lock);
	while (memory->regions) {
		struct stream_region *next = memory->regions->next;

		stream_region_free(memory->regions);
		memory->regions = next;
	}
	stream_pages_end(stream);
	pthread_mutex_unlock(&stream_host_lock);
	free(memory->image);
}

void stream_memory_forked(void)
{
	pthread_mutex_init(&stream_host_lock, NULL);
	stream_copies_forked();
	stream_each_forked();
}
