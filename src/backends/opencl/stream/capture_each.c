/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of each command (record --replayable=checked). What it wrote is read into a slab by a read
 * of our own, right behind it in its queue, and hashed when the host waits anyway or the slabs are
 * full; or it is copied first (capture_staging.c). A range that is larger than a slab is read in
 * pieces: while the driver reads one, those before it are hashed. A command that writes the same
 * memory in another queue has to wait for that read. Where this is not possible (memory that the
 * host sees) the command is waited for.
 */
#include <stdlib.h>

#include "backends/opencl/stream/capture_each.h"

#define WAITS 64u

/* ---- before a command ---- */

static bool meet(const struct each_read *read, const struct stream_range *range)
{
	return read->memory == range->memory && read->offset < range->offset + range->bytes &&
	       range->offset < read->offset + read->bytes;
}

static bool is_ordered(const struct each_read *read, const struct ocl_object *queue)
{
	return read->is_in_order && read->queue == queue->stream->number;
}

/* The rest of the queue waits for the events. */
static void wait_in_queue(const struct ocl_object *queue, cl_uint count, const cl_event *events)
{
	cl_int rc = CL_INVALID_OPERATION;

	for (cl_uint i = 0; i < count; i++)
		stream_event_flush(events[i]);
	if (count && ocl.next.clEnqueueBarrierWithWaitList) /* since OpenCL 1.2 */
		rc = ocl.next.clEnqueueBarrierWithWaitList(queue->handle, count, events, NULL);
	for (cl_uint i = 0; rc != CL_SUCCESS && i < count; i++)
		each_finish_event(events[i]);
}

/*
 * The program may have to see the next command complete before it sets an event: that command must
 * not wait. A batch is complete at once if all before it is; `stuck`: one that is not.
 */
static bool is_ready(const struct each_read *read, cl_event *stuck)
{
	cl_event event = read->batch ? each_event(read) : NULL;

	if (!event || event == *stuck || !each_finish_event(event)) {
		*stuck = event;
		return false;
	}
	return true;
}

/* Its event, if something must wait for it; else NULL. */
static cl_event find_wait(struct each_read *read, cl_event *stuck)
{
	if (each_status(read) <= CL_COMPLETE)
		return NULL;
	if (!stream_events_blocking())
		return each_event(read);
	if (!is_ready(read, stuck)) {
		stream_lost("checks of commands",
			    "not checked, because commands may wait for the program");
		each_give_up(read);
	}
	return NULL;
}

/* Nothing may overwrite what is yet to be read, except behind the read. */
static void order_behind(const struct stream_range *range, const struct ocl_object *queue)
{
	cl_event events[WAITS], event, last = NULL, stuck = NULL;
	cl_uint count = 0;

	for (struct each_read *read = each_first(); read; read = read->next) {
		if (!meet(read, range) || is_ordered(read, queue))
			continue;
		event = find_wait(read, &stuck);
		if (!event || event == last)
			continue;
		events[count++] = last = event;
		if (count == WAITS) {
			wait_in_queue(queue, count, events);
			count = 0;
		}
	}
	wait_in_queue(queue, count, events);
}

void stream_each_before(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	/* The host writes what it maps. */
	uint32_t count = frozen->mapped ? frozen->use_count : frozen->write_count;

	if (!each_any())
		return;
	pthread_mutex_lock(&each_lock);
	/* In front of commands that wait for the program, not behind them. */
	if (stream_events_blocking())
		staging_read_all();
	for (uint32_t i = 0; i < count; i++) {
		const struct stream_memory *memory = &frozen->uses[i].memory->as.memory;

		if (memory->reads_behind && memory->reading_queue != command->queue->stream->number)
			order_behind(&frozen->uses[i], command->queue);
	}
	pthread_mutex_unlock(&each_lock);
}

/* ---- after a command ---- */

static cl_int enqueue_read(struct each_read *read, const struct ocl_command *command)
{
	void *to = read->slab->bytes + read->slab->used;
	cl_uint waits = read->is_in_order ? 0 : 1;
	const cl_event *wait = read->is_in_order ? NULL : &command->event;

	if (read->memory->as.memory.image)
		return stream_image_read_rows(
			command->queue->handle,
			&(struct stream_range){ read->memory, read->offset, read->bytes }, to,
			waits, wait, &read->event);
	return ocl.next.clEnqueueReadBuffer(command->queue->handle, read->memory->handle, CL_FALSE,
					    read->offset, read->bytes, to, waits, wait,
					    &read->event);
}

static bool read_piece(const struct stream_range *range, const struct ocl_command *command,
		       struct each_pieces *pieces)
{
	struct each_slab *slab = each_make_space(range->bytes);
	struct each_read *read = slab ? each_new_read(range, command) : NULL;
	cl_int rc = CL_OUT_OF_HOST_MEMORY;

	if (read) {
		read->slab = slab;
		read->pieces = pieces;
		rc = enqueue_read(read, command);
	}
	if (rc == CL_SUCCESS)
		each_add(read);
	else
		free(read);
	return rc == CL_SUCCESS;
}

static uint64_t piece_bytes(const struct stream_range *range, uint64_t at)
{
	uint64_t left = range->bytes - at;

	if (range->memory->as.memory.image)
		return stream_image_rows(range->memory->as.memory.image, at, STREAM_COPY_BYTES);
	return left < STREAM_COPY_BYTES ? left : STREAM_COPY_BYTES;
}

/* One check. */
static bool read_in_pieces(const struct stream_range *range, const struct ocl_command *command)
{
	struct each_pieces *pieces = malloc(sizeof(*pieces));
	bool is_read = pieces != NULL;

	if (!pieces)
		return false;
	*pieces =
		(struct each_pieces){ .offset = range->offset, .bytes = range->bytes, .reads = 1 };
	ts_hash_stream_init(&pieces->hash);
	for (uint64_t at = 0, bytes; is_read && at < range->bytes; at += bytes) {
		struct stream_range piece = { range->memory, range->offset + at, 0 };

		bytes = piece.bytes = piece_bytes(range, at);
		is_read = read_piece(&piece, command, pieces);
	}
	pieces->is_lost = pieces->is_lost || !is_read;
	each_drop_pieces(pieces);
	return is_read;
}

static bool read_behind(const struct stream_range *range, const struct ocl_command *command)
{
	bool is_read = true;

	for (uint64_t at = 0, bytes; is_read && at < range->bytes; at += bytes) {
		struct stream_range part = { range->memory, range->offset + at, 0 };

		bytes = part.bytes = stream_check_part(range, at);
		if (staging_takes(&part, command))
			is_read = staging_copy(&part, command);
		else if (bytes == piece_bytes(&part, 0))
			is_read = read_piece(&part, command, NULL);
		else
			is_read = read_in_pieces(&part, command);
	}
	return is_read;
}

static bool is_checked(const struct stream_range *range)
{
	return stream_has_content(range->memory) && range->bytes &&
	       !stream_range_is_mapped(range->memory, range->offset, range->bytes);
}

/* A check of an image covers all of it. Contents are kept in one piece. */
static bool has_pieces(const struct stream_range *range)
{
	const struct stream_image *image = range->memory->as.memory.image;

	if (image && (range->bytes != range->memory->as.memory.bytes ||
		      !stream_image_rows(image, 0, STREAM_COPY_BYTES)))
		return false;
	return !ts_replay_settings()->keep_contents || range->bytes == piece_bytes(range, 0);
}

/* SVM may be freed as soon as the command is complete, without another call. */
static bool can_be_read_behind(const struct stream_range *range, const struct ocl_command *command)
{
	const struct stream_memory *memory = &range->memory->as.memory;

	if (staging_takes(range, command))
		return true;
	return !memory->is_svm && !memory->area.host && has_pieces(range) &&
	       !(memory->flags & (CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY)) &&
	       (!command->queue->out_of_order || command->event);
}

static bool contains(const struct stream_range *a, const struct stream_range *b)
{
	return a->memory == b->memory && a->offset <= b->offset &&
	       b->offset + b->bytes <= a->offset + a->bytes;
}

/* Two arguments may be the same memory. */
static bool is_repeated(const struct stream_frozen *frozen, uint32_t use)
{
	uint32_t i = 0;

	while (i < use && !contains(&frozen->uses[i], &frozen->uses[use]))
		i++;
	return i < use;
}

static bool can_all_be_read_behind(const struct stream_frozen *frozen,
				   const struct ocl_command *command)
{
	uint32_t i = 0;

	while (i < frozen->write_count &&
	       (!is_checked(&frozen->uses[i]) || can_be_read_behind(&frozen->uses[i], command)))
		i++;
	return i == frozen->write_count;
}

/* Those that fail are lost, not the program's call. */
static void read_all_behind(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	for (uint32_t i = 0; i < frozen->write_count; i++) {
		const struct stream_range *range = &frozen->uses[i];

		if (!is_checked(range) || is_repeated(frozen, i) || read_behind(range, command))
			continue;
		if (stream_events_blocking())
			stream_lost("checks of commands",
				    "not checked, because commands may wait for the program");
		else
			stream_lost_memory("checks of memory", range->memory,
					   "it could not be read back");
	}
}

bool stream_each_after(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	bool are_read;

	pthread_mutex_lock(&each_lock);
	are_read = can_all_be_read_behind(frozen, command);
	if (are_read)
		read_all_behind(frozen, command);
	pthread_mutex_unlock(&each_lock);
	return are_read;
}

void stream_each_now(const struct stream_frozen *frozen, uint64_t sequence)
{
	for (uint32_t i = 0; i < frozen->write_count; i++) {
		if (is_checked(&frozen->uses[i]) && !is_repeated(frozen, i))
			stream_check_range(&frozen->uses[i], sequence, "each");
	}
}
