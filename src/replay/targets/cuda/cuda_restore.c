/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as it was when the window opened: pieces of the snapshot, all else zeros. Threads read
 * pieces into pinned buffers while others are copied to the device. Later runs restore only pages
 * whose hash has changed.
 */
#include <inttypes.h>
#include <string.h>

#include "base/pool.h"
#include "replay/replay_internal.h"
#include "replay/targets/cuda/cuda_session.h"
#include "sbt/blob_cursor.h"

#define MOST_SLOTS 48
#define SLOT_BYTES ((uint64_t)32 << 20)
#define MOST_PINNED ((uint64_t)512 << 20) /* pinning takes time, too */

/* ---- pieces ---- */

/* A piece on its way to the device. */
struct slot {
	struct ts_job job;
	struct sbt_blob_cursor *cursor;
	const struct ts_replay_piece *piece;
	uint64_t from, bytes; /* the part of the piece */
	uint32_t memory;
	char *data; /* pinned */
	bool is_busy;
	int rc;
	struct ts_error err;
};

struct upload {
	struct ts_replay_session *session;
	struct ts_pool *pool;
	struct slot slots[MOST_SLOTS];
	size_t slot_count;
	uint64_t slot_bytes;
	size_t next; /* slot that is used next */
	uint64_t done, total;
};

static void read_piece(void *argument)
{
	struct slot *slot = argument;

	/* A piece that is read at once is verified by its hash, others by their checksums. */
	slot->rc = sbt_blob_cursor_read(slot->cursor, slot->piece->blob.id, slot->from, slot->data,
					slot->bytes, &slot->err);
}

/* Copies what was read to the device. The slot is free when the copy has ended. */
static int finish_slot(struct upload *upload, struct slot *slot, struct ts_error *err)
{
	struct ts_replay_session *session = upload->session;
	uint64_t address;
	void *stream;
	int code;

	if (!slot->is_busy)
		return TS_OK;
	ts_pool_wait(upload->pool, &slot->job);
	slot->is_busy = false;
	address = ts_cuda_address(session, slot->memory, slot->piece->offset + slot->from);
	if (slot->rc)
		return ts_error_set(err, slot->rc, "memory at 0x%" PRIx64 ": %s",
				    ts_cuda_info(session, slot->memory)->address +
					    slot->piece->offset + slot->from,
				    slot->err.message);
	upload->done += slot->bytes;
	if (ts_cuda_is_host(session, slot->memory)) {
		memcpy((void *)(uintptr_t)address, slot->data, slot->bytes);
		return TS_OK;
	}
	code = ts_cuda_enter_for(session, slot->memory, &stream);
	if (!code)
		code = session->cu.MemcpyAsync(address, (uintptr_t)slot->data, slot->bytes, stream);
	return code ? ts_cuda_fail(session, code, err, "cannot write memory at 0x%" PRIx64, address)
		    : TS_OK;
}

/* Waits for the copies out of all slots. */
static int wait_uploads(struct upload *upload, struct ts_error *err)
{
	struct ts_replay_session *session = upload->session;
	int code = 0;

	for (uint32_t i = 0; i < session->context_count && !code; i++) {
		const struct ts_cuda_object *context = &session->objects[session->contexts[i]];

		code = ts_cuda_enter(session, context->handle);
		if (!code)
			code = session->cu.StreamSynchronize(context->hasher.stream);
	}
	return code ? ts_cuda_fail(session, code, err, "cannot write memory") : TS_OK;
}

/* All slots: their copies run while the next are read only if there are two halves. */
static int finish_half(struct upload *upload, size_t from, size_t to, struct ts_error *err)
{
	int rc = TS_OK;

	for (size_t i = from; i < to; i++) {
		int one = finish_slot(upload, &upload->slots[i], rc ? NULL : err);

		rc = rc ? rc : one;
	}
	return rc;
}

static int need_slot(struct upload *upload, struct slot *slot, struct ts_error *err)
{
	struct ts_replay_session *session = upload->session;
	void *data = NULL;
	int code;

	if (slot->data)
		return TS_OK;
	if (sbt_blob_cursor_new(&slot->cursor, session->stream->reader, err))
		return TS_ENOMEM;
	code = ts_cuda_enter(session, session->objects[session->contexts[0]].handle);
	if (!code)
		code = session->cu.MemAllocHost(&data, upload->slot_bytes);
	slot->data = data;
	return code ? ts_cuda_fail(session, code, err, "no pinned memory") : TS_OK;
}

/*
 * Reads a part of a piece in the next slot. When a half of the slots is full, it is copied to the
 * device while the other is filled.
 */
static int start_part(struct upload *upload, uint32_t memory, const struct ts_replay_piece *piece,
		      uint64_t from, struct ts_error *err)
{
	size_t half = upload->slot_count / 2;
	struct slot *slot;
	int rc = TS_OK;

	if (upload->next % half == 0) {
		size_t begin = upload->next % upload->slot_count;

		/* Copies out of this half were submitted one half ago. */
		rc = wait_uploads(upload, err);
		if (!rc)
			rc = finish_half(upload, half - begin, 2 * half - begin, err);
		if (!rc)
			rc = ts_replay_progress(upload->session->replay, "restore", upload->done,
						upload->total, err);
	}
	slot = &upload->slots[upload->next++ % upload->slot_count];
	if (!rc)
		rc = need_slot(upload, slot, err);
	if (rc)
		return rc;
	slot->piece = piece;
	slot->from = from;
	slot->bytes = TS_MIN(piece->bytes - from, upload->slot_bytes);
	slot->memory = memory;
	slot->is_busy = true;
	ts_pool_submit(upload->pool, &slot->job, read_piece, slot);
	return TS_OK;
}

static int start_piece(struct upload *upload, uint32_t memory, const struct ts_replay_piece *piece,
		       struct ts_error *err)
{
	int rc = TS_OK;

	for (uint64_t from = 0; from < piece->bytes && !rc; from += upload->slot_bytes)
		rc = start_part(upload, memory, piece, from, err);
	return rc;
}

static int begin_upload(struct upload *upload, struct ts_error *err)
{
	const struct ts_replay_session *session = upload->session;
	unsigned int threads = TS_MIN(ts_pool_processors(), MOST_SLOTS / 2u);
	uint64_t largest = 4096;

	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_replay_object_info *info = ts_cuda_info(session, i);

		for (uint32_t j = 0; session->objects[i].is_needed && j < info->piece_count; j++) {
			upload->total += info->pieces[j].bytes;
			largest = TS_MAX(largest, info->pieces[j].bytes);
		}
	}
	upload->slot_bytes = TS_MIN(largest, SLOT_BYTES);
	threads = (unsigned int)TS_MIN(threads, MOST_PINNED / upload->slot_bytes / 2);
	upload->slot_count = 2u * TS_MAX(threads, 1u);
	return ts_pool_start(&upload->pool, threads, err);
}

static int end_upload(struct upload *upload, int rc, struct ts_error *err)
{
	int finished = TS_OK;

	if (upload->pool && !rc)
		finished = finish_half(upload, 0, upload->slot_count, err);
	if (upload->pool && !rc && !finished)
		finished = wait_uploads(upload, err);
	ts_pool_stop(upload->pool);
	if (rc || finished)
		wait_uploads(upload, NULL);
	for (size_t i = 0; i < upload->slot_count; i++) {
		sbt_blob_cursor_free(upload->slots[i].cursor);
		if (upload->slots[i].data)
			upload->session->cu.MemFreeHost(upload->slots[i].data);
	}
	return rc ? rc : finished;
}

/* The first page of the memory, or of one behind it, that ends behind the offset. */
static size_t first_page(const struct ts_cuda_pages *pages, uint32_t memory, uint64_t offset)
{
	size_t low = 0, high = pages->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ts_cuda_page *page = &pages->items[middle];

		if (page->memory < memory ||
		    (page->memory == memory && page->offset + page->bytes <= offset))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_in(const struct ts_cuda_page *page, uint32_t memory,
		  const struct ts_replay_piece *piece)
{
	return page->memory == memory && page->offset < piece->offset + piece->bytes;
}

/* Does a piece touch a page that is wanted? Host memory is always written. */
static bool is_wanted(const struct ts_replay_session *session, const bool *wanted, uint32_t memory,
		      const struct ts_replay_piece *piece)
{
	const struct ts_cuda_pages *pages = &session->pages;

	if (!wanted || ts_cuda_is_host(session, memory))
		return true;
	for (size_t i = first_page(pages, memory, piece->offset);
	     i < pages->count && is_in(&pages->items[i], memory, piece); i++)
		if (wanted[i])
			return true;
	return false;
}

/* Pieces of the snapshot that touch wanted pages (NULL: all). */
static int write_pieces(struct ts_replay_session *session, const bool *wanted, struct ts_error *err)
{
	struct upload upload = { .session = session };
	int rc = begin_upload(&upload, err);

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++) {
		const struct ts_replay_object_info *info = ts_cuda_info(session, i);

		for (uint32_t j = 0; session->objects[i].is_needed && j < info->piece_count && !rc;
		     j++)
			if (is_wanted(session, wanted, i, &info->pieces[j]))
				rc = start_piece(&upload, i, &info->pieces[j], err);
	}
	return end_upload(&upload, rc, err);
}

/* ---- zeros ---- */

static int clear_page(struct ts_replay_session *session, const struct ts_cuda_page *page)
{
	uint64_t address = ts_cuda_address(session, page->memory, page->offset);
	void *stream;
	int code;

	code = ts_cuda_enter_for(session, page->memory, &stream);
	return code ? code : session->cu.MemsetD8Async(address, 0, page->bytes, stream);
}

/* Adjacent pages are cleared at once. */
static int clear_pages(struct ts_replay_session *session, const bool *wanted, struct ts_error *err)
{
	const struct ts_cuda_pages *pages = &session->pages;
	int code = 0;

	for (size_t i = 0; i < pages->count && !code; i++) {
		struct ts_cuda_page run = pages->items[i];

		if (wanted && !wanted[i])
			continue;
		for (; i + 1 < pages->count && pages->items[i + 1].memory == run.memory &&
		       pages->items[i + 1].offset == run.offset + run.bytes &&
		       (!wanted || wanted[i + 1]);
		     i++)
			run.bytes += pages->items[i + 1].bytes;
		code = clear_page(session, &run);
	}
	for (uint32_t i = 0; i < session->context_count && !code; i++) {
		code = ts_cuda_enter(session, session->objects[session->contexts[i]].handle);
		if (!code)
			code = session->cu.CtxSynchronize();
	}
	return code ? ts_cuda_fail(session, code, err, "cannot clear memory") : TS_OK;
}

/* ---- all of it ---- */

/* Writes the snapshot to wanted pages (NULL: all), with addresses of this process. */
static int write_snapshot(struct ts_replay_session *session, const bool *wanted,
			  struct ts_error *err)
{
	size_t count = 0;
	TS_AUTO_FREE struct ts_cuda_page *pages =
		ts_alloc_array(session->pages.count + 1, sizeof(*pages));
	int rc;

	if (!pages)
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of pages");
	for (size_t i = 0; i < session->pages.count; i++)
		if (!wanted || wanted[i])
			pages[count++] = session->pages.items[i];
	rc = clear_pages(session, wanted, err);
	if (!rc)
		rc = write_pieces(session, wanted, err);
	return rc ? rc : ts_cuda_move_pages(session, pages, count, err);
}

static int copy_pages(const struct ts_cuda_pages *from, struct ts_cuda_pages *to)
{
	to->count = 0;
	if (ts_grow_array((void **)&to->items, &to->capacity, from->count + 1, sizeof(*to->items)))
		return TS_ENOMEM;
	if (from->count)
		memcpy(to->items, from->items, from->count * sizeof(*to->items));
	to->count = from->count;
	return TS_OK;
}

/* Host memory is zeros, or what pieces say, in each run. */
static void clear_host(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_cuda_object *object = &session->objects[i];

		if (!object->is_needed || ts_cuda_info(session, i)->kind != TS_OBJECT_MEMORY ||
		    !ts_cuda_is_host(session, i))
			continue;
		for (size_t j = 0; j < object->mapped.count; j++)
			memset((void *)(uintptr_t)object->mapped.items[j].offset, 0,
			       object->mapped.items[j].bytes);
	}
}

static bool has_host_pieces(const struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++)
		if (session->objects[i].is_needed && ts_cuda_info(session, i)->piece_count &&
		    ts_cuda_is_host(session, i))
			return true;
	return false;
}

static int restore_first(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_replay_options *options = &session->replay->options;
	int rc = write_snapshot(session, NULL, err);

	for (size_t i = 0; i < session->pages.count; i++)
		session->restored_bytes += session->pages.items[i].bytes;
	if (!rc)
		rc = ts_cuda_hash_pages(session, NULL, 0, NULL, err);
	if (!rc && copy_pages(&session->pages, &session->initial))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for a list of pages");
	/* Without room the snapshot is read again. */
	if (!rc && options->repeat > 1)
		ts_cuda_keep_pages(session, &session->keep);
	return rc;
}

/* All pages that the piece touches, if it touches a wanted one. True: that is news. */
static bool widen_by(const struct ts_replay_session *session, bool *wanted, uint32_t memory,
		     const struct ts_replay_piece *piece)
{
	const struct ts_cuda_pages *pages = &session->pages;
	bool is_news = false;

	if (!is_wanted(session, wanted, memory, piece))
		return false;
	for (size_t i = first_page(pages, memory, piece->offset);
	     i < pages->count && is_in(&pages->items[i], memory, piece); i++) {
		is_news |= !wanted[i];
		wanted[i] = true;
	}
	return is_news;
}

/*
 * A piece is written as a whole: all pages that it touches are cleared before, and get addresses of
 * this process after.
 */
static void widen(struct ts_replay_session *session, bool *wanted)
{
	bool is_news = true;

	while (is_news) {
		is_news = false;
		for (uint32_t i = 0; i < session->stream->object_count; i++) {
			const struct ts_replay_object_info *info = ts_cuda_info(session, i);

			for (uint32_t j = 0; session->objects[i].is_needed && j < info->piece_count;
			     j++)
				is_news |= widen_by(session, wanted, i, &info->pieces[j]);
		}
	}
}

static int restore_again(struct ts_replay_session *session, struct ts_error *err)
{
	size_t count = session->initial.count;
	TS_AUTO_FREE bool *changed = calloc(count + 1, sizeof(*changed));
	TS_AUTO_FREE uint64_t *words = ts_alloc_array(session->move_count + 1u, sizeof(*words));
	int rc;

	if (!changed || !words || copy_pages(&session->initial, &session->pages))
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of pages");
	session->pages_stale = false;
	rc = ts_cuda_hash_pages(session, NULL, 0, changed, err);
	if (rc)
		return rc;
	if (session->keep.is_valid) {
		rc = ts_cuda_put_pages(session, &session->keep, changed, err);
		memset(changed, 0, count);
		if (!rc && has_host_pieces(session))
			rc = write_pieces(session, changed, err);
	} else {
		/* Words of the same memory count once. */
		if (session->move_count)
			memcpy(words, session->moved_words, session->move_count * sizeof(*words));
		widen(session, changed);
		rc = write_snapshot(session, changed, err);
		if (session->move_count)
			memcpy(session->moved_words, words, session->move_count * sizeof(*words));
	}
	if (!rc && copy_pages(&session->initial, &session->pages))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for a list of pages");
	return rc;
}

int ts_cuda_restore(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = ts_cuda_reset_spaces(session, err);

	if (!rc)
		clear_host(session);
	if (!rc && session->initial.items)
		return restore_again(session, err);
	if (!rc)
		rc = ts_cuda_list_pages(session, err);
	return rc ? rc : restore_first(session, err);
}
