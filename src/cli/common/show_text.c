/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of a text table: times relative to the trace, durations with units, entities by name. For
 * people; the JSON output has exact values.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/emit.h>

#include "cli/common/show.h"
#include "model/short_name.h"
#include "trace/json_row.h"
#include "trace/object_details.h"
#include "trace/stack_lists.h"
#include "trace/step_mark.h"

static void append_string(const struct ts_show *show, struct ts_text *out, int64_t string)
{
	struct ts_string text = ts_reader_string(show->reader, string);

	ts_text_append(out, text.data, text.length);
}

/* The value of the named column; 0 if the table has no such column. */
static int64_t value_of(const struct ts_row *row, const char *name)
{
	int position = ts_column_by_name(row->table, name);

	return position < 0 ? 0 : row->columns[position];
}

/* In a form that --from accepts. */
static void append_time(struct ts_text *out, int64_t ns)
{
	char text[TS_FORMAT_BYTES];

	ts_text_append_str(out, ts_format_instant_ns(text, sizeof(text), ns));
}

static void append_duration(struct ts_text *out, int64_t ns)
{
	char text[TS_FORMAT_BYTES];

	if (ns < 0)
		ts_text_append_str(out, "open");
	else
		ts_text_append_str(out, ts_format_duration_ns(text, sizeof(text), ns));
}

static void append_bytes(struct ts_text *out, int64_t bytes)
{
	char text[TS_FORMAT_BYTES];

	if (bytes != TS_ABSENT)
		ts_text_append_str(out, ts_format_bytes(text, sizeof(text), (uint64_t)bytes));
}

/* ---- where ---- */

/* "rank 3 " before the WHERE cell, if the trace has several sources. */
static void append_source(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_source_row *source;

	if (!show->several_sources || !id)
		return;
	source = ts_reader_entity(show->reader, TS_TABLE_SOURCE, id);
	if (source && source->rank != TS_ABSENT)
		ts_text_printf(out, "rank %" PRId64 " ", source->rank);
	else
		ts_text_printf(out, "source %" PRId64 " ", id);
}

/* A name, and its system number or text unless the name contains it. */
static void append_label(const struct ts_show *show, struct ts_text *out, int64_t name,
			 int64_t number, int64_t number_text, const char *otherwise)
{
	struct ts_string text = ts_reader_string(show->reader, name);
	char digits[24] = "";

	if (number != TS_ABSENT)
		snprintf(digits, sizeof(digits), "%" PRId64, number);
	if (text.length == 0 && number == TS_ABSENT && !number_text)
		ts_text_append_str(out, otherwise);
	ts_text_append(out, text.data, text.length);
	if (number_text || (digits[0] && !strstr(text.data, digits))) {
		if (text.length)
			ts_text_append_char(out, ' ');
		ts_text_append_str(out, digits);
		append_string(show, out, number_text);
	}
}

static void append_process(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_process_row *process = ts_reader_entity(show->reader, TS_TABLE_PROCESS, id);

	if (!process) {
		ts_text_printf(out, "process #%" PRId64, id);
		return;
	}
	append_source(show, out, process->source);
	append_label(show, out, process->name, process->pid, process->pid_text, "process");
}

/* The numbers of "ranges 1" and "async 0" are no tids: the name says all. */
static bool is_labelled_track(const struct ts_thread_row *thread)
{
	return thread->name && thread->tid >= TS_TRACK_RANGES &&
	       thread->tid < TS_TRACK_ASYNC + UINT16_MAX;
}

static void append_thread(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_thread_row *thread = ts_reader_entity(show->reader, TS_TABLE_THREAD, id);

	if (!thread) {
		ts_text_printf(out, "thread #%" PRId64, id);
		return;
	}
	append_process(show, out, thread->process);
	ts_text_append_char(out, '/');
	append_label(show, out, thread->name, is_labelled_track(thread) ? TS_ABSENT : thread->tid,
		     thread->tid_text, "thread");
}

static void append_device(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_device_row *device = ts_reader_entity(show->reader, TS_TABLE_DEVICE, id);

	if (device)
		append_source(show, out, device->source);
	if (device && device->number != TS_ABSENT)
		ts_text_printf(out, "device %" PRId64, device->number);
	else
		ts_text_printf(out, "device #%" PRId64, id);
}

static void append_stream(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_stream_row *stream = ts_reader_entity(show->reader, TS_TABLE_STREAM, id);

	if (stream && stream->number != TS_ABSENT)
		ts_text_printf(out, "stream %" PRId64, stream->number);
	else
		ts_text_printf(out, "stream #%" PRId64, id);
}

/* The subject of a counter without a thread. */
static void append_subject(const struct ts_show *show, struct ts_text *out, int64_t process,
			   int64_t device)
{
	if (process)
		append_process(show, out, process);
	if (process && device)
		ts_text_append_str(out, " on ");
	if (device)
		append_device(show, out, device);
	if (!process && !device)
		ts_text_append_str(out, "system");
}

static void append_where(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	int64_t thread = value_of(row, "thread"), device = value_of(row, "device");
	int64_t stream = value_of(row, "stream"), process = value_of(row, "process");

	if (thread) {
		append_thread(show, out, thread);
	} else if (row->table->id == TS_TABLE_COUNTER) {
		append_subject(show, out, process, device);
	} else if (device || stream) {
		if (device)
			append_device(show, out, device);
		if (device && stream)
			ts_text_append_char(out, '/');
		if (stream)
			append_stream(show, out, stream);
	} else if (process) {
		append_process(show, out, process);
	}
}

/* ---- name ---- */

static void append_args(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	size_t before, begin = out->length;

	ts_show_json_fields(show, out, row, 0);
	before = out->length;
	ts_text_append_str(out, out->length > begin ? " beside " : "beside ");
	if (!ts_show_json_fields(show, out, row, 1))
		out->length = before;
}

static void append_enum(struct ts_text *out, const struct ts_row *row, const char *name)
{
	int position = ts_column_by_name(row->table, name);
	const char *text;

	if (position < 0)
		return;
	text = ts_enum_name(row->table->columns[position].refers, row->columns[position]);
	ts_text_append_str(out, text ? text : "unknown");
}

static void append_loss(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	const struct ts_loss_row *loss = (const struct ts_loss_row *)(const void *)row->columns;
	char count[TS_FORMAT_BYTES] = "unknown number";

	if (loss->count != TS_ABSENT)
		ts_format_count(count, sizeof(count), loss->count);
	append_string(show, out, loss->what);
	ts_text_printf(out, ": %s lost", count);
	if (loss->reason && !show->reasons_apart) {
		ts_text_append_str(out, ": ");
		append_string(show, out, loss->reason);
	}
}

/* "17 launch blend", "18 copy memory 4 64 KiB": `replay` uses the same numbers. */
static void append_command(const struct ts_show *show, struct ts_text *out,
			   const struct ts_row *row)
{
	const struct ts_object_row *object =
		ts_reader_entity(show->reader, TS_TABLE_OBJECT, value_of(row, "object"));
	int64_t sequence = value_of(row, "sequence"), bytes = value_of(row, "bytes");

	if (sequence != TS_ABSENT)
		ts_text_printf(out, "%" PRId64 " ", sequence);
	append_enum(out, row, "kind");
	if (object && object->name) {
		ts_text_append_char(out, ' ');
		append_string(show, out, object->name);
	}
	if (bytes != TS_ABSENT) {
		ts_text_append_char(out, ' ');
		append_bytes(out, bytes);
	}
}

/*
 * The number of samples of a device instruction and its stall reason come first: kernel names can
 * fill a line.
 */
static void append_hits(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	int64_t weight = value_of(row, "weight");
	char count[TS_FORMAT_BYTES];

	if (weight != TS_ABSENT)
		ts_text_printf(out, "%s sample%s", ts_format_count(count, sizeof(count), weight),
			       weight == 1 ? "" : "s");
	if (weight != TS_ABSENT && value_of(row, "state"))
		ts_text_append_str(out, ", ");
	append_string(show, out, value_of(row, "state"));
	if (weight != TS_ABSENT || value_of(row, "state"))
		ts_text_append_str(out, ": ");
}

/* "12 samples, wait: gemm+0x0130" for a device; "main (x.py:3), depth 2, idle" for a thread. */
static void append_sample(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	int64_t stack = value_of(row, "stack");
	bool is_hit = ts_stack_is_instruction(show->reader, stack);

	if (is_hit)
		append_hits(show, out, row);
	ts_show_stack_summary(show->reader, out, stack);
	if (!is_hit && value_of(row, "state")) {
		ts_text_append_str(out, ", ");
		append_string(show, out, value_of(row, "state"));
	}
}

/* "alloc 2 MiB of cuMemAlloc, 6 MiB in use": the allocator, and the memory in use on its device. */
static void append_allocation(const struct ts_show *show, struct ts_text *out,
			      const struct ts_row *row)
{
	append_enum(out, row, "kind");
	ts_text_append_char(out, ' ');
	append_bytes(out, value_of(row, "bytes"));
	if (value_of(row, "pool"))
		ts_text_append_str(out, " of ");
	append_string(show, out, value_of(row, "pool"));
	if (value_of(row, "total_bytes") == TS_ABSENT)
		return;
	ts_text_append_str(out, ", ");
	append_bytes(out, value_of(row, "total_bytes"));
	ts_text_append_str(out, " in use");
}

/* " 12" after the name of a step (TS_STEP), which has its number as an argument. */
static void append_step(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	int64_t number;

	if (ts_step_mark(show->reader, (const struct ts_mark_row *)(const void *)row->columns,
			 row->values, &number))
		ts_text_printf(out, " %" PRId64, number);
}

static bool is_kernel(const struct ts_row *row)
{
	int64_t kind = value_of(row, "kind");

	return row->table->id == TS_TABLE_GPU_OP &&
	       (kind == TS_GPU_OP_KERNEL || kind == TS_GPU_OP_COLLECTIVE);
}

static void append_short(const struct ts_show *show, struct ts_text *out, int64_t string)
{
	struct ts_string text = ts_reader_string(show->reader, string);

	if (ts_text_reserve(out, text.length))
		out->length += ts_short_name(text.data, text.length, out->data + out->length);
}

static void append_name(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	int position = ts_row_name_column(row->table);

	switch (row->table->id) {
	case TS_TABLE_LOSS:
		append_loss(show, out, row);
		return;
	case TS_TABLE_SAMPLE:
		if (!value_of(row, "stack"))
			break;
		append_sample(show, out, row);
		return;
	case TS_TABLE_ALLOCATION:
		append_allocation(show, out, row);
		return;
	case TS_TABLE_COMMAND:
		append_command(show, out, row);
		return;
	default:
		break;
	}
	if (position >= 0 && show->short_names && is_kernel(row))
		append_short(show, out, row->columns[position]);
	else if (position >= 0)
		append_string(show, out, row->columns[position]);
	if (row->table->id == TS_TABLE_COUNTER) {
		ts_show_counter_values(show, out, row);
	} else if (row->table->id == TS_TABLE_MARK) {
		append_step(show, out, row);
	} else if (row->table->id == TS_TABLE_FLOW) {
		ts_text_append_char(out, ' ');
		append_enum(out, row, "kind");
	} else if (row->table->id == TS_TABLE_TORCH_TRACE) {
		ts_text_append_char(out, ' ');
		append_enum(out, row, "stage");
	}
}

/* ---- cells ---- */

static void append_scalar(const struct ts_show *show, struct ts_text *out,
			  const struct ts_column_info *column, int64_t value)
{
	bool is_text = column->type == TS_COLUMN_STRING || column->type == TS_COLUMN_JSON;
	const char *name = NULL;

	if (column->type == TS_COLUMN_ENUM)
		name = ts_enum_name(column->refers, value);
	if (name)
		ts_text_append_str(out, name);
	else if (is_text)
		append_string(show, out, value);
	else
		ts_json_row_scalar(show->reader, out, column, value);
}

/* "memory 7", by the number that `replay` shows, too. */
static void append_object(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_object_row *object = ts_reader_entity(show->reader, TS_TABLE_OBJECT, id);
	const char *kind = object ? ts_enum_name("object_kind", object->kind) : NULL;
	uint64_t number;

	if (kind && ts_object_number(show->reader, id, &number))
		ts_text_printf(out, "%s %" PRIu64, kind, number);
	else
		ts_text_printf(out, "row %" PRId64, id);
}

static void append_reference(const struct ts_show *show, struct ts_text *out,
			     const struct ts_row *row, const struct ts_column_info *column,
			     int64_t id)
{
	struct ts_string function;

	if (!strcmp(column->refers, "thread")) {
		append_thread(show, out, id);
	} else if (!strcmp(column->refers, "process")) {
		append_process(show, out, id);
	} else if (!strcmp(column->refers, "device")) {
		append_device(show, out, id);
	} else if (!strcmp(column->refers, "stream")) {
		append_stream(show, out, id);
	} else if (!strcmp(column->refers, "object")) {
		append_object(show, out, id);
	} else if (!strcmp(column->refers, "stack") && row->table->kind == TS_KIND_EVENT) {
		ts_show_stack_summary(show->reader, out, id);
	} else if (!strcmp(column->refers, "stack")) {
		function = ts_stack_leaf_name(show->reader, id);
		ts_text_append(out, function.data, function.length);
	} else {
		ts_text_append_int(out, id);
	}
}

static void append_exit(struct ts_text *out, int64_t wait_status)
{
	char text[TS_FORMAT_BYTES];

	ts_text_append_str(out, ts_format_exit(text, sizeof(text), (int)wait_status));
}

static void append_column(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			  unsigned int position)
{
	const struct ts_column_info *column = &row->table->columns[position];
	int64_t value = row->columns[position];

	if (column->type == TS_COLUMN_BYTES) {
		if (row->table->id == TS_TABLE_STRING)
			ts_text_append(out, row->bytes, row->bytes_length);
		else
			append_bytes(out, (int64_t)row->bytes_length);
	} else if (column->type == TS_COLUMN_SHAPE) {
		append_args(show, out, row);
	} else if (column->type == TS_COLUMN_DURATION) {
		append_duration(out, value);
	} else if (value == TS_ABSENT) {
		return;
	} else if (row->table->id == TS_TABLE_PROCESS && !strcmp(column->name, "exit_status")) {
		append_exit(out, value);
	} else if (column->type == TS_COLUMN_REF && value) {
		append_reference(show, out, row, column, value);
	} else if (column->type != TS_COLUMN_REF) {
		append_scalar(show, out, column, value);
	}
}

void ts_show_cell(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
		  unsigned int column)
{
	int64_t ns;
	int position;

	switch (column) {
	case TS_SHOW_TIME:
		if (row->table->start >= 0 &&
		    !__builtin_sub_overflow(row->columns[row->table->start], show->start, &ns))
			append_time(out, ns);
		break;
	case TS_SHOW_WHERE:
		append_where(show, out, row);
		break;
	case TS_SHOW_TABLE:
		ts_text_append_str(out, row->table->name);
		break;
	case TS_SHOW_NAME:
		append_name(show, out, row);
		break;
	case TS_SHOW_CATEGORY:
		append_string(show, out, value_of(row, "category"));
		break;
	case TS_SHOW_DURATION:
		position = ts_row_duration_column(row->table);
		if (position >= 0)
			append_duration(out,
					ts_row_duration_ns(row->table, row->columns[position]));
		break;
	case TS_SHOW_ARGS:
		append_args(show, out, row);
		break;
	default:
		append_column(show, out, row, column);
		break;
	}
}

/* ---- columns to read ---- */

static uint64_t bit(const struct ts_table_info *table, const char *name)
{
	int position = ts_column_by_name(table, name);

	return position < 0 ? 0 : UINT64_C(1) << position;
}

static uint64_t name_mask(const struct ts_table_info *table)
{
	int position = ts_row_name_column(table);
	uint64_t mask = position < 0 ? 0 : UINT64_C(1) << position;

	switch (table->id) {
	case TS_TABLE_LOSS:
	case TS_TABLE_COUNTER:
	case TS_TABLE_MARK:
		return TS_MASK_ALL;
	case TS_TABLE_SAMPLE:
		return mask | bit(table, "stack") | bit(table, "state") | bit(table, "weight");
	case TS_TABLE_ALLOCATION:
		return bit(table, "kind") | bit(table, "bytes") | bit(table, "pool") |
		       bit(table, "total_bytes");
	case TS_TABLE_COMMAND:
		return bit(table, "sequence") | bit(table, "kind") | bit(table, "object") |
		       bit(table, "bytes");
	case TS_TABLE_FLOW:
		return mask | bit(table, "kind");
	case TS_TABLE_TORCH_TRACE:
		return mask | bit(table, "stage");
	default:
		return mask;
	}
}

uint64_t ts_show_special_mask(const struct ts_table_info *table, enum ts_show_special special)
{
	int position;

	switch (special) {
	case TS_SHOW_TIME:
		return table->start < 0 ? 0 : UINT64_C(1) << table->start;
	case TS_SHOW_WHERE:
		return bit(table, "thread") | bit(table, "device") | bit(table, "stream") |
		       bit(table, "process");
	case TS_SHOW_NAME:
		return name_mask(table);
	case TS_SHOW_CATEGORY:
		return bit(table, "category");
	case TS_SHOW_DURATION:
		position = ts_row_duration_column(table);
		return position < 0 ? 0 : UINT64_C(1) << position;
	case TS_SHOW_ARGS:
		/* Arguments may name any column. */
		return table->shape < 0 ? 0 : TS_MASK_ALL;
	case TS_SHOW_TABLE:
		break;
	}
	return 0;
}
