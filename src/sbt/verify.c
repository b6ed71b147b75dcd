/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an entire trace and reports what is wrong: every checksum, every column, every bound that a
 * reader relies on, and the index against the chunks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "sbt/chunk.h"
#include "sbt/reader_internal.h"

/* State of a chain at a row that may be continued. */
#define BLOB_STATES 16
/* Decoded bytes of chains that may be reread when several rows continue the same one. */
#define BLOB_AGAIN (UINT64_C(16) << 30)

struct blob_state {
	int64_t id; /* 0: none */
	struct ts_hash_stream hash;
};

struct verify {
	struct ts_reader *reader; /* opened by a scan, not by the index */
	struct ts_batch *batch;
	void (*report)(void *context, const struct ts_verify_finding *finding);
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	uint64_t findings;
	uint64_t next_id[TS_TABLE_COUNT];
	uint64_t next_shape;
	uint64_t next_sequence;
	bool finished;
	struct blob_state blobs[BLOB_STATES];
	unsigned int blob_next; /* where the next of those goes */
	uint64_t blob_again;    /* bytes */
	char message[256];
};

static void pass_on(struct verify *verify, const struct ts_verify_finding *finding)
{
	verify->findings++;
	if (verify->report)
		verify->report(verify->context, finding);
}

/* Chunks are named by their sequence here, which damage before them does not change. */
static void found(struct verify *verify, uint64_t chunk, uint64_t offset, const char *message)
{
	pass_on(verify, &(struct ts_verify_finding){
				.chunk = chunk, .offset = offset, .message = message });
}

/* Wrong content in spite of right checksums. The index is written anew by `recover`. */
static void found_content(struct verify *verify, const struct sbt_chunk *chunk, const char *message)
{
	pass_on(verify,
		&(struct ts_verify_finding){ .chunk = chunk->header.sequence,
					     .offset = chunk->offset,
					     .message = message,
					     .is_kept = chunk->header.table != TS_TABLE_INDEX });
}

/* ---- one chunk ---- */

/* Starts increase, and the header's bounds match the rows. */
static const char *time_fault(const struct ts_batch *batch, const struct sbt_chunk_header *header)
{
	const int64_t *start, *duration = NULL;
	int64_t max_end = INT64_MIN;

	if (batch->table->start < 0)
		return header->min_start != TS_ABSENT || header->max_start != TS_ABSENT ||
				       header->max_end != TS_ABSENT
			       ? "a table without time has time bounds"
			       : NULL;
	start = batch->columns[batch->table->start];
	if (batch->table->duration >= 0)
		duration = batch->columns[batch->table->duration];
	for (uint32_t i = 0; i < batch->rows; i++) {
		int64_t end;

		if (start[i] == TS_ABSENT || (i && start[i] < start[i - 1]))
			return "rows are not in order of their start";
		if (duration && duration[i] < -1)
			return "a duration is negative";
		end = sbt_row_end(start[i], duration ? duration[i] : 0);
		max_end = end > max_end ? end : max_end;
	}
	if (header->min_start != start[0] || header->max_start != start[batch->rows - 1] ||
	    header->max_end != max_end)
		return "time bounds differ from those of the rows";
	return NULL;
}

static const char *id_fault(struct verify *verify, const struct ts_batch *batch,
			    const struct sbt_chunk_header *header)
{
	const struct ts_table_info *info = batch->table;

	if (info->kind != TS_KIND_DICTIONARY)
		return header->first_id ? "a table without ids has a first id" : NULL;
	if (header->first_id < verify->next_id[info->id] ||
	    header->first_id + header->rows > UINT32_MAX)
		return "ids do not increase";
	verify->next_id[info->id] = header->first_id + header->rows;
	if (info->id == TS_TABLE_STACK) {
		const int64_t *parent = batch->columns[TS_COLUMN_OF(stack, parent)];

		for (uint32_t i = 0; i < batch->rows; i++)
			if ((uint64_t)parent[i] >= header->first_id + i)
				return "a stack has a parent that comes after it";
	}
	return NULL;
}

static const char *shape_fault(struct verify *verify, const struct ts_batch *batch)
{
	const int64_t *shape = batch->columns[TS_COLUMN_OF(shape, shape)];

	for (uint32_t i = 0; i < batch->rows; i++) {
		if (i && shape[i] == shape[i - 1])
			continue;
		if (shape[i] < 1 || (uint64_t)shape[i] < verify->next_shape)
			return "shape ids do not increase";
		verify->next_shape = (uint64_t)shape[i] + 1;
	}
	return NULL;
}

/* ---- blobs ---- */

static const char *blob_message(struct verify *verify, int64_t id, const char *why)
{
	snprintf(verify->message, sizeof(verify->message), "blob %lld: %s", (long long)id, why);
	return verify->message;
}

static int add_piece(void *context, uint64_t offset, const void *data, size_t bytes,
		     struct ts_error *err)
{
	(void)offset;
	(void)err;
	ts_hash_stream_add(context, data, bytes);
	return TS_OK;
}

/*
 * A chain continued by more than one row is reread for all but the first few. *ret_lost: part of it
 * is not in the file, which is not damage: `recover` leaves gaps.
 */
static const char *read_chain(struct verify *verify, int64_t id, int64_t previous,
			      struct ts_hash_stream *hash, bool *ret_lost)
{
	struct ts_error err;
	int result;

	if (verify->blob_again > BLOB_AGAIN)
		return blob_message(verify, id,
				    "too many blobs continue the same one: not checked");
	result = ts_reader_blob_walk(verify->reader, previous, add_piece, hash, &err);
	verify->blob_again += hash->bytes;
	*ret_lost = result == TS_ENOTFOUND;
	return result && !*ret_lost ? blob_message(verify, id, "what it continues is damaged")
				    : NULL;
}

/* Hashes what the row continues into *hash. */
static const char *find_state(struct verify *verify, int64_t id, int64_t previous,
			      struct ts_hash_stream *hash, bool *ret_lost)
{
	if (previous < 0 || previous >= id)
		return blob_message(verify, id, "it continues itself or a later one");
	for (unsigned int i = 0; i < BLOB_STATES; i++)
		if (previous && verify->blobs[i].id == previous) {
			*hash = verify->blobs[i].hash;
			return NULL;
		}
	ts_hash_stream_init(hash);
	return previous ? read_chain(verify, id, previous, hash, ret_lost) : NULL;
}

static const char *one_blob_fault(struct verify *verify, const struct ts_batch *batch, uint32_t i,
				  int64_t id)
{
	const uint64_t *offsets = batch->byte_offsets;
	struct ts_hash_stream hash;
	struct ts_blob_row row;
	const char *fault;
	bool lost = false;
	size_t bytes;

	ts_batch_row(batch, i, &row);
	fault = find_state(verify, id, row.previous, &hash, &lost);
	if (fault || lost)
		return fault;
	bytes = (size_t)(offsets[i + 1] - offsets[i] - 1);
	if (row.previous && (!bytes || !hash.bytes))
		return blob_message(verify, id, "it has a row without bytes");
	ts_hash_stream_add(&hash, batch->bytes + offsets[i], bytes);
	if ((uint64_t)row.bytes != hash.bytes)
		return blob_message(verify, id, "its size does not match");
	if ((uint64_t)row.hash != ts_hash_stream_digest(&hash))
		return blob_message(verify, id, "its content does not match its hash");
	verify->blobs[verify->blob_next] = (struct blob_state){ .id = id, .hash = hash };
	verify->blob_next = (verify->blob_next + 1) % BLOB_STATES;
	return NULL;
}

static const char *blob_fault(struct verify *verify, const struct ts_batch *batch,
			      const struct sbt_chunk_header *header)
{
	const char *fault = NULL;

	for (uint32_t i = 0; !fault && i < batch->rows; i++)
		fault = one_blob_fault(verify, batch, i, (int64_t)(header->first_id + i));
	return fault;
}

static const char *trailer_fault(struct verify *verify, const struct sbt_chunk *chunk)
{
	struct sbt_trailer trailer;
	uint64_t end = chunk->offset + chunk->header.chunk_bytes;

	if (sbt_file_read(&verify->reader->file, end - sizeof(trailer), &trailer, sizeof(trailer),
			  NULL))
		return "the trailer cannot be read";
	if (memcmp(trailer.magic, SBT_TRAILER_MAGIC, SBT_MAGIC_BYTES) != 0 ||
	    trailer.checksum != ts_hash64(&trailer, offsetof(struct sbt_trailer, checksum)))
		return "checksum of the trailer differs";
	if (trailer.index_offset != chunk->offset || trailer.file_bytes != end)
		return "the trailer points to another offset";
	return NULL;
}

/* Every index row equals the header of its chunk. */
static const char *index_fault(struct verify *verify, const struct sbt_chunk *chunk, size_t number)
{
	const struct ts_batch *batch = verify->batch;

	if (batch->rows != number)
		return "the index does not list all chunks";
	for (uint32_t i = 0; i < batch->rows; i++) {
		const struct sbt_chunk *listed = &verify->reader->list.chunks[i];
		const struct sbt_chunk_header *header = &listed->header;
		struct ts_index_row row;

		ts_batch_row(batch, i, &row);
		if ((uint64_t)row.offset != listed->offset ||
		    (uint64_t)row.bytes != header->chunk_bytes || row.table != header->table ||
		    row.flags != header->flags || row.rows != header->rows ||
		    row.clock != header->clock || row.values != header->values ||
		    row.min_start != header->min_start || row.max_start != header->max_start ||
		    row.max_end != header->max_end || (uint64_t)row.first_id != header->first_id ||
		    row.header_bytes != header->header_bytes ||
		    (uint64_t)row.checksum != header->checksum)
			return "the index disagrees with a chunk";
	}
	verify->finished = (chunk->header.flags & SBT_FLAG_FINAL) &&
			   number + 1 == verify->reader->list.count;
	return trailer_fault(verify, chunk);
}

static const char *content_fault(struct verify *verify, const struct sbt_chunk *chunk,
				 size_t number)
{
	const struct ts_batch *batch = verify->batch;
	const char *fault;

	if (!batch->table)
		return NULL;
	if (chunk->header.table == TS_TABLE_INDEX)
		return index_fault(verify, chunk, number);
	fault = time_fault(batch, &chunk->header);
	if (!fault)
		fault = id_fault(verify, batch, &chunk->header);
	if (!fault && chunk->header.table == TS_TABLE_SHAPE)
		fault = shape_fault(verify, batch);
	if (!fault && chunk->header.table == TS_TABLE_BLOB)
		fault = blob_fault(verify, batch, &chunk->header);
	return fault;
}

/* The part of an error after "trace 'x': chunk 3 at byte 9: ", which the caller adds itself. */
static const char *reason_of(const struct verify *verify, const struct sbt_chunk *chunk,
			     size_t number, const struct ts_error *err)
{
	struct ts_error bare;
	size_t length;

	sbt_chunk_error(&verify->reader->file, chunk, number, "", &bare);
	length = strlen(bare.message);
	return strncmp(err->message, bare.message, length) == 0 ? err->message + length
								: err->message;
}

static void verify_chunk(struct verify *verify, size_t number)
{
	const struct sbt_chunk *chunk = &verify->reader->list.chunks[number];
	uint64_t sequence = chunk->header.sequence;
	struct ts_error err;
	const char *fault;

	if (sequence != verify->next_sequence)
		found(verify, sequence, chunk->offset, "chunks are missing before this one");
	verify->next_sequence = sequence + 1;
	/* Columns unknown to this build are covered here, the others again below. */
	if (sbt_chunk_check_payloads(&verify->reader->file, chunk, NULL)) {
		found(verify, sequence, chunk->offset, "checksum differs");
		return;
	}
	if (sbt_batch_decode(verify->batch, chunk, number, TS_MASK_ALL, NULL, &err)) {
		found_content(verify, chunk, reason_of(verify, chunk, number, &err));
		return;
	}
	fault = content_fault(verify, chunk, number);
	if (fault)
		found_content(verify, chunk, fault);
}

/* ---- entry points ---- */

/* A damaged chunk is named by its original number: one more than that of the last valid one. */
static void report_gaps(struct verify *verify)
{
	const struct sbt_chunk_list *list = &verify->reader->list;
	uint64_t number = 0;
	size_t chunk = 0;

	for (size_t i = 0; i < list->gap_count; i++) {
		while (chunk < list->count && list->chunks[chunk].offset < list->gaps[i].offset)
			number = list->chunks[chunk++].header.sequence + 1;
		found(verify, number, list->gaps[i].offset, list->gaps[i].why);
	}
}

static int verify_chunks(struct verify *verify, struct ts_error *err)
{
	const struct sbt_chunk_list *list = &verify->reader->list;

	report_gaps(verify);
	for (size_t i = 0; i < list->count; i++) {
		if (verify->progress && verify->progress(verify->context, list->chunks[i].offset,
							 verify->reader->file.bytes))
			return ts_error_set(err, TS_ECANCELED, "interrupted");
		verify_chunk(verify, i);
	}
	if (!verify->finished && !verify->findings)
		found(verify, UINT64_MAX, verify->reader->file.bytes,
		      "the trace is unfinished: it has no index");
	return verify->findings ? ts_error_set(err, TS_EFORMAT, "trace '%s' is damaged",
					       verify->reader->file.path)
				: TS_OK;
}

int ts_verify(const char *path,
	      void (*report)(void *context, const struct ts_verify_finding *finding),
	      int (*progress)(void *context, uint64_t done, uint64_t total), void *context,
	      struct ts_error *err)
{
	struct verify verify = { .report = report, .progress = progress, .context = context };
	struct ts_verify_finding finding = { .chunk = UINT64_MAX };
	struct ts_error why;
	int result;

	verify.next_shape = 1;
	for (int i = 0; i < TS_TABLE_COUNT; i++)
		verify.next_id[i] = 1;
	result = sbt_reader_open_scanned(&verify.reader, path, progress, context, &why);
	if (result == TS_EFORMAT && report) {
		finding.message = why.message;
		report(context, &finding);
	}
	if (result) {
		if (err)
			*err = why;
		return result;
	}
	result = ts_batch_new(&verify.batch, verify.reader, err);
	if (!result)
		result = verify_chunks(&verify, err);
	ts_batch_free(verify.batch);
	ts_reader_close(verify.reader);
	return result;
}
