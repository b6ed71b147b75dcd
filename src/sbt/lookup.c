/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves ids: texts, shapes, and rows of entity and dictionary tables, loaded on first use.
 * Damage does not fail a lookup: lost texts read "(lost)", and the first error is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "model/shapes.h"
#include "sbt/reader_internal.h"

/* Rough size counted against the budget. */
#define MAP_ENTRY_BYTES 32
#define SHAPE_ROW_BYTES (sizeof(struct ts_shape) + sizeof(struct ts_field) + MAP_ENTRY_BYTES)

static const struct ts_shape no_shape;
static const struct ts_string empty_text = { .data = "", .length = 0 };
static const struct ts_string lost_text = { .data = "(lost)", .length = 6 };

void sbt_keep_error(struct ts_reader *reader, const struct ts_error *err)
{
	pthread_mutex_lock(&reader->lock);
	if (!reader->error.code)
		reader->error = *err;
	pthread_mutex_unlock(&reader->lock);
}

/* The same with the lock held. */
static void keep_error(struct ts_reader *reader, const struct ts_error *err)
{
	if (!reader->error.code)
		reader->error = *err;
}

int ts_reader_status(const struct ts_reader *reader, struct ts_error *err)
{
	if (reader->error.code && err)
		*err = reader->error;
	return reader->error.code;
}

int sbt_budget_take(struct ts_reader *reader, size_t chunk, uint64_t bytes, struct ts_error *err)
{
	if (bytes > reader->budget_bytes)
		return sbt_chunk_error(&reader->file, &reader->list.chunks[chunk], chunk,
				       "needs more memory than a file of this size may use", err);
	reader->budget_bytes -= bytes;
	return TS_OK;
}

/* ---- texts ---- */

int sbt_lookup_init(struct ts_reader *reader, struct ts_error *err)
{
	uint64_t next_id = 1;
	size_t count = 0;

	for (size_t i = 0; i < reader->list.count; i++)
		count += reader->chunks[i].table == TS_TABLE_STRING;
	reader->texts = ts_alloc_array(count, sizeof(*reader->texts));
	if (!reader->texts)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < reader->list.count; i++) {
		const struct ts_chunk *chunk = &reader->chunks[i];
		struct sbt_texts *texts;

		/* Id ranges increase; one that does not is damage, and the earlier texts count. */
		if (chunk->table != TS_TABLE_STRING || chunk->first_id < next_id ||
		    chunk->first_id > UINT32_MAX)
			continue;
		texts = &reader->texts[reader->text_chunks++];
		texts->first_id = chunk->first_id;
		texts->count = chunk->rows;
		texts->chunk = i;
		texts->data = NULL;
		texts->lost = false;
		atomic_init(&texts->offsets, NULL);
		next_id = chunk->first_id + chunk->rows;
	}
	return TS_OK;
}

static void drop_texts(struct sbt_texts *texts)
{
	free(texts->data);
	free(atomic_load_explicit(&texts->offsets, memory_order_relaxed));
	texts->data = NULL;
	texts->lost = false;
	atomic_store_explicit(&texts->offsets, NULL, memory_order_relaxed);
}

void ts_reader_trim(struct ts_reader *reader, size_t bytes)
{
	if (atomic_load_explicit(&reader->text_bytes, memory_order_relaxed) <= bytes)
		return;
	pthread_mutex_lock(&reader->lock);
	for (size_t i = 0; i < reader->text_chunks; i++)
		drop_texts(&reader->texts[i]);
	reader->budget_bytes +=
		atomic_exchange_explicit(&reader->text_bytes, 0, memory_order_relaxed);
	pthread_mutex_unlock(&reader->lock);
}

/* A lasting copy of the batch's texts. Lock held. */
static uint64_t *keep_texts(struct ts_reader *reader, struct sbt_texts *texts, struct ts_error *err)
{
	const struct ts_batch *batch = reader->lookup;
	size_t offsets_bytes = ((size_t)texts->count + 1) * sizeof(uint64_t);
	size_t data_bytes = batch->bytes ? (size_t)batch->byte_offsets[texts->count] : 0;
	uint64_t *offsets;
	char *data;

	if (!batch->bytes) {
		ts_error_set(err, TS_ENOMEM, "no memory");
		return NULL;
	}
	if (sbt_budget_take(reader, texts->chunk, offsets_bytes + data_bytes, err))
		return NULL;
	offsets = malloc(offsets_bytes);
	data = malloc(data_bytes + 1);
	if (!offsets || !data) {
		free(offsets);
		free(data);
		ts_error_set(err, TS_ENOMEM, "no memory");
		return NULL;
	}
	memcpy(offsets, batch->byte_offsets, offsets_bytes);
	memcpy(data, batch->bytes, data_bytes);
	texts->data = data;
	atomic_fetch_add_explicit(&reader->text_bytes, offsets_bytes + data_bytes,
				  memory_order_relaxed);
	return offsets;
}

static uint64_t *load_texts(struct ts_reader *reader, struct sbt_texts *texts)
{
	struct ts_error err;
	uint64_t *offsets;

	pthread_mutex_lock(&reader->lock);
	offsets = atomic_load_explicit(&texts->offsets, memory_order_acquire);
	if (!offsets && !texts->lost) {
		if (!ts_batch_read(reader->lookup, texts->chunk, TS_MASK_ALL, &err))
			offsets = keep_texts(reader, texts, &err);
		if (!offsets) {
			texts->lost = true;
			keep_error(reader, &err);
		}
		/* Release: whoever sees the offsets must see the data. */
		atomic_store_explicit(&texts->offsets, offsets, memory_order_release);
	}
	pthread_mutex_unlock(&reader->lock);
	return offsets;
}

static struct sbt_texts *find_texts(struct ts_reader *reader, uint64_t id)
{
	size_t low = 0, high = reader->text_chunks;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (reader->texts[middle].first_id <= id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || id - reader->texts[low - 1].first_id >= reader->texts[low - 1].count)
		return NULL;
	return &reader->texts[low - 1];
}

struct ts_string ts_reader_string(struct ts_reader *reader, int64_t string)
{
	struct sbt_texts *texts;
	uint64_t *offsets, row;

	if (string == 0)
		return empty_text;
	texts = find_texts(reader, (uint64_t)string);
	if (!texts)
		return lost_text;
	offsets = atomic_load_explicit(&texts->offsets, memory_order_acquire);
	if (!offsets)
		offsets = load_texts(reader, texts);
	if (!offsets)
		return lost_text;
	row = (uint64_t)string - texts->first_id;
	/* Each text is followed by a NUL that is not part of it. */
	return (struct ts_string){ .data = texts->data + offsets[row],
				   .length = (size_t)(offsets[row + 1] - offsets[row] - 1) };
}

uint32_t ts_reader_string_end(const struct ts_reader *reader)
{
	const struct sbt_texts *last;
	uint64_t end;

	if (!reader->text_chunks)
		return 1;
	last = &reader->texts[reader->text_chunks - 1];
	end = last->first_id + last->count;
	return end > UINT32_MAX ? UINT32_MAX : (uint32_t)end;
}

/* ---- shapes ---- */

static int add_shape(struct ts_reader *reader, int64_t id, const struct ts_field *fields,
		     uint32_t count)
{
	struct ts_shape *shape = ts_arena_alloc(&reader->shape_arena, sizeof(*shape));
	bool is_new;
	uint64_t *slot;

	if (!shape)
		return TS_ENOMEM;
	*shape = (struct ts_shape){ .field_count = count };
	shape->fields = ts_arena_copy(&reader->shape_arena, fields, count * sizeof(*fields));
	if (!shape->fields)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		shape->value_count += ts_arg_has_value(fields[i].type) ? 1 : 0;
	slot = ts_map_insert(&reader->shapes, (uint64_t)id, &is_new);
	if (!slot)
		return TS_ENOMEM;
	if (is_new)
		*slot = (uintptr_t)shape;
	return TS_OK;
}

/* Splits the rows of a shape chunk, one per field, into shapes. */
static int take_shapes(struct ts_reader *reader)
{
	const struct ts_batch *batch = reader->lookup;
	struct ts_field fields[TS_SHAPE_MAX_FIELDS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < batch->rows; i++) {
		struct ts_shape_row row, next = { 0 };

		ts_batch_row(batch, i, &row);
		if (i + 1 < batch->rows)
			ts_batch_row(batch, i + 1, &next);
		if (count == TS_SHAPE_MAX_FIELDS)
			return TS_EFORMAT;
		fields[count++] = (struct ts_field){ .key = (uint32_t)row.key,
						     .type = (uint8_t)row.type,
						     .beside = (uint8_t)row.place,
						     .column = (uint16_t)row.column };
		if (next.shape == row.shape)
			continue;
		if (add_shape(reader, row.shape, fields, count))
			return TS_ENOMEM;
		count = 0;
	}
	return TS_OK;
}

/* Lock held. */
static void load_shapes(struct ts_reader *reader)
{
	struct ts_error err;

	for (size_t i = 0; i < reader->list.count; i++) {
		int result;

		if (reader->chunks[i].table != TS_TABLE_SHAPE)
			continue;
		result = ts_batch_read(reader->lookup, i, TS_MASK_ALL, &err);
		if (!result)
			result = sbt_budget_take(reader, i, reader->lookup->rows * SHAPE_ROW_BYTES,
						 &err);
		if (result) {
			keep_error(reader, &err);
			continue;
		}
		result = take_shapes(reader);
		if (result) {
			if (result == TS_EFORMAT)
				sbt_chunk_error(&reader->file, &reader->list.chunks[i], i,
						"a shape has too many fields", &err);
			else
				ts_error_set(&err, TS_ENOMEM, "no memory");
			keep_error(reader, &err);
		}
	}
	reader->shapes_loaded = true;
}

const struct ts_shape *sbt_shape_find(struct ts_reader *reader, int64_t shape)
{
	uint64_t slot;
	bool found;

	pthread_mutex_lock(&reader->lock);
	if (!reader->shapes_loaded)
		load_shapes(reader);
	found = ts_map_get(&reader->shapes, (uint64_t)shape, &slot);
	pthread_mutex_unlock(&reader->lock);
	return found ? (const struct ts_shape *)(uintptr_t)slot : NULL;
}

const struct ts_shape *ts_reader_shape(struct ts_reader *reader, int64_t shape)
{
	const struct ts_shape *found = shape ? sbt_shape_find(reader, shape) : NULL;

	return found ? found : &no_shape;
}

/* ---- entities ---- */

static bool find_entity(const struct sbt_entities *entities, int64_t id, uint64_t *ret_index)
{
	uint64_t index = (uint64_t)id - (uint64_t)entities->first_id;

	if (entities->is_sparse)
		return ts_map_get(&entities->indices, (uint64_t)id, ret_index);
	*ret_index = index;
	return index < entities->row_count;
}

static int64_t id_of(const struct sbt_entities *entities, size_t index)
{
	return entities->is_sparse ? entities->ids[index] : entities->first_id + (int64_t)index;
}

static int store_id(struct sbt_entities *entities, size_t index, int64_t id)
{
	if (ts_grow_array((void **)&entities->ids, &entities->id_capacity, index + 1,
			  sizeof(*entities->ids)))
		return TS_ENOMEM;
	entities->ids[index] = id;
	return ts_map_put(&entities->indices, (uint64_t)id, index);
}

/* For a new row whose id does not follow that of the last one. */
static int make_sparse(struct sbt_entities *entities)
{
	for (size_t i = 0; i < entities->row_count; i++)
		if (store_id(entities, i, entities->first_id + (int64_t)i))
			return TS_ENOMEM;
	entities->is_sparse = true;
	return TS_OK;
}

static int add_entity(struct sbt_entities *entities, const struct ts_table_info *info,
		      const struct ts_batch *batch, uint32_t row, int64_t id)
{
	size_t words = info->column_count, count = entities->row_count;
	uint64_t index;

	if (!count)
		entities->first_id = id;
	if (!find_entity(entities, id, &index)) {
		if (!entities->is_sparse && index != count && make_sparse(entities))
			return TS_ENOMEM;
		if (ts_grow_array((void **)&entities->rows, &entities->row_capacity,
				  (count + 1) * words, sizeof(*entities->rows)) ||
		    (entities->is_sparse && store_id(entities, count, id)))
			return TS_ENOMEM;
		index = entities->row_count++;
	}
	ts_batch_row(batch, row, entities->rows + index * words);
	return TS_OK;
}

/* Lock held. Rows only move while loading, which happens once, so pointers into them stay valid. */
static void load_entities(struct ts_reader *reader, const struct ts_table_info *info,
			  struct sbt_entities *entities)
{
	/* Bytes are not kept. */
	uint64_t mask = info->id == TS_TABLE_BLOB ? ~TS_MASK_OF(blob, data) : TS_MASK_ALL;
	uint64_t row_bytes = (info->column_count + 1) * sizeof(int64_t) + MAP_ENTRY_BYTES;
	struct ts_batch *batch = reader->lookup;
	struct ts_error err;

	for (size_t i = 0; i < reader->list.count; i++) {
		int64_t first_id = (int64_t)reader->chunks[i].first_id;

		if (reader->chunks[i].table != info->id)
			continue;
		if (ts_batch_read(batch, i, mask, &err) ||
		    sbt_budget_take(reader, i, batch->rows * row_bytes, &err)) {
			keep_error(reader, &err);
			continue;
		}
		for (uint32_t row = 0; row < batch->rows; row++) {
			int64_t id = info->kind == TS_KIND_DICTIONARY
					     ? (int64_t)((uint64_t)first_id + row)
					     : batch->columns[0][row];

			if (id > 0 && add_entity(entities, info, batch, row, id)) {
				ts_error_set(&err, TS_ENOMEM, "no memory");
				keep_error(reader, &err);
			}
		}
	}
	entities->loaded = true;
}

static struct sbt_entities *entities_of(struct ts_reader *reader, const struct ts_table_info *info)
{
	struct sbt_entities *entities;

	if (!info || (info->kind != TS_KIND_ENTITY && info->kind != TS_KIND_DICTIONARY) ||
	    info->id == TS_TABLE_STRING)
		return NULL;
	entities = &reader->entities[info->id];
	pthread_mutex_lock(&reader->lock);
	if (!entities->loaded)
		load_entities(reader, info, entities);
	pthread_mutex_unlock(&reader->lock);
	return entities;
}

const void *ts_reader_entity(struct ts_reader *reader, enum ts_table_id table, int64_t id)
{
	const struct ts_table_info *info = ts_table_info(table);
	const struct sbt_entities *entities = entities_of(reader, info);
	uint64_t index;

	if (!entities || !find_entity(entities, id, &index))
		return NULL;
	return entities->rows + index * info->column_count;
}

const void *ts_reader_entity_next(struct ts_reader *reader, enum ts_table_id table, size_t *cursor,
				  int64_t *ret_id)
{
	const struct ts_table_info *info = ts_table_info(table);
	const struct sbt_entities *entities = entities_of(reader, info);

	if (!entities || *cursor >= entities->row_count)
		return NULL;
	*ret_id = id_of(entities, *cursor);
	return entities->rows + (*cursor)++ * info->column_count;
}

void sbt_lookup_release(struct ts_reader *reader)
{
	for (size_t i = 0; i < reader->text_chunks; i++)
		drop_texts(&reader->texts[i]);
	free(reader->texts);
	ts_map_release(&reader->shapes);
	ts_arena_release(&reader->shape_arena);
	sbt_symbols_release(&reader->symbols);
	for (int i = 0; i < TS_TABLE_COUNT; i++) {
		free(reader->entities[i].rows);
		free(reader->entities[i].ids);
		ts_map_release(&reader->entities[i].indices);
	}
}
