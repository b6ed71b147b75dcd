/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads behind commands that are pending (capture_each.h): when one is complete, its bytes are
 * hashed, and the check is emitted.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_each.h"

#define SLABS 16u
#define PENDING 1024u
#define WAIT_NS INT64_C(60000000000)
#define SLICE_NS INT64_C(10000000)

pthread_mutex_t each_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct each_read *first, **last, *spare;
	_Atomic uint32_t count;
	struct each_slab slabs[SLABS], *slab;
} self = { .last = &self.first };

/* ---- reads ---- */

struct each_read *each_first(void)
{
	return self.first;
}

bool each_any(void)
{
	return atomic_load_explicit(&self.count, memory_order_relaxed) > 0;
}

struct each_read *each_new_read(const struct stream_range *range, const struct ocl_command *command)
{
	struct each_read *read = self.spare;

	if (read)
		self.spare = read->next;
	else
		read = malloc(sizeof(*read));
	if (read)
		*read = (struct each_read){
			.memory = range->memory,
			.queue = command->queue->stream->number,
			.is_in_order = !command->queue->out_of_order,
			.sequence = command->sequence,
			.offset = range->offset,
			.bytes = range->bytes,
			.writes = atomic_load(&range->memory->as.memory.writes),
		};
	return read;
}

void each_add(struct each_read *read)
{
	struct stream_memory *memory = &read->memory->as.memory;
	uint64_t queue = read->is_in_order ? read->queue : 0;

	if (read->pieces)
		read->pieces->reads++;
	if (read->batch)
		read->batch->reads++;
	read->data = read->slab->bytes + read->slab->used;
	/* Rows of a cache do not meet. */
	read->slab->used += (read->bytes + 63) & ~UINT64_C(63);
	read->slab->reads++;
	read->next = NULL;
	*self.last = read;
	self.last = &read->next;
	atomic_fetch_add(&self.count, 1);
	memory->reading_queue = !memory->reads_behind || memory->reading_queue == queue ? queue : 0;
	memory->reads_behind++;
}

/* The memory does not count it any more. */
static void forget(struct each_read *read)
{
	if (read->memory)
		read->memory->as.memory.reads_behind--;
	read->memory = NULL;
}

void each_give_up(struct each_read *read)
{
	if (read->pieces)
		read->pieces->is_lost = true;
	forget(read);
}

void each_drop_pieces(struct each_pieces *pieces)
{
	if (pieces && --pieces->reads == 0)
		free(pieces);
}

static void drop_batch(struct each_batch *batch)
{
	if (!batch || --batch->reads)
		return;
	if (batch->event)
		ocl.next.clReleaseEvent(batch->event);
	free(batch);
}

/* It is not in the list any more. */
static void recycle(struct each_read *read)
{
	forget(read);
	each_drop_pieces(read->pieces);
	drop_batch(read->batch);
	read->slab->reads--;
	if (read->event)
		ocl.next.clReleaseEvent(read->event);
	read->next = self.spare;
	self.spare = read;
	atomic_fetch_sub(&self.count, 1);
}

/* ---- completion ---- */

cl_int each_status(const struct each_read *read)
{
	struct each_batch *batch = read->batch;

	if (!batch)
		return stream_event_status(read->event);
	if (batch->status > CL_COMPLETE && batch->event)
		batch->status = stream_event_status(batch->event);
	return batch->status;
}

cl_event each_event(const struct each_read *read)
{
	if (read->batch)
		staging_read(read->batch);
	return read->batch ? read->batch->event : read->event;
}

bool each_finish_event(cl_event event)
{
	int64_t deadline = ts_replay_clock_ns() + WAIT_NS;

	while (!stream_event_finish(event, ts_replay_clock_ns() + SLICE_NS)) {
		if (ts_replay_in_callback() || stream_events_blocking() ||
		    ts_replay_clock_ns() >= deadline)
			return false;
	}
	return true;
}

bool each_finish(const struct each_read *read)
{
	cl_event event = each_event(read);

	return !event || each_finish_event(event);
}

/* Whether the pieces before it were taken. */
static bool is_next(const struct each_read *read)
{
	const struct each_pieces *pieces = read->pieces;

	return !pieces || !read->memory || pieces->is_lost ||
	       pieces->offset + pieces->hash.bytes == read->offset;
}

/* It is complete. */
static void take_hash(struct each_read *read, cl_int status)
{
	struct each_pieces *pieces = read->pieces;

	if (!read->memory || (pieces && pieces->is_lost))
		return;
	if (status != CL_COMPLETE) {
		stream_lost_memory("checks of memory", read->memory, "it could not be read back");
		each_give_up(read);
	} else if (!pieces) {
		read->hash = ts_replay_hash(read->data, read->bytes);
	} else {
		ts_hash_stream_add(&pieces->hash, read->data, read->bytes);
		if (pieces->hash.bytes == pieces->bytes)
			read->hash = ts_hash_stream_digest(&pieces->hash);
	}
}

/* The channel is locked. */
static void emit(const struct each_read *read)
{
	const struct each_pieces *pieces = read->pieces;
	uint64_t bytes = pieces ? pieces->bytes : read->bytes;
	struct stream_check check = { read->sequence, 0, pieces ? pieces->offset : read->offset,
				      "each" };
	struct stream_memory *memory;

	if (!read->memory || (pieces && pieces->is_lost) ||
	    read->offset + read->bytes != check.offset + bytes)
		return;
	check.memory = read->memory->number;
	if (pieces)
		stream_emit_check_locked(&check, bytes, read->hash);
	else
		stream_check_locked(&check, read->data, bytes, read->hash);
	memory = &read->memory->as.memory;
	if (bytes == memory->bytes) {
		memory->checked_hash = read->hash;
		memory->checked_writes = read->writes;
	}
}

/*
 * Takes what has been read off the list, in order. Behind a read that is not complete the queue is
 * busy, and the driver is not asked again. The read of a batch is enqueued later than its copies:
 * reads behind these may be complete before it.
 */
static struct each_read *take_complete(void)
{
	struct each_read **link = &self.first, *complete = NULL, **last = &complete;
	const struct each_batch *busy_batch = NULL;
	uint64_t busy_queue = 0;

	while (*link) {
		struct each_read *read = *link;
		bool is_busy = read->batch ? read->batch == busy_batch : read->queue == busy_queue;
		cl_int status = is_busy || !is_next(read) ? CL_QUEUED : each_status(read);

		if (status > CL_COMPLETE) {
			if (read->batch)
				busy_batch = read->batch;
			else
				busy_queue = read->is_in_order ? read->queue : 0;
			link = &read->next;
			continue;
		}
		take_hash(read, status);
		*link = read->next;
		read->next = NULL;
		*last = read;
		last = &read->next;
	}
	self.last = link;
	return complete;
}

/* Taking the channel costs more than a small check. */
void each_take(void)
{
	struct each_read *read = take_complete(), *next;
	bool is_locked = read && ts_replay_lock_window();

	for (; read; read = next) {
		next = read->next;
		if (is_locked)
			emit(read);
		recycle(read);
	}
	if (is_locked)
		ts_replay_unlock();
}

/* ---- host memory ---- */

static struct each_slab *find_empty(void)
{
	for (uint32_t i = 0; i < SLABS; i++) {
		struct each_slab *slab = &self.slabs[i];

		if (slab->reads)
			continue;
		if (!slab->bytes)
			slab->bytes = stream_copy_take();
		slab->used = 0;
		return slab->bytes ? slab : NULL;
	}
	return NULL;
}

static struct each_slab *find_space(size_t bytes)
{
	if (!self.slab || self.slab->used + bytes > STREAM_COPY_BYTES)
		self.slab = find_empty();
	return self.slab;
}

/* Nobody else takes it. */
static struct each_slab *find_slab(void)
{
	struct each_slab *slab = find_empty();

	if (slab == self.slab)
		self.slab = NULL;
	return slab;
}

/* A slab with so many bytes left; 0: one for the caller alone. */
static struct each_slab *wait_for(size_t bytes)
{
	struct each_slab *slab = NULL;

	for (;;) {
		if (self.count < PENDING)
			slab = bytes ? find_space(bytes) : find_slab();
		if (slab || !self.first || !each_finish(self.first))
			return slab;
		each_take();
	}
}

struct each_slab *each_make_space(size_t bytes)
{
	return wait_for(bytes);
}

struct each_slab *each_make_slab(void)
{
	return wait_for(0);
}

/* ---- the host ---- */

void stream_each_look(void)
{
	if (!each_any())
		return;
	pthread_mutex_lock(&each_lock);
	staging_read_old();
	each_take();
	pthread_mutex_unlock(&each_lock);
}

void stream_each_forget(void)
{
	pthread_mutex_lock(&each_lock);
	for (struct each_read *read = self.first; read; read = read->next)
		each_give_up(read);
	staging_forget();
	pthread_mutex_unlock(&each_lock);
}

bool stream_each_knows(const struct ocl_stream *memory, uint64_t *ret_hash)
{
	const struct stream_memory *as = &memory->as.memory;
	bool is_known;

	pthread_mutex_lock(&each_lock);
	*ret_hash = as->checked_hash;
	is_known = as->checked_writes && as->checked_writes == atomic_load(&as->writes);
	pthread_mutex_unlock(&each_lock);
	return is_known && !stream_lost_any();
}

static struct each_read *find_read(const struct ocl_stream *memory)
{
	struct each_read *read = self.first;

	while (read && read->memory != memory)
		read = read->next;
	return read;
}

/* Each round takes the first read of the memory, or gives it up: none refers to it afterwards. */
void stream_each_gone(struct ocl_stream *memory)
{
	struct each_read *read;

	if (!memory->as.memory.reads_behind)
		return;
	pthread_mutex_lock(&each_lock);
	each_take();
	while ((read = find_read(memory)) != NULL) {
		if (each_finish(read))
			each_take();
		if (find_read(memory) != read)
			continue;
		if (!read->pieces || !read->pieces->is_lost)
			stream_lost_memory("checks of memory", memory,
					   "it was released before it could be read back");
		each_give_up(read);
	}
	pthread_mutex_unlock(&each_lock);
}

void stream_each_let_go(void)
{
	pthread_mutex_lock(&each_lock);
	staging_release();
	while (self.first && each_finish(self.first))
		each_take();
	pthread_mutex_unlock(&each_lock);
}

void stream_each_forked(void)
{
	pthread_mutex_init(&each_lock, NULL);
	self.first = NULL;
	self.last = &self.first;
	self.slab = NULL;
	memset(self.slabs, 0, sizeof(self.slabs));
	atomic_store(&self.count, 0);
	staging_forked();
}
