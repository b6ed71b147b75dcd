/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads allocations and frees from traces, chunk by chunk. Arguments are looked up once per shape.
 */
#include "analyze/memory_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"

/* Bytes per MB in torch_trace. */
#define BYTES_OF_MB 1e6

/* Arguments of a "[memory]" instant. */
enum memory_arg { ADDRESS, BYTES, TOTAL, RESERVED, KIND, ID, ARGS };

static const char *const arg_keys[ARGS] = {
	[ADDRESS] = "Addr",          [BYTES] = "Bytes",
	[TOTAL] = "Total Allocated", [RESERVED] = "Total Reserved",
	[KIND] = "Device Type",      [ID] = "Device Id",
};

/* Index of each of these among a shape's values; -1: none. */
struct layout {
	int32_t positions[ARGS];
};

/* Selected time range of a rank. */
struct part {
	int64_t from, to;
};

struct reading {
	const struct ts_work *work;
	struct ts_memory_rows *out;
	uint32_t trace;
	struct ts_reader *reader;
	struct ts_batch *batch;
	uint32_t clock;                /* of the chunk */
	struct ts_map sources, clocks; /* ids of the trace to ranks */
	uint32_t first_rank;
	struct ts_map threads; /* id in the trace to index in the work */
	struct ts_map names;   /* string id to 1 if it is "[memory]" */
	struct ts_map shapes;  /* shape id to index in layouts */
	struct layout *layouts;
	size_t layout_count, layout_capacity;
	struct part *ranges; /* of each rank */
};

/* ---- selection ---- */

/*
 * By default other analyses skip the last step, whose commands may be missing from the trace. Its
 * allocations are not missing, so only an explicit selection counts here.
 */
static struct part part_of(const struct ts_work *work, const struct ts_work_rank *rank)
{
	const struct ts_work_options *options = &work->options;
	struct part part = { INT64_MIN, INT64_MAX };

	if (options->from_step != TS_ABSENT || options->to_step != TS_ABSENT) {
		part = (struct part){ INT64_MAX, INT64_MIN };
		for (uint32_t i = 0; i < rank->step_count; i++) {
			const struct ts_work_step *step = &work->steps[rank->first_step + i];

			part.from = TS_MIN(part.from, step->start);
			part.to = TS_MAX(part.to, step->end);
		}
	}
	if (options->from != TS_ABSENT)
		part.from = TS_MAX(part.from, options->from);
	if (options->to != TS_ABSENT)
		part.to = TS_MIN(part.to, options->to);
	return part;
}

static int find_ranges(struct reading *reading)
{
	const struct ts_work *work = reading->work;

	reading->ranges = ts_alloc_array(work->rank_count, sizeof(*reading->ranges));
	if (!reading->ranges)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->rank_count; i++)
		reading->ranges[i] = part_of(work, &work->ranks[i]);
	return TS_OK;
}

/* ---- rank and thread ---- */

/* By source, else by the chunk's clock, else the trace's first rank. */
static uint32_t rank_of_source(const struct reading *reading, int64_t source)
{
	uint64_t rank;

	if (source && ts_map_get(&reading->sources, (uint64_t)source, &rank))
		return (uint32_t)rank;
	if (ts_map_get(&reading->clocks, reading->clock, &rank))
		return (uint32_t)rank;
	return reading->first_rank;
}

static uint32_t rank_of_process(const struct reading *reading, int64_t process)
{
	const struct ts_process_row *row =
		ts_reader_entity(reading->reader, TS_TABLE_PROCESS, process);

	return rank_of_source(reading, row ? row->source : 0);
}

/* A thread without other activity is not in the work; its rank is that of its process. */
static void find_thread(struct reading *reading, int64_t id, struct ts_memory_row *row)
{
	const struct ts_thread_row *thread;
	uint64_t position;

	if (id && ts_map_get(&reading->threads, (uint64_t)id, &position)) {
		row->thread = (uint32_t)position;
		row->rank = reading->work->threads[position].rank;
		return;
	}
	thread = ts_reader_entity(reading->reader, TS_TABLE_THREAD, id);
	row->thread = TS_WORK_NONE;
	row->rank = rank_of_process(reading, thread ? thread->process : 0);
}

static int find_ranks(struct reading *reading)
{
	const struct ts_work *work = reading->work;

	ts_map_clear(&reading->sources);
	ts_map_clear(&reading->clocks);
	reading->first_rank = TS_WORK_NONE;
	for (uint32_t i = work->rank_count; i-- > 0;) {
		const struct ts_work_rank *rank = &work->ranks[i];

		if (rank->trace != reading->trace)
			continue;
		reading->first_rank = i;
		if (ts_map_put(&reading->sources, (uint64_t)rank->source, i) ||
		    ts_map_put(&reading->clocks, rank->clock, i))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int find_threads(struct reading *reading)
{
	const struct ts_work *work = reading->work;

	ts_map_clear(&reading->threads);
	for (uint32_t i = 0; i < work->thread_count; i++)
		if (work->ranks[work->threads[i].rank].trace == reading->trace &&
		    ts_map_put(&reading->threads, (uint64_t)work->threads[i].id, i))
			return TS_ENOMEM;
	return TS_OK;
}

static int add_row(struct reading *reading, const struct ts_memory_row *row)
{
	struct ts_memory_rows *out = reading->out;
	const struct part *part;

	if (row->rank == TS_WORK_NONE || row->time == TS_ABSENT)
		return TS_OK;
	part = &reading->ranges[row->rank];
	if (row->time < part->from || row->time > part->to)
		return TS_OK;
	if (ts_grow_array((void **)&out->rows, &out->capacity, out->count + 1, sizeof(*out->rows)))
		return TS_ENOMEM;
	out->rows[out->count] = *row;
	out->rows[out->count].order = out->count;
	out->count++;
	return TS_OK;
}

/* ---- "[memory]" instants ---- */

static void make_layout(struct reading *reading, int64_t id, struct layout *layout)
{
	const struct ts_shape *shape = ts_reader_shape(reading->reader, id);
	int32_t position = 0;

	memset(layout->positions, -1, sizeof(layout->positions));
	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		struct ts_string key;

		if (!ts_arg_has_value(field->type))
			continue;
		key = ts_reader_string(reading->reader, field->key);
		for (int arg = 0; arg < ARGS; arg++)
			if (field->type == TS_ARG_INT && !strcmp(key.data, arg_keys[arg]))
				layout->positions[arg] = position;
		position++;
	}
}

static const struct layout *layout_of(struct reading *reading, int64_t shape)
{
	bool is_new;
	uint64_t *position = ts_map_insert(&reading->shapes, (uint64_t)shape, &is_new);

	if (!position)
		return NULL;
	if (is_new) {
		if (ts_grow_array((void **)&reading->layouts, &reading->layout_capacity,
				  reading->layout_count + 1, sizeof(*reading->layouts)))
			return NULL;
		make_layout(reading, shape, &reading->layouts[reading->layout_count]);
		*position = reading->layout_count++;
	}
	return &reading->layouts[*position];
}

/* -1: no memory. */
static int is_memory_name(struct reading *reading, int64_t name)
{
	bool is_new;
	uint64_t *known = ts_map_insert(&reading->names, (uint64_t)name, &is_new);

	if (!known)
		return -1;
	if (is_new)
		*known = !strcmp(ts_reader_string(reading->reader, name).data, "[memory]");
	return *known != 0;
}

static int64_t arg_of(const struct reading *reading, const struct layout *layout, uint32_t row,
		      enum memory_arg arg)
{
	const struct ts_batch *batch = reading->batch;

	if (layout->positions[arg] < 0 || !batch->arg_values)
		return TS_ABSENT;
	return batch->arg_values[batch->arg_offsets[row] + (uint32_t)layout->positions[arg]];
}

static int take_mark(struct reading *reading, uint32_t r)
{
	const struct ts_batch *batch = reading->batch;
	const struct layout *layout =
		layout_of(reading, batch->columns[TS_COLUMN_OF(mark, shape)][r]);
	struct ts_memory_row row = { .pool = "" };

	if (!layout)
		return TS_ENOMEM;
	row.time = batch->columns[TS_COLUMN_OF(mark, start)][r];
	row.bytes = arg_of(reading, layout, r, BYTES);
	row.frees = row.bytes < 0 && row.bytes != TS_ABSENT;
	row.total = arg_of(reading, layout, r, TOTAL);
	if (row.bytes == TS_ABSENT && row.total == TS_ABSENT)
		return TS_OK;
	row.address = arg_of(reading, layout, r, ADDRESS);
	row.reserved = arg_of(reading, layout, r, RESERVED);
	row.kind = arg_of(reading, layout, r, KIND);
	row.id = arg_of(reading, layout, r, ID);
	if (row.kind == TS_ABSENT)
		row.kind = TS_MEMORY_DEVICE;
	find_thread(reading, batch->columns[TS_COLUMN_OF(mark, thread)][r], &row);
	return add_row(reading, &row);
}

static int take_marks(struct reading *reading)
{
	const int64_t *names = reading->batch->columns[TS_COLUMN_OF(mark, name)];

	for (uint32_t r = 0; r < reading->batch->rows; r++) {
		int found = is_memory_name(reading, names[r]);

		if (found < 0 || (found && take_mark(reading, r)))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- the other tables ---- */

static int take_allocation(struct reading *reading, uint32_t r)
{
	struct ts_allocation_row from;
	struct ts_memory_row row = { .kind = TS_MEMORY_HOST, .id = -1 };
	const struct ts_device_row *device;

	ts_batch_row(reading->batch, r, &from);
	row.time = from.start;
	row.address = from.address;
	row.bytes = from.bytes;
	row.frees = from.kind == TS_ALLOCATION_FREE;
	if (row.frees && row.bytes > 0)
		row.bytes = -row.bytes;
	row.total = from.total_bytes;
	row.reserved = from.reserved_bytes;
	row.pool = from.pool ? ts_reader_string(reading->reader, from.pool).data : "";
	if (from.device) {
		device = ts_reader_entity(reading->reader, TS_TABLE_DEVICE, from.device);
		row.kind = TS_MEMORY_DEVICE;
		row.id = device ? device->number : TS_ABSENT;
	}
	find_thread(reading, from.thread, &row);
	return add_row(reading, &row);
}

static int take_allocations(struct reading *reading)
{
	for (uint32_t r = 0; r < reading->batch->rows; r++)
		if (take_allocation(reading, r))
			return TS_ENOMEM;
	return TS_OK;
}

static int64_t bytes_of_mb(double mb)
{
	return isfinite(mb) ? ts_ns_of(mb * BYTES_OF_MB) : TS_ABSENT;
}

static int take_torch_rows(struct reading *reading)
{
	for (uint32_t r = 0; r < reading->batch->rows; r++) {
		struct ts_torch_trace_row from;
		struct ts_memory_row row = { .kind = TS_MEMORY_DEVICE, .id = TS_ABSENT };

		ts_batch_row(reading->batch, r, &from);
		row.time = from.start;
		row.pool = "torch_trace";
		row.address = row.bytes = TS_ABSENT;
		row.total = bytes_of_mb(from.allocated);
		row.reserved = bytes_of_mb(from.cached);
		find_thread(reading, from.thread, &row);
		if (row.thread == TS_WORK_NONE)
			row.rank = rank_of_process(reading, from.process);
		if (add_row(reading, &row))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static const struct {
	uint16_t table;
	uint64_t mask;
	int (*take)(struct reading *reading);
} tables[] = {
	{ TS_TABLE_MARK,
	  TS_MASK_OF(mark, start) | TS_MASK_OF(mark, thread) | TS_MASK_OF(mark, name) |
		  TS_MASK_OF(mark, shape),
	  take_marks },
	{ TS_TABLE_ALLOCATION,
	  TS_MASK_OF(allocation, start) | TS_MASK_OF(allocation, thread) |
		  TS_MASK_OF(allocation, device) | TS_MASK_OF(allocation, kind) |
		  TS_MASK_OF(allocation, address) | TS_MASK_OF(allocation, bytes) |
		  TS_MASK_OF(allocation, pool) | TS_MASK_OF(allocation, total_bytes) |
		  TS_MASK_OF(allocation, reserved_bytes),
	  take_allocations },
	{ TS_TABLE_TORCH_TRACE, TS_MASK_ALL, take_torch_rows },
};

/* ---- reading ---- */

static int read_chunk(struct reading *reading, size_t index, struct ts_error *err)
{
	const struct ts_chunk *chunk = ts_reader_chunk(reading->reader, index);

	reading->clock = chunk->clock;
	for (size_t i = 0; i < TS_ARRAY_SIZE(tables); i++) {
		int rc;

		if (chunk->table != tables[i].table)
			continue;
		rc = ts_batch_read(reading->batch, index, tables[i].mask, err);
		if (rc)
			return rc;
		if (tables[i].take(reading))
			return ts_error_set(err, TS_ENOMEM, "no memory for the allocations");
	}
	return TS_OK;
}

static int read_trace(struct reading *reading, uint32_t trace, struct ts_error *err)
{
	int rc;

	reading->trace = trace;
	reading->reader = reading->work->readers[trace];
	reading->batch = NULL;
	ts_map_clear(&reading->names);
	ts_map_clear(&reading->shapes);
	reading->layout_count = 0;
	if (find_ranks(reading) || find_threads(reading))
		return ts_error_set(err, TS_ENOMEM, "no memory for the allocations");
	rc = ts_batch_new(&reading->batch, reading->reader, err);
	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reading->reader); i++)
		rc = read_chunk(reading, i, err);
	ts_batch_free(reading->batch);
	return rc ? rc : ts_reader_status(reading->reader, err);
}

static int compare_positions(const struct ts_memory_row *a, const struct ts_memory_row *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->pool == b->pool ? 0 : strcmp(a->pool, b->pool);
}

bool ts_memory_same_location(const struct ts_memory_row *a, const struct ts_memory_row *b)
{
	return compare_positions(a, b) == 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct ts_memory_row *x = a, *y = b;
	int order = compare_positions(x, y);

	if (order)
		return order;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

int ts_memory_rows_init(struct ts_memory_rows *rows, const struct ts_work *work,
			struct ts_error *err)
{
	struct reading reading = { .work = work, .out = rows };
	int rc = TS_OK;

	*rows = (struct ts_memory_rows){ 0 };
	if (find_ranges(&reading))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the allocations");
	for (uint32_t trace = 0; !rc && trace < work->trace_count; trace++)
		rc = read_trace(&reading, trace, err);
	if (!rc && rows->count)
		ts_sort(rows->rows, rows->count, sizeof(*rows->rows), compare_rows);
	ts_map_release(&reading.sources);
	ts_map_release(&reading.clocks);
	ts_map_release(&reading.threads);
	ts_map_release(&reading.names);
	ts_map_release(&reading.shapes);
	free(reading.layouts);
	free(reading.ranges);
	return rc;
}

void ts_memory_rows_release(struct ts_memory_rows *rows)
{
	free(rows->rows);
	*rows = (struct ts_memory_rows){ 0 };
}
