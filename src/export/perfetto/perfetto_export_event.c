/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as packets: the event for viewers, followed by the native row. Begin and end of a span are
 * written together: readers sort packets by time, and file order breaks ties.
 */
#include "base/memory.h"
#include "base/ns.h"
#include "export/perfetto/perfetto_export.h"

/* Fields of TrackEvent. */
enum {
	EVENT_CATEGORY = 3,
	EVENT_NAME = 10,
	EVENT_VALUE = 30,
	EVENT_DOUBLE = 44,
	EVENT_STACK = 56,
};

/* Column positions in the tables that are shown as events; -1: none. */
struct view {
	int8_t name, category;
};

static int64_t at(const struct ts_pf_cursor *cursor, int position)
{
	return position < 0 ? 0 : cursor->merge.batch->columns[position][cursor->merge.row];
}

static int no_memory(struct ts_pf_export *x)
{
	return ts_error_set(x->err, TS_ENOMEM, "no memory");
}

/* ---- one event ---- */

static unsigned char *put_name(struct ts_pf_export *x, unsigned char *to,
			       const struct ts_pf_cursor *cursor, const struct view *view,
			       unsigned int *taken)
{
	const struct ts_table_info *table = cursor->merge.batch->table;
	int64_t name = at(cursor, view->name), category = at(cursor, view->category);

	if (category) {
		to = ts_pf_uint(to, EVENT_CATEGORY, ts_pf_intern(x, TS_PF_CATEGORY, category));
		*taken |= TS_PF_ROW_CATEGORY;
	}
	if (name) {
		*taken |= TS_PF_NAME;
		return ts_pf_uint(to, EVENT_NAME, ts_pf_intern(x, TS_PF_EVENT_NAME, name));
	}
	/* Viewers require a name. */
	return ts_pf_uint(to, EVENT_NAME,
			  ts_pf_intern_synthetic(x, TS_PF_EVENT_NAME, TS_PF_TABLE_NAME + table->id,
						 table->name, strlen(table->name)));
}

/* Columns that need not be repeated. */
static uint64_t mask_of_taken(const struct ts_table_info *table, const struct view *view,
			      unsigned int taken)
{
	uint64_t mask = 0;

	if (taken & TS_PF_START)
		mask |= UINT64_C(1) << table->start;
	if (taken & TS_PF_NAME && view->name >= 0)
		mask |= UINT64_C(1) << view->name;
	if (taken & TS_PF_ROW_CATEGORY && view->category >= 0)
		mask |= UINT64_C(1) << view->category;
	return mask;
}

static unsigned char *put_stack(struct ts_pf_export *x, unsigned char *to, int64_t stack)
{
	uint64_t iid = stack ? ts_pf_intern_stack(x, stack) : 0;

	return iid ? ts_pf_uint(to, EVENT_STACK, iid) : to;
}

/*
 * x->event holds an event up to `native`, and from there to `end` field 9901 of its packet, if any:
 * trace_processor reports unknown fields inside events as errors.
 */
static void put_event_packet(struct ts_pf_export *x, int64_t time, const unsigned char *native,
			     const unsigned char *end)
{
	x->event.length = (size_t)((const char *)native - x->event.data);
	ts_pf_put_packet(x, time, TS_PF_TRACK_EVENT, native, (size_t)(end - native));
}

/* What an event has besides its row. */
struct extras {
	struct ts_pf_group *group; /* whose flow points are attached; may be NULL */
	uint64_t arrow;            /* 0: none */
	int64_t stack;
};

/* The event of a row on a track. */
static int put_row(struct ts_pf_export *x, const struct ts_pf_cursor *cursor,
		   const struct view *view, enum ts_pf_event_type type, uint64_t track,
		   const struct extras *extras)
{
	const struct ts_table_info *table = cursor->merge.batch->table;
	const struct ts_pf_shape *shape = ts_pf_shape(x, table, at(cursor, table->shape));
	unsigned int taken = cursor->merge.start >= x->base_ns ? TS_PF_START : 0;
	struct ts_pf_flows *flows = extras->group ? ts_pf_flows_of(extras->group) : NULL;
	unsigned char *to, *native;

	if (!track || !shape ||
	    !ts_text_reserve(&x->event, ts_pf_row_max_bytes(cursor, shape) +
						(flows ? ts_pf_flow_max_bytes(flows) : 0)))
		return no_memory(x);
	to = ts_pf_put_head((unsigned char *)x->event.data, type, track);
	to = put_name(x, to, cursor, view, &taken);
	if (extras->arrow)
		to = ts_pf_put_arrow(to, extras->arrow);
	if (flows)
		to = ts_pf_put_flow_ids(to, flows);
	to = put_stack(x, to, extras->stack);
	to = ts_pf_put_args(x, to, cursor, shape);
	if (shape->count && shape->is_plain)
		taken |= TS_PF_ARGS;
	native = to;
	to = ts_pf_put_native(x, to, cursor, shape, mask_of_taken(table, view, taken), taken,
			      flows ? &flows->rows : NULL);
	put_event_packet(x, cursor->merge.start, native, to);
	if (flows)
		ts_pf_flows_done(flows);
	return TS_OK;
}

int ts_pf_put_flows(struct ts_pf_export *x, struct ts_pf_group *group)
{
	struct ts_pf_flows *flows = group->flows;
	unsigned char *to, *native, *rows;
	uint64_t name = flows->name ? ts_pf_intern(x, TS_PF_EVENT_NAME, flows->name)
				    : ts_pf_intern_synthetic(x, TS_PF_EVENT_NAME,
							     TS_PF_TABLE_NAME + TS_TABLE_FLOW,
							     "flow", 4);

	if (!ts_text_reserve(&x->event, 128 + ts_pf_flow_max_bytes(flows)))
		return TS_ENOMEM;
	to = ts_pf_put_head((unsigned char *)x->event.data, TS_PF_INSTANT, group->uuid);
	to = ts_pf_put_flow_ids(ts_pf_uint(to, EVENT_NAME, name), flows);
	native = to;
	to = ts_pf_tag(to, TS_PF_NATIVE, TS_PROTO_BYTES);
	rows = ++to;
	memcpy(to, flows->rows.data, flows->rows.length);
	to = ts_pf_close(rows, to + flows->rows.length);
	put_event_packet(x, flows->time, native, to);
	ts_pf_flows_done(flows);
	return TS_OK;
}

static int put_span(struct ts_pf_export *x, const struct ts_pf_cursor *cursor,
		    const struct view *view, struct ts_pf_group *group, struct extras *extras,
		    uint64_t *ret_track)
{
	uint64_t track = group ? ts_pf_lane_for(x, group, cursor->merge.start, cursor->merge.end)
			       : 0;
	int result;

	/* Flow points with another time get their own instant. */
	extras->group = group;
	if (group && ts_pf_flows_of(group) && !ts_pf_flows_fit(group->flows, cursor->merge.start) &&
	    ts_pf_put_flows(x, group))
		return no_memory(x);
	result = put_row(x, cursor, view, TS_PF_BEGIN, track, extras);
	*ret_track = track;
	/* A span without an end has no end event. */
	if (result || cursor->merge.end == INT64_MAX)
		return result;
	ts_pf_put_end(x, cursor->merge.end, track);
	return TS_OK;
}

/* ---- tables ---- */

static int put_slice(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	static const struct view view = { TS_COLUMN_OF(slice, name),
					  TS_COLUMN_OF(slice, category) };
	struct extras extras = { .stack = at(cursor, TS_COLUMN_OF(slice, stack)) };
	int64_t thread = at(cursor, TS_COLUMN_OF(slice, thread));
	bool is_async = at(cursor, TS_COLUMN_OF(slice, kind)) == TS_SLICE_ASYNC;
	uint64_t track;

	return put_span(
		x, cursor, &view,
		is_async ? ts_pf_async_group(x, thread, at(cursor, TS_COLUMN_OF(slice, name)))
			 : ts_pf_thread_group(x, thread),
		&extras, &track);
}

static int put_api_call(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	static const struct view view = { TS_COLUMN_OF(api_call, name),
					  TS_COLUMN_OF(api_call, category) };
	struct ts_pf_group *group =
		ts_pf_thread_group(x, at(cursor, TS_COLUMN_OF(api_call, thread)));
	struct extras extras = { .stack = at(cursor, TS_COLUMN_OF(api_call, stack)) };
	int64_t correlation = at(cursor, TS_COLUMN_OF(api_call, correlation));
	uint64_t track;

	if (group && at(cursor, TS_COLUMN_OF(api_call, arrow)) && correlation != TS_ABSENT)
		extras.arrow = ts_pf_arrow(x, group->process, correlation);
	return put_span(x, cursor, &view, group, &extras, &track);
}

static int put_gpu_op(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	static const struct view view = { TS_COLUMN_OF(gpu_op, name),
					  TS_COLUMN_OF(gpu_op, category) };
	struct ts_pf_group *group = ts_pf_stream_group(x, at(cursor, TS_COLUMN_OF(gpu_op, device)),
						       at(cursor, TS_COLUMN_OF(gpu_op, stream)));
	struct extras extras = { .stack = at(cursor, TS_COLUMN_OF(gpu_op, stack)) };
	int64_t correlation = at(cursor, TS_COLUMN_OF(gpu_op, correlation));
	uint64_t track = 0;
	int result;

	/* The process of a stream: the one whose row shows it, else that of the operation. */
	if (group && at(cursor, TS_COLUMN_OF(gpu_op, arrow)) && correlation != TS_ABSENT)
		extras.arrow = ts_pf_arrow(
			x,
			group->process ? group->process : at(cursor, TS_COLUMN_OF(gpu_op, process)),
			correlation);
	result = put_span(x, cursor, &view, group, &extras, &track);
	if (result || cursor->merge.end == INT64_MAX || x->flags & TS_EXPORT_NO_GPU_STAGES)
		return result;
	return ts_pf_put_stage(x, cursor, group, track);
}

static int put_window(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	static const struct view view = { TS_COLUMN_OF(window, name), -1 };
	struct extras extras = { 0 };
	uint64_t track;

	return put_span(x, cursor, &view,
			ts_pf_process_group(x, at(cursor, TS_COLUMN_OF(window, process))), &extras,
			&track);
}

static int put_mark(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	static const struct view view = { TS_COLUMN_OF(mark, name), TS_COLUMN_OF(mark, category) };
	struct ts_pf_group *group = ts_pf_thread_group(x, at(cursor, TS_COLUMN_OF(mark, thread)));
	struct extras extras = { .stack = at(cursor, TS_COLUMN_OF(mark, stack)) };

	if (group && at(cursor, TS_COLUMN_OF(mark, scope)) == TS_SCOPE_PROCESS)
		group = ts_pf_process_group(x, group->process);
	return put_row(x, cursor, &view, TS_PF_INSTANT, group ? group->uuid : 0, &extras);
}

static int put_loss(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	static const struct view view = { -1, -1 };
	struct extras extras = { 0 };
	int64_t thread = at(cursor, TS_COLUMN_OF(loss, thread));
	struct ts_pf_group *group =
		thread ? ts_pf_thread_group(x, thread)
		       : ts_pf_process_group(x, at(cursor, TS_COLUMN_OF(loss, process)));

	return put_row(x, cursor, &view, TS_PF_INSTANT, group ? group->uuid : 0, &extras);
}

/* A row without an event for viewers: in the packet, next to x->event if there is one. */
static int put_beside(struct ts_pf_export *x, const struct ts_pf_cursor *cursor, int64_t time,
		      enum ts_pf_packet field)
{
	const struct ts_table_info *table = cursor->merge.batch->table;
	const struct ts_pf_shape *shape = ts_pf_shape(x, table, at(cursor, table->shape));
	unsigned char *to;

	if (!shape || !ts_text_reserve(&x->beside, ts_pf_row_max_bytes(cursor, shape)))
		return no_memory(x);
	to = ts_pf_put_native(x, (unsigned char *)x->beside.data, cursor, shape, 0, 0, NULL);
	ts_pf_put_packet(x, time, field, x->beside.data, (size_t)((char *)to - x->beside.data));
	return TS_OK;
}

static int put_hidden(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	return put_beside(x, cursor, TS_ABSENT, 0);
}

/* Fields of PerfSample. */
enum { SAMPLE_CPU = 1, SAMPLE_PID = 2, SAMPLE_TID = 3, SAMPLE_STACK = 4, SAMPLE_COUNT = 6 };

static int put_sample(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	int64_t thread = at(cursor, TS_COLUMN_OF(sample, thread));
	int64_t cpu = at(cursor, TS_COLUMN_OF(sample, cpu));
	int64_t weight = at(cursor, TS_COLUMN_OF(sample, weight));
	const struct ts_thread_row *row = ts_reader_entity(x->reader, TS_TABLE_THREAD, thread);
	uint64_t stack = ts_pf_intern_stack(x, at(cursor, TS_COLUMN_OF(sample, stack)));
	unsigned char *to;

	if (!row || !stack)
		return put_hidden(x, cursor);
	if (!ts_text_reserve(&x->event, 128))
		return no_memory(x);
	to = ts_pf_uint((unsigned char *)x->event.data, SAMPLE_CPU,
			cpu >= 0 && cpu <= UINT32_MAX ? (uint64_t)cpu : 0);
	to = ts_pf_uint(to, SAMPLE_PID, ts_pf_pid(x, row->process));
	to = ts_pf_uint(to, SAMPLE_TID, ts_pf_tid(x, thread));
	to = ts_pf_uint(to, SAMPLE_STACK, stack);
	if (weight > 0)
		to = ts_pf_uint(to, SAMPLE_COUNT, (uint64_t)weight);
	x->event.length = (size_t)((char *)to - x->event.data);
	return put_beside(x, cursor, cursor->merge.start, TS_PF_PERF_SAMPLE);
}

/* ---- counters ---- */

static unsigned char *put_value(unsigned char *to, unsigned int type, int64_t value)
{
	if (type != TS_ARG_DOUBLE)
		return ts_pf_uint(to, EVENT_VALUE, (uint64_t)value);
	to = ts_pf_tag(to, EVENT_DOUBLE, TS_PROTO_FIXED64);
	return ts_pf_fixed64(to, (uint64_t)value);
}

static bool is_number(unsigned int type)
{
	return type == TS_ARG_INT || type == TS_ARG_DOUBLE || type == TS_ARG_BOOL;
}

/* One event per series; the first one has the row. */
static int put_counter(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	const struct ts_batch *batch = cursor->merge.batch;
	int64_t id = at(cursor, batch->table->shape);
	const struct ts_shape *fields = ts_reader_shape(x->reader, id);
	const struct ts_pf_shape *shape = ts_pf_shape(x, batch->table, id);
	const int64_t *value = shape && shape->count
				       ? batch->arg_values + batch->arg_offsets[cursor->merge.row]
				       : NULL;
	struct ts_counter_row counter;
	bool is_first = true;

	if (!shape || !ts_text_reserve(&x->event, ts_pf_row_max_bytes(cursor, shape)))
		return no_memory(x);
	ts_batch_row(batch, cursor->merge.row, &counter);
	for (uint32_t i = 0; i < shape->count; i++) {
		unsigned int type = shape->fields[i].type;
		unsigned char *to, *native;
		uint64_t track;

		if (is_number(type) && !shape->fields[i].beside) {
			track = ts_pf_counter_track(x, &counter, fields->fields[i].key,
						    shape->count);
			if (!track)
				return no_memory(x);
			to = ts_pf_put_head((unsigned char *)x->event.data, TS_PF_COUNTER, track);
			native = to = put_value(to, type, *value);
			if (is_first)
				to = ts_pf_put_native(
					x, to, cursor, shape, 1,
					cursor->merge.start >= x->base_ns ? TS_PF_START : 0, NULL);
			is_first = false;
			put_event_packet(x, cursor->merge.start, native, to);
		}
		value += ts_arg_has_value(type) ? 1 : 0;
	}
	return is_first ? put_hidden(x, cursor) : TS_OK;
}

int ts_pf_put_event(struct ts_pf_export *x, const struct ts_pf_cursor *cursor)
{
	int result;

	switch (cursor->merge.batch->table->id) {
	case TS_TABLE_SLICE:
		result = put_slice(x, cursor);
		break;
	case TS_TABLE_API_CALL:
		result = put_api_call(x, cursor);
		break;
	case TS_TABLE_GPU_OP:
		result = put_gpu_op(x, cursor);
		break;
	case TS_TABLE_MARK:
		result = put_mark(x, cursor);
		break;
	case TS_TABLE_COUNTER:
		result = put_counter(x, cursor);
		break;
	case TS_TABLE_FLOW:
		result = ts_pf_put_flow(x, cursor) ? no_memory(x) : TS_OK;
		break;
	case TS_TABLE_SAMPLE:
		result = put_sample(x, cursor);
		break;
	case TS_TABLE_LOSS:
		result = put_loss(x, cursor);
		break;
	case TS_TABLE_WINDOW:
		result = put_window(x, cursor);
		break;
	default:
		result = put_hidden(x, cursor);
		break;
	}
	return result ? result : ts_pf_flush(x, TS_PF_FLUSH_BYTES);
}
