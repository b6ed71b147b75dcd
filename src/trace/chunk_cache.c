/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches chunks that the next window needs again. Evicts the newest chunk, not the oldest: windows
 * ask for the same chunks in the same order, for which LRU would always evict the one needed next.
 */
#include "trace/chunk_cache.h"
#include "base/memory.h"
#include "trace/trace_totals.h"

void ts_chunk_cache_init(struct ts_chunk_cache *cache, struct ts_reader *reader, size_t budget)
{
	*cache = (struct ts_chunk_cache){ .reader = reader, .budget = budget };
}

static void cached_chunk_free(struct ts_cached_chunk *cached)
{
	if (!cached)
		return;
	ts_batch_free(cached->keys);
	ts_batch_free(cached->rest);
	free(cached);
}

void ts_chunk_cache_release(struct ts_chunk_cache *cache)
{
	for (size_t i = 0; i < cache->chunk_count; i++)
		cached_chunk_free(cache->chunks[i]);
	for (size_t i = 0; i < cache->spare_count; i++)
		cached_chunk_free(cache->spares[i]);
	free(cache->chunks);
	*cache = (struct ts_chunk_cache){ 0 };
}

/* What the columns of a chunk take when decoded, about. */
static size_t decoded_bytes(const struct ts_chunk *chunk, uint64_t mask)
{
	const struct ts_table_info *table = ts_table_info(chunk->table);
	uint64_t known = mask & ((UINT64_C(1) << table->column_count) - 1);
	size_t bytes = (size_t)__builtin_popcountll(known) * chunk->rows * sizeof(int64_t);

	if (table->shape >= 0 && known >> table->shape & 1)
		bytes += (size_t)chunk->values * sizeof(int64_t) + chunk->rows * sizeof(uint32_t);
	return bytes;
}

/* Takes a place out of the list, which keeps its order. */
static void forget(struct ts_chunk_cache *cache, size_t index)
{
	struct ts_cached_chunk *cached = cache->chunks[index];

	cache->bytes -= cached->bytes;
	cache->chunk_count--;
	memmove(&cache->chunks[index], &cache->chunks[index + 1],
		(cache->chunk_count - index) * sizeof(struct ts_cached_chunk *));
	if (cache->spare_count < TS_CHUNK_CACHE_SPARES)
		cache->spares[cache->spare_count++] = cached;
	else
		cached_chunk_free(cached);
}

void ts_chunk_cache_drop_before(struct ts_chunk_cache *cache, int64_t time)
{
	for (size_t i = cache->chunk_count; i-- > 0;) {
		size_t chunk = cache->chunks[i]->chunk;

		if (ts_reader_chunk(cache->reader, chunk)->max_start < time)
			forget(cache, i);
	}
}

/* NULL: no memory. */
static struct ts_cached_chunk *new_cached_chunk(struct ts_chunk_cache *cache)
{
	struct ts_cached_chunk *cached;

	if (cache->spare_count > 0)
		return cache->spares[--cache->spare_count];
	cached = calloc(1, sizeof(*cached));
	if (cached && (ts_batch_new(&cached->keys, cache->reader, NULL) ||
		       ts_batch_new(&cached->rest, cache->reader, NULL))) {
		cached_chunk_free(cached);
		return NULL;
	}
	return cached;
}

static int read_keys(struct ts_chunk_cache *cache, size_t chunk, uint64_t key_mask,
		     struct ts_cached_chunk *cached, struct ts_error *err)
{
	int rc = ts_batch_read(cached->keys, chunk, key_mask, err);

	if (!rc && ts_grow_array((void **)&cache->chunks, &cache->chunk_capacity,
				 cache->chunk_count + 1, sizeof(struct ts_cached_chunk *)))
		rc = ts_error_set(err, TS_ENOMEM, "no memory to read chunks");
	return rc;
}

int ts_chunk_cache_get(struct ts_chunk_cache *cache, size_t chunk, uint64_t key_mask,
		       uint64_t rest_mask, struct ts_cached_chunk **ret_chunk, struct ts_error *err)
{
	struct ts_cached_chunk *cached;
	int rc;

	for (size_t i = 0; i < cache->chunk_count; i++) {
		if (cache->chunks[i]->chunk == chunk) {
			*ret_chunk = cache->chunks[i];
			return TS_OK;
		}
	}
	if (cache->bytes >= cache->budget && cache->chunk_count > 0)
		forget(cache, cache->chunk_count - 1);
	cached = new_cached_chunk(cache);
	if (!cached)
		return ts_error_set(err, TS_ENOMEM, "no memory to read chunks");
	rc = read_keys(cache, chunk, key_mask, cached, err);
	if (rc) {
		cached_chunk_free(cached);
		return rc;
	}
	cached->chunk = chunk;
	cached->rest_mask = rest_mask & ~key_mask;
	cached->rest_is_read = false;
	cached->value_count = ts_reader_chunk(cache->reader, chunk)->values;
	cached->bytes = decoded_bytes(ts_reader_chunk(cache->reader, chunk), key_mask);
	cache->bytes += cached->bytes;
	cache->chunks[cache->chunk_count++] = cached;
	*ret_chunk = cached;
	return TS_OK;
}

int ts_chunk_cache_read_rest(struct ts_chunk_cache *cache, struct ts_cached_chunk *cached,
			     struct ts_error *err)
{
	size_t bytes;
	int rc;

	if (cached->rest_is_read || !cached->rest_mask)
		return TS_OK;
	rc = ts_batch_read(cached->rest, cached->chunk, cached->rest_mask, err);
	if (rc)
		return rc;
	bytes = decoded_bytes(ts_reader_chunk(cache->reader, cached->chunk), cached->rest_mask);
	cached->bytes += bytes;
	cache->bytes += bytes;
	cached->rest_is_read = true;
	/* Only this place is in the caller's hands. */
	for (size_t i = cache->chunk_count; i-- > 0 && cache->bytes > cache->budget;)
		if (cache->chunks[i] != cached)
			forget(cache, i);
	return TS_OK;
}

void ts_cached_row(const struct ts_cached_chunk *cached, uint32_t row, int64_t *ret_columns)
{
	const struct ts_table_info *table = cached->keys->table;

	for (unsigned int i = 0; i < table->column_count; i++) {
		if (cached->keys->columns[i])
			ret_columns[i] = cached->keys->columns[i][row];
		else if (cached->rest_is_read && cached->rest->columns[i])
			ret_columns[i] = cached->rest->columns[i][row];
		else
			ret_columns[i] = table->columns[i].none;
	}
}

const int64_t *ts_cached_values(const struct ts_cached_chunk *cached, uint32_t row,
				uint32_t *ret_count)
{
	const struct ts_batch *batch = cached->keys->arg_offsets ? cached->keys : cached->rest;
	uint32_t end;

	*ret_count = 0;
	if ((batch == cached->rest && !cached->rest_is_read) || !batch->arg_offsets)
		return NULL;
	end = row + 1 < batch->rows ? batch->arg_offsets[row + 1] : cached->value_count;
	*ret_count = end - batch->arg_offsets[row];
	return batch->arg_values + batch->arg_offsets[row];
}
