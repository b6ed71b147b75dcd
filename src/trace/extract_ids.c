/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of one trace with the ids of another: texts, shapes, frames, stacks, mappings and blobs are
 * made anew there, each once. By the schema, so that a new table or column needs nothing here.
 */
#include "trace/extract_internal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trace/object_details.h"

/* A row of `blob` is no larger (docs/format.md, section 7). */
#define PIECE_BYTES ((uint64_t)64 << 20)

int extract_no_memory(struct extract *extract)
{
	extract->failure = ts_error_set(extract->err, TS_ENOMEM, "no memory");
	return extract->failure;
}

void extract_remember(struct extract *extract, struct ts_map *map, int64_t key, uint64_t value)
{
	if (ts_map_put(map, (uint64_t)key, value))
		extract_no_memory(extract);
}

/* ---- ids that change ---- */

static int64_t new_string(struct extract *extract, int64_t old)
{
	struct ts_string text;
	uint64_t id;

	if (!old)
		return 0;
	if (ts_map_get(&extract->strings, (uint64_t)old, &id))
		return (int64_t)id;
	text = ts_reader_string(extract->reader, old);
	id = ts_writer_string(extract->writer, text.data, text.length);
	extract_remember(extract, &extract->strings, old, id);
	return (int64_t)id;
}

static int64_t new_shape(struct extract *extract, int64_t old)
{
	const struct ts_shape *shape = ts_reader_shape(extract->reader, old);
	TS_AUTO_FREE struct ts_field *fields = NULL;
	uint64_t id;

	if (!old || shape->field_count == 0)
		return 0;
	if (ts_map_get(&extract->shapes, (uint64_t)old, &id))
		return (int64_t)id;
	fields = ts_alloc_array(shape->field_count, sizeof(*fields));
	if (!fields) {
		extract_no_memory(extract);
		return 0;
	}
	for (uint32_t i = 0; i < shape->field_count; i++) {
		fields[i] = shape->fields[i];
		fields[i].key = (uint32_t)new_string(extract, fields[i].key);
	}
	id = ts_writer_shape(extract->writer, fields, shape->field_count);
	extract_remember(extract, &extract->shapes, old, id);
	return (int64_t)id;
}

static int64_t new_mapping(struct extract *extract, int64_t old)
{
	const struct ts_mapping_row *found =
		ts_reader_entity(extract->reader, TS_TABLE_MAPPING, old);
	struct ts_mapping_row row;
	uint64_t id;

	if (!old || !found)
		return 0;
	if (ts_map_get(&extract->mappings, (uint64_t)old, &id))
		return (int64_t)id;
	row = *found;
	extract_row(extract, ts_table_info(TS_TABLE_MAPPING), (int64_t *)&row);
	id = (uint64_t)ts_writer_new_id(extract->writer, TS_TABLE_MAPPING);
	ts_writer_add(extract->writer, TS_TABLE_MAPPING, &row, NULL);
	extract_remember(extract, &extract->mappings, old, id);
	return (int64_t)id;
}

static int64_t new_frame(struct extract *extract, int64_t old)
{
	const struct ts_frame_row *found = ts_reader_entity(extract->reader, TS_TABLE_FRAME, old);
	struct ts_frame_row row;
	uint64_t id;

	if (!old || !found)
		return 0;
	if (ts_map_get(&extract->frames, (uint64_t)old, &id))
		return (int64_t)id;
	row = *found;
	extract_row(extract, ts_table_info(TS_TABLE_FRAME), (int64_t *)&row);
	id = ts_writer_frame(extract->writer, &row);
	extract_remember(extract, &extract->frames, old, id);
	return (int64_t)id;
}

/* Walks outwards to a known stack, then back, without recursion: stacks may be deep. */
static int64_t new_stack(struct extract *extract, int64_t old)
{
	TS_AUTO_FREE int64_t *path = NULL;
	size_t depth = 0, capacity = 0;
	uint64_t id = 0;

	while (old && !ts_map_get(&extract->stacks, (uint64_t)old, &id)) {
		const struct ts_stack_row *row =
			ts_reader_entity(extract->reader, TS_TABLE_STACK, old);

		if (!row || row->parent >= old)
			break;
		if (ts_grow_array((void **)&path, &capacity, depth + 1, sizeof(*path))) {
			extract_no_memory(extract);
			return 0;
		}
		path[depth++] = old;
		old = row->parent;
	}
	while (depth) {
		const struct ts_stack_row *row =
			ts_reader_entity(extract->reader, TS_TABLE_STACK, path[--depth]);

		id = ts_writer_stack(extract->writer, (uint32_t)id,
				     (uint32_t)new_frame(extract, row->frame));
		extract_remember(extract, &extract->stacks, path[depth], id);
	}
	return (int64_t)id;
}

/* The bytes of one row of a chain; `blob` is its last row. */
static int64_t copy_piece(struct extract *extract, int64_t blob, const struct ts_blob_row *row,
			  uint64_t begin, int64_t previous)
{
	uint64_t bytes = (uint64_t)row->bytes - begin;

	if (row->bytes < 0 || (uint64_t)row->bytes < begin || bytes > PIECE_BYTES) {
		extract->failure = ts_error_set(extract->err, TS_EFORMAT, "blob %lld: invalid size",
						(long long)blob);
		return 0;
	}
	if (ts_grow_array((void **)&extract->piece, &extract->piece_capacity, bytes + 1, 1)) {
		extract_no_memory(extract);
		return 0;
	}
	extract->failure = ts_reader_blob_read(extract->reader, blob, begin, extract->piece, bytes,
					       extract->err);
	if (extract->failure)
		return 0;
	return ts_writer_blob_piece(extract->writer, (uint32_t)previous, (uint64_t)row->hash,
				    (uint64_t)row->bytes, extract->piece, bytes);
}

/* Walks back from the last row to a known one, then forward. */
static int64_t new_blob(struct extract *extract, int64_t blob)
{
	TS_AUTO_FREE int64_t *path = NULL;
	size_t depth = 0, capacity = 0;
	uint64_t id = 0, begin = 0;
	const struct ts_blob_row *row;
	int64_t old = blob;

	while (old && !ts_map_get(&extract->blobs, (uint64_t)old, &id)) {
		row = ts_reader_entity(extract->reader, TS_TABLE_BLOB, old);
		if (!row || row->previous >= old || row->previous < 0)
			return 0;
		if (ts_grow_array((void **)&path, &capacity, depth + 1, sizeof(*path))) {
			extract_no_memory(extract);
			return 0;
		}
		path[depth++] = old;
		old = row->previous;
	}
	row = old ? ts_reader_entity(extract->reader, TS_TABLE_BLOB, old) : NULL;
	begin = row ? (uint64_t)row->bytes : 0;
	while (depth && !extract->failure) {
		row = ts_reader_entity(extract->reader, TS_TABLE_BLOB, path[--depth]);
		id = (uint64_t)copy_piece(extract, blob, row, begin, (int64_t)id);
		begin = (uint64_t)row->bytes;
		extract_remember(extract, &extract->blobs, path[depth], id);
	}
	return (int64_t)id;
}

static uint64_t map_blob(void *context, uint64_t old)
{
	return old <= INT64_MAX ? (uint64_t)new_blob(context, (int64_t)old) : 0;
}

/* Properties of an object, which may name blobs. */
static int64_t new_details(struct extract *extract, int64_t old)
{
	struct ts_string text = ts_reader_string(extract->reader, old);
	TS_SCOPED(ts_text) out = { 0 };

	if (!old)
		return 0;
	ts_object_details_map_blobs(text.data, text.length, map_blob, extract, &out);
	if (ts_text_status(&out)) {
		extract_no_memory(extract);
		return 0;
	}
	return ts_writer_string(extract->writer, out.data, out.length);
}

static int64_t new_reference(struct extract *extract, const struct ts_column_info *column,
			     int64_t old)
{
	switch (ts_table_by_name(column->refers)) {
	case TS_TABLE_STACK:
		return new_stack(extract, old);
	case TS_TABLE_FRAME:
		return new_frame(extract, old);
	case TS_TABLE_MAPPING:
		return new_mapping(extract, old);
	case TS_TABLE_PROCESS:
		return extract_has(&extract->processes, old) ? old : 0;
	case TS_TABLE_BLOB:
		return extract->filter->commands || extract->is_code ? new_blob(extract, old) : 0;
	case TS_TABLE_OBJECT:
		return extract_has(&extract->objects, old) ? old : 0;
	default:
		return old;
	}
}

void extract_row(struct extract *extract, const struct ts_table_info *table, int64_t *row)
{
	for (int i = 0; i < table->column_count; i++) {
		const struct ts_column_info *column = &table->columns[i];

		if (table->id == TS_TABLE_OBJECT && column->type == TS_COLUMN_JSON)
			row[i] = new_details(extract, row[i]);
		else if (column->type == TS_COLUMN_STRING || column->type == TS_COLUMN_JSON)
			row[i] = new_string(extract, row[i]);
		else if (column->type == TS_COLUMN_REF && row[i])
			row[i] = new_reference(extract, column, row[i]);
		else if (column->type == TS_COLUMN_SHAPE)
			row[i] = new_shape(extract, row[i]);
	}
}

const int64_t *extract_values(struct extract *extract, const struct ts_batch *batch, uint32_t row,
			      int64_t old_shape)
{
	const struct ts_shape *shape = ts_reader_shape(extract->reader, old_shape);
	const int64_t *values;
	uint32_t count = 0;

	if (!old_shape || shape->value_count == 0)
		return NULL;
	if (ts_grow_array((void **)&extract->values, &extract->value_capacity, shape->value_count,
			  sizeof(*values))) {
		extract_no_memory(extract);
		return NULL;
	}
	values = batch->arg_values + batch->arg_offsets[row];
	for (uint32_t i = 0; i < shape->field_count; i++) {
		unsigned int type = shape->fields[i].type;

		if (!ts_arg_has_value(type))
			continue;
		extract->values[count] = type == TS_ARG_STRING || type == TS_ARG_JSON
						 ? new_string(extract, values[count])
						 : values[count];
		count++;
	}
	return extract->values;
}
