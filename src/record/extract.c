/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a trace into another: rows are read by the schema, so that a new table or column needs nothing
 * here. Ids of entities stay, ids of texts, shapes and stacks are made anew. Times come out in trace time.
 * Must not know of recordings.
 */
#include "record/extract.h"

#include <stdlib.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/details.h"

/* A row of `blob` is no larger (docs/format.md, section 7). */
#define PIECE_BYTES ((uint64_t)64 << 20)

struct extract {
	const struct ts_extract_filter *filter;
	struct ts_reader *reader;
	struct ts_writer *writer;
	struct ts_batch *batch;
	struct ts_map processes, threads;                               /* ids that are taken */
	struct ts_map strings, shapes, frames, stacks, mappings, blobs; /* old id to new */
	struct ts_map objects;                                          /* ids that are taken */
	struct ts_map given;       /* correlations of calls that are taken */
	struct ts_map opens, ends; /* of a process: when its command stream goes on behind to_ns */
	char *piece;
	size_t piece_capacity;
	int64_t *values;
	size_t value_capacity;
	uint64_t numbers[TS_TABLE_COUNT]; /* rows of each table so far */
	struct ts_error *err;
	int failure;
};

static int no_memory(struct extract *extract)
{
	extract->failure = ts_error_set(extract->err, TS_ENOMEM, "no memory");
	return extract->failure;
}

static void remember(struct extract *extract, struct ts_map *map, int64_t key, uint64_t value)
{
	if (ts_map_put(map, (uint64_t)key, value))
		no_memory(extract);
}

static bool has(const struct ts_map *map, int64_t key)
{
	uint64_t value;

	return ts_map_get(map, (uint64_t)key, &value);
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
	remember(extract, &extract->strings, old, id);
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
		no_memory(extract);
		return 0;
	}
	for (uint32_t i = 0; i < shape->field_count; i++) {
		fields[i] = shape->fields[i];
		fields[i].key = (uint32_t)new_string(extract, fields[i].key);
	}
	id = ts_writer_shape(extract->writer, fields, shape->field_count);
	remember(extract, &extract->shapes, old, id);
	return (int64_t)id;
}

static void new_row(struct extract *extract, const struct ts_table_info *table, int64_t *row);

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
	new_row(extract, ts_table_info(TS_TABLE_MAPPING), (int64_t *)&row);
	id = (uint64_t)ts_writer_new_id(extract->writer, TS_TABLE_MAPPING);
	ts_writer_add(extract->writer, TS_TABLE_MAPPING, &row, NULL);
	remember(extract, &extract->mappings, old, id);
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
	new_row(extract, ts_table_info(TS_TABLE_FRAME), (int64_t *)&row);
	id = ts_writer_frame(extract->writer, &row);
	remember(extract, &extract->frames, old, id);
	return (int64_t)id;
}

/* From the innermost frame out to one that is known, then back in: stacks may be deep. */
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
			no_memory(extract);
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
		remember(extract, &extract->stacks, path[depth], id);
	}
	return (int64_t)id;
}

/* The bytes of one row of a chain; `whole` is its last row. */
static int64_t copy_piece(struct extract *extract, int64_t whole, const struct ts_blob_row *row,
			  uint64_t begin, int64_t previous)
{
	uint64_t bytes = (uint64_t)row->bytes - begin;

	if (row->bytes < 0 || (uint64_t)row->bytes < begin || bytes > PIECE_BYTES) {
		extract->failure = ts_error_set(extract->err, TS_EFORMAT,
						"blob %lld: its size makes no sense",
						(long long)whole);
		return 0;
	}
	if (ts_grow_array((void **)&extract->piece, &extract->piece_capacity, bytes + 1, 1)) {
		no_memory(extract);
		return 0;
	}
	extract->failure = ts_reader_blob_read(extract->reader, whole, begin, extract->piece, bytes,
					       extract->err);
	if (extract->failure)
		return 0;
	return ts_writer_blob_piece(extract->writer, (uint32_t)previous, (uint64_t)row->hash,
				    (uint64_t)row->bytes, extract->piece, bytes);
}

/* From its last row back to one that is known, then forward. */
static int64_t new_blob(struct extract *extract, int64_t whole)
{
	TS_AUTO_FREE int64_t *path = NULL;
	size_t depth = 0, capacity = 0;
	uint64_t id = 0, begin = 0;
	const struct ts_blob_row *row;
	int64_t old = whole;

	while (old && !ts_map_get(&extract->blobs, (uint64_t)old, &id)) {
		row = ts_reader_entity(extract->reader, TS_TABLE_BLOB, old);
		if (!row || row->previous >= old || row->previous < 0)
			return 0;
		if (ts_grow_array((void **)&path, &capacity, depth + 1, sizeof(*path))) {
			no_memory(extract);
			return 0;
		}
		path[depth++] = old;
		old = row->previous;
	}
	row = old ? ts_reader_entity(extract->reader, TS_TABLE_BLOB, old) : NULL;
	begin = row ? (uint64_t)row->bytes : 0;
	while (depth && !extract->failure) {
		row = ts_reader_entity(extract->reader, TS_TABLE_BLOB, path[--depth]);
		id = (uint64_t)copy_piece(extract, whole, row, begin, (int64_t)id);
		begin = (uint64_t)row->bytes;
		remember(extract, &extract->blobs, path[depth], id);
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
	ts_details_map_blobs(text.data, text.length, map_blob, extract, &out);
	if (ts_text_status(&out)) {
		no_memory(extract);
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
		return has(&extract->processes, old) ? old : 0;
	case TS_TABLE_BLOB:
		return extract->filter->commands ? new_blob(extract, old) : 0;
	case TS_TABLE_OBJECT:
		return has(&extract->objects, old) ? old : 0;
	default:
		return old;
	}
}

/* Gives a row the ids of the new file. */
static void new_row(struct extract *extract, const struct ts_table_info *table, int64_t *row)
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

/* The values of a row's arguments, with new ids of texts. */
static const int64_t *new_values(struct extract *extract, const struct ts_batch *batch,
				 uint32_t row, int64_t old_shape)
{
	const struct ts_shape *shape = ts_reader_shape(extract->reader, old_shape);
	const int64_t *values;
	uint32_t count = 0;

	if (!old_shape || shape->value_count == 0)
		return NULL;
	if (ts_grow_array((void **)&extract->values, &extract->value_capacity, shape->value_count,
			  sizeof(*values))) {
		no_memory(extract);
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

/* ---- who is taken ---- */

static int choose(struct extract *extract)
{
	const struct ts_extract_filter *filter = extract->filter;
	const struct ts_process_row *process;
	const struct ts_thread_row *thread;
	size_t cursor = 0;
	int64_t id;

	while ((process = ts_reader_entity_next(extract->reader, TS_TABLE_PROCESS, &cursor, &id)))
		if ((!filter->process || id == filter->process) &&
		    (filter->pid == TS_ABSENT || process->pid == filter->pid))
			remember(extract, &extract->processes, id, 1);
	if (ts_map_count(&extract->processes) == 0)
		return ts_error_set(extract->err, TS_ENOTFOUND,
				    "no process of the trace fits what is to be extracted");
	cursor = 0;
	while ((thread = ts_reader_entity_next(extract->reader, TS_TABLE_THREAD, &cursor, &id)))
		if (has(&extract->processes, thread->process))
			remember(extract, &extract->threads, id, 1);
	return extract->failure;
}

static bool is_taken_entity(const struct extract *extract, enum ts_table_id table, int64_t id)
{
	if (table == TS_TABLE_PROCESS)
		return has(&extract->processes, id);
	if (table == TS_TABLE_OBJECT)
		return has(&extract->objects, id);
	return table != TS_TABLE_THREAD || has(&extract->threads, id);
}

/* Rows of tables that are known by id. */
static void copy_entities(struct extract *extract)
{
	static const enum ts_table_id tables[] = { TS_TABLE_SOURCE,  TS_TABLE_HOST,
						   TS_TABLE_PROCESS, TS_TABLE_THREAD,
						   TS_TABLE_DEVICE,  TS_TABLE_STREAM,
						   TS_TABLE_OBJECT };

	for (size_t i = 0; i < TS_ARRAY_SIZE(tables); i++) {
		const struct ts_table_info *info = ts_table_info(tables[i]);
		int64_t row[TS_MAX_COLUMNS];
		const void *found;
		size_t cursor = 0;
		int64_t id;

		while ((found = ts_reader_entity_next(extract->reader, tables[i], &cursor, &id))) {
			if (!is_taken_entity(extract, tables[i], id))
				continue;
			memcpy(row, found, info->column_count * sizeof(*row));
			new_row(extract, info, row);
			ts_writer_add(extract->writer, tables[i], row, NULL);
		}
	}
}

/* The id in the first column that refers to a table; 0: none. */
static int64_t reference_to(const struct ts_table_info *table, const int64_t *row, const char *to)
{
	for (int i = 0; i < table->column_count; i++)
		if (table->columns[i].type == TS_COLUMN_REF &&
		    strcmp(table->columns[i].refers, to) == 0)
			return row[i];
	return 0;
}

/* Whose code a stack ends in; 0: not known. Instructions of a device have no thread. */
static int64_t process_of_stack(const struct extract *extract, int64_t id)
{
	const struct ts_stack_row *stack = ts_reader_entity(extract->reader, TS_TABLE_STACK, id);
	const struct ts_frame_row *frame =
		stack ? ts_reader_entity(extract->reader, TS_TABLE_FRAME, stack->frame) : NULL;
	const struct ts_mapping_row *mapping =
		frame ? ts_reader_entity(extract->reader, TS_TABLE_MAPPING, frame->mapping) : NULL;

	return mapping ? mapping->process : 0;
}

/*
 * Rows of a process that is taken; of none, what is said of the whole recording, of a device, or of the machine that all
 * of them shared.
 */
static bool is_of_taken(const struct extract *extract, const struct ts_table_info *table,
			const int64_t *row)
{
	int64_t process = reference_to(table, row, "process");
	int64_t thread = reference_to(table, row, "thread");

	if (thread)
		return has(&extract->threads, thread);
	if (table->id == TS_TABLE_SAMPLE)
		process = process_of_stack(extract, row[TS_COLUMN_OF(sample, stack)]);
	if (process)
		return has(&extract->processes, process);
	return table->kind != TS_KIND_EVENT || table->id == TS_TABLE_LOSS ||
	       table->id == TS_TABLE_COUNTER || reference_to(table, row, "device");
}

/* Until when commands of a process are taken. */
static int64_t end_of_commands(const struct extract *extract, int64_t process)
{
	uint64_t end, open;

	if (!ts_map_get(&extract->ends, (uint64_t)process, &end) ||
	    (ts_map_get(&extract->opens, (uint64_t)process, &open) && (int64_t)open < (int64_t)end))
		return extract->filter->to_ns;
	return (int64_t)end;
}

static bool is_command_taken(const struct extract *extract, int64_t process, int64_t start)
{
	return has(&extract->processes, process) && start >= extract->filter->from_ns &&
	       start <= end_of_commands(extract, process);
}

/* Commands are of the window in which they were given, although they may run after it. */
static bool is_given(const struct extract *extract, const struct ts_table_info *table,
		     const int64_t *row)
{
	return table->id == TS_TABLE_GPU_OP &&
	       has(&extract->given, row[TS_COLUMN_OF(gpu_op, correlation)]);
}

static bool is_in_time(const struct extract *extract, const struct ts_table_info *table,
		       const int64_t *row)
{
	int64_t start, end;

	if (table->start < 0)
		return true;
	if (table->id == TS_TABLE_COMMAND)
		return is_command_taken(extract, row[TS_COLUMN_OF(command, process)],
					row[table->start]);
	start = end = row[table->start];
	if (table->duration >= 0 && row[table->duration] == -1)
		end = INT64_MAX;
	else if (table->duration >= 0 && __builtin_add_overflow(start, row[table->duration], &end))
		end = INT64_MAX;
	return (start <= extract->filter->to_ns && end >= extract->filter->from_ns) ||
	       is_given(extract, table, row);
}

/* ---- command streams ---- */

#define COMMAND_COLUMNS                                                                          \
	(TS_MASK_OF(command, start) | TS_MASK_OF(command, kind) | TS_MASK_OF(command, process) | \
	 TS_MASK_OF(command, queue) | TS_MASK_OF(command, object) | TS_MASK_OF(command, other))

static int each_command(struct extract *extract,
			void (*see)(struct extract *extract, const struct ts_command_row *row))
{
	for (size_t i = 0; i < ts_reader_chunk_count(extract->reader); i++) {
		int result;

		if (ts_reader_chunk(extract->reader, i)->table != TS_TABLE_COMMAND)
			continue;
		result = ts_batch_read(extract->batch, i, COMMAND_COLUMNS, extract->err);
		for (uint32_t k = 0; !result && k < extract->batch->rows; k++) {
			struct ts_command_row row;

			ts_batch_row(extract->batch, k, &row);
			see(extract, &row);
		}
		if (result || extract->failure)
			return result ? result : extract->failure;
	}
	return TS_OK;
}

/* A window is closed by the program, at a call behind the instant at which it was told to. */
static void see_end(struct extract *extract, const struct ts_command_row *row)
{
	struct ts_map *map = row->kind == TS_COMMAND_OPEN    ? &extract->opens
			     : row->kind == TS_COMMAND_CLOSE ? &extract->ends
							     : NULL;
	uint64_t earlier;

	if (!map || row->start <= extract->filter->to_ns)
		return;
	if (!ts_map_get(map, (uint64_t)row->process, &earlier) || row->start < (int64_t)earlier)
		remember(extract, map, row->process, (uint64_t)row->start);
}

static void take_object(struct extract *extract, int64_t id)
{
	const struct ts_object_row *row;

	/* With what it belongs to. Ends: each is taken once. */
	while (id && !has(&extract->objects, id)) {
		row = ts_reader_entity(extract->reader, TS_TABLE_OBJECT, id);
		if (!row || !has(&extract->processes, row->process))
			return;
		remember(extract, &extract->objects, id, 1);
		id = extract->failure ? 0 : row->parent;
	}
}

static void see_objects(struct extract *extract, const struct ts_command_row *row)
{
	if (!is_command_taken(extract, row->process, row->start))
		return;
	take_object(extract, row->queue);
	take_object(extract, row->object);
	take_object(extract, row->other);
}

/* Those that commands name, and those that were described meanwhile: details name them, too. */
static int choose_objects(struct extract *extract)
{
	const struct ts_object_row *row;
	size_t cursor = 0;
	int64_t id;
	int result = each_command(extract, see_end);

	if (!result)
		result = each_command(extract, see_objects);
	while (!result &&
	       (row = ts_reader_entity_next(extract->reader, TS_TABLE_OBJECT, &cursor, &id)))
		if (row->created != TS_ABSENT &&
		    is_command_taken(extract, row->process, row->created))
			take_object(extract, id);
	return result ? result : extract->failure;
}

/* ---- rows ---- */

static bool is_copied(const struct extract *extract, const struct ts_table_info *table)
{
	if (!table)
		return false;
	if (table->kind == TS_KIND_EVENT)
		return table->id != TS_TABLE_COMMAND || extract->filter->commands;
	return table->id == TS_TABLE_META || table->id == TS_TABLE_CLOCK_SYNC;
}

static bool is_wanted(const struct extract *extract, const struct ts_table_info *table, uint32_t i,
		      int64_t *row)
{
	const struct ts_extract_filter *filter = extract->filter;

	return !filter->change || filter->change(filter->context, (enum ts_table_id)table->id,
						 extract->numbers[table->id] + i, row);
}

static int copy_chunk(struct extract *extract, size_t chunk)
{
	struct ts_batch *batch = extract->batch;
	int result = ts_batch_read(batch, chunk, TS_MASK_ALL, extract->err);

	for (uint32_t i = 0; !result && i < batch->rows; i++) {
		const struct ts_table_info *table = batch->table;
		const int64_t *values = NULL;
		int64_t row[TS_MAX_COLUMNS];

		ts_batch_row(batch, i, row);
		if (!is_in_time(extract, table, row) || !is_of_taken(extract, table, row) ||
		    !is_wanted(extract, table, i, row))
			continue;
		if (table->shape >= 0)
			values = new_values(extract, batch, i, row[table->shape]);
		new_row(extract, table, row);
		result = extract->failure;
		if (!result &&
		    ts_writer_add(extract->writer, (enum ts_table_id)table->id, row, values))
			result = ts_writer_status(extract->writer, extract->err);
	}
	return result;
}

/* Those of commands are looked into: their end may lie behind that of all else. */
static bool overlaps(const struct extract *extract, const struct ts_chunk *chunk)
{
	if (chunk->table == TS_TABLE_GPU_OP && ts_map_count(&extract->given))
		return true;
	return chunk->table == TS_TABLE_COMMAND ||
	       ts_chunk_overlaps(chunk, extract->filter->from_ns, extract->filter->to_ns);
}

#define CALL_COLUMNS                                                    \
	(TS_MASK_OF(api_call, start) | TS_MASK_OF(api_call, duration) | \
	 TS_MASK_OF(api_call, thread) | TS_MASK_OF(api_call, correlation))

/* Not where all is taken: then there is nothing behind it. */
static int choose_given(struct extract *extract)
{
	for (size_t i = 0;
	     extract->filter->to_ns < INT64_MAX && i < ts_reader_chunk_count(extract->reader);
	     i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(extract->reader, i);
		int result;

		if (chunk->table != TS_TABLE_API_CALL || !overlaps(extract, chunk))
			continue;
		result = ts_batch_read(extract->batch, i, CALL_COLUMNS, extract->err);
		for (uint32_t k = 0; !result && k < extract->batch->rows; k++) {
			const struct ts_table_info *table = extract->batch->table;
			struct ts_api_call_row row;

			ts_batch_row(extract->batch, k, &row);
			if (row.correlation != TS_ABSENT && has(&extract->threads, row.thread) &&
			    is_in_time(extract, table, (const int64_t *)&row))
				remember(extract, &extract->given, row.correlation, 1);
		}
		if (result || extract->failure)
			return result ? result : extract->failure;
	}
	return TS_OK;
}

static int copy_chunks(struct extract *extract)
{
	for (size_t i = 0; i < ts_reader_chunk_count(extract->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(extract->reader, i);
		int result = TS_OK;

		if (!is_copied(extract, ts_table_info(chunk->table)))
			continue;
		if (overlaps(extract, chunk))
			result = copy_chunk(extract, i);
		if (result)
			return result;
		extract->numbers[chunk->table] += chunk->rows;
	}
	return TS_OK;
}

/* What the frames are called that were taken. */
static int copy_symbols(struct extract *extract)
{
	for (size_t i = 0; i < ts_reader_chunk_count(extract->reader); i++) {
		int result;

		if (ts_reader_chunk(extract->reader, i)->table != TS_TABLE_SYMBOL)
			continue;
		result = ts_batch_read(extract->batch, i, TS_MASK_ALL, extract->err);
		if (result)
			return result;
		for (uint32_t k = 0; k < extract->batch->rows; k++) {
			struct ts_symbol_row row;

			ts_batch_row(extract->batch, k, &row);
			if (!has(&extract->frames, row.frame))
				continue;
			new_row(extract, extract->batch->table, (int64_t *)&row);
			ts_writer_add(extract->writer, TS_TABLE_SYMBOL, &row, NULL);
		}
	}
	return extract->failure;
}

static int copy_all(struct extract *extract)
{
	int result = choose(extract);

	if (!result && extract->filter->commands)
		result = choose_objects(extract);
	if (result)
		return result;
	copy_entities(extract);
	result = extract->failure ? extract->failure : choose_given(extract);
	if (!result)
		result = copy_chunks(extract);
	if (!result)
		result = copy_symbols(extract);
	if (!result)
		result = ts_reader_status(extract->reader, extract->err);
	return result ? result : ts_writer_status(extract->writer, extract->err);
}

static void release(struct extract *extract)
{
	ts_batch_free(extract->batch);
	ts_map_release(&extract->processes);
	ts_map_release(&extract->threads);
	ts_map_release(&extract->strings);
	ts_map_release(&extract->shapes);
	ts_map_release(&extract->frames);
	ts_map_release(&extract->stacks);
	ts_map_release(&extract->mappings);
	ts_map_release(&extract->blobs);
	ts_map_release(&extract->objects);
	ts_map_release(&extract->given);
	ts_map_release(&extract->opens);
	ts_map_release(&extract->ends);
	free(extract->values);
	free(extract->piece);
}

static int open_all(struct extract *extract, const char *from, const char *to)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	int result = ts_reader_open(&extract->reader, from, extract->err);

	if (!result)
		result = ts_batch_new(&extract->batch, extract->reader, extract->err);
	if (!result)
		result = ts_writer_open(&extract->writer, to, &options, extract->err);
	return result;
}

int ts_extract(const char *from, const char *to, const struct ts_extract_filter *filter,
	       struct ts_error *err)
{
	struct ts_error own = { 0 };
	struct extract extract = { .filter = filter, .err = err ? err : &own };
	int result = open_all(&extract, from, to);

	if (!result)
		result = copy_all(&extract);
	if (!result)
		result = ts_writer_finish(extract.writer, extract.err);
	if (result && extract.writer)
		unlink(to);
	ts_writer_close(extract.writer);
	release(&extract);
	ts_reader_close(extract.reader);
	return result;
}

int ts_extract_into(struct ts_reader *from, struct ts_writer *to,
		    const struct ts_extract_filter *filter, struct ts_error *err)
{
	struct ts_error own = { 0 };
	struct extract extract = {
		.filter = filter, .reader = from, .writer = to, .err = err ? err : &own
	};
	int result = ts_batch_new(&extract.batch, from, extract.err);

	if (!result)
		result = copy_all(&extract);
	release(&extract);
	return result;
}
