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

#include "backends/cuda/stream/cuda_pages.h"
#include "base/local/macros.h"

#define PIECE_BYTES ((uint64_t)4 << 20)
#define DRAINERS 4u
#define SPARE_BYTES ((uint64_t)1 << 30) /* left to the program beside a shadow */

struct piece {
	uint64_t object, offset, bytes, from; /* from: address of the memory or its shadow */
	struct capture_context *context;
};

static struct {
	struct piece *pieces;
	size_t count;
	_Atomic size_t next;
	uint64_t sequence; /* of OPEN */
	struct shadow {
		struct shadow *next;
		struct capture_context *context;
		uint64_t address;
	} * shadows;
	bool has_shadow;
	atomic_bool is_cancelled;
	pthread_t threads[DRAINERS];
	unsigned int thread_count;
	_Atomic uint64_t more; /* pieces taken inside the window */
} self;

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

static void append(uint64_t object, int64_t offset, const void *data, uint64_t bytes)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_CHECK);

	if (!ts_replay_lock_window())
		return;
	row.sequence = self.sequence;
	row.object = object;
	row.offset = offset;
	row.bytes = (int64_t)bytes;
	row.blob = ts_replay_blob(data, bytes);
	row.details = "{\"why\":\"open\"}";
	ts_replay_append(&row);
	ts_replay_unlock();
}

void capture_piece(uint64_t object, int64_t offset, const void *data, uint64_t bytes)
{
	self.more++;
	append(object, offset, data, bytes);
}

/* Of one context; false: the window has failed. */
static bool drain_piece(const struct piece *piece, void *buffer, void *stream)
{
	int rc = cu.MemcpyDtoHAsync(buffer, piece->from, piece->bytes, stream);

	if (!rc)
		rc = cu.StreamSynchronize(stream);
	if (rc) {
		capture_fail("the snapshot cannot be read: the driver's error %d", rc);
		return false;
	}
	append(piece->object, (int64_t)piece->offset, buffer, piece->bytes);
	return true;
}

static void *drain(void *argument)
{
	struct capture_context *current = NULL;
	void *buffer = NULL, *stream = NULL;
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	bool is_good = true;

	cu.ThreadExchangeStreamCaptureMode(&mode);
	while (is_good && !atomic_load(&self.is_cancelled)) {
		size_t at = atomic_fetch_add(&self.next, 1);
		const struct piece *piece = &self.pieces[at];

		if (at >= self.count)
			break;
		if (piece->context != current) {
			if (stream)
				cu.StreamDestroy(stream);
			if (current)
				capture_context_pop();
			current = NULL;
			stream = NULL;
			is_good = capture_context_push(piece->context);
			if (is_good)
				current = piece->context;
			is_good = is_good && !cu.StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) &&
				  (buffer || !cu.MemAllocHost(&buffer, PIECE_BYTES));
			if (!is_good) {
				capture_fail("the snapshot cannot be read");
				break;
			}
		}
		is_good = drain_piece(piece, buffer, stream);
	}
	if (buffer)
		cu.MemFreeHost(buffer);
	if (stream)
		cu.StreamDestroy(stream);
	if (current)
		capture_context_pop();
	cu.ThreadExchangeStreamCaptureMode(&mode);
	return argument;
}

/* ---- a window ---- */

static void release(void)
{
	while (self.shadows) {
		struct shadow *shadow = self.shadows;

		self.shadows = shadow->next;
		if (capture_context_push(shadow->context)) {
			cu.MemFree(shadow->address);
			capture_context_pop();
		}
		free(shadow);
	}
	free(self.pieces);
	self.pieces = NULL;
	self.count = 0;
}

const char *capture_snapshot(char *why, size_t bytes, uint64_t *ret_bytes, uint64_t *ret_pieces)
{
	const struct ts_replay_settings *settings = ts_replay_settings();
	struct page_list pages;
	uint64_t total = 0;

	capture_snapshot_ended();
	atomic_store(&self.is_cancelled, false);
	atomic_store(&self.more, 0);
	atomic_store(&self.next, 0);
	*ret_pieces = UINT64_MAX;
	if (!pages_read(&pages))
		return NULL; /* it has failed already */
	for (size_t i = 0; i < pages.count; i++)
		total += pages.items[i].range.bytes;
	if (!pages_look_for_host(&pages) || !make_pieces(&pages, ret_bytes)) {
		pages_release(&pages);
		return "no memory for the snapshot";
	}
	if (*ret_bytes > settings->snapshot_limit) {
		snprintf(why, bytes,
			 "the snapshot needs %" PRIu64 " bytes (%" PRIu64
			 " are mapped, the rest are zeros); --snapshot-limit is %" PRIu64,
			 *ret_bytes, total, settings->snapshot_limit);
		pages_release(&pages);
		release();
		return why;
	}
	self.has_shadow = make_shadows();
	capture_checks_begin(&pages);
	return NULL;
}

/* Signals are the program's: its handlers run on its own threads. */
static void start_drainers(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (self.thread_count < DRAINERS && self.thread_count < self.count &&
	       !pthread_create(&self.threads[self.thread_count], NULL, drain, NULL))
		self.thread_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void capture_snapshot_opened(void)
{
	self.sequence = capture_last_sequence();
	start_drainers();
	if (!self.thread_count)
		drain(NULL);
	if (!self.has_shadow)
		capture_snapshot_finish();
}

void capture_snapshot_finish(void)
{
	while (self.thread_count)
		pthread_join(self.threads[--self.thread_count], NULL);
	capture_pieces(self.count + atomic_load(&self.more));
}

void capture_snapshot_ended(void)
{
	atomic_store(&self.is_cancelled, true);
	while (self.thread_count)
		pthread_join(self.threads[--self.thread_count], NULL);
	release();
	capture_checks_end();
}
