/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of each command (record --replayable=checked). What it wrote is read into a slab by a read
 * of our own, right behind it in its queue, and hashed when the host waits anyway or the slabs are
 * full. A range that is larger than a slab is read in pieces: while the driver reads one, those
 * before it are hashed. A command that writes the same memory in another queue has to wait for that
 * read. Where this is not possible (memory that the host sees) the command is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/hash.h"

#define SLABS 16u
#define PENDING 1024u
#define WAITS 64u
#define WAIT_NS INT64_C(60000000000)
#define SLICE_NS INT64_C(10000000)

struct slab {
	unsigned char *bytes; /* STREAM_COPY_BYTES; NULL: not allocated yet */
	size_t used;
	uint32_t reads; /* that are pending */
};

/* A check that is read in several pieces, which are hashed in their order. */
struct pieces {
	struct ts_hash_stream hash; /* of those that were taken */
	uint64_t offset, bytes;     /* of the check */
	uint32_t reads;             /* that refer to it */
	bool is_lost;
};

/* A read behind a command. */
struct behind {
	struct behind *next;
	cl_event event;            /* held */
	struct ocl_stream *memory; /* NULL: no check any more */
	struct slab *slab;
	const unsigned char *data;
	uint64_t queue; /* number */
	bool is_in_order;
	struct pieces *pieces; /* NULL: it is all of its check */
	uint64_t sequence, offset, bytes, hash;
	uint64_t writes; /* of the memory, up to now */
};

/* The lock comes before the channel's; events are queried under it. */
static struct {
	pthread_mutex_t lock;
	struct behind *first, **last, *spare;
	_Atomic uint32_t count;
	struct slab slabs[SLABS], *slab;
} self = { .lock = PTHREAD_MUTEX_INITIALIZER, .last = &self.first };

/* ---- pending reads ---- */

/* The memory does not count it any more. */
static void forget(struct behind *read)
{
	if (read->memory)
		read->memory->as.memory.reads_behind--;
	read->memory = NULL;
}

/* It has no check; nor have the other pieces. */
static void give_up(struct behind *read)
{
	if (read->pieces)
		read->pieces->is_lost = true;
	forget(read);
}

static void drop_pieces(struct pieces *pieces)
{
	if (pieces && --pieces->reads == 0)
		free(pieces);
}

/* It is not in the list any more. */
static void recycle(struct behind *read)
{
	forget(read);
	drop_pieces(read->pieces);
	read->slab->reads--;
	ocl.next.clReleaseEvent(read->event);
	read->next = self.spare;
	self.spare = read;
	atomic_fetch_sub(&self.count, 1);
}

/* Whether the pieces before it were taken. */
static bool is_next(const struct behind *read)
{
	const struct pieces *pieces = read->pieces;

	return !pieces || !read->memory || pieces->is_lost ||
	       pieces->offset + pieces->hash.bytes == read->offset;
}

/* It is complete. */
static void take_hash(struct behind *read, cl_int status)
{
	struct pieces *pieces = read->pieces;

	if (!read->memory || (pieces && pieces->is_lost))
		return;
	if (status != CL_COMPLETE) {
		stream_lost_memory("checks of memory", read->memory, "it could not be read back");
		give_up(read);
	} else if (!pieces) {
		read->hash = ts_replay_hash(read->data, read->bytes);
	} else {
		ts_hash_stream_add(&pieces->hash, read->data, read->bytes);
		if (pieces->hash.bytes == pieces->bytes)
			read->hash = ts_hash_stream_digest(&pieces->hash);
	}
}

/* The channel is locked. */
static void emit(const struct behind *read)
{
	const struct pieces *pieces = read->pieces;
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

/* Takes what has been read off the list, in order. */
static struct behind *take_complete(void)
{
	struct behind **link = &self.first, *complete = NULL, **last = &complete;
	uint64_t busy_queue = 0;

	while (*link) {
		struct behind *read = *link;
		bool is_busy = read->queue == busy_queue || !is_next(read);
		cl_int status = is_busy ? CL_QUEUED : stream_event_status(read->event);

		if (status > CL_COMPLETE) {
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

/* Checks what has been read. Taking the channel costs more than a small check. */
static void look(void)
{
	struct behind *read = take_complete(), *next;
	bool is_locked = read && stream_lock();

	for (; read; read = next) {
		next = read->next;
		if (is_locked)
			emit(read);
		recycle(read);
	}
	if (is_locked)
		stream_unlock();
}

/* False: it may wait for the program. */
static bool finish(cl_event event)
{
	int64_t deadline = stream_clock_ns() + WAIT_NS;

	while (!stream_event_finish(event, stream_clock_ns() + SLICE_NS)) {
		if (stream_in_callback() || stream_events_blocking() ||
		    stream_clock_ns() >= deadline)
			return false;
	}
	return true;
}

void stream_each_look(void)
{
	if (!atomic_load_explicit(&self.count, memory_order_relaxed))
		return;
	pthread_mutex_lock(&self.lock);
	look();
	pthread_mutex_unlock(&self.lock);
}

void stream_each_forget(void)
{
	pthread_mutex_lock(&self.lock);
	for (struct behind *read = self.first; read; read = read->next)
		give_up(read);
	pthread_mutex_unlock(&self.lock);
}

bool stream_each_knows(const struct ocl_stream *memory, uint64_t *ret_hash)
{
	const struct stream_memory *as = &memory->as.memory;
	bool is_known;

	pthread_mutex_lock(&self.lock);
	*ret_hash = as->checked_hash;
	is_known = as->checked_writes && as->checked_writes == atomic_load(&as->writes);
	pthread_mutex_unlock(&self.lock);
	return is_known && !stream_lost_any();
}

static struct behind *find_read(const struct ocl_stream *memory)
{
	struct behind *read = self.first;

	while (read && read->memory != memory)
		read = read->next;
	return read;
}

/* Each round takes the first read of the memory, or gives it up: none refers to it afterwards. */
void stream_each_gone(struct ocl_stream *memory)
{
	struct behind *read;

	if (!memory->as.memory.reads_behind)
		return;
	pthread_mutex_lock(&self.lock);
	look();
	while ((read = find_read(memory)) != NULL) {
		if (finish(read->event))
			look();
		if (find_read(memory) != read)
			continue;
		if (!read->pieces || !read->pieces->is_lost)
			stream_lost_memory("checks of memory", memory,
					   "it was released before it could be read back");
		give_up(read);
	}
	pthread_mutex_unlock(&self.lock);
}

void stream_each_let_go(void)
{
	pthread_mutex_lock(&self.lock);
	while (self.first && finish(self.first->event))
		look();
	pthread_mutex_unlock(&self.lock);
}

void stream_each_forked(void)
{
	pthread_mutex_init(&self.lock, NULL);
	self.first = NULL;
	self.last = &self.first;
	self.slab = NULL;
	memset(self.slabs, 0, sizeof(self.slabs));
	atomic_store(&self.count, 0);
}

/* ---- before a command ---- */

static bool meet(const struct behind *read, const struct stream_range *range)
{
	return read->memory == range->memory && read->offset < range->offset + range->bytes &&
	       range->offset < read->offset + read->bytes;
}

static bool is_ordered(const struct behind *read, const struct ocl_object *queue)
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
		finish(events[i]);
}

/* Nothing may overwrite what is yet to be read, except behind the read. */
static void order_behind(const struct stream_range *range, const struct ocl_object *queue)
{
	cl_event events[WAITS];
	cl_uint count = 0;

	for (struct behind *read = self.first; read; read = read->next) {
		if (!meet(read, range) || is_ordered(read, queue) ||
		    stream_event_status(read->event) <= CL_COMPLETE)
			continue;
		/* The program may have to see this command complete before it sets the event. */
		if (stream_events_blocking()) {
			stream_lost("checks of commands",
				    "not checked, because commands may wait for the program");
			give_up(read);
			continue;
		}
		events[count++] = read->event;
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

	if (!atomic_load_explicit(&self.count, memory_order_relaxed))
		return;
	pthread_mutex_lock(&self.lock);
	for (uint32_t i = 0; i < count; i++) {
		const struct stream_memory *memory = &frozen->uses[i].memory->as.memory;

		if (memory->reads_behind && memory->reading_queue != command->queue->stream->number)
			order_behind(&frozen->uses[i], command->queue);
	}
	pthread_mutex_unlock(&self.lock);
}

/* ---- after a command ---- */

static struct slab *find_slab(size_t bytes)
{
	if (self.slab && self.slab->used + bytes <= STREAM_COPY_BYTES)
		return self.slab;
	for (uint32_t i = 0; i < SLABS; i++) {
		struct slab *slab = &self.slabs[i];

		if (slab->reads)
			continue;
		if (!slab->bytes)
			slab->bytes = stream_copy_take();
		slab->used = 0;
		self.slab = slab->bytes ? slab : NULL;
		return self.slab;
	}
	return NULL;
}

/* Waits for space; NULL: there is none. */
static struct slab *make_space(size_t bytes)
{
	struct slab *slab = self.count < PENDING ? find_slab(bytes) : NULL;

	while (!slab && self.first) {
		if (!finish(self.first->event))
			return NULL;
		look();
		slab = self.count < PENDING ? find_slab(bytes) : NULL;
	}
	return slab;
}

static cl_int enqueue_read(struct behind *read, const struct ocl_command *command)
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

static void add_read(struct behind *read)
{
	struct stream_memory *memory = &read->memory->as.memory;
	uint64_t queue = read->is_in_order ? read->queue : 0;

	if (read->pieces)
		read->pieces->reads++;
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

static bool read_piece(const struct stream_range *range, const struct ocl_command *command,
		       struct pieces *pieces)
{
	struct slab *slab = make_space(range->bytes);
	struct behind *read = self.spare;
	cl_int rc = CL_OUT_OF_HOST_MEMORY;

	if (read)
		self.spare = read->next;
	else
		read = malloc(sizeof(*read));
	if (slab && read) {
		*read = (struct behind){
			.memory = range->memory,
			.slab = slab,
			.queue = command->queue->stream->number,
			.is_in_order = !command->queue->out_of_order,
			.pieces = pieces,
			.sequence = command->sequence,
			.offset = range->offset,
			.bytes = range->bytes,
			.writes = atomic_load(&range->memory->as.memory.writes),
		};
		rc = enqueue_read(read, command);
	}
	if (rc == CL_SUCCESS)
		add_read(read);
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
	struct pieces *pieces = malloc(sizeof(*pieces));
	bool is_read = pieces != NULL;

	if (!pieces)
		return false;
	*pieces = (struct pieces){ .offset = range->offset, .bytes = range->bytes, .reads = 1 };
	ts_hash_stream_init(&pieces->hash);
	for (uint64_t at = 0, bytes; is_read && at < range->bytes; at += bytes) {
		struct stream_range piece = { range->memory, range->offset + at, 0 };

		bytes = piece.bytes = piece_bytes(range, at);
		is_read = read_piece(&piece, command, pieces);
	}
	pieces->is_lost = pieces->is_lost || !is_read;
	drop_pieces(pieces);
	return is_read;
}

static bool read_behind(const struct stream_range *range, const struct ocl_command *command)
{
	bool is_read = true;

	for (uint64_t at = 0, bytes; is_read && at < range->bytes; at += bytes) {
		struct stream_range part = { range->memory, range->offset + at, 0 };

		bytes = part.bytes = stream_check_part(range, at);
		is_read = bytes == piece_bytes(&part, 0) ? read_piece(&part, command, NULL)
							 : read_in_pieces(&part, command);
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

bool stream_each_after(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	for (uint32_t i = 0; i < frozen->write_count; i++) {
		if (is_checked(&frozen->uses[i]) && !can_be_read_behind(&frozen->uses[i], command))
			return false;
	}
	pthread_mutex_lock(&self.lock);
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
	pthread_mutex_unlock(&self.lock);
	return true;
}

void stream_each_now(const struct stream_frozen *frozen, uint64_t sequence)
{
	for (uint32_t i = 0; i < frozen->write_count; i++) {
		if (is_checked(&frozen->uses[i]) && !is_repeated(frozen, i))
			stream_check_range(&frozen->uses[i], sequence, "each");
	}
}
