/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes what backends report of accelerators: driver calls, device commands, clocks, losses,
 * facts. Commands keep their device's clock. The row's shape names the arguments that have a column
 * as Kineto does, so that recorded and imported traces look alike and arrows are drawn.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "record/decode/decode_internal.h"

/* Uncertainty of an assumed clock. */
#define ASSUMED_NS 1000000000

int64_t decode_correlation(struct ts_decoder *decoder, struct decode_process *process,
			   uint64_t number)
{
	if (!number)
		return TS_ABSENT;
	if (!process)
		return (int64_t)number;
	if (!process->correlations)
		process->correlations = ++decoder->next_correlations;
	return (int64_t)(number + ((uint64_t)(process->correlations - 1) << 32));
}

/* ---- shapes ---- */

#define COLUMN_ID(table, column) table##_##column##_id

/* The stable ids of columns, as constants. */
enum {
#define TS_COLUMN(table, id, column, type, refers, none, doc) COLUMN_ID(table, column) = (id),
#include <tracesmith/schema.def>
};

/* Arguments of a row besides those of its site, in this order. Keys of columns are Kineto's. */
enum {
	WITH_CALL_CORRELATION = 1 << 0,
	WITH_DEVICE = 1 << 1,
	WITH_CONTEXT = 1 << 2,
	WITH_STREAM = 1 << 3,
	WITH_CORRELATION = 1 << 4,
	WITH_GRID = 1 << 5,
	WITH_BLOCK = 1 << 6,
	WITH_BYTES = 1 << 7,
	WITH_BANDWIDTH = 1 << 8,
	WITH_REGISTERS = 1 << 9,
	WITH_SHARED = 1 << 10,
	WITH_GRAPH = 1 << 11,
	WITH_GRAPH_NODE = 1 << 12,
	WITH_WAITS = 1 << 13,
	WITH_MORE_WAITS = 1 << 14,
};

static const struct {
	const char *key;
	uint16_t column;
	uint8_t type;
} additions[] = {
	{ "correlation", COLUMN_ID(api_call, correlation), TS_ARG_COLUMN },
	{ "device", TS_COMPUTED_DEVICE, TS_ARG_COLUMN },
	{ "context", COLUMN_ID(gpu_op, context), TS_ARG_COLUMN },
	{ "stream", TS_COMPUTED_STREAM, TS_ARG_COLUMN },
	{ "correlation", COLUMN_ID(gpu_op, correlation), TS_ARG_COLUMN },
	{ "grid", TS_COMPUTED_GRID, TS_ARG_COLUMN },
	{ "block", TS_COMPUTED_BLOCK, TS_ARG_COLUMN },
	{ "bytes", COLUMN_ID(gpu_op, bytes), TS_ARG_COLUMN },
	{ "memory bandwidth (GB/s)", TS_COMPUTED_BANDWIDTH, TS_ARG_COLUMN },
	{ "registers per thread", COLUMN_ID(gpu_op, registers), TS_ARG_COLUMN },
	{ "shared memory", COLUMN_ID(gpu_op, shared_bytes), TS_ARG_COLUMN },
	{ "graph id", COLUMN_ID(gpu_op, graph), TS_ARG_COLUMN },
	{ "graph node id", COLUMN_ID(gpu_op, graph_node), TS_ARG_COLUMN },
	{ "waits_for", 0, TS_ARG_JSON },
	{ "waits_not_listed", 0, TS_ARG_INT },
};

#define MOST_FIELDS (TS_LIVE_FIELDS + TS_ARRAY_SIZE(additions))

static uint32_t make_shape(struct ts_decoder *decoder, uint32_t base, unsigned int with)
{
	const struct ts_shape *shape = base ? ts_writer_shape_fields(decoder->writer, base) : NULL;
	struct ts_field fields[MOST_FIELDS];
	uint32_t count = 0;

	for (uint32_t i = 0; shape && i < shape->field_count && count < TS_LIVE_FIELDS; i++)
		fields[count++] = shape->fields[i];
	for (size_t i = 0; i < TS_ARRAY_SIZE(additions); i++)
		if (with >> i & 1)
			fields[count++] = (struct ts_field){
				.key = decode_text(decoder, additions[i].key),
				.type = additions[i].type,
				.column = additions[i].column,
			};
	return ts_writer_shape(decoder->writer, fields, count);
}

static uint32_t shape_with(struct ts_decoder *decoder, uint32_t base, unsigned int with)
{
	uint64_t shape;

	if (TS_LIKELY(ts_pairmap_get(&decoder->shapes, base, with, &shape)))
		return (uint32_t)shape;
	shape = make_shape(decoder, base, with);
	if (ts_pairmap_put(&decoder->shapes, base, with, shape))
		decode_no_memory(decoder);
	return (uint32_t)shape;
}

/* ---- events ---- */

bool decode_call(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		 const struct decode_event *event)
{
	struct ts_api_call_row row = ts_api_call_none;

	row.start = decode_span(decoder, area, event, &row.duration);
	row.thread = event->thread->id;
	row.name = event->name;
	row.category = event->category;
	row.result = event->result;
	row.shape = event->shape;
	if (event->correlation) {
		row.correlation = decode_correlation(decoder, area->process, event->correlation);
		row.arrow = TS_ARROW_OUT;
		row.shape = shape_with(decoder, event->shape, WITH_CALL_CORRELATION);
		/* A failed call has no command. */
		if (event->result == 0)
			decode_wait_for_call(decoder, area, event->correlation);
	}
	row.stack = decode_event_stack(decoder, area, ring, event, row.start);
	ts_writer_add(decoder->writer, TS_TABLE_API_CALL, &row, event->values);
	return true;
}

static int64_t valid_time(int64_t time)
{
	/* Sums of times outside this range would overflow. */
	return time > -DECODE_LATEST_NS && time < DECODE_LATEST_NS ? time : TS_ABSENT;
}

/* Sets the times of a command. Unknown times get the nearest known one. False: none is known. */
static bool set_times(const struct decode_event *event, struct ts_gpu_op_row *row)
{
	int64_t start = valid_time(event->op->start);
	int64_t end = valid_time(event->op->end);

	row->queued = valid_time(event->op->queued);
	row->submitted = valid_time(event->op->submitted);
	if (start == TS_ABSENT)
		start = end != TS_ABSENT              ? end
			: row->submitted != TS_ABSENT ? row->submitted
						      : row->queued;
	if (start == TS_ABSENT)
		return false;
	row->start = start;
	row->duration = end == TS_ABSENT || end < start ? 0 : end - start;
	return true;
}

static int64_t or_absent(uint32_t size)
{
	return size ? (int64_t)size : TS_ABSENT;
}

static unsigned int set_sizes(const struct decode_event *event, struct ts_gpu_op_row *row)
{
	const struct ts_live_gpu_op *op = event->op;
	unsigned int with = 0;

	row->grid_x = or_absent(op->grid[0]);
	row->grid_y = or_absent(op->grid[1]);
	row->grid_z = or_absent(op->grid[2]);
	row->block_x = or_absent(op->block[0]);
	row->block_y = or_absent(op->block[1]);
	row->block_z = or_absent(op->block[2]);
	row->bytes = op->bytes >= 0 ? op->bytes : TS_ABSENT;
	if (row->grid_x != TS_ABSENT && row->grid_y != TS_ABSENT && row->grid_z != TS_ABSENT)
		with |= WITH_GRID;
	if (row->block_x != TS_ABSENT && row->block_y != TS_ABSENT && row->block_z != TS_ABSENT)
		with |= WITH_BLOCK;
	if (row->bytes != TS_ABSENT)
		with |= WITH_BYTES | (row->duration > 0 ? WITH_BANDWIDTH : 0);
	return with;
}

/* Sets what not every backend reports: properties of a kernel, and its graph. */
static unsigned int set_more(struct ts_decoder *decoder, struct decode_area *area,
			     struct decode_ring *ring, const struct decode_event *event,
			     struct ts_gpu_op_row *row)
{
	const struct ts_live_gpu_op_more *more = event->more;
	unsigned int with = 0;

	if (!more)
		return 0;
	row->registers = or_absent(more->registers);
	if (row->registers != TS_ABSENT) {
		row->shared_bytes = more->shared_bytes;
		with |= WITH_REGISTERS | WITH_SHARED;
	}
	row->graph = or_absent(more->graph);
	if (row->graph != TS_ABSENT)
		with |= WITH_GRAPH;
	if (more->graph_node - 1 < INT64_MAX) {
		row->graph_node = (int64_t)more->graph_node;
		with |= WITH_GRAPH_NODE;
	}
	row->stack = decode_stack(decoder, area, ring, more->stack, event->ns);
	return with;
}

/* The correlations that a command waited for, as a JSON list. */
static int64_t waits_text(struct ts_decoder *decoder, struct decode_process *process,
			  const uint64_t *waits, unsigned int count)
{
	struct ts_text *out = &decoder->scratch;

	ts_text_clear(out);
	for (unsigned int i = 0; i < count; i++) {
		int64_t wait = decode_correlation(decoder, process, waits[i]);

		ts_text_append_char(out, i ? ',' : '[');
		ts_text_append_int(out, wait == TS_ABSENT ? 0 : wait);
	}
	ts_text_append_char(out, ']');
	if (ts_text_status(out)) {
		decode_no_memory(decoder);
		return 0;
	}
	return ts_writer_string(decoder->writer, out->data, out->length);
}

/* Adds the row with its arguments: those of the site, then the waits. */
static void add_op(struct ts_decoder *decoder, struct decode_area *area,
		   const struct decode_event *event, struct ts_gpu_op_row *row, unsigned int with)
{
	const struct ts_shape *shape =
		event->shape ? ts_writer_shape_fields(decoder->writer, event->shape) : NULL;
	uint32_t count = shape ? TS_MIN(shape->value_count, TS_LIVE_FIELDS) : 0;
	int64_t values[TS_LIVE_FIELDS + 2];
	unsigned int listed = event->op->waits, more = event->op->unlisted_waits;

	if (count)
		memcpy(values, event->values, count * sizeof(*values));
	if (listed) {
		with |= WITH_WAITS;
		values[count++] = waits_text(decoder, area->process, event->waits, listed);
	}
	if (more) {
		with |= WITH_MORE_WAITS;
		values[count++] = more;
	}
	row->shape = shape_with(decoder, event->shape, with);
	ts_writer_add(decoder->writer, TS_TABLE_GPU_OP, row, values);
}

/* Sets the device and its clock; an unknown clock is assumed from this command. */
static bool set_device(struct ts_decoder *decoder, struct decode_area *area,
		       const struct decode_event *event, struct ts_gpu_op_row *row,
		       uint32_t *ret_clock)
{
	uint32_t number = ts_live_device_of(event->op->device_kind);
	const struct decode_device *device = decode_use_device(decoder, area, number);
	struct decode_device_clock *clock;

	if (!device)
		return false;
	clock = &decode_find_number(area, number)->clock;
	if (TS_UNLIKELY(!clock->count)) {
		struct decode_clock_point point = { .host_ns = event->ns,
						    .device_ns = row->start + row->duration,
						    .uncertainty_ns = ASSUMED_NS };

		decode_add_point(decoder, clock, &point, "assumed", 7, true);
	}
	decode_use_clock(decoder, clock);
	row->device = device->id;
	*ret_clock = clock->id;
	return true;
}

static void set_entities(struct ts_decoder *decoder, struct decode_area *area,
			 const struct decode_event *event, struct ts_gpu_op_row *row)
{
	const struct ts_live_gpu_op *op = event->op;
	const struct decode_stream *queue = decode_use_stream(
		decoder, area, ts_live_device_of(op->device_kind), op->stream, op->context);

	row->stream = queue ? queue->id : 0;
	row->context = op->context;
	row->process = area->process ? area->process->id : 0;
	row->kind = ts_live_kind_of(op->device_kind);
	row->copy_kind = op->copy_kind;
	if (row->kind > TS_GPU_OP_COLLECTIVE)
		row->kind = TS_GPU_OP_OTHER;
	if (row->copy_kind > TS_COPY_PEER_TO_PEER)
		row->copy_kind = TS_COPY_UNKNOWN;
}

bool decode_gpu_op(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		   const struct decode_event *event)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;
	unsigned int with = WITH_DEVICE | WITH_CONTEXT | WITH_STREAM;
	uint32_t clock;

	decode_forget_call(decoder, area, event->correlation);
	if (!set_times(event, &row)) {
		decode_lose(decoder, ring, LOSS_NO_TIME, 1, event->ns, event->ns);
		return false;
	}
	if (!set_device(decoder, area, event, &row, &clock)) {
		decode_lose(decoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	set_entities(decoder, area, event, &row);
	row.name = event->name;
	row.category = event->category;
	with |= set_sizes(event, &row) | set_more(decoder, area, ring, event, &row);
	if (event->correlation) {
		row.correlation = decode_correlation(decoder, area->process, event->correlation);
		row.arrow = TS_ARROW_IN;
		with |= WITH_CORRELATION;
	}
	ts_writer_set_clock(decoder->writer, clock);
	add_op(decoder, area, event, &row, with);
	ts_writer_set_clock(decoder->writer, DECODE_CLOCK_OF_EVENTS);
	return true;
}

/* ---- clocks, losses, facts ---- */

static bool clock_record(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_cursor *cursor)
{
	struct decode_clock_point point;
	struct ts_live_device_clock clock;
	uint32_t number, length;
	const char *method;

	decode_take(cursor, &clock, sizeof(clock));
	method = decode_take_string(cursor, &length);
	if (cursor->bad)
		return false;
	number = clock.device & TS_LIVE_DEVICE_MASK;
	point = (struct decode_clock_point){ .host_ns = decode_time(decoder, area, clock.counter),
					     .device_ns = clock.device_ns,
					     .uncertainty_ns = clock.uncertainty_ns };
	if (decode_use_device(decoder, area, number))
		decode_add_point(decoder, &decode_find_number(area, number)->clock, &point, method,
				 length, false);
	return true;
}

/* True if what was lost would have been an event, which the summary counts. */
static bool is_event(const char *what, uint32_t bytes)
{
	static const char *const events[] = { "events", "gpu_op", "slice" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(events); i++)
		if (bytes == strlen(events[i]) && !memcmp(what, events[i], bytes))
			return true;
	return false;
}

static bool lost_record(struct ts_decoder *decoder, struct decode_area *area, int64_t ns,
			struct decode_cursor *cursor)
{
	struct ts_loss_row row = ts_loss_none;
	uint32_t what_bytes, reason_bytes;
	const char *what, *reason;
	struct ts_live_lost lost;

	decode_take(cursor, &lost, sizeof(lost));
	what = decode_take_string(cursor, &what_bytes);
	reason = decode_take_string(cursor, &reason_bytes);
	if (cursor->bad)
		return false;
	row.start = ns;
	row.source = decode_source_of(decoder, area->process);
	row.process = area->process ? area->process->id : 0;
	row.what = decode_string(decoder, what, what_bytes);
	row.reason = decode_string(decoder, reason, reason_bytes);
	row.count = lost.count > INT64_MAX ? TS_ABSENT : (int64_t)lost.count;
	ts_writer_add(decoder->writer, TS_TABLE_LOSS, &row, NULL);
	if (lost.count <= INT64_MAX && is_event(what, what_bytes))
		decoder->counts.lost += lost.count;
	return true;
}

/* Writes the value unchanged if it is JSON, otherwise as a JSON string. */
static void fact_row(struct ts_decoder *decoder, const struct decode_area *area, const char *key,
		     size_t key_bytes, const char *value, size_t value_bytes)
{
	TS_SCOPED(ts_text) json = { 0 };
	struct ts_meta_row row = ts_meta_none;
	struct ts_json js;

	ts_json_init(&js, value, value_bytes, true);
	if (ts_json_minify(&js, &json) || ts_json_peek(&js) >= 0) {
		ts_text_clear(&json);
		ts_text_append_json(&json, value, value_bytes);
	}
	if (ts_text_status(&json)) {
		decode_no_memory(decoder);
		return;
	}
	row.source = decode_source_of(decoder, area->process);
	row.process = area->process ? area->process->id : 0;
	row.key = decode_string(decoder, key, key_bytes);
	row.value = decode_string(decoder, json.data, json.length);
	ts_writer_add(decoder->writer, TS_TABLE_META, &row, NULL);
}

static bool put_fact(struct ts_decoder *decoder, const struct decode_area *area,
		     const uint64_t *record, uint32_t words)
{
	struct decode_cursor cursor = { .next = record + 2, .end = record + words };
	uint32_t key_bytes, value_bytes;
	const char *key = decode_take_string(&cursor, &key_bytes);
	const char *value = decode_take_string(&cursor, &value_bytes);

	if (!cursor.bad)
		fact_row(decoder, area, key, key_bytes, value, value_bytes);
	return !cursor.bad;
}

/* True if the same fact was stored before, at any time. */
static bool is_known_fact(const struct decode_area *area, const uint64_t *record, uint32_t words)
{
	const uint64_t *known = (const uint64_t *)(const void *)area->facts.data;
	size_t count = area->facts.length / 8;

	for (size_t at = 0; at < count; at += ts_live_head_words(known[at]))
		if (ts_live_head_words(known[at]) == words &&
		    memcmp(known + at + 2, record + 2, (words - 2) * 8) == 0)
			return true;
	return false;
}

static bool fact_record(struct ts_decoder *decoder, struct decode_area *area,
			const uint64_t *record, uint32_t words)
{
	if (is_known_fact(area, record, words))
		return true;
	if (area->facts.length + words * 8 <= DECODE_AREA_FACT_BYTES)
		ts_text_append(&area->facts, record, words * 8);
	if (ts_text_status(&area->facts))
		decode_no_memory(decoder);
	return put_fact(decoder, area, record, words);
}

void decode_facts(struct ts_decoder *decoder, struct decode_area *area)
{
	const uint64_t *known = (const uint64_t *)(const void *)area->facts.data;
	size_t count = area->facts.length / 8;

	if (count && area->process && area->process->epoch != decoder->epoch)
		decode_write_process(decoder, area->process);
	for (size_t at = 0; at < count; at += ts_live_head_words(known[at]))
		put_fact(decoder, area, known + at, ts_live_head_words(known[at]));
}

bool decode_accelerator_record(struct ts_decoder *decoder, struct decode_area *area,
			       const struct decode_event *event)
{
	struct decode_cursor cursor = { .next = event->record + 2,
					.end = event->record + event->words };
	int64_t ns = decode_time(decoder, area, event->record[1]);

	switch (event->kind) {
	case TS_LIVE_STREAM_IS:
		return decode_stream_record(decoder, area, &cursor);
	case TS_LIVE_DEVICE_CLOCK:
		return clock_record(decoder, area, &cursor);
	case TS_LIVE_LOST:
		return lost_record(decoder, area, ns, &cursor);
	default:
		return fact_record(decoder, area, event->record, event->words);
	}
}

void decode_free_accelerator(struct decode_area *area)
{
	free(TS_STEAL(area->streams));
	area->stream_count = area->stream_capacity = 0;
	ts_pairmap_release(&area->stream_index);
	decode_free_calls(area);
	ts_text_release(&area->facts);
}
