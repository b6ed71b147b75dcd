/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory when a window opens (docs/cuda-replay.md, 2.1). Pages that are not zeros are copied to a
 * shadow on the device, if it has room; then the program goes on, while threads of ours move the
 * shadow through pinned buffers into the spool, as check rows behind OPEN.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/stream/cuda_arena.h"
#include "backends/cuda/stream/cuda_pages.h"
#include "base/local/macros.h"

#define PIECE_BYTES ((uint64_t)4 << 20)
#define PART_BYTES ((uint64_t)1 << 20) /* moved at once */
#define BULK_LEAST ((uint64_t)32 << 10)
#define THREADS_AT_MOST 12u
#define THREAD_BYTES ((uint64_t)32 << 20) /* for each of them */
#define NAP_NS INT64_C(1000000)
#define PATIENCE_NS INT64_C(2000000000) /* until a piece waits as any other blob does */
#define SPARE_BYTES ((uint64_t)1 << 30) /* left to the program beside a shadow */

struct piece {
	uint64_t object, offset, bytes, from; /* from: address of the memory or its shadow */
	struct capture_context *context;
};

static struct {
	struct piece *pieces;
	size_t count;
	uint64_t sequence; /* of OPEN */
	struct shadow {
		struct shadow *next;
		struct capture_context *context;
		uint64_t address, bytes;
	} * shadows;
	bool has_shadow;
	atomic_bool is_cancelled;
	pthread_t threads[THREADS_AT_MOST];
	unsigned int thread_count;
	uint64_t mapped_bytes, stored_bytes;
	int64_t begun_ns, opened_ns, released_ns, drained_ns;
} self;

/* By device; read without a lock. */
#define DEVICES 64
static _Atomic uint64_t shadow_bytes_of[DEVICES];
static __thread bool is_our_thread __attribute__((tls_model("initial-exec")));
static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- pieces ---- */

/* Neighbours become one piece. */
static bool make_pieces(const struct page_list *pages, uint64_t *ret_bytes)
{
	self.pieces = calloc(pages->count + 1, sizeof(*self.pieces));
	self.count = 0;
	*ret_bytes = 0;
	if (!self.pieces)
		return false;
	for (size_t i = 0; i < pages->count; i++) {
		const struct capture_page *page = &pages->items[i];
		struct piece *before = self.count ? &self.pieces[self.count - 1] : NULL;

		if (page_is_zero(page))
			continue;
		*ret_bytes += page->range.bytes;
		if (before && before->object == page->object &&
		    before->offset + before->bytes == page->offset &&
		    before->bytes + page->range.bytes <= PIECE_BYTES) {
			before->bytes += page->range.bytes;
			continue;
		}
		self.pieces[self.count++] = (struct piece){
			.object = page->object,
			.offset = page->offset,
			.bytes = page->range.bytes,
			.from = page->range.address,
			.context = page->context,
		};
	}
	return true;
}

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + 255) & ~(uint64_t)255;
}

/* Pieces [first, end) of one context, which is current. False: there is no room. */
static bool copy_to_shadow(size_t first, size_t end)
{
	struct capture_context *context = self.pieces[first].context;
	struct shadow *shadow;
	size_t available = 0, total = 0;
	uint64_t bytes = 0, at;
	void *stream = pages_stream(context);

	for (size_t i = first; i < end; i++)
		bytes += aligned(self.pieces[i].bytes);
	if (!stream || cu.MemGetInfo(&available, &total) || available < bytes + SPARE_BYTES)
		return false;
	shadow = calloc(1, sizeof(*shadow));
	if (!shadow || cu.MemAlloc(&shadow->address, bytes)) {
		free(shadow);
		return false;
	}
	shadow->context = context;
	shadow->bytes = bytes;
	atomic_fetch_add(&shadow_bytes_of[context->device->ordinal % DEVICES], bytes);
	shadow->next = self.shadows;
	self.shadows = shadow;
	at = shadow->address;
	for (size_t i = first; i < end; i++) {
		if (cu.MemcpyDtoDAsync(at, self.pieces[i].from, self.pieces[i].bytes, stream))
			return false;
		at += aligned(self.pieces[i].bytes);
	}
	if (cu.StreamSynchronize(stream))
		return false;
	at = shadow->address;
	for (size_t i = first; i < end; i++) {
		self.pieces[i].from = at;
		at += aligned(self.pieces[i].bytes);
	}
	return true;
}

static bool make_shadows(void)
{
	for (size_t first = 0, end; first < self.count; first = end) {
		struct capture_context *context = self.pieces[first].context;
		bool is_copied;

		for (end = first; end < self.count && self.pieces[end].context == context; end++)
			;
		if (!capture_context_push(context))
			return false;
		is_copied = copy_to_shadow(first, end);
		capture_context_pop();
		if (!is_copied)
			return false;
	}
	return true;
}

/* ---- storing ---- */

static void append(uint64_t object, int64_t offset, const void *data, uint64_t bytes,
		   const char *details)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_CHECK);

	if (!ts_replay_lock_window())
		return;
	row.sequence = self.sequence;
	row.object = object;
	row.offset = offset;
	row.bytes = (int64_t)bytes;
	row.blob = ts_replay_blob(data, bytes);
	row.details = details;
	ts_replay_append(&row);
	ts_replay_unlock();
}

void capture_piece(uint64_t object, int64_t offset, const void *data, uint64_t bytes)
{
	append(object, offset, data, bytes, "{\"why\":\"open\",\"more\":true}");
}

/* ---- reading the device ---- */

/* What a thread of ours needs to read the device. */
struct lane {
	struct capture_context *context; /* current */
	void *stream;
	char *buffer; /* pinned: two parts */
};

static void lane_leave(struct lane *lane)
{
	if (lane->stream)
		cu.StreamDestroy(lane->stream);
	if (lane->context)
		capture_context_pop();
	lane->stream = NULL;
	lane->context = NULL;
}

static void lane_end(struct lane *lane)
{
	if (lane->buffer)
		cu.MemFreeHost(lane->buffer);
	lane_leave(lane);
}

static bool lane_enter(struct lane *lane, struct capture_context *context)
{
	void *buffer = lane->buffer;
	bool is_good;

	if (lane->context == context)
		return true;
	lane_leave(lane);
	is_good = capture_context_push(context);
	if (is_good)
		lane->context = context;
	is_good = is_good && !cu.StreamCreate(&lane->stream, CUDA_STREAM_NON_BLOCKING) &&
		  (buffer || !cu.MemAllocHost(&buffer, 2 * PART_BYTES));
	lane->buffer = buffer;
	return is_good;
}

/* Where the bytes of a piece go: memory, or a part of the batch. */
struct sink {
	char *to;
	uint32_t part;
	bool is_full; /* shared memory is */
};

static void pour(struct sink *sink, uint64_t at, const char *from, uint64_t bytes)
{
	if (sink->to)
		memcpy(sink->to + at, from, bytes);
	else if (!ts_replay_bulk_write(sink->part, at, from, bytes))
		sink->is_full = true;
}

/* Through the pinned buffer: one half is read by the device while the other is copied. */
static int read_device(const struct lane *lane, const struct piece *piece, struct sink *sink)
{
	uint64_t asked = 0, at = 0;
	int rc = 0;

	while (!rc && at < piece->bytes && !sink->is_full) {
		uint64_t part = TS_MIN(PART_BYTES, piece->bytes - at);

		if (asked == at) {
			rc = cu.MemcpyDtoHAsync(lane->buffer + (at / PART_BYTES & 1) * PART_BYTES,
						piece->from + at, part, lane->stream);
			asked += part;
		}
		if (!rc)
			rc = cu.StreamSynchronize(lane->stream);
		if (!rc && asked < piece->bytes) {
			uint64_t next = TS_MIN(PART_BYTES, piece->bytes - asked);

			rc = cu.MemcpyDtoHAsync(lane->buffer +
							(asked / PART_BYTES & 1) * PART_BYTES,
						piece->from + asked, next, lane->stream);
			asked += next;
		}
		if (!rc && lane->buffer)
			pour(sink, at, lane->buffer + (at / PART_BYTES & 1) * PART_BYTES, part);
		at += part;
	}
	return rc;
}

static bool read_piece(struct lane *lane, const struct piece *piece, struct sink *sink)
{
	int rc = lane_enter(lane, piece->context) ? read_device(lane, piece, sink)
						  : CUDA_INVALID_CONTEXT;

	/* The buffer may still be written. */
	if (sink->is_full)
		cu.StreamSynchronize(lane->stream);
	if (rc) {
		capture_fail("the snapshot cannot be read: the driver's error %d", rc);
		atomic_store(&self.is_cancelled, true);
	}
	return rc == 0;
}

/* ---- many pieces at once, into the spool ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct piece *pieces;
	bool has_space[TS_REPLAY_BULK_AT_MOST], is_filled[TS_REPLAY_BULK_AT_MOST];
	uint32_t count, next, done;
	unsigned int workers; /* that have not ended */
	bool is_over;
} batch = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Fills what no other thread does; batch.lock is held. */
static void fill_some(struct lane *lane)
{
	while (batch.next < batch.count) {
		uint32_t i = batch.next++;
		struct sink sink = { .part = i };
		bool is_read;

		pthread_mutex_unlock(&batch.lock);
		is_read = !atomic_load(&self.is_cancelled) &&
			  read_piece(lane, &batch.pieces[i], &sink);
		pthread_mutex_lock(&batch.lock);
		batch.has_space[i] = !sink.is_full;
		batch.is_filled[i] = is_read && !sink.is_full;
		if (++batch.done == batch.count)
			pthread_cond_broadcast(&batch.changed);
	}
}

static void *work(void *argument)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	struct lane lane = { 0 };

	is_our_thread = true;
	cu.ThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&batch.lock);
	while (!batch.is_over) {
		fill_some(&lane);
		if (!batch.is_over)
			pthread_cond_wait(&batch.changed, &batch.lock);
	}
	pthread_mutex_unlock(&batch.lock);
	lane_end(&lane);
	pthread_mutex_lock(&batch.lock);
	batch.workers--;
	pthread_cond_broadcast(&batch.changed);
	pthread_mutex_unlock(&batch.lock);
	return argument;
}

static struct ts_replay_command row_of(const struct piece *piece)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_CHECK);

	row.sequence = self.sequence;
	row.object = piece->object;
	row.offset = (int64_t)piece->offset;
	row.bytes = (int64_t)piece->bytes;
	row.details = "{\"why\":\"open\"}";
	return row;
}

/* Space for the next pieces, as ts_replay_bulk_begin(). */
static uint32_t begin_batch(const struct piece *pieces, size_t count)
{
	uint64_t bytes[TS_REPLAY_BULK_AT_MOST];
	uint32_t wanted = 0, given;

	while (wanted < TS_REPLAY_BULK_AT_MOST && wanted < count &&
	       pieces[wanted].bytes >= BULK_LEAST) {
		bytes[wanted] = pieces[wanted].bytes;
		wanted++;
	}
	if (!wanted || !ts_replay_lock_window())
		return 0;
	given = ts_replay_bulk_begin(wanted, bytes);
	ts_replay_unlock();
	return given;
}

static void end_batch(uint32_t count)
{
	bool is_open = ts_replay_lock_window();

	if (!is_open && !ts_replay_lock()) {
		ts_replay_bulk_end();
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (is_open && batch.is_filled[i]) {
			struct ts_replay_command row = row_of(&batch.pieces[i]);

			row.blob = ts_replay_bulk_blob(i);
			if (row.blob)
				ts_replay_append(&row);
		}
	}
	ts_replay_bulk_end();
	ts_replay_unlock();
}

/* One piece by itself: it is small, or the spool has no space. */
static void store_piece(struct lane *lane, const struct piece *piece)
{
	struct sink sink = { .to = malloc(piece->bytes) };

	if (!sink.to) {
		capture_fail("no memory for the snapshot");
		atomic_store(&self.is_cancelled, true);
	} else if (read_piece(lane, piece, &sink)) {
		append(piece->object, (int64_t)piece->offset, sink.to, piece->bytes,
		       "{\"why\":\"open\"}");
	}
	free(sink.to);
}

/* How many; 0: none now; or TS_REPLAY_BULK_NEVER. */
static uint32_t store_batch(struct lane *lane, const struct piece *pieces, size_t count)
{
	uint32_t given = begin_batch(pieces, count);

	if (!given || given == TS_REPLAY_BULK_NEVER)
		return given;
	pthread_mutex_lock(&batch.lock);
	batch.pieces = pieces;
	batch.count = given;
	batch.next = batch.done = 0;
	pthread_cond_broadcast(&batch.changed);
	fill_some(lane);
	while (batch.done < batch.count)
		pthread_cond_wait(&batch.changed, &batch.lock);
	pthread_mutex_unlock(&batch.lock);
	end_batch(given);
	for (uint32_t i = 0; i < given && !atomic_load(&self.is_cancelled); i++)
		if (!batch.has_space[i])
			store_piece(lane, &pieces[i]);
	return given;
}

static void release_shadows(void)
{
	while (self.shadows) {
		struct shadow *shadow = self.shadows;

		self.shadows = shadow->next;
		if (capture_context_push(shadow->context)) {
			cu.MemFree(shadow->address); /* waits for the context */
			capture_context_pop();
		}
		atomic_fetch_sub(&shadow_bytes_of[shadow->context->device->ordinal % DEVICES],
				 shadow->bytes);
		free(shadow);
	}
}

uint64_t snapshot_shadow_bytes(const struct capture_device *device)
{
	return atomic_load(&shadow_bytes_of[device->ordinal % DEVICES]);
}

/* Directs the other threads, and works itself. */
static void *drain(void *argument)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	int64_t waited_since = 0;
	struct lane lane = { 0 };
	size_t at = 0;

	is_our_thread = true;
	cu.ThreadExchangeStreamCaptureMode(&mode);
	while (at < self.count && !atomic_load(&self.is_cancelled) && ts_replay_is_open()) {
		uint32_t stored = store_batch(&lane, &self.pieces[at], self.count - at);
		int64_t now;

		if (stored == TS_REPLAY_BULK_NEVER) {
			store_piece(&lane, &self.pieces[at++]);
			continue;
		}
		if (stored) {
			at += stored;
			waited_since = 0;
			continue;
		}
		now = ts_replay_clock_ns();
		if (!waited_since)
			waited_since = now;
		if (self.pieces[at].bytes < BULK_LEAST || now - waited_since > PATIENCE_NS)
			store_piece(&lane, &self.pieces[at++]);
		else
			ts_replay_nap(NAP_NS);
	}
	self.drained_ns = ts_replay_clock_ns();
	lane_end(&lane);
	pthread_mutex_lock(&batch.lock);
	batch.is_over = true;
	batch.count = 0;
	pthread_cond_broadcast(&batch.changed);
	while (batch.workers)
		pthread_cond_wait(&batch.changed, &batch.lock);
	pthread_mutex_unlock(&batch.lock);
	/* The program may need the memory. */
	release_shadows();
	cu.ThreadExchangeStreamCaptureMode(&mode);
	is_our_thread = false; /* without other threads, it is one of the program */
	return argument;
}

/* ---- a window ---- */

static void release(void)
{
	release_shadows();
	free(self.pieces);
	self.pieces = NULL;
	self.count = 0;
}

static bool is_small_enough(uint64_t stored, uint64_t mapped, char *why, size_t bytes)
{
	uint64_t limit = ts_replay_settings()->snapshot_limit;

	if (stored <= limit)
		return ts_replay_has_space(stored, why, bytes);
	snprintf(why, bytes,
		 "its snapshot needs %" PRIu64 " bytes (%" PRIu64
		 " are mapped, the rest are zeros), and --snapshot-limit is %" PRIu64 ": raise it",
		 stored, mapped, limit);
	return false;
}

const char *capture_snapshot(char *why, size_t bytes, uint64_t *ret_bytes, uint64_t *ret_pieces)
{
	struct page_list pages;
	uint64_t total = 0;

	capture_snapshot_ended();
	self.begun_ns = ts_replay_clock_ns();
	self.released_ns = 0;
	atomic_store(&self.is_cancelled, false);
	*ret_pieces = UINT64_MAX;
	if (!pages_read(&pages))
		return NULL; /* it has failed already */
	for (size_t i = 0; i < pages.count; i++)
		total += pages.items[i].range.bytes;
	if (!pages_look_for_host(&pages) || !make_pieces(&pages, ret_bytes)) {
		pages_release(&pages);
		return "no memory for the snapshot";
	}
	if (!is_small_enough(*ret_bytes, total, why, bytes)) {
		pages_release(&pages);
		release();
		return why;
	}
	self.mapped_bytes = total;
	self.stored_bytes = *ret_bytes;
	*ret_pieces = self.count;
	self.has_shadow = make_shadows();
	capture_checks_begin(&pages);
	return NULL;
}

/*
 * The first directs the others. Signals are the program's: its handlers run on its own threads.
 */
static void start_threads(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int wanted = processors < 4 ? 2 : (unsigned int)processors * 3 / 4;
	uint64_t worth = self.stored_bytes / THREAD_BYTES + 1;
	sigset_t all, before;

	/* What a thread needs takes as long as some of the copying. */
	if (wanted > worth)
		wanted = (unsigned int)worth;
	batch.is_over = false;
	batch.count = batch.workers = 0;
	if (!self.count)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (self.thread_count < TS_MIN(wanted, THREADS_AT_MOST) &&
	       self.thread_count < self.count) {
		bool is_first = !self.thread_count;

		pthread_mutex_lock(&batch.lock);
		batch.workers += !is_first;
		pthread_mutex_unlock(&batch.lock);
		if (pthread_create(&self.threads[self.thread_count], NULL, is_first ? drain : work,
				   NULL)) {
			pthread_mutex_lock(&batch.lock);
			batch.workers -= !is_first;
			pthread_cond_broadcast(&batch.changed);
			pthread_mutex_unlock(&batch.lock);
			break;
		}
		self.thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void capture_snapshot_opened(void)
{
	self.sequence = capture_last_sequence();
	self.opened_ns = ts_replay_clock_ns();
	start_threads();
	if (!self.thread_count && self.count)
		drain(NULL);
	if (!self.has_shadow)
		capture_snapshot_finish();
	self.released_ns = ts_replay_clock_ns();
}

static void join(void)
{
	int cancel_state;

	/* The program may cancel its thread, but not while that holds our lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&join_lock);
	while (self.thread_count)
		pthread_join(self.threads[--self.thread_count], NULL);
	pthread_mutex_unlock(&join_lock);
	pthread_setcancelstate(cancel_state, &cancel_state);
}

bool snapshot_give_memory_back(const struct capture_device *device)
{
	bool has_some = self.shadows != NULL;

	if (has_some)
		join();
	return has_some;
}

/* For `info`, and for measurements. */
static void tell(void)
{
	char fact[256];

	snprintf(fact, sizeof(fact),
		 "{\"bytes\":%" PRIu64 ",\"stored\":%" PRIu64 ",\"held_ns\":%" PRId64
		 ",\"drain_ns\":%" PRId64 ",\"shadow\":%s}",
		 self.mapped_bytes, self.stored_bytes,
		 (self.released_ns ? self.released_ns : ts_replay_clock_ns()) - self.begun_ns,
		 self.count ? self.drained_ns - self.opened_ns : 0,
		 self.has_shadow ? "true" : "false");
	ts_accelerator_fact("cuda_snapshot", fact);
}

void capture_snapshot_finish(void)
{
	join();
	tell();
	capture_pieces(self.count);
}

void capture_snapshot_ended(void)
{
	atomic_store(&self.is_cancelled, true);
	/* A thread of ours has failed the window: the next one, or the end, cleans up. */
	if (is_our_thread)
		return;
	join();
	release();
}
