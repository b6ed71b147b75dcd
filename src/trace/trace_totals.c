/* SPDX-License-Identifier: Apache-2.0 */
/* See trace_totals.h. */
#include "trace/trace_totals.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace_meta.h"

/* Rows of the counted tables. */
static uint64_t count_events(const struct ts_reader *reader)
{
	uint64_t events = 0;

	for (unsigned int table = 0; table < TS_TABLE_COUNT; table++) {
		if (TS_TRACE_COUNTED & TS_TABLE_BIT(table))
			events += ts_reader_rows(reader, table);
	}
	return events;
}

uint64_t ts_trace_event_tables(const struct ts_reader *reader)
{
	uint64_t tables = 0;

	for (unsigned int table = 0; table < TS_TABLE_COUNT; table++) {
		const struct ts_table_info *info = ts_table_info(table);

		if (info && info->kind == TS_KIND_EVENT && ts_reader_rows(reader, table) > 0)
			tables |= TS_TABLE_BIT(table);
	}
	return tables;
}

static bool gives_time(const struct ts_chunk *chunk)
{
	const struct ts_table_info *info = ts_table_info(chunk->table);

	return info && info->kind == TS_KIND_EVENT && chunk->table != TS_TABLE_LOSS &&
	       chunk->min_start != TS_ABSENT;
}

/* The largest end in a chunk with rows that did not end. */
static int read_last_end(struct ts_batch *batch, size_t index, const struct ts_chunk *chunk,
			 int64_t *ret_end, struct ts_error *err)
{
	const struct ts_table_info *info = ts_table_info(chunk->table);
	const int64_t *start, *duration;
	int64_t end = INT64_MIN;
	int rc;

	*ret_end = chunk->max_start;
	if (info->duration < 0)
		return TS_OK;
	rc = ts_batch_read(batch, index, UINT64_C(1) << info->start | UINT64_C(1) << info->duration,
			   err);
	if (rc)
		return rc;
	start = batch->columns[info->start];
	duration = batch->columns[info->duration];
	for (uint32_t row = 0; row < batch->rows; row++) {
		int64_t row_end = start[row];

		if (duration[row] > 0 &&
		    __builtin_add_overflow(start[row], duration[row], &row_end))
			row_end = INT64_MAX - 1;
		end = TS_MAX(end, row_end);
	}
	*ret_end = end;
	return TS_OK;
}

int ts_trace_range(struct ts_reader *reader, struct ts_trace_range *ret_range, struct ts_error *err)
{
	struct ts_trace_range range = { .from = INT64_MAX, .to = INT64_MIN };
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);
		int64_t end = chunk->max_end;

		if (!gives_time(chunk))
			continue;
		if (end == INT64_MAX)
			rc = read_last_end(batch, i, chunk, &end, err);
		range.from = TS_MIN(range.from, chunk->min_start);
		range.to = TS_MAX(range.to, end);
		range.any = true;
	}
	if (!rc)
		*ret_range = range.any ? range : (struct ts_trace_range){ 0 };
	return rc;
}

int64_t ts_trace_start(const struct ts_reader *reader)
{
	int64_t start = INT64_MAX;

	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (gives_time(chunk))
			start = TS_MIN(start, chunk->min_start);
	}
	return start == INT64_MAX ? 0 : start;
}

uint64_t ts_trace_entities(struct ts_reader *reader, enum ts_table_id table)
{
	uint64_t count = 0;
	size_t cursor = 0;
	int64_t id;

	while (ts_reader_entity_next(reader, table, &cursor, &id))
		count++;
	return count;
}

/* What is lost of a damaged trace or journal. Nobody knows how many events were in there. */
static bool is_damage(const char *what)
{
	return !strncmp(what, "bytes of ", strlen("bytes of ")) ||
	       !strncmp(what, "blocks of ", strlen("blocks of "));
}

/* Losses of stacks or names are shown, but are no missing events. */
static bool is_event(const char *what)
{
	int table = ts_table_by_name(what);

	return !strcmp(what, "events") || (table >= 0 && TS_TRACE_COUNTED & TS_TABLE_BIT(table));
}

static void add_losses(struct ts_reader *reader, const struct ts_batch *batch,
		       struct ts_trace_losses *losses)
{
	for (uint32_t row = 0; row < batch->rows; row++) {
		int64_t count = batch->columns[TS_COLUMN_OF(loss, count)][row];
		int64_t what = batch->columns[TS_COLUMN_OF(loss, what)][row];

		const char *name = ts_reader_string(reader, what).data;

		if (count == TS_ABSENT || (count > 0 && is_damage(name)))
			losses->unknown++;
		else if (count > 0 && is_event(name))
			losses->events += (uint64_t)count;
	}
}

static int read_losses(struct ts_reader *reader, struct ts_trace_losses *ret_losses,
		       struct ts_error *err)
{
	struct ts_trace_losses losses = { 0 };
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_LOSS)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_OF(loss, what) | TS_MASK_OF(loss, count), err);
		if (!rc)
			add_losses(reader, batch, &losses);
	}
	if (!rc)
		*ret_losses = losses;
	return rc;
}

static bool has_threads(struct ts_reader *reader, int64_t process)
{
	const struct ts_thread_row *thread;
	size_t cursor = 0;
	int64_t id;

	while ((thread = ts_reader_entity_next(reader, TS_TABLE_THREAD, &cursor, &id)))
		if (thread->process == process)
			return true;
	return false;
}

struct programs {
	struct ts_reader *reader;
	uint64_t count;
};

static void leave_out_recorder(void *context, struct ts_string value)
{
	struct programs *programs = context;
	long long pid = strtoll(value.data, NULL, 10);
	const struct ts_process_row *process;
	size_t cursor = 0;
	int64_t id;

	while ((process = ts_reader_entity_next(programs->reader, TS_TABLE_PROCESS, &cursor, &id)))
		if (process->pid == pid && !has_threads(programs->reader, id) && programs->count)
			programs->count--;
}

/* A recorder that stores figures about itself is a process of the trace, but nobody's program. */
static uint64_t count_programs(struct ts_reader *reader)
{
	struct programs programs = { reader, ts_trace_entities(reader, TS_TABLE_PROCESS) };

	ts_trace_meta(reader, "recorder_pid", leave_out_recorder, &programs);
	return programs.count;
}

int ts_trace_totals(struct ts_reader *reader, struct ts_trace_totals *ret_totals,
		    struct ts_error *err)
{
	struct ts_trace_losses lost;
	int rc = read_losses(reader, &lost, err);

	if (rc)
		return rc;
	*ret_totals = (struct ts_trace_totals){
		.events = count_events(reader),
		.sources = ts_trace_entities(reader, TS_TABLE_SOURCE),
		.processes = count_programs(reader),
		.threads = ts_trace_entities(reader, TS_TABLE_THREAD),
		.devices = ts_trace_entities(reader, TS_TABLE_DEVICE),
		.streams = ts_trace_entities(reader, TS_TABLE_STREAM),
		.lost = lost,
	};
	return TS_OK;
}
