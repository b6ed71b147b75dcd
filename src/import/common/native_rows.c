/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of another trace, converted to the ids and clocks of this one. */
#include "import/common/native_rows.h"

#include <stdlib.h>

#include "import/import.h"

/* Ids may leave gaps up to this size; larger gaps are closed. */
#define MAX_GAP 65536

void ts_native_rows_init(struct ts_native_rows *native, struct ts_writer *writer)
{
	*native = (struct ts_native_rows){ .writer = writer };
	/* Resets the clock set by earlier rows. */
	ts_writer_set_clock(writer, 0);
}

void ts_native_rows_release(struct ts_native_rows *native)
{
	for (size_t i = 0; i < TS_TABLE_COUNT; i++) {
		ts_map_release(&native->ids[i]);
		ts_map_release(&native->sources[i]);
	}
	ts_map_release(&native->clock_of);
	ts_map_release(&native->clock_index);
	free(native->clocks);
	free(native->blob_ends);
}

/* ---- ids ---- */

int64_t ts_native_rows_id(struct ts_native_rows *native, enum ts_table_id table, int64_t id)
{
	uint64_t known;
	int64_t created;

	if (id <= 0)
		return 0;
	if (ts_map_get(&native->ids[table], (uint64_t)id, &known))
		return (int64_t)known;
	/* Dictionary rows are numbered when they are added. */
	if (ts_table_info(table)->kind != TS_KIND_ENTITY)
		return 0;
	created = native->last_ids[table];
	if (!created) {
		created = ts_writer_new_id(native->writer, table);
		native->offsets[table] = created - 1;
	}
	if (id - (created - native->offsets[table]) > MAX_GAP)
		native->scattered[table] = true;
	/* Same id as in the file, plus what the trace had before: keeps the gaps of the file. */
	if (native->scattered[table])
		created = ts_writer_new_id(native->writer, table);
	while (created && !native->scattered[table] && created - native->offsets[table] < id)
		created = ts_writer_new_id(native->writer, table);
	native->last_ids[table] = created;
	if (!native->scattered[table])
		created = id + native->offsets[table];
	return ts_map_put(&native->ids[table], (uint64_t)id, (uint64_t)created) ? 0 : created;
}

bool ts_native_rows_is_id(const struct ts_table_info *info, int column, enum ts_table_id *ret_table)
{
	const char *name = info->columns[column].name;

	if (info->columns[column].type != TS_COLUMN_INT)
		return false;
	if (info->kind == TS_KIND_ENTITY && strcmp(name, "id") == 0) {
		*ret_table = (enum ts_table_id)info->id;
		return true;
	}
	*ret_table = TS_TABLE_SOURCE;
	return (info->id == TS_TABLE_SOURCE || info->id == TS_TABLE_CLOCK_SYNC) &&
	       strcmp(name, "clock") == 0;
}

int ts_native_rows_set_id(struct ts_native_rows *native, enum ts_table_id table, int64_t file_id,
			  int64_t id)
{
	return ts_map_put(&native->ids[table], (uint64_t)file_id, (uint64_t)id);
}

/* ---- clocks ---- */

/*
 * Offset from the sync points of the clock's highest generation; several different points cannot be
 * converted.
 */
static int note_sync(struct ts_native_rows *native, const struct ts_clock_sync_row *sync)
{
	struct ts_native_rows_clock *clock;
	bool is_new;
	uint64_t *index = ts_map_insert(&native->clock_index, (uint64_t)sync->clock, &is_new);

	if (!index || ts_grow_array((void **)&native->clocks, &native->clock_capacity,
				    native->clock_count + 1, sizeof(*native->clocks)))
		return TS_ENOMEM;
	if (is_new) {
		*index = native->clock_count++;
		native->clocks[*index] =
			(struct ts_native_rows_clock){ .generation = sync->generation };
	}
	clock = &native->clocks[*index];
	if (sync->generation < clock->generation)
		return TS_OK;
	clock->points = sync->generation == clock->generation ? clock->points + 1 : 1;
	clock->generation = sync->generation;
	if (__builtin_sub_overflow(sync->reference, sync->time, &clock->offset))
		clock->points++;
	return TS_OK;
}

uint32_t ts_native_rows_clock(const struct ts_native_rows *native, int64_t source,
			      int64_t *ret_offset)
{
	uint64_t clock, index;

	*ret_offset = 0;
	if (!source || !ts_map_get(&native->clock_of, (uint64_t)source, &clock))
		return 0;
	if (!ts_map_get(&native->clock_index, clock, &index))
		return (uint32_t)clock;
	if (native->clocks[index].points > 1)
		return 0;
	*ret_offset = native->clocks[index].offset;
	return (uint32_t)clock;
}

/* The table that a column refers to; 0: none. Called for every column of every row. */
static enum ts_table_id refers_to(const struct ts_column_info *column)
{
	switch (column->refers[0]) {
	case 's':
		return strcmp(column->refers, "source") == 0   ? TS_TABLE_SOURCE
		       : strcmp(column->refers, "stream") == 0 ? TS_TABLE_STREAM
							       : TS_TABLE_INDEX;
	case 'p':
		return strcmp(column->refers, "process") == 0 ? TS_TABLE_PROCESS : TS_TABLE_INDEX;
	case 't':
		return strcmp(column->refers, "thread") == 0 ? TS_TABLE_THREAD : TS_TABLE_INDEX;
	case 'd':
		return strcmp(column->refers, "device") == 0 ? TS_TABLE_DEVICE : TS_TABLE_INDEX;
	default:
		return TS_TABLE_INDEX;
	}
}

int64_t ts_native_rows_source_of(const struct ts_native_rows *native,
				 const struct ts_table_info *info, const int64_t *row)
{
	uint64_t source;

	for (int i = 0; i < info->column_count; i++) {
		enum ts_table_id table;

		if (info->columns[i].type != TS_COLUMN_REF || !row[i])
			continue;
		table = refers_to(&info->columns[i]);
		if (table == TS_TABLE_SOURCE)
			return row[i];
		if (table != TS_TABLE_INDEX &&
		    ts_map_get(&native->sources[table], (uint64_t)row[i], &source))
			return (int64_t)source;
	}
	return info->id == TS_TABLE_SOURCE ? row[0] : 0;
}

/* ---- rows ---- */

int64_t ts_native_rows_to_clock(int64_t time, int64_t offset)
{
	int64_t result;

	if (time == TS_ABSENT)
		return time;
	if (__builtin_sub_overflow(time, offset, &result) || result == TS_ABSENT)
		return offset > 0 ? TS_ABSENT + 1 : INT64_MAX - 1;
	return result;
}

uint32_t ts_native_rows_set_clock(const struct ts_native_rows *native,
				  const struct ts_table_info *info, int64_t source, int64_t *row,
				  uint32_t clock)
{
	int64_t offset;
	uint32_t its_clock = ts_native_rows_clock(native, source, &offset);

	for (int i = 0; i < info->column_count; i++) {
		if (info->columns[i].type != TS_COLUMN_TIME || row[i] == TS_ABSENT)
			continue;
		row[i] = ts_native_rows_to_clock(row[i], offset);
		clock = its_clock;
	}
	return clock;
}

int ts_native_rows_note(struct ts_native_rows *native, const struct ts_table_info *info,
			int64_t source, const int64_t *row)
{
	switch (info->id) {
	case TS_TABLE_CLOCK_SYNC:
		return note_sync(native, (const struct ts_clock_sync_row *)row);
	case TS_TABLE_SOURCE:
		return ts_map_put(&native->clock_of, (uint64_t)row[0],
				  (uint64_t)((const struct ts_source_row *)row)->clock);
	case TS_TABLE_PROCESS:
	case TS_TABLE_THREAD:
	case TS_TABLE_DEVICE:
	case TS_TABLE_STREAM:
		return ts_map_put(&native->sources[info->id], (uint64_t)row[0], (uint64_t)source);
	default:
		return TS_OK;
	}
}

static int add_dictionary(struct ts_native_rows *native, const struct ts_table_info *info,
			  int64_t file_id, const int64_t *row, bool *ret_good)
{
	uint64_t id = 0;

	*ret_good = false;
	if (file_id <= 0)
		return TS_OK;
	switch (info->id) {
	case TS_TABLE_FRAME:
		id = ts_writer_frame(native->writer, (const struct ts_frame_row *)row);
		break;
	case TS_TABLE_STACK:
		if (!((const struct ts_stack_row *)row)->frame)
			return TS_OK;
		id = ts_writer_stack(native->writer,
				     (uint32_t)((const struct ts_stack_row *)row)->parent,
				     (uint32_t)((const struct ts_stack_row *)row)->frame);
		break;
	case TS_TABLE_MAPPING:
		ts_writer_add(native->writer, TS_TABLE_MAPPING, row, NULL);
		id = ts_writer_rows(native->writer, TS_TABLE_MAPPING);
		break;
	default:
		return TS_OK;
	}
	*ret_good = true;
	return ts_native_rows_set_id(native, (enum ts_table_id)info->id, file_id, (int64_t)id);
}

bool ts_native_rows_is_valid(const struct ts_table_info *info, const int64_t *row)
{
	switch (info->kind) {
	case TS_KIND_EVENT:
		return row[0] != TS_ABSENT;
	case TS_KIND_ENTITY:
		return row[0] > 0;
	case TS_KIND_RECORD:
	case TS_KIND_DICTIONARY:
		return true;
	default:
		return false;
	}
}

int ts_native_rows_add(struct ts_native_rows *native, const struct ts_table_info *info,
		       int64_t file_id, int64_t *row, const int64_t *values, bool *ret_good)
{
	uint32_t clock;
	int64_t source;
	int rc;

	*ret_good = ts_native_rows_is_valid(info, row);
	if (!*ret_good)
		return TS_OK;
	source = ts_native_rows_source_of(native, info, row);
	rc = ts_native_rows_note(native, info, source, row);
	if (rc)
		return rc;
	clock = ts_native_rows_set_clock(native, info, source, row, native->clock);
	if (clock != native->clock)
		ts_writer_set_clock(native->writer, clock);
	native->clock = clock;
	if (info->kind == TS_KIND_DICTIONARY)
		return add_dictionary(native, info, file_id, row, ret_good);
	ts_writer_add(native->writer, (enum ts_table_id)info->id, row, values);
	return TS_OK;
}

/* ---- blobs ---- */

/* The blob row that this one continues; NULL if it is not among the latest. */
static const struct ts_native_rows_blob *find_blob_end(const struct ts_native_rows *native,
						       int64_t id)
{
	for (unsigned int i = 0; native->blob_ends && i < TS_NATIVE_ROWS_BLOB_ENDS; i++)
		if (id && native->blob_ends[i].id == id)
			return &native->blob_ends[i];
	return NULL;
}

int ts_native_rows_add_blob(struct ts_native_rows *native, int64_t file_id, int64_t previous,
			    const void *data, size_t bytes, bool *ret_good)
{
	const struct ts_native_rows_blob *before =
		find_blob_end(native, ts_native_rows_id(native, TS_TABLE_BLOB, previous));
	struct ts_native_rows_blob end = { 0 };

	/* Invalid without the row it continues, or without new bytes. */
	*ret_good = file_id > 0 && bytes <= TS_IMPORT_MAX_STRING &&
		    (!previous || (before && before->hash.bytes && bytes));
	if (!*ret_good)
		return TS_OK;
	if (!native->blob_ends)
		native->blob_ends = calloc(TS_NATIVE_ROWS_BLOB_ENDS, sizeof(*native->blob_ends));
	if (!native->blob_ends)
		return TS_ENOMEM;
	/* The hash is recomputed: the file is not trusted. */
	if (before)
		end.hash = before->hash;
	else
		ts_hash_stream_init(&end.hash);
	ts_hash_stream_add(&end.hash, data, bytes);
	end.id = ts_writer_blob_piece(native->writer, before ? (uint32_t)before->id : 0,
				      ts_hash_stream_digest(&end.hash), end.hash.bytes, data,
				      bytes);
	native->blob_ends[native->next_blob_end++ % TS_NATIVE_ROWS_BLOB_ENDS] = end;
	return ts_native_rows_set_id(native, TS_TABLE_BLOB, file_id, end.id);
}
