/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the chunks of a file without its index, and past damage. Linear in the file size for any
 * content.
 */
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "sbt/file.h"

#define WINDOW_BYTES ((size_t)1 << 18)

void sbt_chunk_list_release(struct sbt_chunk_list *list)
{
	free(list->chunks);
	free(list->gaps);
	memset(list, 0, sizeof(*list));
}

static int add_chunk(struct sbt_chunk_list *list, const struct sbt_chunk *chunk,
		     struct ts_error *err)
{
	if (ts_grow_array((void **)&list->chunks, &list->capacity, list->count + 1, sizeof(*chunk)))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	list->chunks[list->count++] = *chunk;
	return TS_OK;
}

static int add_gap(struct sbt_chunk_list *list, uint64_t from, uint64_t to, const char *why,
		   struct ts_error *err)
{
	if (ts_grow_array((void **)&list->gaps, &list->gap_capacity, list->gap_count + 1,
			  sizeof(*list->gaps)))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	list->gaps[list->gap_count++] =
		(struct sbt_gap){ .offset = from, .bytes = to - from, .why = why };
	return TS_OK;
}

int sbt_chunk_check_payloads(struct sbt_file *file, const struct sbt_chunk *chunk,
			     struct ts_error *err)
{
	TS_AUTO_FREE struct sbt_column *directory =
		ts_alloc_array(chunk->header.columns, sizeof(*directory));
	TS_AUTO_FREE void *payload = NULL;
	uint64_t offset = chunk->offset + chunk->header.header_bytes;
	const char *why;
	int result;

	if (!directory)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	result = sbt_directory_read(file, chunk, directory, &why, err);
	for (uint32_t i = 0; !result && i < chunk->header.columns; i++) {
		void *grown = realloc(payload, directory[i].stored_bytes + 1);

		if (!grown)
			return ts_error_set(err, TS_ENOMEM, "no memory");
		payload = grown;
		result = sbt_file_read(file, offset, payload, directory[i].stored_bytes, err);
		if (!result &&
		    ts_hash64(payload, directory[i].stored_bytes) != directory[i].checksum)
			result = TS_EFORMAT;
		offset += directory[i].stored_bytes;
	}
	return result;
}

/* A window of the file in memory: hostile files have a magic in every eighth byte. */
struct window {
	char *data;
	uint64_t offset;
	size_t bytes;
};

/* State of a scan. */
struct scan {
	struct sbt_file *file;
	struct sbt_chunk_list *list;
	struct ts_error *err;
	uint64_t offset;
	uint64_t next_sequence;
	uint64_t doubt_bytes; /* payload bytes that may still be reread to detect torn chunks */
	const char *why;      /* why there is no chunk at offset */
	struct window window; /* kept from gap to gap: there may be one every few bytes */
};

/* True, with *ret_chunk filled, if a valid chunk begins at the offset. */
static bool chunk_at(struct scan *scan, uint64_t offset, struct sbt_chunk *ret_chunk)
{
	uint64_t left = scan->file->bytes - offset;

	if (left < sizeof(ret_chunk->header)) {
		scan->why = "the file ends inside a chunk header";
		return false;
	}
	ret_chunk->offset = offset;
	if (sbt_file_read(scan->file, offset, &ret_chunk->header, sizeof(ret_chunk->header),
			  NULL)) {
		scan->why = "cannot be read";
		return false;
	}
	scan->why = sbt_chunk_header_fault(&ret_chunk->header, offset, scan->file->bytes);
	if (!scan->why && ret_chunk->header.sequence < scan->next_sequence)
		scan->why = "chunk is out of sequence";
	return !scan->why;
}

/* The first offset >= from with a chunk magic, or the end of the file. */
static int find_magic(struct scan *scan, uint64_t from, uint64_t *ret_offset)
{
	struct window *window = &scan->window;

	while (from + SBT_MAGIC_BYTES <= scan->file->bytes) {
		const char *found;
		size_t skip;

		if (from < window->offset ||
		    from + SBT_MAGIC_BYTES > window->offset + window->bytes) {
			int result;

			window->offset = from;
			window->bytes =
				(size_t)TS_MIN(scan->file->bytes - from, (uint64_t)WINDOW_BYTES);
			result = sbt_file_read(scan->file, from, window->data, window->bytes,
					       scan->err);
			if (result)
				return result;
		}
		skip = (size_t)(from - window->offset);
		found = memmem(window->data + skip, window->bytes - skip, SBT_CHUNK_MAGIC,
			       SBT_MAGIC_BYTES);
		if (found) {
			*ret_offset = window->offset + (uint64_t)(found - window->data);
			return TS_OK;
		}
		from = window->offset + window->bytes - (SBT_MAGIC_BYTES - 1);
	}
	*ret_offset = scan->file->bytes;
	return TS_OK;
}

/*
 * Nested chunks could make a scan read the same bytes over and over: rereads are limited, and then
 * a header is trusted.
 */
static bool is_torn(struct scan *scan, const struct sbt_chunk *chunk)
{
	if (chunk->header.chunk_bytes > scan->doubt_bytes)
		return false;
	scan->doubt_bytes -= chunk->header.chunk_bytes;
	return sbt_chunk_check_payloads(scan->file, chunk, NULL) != TS_OK;
}

/* Advances scan->offset to the next valid chunk or the end, and records the gap. */
static int search_on(struct scan *scan)
{
	const char *why = scan->why;
	uint64_t from = scan->offset, at = scan->offset;
	struct sbt_chunk chunk;
	int result;

	if (!scan->window.data && !(scan->window.data = malloc(WINDOW_BYTES)))
		return ts_error_set(scan->err, TS_ENOMEM, "no memory");
	/* If the last chunk is torn, others may have been appended inside its claimed size. */
	if (scan->list->count) {
		const struct sbt_chunk *last = &scan->list->chunks[scan->list->count - 1];

		if (is_torn(scan, last)) {
			from = last->offset;
			at = last->offset + last->header.header_bytes;
			why = "the payload of this chunk is damaged";
			scan->next_sequence = last->header.sequence;
			scan->list->count--;
		}
	}
	do {
		result = find_magic(scan, at, &at);
		if (result)
			return result;
	} while (at < scan->file->bytes && !chunk_at(scan, at, &chunk) && ++at);
	scan->offset = at;
	return add_gap(scan->list, from, at, why, scan->err);
}

static int scan_all(struct scan *scan,
		    int (*progress)(void *context, uint64_t done, uint64_t total), void *context)
{
	while (scan->offset < scan->file->bytes) {
		struct sbt_chunk chunk;
		int result;

		if (progress && progress(context, scan->offset, scan->file->bytes))
			return ts_error_set(scan->err, TS_ECANCELED, "interrupted");
		if (chunk_at(scan, scan->offset, &chunk)) {
			result = add_chunk(scan->list, &chunk, scan->err);
			scan->offset += chunk.header.chunk_bytes;
			scan->next_sequence = chunk.header.sequence + 1;
		} else {
			result = search_on(scan);
		}
		if (result)
			return result;
	}
	return TS_OK;
}

int sbt_scan(struct sbt_file *file, uint64_t from, struct sbt_chunk_list *list,
	     int (*progress)(void *context, uint64_t done, uint64_t total), void *context,
	     struct ts_error *err)
{
	struct scan scan = { .file = file,
			     .list = list,
			     .err = err,
			     .offset = from,
			     .doubt_bytes = 4 * file->bytes };
	int result = scan_all(&scan, progress, context);

	free(scan.window.data);
	return result;
}
