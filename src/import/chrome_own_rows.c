/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "tracesmith" member that stands first in our own exports: rows of sources, processes,
 * threads and other things that events refer to. They are collected, so that their order does not
 * matter, then added; and they say which thread and which clock the events of the file belong to.
 */
#include "import/chrome.h"

void ts_chrome_own_init(struct ts_chrome *c)
{
	ts_arena_init(&c->own.arena);
	for (size_t i = 0; i < TS_TABLE_COUNT; i++)
		c->own.ends[i] = &c->own.rows[i];
}

void ts_chrome_own_release(struct ts_chrome *c)
{
	for (size_t i = 0; i < TS_TABLE_COUNT; i++) {
		ts_map_release(&c->own.ids[i]);
		ts_map_release(&c->own.by_id[i]);
	}
	ts_arena_release(&c->own.arena);
	free(c->own.sources);
	free(c->own.clocks);
	free(c->own.blob_ends);
	ts_map_release(&c->own.clock_index);
}

/* ---- reading ---- */

/*
 * "chrome": [pid, tid], the ids that events of this file use, and "id" of rows that have no such
 * column.
 */
static void read_extra(struct ts_chrome *c, const struct ts_chrome_raw *object,
		       struct ts_chrome_own_row *row)
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
		row->has_place = inner && !ts_chrome_read_id(c, &at, &row->pid, &good) && good &&
				 !ts_json_next(&at, ']', &inner) && inner &&
				 !ts_chrome_read_id(c, &at, &row->tid, &good) && good;
	}
}

int ts_chrome_read_own_row(struct ts_chrome *c, const struct ts_table_info *info)
{
	struct ts_chrome_own *own = &c->own;
	struct ts_chrome_own_row *row;
	struct ts_chrome_raw raw = { 0 };
	int rc;

	ts_json_skip_space(c->js);
	raw.at = c->js->next;
	rc = ts_json_skip(c->js);
	if (rc)
		return rc;
	raw.end = c->js->next;
	row = ts_arena_alloc(&own->arena, sizeof(*row) + info->column_count * sizeof(*row->cells));
	if (!row)
		return TS_ENOMEM;
	*row = (struct ts_chrome_own_row){ 0 };
	for (int i = 0; i < info->column_count; i++)
		row->cells[i] = info->columns[i].none;
	ts_chrome_set_columns(c, &raw, info, 0, row->cells);
	read_extra(c, &raw, row);
	if (*raw.at != '{' || (info->kind == TS_KIND_ENTITY && row->cells[0] <= 0)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_ROW, 1);
		return TS_OK;
	}
	*own->ends[info->id] = row;
	own->ends[info->id] = &row->next;
	return TS_OK;
}

/* ---- clocks ---- */

const struct ts_chrome_own_source *ts_chrome_own_source(const struct ts_chrome *c, int64_t id)
{
	uint64_t index;

	if (!ts_map_get(&c->own.by_id[TS_TABLE_SOURCE], (uint64_t)id, &index))
		return NULL;
	return &c->own.sources[index];
}

/* What the points of a clock's highest generation say; several are not converted. */
static int note_sync(struct ts_chrome *c, const struct ts_clock_sync_row *sync)
{
	struct ts_chrome_own *own = &c->own;
	struct ts_chrome_own_clock *clock;
	bool is_new;
	uint64_t *index = ts_map_insert(&own->clock_index, (uint64_t)sync->clock, &is_new);

	if (!index || ts_grow_array((void **)&own->clocks, &own->clock_capacity,
				    own->clock_count + 1, sizeof(*own->clocks)))
		return TS_ENOMEM;
	if (is_new) {
		*index = own->clock_count++;
		own->clocks[*index] =
			(struct ts_chrome_own_clock){ .generation = sync->generation };
	}
	clock = &own->clocks[*index];
	if (sync->generation < clock->generation)
		return TS_OK;
	clock->points = sync->generation == clock->generation ? clock->points + 1 : 1;
	clock->generation = sync->generation;
	if (__builtin_sub_overflow(sync->reference, sync->time, &clock->offset))
		clock->points++;
	return TS_OK;
}

static int note_source(struct ts_chrome *c, const struct ts_source_row *row)
{
	struct ts_chrome_own *own = &c->own;
	struct ts_chrome_own_source *source;
	uint64_t clock;

	if (ts_grow_array((void **)&own->sources, &own->source_capacity, own->source_count + 1,
			  sizeof(*own->sources)))
		return TS_ENOMEM;
	source = &own->sources[own->source_count];
	*source = (struct ts_chrome_own_source){ .id = row->id, .clock = (uint32_t)row->clock };
	if (ts_map_get(&own->clock_index, (uint64_t)row->clock, &clock)) {
		source->offset = own->clocks[clock].offset;
		/* Such a source is exported in trace time. */
		if (own->clocks[clock].points > 1)
			*source = (struct ts_chrome_own_source){ .id = row->id };
	}
	return ts_map_put(&own->by_id[TS_TABLE_SOURCE], (uint64_t)row->id, own->source_count++);
}

/* ---- who ---- */

/* Index of a row by id, or UINT32_MAX. */
static uint32_t index_of(const struct ts_chrome *c, enum ts_table_id table, int64_t id)
{
	uint64_t index;

	return ts_map_get(&c->own.by_id[table], (uint64_t)id, &index) ? (uint32_t)index
								      : UINT32_MAX;
}

static int note_process(struct ts_chrome *c, const struct ts_process_row *row)
{
	if (ts_grow_array((void **)&c->processes, &c->process_capacity, c->process_count + 1,
			  sizeof(*c->processes)))
		return TS_ENOMEM;
	c->processes[c->process_count] = (struct ts_chrome_process){ .row = *row };
	return ts_map_put(&c->own.by_id[TS_TABLE_PROCESS], (uint64_t)row->id, c->process_count++);
}

static int add_thread(struct ts_chrome *c, const struct ts_thread_row *row, int64_t source,
		      const struct ts_chrome_own_row *own_row)
{
	uint32_t process = index_of(c, TS_TABLE_PROCESS, row->process);

	if (process == UINT32_MAX) {
		struct ts_process_row none = ts_process_none;

		/* Only here and not in the trace: a process that the file does not describe. */
		none.id = row->process;
		none.source = source;
		if (note_process(c, &none))
			return TS_ENOMEM;
		process = (uint32_t)c->process_count - 1;
	}
	if (ts_grow_array((void **)&c->threads, &c->thread_capacity, c->thread_count + 1,
			  sizeof(*c->threads)))
		return TS_ENOMEM;
	c->threads[c->thread_count++] = (struct ts_chrome_thread){
		.row = *row,
		.process = process,
		.source = source ? source : c->processes[process].row.source,
	};
	if (!own_row->has_place)
		return TS_OK;
	return ts_chrome_adopt_thread(c, &own_row->pid, &own_row->tid,
				      (uint32_t)c->thread_count - 1);
}

static int note_thread(struct ts_chrome *c, const struct ts_chrome_own_row *own_row)
{
	const struct ts_thread_row *row = (const struct ts_thread_row *)own_row->cells;

	if (ts_map_put(&c->own.by_id[TS_TABLE_THREAD], (uint64_t)row->id, c->thread_count))
		return TS_ENOMEM;
	return add_thread(c, row, 0, own_row);
}

static int note_device(struct ts_chrome *c, const struct ts_device_row *row)
{
	if (ts_map_put(&c->own.by_id[TS_TABLE_DEVICE], (uint64_t)row->id, c->device_count))
		return TS_ENOMEM;
	return ts_chrome_adopt_device(c, row);
}

/* A stream that no thread shows has a place of its own: a thread that is not in the trace. */
static int note_stream(struct ts_chrome *c, const struct ts_chrome_own_row *own_row)
{
	const struct ts_stream_row *row = (const struct ts_stream_row *)own_row->cells;
	uint32_t stream, device = index_of(c, TS_TABLE_DEVICE, row->device);
	int rc = ts_map_put(&c->own.by_id[TS_TABLE_STREAM], (uint64_t)row->id, c->stream_count);

	if (!rc)
		rc = ts_chrome_adopt_stream(c, row, &stream);
	if (rc || !own_row->has_place || row->thread)
		return rc;
	rc = add_thread(c, &ts_thread_none,
			device == UINT32_MAX ? 0 : c->devices[device].row.source, own_row);
	if (!rc)
		c->threads[c->thread_count - 1].fixed_stream = stream + 1;
	return rc;
}

int64_t ts_chrome_source_of(const struct ts_chrome *c, const struct ts_table_info *info,
			    const int64_t *row)
{
	for (int i = 0; i < info->column_count; i++) {
		const char *refers = info->columns[i].refers;
		uint32_t index;

		if (info->columns[i].type != TS_COLUMN_REF || !row[i])
			continue;
		if (strcmp(refers, "source") == 0)
			return row[i];
		if (strcmp(refers, "process") == 0) {
			index = index_of(c, TS_TABLE_PROCESS, row[i]);
			if (index != UINT32_MAX)
				return c->processes[index].row.source;
		} else if (strcmp(refers, "thread") == 0) {
			index = index_of(c, TS_TABLE_THREAD, row[i]);
			if (index != UINT32_MAX)
				return c->threads[index].source;
		} else if (strcmp(refers, "device") == 0) {
			index = index_of(c, TS_TABLE_DEVICE, row[i]);
			if (index != UINT32_MAX)
				return c->devices[index].row.source;
		}
	}
	return info->id == TS_TABLE_SOURCE ? row[0] : 0;
}

/* ---- adding ---- */

/* Remembers a row by which events find their place. */
static int note_row(struct ts_chrome *c, enum ts_table_id table,
		    const struct ts_chrome_own_row *row)
{
	switch (table) {
	case TS_TABLE_SOURCE:
		return note_source(c, (const struct ts_source_row *)row->cells);
	case TS_TABLE_CLOCK_SYNC:
		return note_sync(c, (const struct ts_clock_sync_row *)row->cells);
	case TS_TABLE_PROCESS:
		return note_process(c, (const struct ts_process_row *)row->cells);
	case TS_TABLE_THREAD:
		return note_thread(c, row);
	case TS_TABLE_DEVICE:
		return note_device(c, (const struct ts_device_row *)row->cells);
	case TS_TABLE_STREAM:
		return note_stream(c, row);
	default:
		return TS_OK;
	}
}

static bool has_times(const struct ts_table_info *info, const int64_t *row)
{
	for (int i = 0; i < info->column_count; i++)
		if (info->columns[i].type == TS_COLUMN_TIME && row[i] != TS_ABSENT)
			return true;
	return false;
}

static int add_row(struct ts_chrome *c, const struct ts_table_info *info,
		   struct ts_chrome_own_row *row, int64_t number)
{
	const struct ts_chrome_own_source *source;
	int rc = note_row(c, (enum ts_table_id)info->id, row);

	if (rc)
		return rc;
	source = ts_chrome_own_source(c, ts_chrome_source_of(c, info, row->cells));
	ts_chrome_convert_times(info, source ? source->offset : 0, row->cells);
	/*
	 * A dictionary's rows are known by their place in the list, or by the "id" that they have.
	 */
	if (info->kind == TS_KIND_DICTIONARY)
		rc = ts_map_put(&c->own.ids[info->id],
				(uint64_t)(row->file_id > 0 ? row->file_id : number),
				ts_writer_rows(c->writer, (enum ts_table_id)info->id) + 1);
	/* To change the clock closes chunks: only where it matters. */
	ts_chrome_add_in_clock(c, has_times(info, row->cells) && source ? source->clock : c->clock,
			       (enum ts_table_id)info->id, row->cells, NULL);
	return rc;
}

int ts_chrome_add_own_rows(struct ts_chrome *c)
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

		for (struct ts_chrome_own_row *row = c->own.rows[order[i]]; row && !rc;
		     row = row->next)
			rc = add_row(c, info, row, ++number);
	}
	ts_chrome_place_times(c);
	return rc;
}

void ts_chrome_place_times(struct ts_chrome *c)
{
	for (size_t i = 0; i < c->thread_count; i++) {
		struct ts_chrome_thread *thread = &c->threads[i];
		const struct ts_chrome_own_source *source = ts_chrome_own_source(c, thread->source);

		thread->clock = source ? source->clock : 0;
		if (__builtin_sub_overflow(c->base_ns, source ? source->offset : 0, &thread->shift))
			thread->shift = 0;
	}
}
