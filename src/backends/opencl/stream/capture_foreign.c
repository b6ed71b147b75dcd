/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's memory, which it may unmap at any time. It is copied to a private buffer, part by
 * part, and hashed or stored from there: what is missing does no harm, and bytes and hash agree
 * even if the program changes them meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/foreign_memory.h"
#include "base/local/hash.h"

/* Buffers for reuse; as many as threads ever needed at once. */
struct spare {
	struct spare *next;
};
static struct spare *spares;
static pthread_mutex_t spares_lock = PTHREAD_MUTEX_INITIALIZER;

unsigned char *stream_copy_take(void)
{
	struct spare *spare;

	pthread_mutex_lock(&spares_lock);
	spare = spares;
	if (spare)
		spares = spare->next;
	pthread_mutex_unlock(&spares_lock);
	return spare ? (unsigned char *)spare : malloc(STREAM_COPY_BYTES);
}

void stream_copy_give(unsigned char *copy)
{
	struct spare *spare = (struct spare *)(void *)copy;

	if (!spare)
		return;
	pthread_mutex_lock(&spares_lock);
	spare->next = spares;
	spares = spare;
	pthread_mutex_unlock(&spares_lock);
}

void stream_copies_forked(void)
{
	pthread_mutex_init(&spares_lock, NULL);
}

size_t stream_foreign_copy(const struct stream_foreign *foreign, uint64_t at, void *to,
			   size_t bytes)
{
	if (foreign->rect)
		return stream_rect_pack(foreign->rect, foreign->base, at, to, bytes);
	return ts_foreign_read(to, (const unsigned char *)foreign->base + at, bytes);
}

static size_t part_bytes(const struct stream_foreign *foreign, uint64_t at)
{
	uint64_t left = foreign->bytes - at;

	return left < STREAM_COPY_BYTES ? (size_t)left : STREAM_COPY_BYTES;
}

/* `hash` is NULL if all bytes fit into one part. */
static bool take_part(const struct stream_foreign *foreign, uint64_t at, unsigned char *copy,
		      struct ts_hash_stream *hash)
{
	size_t bytes = part_bytes(foreign, at);
	size_t got = stream_foreign_copy(foreign, at, copy, bytes);

	memset(copy + got, 0, bytes - got);
	if (hash)
		ts_hash_stream_add(hash, copy, bytes);
	return got == bytes;
}

static bool read_by_copy(const struct stream_foreign *foreign, uint64_t *ret_hash,
			 uint64_t *ret_blob)
{
	unsigned char *copy = stream_copy_take();
	bool is_there = copy != NULL, is_one = foreign->bytes <= STREAM_COPY_BYTES;
	uint64_t blob = 0;
	struct ts_hash_stream hash;

	if (copy && ret_blob)
		blob = ts_replay_blob_begin(foreign->bytes);
	ts_hash_stream_init(&hash);
	for (uint64_t at = 0; copy && at < foreign->bytes; at += STREAM_COPY_BYTES) {
		is_there = take_part(foreign, at, copy, ret_hash && !is_one ? &hash : NULL) &&
			   is_there;
		if (blob)
			ts_replay_blob_part(copy, part_bytes(foreign, at));
	}
	if (ret_blob)
		*ret_blob = blob;
	if (ret_hash && is_there)
		*ret_hash = is_one ? ts_replay_hash(copy, foreign->bytes)
				   : ts_hash_stream_digest(&hash);
	stream_copy_give(copy);
	return is_there;
}

bool stream_foreign_read(const struct stream_foreign *foreign, uint64_t *ret_hash,
			 uint64_t *ret_blob)
{
	/* One copy, from the program's memory to the recorder's. */
	if (ret_blob && !ret_hash && !foreign->rect) {
		*ret_blob = ts_replay_blob(foreign->base, foreign->bytes);
		return !ts_replay_blob_unread();
	}
	return read_by_copy(foreign, ret_hash, ret_blob);
}
