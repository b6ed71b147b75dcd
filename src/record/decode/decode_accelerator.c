/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What backends inside a target tell of accelerators: calls into drivers, commands that devices
 * ran, clocks, losses, facts. Commands are in their device's own clock. Arguments that have a
 * column are named by the row's shape, as an import of Kineto has them, so that both are shown
 * alike and arrows are drawn.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "record/decode/decode_internal.h"

/* What is not known of a command's time is assumed to be this far off. */
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

/* What a row has beside the arguments of its site, in this order. Keys of columns are Kineto's. */
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
	row.result = (int64_t)event->result;
	row.shape = event->shape;
	if (event->correlation) {
		row.correlation = decode_correlation(decoder, area->process, event->correlation);
		row.arrow = TS_ARROW_OUT;
		row.shape = shape_with(decoder, event->shape, WITH_CALL_CORRELATION);
		/* One that failed gave no command. */
		if (event->result == 0)
			decode_wait_for_call(decoder, area, event->correlation);
	}
	row.stack = decode_event_stack(decoder, area, ring, event, row.start);
	ts_writer_add(decoder->writer, TS_TABLE_API_CALL, &row, event->values);
	return true;
}

static int64_t word_time(const struct decode_event *event, enum ts_live_gpu_op_word word)
{
	int64_t time = (int64_t)event->own[word];

	/* What is not in this range is no time, and sums of it would overflow. */
	return time > -DECODE_LATEST_NS && time < DECODE_LATEST_NS ? time : TS_ABSENT;
}

/* When it ran; what is not known is taken from the nearest time that is. False: none is. */
static bool set_times(const struct decode_event *event, struct ts_gpu_op_row *row)
{
	int64_t start = word_time(event, TS_LIVE_OP_START);
	int64_t end = word_time(event, TS_LIVE_OP_END);

	row->queued = word_time(event, TS_LIVE_OP_QUEUED);
	row->submitted = word_time(event, TS_LIVE_OP_SUBMITTED);
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

static int64_t or_absent(uint64_t size)
{
	return (uint32_t)size ? (int64_t)(uint32_t)size : TS_ABSENT;
}

static unsigned int set_sizes(const struct decode_event *event, struct ts_gpu_op_row *row)
{
	const uint64_t *own = event->own;
	unsigned int with = 0;

	row->grid_x = or_absent(own[TS_LIVE_OP_GRID_XY]);
	row->grid_y = or_absent(own[TS_LIVE_OP_GRID_XY] >> 32);
	row->grid_z = or_absent(own[TS_LIVE_OP_GRID_Z_BLOCK_X]);
	row->block_x = or_absent(own[TS_LIVE_OP_GRID_Z_BLOCK_X] >> 32);
	row->block_y = or_absent(own[TS_LIVE_OP_BLOCK_YZ]);
	row->block_z = or_absent(own[TS_LIVE_OP_BLOCK_YZ] >> 32);
	row->bytes = (int64_t)own[TS_LIVE_OP_BYTES] >= 0 ? (int64_t)own[TS_LIVE_OP_BYTES]
							 : TS_ABSENT;
	if (row->grid_x != TS_ABSENT && row->grid_y != TS_ABSENT && row->grid_z != TS_ABSENT)
		with |= WITH_GRID;
	if (row->block_x != TS_ABSENT && row->block_y != TS_ABSENT && row->block_z != TS_ABSENT)
		with |= WITH_BLOCK;
	if (row->bytes != TS_ABSENT)
		with |= WITH_BYTES | (row->duration > 0 ? WITH_BANDWIDTH : 0);
	return with;
}

/* What not every backend tells: of a kernel, and of the graph that it is of. */
static unsigned int set_more(struct ts_decoder *decoder, struct decode_area *area,
			     struct decode_ring *ring, const struct decode_event *event,
			     struct ts_gpu_op_row *row)
{
	const uint64_t *more = event->more;
	unsigned int with = 0;

	if (!more)
		return 0;
	row->registers = or_absent(more[TS_LIVE_OP_REGISTERS_SHARED]);
	if (row->registers != TS_ABSENT) {
		row->shared_bytes = (int64_t)(more[TS_LIVE_OP_REGISTERS_SHARED] >> 32);
		with |= WITH_REGISTERS | WITH_SHARED;
	}
	row->graph = or_absent(more[TS_LIVE_OP_GRAPH_STACK]);
	if (row->graph != TS_ABSENT)
		with |= WITH_GRAPH;
	if (more[TS_LIVE_OP_GRAPH_NODE] - 1 < INT64_MAX) {
		row->graph_node = (int64_t)more[TS_LIVE_OP_GRAPH_NODE];
		with |= WITH_GRAPH_NODE;
	}
	row->stack =
		decode_stack(decoder, area, ring, more[TS_LIVE_OP_GRAPH_STACK] >> 32, event->ns);
	return with;
}

/* The numbers that it waited for, as a JSON list. */
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

/* Adds the row with its arguments: those of the site, then what it waited for. */
static void add_op(struct ts_decoder *decoder, struct decode_area *area,
		   const struct decode_event *event, struct ts_gpu_op_row *row, unsigned int with)
{
	uint64_t what = event->own[TS_LIVE_OP_WHAT];
	const struct ts_shape *shape =
		event->shape ? ts_writer_shape_fields(decoder->writer, event->shape) : NULL;
	uint32_t count = shape ? TS_MIN(shape->value_count, TS_LIVE_FIELDS) : 0;
	int64_t values[TS_LIVE_FIELDS + 2];
	unsigned int listed = what >> 40 & 0xff, more = (unsigned int)(what >> 48);

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

/* The device and its clock: where nobody has said how that stands, by this command. */
static bool set_device(struct ts_decoder *decoder, struct decode_area *area,
		       const struct decode_event *event, struct ts_gpu_op_row *row,
		       uint32_t *ret_clock)
{
	uint32_t number = (uint32_t)event->own[TS_LIVE_OP_WHAT] & TS_LIVE_DEVICE_MASK;
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

static void set_place(struct ts_decoder *decoder, struct decode_area *area,
		      const struct decode_event *event, struct ts_gpu_op_row *row)
{
	uint32_t device = (uint32_t)event->own[TS_LIVE_OP_WHAT] & TS_LIVE_DEVICE_MASK;
	uint32_t stream = (uint32_t)event->own[TS_LIVE_OP_WHERE];
	uint32_t context = (uint32_t)(event->own[TS_LIVE_OP_WHERE] >> 32);
	const struct decode_stream *queue =
		decode_use_stream(decoder, area, device, stream, context);

	row->stream = queue ? queue->id : 0;
	row->context = context;
	row->process = area->process ? area->process->id : 0;
	row->kind = event->own[TS_LIVE_OP_WHAT] >> 24 & 0xff;
	row->copy_kind = event->own[TS_LIVE_OP_WHAT] >> 32 & 0xff;
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
	set_place(decoder, area, event, &row);
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
	uint32_t number = (uint32_t)decode_take_word(cursor) & TS_LIVE_DEVICE_MASK, length;
	uint64_t counter = decode_take_word(cursor);
	struct decode_clock_point point = { .device_ns = (int64_t)decode_take_word(cursor),
					    .uncertainty_ns = (int64_t)decode_take_word(cursor) };
	const char *method = decode_take_string(cursor, &length);

	if (cursor->bad)
		return false;
	point.host_ns = decode_time(decoder, area, counter);
	if (decode_use_device(decoder, area, number))
		decode_add_point(decoder, &decode_find_number(area, number)->clock, &point, method,
				 length, false);
	return true;
}

/* Things that would have been rows of what happened: the summary counts them. */
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
	uint64_t count = decode_take_word(cursor);
	uint32_t what_bytes, reason_bytes;
	const char *what = decode_take_string(cursor, &what_bytes);
	const char *reason = decode_take_string(cursor, &reason_bytes);
	struct ts_loss_row row = ts_loss_none;

	if (cursor->bad)
		return false;
	row.start = ns;
	row.source = decoder->source;
	row.process = area->process ? area->process->id : 0;
	row.what = decode_string(decoder, what, what_bytes);
	row.reason = decode_string(decoder, reason, reason_bytes);
	row.count = count > INT64_MAX ? TS_ABSENT : (int64_t)count;
	ts_writer_add(decoder->writer, TS_TABLE_LOSS, &row, NULL);
	if (count <= INT64_MAX && is_event(what, what_bytes))
		decoder->counts.lost += count;
	return true;
}

/* The value as it is where it is JSON, else as a JSON string. */
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
	row.source = decoder->source;
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

/* True where the same was said before; the time of saying it does not count. */
static bool is_known_fact(const struct decode_area *area, const uint64_t *record, uint32_t words)
{
	const uint64_t *known = (const uint64_t *)(const void *)area->facts.data;
	size_t count = area->facts.length / 8;

	for (size_t at = 0; at < count; at += (uint16_t)known[at])
		if ((uint16_t)known[at] == words &&
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
	for (size_t at = 0; at < count; at += (uint16_t)known[at])
		put_fact(decoder, area, known + at, (uint16_t)known[at]);
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
