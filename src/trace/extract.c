/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a trace into another: rows are read by the schema, so that a new table or column needs
 * nothing here. Ids of entities stay, others are made anew (extract_ids.c). Times come out in
 * trace time.
 */
#include "trace/extract.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "trace/extract_internal.h"

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
		    (!filter->source || process->source == filter->source) &&
		    (filter->pid == TS_ABSENT || process->pid == filter->pid))
			extract_remember(extract, &extract->processes, id, 1);
	if (ts_map_count(&extract->processes) == 0)
		return ts_error_set(extract->err, TS_ENOTFOUND, "the trace has no such process");
	cursor = 0;
	while ((thread = ts_reader_entity_next(extract->reader, TS_TABLE_THREAD, &cursor, &id)))
		if (extract_has(&extract->processes, thread->process))
			extract_remember(extract, &extract->threads, id, 1);
	return extract->failure;
}

/* Of other ranks are devices that they have; those that no rank has are everybody's. */
static bool is_device_of_taken(const struct extract *extract, int64_t id)
{
	const struct ts_device_row *device = ts_reader_entity(extract->reader, TS_TABLE_DEVICE, id);
	const struct ts_source_row *source =
		device ? ts_reader_entity(extract->reader, TS_TABLE_SOURCE, device->source) : NULL;

	return !extract->filter->source || !source || source->rank == TS_ABSENT ||
	       device->source == extract->filter->source;
}

static bool is_taken_entity(const struct extract *extract, enum ts_table_id table, int64_t id)
{
	if (table == TS_TABLE_SOURCE)
		return !extract->filter->source || id == extract->filter->source;
	if (table == TS_TABLE_DEVICE)
		return is_device_of_taken(extract, id);
	if (table == TS_TABLE_PROCESS)
		return extract_has(&extract->processes, id);
	if (table == TS_TABLE_OBJECT)
		return extract_has(&extract->objects, id);
	return table != TS_TABLE_THREAD || extract_has(&extract->threads, id);
}

/* What belonged to no rank now belongs to that of the new trace. */
static void set_source(const struct extract *extract, const struct ts_table_info *table,
		       int64_t *row)
{
	for (int i = 0; extract->filter->source && i < table->column_count; i++)
		if (table->columns[i].type == TS_COLUMN_REF &&
		    strcmp(table->columns[i].refers, "source") == 0 && row[i])
			row[i] = extract->filter->source;
}

static int64_t name_source(const struct extract *extract)
{
	const char *name = extract->filter->source_name;

	return ts_writer_string(extract->writer, name, strlen(name));
}

/* Entities: rows with an id. */
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
			set_source(extract, info, row);
			extract_row(extract, info, row);
			if (tables[i] == TS_TABLE_SOURCE && extract->filter->source_name)
				row[TS_COLUMN_OF(source, name)] = name_source(extract);
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

/* The process whose code a stack ends in; 0: not known. Device instructions have no thread. */
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
 * Rows of a process that is taken; of none, what is said of the whole recording, of a device, or of
 * the machine that all of them shared.
 */
static bool is_of_taken(const struct extract *extract, const struct ts_table_info *table,
			const int64_t *row)
{
	int64_t process = reference_to(table, row, "process");
	int64_t thread = reference_to(table, row, "thread");
	int64_t device = reference_to(table, row, "device");

	if (thread)
		return extract_has(&extract->threads, thread);
	if (table->id == TS_TABLE_SAMPLE)
		process = process_of_stack(extract, row[TS_COLUMN_OF(sample, stack)]);
	if (process)
		return extract_has(&extract->processes, process);
	/* An instruction of an unknown process. */
	if (table->id == TS_TABLE_SAMPLE)
		return !extract->filter->process && extract->filter->pid == TS_ABSENT &&
		       !extract->filter->source;
	if (device && !is_device_of_taken(extract, device))
		return false;
	return table->kind != TS_KIND_EVENT || table->id == TS_TABLE_LOSS ||
	       table->id == TS_TABLE_COUNTER || device;
}

/* The end of the range for commands of a process. */
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
	return extract_has(&extract->processes, process) && start >= extract->filter->from_ns &&
	       start <= end_of_commands(extract, process);
}

/* Commands belong to the window in which they were submitted, even if they run after it. */
static bool is_given(const struct extract *extract, const struct ts_table_info *table,
		     const int64_t *row)
{
	return table->id == TS_TABLE_GPU_OP &&
	       extract_has(&extract->given, row[TS_COLUMN_OF(gpu_op, correlation)]);
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

/* The program closes a window at its next call, after it is asked to. */
static void see_end(struct extract *extract, const struct ts_command_row *row)
{
	struct ts_map *map = row->kind == TS_COMMAND_OPEN    ? &extract->opens
			     : row->kind == TS_COMMAND_CLOSE ? &extract->ends
							     : NULL;
	uint64_t earlier;

	if (!map || row->start <= extract->filter->to_ns)
		return;
	if (!ts_map_get(map, (uint64_t)row->process, &earlier) || row->start < (int64_t)earlier)
		extract_remember(extract, map, row->process, (uint64_t)row->start);
}

static void take_object(struct extract *extract, int64_t id)
{
	const struct ts_object_row *row;

	/* With its parents. Terminates: each is copied once. */
	while (id && !extract_has(&extract->objects, id)) {
		row = ts_reader_entity(extract->reader, TS_TABLE_OBJECT, id);
		if (!row || !extract_has(&extract->processes, row->process))
			return;
		extract_remember(extract, &extract->objects, id, 1);
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

/* Objects that commands name, and those described meanwhile: details name them, too. */
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
		set_source(extract, table, row);
		if (table->shape >= 0)
			values = extract_values(extract, batch, i, row[table->shape]);
		extract_row(extract, table, row);
		result = extract->failure;
		if (!result &&
		    ts_writer_add(extract->writer, (enum ts_table_id)table->id, row, values))
			result = ts_writer_status(extract->writer, extract->err);
	}
	return result;
}

/* Command chunks are always read: their range may end later than that of other tables. */
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

/* Not if everything is copied: then there is nothing after the range. */
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
			if (row.correlation != TS_ABSENT &&
			    extract_has(&extract->threads, row.thread) &&
			    is_in_time(extract, table, (const int64_t *)&row))
				extract_remember(extract, &extract->given, row.correlation, 1);
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

/* Symbols of the frames that were copied. */
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
			if (!extract_has(&extract->frames, row.frame))
				continue;
			extract_row(extract, extract->batch->table, (int64_t *)&row);
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
	if (!result) {
		extract_code(extract);
		result = extract->failure;
	}
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
	struct ts_error unused_err = { 0 };
	struct extract extract = { .filter = filter, .err = err ? err : &unused_err };
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
	struct ts_error unused_err = { 0 };
	struct extract extract = {
		.filter = filter, .reader = from, .writer = to, .err = err ? err : &unused_err
	};
	int result = ts_batch_new(&extract.batch, from, extract.err);

	if (!result)
		result = copy_all(&extract);
	release(&extract);
	return result;
}
