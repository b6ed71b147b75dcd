/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded chunks, kept within a memory budget. A chunk is read in two steps: first the columns that
 * decide which rows are wanted, then, if any are, the others.
 */
#ifndef TS_TRACE_CHUNK_CACHE_H
#define TS_TRACE_CHUNK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

struct ts_cached_chunk {
	struct ts_batch *keys; /* sort keys and filtered columns */
	struct ts_batch *rest; /* the others, once read */
	size_t chunk;
	uint64_t rest_mask;
	uint32_t value_count; /* argument values of all rows */
	size_t bytes;         /* estimate of what the batches hold */
	bool rest_is_read;
};

#define TS_CHUNK_CACHE_SPARES 4

struct ts_chunk_cache {
	struct ts_reader *reader;
	struct ts_cached_chunk **chunks; /* in the order in which they were read */
	size_t chunk_count, chunk_capacity;
	struct ts_cached_chunk *spares[TS_CHUNK_CACHE_SPARES]; /* their memory serves again */
	size_t spare_count;
	size_t bytes, budget;
};

void ts_chunk_cache_init(struct ts_chunk_cache *cache, struct ts_reader *reader, size_t budget);
void ts_chunk_cache_release(struct ts_chunk_cache *cache);

/* The chunk with its keys decoded, valid until the next get. */
int ts_chunk_cache_get(struct ts_chunk_cache *cache, size_t chunk, uint64_t key_mask,
		       uint64_t rest_mask, struct ts_cached_chunk **ret_chunk,
		       struct ts_error *err);

/* Decodes the rest of the chunk, unless that has been done. */
int ts_chunk_cache_read_rest(struct ts_chunk_cache *cache, struct ts_cached_chunk *cached,
			     struct ts_error *err);

/* Forgets chunks whose last start is before `time`: a walk forwards does not come back to them. */
void ts_chunk_cache_drop_before(struct ts_chunk_cache *cache, int64_t time);

/* Copies all columns of a row of a chunk whose rest has been read; not read: "no value". */
void ts_cached_row(const struct ts_cached_chunk *cached, uint32_t row, int64_t *ret_columns);

/* The row's argument values and their number; NULL and 0 where they were not read. */
const int64_t *ts_cached_values(const struct ts_cached_chunk *cached, uint32_t row,
				uint32_t *ret_count);

#endif
