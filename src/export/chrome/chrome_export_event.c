/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as Chrome events. Whatever the standard members and arguments of an event do not express
 * goes into a "tracesmith" member, so that an import restores the same row.
 */
#include <string.h>

#include "base/memory.h"
#include "base/ns.h"
#include "export/chrome/chrome_export.h"
#include "model/kineto_names.h"

/* A row being written. */
struct event {
	struct ts_chrome_export *x;
	struct ts_row row;
	const struct ts_shape *shape;
	const struct ts_batch *batch;
	uint32_t number;  /* of the row in the batch */
	uint64_t covered; /* columns that an import can restore */
	bool no_thread;   /* pid and tid are for viewers only */
};

void ts_chrome_begin_event(struct ts_chrome_export *x)
{
	ts_text_append_str(&x->out, x->first_event ? "\n{" : ",\n{");
	x->first_event = false;
}

/* "key":"text", if the string is there */
static void put_string(struct event *event, const char *key, int64_t string)
{
	if (!string)
		return;
	ts_text_append_str(&event->x->out, key);
	ts_json_row_string(event->x->reader, &event->x->out, string);
	ts_text_append_char(&event->x->out, ',');
}

static void put_int(struct event *event, const char *key, int64_t value)
{
	ts_text_append_str(&event->x->out, key);
	ts_text_append_int(&event->x->out, value);
	ts_text_append_char(&event->x->out, ',');
}

static void put_us(struct event *event, const char *key, int64_t ns)
{
	ts_text_append_str(&event->x->out, key);
	ts_text_append_us(&event->x->out, ns);
	ts_text_append_char(&event->x->out, ',');
}

static void put_time(struct event *event, int64_t time)
{
	int64_t relative;

	/* Overflows only in crafted traces. */
	if (__builtin_sub_overflow(time, event->x->base_ns, &relative))
		relative = time;
	put_us(event, "\"ts\":", relative);
}

/* An id as in its source: scalars as "id", {"local":..} and similar as "id2". */
static void put_id(struct event *event, int64_t json)
{
	struct ts_string text;

	if (!json)
		return;
	text = ts_reader_string(event->x->reader, json);
	ts_text_append_str(&event->x->out, *text.data == '{' ? "\"id2\":" : "\"id\":");
	ts_json_row_raw(event->x->reader, &event->x->out, json);
	ts_text_append_char(&event->x->out, ',');
}

static void put_phase(struct event *event, const char *phase, int64_t category)
{
	ts_chrome_begin_event(event->x);
	ts_text_append_str(&event->x->out, "\"ph\":");
	ts_text_append_json(&event->x->out, phase, strlen(phase));
	ts_text_append_char(&event->x->out, ',');
	put_string(event, "\"cat\":", category);
}

/* Phase, name, category, track and time: the start of every event. */
static void put_head(struct event *event, const char *phase, int64_t name, int64_t category,
		     const struct ts_chrome_track *track, int64_t time)
{
	put_phase(event, phase, category);
	/* Viewers fail on events without a name; an import treats an empty one as none. */
	if (name)
		put_string(event, "\"name\":", name);
	else
		ts_text_append_str(&event->x->out, "\"name\":\"\",");
	ts_chrome_put_track(event->x, track);
	put_time(event, time);
}

/* Arguments, extra members, the stack, and the remaining columns. */
static void put_tail(struct event *event, int64_t stack, const char *table)
{
	struct ts_text *out = &event->x->out;
	size_t before;
	uint64_t left = ~event->covered;

	if (stack && !event->x->for_viewers)
		put_int(event, "\"sf\":", stack);
	before = out->length;
	ts_text_append_str(out, "\"args\":{");
	if (ts_json_row_fields(event->x->reader, out, &event->row, 0)) {
		ts_json_row_close(out, '}');
		ts_text_append_char(out, ',');
	} else {
		out->length = before;
	}
	ts_json_row_fields(event->x->reader, out, &event->row, 1);
	if (event->x->for_viewers) {
		ts_json_row_close(out, '}');
		return;
	}
	before = out->length;
	ts_text_append_str(out, "\"tracesmith\":{");
	if (table)
		ts_text_printf(out, "\"table\":\"%s\",", table);
	if (event->no_thread)
		ts_text_append_str(out, "\"thread\":null,");
	if (ts_json_row_columns(event->x->reader, out, &event->row, left) || table ||
	    event->no_thread) {
		ts_json_row_close(out, '}');
		ts_text_append_char(out, ',');
	} else {
		out->length = before;
	}
	ts_json_row_close(out, '}');
}

/* ---- what an import will find ---- */

/* Columns that the row's arguments show. */
static uint64_t shown_by_shape(const struct event *event)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < event->shape->field_count; i++) {
		const struct ts_field *field = &event->shape->fields[i];
		int position;

		if (field->type != TS_ARG_COLUMN || field->beside)
			continue;
		position = ts_column_by_id(event->row.table, field->column);
		if (position >= 0)
			mask |= UINT64_C(1) << position;
		else if (field->column == TS_COMPUTED_GRID)
			mask |= UINT64_C(7) << TS_COLUMN_OF(gpu_op, grid_x);
		else if (field->column == TS_COMPUTED_BLOCK)
			mask |= UINT64_C(7) << TS_COLUMN_OF(gpu_op, block_x);
		else if (field->column == TS_COMPUTED_DEVICE)
			mask |= TS_MASK_OF(gpu_op, device);
		else if (field->column == TS_COMPUTED_STREAM)
			mask |= TS_MASK_OF(gpu_op, stream);
	}
	return mask;
}

/* True if an argument "stream" is an int. */
static bool has_stream_argument(const struct event *event)
{
	for (uint32_t i = 0; i < event->shape->field_count; i++) {
		const struct ts_field *field = &event->shape->fields[i];
		struct ts_string key;

		if (field->beside || (field->type != TS_ARG_INT && field->type != TS_ARG_COLUMN))
			continue;
		key = ts_reader_string(event->x->reader, field->key);
		if (key.length == 6 && memcmp(key.data, "stream", 6) == 0)
			return true;
	}
	return false;
}

/* The table's name if the category implies another table, else NULL. */
static const char *table_to_name(const struct event *event, int64_t category)
{
	struct ts_string text = ts_reader_string(event->x->reader, category);
	struct ts_kineto_category meaning = ts_kineto_category(text.data, text.length);

	if (meaning.needs_stream && !has_stream_argument(event))
		meaning.table = TS_TABLE_SLICE;
	return meaning.table == (enum ts_table_id)event->row.table->id ? NULL
								       : event->row.table->name;
}

/* ---- events by table ---- */

/* Events matched by category: viewers require one. */
static void put_matched_head(struct event *event, const char *phase, int64_t name, int64_t category,
			     const struct ts_chrome_track *track, int64_t time)
{
	put_head(event, phase, name, category, track, time);
	if (!category)
		ts_text_append_str(&event->x->out, "\"cat\":\"\",");
}

#define SLICE_NATIVE                                                                          \
	(TS_MASK_OF(slice, start) | TS_MASK_OF(slice, duration) | TS_MASK_OF(slice, thread) | \
	 TS_MASK_OF(slice, name) | TS_MASK_OF(slice, category) | TS_MASK_OF(slice, kind) |    \
	 TS_MASK_OF(slice, id) | TS_MASK_OF(slice, stack))

/* Async slices are written by chrome_async.c, in a different order. */
static void put_slice(struct event *event)
{
	const struct ts_slice_row *slice = (const void *)event->row.columns;
	const char *table = NULL;
	int64_t duration = slice->duration;

	if (slice->kind == TS_SLICE_ASYNC)
		return;
	event->covered = SLICE_NATIVE;
	if (event->x->for_viewers && duration < 0)
		duration = event->x->end_ns > slice->start
				   ? ts_ns_between(slice->start, event->x->end_ns)
				   : 0;
	put_head(event, duration < 0 ? "B" : "X", slice->name, slice->category,
		 ts_chrome_track_of_thread(event->x, slice->thread), slice->start);
	put_id(event, slice->id);
	if (duration >= 0) {
		put_us(event, "\"dur\":", duration);
		table = table_to_name(event, slice->category);
	}
	put_tail(event, slice->stack, table);
}

static void put_async_begin(struct event *event)
{
	const struct ts_slice_row *slice = (const void *)event->row.columns;

	event->covered = SLICE_NATIVE;
	put_matched_head(event, "b", slice->name, slice->category,
			 ts_chrome_track_of_thread(event->x, slice->thread), slice->start);
	put_id(event, slice->id);
	put_tail(event, slice->stack, NULL);
}

static void put_async_end(struct event *event)
{
	const struct ts_slice_row *slice = (const void *)event->row.columns;
	const int64_t *value = event->row.values;
	int64_t end;

	if (__builtin_add_overflow(slice->start, slice->duration, &end))
		end = slice->start;
	put_matched_head(event, "e", slice->name, slice->category,
			 ts_chrome_track_of_thread(event->x, slice->thread), end);
	put_id(event, slice->id);
	/* Events with one id are matched within their scope. */
	for (uint32_t i = 0; i < event->shape->field_count; i++) {
		const struct ts_field *field = &event->shape->fields[i];
		struct ts_string key = ts_reader_string(event->x->reader, field->key);

		if (value && field->beside && field->type == TS_ARG_STRING && key.length == 5 &&
		    memcmp(key.data, "scope", 5) == 0)
			put_string(event, "\"scope\":", *value);
		if (value && ts_arg_has_value(field->type))
			value++;
	}
	ts_json_row_close(&event->x->out, '}');
}

/* The flow event directly after an api_call or gpu_op: see "Arrows" in docs/chrome.md. */
static void put_arrow(struct event *event, int64_t arrow, const struct ts_chrome_track *track,
		      int64_t time, int64_t correlation, int64_t id_offset)
{
	ts_chrome_begin_event(event->x);
	ts_text_append_str(&event->x->out,
			   arrow == TS_ARROW_OUT ? "\"ph\":\"s\"," : "\"ph\":\"f\",");
	ts_text_append_str(&event->x->out,
			   "\"cat\":\"" TS_KINETO_ARROW "\",\"name\":\"" TS_KINETO_ARROW "\",");
	put_int(event, "\"id\":", (int64_t)((uint64_t)correlation + (uint64_t)id_offset));
	ts_chrome_put_track(event->x, track);
	put_time(event, time);
	if (arrow == TS_ARROW_IN_ENCLOSING)
		ts_text_append_str(&event->x->out, "\"bp\":\"e\",");
	/* If the id differs from the correlation, the row itself says that it has an arrow. */
	if (id_offset)
		ts_text_append_str(&event->x->out, "\"tracesmith\":{\"drawn\":true},");
	ts_json_row_close(&event->x->out, '}');
}

static int64_t process_of_thread(const struct event *event, int64_t id)
{
	const struct ts_thread_row *thread =
		ts_reader_entity(event->x->reader, TS_TABLE_THREAD, id);

	return thread ? thread->process : 0;
}

/* The process of a stream: the one whose row shows it, or that of the operation. */
static int64_t process_of_op(const struct event *event, const struct ts_gpu_op_row *op)
{
	const struct ts_stream_row *stream =
		ts_reader_entity(event->x->reader, TS_TABLE_STREAM, op->stream);

	return stream && stream->thread ? process_of_thread(event, stream->thread) : op->process;
}

static void put_api_call(struct event *event)
{
	const struct ts_api_call_row *call = (const void *)event->row.columns;
	const struct ts_chrome_track *track = ts_chrome_track_of_thread(event->x, call->thread);
	int64_t id_offset = ts_chrome_id_offset(event->x, process_of_thread(event, call->thread));
	bool shows_arrow;

	event->covered = TS_MASK_OF(api_call, start) | TS_MASK_OF(api_call, thread) |
			 TS_MASK_OF(api_call, name) | TS_MASK_OF(api_call, category) |
			 TS_MASK_OF(api_call, stack) | shown_by_shape(event);
	shows_arrow = call->arrow && (event->covered & TS_MASK_OF(api_call, correlation));
	if (shows_arrow && !id_offset)
		event->covered |= TS_MASK_OF(api_call, arrow);
	put_head(event, "X", call->name, call->category, track, call->start);
	if (call->duration >= 0)
		event->covered |= TS_MASK_OF(api_call, duration);
	put_us(event, "\"dur\":", TS_MAX(call->duration, 0));
	put_tail(event, call->stack, table_to_name(event, call->category));
	if (shows_arrow)
		put_arrow(event, call->arrow, track, call->start, call->correlation, id_offset);
}

/* True if an import derives device and stream from the track of the event. */
static bool entity_is_shown(const struct event *event, const struct ts_gpu_op_row *op)
{
	const struct ts_stream_row *stream =
		ts_reader_entity(event->x->reader, TS_TABLE_STREAM, op->stream);
	const struct ts_device_row *device =
		ts_reader_entity(event->x->reader, TS_TABLE_DEVICE, op->device);
	const struct ts_thread_row *thread;
	const struct ts_process_row *process;
	int64_t device_number = TS_ABSENT, stream_number = TS_ABSENT;

	if (!stream || stream->device != op->device)
		return false;
	thread = ts_reader_entity(event->x->reader, TS_TABLE_THREAD, stream->thread);
	if (!thread)
		return true; /* the header of the file names the stream of the track */
	process = ts_reader_entity(event->x->reader, TS_TABLE_PROCESS, thread->process);
	if (event->covered & TS_MASK_OF(gpu_op, device))
		device_number = device ? device->number : TS_ABSENT;
	else if (process)
		device_number = process->pid;
	if (event->covered & TS_MASK_OF(gpu_op, stream))
		stream_number = stream->number;
	else
		stream_number = thread->tid;
	return stream_number == stream->number &&
	       device_number == (device ? device->number : TS_ABSENT);
}

static void put_gpu_op(struct event *event)
{
	const struct ts_gpu_op_row *op = (const void *)event->row.columns;
	const struct ts_chrome_track *track = ts_chrome_track_of_stream(event->x, op->stream);
	struct ts_string name = ts_reader_string(event->x->reader, op->name);
	struct ts_string category = ts_reader_string(event->x->reader, op->category);
	struct ts_kineto_category meaning = ts_kineto_category(category.data, category.length);
	int64_t id_offset = ts_chrome_id_offset(event->x, process_of_op(event, op));
	bool shows_arrow;

	event->covered = shown_by_shape(event);
	if (entity_is_shown(event, op))
		event->covered |= TS_MASK_OF(gpu_op, device) | TS_MASK_OF(gpu_op, stream);
	else
		event->covered &= ~(TS_MASK_OF(gpu_op, device) | TS_MASK_OF(gpu_op, stream));
	event->covered |= TS_MASK_OF(gpu_op, start) | TS_MASK_OF(gpu_op, name) |
			  TS_MASK_OF(gpu_op, category) | TS_MASK_OF(gpu_op, stack);
	if (meaning.table == TS_TABLE_GPU_OP &&
	    op->kind == (int64_t)ts_kineto_kind(meaning.kind, name.data, name.length))
		event->covered |= TS_MASK_OF(gpu_op, kind);
	if (op->copy_kind ==
	    (op->kind == TS_GPU_OP_COPY ? (int64_t)ts_kineto_copy_kind(name.data, name.length) : 0))
		event->covered |= TS_MASK_OF(gpu_op, copy_kind);
	shows_arrow = op->arrow && (event->covered & TS_MASK_OF(gpu_op, correlation));
	if (shows_arrow && !id_offset)
		event->covered |= TS_MASK_OF(gpu_op, arrow);
	put_head(event, "X", op->name, op->category, track, op->start);
	if (op->duration >= 0)
		event->covered |= TS_MASK_OF(gpu_op, duration);
	put_us(event, "\"dur\":", TS_MAX(op->duration, 0));
	put_tail(event, op->stack, table_to_name(event, op->category));
	if (shows_arrow)
		put_arrow(event, op->arrow, track, op->start, op->correlation, id_offset);
}

static void put_flow(struct event *event)
{
	static const char *const phases[] = {
		[TS_FLOW_START] = "s", [TS_FLOW_STEP] = "t", [TS_FLOW_END] = "f"
	};
	const struct ts_flow_row *flow = (const void *)event->row.columns;
	int64_t id_offset = ts_chrome_id_offset(event->x, process_of_thread(event, flow->thread));
	bool known = flow->kind >= 0 && flow->kind <= TS_FLOW_END;

	event->covered = id_offset ? TS_MASK_ALL & ~TS_MASK_OF(flow, id) : TS_MASK_ALL;
	put_matched_head(event, phases[known ? flow->kind : TS_FLOW_STEP], flow->name,
			 flow->category, ts_chrome_track_of_thread(event->x, flow->thread),
			 flow->start);
	if (flow->id != TS_ABSENT)
		put_int(event, "\"id\":", (int64_t)((uint64_t)flow->id + (uint64_t)id_offset));
	else
		put_id(event, flow->id_json);
	if (flow->enclosing)
		ts_text_append_str(&event->x->out, "\"bp\":\"e\",");
	put_tail(event, 0, NULL);
}

static void put_sample(struct event *event)
{
	const struct ts_sample_row *sample = (const void *)event->row.columns;

	event->covered = TS_MASK_ALL & ~TS_MASK_OF(sample, state);
	put_head(event, "P", sample->name, 0, ts_chrome_track_of_thread(event->x, sample->thread),
		 sample->start);
	if (sample->weight != TS_ABSENT)
		put_int(event, "\"weight\":", sample->weight);
	if (sample->cpu != TS_ABSENT)
		put_int(event, "\"cpu\":", sample->cpu);
	put_tail(event, sample->stack, sample->stack ? NULL : "sample");
}

/* Viewers see the machine's and devices' counters as a process. */
static void name_machine(struct ts_chrome_export *x)
{
	if (x->machine_is_named)
		return;
	x->machine_is_named = true;
	ts_chrome_begin_event(x);
	ts_text_append_str(&x->out, "\"ph\":\"M\",\"name\":\"process_name\",");
	ts_chrome_put_track(x, &x->tracks.machine);
	ts_text_append_str(&x->out, "\"args\":{\"name\":\"system\"}}");
}

/* Not of a thread: of a process, a device, both, or the machine. */
static void put_subject_head(struct event *event, const struct ts_counter_row *counter)
{
	struct ts_chrome_track track = ts_chrome_track_of_subject(event->x, counter->process);

	if (!ts_chrome_track_of_process(event->x, counter->process))
		name_machine(event->x);
	event->no_thread = true;
	if (counter->device)
		event->covered &= ~TS_MASK_OF(counter, name);
	put_phase(event, "C", counter->category);
	ts_text_append_str(&event->x->out, "\"name\":");
	ts_chrome_put_counter_name(event->x, counter);
	ts_text_append_char(&event->x->out, ',');
	ts_chrome_put_track(event->x, &track);
	put_time(event, counter->start);
}

static void put_counter(struct event *event)
{
	const struct ts_counter_row *counter = (const void *)event->row.columns;

	event->covered = TS_MASK_ALL &
			 ~(TS_MASK_OF(counter, device) | TS_MASK_OF(counter, process));
	if (counter->thread)
		put_head(event, "C", counter->name, counter->category,
			 ts_chrome_track_of_thread(event->x, counter->thread), counter->start);
	else
		put_subject_head(event, counter);
	put_id(event, counter->id);
	put_tail(event, 0, NULL);
}

static void put_mark(struct event *event)
{
	static const char *const scopes[] = { [TS_SCOPE_THREAD] = "\"s\":\"t\",",
					      [TS_SCOPE_PROCESS] = "\"s\":\"p\",",
					      [TS_SCOPE_GLOBAL] = "\"s\":\"g\"," };
	const struct ts_mark_row *mark = (const void *)event->row.columns;
	struct ts_string phase = ts_reader_string(event->x->reader, mark->phase);

	event->covered = TS_MASK_ALL;
	put_matched_head(event, mark->phase ? phase.data : "i", mark->name, mark->category,
			 ts_chrome_track_of_thread(event->x, mark->thread), mark->start);
	if (mark->scope > TS_SCOPE_UNSAID && mark->scope <= TS_SCOPE_GLOBAL)
		ts_text_append_str(&event->x->out, scopes[mark->scope]);
	put_id(event, mark->id);
	put_tail(event, mark->stack, NULL);
}

/* ---- rows without a native form ---- */

static void put_base64(struct ts_text *out, const unsigned char *data, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		unsigned int left = (unsigned int)TS_MIN(length - i, (size_t)3);
		unsigned int bits = (unsigned int)data[i] << 16;
		char group[4];

		bits |= left > 1 ? (unsigned int)data[i + 1] << 8 : 0;
		bits |= left > 2 ? data[i + 2] : 0;
		for (unsigned int k = 0; k < 4; k++)
			group[k] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
		ts_text_append(out, group, sizeof(group));
	}
}

static void put_bytes_column(struct event *event)
{
	const struct ts_table_info *table = event->row.table;
	const struct ts_batch *batch = event->batch;

	for (int i = 0; i < table->column_count; i++) {
		if (table->columns[i].type != TS_COLUMN_BYTES || !batch->bytes)
			continue;
		ts_text_printf(&event->x->out, "\"%s\":\"", table->columns[i].name);
		/* Each string is followed by a NUL that is not part of it. */
		put_base64(&event->x->out,
			   (const unsigned char *)batch->bytes + batch->byte_offsets[event->number],
			   (size_t)(batch->byte_offsets[event->number + 1] -
				    batch->byte_offsets[event->number] - 1));
		ts_text_append_str(&event->x->out, "\",");
	}
}

static void put_fields_as(struct event *event, const char *key, int beside)
{
	struct ts_text *out = &event->x->out;
	size_t before = out->length;

	ts_text_append_str(out, key);
	if (ts_json_row_fields(event->x->reader, out, &event->row, beside)) {
		ts_json_row_close(out, '}');
		ts_text_append_char(out, ',');
	} else {
		out->length = before;
	}
}

static void put_plain_row(struct event *event)
{
	struct ts_text *out = &event->x->out;

	ts_chrome_begin_event(event->x);
	ts_text_printf(out,
		       "\"ph\":\"M\",\"name\":\"tracesmith_row\",\"pid\":0,\"tid\":0,"
		       "\"args\":{\"table\":\"%s\",",
		       event->row.table->name);
	ts_json_row_columns(event->x->reader, out, &event->row, TS_MASK_ALL);
	put_bytes_column(event);
	put_fields_as(event, "\"args\":{", 0);
	put_fields_as(event, "\"beside\":{", 1);
	ts_json_row_close(out, '}');
	ts_text_append_char(out, '}');
}

/* A row of a batch as an event; `columns` has space for all of them. */
static struct event event_of(struct ts_chrome_export *x, const struct ts_batch *batch, uint32_t row,
			     int64_t *columns)
{
	struct event event = { .x = x,
			       .row = { .table = batch->table, .columns = columns },
			       .batch = batch,
			       .number = row };
	int shape = batch->table->shape;

	ts_batch_row(batch, row, columns);
	event.shape = ts_reader_shape(x->reader, shape >= 0 ? columns[shape] : 0);
	if (batch->arg_offsets)
		event.row.values = batch->arg_values + batch->arg_offsets[row];
	return event;
}

void ts_chrome_put_async_begin(struct ts_chrome_export *x, const struct ts_batch *batch,
			       uint32_t row)
{
	int64_t columns[TS_MAX_COLUMNS];
	struct event event = event_of(x, batch, row, columns);

	put_async_begin(&event);
}

void ts_chrome_put_async_end(struct ts_chrome_export *x, const struct ts_batch *batch, uint32_t row)
{
	int64_t columns[TS_MAX_COLUMNS];
	struct event event = event_of(x, batch, row, columns);

	put_async_end(&event);
}

void ts_chrome_put_row(struct ts_chrome_export *x, const struct ts_batch *batch, uint32_t row)
{
	static void (*const puts[TS_TABLE_COUNT])(struct event * event) = {
		[TS_TABLE_SLICE] = put_slice,   [TS_TABLE_API_CALL] = put_api_call,
		[TS_TABLE_GPU_OP] = put_gpu_op, [TS_TABLE_FLOW] = put_flow,
		[TS_TABLE_SAMPLE] = put_sample, [TS_TABLE_COUNTER] = put_counter,
		[TS_TABLE_MARK] = put_mark,
	};
	int64_t columns[TS_MAX_COLUMNS];
	struct event event = event_of(x, batch, row, columns);

	if (puts[batch->table->id])
		puts[batch->table->id](&event);
	else
		put_plain_row(&event);
}
