/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores a completely read rocprofv3 JSON record: resolves names and locations and adds its rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/rocprof/rocprof.h"

#define HAS(record, member) ((record)->has >> (member)&1)

/* ---- what it refers to ---- */

static int64_t device_of(struct ts_rocprof *r, uint64_t handle)
{
	uint64_t id = 0;

	if (ts_map_get(&r->agents, handle, &id))
		return (int64_t)id;
	/* An agent that the file does not describe. */
	id = (uint64_t)ts_entities_device(r->rows.entities, r->host, handle | UINT64_C(1) << 63,
					  TS_ABSENT);
	ts_map_put(&r->agents, handle, id);
	return (int64_t)id;
}

static int64_t thread_of(struct ts_rocprof *r)
{
	const struct ts_rocprof_record *record = &r->record;

	if (!HAS(record, TS_ROCPROF_THREAD))
		return 0;
	return ts_entities_thread(r->rows.entities, ts_rocprof_process(r), record->thread,
				  record->thread <= INT64_MAX ? (int64_t)record->thread
							      : TS_ABSENT);
}

static int64_t stream_of(struct ts_rocprof *r, int64_t device)
{
	const struct ts_rocprof_record *record = &r->record;

	if (HAS(record, TS_ROCPROF_STREAM) && !r->by_queue)
		return ts_rocprof_stream(&r->rows, device, r->index, false, record->stream);
	if (HAS(record, TS_ROCPROF_QUEUE))
		return ts_rocprof_stream(&r->rows, device, r->index, true, record->queue);
	return 0;
}

/* Name, category and kind of operation. */
static void set_names(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	const struct ts_rocprof_record *record = &r->record;
	const struct ts_rocprof_kind *kind;

	event->category = event->name = r->list.name;
	if (!HAS(record, TS_ROCPROF_KIND) || record->kind >= r->kind_count)
		return;
	kind = &r->kinds[record->kind];
	if (kind->name)
		event->category = kind->name;
	if (record->operation < kind->count &&
	    r->operations[kind->first + record->operation].string) {
		event->name = r->operations[kind->first + record->operation].string;
		event->operation = r->operations[kind->first + record->operation].operation;
	}
}

static struct ts_rocprof_event start_event(struct ts_rocprof *r)
{
	const struct ts_rocprof_record *record = &r->record;
	struct ts_rocprof_event event = ts_rocprof_event_none;

	event.start = record->start;
	event.end = record->end;
	event.process = ts_rocprof_process(r);
	event.process_index = r->index;
	event.correlation = record->correlation;
	event.result = record->result;
	set_names(r, &event);
	return event;
}

/* Members without a column, in their order in the record. */
static void add_arg(struct ts_rocprof *r, enum ts_rocprof_member member, enum ts_rocprof_key key,
		    uint64_t value)
{
	if (HAS(&r->record, member))
		ts_rocprof_arg_unsigned(&r->rows, r->rows.keys[key], value);
}

static void add_external(struct ts_rocprof *r)
{
	if (r->record.external)
		ts_rocprof_arg_unsigned(&r->rows, r->rows.keys[TS_ROCPROF_KEY_EXTERNAL],
					r->record.external);
}

/* ---- commands ---- */

static struct ts_rocprof_symbol *symbol_of(struct ts_rocprof *r)
{
	uint64_t index;

	return ts_map_get(&r->symbols, r->record.kernel_id, &index) ? &r->symbol_list[index] : NULL;
}

static uint32_t kernel_name(struct ts_rocprof *r, struct ts_rocprof_symbol *symbol)
{
	char text[48];
	uint64_t renamed;

	/* --kernel-rename: the enclosing ROCTx range at launch. */
	if (r->record.external && ts_map_get(&r->renamed, r->record.external, &renamed))
		return (uint32_t)renamed;
	if (symbol && symbol->length)
		return ts_rocprof_symbol_name(r, symbol);
	snprintf(text, sizeof(text), "kernel %llu", (unsigned long long)r->record.kernel_id);
	return ts_rocprof_text(&r->rows, text);
}

static void add_kernel_args(struct ts_rocprof *r, const struct ts_rocprof_symbol *symbol)
{
	const struct ts_rocprof_record *record = &r->record;

	add_arg(r, TS_ROCPROF_THREAD, TS_ROCPROF_KEY_THREAD, record->thread);
	add_arg(r, TS_ROCPROF_QUEUE, TS_ROCPROF_KEY_QUEUE, record->queue);
	add_arg(r, TS_ROCPROF_KERNEL_ID, TS_ROCPROF_KEY_KERNEL, record->kernel_id);
	add_arg(r, TS_ROCPROF_DISPATCH, TS_ROCPROF_KEY_DISPATCH, record->dispatch_id);
	add_arg(r, TS_ROCPROF_PRIVATE, TS_ROCPROF_KEY_PRIVATE, record->private_size);
	if (symbol && symbol->accum_vgprs != TS_ABSENT)
		ts_rocprof_arg(&r->rows, TS_ROCPROF_KEY_ACCUM_VGPR, symbol->accum_vgprs);
	if (symbol && symbol->sgprs != TS_ABSENT)
		ts_rocprof_arg(&r->rows, TS_ROCPROF_KEY_SGPR, symbol->sgprs);
	add_external(r);
}

static void store_kernel(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	const struct ts_rocprof_record *record = &r->record;
	struct ts_rocprof_symbol *symbol = symbol_of(r);

	event->device = device_of(r, record->agent);
	event->stream = stream_of(r, event->device);
	event->name = kernel_name(r, symbol);
	event->has_size = HAS(record, TS_ROCPROF_WORKGROUP) && HAS(record, TS_ROCPROF_GRID);
	memcpy(event->block, record->block, sizeof(event->block));
	memcpy(event->grid, record->grid, sizeof(event->grid));
	if (HAS(record, TS_ROCPROF_GROUP) && record->group_size <= INT64_MAX)
		event->shared_bytes = (int64_t)record->group_size;
	if (symbol) {
		event->registers = symbol->vgprs;
		event->is_collective = symbol->is_collective;
	}
	add_kernel_args(r, symbol);
	ts_rocprof_add_kernel(&r->rows, event);
}

static void store_copy(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	const struct ts_rocprof_record *record = &r->record;

	event->device = HAS(record, TS_ROCPROF_DST_AGENT) ? device_of(r, record->dst_agent) : 0;
	event->other_device = HAS(record, TS_ROCPROF_SRC_AGENT) ? device_of(r, record->src_agent)
								: 0;
	if (event->device || event->other_device)
		event->stream = stream_of(r, event->device ? event->device : event->other_device);
	if (HAS(record, TS_ROCPROF_BYTES) && record->bytes <= INT64_MAX)
		event->bytes = (int64_t)record->bytes;
	add_arg(r, TS_ROCPROF_THREAD, TS_ROCPROF_KEY_THREAD, record->thread);
	add_arg(r, TS_ROCPROF_SRC_AGENT, TS_ROCPROF_KEY_SRC_AGENT, record->src_agent);
	add_arg(r, TS_ROCPROF_DST_AGENT, TS_ROCPROF_KEY_DST_AGENT, record->dst_agent);
	add_external(r);
	ts_rocprof_add_copy(&r->rows, event);
}

static void store_allocation(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	const struct ts_rocprof_record *record = &r->record;

	event->thread = thread_of(r);
	/* Frees do not name their agent. */
	if (HAS(record, TS_ROCPROF_AGENT) && record->agent && event->operation != TS_ROCPROF_FREE)
		event->device = device_of(r, record->agent);
	event->address = record->address;
	if (HAS(record, TS_ROCPROF_ALLOCATION_SIZE) && record->allocation_size <= INT64_MAX)
		event->bytes = (int64_t)record->allocation_size;
	ts_row_args_add(&r->rows.args, r->rows.keys[TS_ROCPROF_KEY_OPERATION], TS_ARG_STRING,
			event->name);
	add_external(r);
	ts_rocprof_add_allocation(&r->rows, event);
}

/* ---- the host ---- */

static void store_marker(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	uint64_t message;

	if (event->operation != TS_ROCPROF_PLAIN)
		event->category = ts_rocprof_text(&r->rows, "roctx");
	if (ts_map_get(&r->messages, r->record.correlation, &message))
		event->name = (uint32_t)message;
	else if (event->operation == TS_ROCPROF_PLAIN && event->start == event->end)
		event->operation = TS_ROCPROF_MARK;
	event->thread = thread_of(r);
	add_external(r);
	ts_rocprof_add_range(&r->rows, event);
}

/* Any other record with times. */
static void store_other(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	const struct ts_rocprof_record *record = &r->record;

	event->operation = TS_ROCPROF_PLAIN;
	event->category = r->list.name;
	if (event->start == TS_ABSENT && record->timestamp != TS_ABSENT) {
		event->start = event->end = record->timestamp;
		event->operation = TS_ROCPROF_MARK;
	}
	event->thread = thread_of(r);
	add_arg(r, TS_ROCPROF_AGENT, TS_ROCPROF_KEY_AGENT, record->agent);
	add_arg(r, TS_ROCPROF_QUEUE, TS_ROCPROF_KEY_QUEUE, record->queue);
	if (event->name == r->list.name)
		add_arg(r, TS_ROCPROF_OPERATION, TS_ROCPROF_KEY_OPERATION, record->operation);
	add_external(r);
	ts_rocprof_add_range(&r->rows, event);
}

/* "file.cpp:12" of an instruction's comment. */
static void set_line(struct ts_rocprof *r, uint32_t comment, struct ts_frame_row *frame)
{
	size_t length = 0, colon;
	const char *text = comment ? ts_writer_text(r->rows.writer, comment, &length) : NULL;
	int64_t line;

	if (!text)
		return;
	for (colon = length; colon > 0 && text[colon - 1] != ':'; colon--)
		;
	if (colon > 1 && !ts_parse_int64(text + colon, length - colon, &line) && line >= 0) {
		/* The text may move when the next string is added. */
		ts_text_clear(&r->other);
		ts_text_append(&r->other, text, colon - 1);
		frame->file =
			ts_writer_string(r->rows.writer, ts_text_cstr(&r->other), r->other.length);
		frame->line = line;
	}
}

static void store_sample(struct ts_rocprof *r, const struct ts_rocprof_event *event)
{
	const struct ts_rocprof_record *record = &r->record;
	struct ts_sample_row row = ts_sample_none;
	struct ts_frame_row frame = ts_frame_none;
	size_t index = (size_t)record->instruction;

	if (record->timestamp == TS_ABSENT) {
		ts_entities_add_loss(r->rows.entities, &ts_rocprof_lost_time, 1);
		return;
	}
	frame.kind = TS_FRAME_INSTRUCTION;
	frame.pc = record->pc <= INT64_MAX ? (int64_t)record->pc : TS_ABSENT;
	if (record->instruction >= 0 && index < r->instruction_count)
		frame.name = r->instructions[index];
	if (record->instruction >= 0 && index < r->comment_count)
		set_line(r, r->comments[index], &frame);
	row.start = r->rows.entities->time = record->timestamp;
	row.name = r->list.name;
	row.weight = 1;
	row.stack = ts_writer_stack(r->rows.writer, 0, ts_writer_frame(r->rows.writer, &frame));
	add_arg(r, TS_ROCPROF_DISPATCH, TS_ROCPROF_KEY_DISPATCH, record->dispatch_id);
	if (event->correlation)
		ts_rocprof_arg_unsigned(&r->rows, ts_rocprof_text(&r->rows, "correlation_id"),
					event->correlation);
	row.shape = ts_row_args_shape(&r->rows.args, r->rows.writer);
	ts_writer_add(r->rows.writer, TS_TABLE_SAMPLE, &row, r->rows.args.values);
	r->import->result.events++;
}

/* ---- counters ---- */

static uint32_t counter_name(struct ts_rocprof *r, uint64_t counter)
{
	uint64_t name;
	char text[48];

	if (ts_map_get(&r->counters, counter, &name))
		return (uint32_t)name;
	snprintf(text, sizeof(text), "counter %llu", (unsigned long long)counter);
	return ts_rocprof_text(&r->rows, text);
}

static int by_counter(const void *left, const void *right)
{
	const struct ts_rocprof_value *a = left, *b = right;

	return a->counter < b->counter ? -1 : a->counter > b->counter;
}

/* Values of one counter from several hardware instances are added up, as rocprofv3 does. */
static void store_counters(struct ts_rocprof *r, struct ts_rocprof_event *event)
{
	event->device = device_of(r, r->record.agent);
	event->category = r->list.name;
	if (r->value_count)
		qsort(r->values, r->value_count, sizeof(*r->values), by_counter);
	for (size_t i = 0, next; i < r->value_count; i = next) {
		double sum = 0;

		for (next = i;
		     next < r->value_count && r->values[next].counter == r->values[i].counter;
		     next++)
			sum += r->values[next].value;
		event->name = counter_name(r, r->values[i].counter);
		ts_rocprof_add_counter(&r->rows, event, sum);
	}
}

void ts_rocprof_store(struct ts_rocprof *r)
{
	struct ts_rocprof_event event = start_event(r), dispatch;

	if (!r->record.has) {
		ts_entities_add_loss(r->rows.entities, &ts_rocprof_lost_record, 1);
		return;
	}
	switch (r->list.section) {
	case TS_ROCPROF_SECTION_KERNEL:
		store_kernel(r, &event);
		break;
	case TS_ROCPROF_SECTION_COPY:
		store_copy(r, &event);
		break;
	case TS_ROCPROF_SECTION_ALLOCATION:
		store_allocation(r, &event);
		break;
	case TS_ROCPROF_SECTION_CALL:
		event.thread = thread_of(r);
		add_external(r);
		ts_rocprof_add_call(&r->rows, &event);
		break;
	case TS_ROCPROF_SECTION_MARKER:
		store_marker(r, &event);
		break;
	case TS_ROCPROF_SECTION_SAMPLE:
		store_sample(r, &event);
		break;
	case TS_ROCPROF_SECTION_COUNTER:
		dispatch = event;
		/* Without a kernel trace these are the only record of kernels. */
		if (!r->dispatches)
			store_kernel(r, &dispatch);
		store_counters(r, &event);
		break;
	default:
		store_other(r, &event);
	}
}
