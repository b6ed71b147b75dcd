/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace, or any prefix of one (docs/format.md). The file is not trusted: errors name the
 * chunk and byte, memory use is bounded, and nothing is mapped.
 *
 * A reader lists the chunks of the file. The rows of a chunk are read as a batch of columns, and
 * only the requested columns are read:
 *
 *	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
 *		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);
 *		if (chunk->table != TS_TABLE_GPU_OP || !ts_chunk_overlaps(chunk, from, to))
 *			continue;
 *		ts_batch_read(batch, i, TS_MASK_OF(gpu_op, start), &err);
 *		const int64_t *start = batch->columns[TS_COLUMN_OF(gpu_op, start)];
 *	}
 *
 * Several threads may read at once, each into its own batch. Strings, shapes and entities are
 * loaded on first use, under a lock, so any thread may ask for them. A child of fork() may go on
 * reading, with batches of its own.
 */
#ifndef TRACESMITH_READER_H
#define TRACESMITH_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ts_reader;

/*
 * Opens a trace. An unfinished file, or one with a damaged index, is scanned: see
 * ts_reader_state(). Not a trace: TS_EFORMAT; too new: TS_EVERSION.
 */
int ts_reader_open(struct ts_reader **ret_reader, const char *path, struct ts_error *err);
void ts_reader_close(struct ts_reader *reader);

/* Results of opening. Offsets are those of the first of that kind. */
struct ts_reader_state {
	bool finished; /* index and trailer are present and valid */
	uint64_t file_bytes;
	uint64_t damaged_ranges; /* ranges without a valid chunk */
	uint64_t damaged_bytes;
	uint64_t damaged_offset;
	uint16_t major, minor;
	int64_t created_ns;
	uint8_t trace_id[16];
};
const struct ts_reader_state *ts_reader_state(const struct ts_reader *reader);

/* Bytes read from the file so far, and the number of chunks that were at least partly read. */
uint64_t ts_reader_bytes_read(const struct ts_reader *reader);
uint64_t ts_reader_chunks_read(const struct ts_reader *reader);

/* ---- chunks ---- */

struct ts_chunk {
	uint64_t offset, bytes;
	uint64_t first_id;
	uint64_t checksum;
	/* Trace time, converted; min_start is TS_ABSENT for tables without time. */
	int64_t min_start, max_start, max_end;
	uint32_t header_bytes;
	uint32_t rows, values;
	uint32_t clock;
	uint16_t table; /* may be one that this build does not know */
	uint16_t flags;
};

#define TS_CHUNK_LONG 1

size_t ts_reader_chunk_count(const struct ts_reader *reader);
const struct ts_chunk *ts_reader_chunk(const struct ts_reader *reader, size_t index);

/* True if a row of the chunk may overlap [from, to]; always for chunks without time. */
static inline bool ts_chunk_overlaps(const struct ts_chunk *chunk, int64_t from, int64_t to)
{
	return chunk->min_start == TS_ABSENT || (chunk->max_end >= from && chunk->min_start <= to);
}

/* Rows of a table over all chunks. */
uint64_t ts_reader_rows(const struct ts_reader *reader, enum ts_table_id table);

/* ---- batches ---- */

/*
 * Decoded columns of one chunk. columns[i] has `rows` values, or is NULL if column i was not
 * requested. Values are valid until the next read into the same batch.
 */
struct ts_batch {
	const struct ts_table_info *table;
	const int64_t *columns[TS_MAX_COLUMNS];
	/* With the SHAPE column: values of row r are arg_values[arg_offsets[r] ...]. */
	const uint32_t *arg_offsets;
	const int64_t *arg_values;
	/* BYTES column: string r is bytes[byte_offsets[r] ...], followed by a NUL. */
	const uint64_t *byte_offsets;
	const char *bytes;
	size_t chunk;
	uint32_t rows;
	struct ts_batch_store *store; /* private */
};

int ts_batch_new(struct ts_batch **ret_batch, struct ts_reader *reader, struct ts_error *err);
void ts_batch_free(struct ts_batch *batch);

/*
 * Decodes the columns of the mask (TS_MASK_OF(), TS_MASK_ALL) of one chunk. TIME columns are in
 * trace time. A chunk of an unknown table gives a batch of 0 rows. Arguments come with the SHAPE
 * column.
 */
int ts_batch_read(struct ts_batch *batch, size_t chunk, uint64_t mask, struct ts_error *err);

/* Row r of a batch as struct ts_<table>_row; columns that were not requested hold "no value". */
void ts_batch_row(const struct ts_batch *batch, uint32_t row, void *ret_row);

/* ---- ids ---- */

struct ts_string {
	const char *data; /* NUL-terminated, but may contain NULs */
	size_t length;
};

/* Text of a string id, valid until close or trim; "" for 0, "(lost)" for an id that is missing. */
struct ts_string ts_reader_string(struct ts_reader *reader, int64_t string);

/* Highest string id plus 1: ids are 1 .. that - 1. */
uint32_t ts_reader_string_end(const struct ts_reader *reader);

/* Fields of a shape; valid until close. Shape 0, or a missing one: no fields. */
const struct ts_shape *ts_reader_shape(struct ts_reader *reader, int64_t shape);

/*
 * The newest row of an id of an ENTITY or DICTIONARY table (not string), borrowed until close; NULL
 * if missing. Dictionaries and entities stay in memory from the first call on.
 */
const void *ts_reader_entity(struct ts_reader *reader, enum ts_table_id table, int64_t id);

/*
 * Iterates over the rows of such a table, each id once, in order of first appearance. *cursor
 * starts at 0; NULL at the end.
 */
const void *ts_reader_entity_next(struct ts_reader *reader, enum ts_table_id table, size_t *cursor,
				  int64_t *ret_id);

/*
 * Symbols of a frame that were added after the recording: rows of `symbol`, depth 0 (the innermost
 * inlined function) first, followed by its callers; the last is the enclosing function. If a frame
 * was symbolized twice the later rows count. Borrowed until close; NULL, and 0: none.
 */
const struct ts_symbol_row *ts_reader_symbols(struct ts_reader *reader, int64_t frame,
					      uint32_t *ret_count);

/* ---- blobs ---- */

/*
 * Content of a row of `blob`, with everything that it continues (docs/format.md, section 4.4). An
 * invalid chain (a row that continues itself or a later one, sizes that do not add up) is
 * TS_EFORMAT; a blob that is missing, or partly missing, TS_ENOTFOUND. The message names the blob.
 * Thread-safe; callers wait for each other. Besides the caller's memory, one chunk and 32 bytes per
 * row of one chain are kept.
 */
int ts_reader_blob_size(struct ts_reader *reader, int64_t blob, uint64_t *ret_bytes,
			struct ts_error *err);

/*
 * Copies `bytes` bytes from `offset` on; beyond the end is TS_EINVAL. Reads only the rows of that
 * range. Chunk checksums are always verified; the blob's own hash if all of it is read at once.
 * Fast for increasing offsets.
 */
int ts_reader_blob_read(struct ts_reader *reader, int64_t blob, uint64_t offset, void *to,
			size_t bytes, struct ts_error *err);

/*
 * Passes the whole content in order, in pieces of at most 64 MiB (1 MiB in our own traces), each
 * after the hash of the content up to its end was verified. `piece` may be NULL (verify only); a
 * nonzero result stops and is returned. It must not use the reader's blobs itself.
 */
int ts_reader_blob_walk(struct ts_reader *reader, int64_t blob,
			int (*piece)(void *context, uint64_t offset, const void *data, size_t bytes,
				     struct ts_error *err),
			void *context, struct ts_error *err);

/*
 * Drops cached texts if they exceed `bytes`, so that iterating over a trace larger than memory
 * stays bounded. Only if no earlier ts_string is still in use.
 */
void ts_reader_trim(struct ts_reader *reader, size_t bytes);

/* First error while loading texts, shapes or entities: 0 or its code. */
int ts_reader_status(const struct ts_reader *reader, struct ts_error *err);

/* ---- whole files ---- */

/* Findings of verify and recover; return nonzero to stop. */
struct ts_verify_finding {
	uint64_t chunk;      /* number of the chunk, or UINT64_MAX for the file itself */
	uint64_t offset;     /* byte offset in the file */
	const char *message; /* borrowed */
	/* 1: the checksums are right, so that ts_recover() keeps the chunk as it is; otherwise 0 */
	int is_kept;
};

/*
 * Reads every byte, verifies every checksum and decodes everything. Returns 0 if nothing is wrong,
 * TS_EFORMAT if something is (each finding is passed to `report`), or another error. `progress`
 * (may be NULL) gets bytes done and in total; return nonzero to stop.
 */
int ts_verify(const char *path,
	      void (*report)(void *context, const struct ts_verify_finding *finding),
	      int (*progress)(void *context, uint64_t done, uint64_t total), void *context,
	      struct ts_error *err);

struct ts_recovery {
	uint64_t chunks, rows;   /* recovered */
	uint64_t damaged_chunks; /* known by their header, but incomplete */
	uint64_t damaged_bytes;  /* total, including chunks */
};

/* Copies every intact chunk of `from` into a finished trace `to`; adds a loss row for the rest. */
int ts_recover(const char *from, const char *to,
	       int (*progress)(void *context, uint64_t done, uint64_t total), void *context,
	       struct ts_recovery *ret_recovery, struct ts_error *err);

#ifdef __cplusplus
}
#endif

#endif
