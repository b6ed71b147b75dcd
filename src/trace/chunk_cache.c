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

static void place_free(struct ts_cached_chunk *place)
{
	if (!place)
		return;
	ts_batch_free(place->keys);
	ts_batch_free(place->rest);
	free(place);
}

void ts_chunk_cache_release(struct ts_chunk_cache *cache)
{
	for (size_t i = 0; i < cache->place_count; i++)
		place_free(cache->places[i]);
	for (size_t i = 0; i < cache->spare_count; i++)
		place_free(cache->spares[i]);
	free(cache->places);
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
	struct ts_cached_chunk *place = cache->places[index];

	cache->bytes -= place->bytes;
	cache->place_count--;
	memmove(&cache->places[index], &cache->places[index + 1],
		(cache->place_count - index) * sizeof(struct ts_cached_chunk *));
	if (cache->spare_count < TS_CHUNK_CACHE_SPARES)
		cache->spares[cache->spare_count++] = place;
	else
		place_free(place);
}

void ts_chunk_cache_drop_before(struct ts_chunk_cache *cache, int64_t time)
{
	for (size_t i = cache->place_count; i-- > 0;) {
		size_t chunk = cache->places[i]->chunk;

		if (ts_reader_chunk(cache->reader, chunk)->max_start < time)
			forget(cache, i);
	}
}

/* NULL: no memory. */
static struct ts_cached_chunk *new_place(struct ts_chunk_cache *cache)
{
	struct ts_cached_chunk *place;

	if (cache->spare_count > 0)
		return cache->spares[--cache->spare_count];
	place = calloc(1, sizeof(*place));
	if (place && (ts_batch_new(&place->keys, cache->reader, NULL) ||
		      ts_batch_new(&place->rest, cache->reader, NULL))) {
		place_free(place);
		return NULL;
	}
	return place;
}

static int read_keys(struct ts_chunk_cache *cache, size_t chunk, uint64_t key_mask,
		     struct ts_cached_chunk *place, struct ts_error *err)
{
	int rc = ts_batch_read(place->keys, chunk, key_mask, err);

	if (!rc && ts_grow_array((void **)&cache->places, &cache->place_capacity,
				 cache->place_count + 1, sizeof(struct ts_cached_chunk *)))
		rc = ts_error_set(err, TS_ENOMEM, "no memory to read chunks");
	return rc;
}

int ts_chunk_cache_get(struct ts_chunk_cache *cache, size_t chunk, uint64_t key_mask,
		       uint64_t rest_mask, struct ts_cached_chunk **ret_place, struct ts_error *err)
{
	struct ts_cached_chunk *place;
	int rc;

	for (size_t i = 0; i < cache->place_count; i++) {
		if (cache->places[i]->chunk == chunk) {
			*ret_place = cache->places[i];
			return TS_OK;
		}
	}
	if (cache->bytes >= cache->budget && cache->place_count > 0)
		forget(cache, cache->place_count - 1);
	place = new_place(cache);
	if (!place)
		return ts_error_set(err, TS_ENOMEM, "no memory to read chunks");
	rc = read_keys(cache, chunk, key_mask, place, err);
	if (rc) {
		place_free(place);
		return rc;
	}
	place->chunk = chunk;
	place->rest_mask = rest_mask & ~key_mask;
	place->rest_is_read = false;
	place->value_count = ts_reader_chunk(cache->reader, chunk)->values;
	place->bytes = decoded_bytes(ts_reader_chunk(cache->reader, chunk), key_mask);
	cache->bytes += place->bytes;
	cache->places[cache->place_count++] = place;
	*ret_place = place;
	return TS_OK;
}

int ts_chunk_cache_read_rest(struct ts_chunk_cache *cache, struct ts_cached_chunk *place,
			     struct ts_error *err)
{
	size_t bytes;
	int rc;

	if (place->rest_is_read || !place->rest_mask)
		return TS_OK;
	rc = ts_batch_read(place->rest, place->chunk, place->rest_mask, err);
	if (rc)
		return rc;
	bytes = decoded_bytes(ts_reader_chunk(cache->reader, place->chunk), place->rest_mask);
	place->bytes += bytes;
	cache->bytes += bytes;
	place->rest_is_read = true;
	/* Only this place is in the caller's hands. */
	for (size_t i = cache->place_count; i-- > 0 && cache->bytes > cache->budget;)
		if (cache->places[i] != place)
			forget(cache, i);
	return TS_OK;
}

void ts_cached_row(const struct ts_cached_chunk *place, uint32_t row, int64_t *ret_columns)
{
	const struct ts_table_info *table = place->keys->table;

	for (unsigned int i = 0; i < table->column_count; i++) {
		if (place->keys->columns[i])
			ret_columns[i] = place->keys->columns[i][row];
		else if (place->rest_is_read && place->rest->columns[i])
			ret_columns[i] = place->rest->columns[i][row];
		else
			ret_columns[i] = table->columns[i].none;
	}
}

const int64_t *ts_cached_values(const struct ts_cached_chunk *place, uint32_t row,
				uint32_t *ret_count)
{
	const struct ts_batch *batch = place->keys->arg_offsets ? place->keys : place->rest;
	uint32_t end;

	*ret_count = 0;
	if ((batch == place->rest && !place->rest_is_read) || !batch->arg_offsets)
		return NULL;
	end = row + 1 < batch->rows ? batch->arg_offsets[row + 1] : place->value_count;
	*ret_count = end - batch->arg_offsets[row];
	return batch->arg_values + batch->arg_offsets[row];
}
