/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blob contents: follows the chain of rows of a blob from the last one back and returns its bytes.
 * Caches one decoded chunk and the last chain, so that sequential reads decode each chunk once. The
 * file may be hostile: ids must decrease along a chain, so it cannot be circular, and sizes are
 * checked against the file.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "sbt/blob_cursor.h"
#include "sbt/reader_internal.h"

#define NO_CHUNK SIZE_MAX
/* The rows of a chain are bounded by the file: real ones have 1 MiB each. */
#define MIN_CHAIN_BYTES (UINT64_C(16) << 20)

#define ROW_COLUMNS (TS_MASK_OF(blob, hash) | TS_MASK_OF(blob, bytes) | TS_MASK_OF(blob, previous))

/* A chunk of the table; by first_id. */
struct blob_chunk {
	uint64_t first_id;
	uint32_t rows;
	size_t chunk;
};

/* A row of a chain, and its byte offset in the blob. */
struct link {
	uint64_t begin, end, hash;
	int64_t id;
};

struct sbt_blobs {
	struct blob_chunk *chunks;
	size_t chunk_count;
	struct ts_batch *rows; /* of `row_chunk`, without bytes */
	struct ts_batch *data; /* of `data_chunk`, with bytes */
	size_t row_chunk, data_chunk;
	int64_t chain; /* the blob of these links, first row first; 0: none */
	struct link *links;
	size_t link_count, link_capacity;
	size_t newest; /* link that was read last */
};

/* ---- errors ---- */

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory");
}

static int broken(const struct ts_reader *reader, int64_t blob, const char *why,
		  struct ts_error *err)
{
	return ts_error_set(err, TS_EFORMAT, "trace '%s': blob %lld: %s", reader->file.path,
			    (long long)blob, why);
}

/* ---- rows ---- */

static int list_chunks(struct ts_reader *reader, struct sbt_blobs *blobs)
{
	uint64_t next_id = 1;
	size_t count = 0;

	for (size_t i = 0; i < reader->list.count; i++)
		count += reader->chunks[i].table == TS_TABLE_BLOB;
	blobs->chunks = ts_alloc_array(count, sizeof(*blobs->chunks));
	if (!blobs->chunks)
		return TS_ENOMEM;
	for (size_t i = 0; i < reader->list.count; i++) {
		const struct ts_chunk *chunk = &reader->chunks[i];

		/* As with texts: id ranges increase; otherwise the earlier rows count. */
		if (chunk->table != TS_TABLE_BLOB || chunk->first_id < next_id ||
		    chunk->first_id > UINT32_MAX)
			continue;
		blobs->chunks[blobs->chunk_count++] = (struct blob_chunk){
			.first_id = chunk->first_id, .rows = chunk->rows, .chunk = i
		};
		next_id = chunk->first_id + chunk->rows;
	}
	return TS_OK;
}

/* NULL: no memory. */
static struct sbt_blobs *new_blobs(struct ts_reader *reader, struct ts_error *err)
{
	struct sbt_blobs *blobs = calloc(1, sizeof(*blobs));

	if (!blobs || list_chunks(reader, blobs) || ts_batch_new(&blobs->rows, reader, err) ||
	    ts_batch_new(&blobs->data, reader, err)) {
		sbt_blobs_free(blobs);
		no_memory(err);
		return NULL;
	}
	blobs->row_chunk = blobs->data_chunk = NO_CHUNK;
	return blobs;
}

/* Created on first use; NULL: no memory. Lock held. */
static struct sbt_blobs *get_blobs(struct ts_reader *reader, struct ts_error *err)
{
	if (!reader->blobs)
		reader->blobs = new_blobs(reader, err);
	return reader->blobs;
}

void sbt_blobs_free(struct sbt_blobs *blobs)
{
	if (!blobs)
		return;
	ts_batch_free(blobs->rows);
	ts_batch_free(blobs->data);
	free(blobs->chunks);
	free(blobs->links);
	free(blobs);
}

static const struct blob_chunk *find_chunk(const struct sbt_blobs *blobs, int64_t id)
{
	size_t low = 0, high = blobs->chunk_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (blobs->chunks[middle].first_id <= (uint64_t)id)
			low = middle + 1;
		else
			high = middle;
	}
	if (id <= 0 || low == 0 ||
	    (uint64_t)id - blobs->chunks[low - 1].first_id >= blobs->chunks[low - 1].rows)
		return NULL;
	return &blobs->chunks[low - 1];
}

static int load_data(struct sbt_blobs *blobs, size_t chunk, struct ts_error *err)
{
	int result;

	if (blobs->data_chunk == chunk)
		return TS_OK;
	blobs->data_chunk = NO_CHUNK;
	result = ts_batch_read(blobs->data, chunk, TS_MASK_ALL, err);
	if (!result)
		blobs->data_chunk = chunk;
	return result;
}

/* A batch with the chunk's rows: the one with the bytes if it is loaded. */
static int load_rows(struct sbt_blobs *blobs, size_t chunk, const struct ts_batch **ret_batch,
		     struct ts_error *err)
{
	int result = TS_OK;

	if (blobs->data_chunk == chunk) {
		*ret_batch = blobs->data;
		return TS_OK;
	}
	if (blobs->row_chunk != chunk) {
		blobs->row_chunk = NO_CHUNK;
		result = ts_batch_read(blobs->rows, chunk, ROW_COLUMNS, err);
		if (!result)
			blobs->row_chunk = chunk;
	}
	*ret_batch = blobs->rows;
	return result;
}

/* ---- chains ---- */

static const char *link_fault(const struct ts_reader *reader, const struct sbt_blobs *blobs,
			      const struct ts_blob_row *row, int64_t id)
{
	if (row->bytes < 0)
		return "its size is negative";
	if (row->previous < 0 || row->previous >= id)
		return "it continues itself or a later one";
	if (blobs->link_count && (uint64_t)row->bytes >= blobs->links[blobs->link_count - 1].end)
		return "the sizes of its rows do not increase";
	if (blobs->link_count * sizeof(struct link) > MIN_CHAIN_BYTES + reader->file.bytes)
		return "it has more rows than a file of this size may have";
	return NULL;
}

/* One row of a chain, going back; *ret_previous is the next. */
static int add_link(struct ts_reader *reader, struct sbt_blobs *blobs, int64_t blob, int64_t id,
		    int64_t *ret_previous, struct ts_error *err)
{
	const struct blob_chunk *location = find_chunk(blobs, id);
	const struct ts_batch *batch;
	struct ts_blob_row row;
	const char *fault;
	int result;

	if (!location && id == blob)
		return ts_error_set(err, TS_ENOTFOUND, "trace '%s' has no blob %lld",
				    reader->file.path, (long long)blob);
	/* A chunk is missing, because `recover` left it out. */
	if (!location)
		return ts_error_set(err, TS_ENOTFOUND,
				    "trace '%s': blob %lld: part of it is missing from the file",
				    reader->file.path, (long long)blob);
	result = load_rows(blobs, location->chunk, &batch, err);
	if (result)
		return result;
	ts_batch_row(batch, (uint32_t)((uint64_t)id - location->first_id), &row);
	fault = link_fault(reader, blobs, &row, id);
	if (fault)
		return broken(reader, blob, fault, err);
	if (ts_grow_array((void **)&blobs->links, &blobs->link_capacity, blobs->link_count + 1,
			  sizeof(struct link)))
		return no_memory(err);
	if (blobs->link_count)
		blobs->links[blobs->link_count - 1].begin = (uint64_t)row.bytes;
	blobs->links[blobs->link_count++] =
		(struct link){ .end = (uint64_t)row.bytes, .hash = (uint64_t)row.hash, .id = id };
	*ret_previous = row.previous;
	return TS_OK;
}

static void reverse_links(struct sbt_blobs *blobs)
{
	for (size_t i = 0; i < blobs->link_count / 2; i++) {
		struct link swap = blobs->links[i];

		blobs->links[i] = blobs->links[blobs->link_count - 1 - i];
		blobs->links[blobs->link_count - 1 - i] = swap;
	}
}

/* The links of a blob. Lock held. */
static int load_chain(struct ts_reader *reader, struct sbt_blobs *blobs, int64_t blob,
		      struct ts_error *err)
{
	int64_t id = blob;
	int result;

	if (blobs->chain == blob && blob)
		return TS_OK;
	blobs->chain = 0;
	blobs->link_count = blobs->newest = 0;
	do {
		result = add_link(reader, blobs, blob, id, &id, err);
	} while (!result && id);
	if (result)
		return result;
	/* Rows without bytes are useless except as a blob of their own. */
	if (blobs->links[blobs->link_count - 1].end == 0 && blobs->link_count > 1)
		return broken(reader, blob, "it has a row without bytes", err);
	reverse_links(blobs);
	blobs->chain = blob;
	return TS_OK;
}

/* Decoded bytes of a link; valid until another chunk is decoded. */
static int link_bytes(struct ts_reader *reader, struct sbt_blobs *blobs, const struct link *link,
		      const char **ret_bytes, struct ts_error *err)
{
	const struct blob_chunk *location = find_chunk(blobs, link->id);
	uint64_t row = (uint64_t)link->id - location->first_id;
	const uint64_t *offsets;
	int result = load_data(blobs, location->chunk, err);

	if (result)
		return result;
	offsets = blobs->data->byte_offsets;
	/* Each is followed by a NUL that is not counted. */
	if (offsets[row + 1] - offsets[row] - 1 != link->end - link->begin)
		return broken(reader, blobs->chain, "a row's size does not match", err);
	*ret_bytes = blobs->data->bytes + offsets[row];
	return TS_OK;
}

/* The link with that byte: usually the one read last, or the next. */
static size_t find_link(const struct sbt_blobs *blobs, uint64_t offset)
{
	size_t low = 0, high = blobs->link_count;

	for (size_t i = blobs->newest; i < TS_MIN(blobs->newest + 2, blobs->link_count); i++)
		if (offset >= blobs->links[i].begin && offset < blobs->links[i].end)
			return i;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (blobs->links[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- what callers see ---- */

static int read_range(struct ts_reader *reader, struct sbt_blobs *blobs, uint64_t offset, char *to,
		      size_t bytes, struct ts_error *err)
{
	size_t location = find_link(blobs, offset);

	while (bytes) {
		const struct link *link = &blobs->links[location];
		size_t count = (size_t)TS_MIN((uint64_t)bytes, link->end - offset);
		const char *from = NULL;
		int result = link_bytes(reader, blobs, link, &from, err);

		if (result)
			return result;
		assert(from);
		memcpy(to, from + (offset - link->begin), count);
		blobs->newest = location++;
		to += count;
		offset += count;
		bytes -= count;
	}
	return TS_OK;
}

static int read_blob(struct ts_reader *reader, struct sbt_blobs *blobs, int64_t blob,
		     uint64_t offset, void *to, size_t bytes, struct ts_error *err)
{
	const struct blob_chunk *location;
	const struct link *last;
	int result = TS_OK;

	if (!blobs)
		return TS_ENOMEM;
	/* Most blobs have one row: its chunk is needed anyway and has the columns too. */
	location = blobs->chain == blob ? NULL : find_chunk(blobs, blob);
	if (location)
		result = load_data(blobs, location->chunk, err);
	if (!result)
		result = load_chain(reader, blobs, blob, err);
	if (result)
		return result;
	last = &blobs->links[blobs->link_count - 1];
	if (offset > last->end || bytes > last->end - offset)
		return ts_error_set(
			err, TS_EINVAL, "trace '%s': blob %lld has %llu bytes, fewer than are read",
			reader->file.path, (long long)blob, (unsigned long long)last->end);
	result = read_range(reader, blobs, offset, to, bytes, err);
	if (!result && bytes == last->end && ts_hash64(to, bytes) != last->hash)
		result = broken(reader, blob, "its content does not match its hash", err);
	return result;
}

int ts_reader_blob_read(struct ts_reader *reader, int64_t blob, uint64_t offset, void *to,
			size_t bytes, struct ts_error *err)
{
	int result;

	pthread_mutex_lock(&reader->blob_lock);
	result = read_blob(reader, get_blobs(reader, err), blob, offset, to, bytes, err);
	pthread_mutex_unlock(&reader->blob_lock);
	return result;
}

int ts_reader_blob_size(struct ts_reader *reader, int64_t blob, uint64_t *ret_bytes,
			struct ts_error *err)
{
	struct sbt_blobs *blobs;
	int result = TS_ENOMEM;

	pthread_mutex_lock(&reader->blob_lock);
	blobs = get_blobs(reader, err);
	if (blobs)
		result = load_chain(reader, blobs, blob, err);
	if (!result)
		*ret_bytes = blobs->links[blobs->link_count - 1].end;
	pthread_mutex_unlock(&reader->blob_lock);
	return result;
}

struct sbt_blob_cursor {
	struct ts_reader *reader;
	struct sbt_blobs *blobs;
};

int sbt_blob_cursor_new(struct sbt_blob_cursor **ret_cursor, struct ts_reader *reader,
			struct ts_error *err)
{
	struct sbt_blob_cursor *cursor = calloc(1, sizeof(*cursor));

	if (!cursor)
		return no_memory(err);
	cursor->reader = reader;
	cursor->blobs = new_blobs(reader, err);
	if (!cursor->blobs) {
		free(cursor);
		return TS_ENOMEM;
	}
	*ret_cursor = cursor;
	return TS_OK;
}

void sbt_blob_cursor_free(struct sbt_blob_cursor *cursor)
{
	if (!cursor)
		return;
	sbt_blobs_free(cursor->blobs);
	free(cursor);
}

int sbt_blob_cursor_read(struct sbt_blob_cursor *cursor, int64_t blob, uint64_t offset, void *to,
			 size_t bytes, struct ts_error *err)
{
	return read_blob(cursor->reader, cursor->blobs, blob, offset, to, bytes, err);
}

static int walk_blob(struct ts_reader *reader, int64_t blob,
		     int (*piece)(void *context, uint64_t offset, const void *data, size_t bytes,
				  struct ts_error *err),
		     void *context, struct ts_error *err)
{
	struct sbt_blobs *blobs = get_blobs(reader, err);
	int result = blobs ? load_chain(reader, blobs, blob, err) : TS_ENOMEM;
	struct ts_hash_stream hash;

	ts_hash_stream_init(&hash);
	for (size_t i = 0; !result && i < blobs->link_count; i++) {
		const struct link *link = &blobs->links[i];
		size_t bytes = (size_t)(link->end - link->begin);
		const char *data = NULL;

		result = link_bytes(reader, blobs, link, &data, err);
		if (result)
			break;
		ts_hash_stream_add(&hash, data, bytes);
		if (ts_hash_stream_digest(&hash) != link->hash)
			return broken(reader, blob, "its content does not match its hash", err);
		if (piece)
			result = piece(context, link->begin, data, bytes, err);
	}
	return result;
}

int ts_reader_blob_walk(struct ts_reader *reader, int64_t blob,
			int (*piece)(void *context, uint64_t offset, const void *data, size_t bytes,
				     struct ts_error *err),
			void *context, struct ts_error *err)
{
	int result;

	pthread_mutex_lock(&reader->blob_lock);
	result = walk_blob(reader, blob, piece, context, err);
	pthread_mutex_unlock(&reader->blob_lock);
	return result;
}
