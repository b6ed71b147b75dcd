/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program may write without a call: that of USE_HOST_PTR, and regions that are
 * mapped for writing. A hash per page shows what it wrote since a command used the memory last, and
 * is the check at the end of a window: what the host writes after the last command and the last
 * wait is not part of what a replay does, and the memory may be gone by then.
 */
#include "backends/opencl/stream/capture_areas.h"

#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

struct stream_foreign stream_area_foreign(const struct stream_area *area)
{
	return (struct stream_foreign){ area->host, area->bytes,
					area->image ? &area->host_rect : NULL };
}

size_t stream_area_read(const struct stream_area *area, uint64_t at, void *to, size_t bytes)
{
	struct stream_foreign all = stream_area_foreign(area);

	return stream_foreign_copy(&all, at, to, bytes);
}

uint64_t stream_area_extent(const struct stream_area *area)
{
	uint64_t offset, bytes = area->bytes;

	if (area->image)
		stream_rect_extent(&area->host_rect, &offset, &bytes);
	return bytes;
}

uint64_t stream_area_span(const struct stream_area *area)
{
	return area->image ? area->image_bytes : area->bytes;
}

/* ---- hashes ---- */

/* Pages of pixels are not ranges of their image: they have one hash. */
static uint64_t page_count(const struct stream_area *area)
{
	return area->image ? 1 : (area->bytes + AREA_PAGE - 1) / AREA_PAGE;
}

uint64_t area_chunk_count(const struct stream_area *area)
{
	return area->image ? 1 : (area->bytes + AREA_CHUNK - 1) / AREA_CHUNK;
}

size_t area_chunk_bytes(const struct stream_area *area, uint64_t chunk)
{
	uint64_t left = area->bytes - chunk * AREA_CHUNK;

	return left < AREA_CHUNK ? (size_t)left : AREA_CHUNK;
}

uint64_t area_hash_page(const unsigned char *copy, size_t at, size_t bytes)
{
	return ts_replay_hash(copy + at, bytes - at < AREA_PAGE ? bytes - at : AREA_PAGE);
}

bool area_allocate(struct stream_area *area)
{
	if (area->pages)
		return true;
	area->pages = calloc(page_count(area), sizeof(uint64_t));
	area->chunks = calloc(area_chunk_count(area), sizeof(uint64_t));
	if (area->pages && area->chunks)
		return true;
	free(area->pages);
	free(area->chunks);
	area->pages = area->chunks = NULL;
	stream_lost("host writes to shared memory", "no memory to find them");
	return false;
}

void stream_area_end(struct stream_area *area)
{
	free(area->pages);
	free(area->chunks);
	area->pages = area->chunks = NULL;
	area->is_gone = false;
}

static void report_gone(const struct ocl_stream *root, struct stream_area *area)
{
	if (!area->is_gone)
		stream_lost_memory("contents of memory", root, "its host memory is gone");
	area->is_gone = true;
}

size_t area_read_chunk(const struct ocl_stream *root, struct stream_area *area, uint64_t chunk,
		       unsigned char *copy)
{
	size_t bytes = area_chunk_bytes(area, chunk);
	size_t got = stream_area_read(area, chunk * AREA_CHUNK, copy, bytes);

	if (got < bytes)
		report_gone(root, area);
	return got;
}

bool area_read_pixels(const struct ocl_stream *root, struct stream_area *area, uint64_t *ret_hash,
		      uint64_t *ret_blob)
{
	struct stream_foreign pixels = stream_area_foreign(area);

	*ret_hash = 0;
	if (stream_foreign_read(&pixels, ret_hash, ret_blob))
		return true;
	report_gone(root, area);
	return false;
}

/* ---- begin and end of a window ---- */

/* The blob is complete in any case, so that the stream stays valid. */
bool area_begin(const struct ocl_stream *root, struct stream_area *area, uint64_t *ret_blob)
{
	unsigned char *copy;

	if (ret_blob)
		*ret_blob = 0;
	if (!area_allocate(area))
		return false;
	if (area->image)
		return area_read_pixels(root, area, &area->chunks[0], ret_blob);
	copy = stream_copy_take();
	if (!copy)
		return false;
	if (ret_blob)
		*ret_blob = ts_replay_blob_begin(area->bytes);
	for (uint64_t i = 0; i < area_chunk_count(area); i++) {
		size_t bytes = area_chunk_bytes(area, i);
		size_t got = area->is_gone ? 0 : area_read_chunk(root, area, i, copy);

		memset(copy + got, 0, bytes - got);
		for (size_t at = 0; at < bytes; at += AREA_PAGE)
			area->pages[(i * AREA_CHUNK + at) / AREA_PAGE] =
				area_hash_page(copy, at, bytes);
		area->chunks[i] = ts_replay_hash(copy, bytes);
		if (ret_blob && *ret_blob)
			ts_replay_blob_part(copy, bytes);
	}
	stream_copy_give(copy);
	return !area->is_gone;
}

/* With contents, if these are kept and still there. */
static void check_known(const struct stream_check *check, const struct stream_area *area,
			uint64_t bytes, uint64_t hash)
{
	unsigned char *copy = ts_replay_settings()->keep_contents ? malloc(bytes) : NULL;

	if (copy && stream_area_read(area, check->offset - area->offset, copy, bytes) == bytes &&
	    ts_replay_hash(copy, bytes) == hash)
		stream_check_bytes(check, copy, bytes);
	else
		stream_emit_check(check, bytes, hash);
	free(copy);
}

/* Chunks; of those that are not known as a whole, pages. */
bool area_check(const struct ocl_stream *root, const struct stream_area *area)
{
	struct stream_check check = { .sequence = ts_replay_last_sequence(),
				      .memory = root->number,
				      .why = "final" };

	if (!area->pages)
		return false;
	/* A check of an image covers all of it. */
	if (area->image) {
		if (area->chunks[0] && area->bytes == root->as.memory.bytes)
			check_known(&check, area, area->bytes, area->chunks[0]);
		return area->bytes == root->as.memory.bytes;
	}
	for (uint64_t at = 0, bytes; at < area->bytes; at += bytes) {
		uint64_t left = area->bytes - at, hash = area->pages[at / AREA_PAGE];

		bytes = left < AREA_PAGE ? left : AREA_PAGE;
		if (at % AREA_CHUNK == 0 && area->chunks[at / AREA_CHUNK]) {
			bytes = left < AREA_CHUNK ? left : AREA_CHUNK;
			hash = area->chunks[at / AREA_CHUNK];
		}
		check.offset = area->offset + at;
		if (hash)
			check_known(&check, area, bytes, hash);
	}
	return true;
}
