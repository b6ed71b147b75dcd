/* SPDX-License-Identifier: Apache-2.0 */
/* Trace writer: adds rows, opens, saves and finishes files. */
#include <tracesmith/writer.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sbt/continued.h"
#include "sbt/sbt_layout.h"
#include "sbt/writer_internal.h"

#define DEFAULT_CHUNK_ROWS 65536u
#define DEFAULT_LEVEL 4
#define DEFAULT_STRING_MEMORY ((size_t)256 << 20)
/* A chunk is sealed early when its arguments grow beyond this. */
#define SEAL_VALUES (SBT_MAX_VALUES / 4)
/* Texts of a resumed file, whatever its size: the earlier ones are not known. */
#define RESUMED_BUDGET (UINT64_C(16) << 20)

/* ---- rows ---- */

int ts_writer_set_clock(struct ts_writer *writer, uint32_t clock)
{
	writer->clock = clock;
	return writer->error.code;
}

/* The rows of the table in the writer's clock; NULL on failure. */
static struct sbt_pending *pending_of(struct ts_writer *writer, struct sbt_writer_table *table)
{
	if (TS_LIKELY(table->pending->clock == sbt_writer_clock_of(writer, table)))
		return table->pending;
	return sbt_writer_change_clock(writer, table);
}

static const char *row_fault(const struct ts_writer *writer, const struct ts_table_info *info,
			     const int64_t *row)
{
	if (!info || info->kind == TS_KIND_INTERNAL || info->kind == TS_KIND_DERIVED)
		return "callers cannot add rows to this table";
	if (info->id == TS_TABLE_STRING || info->id == TS_TABLE_FRAME ||
	    info->id == TS_TABLE_STACK || info->id == TS_TABLE_BLOB)
		return "rows of this table have functions of their own";
	if (info->start >= 0 && row[info->start] == TS_ABSENT)
		return "an event needs a start";
	if (info->duration >= 0 && row[info->duration] < -1)
		return "a duration is negative";
	if (info->shape >= 0 && row[info->shape] &&
	    (uint64_t)row[info->shape] - writer->shapes.first_id >= writer->shapes.count)
		return "an event has an unknown shape";
	return NULL;
}

int ts_writer_add(struct ts_writer *writer, enum ts_table_id table, const void *row,
		  const int64_t *values)
{
	const struct ts_table_info *info = ts_table_info(table);
	const int64_t *words = row;
	struct sbt_pending *pending;
	uint32_t value_count = 0;
	const char *fault;

	if (TS_UNLIKELY(writer->error.code))
		return writer->error.code;
	fault = row_fault(writer, info, words);
	if (TS_UNLIKELY(fault != NULL))
		return sbt_writer_fail(writer, TS_EINVAL, fault);
	pending = pending_of(writer, &writer->tables[table]);
	if (TS_UNLIKELY(!pending))
		return writer->error.code;
	if (info->shape >= 0 && words[info->shape])
		value_count = writer->shapes.shapes[words[info->shape] - writer->shapes.first_id]
				      .value_count;
	/* Sealed before the next row, so that the newest row can still be changed in place. */
	if (TS_UNLIKELY(pending->rows.rows >= writer->options.chunk_rows ||
			pending->rows.values + value_count > SEAL_VALUES) &&
	    sbt_writer_seal_full(writer, pending))
		return writer->error.code;
	if (TS_UNLIKELY(ts_table_add(&pending->rows, row, values, value_count)))
		return sbt_writer_fail_memory(writer);
	writer->tables[table].added++;
	return TS_OK;
}

int ts_writer_amend(struct ts_writer *writer, enum ts_table_id table, int column, int64_t value)
{
	struct ts_table *rows = &writer->tables[table].pending->rows;

	if (rows->rows == 0 || column < 0 || column >= rows->info->column_count ||
	    column == rows->info->shape)
		return sbt_writer_fail(writer, TS_EINVAL, "no newest row to amend");
	return ts_table_amend(rows, column, value) ? sbt_writer_fail_memory(writer)
						   : writer->error.code;
}

int64_t ts_writer_new_id(struct ts_writer *writer, enum ts_table_id table)
{
	return (int64_t)writer->tables[table].next_id++;
}

/* ---- from open to close ---- */

static void take_options(struct ts_writer *writer, const struct ts_writer_options *options)
{
	struct ts_writer_options *merged = &writer->options;

	if (options)
		memcpy(merged, options, TS_MIN(options->size, sizeof(*merged)));
	if (!merged->chunk_rows)
		merged->chunk_rows = DEFAULT_CHUNK_ROWS;
	merged->chunk_rows = TS_MIN(merged->chunk_rows, SBT_MAX_ROWS);
	merged->chunk_rows = TS_MAX(merged->chunk_rows, TS_SHAPE_MAX_FIELDS);
	if (!merged->level)
		merged->level = DEFAULT_LEVEL;
	if (!merged->string_memory)
		merged->string_memory = DEFAULT_STRING_MEMORY;
	writer->file.output.write = merged->write;
	writer->file.output.write_context = merged->write_context;
	writer->file.output.sync = merged->flags & TS_WRITER_SYNC;
	writer->file.output.locked = merged->flags & TS_WRITER_LOCKED;
}

static bool has_time(const struct ts_table_info *info)
{
	for (int i = 0; i < info->column_count; i++)
		if (info->columns[i].type == TS_COLUMN_TIME)
			return true;
	return false;
}

static uint64_t next_id(const struct ts_writer_ids *ids, uint32_t table)
{
	return ids && ids->next[table] ? ids->next[table] : 1;
}

static_assert(TS_TABLE_COUNT <= TS_WRITER_ID_TABLES,
	      "struct ts_writer_ids has room for all tables");

static int init_table(struct ts_writer *writer, uint32_t id, const struct ts_writer_ids *ids)
{
	struct sbt_writer_table *table = &writer->tables[id];

	table->info = ts_table_info(id);
	table->has_time = table->info && has_time(table->info);
	ts_table_init(&table->spare, table->info);
	table->next_id = next_id(ids, id);
	table->sealed_id = next_id(ids, id);
	table->pending = sbt_writer_add_pending(writer, table, 0);
	return table->pending ? TS_OK : TS_ENOMEM;
}

static int init_tables(struct ts_writer *writer, const struct ts_writer_ids *ids,
		       struct ts_error *err)
{
	int result = TS_OK;

	for (uint32_t i = 0; !result && i < TS_TABLE_COUNT; i++)
		result = init_table(writer, i, ids);
	ts_strmap_init(&writer->strings, (uint32_t)next_id(ids, TS_TABLE_STRING));
	ts_strmap_init(&writer->frames, (uint32_t)next_id(ids, TS_TABLE_FRAME));
	ts_shapes_init(&writer->shapes, (uint32_t)next_id(ids, TS_TABLE_SHAPE));
	ts_pairmap_init(&writer->stacks);
	writer->first_stack = next_id(ids, TS_TABLE_STACK);
	/* Earlier writers of the file may have used up the budget; there is room for a bit more. */
	writer->text_bytes = ids ? SBT_TEXT_BUDGET - RESUMED_BUDGET : 0;
	return result ? ts_error_set(err, TS_ENOMEM, "no memory") : TS_OK;
}

/* A writer without a file yet. */
static int new_writer(struct ts_writer **ret_writer, const char *path,
		      const struct ts_writer_ids *ids, const struct ts_writer_options *options,
		      struct ts_error *err)
{
	struct ts_writer *writer;
	int result;

	if (!path || !*path || strcmp(path, "-") == 0)
		return ts_error_set(err, TS_EINVAL, "a trace needs a file name");
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	take_options(writer, options);
	result = init_tables(writer, ids, err);
	if (!result)
		result = sbt_writer_start_slots(writer, err);
	if (result)
		ts_writer_close(writer);
	else
		*ret_writer = writer;
	return result;
}

int ts_writer_open(struct ts_writer **ret_writer, const char *path,
		   const struct ts_writer_options *options, struct ts_error *err)
{
	struct sbt_file_header header;
	struct ts_writer *writer = NULL;
	int result = new_writer(&writer, path, NULL, options, err);

	if (!writer)
		return result;
	sbt_file_header_init(&header, writer->options.trace_id);
	result = sbt_appender_open(&writer->file, path, &header, err);
	if (result)
		ts_writer_close(writer);
	else
		*ret_writer = writer;
	return result;
}

/* Dictionary ids from the listed chunks; NULL if `ids` is not beyond these. */
static const char *ids_fault(const struct ts_table *index, const struct ts_writer_ids *ids)
{
	for (uint32_t i = 0; i < TS_TABLE_COUNT; i++)
		if (next_id(ids, i) > UINT32_MAX)
			return "a table ran out of ids";
	for (uint32_t i = 0; i < index->rows; i++) {
		int64_t table = ts_table_value(index, TS_COLUMN_OF(index, table), i);
		const struct ts_table_info *info = ts_table_info((uint32_t)table);
		uint64_t end = (uint64_t)ts_table_value(index, TS_COLUMN_OF(index, first_id), i) +
			       (uint64_t)ts_table_value(index, TS_COLUMN_OF(index, rows), i);

		if (info && info->kind == TS_KIND_DICTIONARY && end > next_id(ids, (uint32_t)table))
			return "its chunks contain ids that are not assigned yet";
	}
	return NULL;
}

/* Ends the opening of a resumed writer. */
static int take_resumed(struct ts_writer **ret_writer, struct ts_writer *writer, const char *path,
			const struct ts_writer_ids *ids, int result, struct ts_error *err)
{
	const char *fault = result ? NULL : ids_fault(&writer->file.index, ids);

	if (fault)
		result = ts_error_set(err, TS_EFORMAT, "trace '%s' cannot be continued: %s", path,
				      fault);
	if (result)
		ts_writer_close(writer);
	else
		*ret_writer = writer;
	return result;
}

int ts_writer_resume(struct ts_writer **ret_writer, const char *path, uint64_t bytes,
		     const struct ts_writer_ids *ids, const struct ts_writer_options *options,
		     struct ts_error *err)
{
	struct ts_writer *writer = NULL;
	int result = new_writer(&writer, path, ids, options, err);

	if (!writer)
		return result;
	result = sbt_appender_resume(&writer->file, path, bytes, writer->options.trace_id, err);
	return take_resumed(ret_writer, writer, path, ids, result, err);
}

int sbt_writer_continue(struct ts_writer **ret_writer, const struct sbt_continued *continued,
			const struct ts_writer_ids *ids, const struct ts_writer_options *options,
			struct ts_error *err)
{
	struct ts_writer *writer = NULL;
	char path[64];
	int result;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", continued->fd);
	result = new_writer(&writer, path, ids, options, err);
	if (!writer)
		return result;
	result = sbt_appender_continue(&writer->file, continued, path, writer->options.trace_id,
				       err);
	return take_resumed(ret_writer, writer, continued->path, ids, result, err);
}

void ts_writer_ids(const struct ts_writer *writer, struct ts_writer_ids *ret_ids)
{
	memset(ret_ids, 0, sizeof(*ret_ids));
	for (uint32_t i = 0; i < TS_TABLE_COUNT; i++)
		ret_ids->next[i] = writer->tables[i].next_id;
	ret_ids->next[TS_TABLE_SHAPE] = writer->shapes.first_id + writer->shapes.count;
}

int ts_writer_status(const struct ts_writer *writer, struct ts_error *err)
{
	if (writer->error.code && err)
		*err = writer->error;
	return writer->error.code;
}

int ts_writer_flush(struct ts_writer *writer)
{
	sbt_writer_seal_referred(writer);
	for (int i = 0; i < TS_TABLE_COUNT; i++)
		sbt_writer_seal(writer, (enum ts_table_id)i);
	if (!sbt_writer_write_all(writer))
		sbt_output_sync(&writer->file.output, &writer->error);
	return writer->error.code;
}

int ts_writer_save(struct ts_writer *writer, struct ts_error *err)
{
	if (writer->finished)
		return ts_error_set(err, TS_EINVAL, "the trace is finished already");
	if (!ts_writer_flush(writer) &&
	    !sbt_appender_save(&writer->file, writer->options.level, &writer->error))
		sbt_output_sync(&writer->file.output, &writer->error);
	return ts_writer_status(writer, err);
}

int ts_writer_finish(struct ts_writer *writer, struct ts_error *err)
{
	if (writer->finished)
		return ts_error_set(err, TS_EINVAL, "the trace is finished already");
	if (!ts_writer_flush(writer))
		sbt_appender_finish(&writer->file, writer->options.level, &writer->error);
	writer->finished = true;
	return ts_writer_status(writer, err);
}

void ts_writer_close(struct ts_writer *writer)
{
	if (!writer)
		return;
	sbt_writer_release_chunks(writer);
	ts_strmap_release(&writer->strings);
	ts_strmap_release(&writer->frames);
	ts_shapes_release(&writer->shapes);
	ts_pairmap_release(&writer->stacks);
	free(writer->stack_depths);
	ts_text_release(&writer->cut_text);
	sbt_appender_release(&writer->file);
	free(writer);
}

void ts_writer_cuts(const struct ts_writer *writer, struct ts_writer_cuts *ret_cuts)
{
	*ret_cuts = writer->cuts;
}

uint64_t ts_writer_rows(const struct ts_writer *writer, enum ts_table_id table)
{
	return writer->tables[table].added;
}

uint64_t ts_writer_bytes(const struct ts_writer *writer)
{
	return sbt_appender_bytes(&writer->file);
}

uint64_t ts_writer_chunk_bytes(const struct ts_writer *writer)
{
	return sbt_appender_chunk_bytes(&writer->file);
}
