/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row as members of a JSON object. What the row does not have is left out; a reference to a
 * process, thread, device or stream of an event becomes the number that the system gave it.
 * Must not know where rows come from.
 */
#include <string.h>

#include "cli/show.h"
#include "cli/trace.h"
#include "export/json_row.h"

#define MAX_STACK_DEPTH 65536

static const struct ts_process_row *find_process(const struct ts_show *show, int64_t id)
{
	return ts_reader_entity(show->reader, TS_TABLE_PROCESS, id);
}

void ts_show_init(struct ts_show *show, struct ts_reader *reader)
{
	*show = (struct ts_show){
		.reader = reader,
		.start = ts_trace_start(reader),
		.several_sources = ts_reader_rows(reader, TS_TABLE_SOURCE) > 1 &&
				   ts_trace_entities(reader, TS_TABLE_SOURCE) > 1,
	};
}

static void append_key(struct ts_text *out, const char *key)
{
	ts_text_append_json(out, key, strlen(key));
	ts_text_append_char(out, ':');
}

static void append_int_member(struct ts_text *out, const char *key, int64_t value)
{
	append_key(out, key);
	ts_text_append_int(out, value);
	ts_text_append_char(out, ',');
}

/* A number of the system, or the text that a source has in its place, or nothing. */
static void append_number(const struct ts_show *show, struct ts_text *out, const char *key,
			  int64_t number, int64_t text)
{
	if (text) {
		append_key(out, key);
		ts_json_row_string(show->reader, out, text);
		ts_text_append_char(out, ',');
	} else if (number != TS_ABSENT) {
		append_int_member(out, key, number);
	}
}

static void append_pid(const struct ts_show *show, struct ts_text *out, int64_t id)
{
	const struct ts_process_row *process = find_process(show, id);

	if (process)
		append_number(show, out, "pid", process->pid, process->pid_text);
	else
		append_int_member(out, "process", id);
}

static void append_thread(const struct ts_show *show, struct ts_text *out,
			  const struct ts_shown_row *row, int64_t id)
{
	const struct ts_thread_row *thread = ts_reader_entity(show->reader, TS_TABLE_THREAD, id);
	int process = ts_column_by_name(row->table, "process");

	if (!thread) {
		append_int_member(out, "thread", id);
		return;
	}
	/* The row's own process has been shown already. */
	if (thread->process && (process < 0 || !row->columns[process]))
		append_pid(show, out, thread->process);
	append_number(show, out, "tid", thread->tid, thread->tid_text);
}

static void append_place(const struct ts_show *show, struct ts_text *out,
			 const struct ts_column_info *column, int64_t id)
{
	bool is_device = !strcmp(column->refers, "device");
	const struct ts_device_row *device;
	const struct ts_stream_row *stream;
	int64_t number = TS_ABSENT;

	if (is_device) {
		device = ts_reader_entity(show->reader, TS_TABLE_DEVICE, id);
		number = device ? device->number : TS_ABSENT;
	} else {
		stream = ts_reader_entity(show->reader, TS_TABLE_STREAM, id);
		number = stream ? stream->number : TS_ABSENT;
	}
	append_int_member(out, column->name, number == TS_ABSENT ? id : number);
}

static void append_reference(const struct ts_show *show, struct ts_text *out,
			     const struct ts_shown_row *row, const struct ts_column_info *column,
			     int64_t id)
{
	/* Rows that are no events are joined by their ids. */
	bool event = row->table->kind == TS_KIND_EVENT;

	if (event && !strcmp(column->refers, "thread")) {
		append_thread(show, out, row, id);
	} else if (event && !strcmp(column->refers, "process")) {
		append_pid(show, out, id);
	} else if (event &&
		   (!strcmp(column->refers, "device") || !strcmp(column->refers, "stream"))) {
		append_place(show, out, column, id);
	} else if (event && !strcmp(column->refers, "stack")) {
		append_key(out, column->name);
		ts_show_json_stack(show, out, id);
		ts_text_append_char(out, ',');
	} else {
		append_int_member(out, column->name, id);
	}
}

static void append_frame(const struct ts_show *show, struct ts_text *out, int64_t id, int depth)
{
	const struct ts_frame_row *frame = ts_reader_entity(show->reader, TS_TABLE_FRAME, id);
	const char *kind;

	if (!frame) {
		ts_text_printf(out, "{\"func\":\"(lost)\",\"depth\":%d}", depth);
		return;
	}
	kind = ts_enum_name("frame_kind", frame->kind);
	ts_text_append_str(out, "{\"func\":");
	if (frame->name || frame->pc == TS_ABSENT)
		ts_json_row_string(show->reader, out, frame->name);
	else
		ts_text_printf(out, "\"0x%llx\"", (unsigned long long)frame->pc);
	if (frame->file) {
		ts_text_append_str(out, ",\"file\":");
		ts_json_row_string(show->reader, out, frame->file);
	}
	if (frame->line != TS_ABSENT) {
		ts_text_append_str(out, ",\"lineno\":");
		ts_text_append_int(out, frame->line);
	}
	ts_text_printf(out, ",\"depth\":%d", depth);
	ts_text_printf(out, ",\"frame_type\":\"%s\"}", kind ? kind : "unknown");
}

void ts_show_json_stack(const struct ts_show *show, struct ts_text *out, int64_t stack)
{
	int64_t id = stack;

	ts_text_append_char(out, '[');
	for (int depth = 0; id > 0 && depth < MAX_STACK_DEPTH; depth++) {
		const struct ts_stack_row *row = ts_reader_entity(show->reader, TS_TABLE_STACK, id);

		if (depth > 0)
			ts_text_append_char(out, ',');
		append_frame(show, out, row ? row->frame : 0, depth);
		/* Parents have smaller ids; anything else would go round for ever. */
		id = row && row->parent < id ? row->parent : 0;
	}
	ts_text_append_char(out, ']');
}

static void append_base64(struct ts_text *out, const char *data, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t group = (uint32_t)(unsigned char)data[i] << 16;

		if (left > 1)
			group |= (uint32_t)(unsigned char)data[i + 1] << 8;
		if (left > 2)
			group |= (unsigned char)data[i + 2];
		ts_text_append_char(out, digits[group >> 18]);
		ts_text_append_char(out, digits[group >> 12 & 63]);
		ts_text_append_char(out, left > 1 ? digits[group >> 6 & 63] : '=');
		ts_text_append_char(out, left > 2 ? digits[group & 63] : '=');
	}
}

static void append_bytes(struct ts_text *out, const struct ts_shown_row *row, const char *key)
{
	append_key(out, key);
	if (row->table->id == TS_TABLE_STRING) {
		ts_text_append_json(out, row->bytes, row->bytes_length);
	} else {
		ts_text_append_char(out, '"');
		append_base64(out, row->bytes, row->bytes_length);
		ts_text_append_char(out, '"');
	}
	ts_text_append_char(out, ',');
}

/* Is it "no value"? Durations, truths and most enums have a 0 that says something. */
static bool is_left_out(const struct ts_column_info *column, int64_t value)
{
	const char *name;

	switch (column->type) {
	case TS_COLUMN_DURATION:
	case TS_COLUMN_BOOL:
	case TS_COLUMN_FLOAT:
		return value == TS_ABSENT && column->none == TS_ABSENT;
	case TS_COLUMN_ENUM:
		name = value == 0 ? ts_enum_name(column->refers, 0) : NULL;
		return name && (!strcmp(name, "none") || !strcmp(name, "unknown") ||
				!strcmp(name, "unsaid"));
	case TS_COLUMN_INT:
		return column->none == TS_ABSENT && value == TS_ABSENT;
	default:
		return value == column->none;
	}
}

void ts_show_json_column(const struct ts_show *show, struct ts_text *out,
			 const struct ts_shown_row *row, unsigned int column)
{
	const struct ts_column_info *info = &row->table->columns[column];
	int64_t value = row->columns[column];

	if (info->type == TS_COLUMN_SHAPE) {
		ts_show_json_args(show, out, row);
	} else if (info->type == TS_COLUMN_BYTES) {
		append_bytes(out, row, info->name);
	} else if (is_left_out(info, value)) {
		return;
	} else if (info->type == TS_COLUMN_REF) {
		append_reference(show, out, row, info, value);
	} else {
		append_key(out, info->name);
		ts_json_row_scalar(show->reader, out, info, value);
		ts_text_append_char(out, ',');
	}
}

void ts_show_json_members(const struct ts_show *show, struct ts_text *out,
			  const struct ts_shown_row *row)
{
	if (row->id)
		append_int_member(out, "id", row->id);
	for (unsigned int i = 0; i < row->table->column_count; i++)
		ts_show_json_column(show, out, row, i);
}
