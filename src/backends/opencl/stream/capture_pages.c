/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that host and device share (USE_HOST_PTR): the program may write it without a call. A hash
 * per page shows what it wrote since the last command that used the memory. Only inside windows;
 * all under the host lock.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define PAGE 4096u

/* Memory with writers that may be incomplete. */
static struct ocl_stream *written;

static uint64_t page_count(const struct stream_memory *memory)
{
	return (memory->bytes + PAGE - 1) / PAGE;
}

static uint64_t hash_page(const struct stream_memory *memory, uint64_t page)
{
	uint64_t left = memory->bytes - page * PAGE;

	return ts_replay_hash(memory->host + page * PAGE, left < PAGE ? (size_t)left : PAGE);
}

static void take_hashes(struct stream_memory *memory)
{
	for (uint64_t i = 0; i < page_count(memory); i++)
		memory->pages[i] = hash_page(memory, i);
}

void stream_pages_begin(struct ocl_stream *root)
{
	struct stream_memory *memory = &root->as.memory;

	pthread_mutex_lock(&stream_host_lock);
	stream_pages_end(root);
	memory->pages = malloc(page_count(memory) * sizeof(uint64_t));
	if (memory->pages)
		take_hashes(memory);
	else
		stream_lost("host writes to shared memory", "no memory to find them");
	pthread_mutex_unlock(&stream_host_lock);
}

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

void stream_pages_end(struct ocl_stream *root)
{
	struct stream_memory *memory = &root->as.memory;

	unlist(root);
	while (memory->writers) {
		struct stream_hold *next = memory->writers->next;

		stream_release_later(NULL, NULL, memory->writers->event);
		free(memory->writers);
		memory->writers = next;
	}
	free(memory->pages);
	memory->pages = NULL;
}

void stream_pages_written(struct ocl_stream *root, cl_event event)
{
	struct stream_memory *memory = &root->as.memory;
	struct stream_hold *hold;

	if (!memory->pages)
		return;
	hold = malloc(sizeof(*hold));
	if (!hold || ocl.next.clRetainEvent(event)) {
		free(hold);
		return;
	}
	*hold = (struct stream_hold){ .event = event, .next = memory->writers };
	memory->writers = hold;
	if (!memory->is_listed) {
		memory->is_listed = true;
		memory->next_written = written;
		written = root;
	}
}

/* True: none is left. */
static bool drop_complete(struct stream_memory *memory)
{
	struct stream_hold **link = &memory->writers;

	while (*link) {
		struct stream_hold *hold = *link;

		if (stream_event_status(hold->event) > CL_COMPLETE) {
			link = &hold->next;
			continue;
		}
		*link = hold->next;
		ocl.next.clReleaseEvent(hold->event);
		free(hold);
	}
	return !memory->writers;
}

void stream_pages_look(void)
{
	struct ocl_stream *root, *next;

	for (root = written; root; root = next) {
		next = root->as.memory.next_written;
		if (!drop_complete(&root->as.memory))
			continue;
		unlist(root);
		take_hashes(&root->as.memory);
	}
}

static void emit_host_write(const struct ocl_stream *root, uint64_t offset, uint64_t bytes)
{
	struct ts_replay_command row = {
		.size = sizeof(row),
		.kind = TS_COMMAND_HOST_WRITE,
		.object = root->number,
		.offset = (int64_t)offset,
		.other_offset = TS_UNKNOWN,
		.bytes = (int64_t)bytes,
	};

	if (!stream_lock())
		return;
	row.blob = ts_replay_blob(root->as.memory.host + offset, bytes);
	stream_command(&row);
	stream_unlock();
}

/* Emits runs of pages that differ. */
static void emit_differences(struct ocl_stream *root)
{
	struct stream_memory *memory = &root->as.memory;
	uint64_t count = page_count(memory), begin = count;

	for (uint64_t i = 0; i <= count; i++) {
		uint64_t hash = i < count ? hash_page(memory, i) : 0;
		bool differs = i < count && hash != memory->pages[i];

		if (differs) {
			memory->pages[i] = hash;
			begin = begin < i ? begin : i;
		} else if (begin < i) {
			uint64_t end = i * PAGE < memory->bytes ? i * PAGE : memory->bytes;

			emit_host_write(root, begin * PAGE, end - begin * PAGE);
			atomic_store_explicit(&memory->written, stream_window(),
					      memory_order_relaxed);
			begin = count;
		}
	}
}

void stream_pages_compare(struct ocl_stream *root)
{
	struct stream_memory *memory = &root->as.memory;

	if (!memory->pages || atomic_load(&memory->mapped_writing))
		return;
	if (!memory->is_listed) {
		emit_differences(root);
	} else if (drop_complete(memory)) {
		unlist(root);
		take_hashes(memory);
	}
}

cl_uint stream_pages_holds(cl_event event)
{
	cl_uint holds = 0;

	pthread_mutex_lock(&stream_host_lock);
	for (const struct ocl_stream *root = written; root; root = root->as.memory.next_written) {
		for (const struct stream_hold *hold = root->as.memory.writers; hold;
		     hold = hold->next)
			holds += hold->event == event;
	}
	pthread_mutex_unlock(&stream_host_lock);
	return holds;
}
