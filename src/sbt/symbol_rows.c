/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol names added to frames after recording, loaded on first use. */
#include <stdlib.h>

#include "sbt/reader_internal.h"

/* Rough size counted against the budget. */
#define ROW_BYTES (sizeof(struct ts_symbol_row) + 32)
/* Nesting limit of inlined functions: as many as are ever written. */
#define MAX_DEPTH 64

static int add_row(struct sbt_symbols *symbols, const struct ts_symbol_row *row)
{
	const struct ts_symbol_row *last = symbols->count ? &symbols->rows[symbols->count - 1]
							  : NULL;

	/* A row that neither begins nor continues a frame has lost its frame. */
	if (row->depth != 0 && (!last || last->frame != row->frame ||
				last->depth + 1 != row->depth || row->depth >= MAX_DEPTH))
		return TS_OK;
	if (ts_grow_array((void **)&symbols->rows, &symbols->capacity, symbols->count + 1,
			  sizeof(*symbols->rows)))
		return TS_ENOMEM;
	if (row->depth == 0 && ts_map_put(&symbols->indices, (uint64_t)row->frame, symbols->count))
		return TS_ENOMEM;
	symbols->rows[symbols->count++] = *row;
	return TS_OK;
}

/* Lock held. */
static int load_chunk(struct ts_reader *reader, size_t chunk, struct ts_error *err)
{
	struct ts_batch *batch = reader->lookup;
	int rc = ts_batch_read(batch, chunk, TS_MASK_ALL, err);

	if (!rc)
		rc = sbt_budget_take(reader, chunk, batch->rows * ROW_BYTES, err);
	for (uint32_t i = 0; !rc && i < batch->rows; i++) {
		struct ts_symbol_row row;

		ts_batch_row(batch, i, &row);
		rc = add_row(&reader->symbols, &row);
		if (rc)
			ts_error_set(err, rc, "no memory");
	}
	return rc;
}

/* Lock held. Rows only move while loading, which happens once, so pointers into them stay valid. */
static void load(struct ts_reader *reader)
{
	struct ts_error err;

	for (size_t i = 0; i < reader->list.count; i++) {
		if (reader->chunks[i].table == TS_TABLE_SYMBOL && load_chunk(reader, i, &err) &&
		    !reader->error.code)
			reader->error = err;
	}
	reader->symbols.loaded = true;
}

const struct ts_symbol_row *ts_reader_symbols(struct ts_reader *reader, int64_t frame,
					      uint32_t *ret_count)
{
	const struct sbt_symbols *symbols = &reader->symbols;
	const struct ts_symbol_row *first;
	uint32_t count = 1;
	uint64_t index;

	*ret_count = 0;
	pthread_mutex_lock(&reader->lock);
	if (!symbols->loaded)
		load(reader);
	pthread_mutex_unlock(&reader->lock);
	if (!ts_map_get(&symbols->indices, (uint64_t)frame, &index))
		return NULL;
	first = &symbols->rows[index];
	while (index + count < symbols->count && first[count].depth == count)
		count++;
	*ret_count = count;
	return first;
}

void sbt_symbols_release(struct sbt_symbols *symbols)
{
	free(symbols->rows);
	ts_map_release(&symbols->indices);
}
