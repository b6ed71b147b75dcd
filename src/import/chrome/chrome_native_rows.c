/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leading "tracesmith" member of TraceSmith exports: rows of sources, processes, threads and
 * other entities that events refer to. They are collected first, so that their order does not
 * matter, then added; they define the thread and clock of the events.
 */
#include "import/chrome/chrome_import.h"

void ts_chrome_native_init(struct ts_chrome *c)
{
	ts_arena_init(&c->native.arena);
	for (size_t i = 0; i < TS_TABLE_COUNT; i++)
		c->native.ends[i] = &c->native.rows[i];
}

void ts_chrome_native_release(struct ts_chrome *c)
{
	ts_native_rows_release(&c->native.shared);
	ts_map_release(&c->native.process_index);
	ts_arena_release(&c->native.arena);
}

/* ---- reading ---- */

/*
 * "chrome": [pid, tid], the ids used by events of this file, and "id" of rows without such a
 * column.
 */
static void read_extra(struct ts_chrome *c, const struct ts_chrome_raw *object,
		       struct ts_chrome_native_row *row)
{
	struct ts_json_string key = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more, inner, good;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		struct ts_json at = ts_chrome_reopen(&value);

		if (ts_json_string_is(&key, "id") && !ts_chrome_scan_int(&at, &row->file_id))
			row->file_id = 0;
		if (!ts_json_string_is(&key, "chrome"))
			continue;
		at = ts_chrome_open(&value, '[', &inner);
		row->has_entity = inner && !ts_chrome_read_id(c, &at, &row->pid, &good) && good &&
				  !ts_json_next(&at, ']', &inner) && inner &&
				  !ts_chrome_read_id(c, &at, &row->tid, &good) && good;
	}
}

int ts_chrome_read_native_row(struct ts_chrome *c, const struct ts_table_info *info)
{
	struct ts_chrome_native *native = &c->native;
	struct ts_chrome_native_row *row;
	struct ts_chrome_raw raw = { 0 };
	int rc;

	ts_json_skip_space(c->js);
	raw.at = c->js->next;
	rc = ts_json_skip(c->js);
	if (rc)
		return rc;
	raw.end = c->js->next;
	row = ts_arena_alloc(&native->arena,
			     sizeof(*row) + info->column_count * sizeof(*row->cells));
	if (!row)
		return TS_ENOMEM;
	*row = (struct ts_chrome_native_row){ 0 };
	for (int i = 0; i < info->column_count; i++)
		row->cells[i] = info->columns[i].none;
	ts_chrome_set_columns(c, &raw, info, 0, row->cells);
	read_extra(c, &raw, row);
	if (*raw.at != '{' || (info->kind == TS_KIND_ENTITY && row->cells[0] <= 0)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_ROW, 1);
		return TS_OK;
	}
	*native->ends[info->id] = row;
	native->ends[info->id] = &row->next;
	return TS_OK;
}

/* ---- who ---- */

static int note_process(struct ts_chrome *c, const struct ts_process_row *row)
{
	if (ts_grow_array((void **)&c->processes, &c->process_capacity, c->process_count + 1,
			  sizeof(*c->processes)))
		return TS_ENOMEM;
	c->processes[c->process_count] = (struct ts_chrome_process){ .row = *row };
	return ts_map_put(&c->native.process_index, (uint64_t)row->id, c->process_count++);
}

static int add_thread(struct ts_chrome *c, const struct ts_thread_row *row, int64_t source,
		      const struct ts_chrome_native_row *native_row)
{
	uint64_t process;

	if (!ts_map_get(&c->native.process_index, (uint64_t)row->process, &process)) {
		struct ts_process_row none = ts_process_none;

		/* Not in the trace: a process that the file does not describe. */
		none.id = row->process;
		none.source = source;
		if (note_process(c, &none))
			return TS_ENOMEM;
		process = c->process_count - 1;
	}
	if (ts_grow_array((void **)&c->threads, &c->thread_capacity, c->thread_count + 1,
			  sizeof(*c->threads)))
		return TS_ENOMEM;
	c->threads[c->thread_count++] = (struct ts_chrome_thread){
		.row = *row,
		.process = (uint32_t)process,
		.source = source ? source : c->processes[process].row.source,
	};
	if (!native_row->has_entity)
		return TS_OK;
	return ts_chrome_adopt_thread(c, &native_row->pid, &native_row->tid,
				      (uint32_t)c->thread_count - 1);
}

/* A stream that no thread shows gets a pseudo thread that is not in the trace. */
static int note_stream(struct ts_chrome *c, const struct ts_chrome_native_row *native_row,
		       int64_t source)
{
	const struct ts_stream_row *row = (const struct ts_stream_row *)native_row->cells;
	uint32_t stream;
	int rc = ts_chrome_adopt_stream(c, row, &stream);

	if (rc || !native_row->has_entity || row->thread)
		return rc;
	rc = add_thread(c, &ts_thread_none, source, native_row);
	if (!rc)
		c->threads[c->thread_count - 1].fixed_stream = stream + 1;
	return rc;
}

/* ---- adding ---- */

/* Records a row that events refer to. */
static int note_row(struct ts_chrome *c, const struct ts_table_info *info,
		    const struct ts_chrome_native_row *row)
{
	int64_t source = ts_native_rows_source_of(&c->native.shared, info, row->cells);
	int rc = ts_native_rows_note(&c->native.shared, info, source, row->cells);

	if (rc)
		return rc;
	switch (info->id) {
	case TS_TABLE_PROCESS:
		return note_process(c, (const struct ts_process_row *)row->cells);
	case TS_TABLE_THREAD:
		return add_thread(c, (const struct ts_thread_row *)row->cells, 0, row);
	case TS_TABLE_DEVICE:
		return ts_chrome_adopt_device(c, (const struct ts_device_row *)row->cells);
	case TS_TABLE_STREAM:
		return note_stream(c, row, source);
	default:
		return TS_OK;
	}
}

static int add_row(struct ts_chrome *c, const struct ts_table_info *info,
		   struct ts_chrome_native_row *row, int64_t number)
{
	int rc = note_row(c, info, row);

	if (rc)
		return rc;
	ts_chrome_native_add(c, info, row->cells, NULL);
	if (info->kind != TS_KIND_DICTIONARY)
		return TS_OK;
	/* Identified by its position in the list, or by its "id". */
	return ts_native_rows_set_id(
		&c->native.shared, (enum ts_table_id)info->id,
		row->file_id > 0 ? row->file_id : number,
		(int64_t)ts_writer_rows(c->writer, (enum ts_table_id)info->id));
}

int ts_chrome_add_native_rows(struct ts_chrome *c)
{
	static const enum ts_table_id order[] = {
		TS_TABLE_CLOCK_SYNC, TS_TABLE_SOURCE,  TS_TABLE_HOST,
		TS_TABLE_PROCESS,    TS_TABLE_THREAD,  TS_TABLE_DEVICE,
		TS_TABLE_STREAM,     TS_TABLE_MAPPING, TS_TABLE_META,
	};
	int rc = TS_OK;

	for (size_t i = 0; i < TS_ARRAY_SIZE(order) && !rc; i++) {
		const struct ts_table_info *info = ts_table_info(order[i]);
		int64_t number = 0;

		for (struct ts_chrome_native_row *row = c->native.rows[order[i]]; row && !rc;
		     row = row->next)
			rc = add_row(c, info, row, ++number);
	}
	ts_chrome_shift_times(c);
	return rc;
}

void ts_chrome_shift_times(struct ts_chrome *c)
{
	for (size_t i = 0; i < c->thread_count; i++) {
		struct ts_chrome_thread *thread = &c->threads[i];
		int64_t offset;

		thread->clock = ts_native_rows_clock(&c->native.shared, thread->source, &offset);
		if (__builtin_sub_overflow(c->base_ns, offset, &thread->shift))
			thread->shift = 0;
	}
}
