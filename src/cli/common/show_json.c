/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row as members of a JSON object. Absent values are omitted; references of an event to a
 * process, thread, device or stream become its system number (pid, tid ...).
 */
#include <string.h>

#include "cli/common/show.h"
#include "trace/json_row.h"
#include "trace/object_details.h"
#include "trace/stack_lists.h"
#include "trace/trace_totals.h"

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

/* A system number, or the text that a source has instead, or nothing. */
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

static void append_thread(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			  int64_t id)
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

static void append_entity(const struct ts_show *show, struct ts_text *out,
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

/* By the number that `replay` shows, too. */
static void append_object(const struct ts_show *show, struct ts_text *out, const char *key,
			  int64_t id)
{
	uint64_t number;

	append_int_member(out, key,
			  ts_object_number(show->reader, id, &number) ? (int64_t)number : id);
}

static void append_reference(const struct ts_show *show, struct ts_text *out,
			     const struct ts_row *row, const struct ts_column_info *column,
			     int64_t id)
{
	/* Only events show system numbers; other rows are joined by their ids. */
	bool event = row->table->kind == TS_KIND_EVENT;

	if (event && !strcmp(column->refers, "thread")) {
		append_thread(show, out, row, id);
	} else if (event && !strcmp(column->refers, "process")) {
		append_pid(show, out, id);
	} else if (event &&
		   (!strcmp(column->refers, "device") || !strcmp(column->refers, "stream"))) {
		append_entity(show, out, column, id);
	} else if (event && !strcmp(column->refers, "object")) {
		append_object(show, out, column->name, id);
	} else if (event && !strcmp(column->refers, "stack")) {
		append_key(out, column->name);
		ts_show_json_stack(show, out, id);
		ts_text_append_char(out, ',');
	} else {
		append_int_member(out, column->name, id);
	}
}

/* If the file is the binary itself, it is shown as the binary. */
static void append_frame_location(const struct ts_show *show, struct ts_text *out, int64_t id,
				  const struct ts_frame_row *frame)
{
	struct ts_string file = ts_frame_file(show->reader, id);
	struct ts_string module = ts_frame_module(show->reader, id);
	int64_t line = ts_frame_line(show->reader, id);

	if (file.length && file.data != module.data) {
		append_key(out, "file");
		ts_text_append_json(out, file.data, file.length);
		ts_text_append_char(out, ',');
	}
	if (line != TS_ABSENT || frame->line != TS_ABSENT)
		append_int_member(out, "lineno", line != TS_ABSENT ? line : frame->line);
	if (module.length) {
		append_key(out, "module");
		ts_text_append_json(out, module.data, module.length);
		ts_text_append_char(out, ',');
	}
	if (frame->mapping && frame->pc != TS_ABSENT)
		append_int_member(out, "pc", frame->pc);
}

static void append_frame(const struct ts_show *show, struct ts_text *out, int64_t id, size_t depth)
{
	const struct ts_frame_row *frame = ts_frame_get(show->reader, id);
	const char *kind = ts_enum_name("frame_kind", frame->kind);
	TS_SCOPED(ts_text) name = { 0 };

	if (frame == &ts_frame_none) {
		ts_text_printf(out, "{\"func\":\"(lost)\",\"depth\":%zu}", depth);
		return;
	}
	if (ts_frame_name(show->reader, id).length || frame->pc != TS_ABSENT)
		ts_frame_append_function(show->reader, &name, id);
	ts_text_append_str(out, "{\"func\":");
	ts_text_append_json(out, name.data, name.length);
	ts_text_append_char(out, ',');
	append_frame_location(show, out, id, frame);
	ts_text_printf(out, "\"depth\":%zu", depth);
	ts_text_printf(out, ",\"frame_type\":\"%s\"}", kind ? kind : "unknown");
}

void ts_show_json_stack(const struct ts_show *show, struct ts_text *out, int64_t stack)
{
	struct ts_stack_list path = { 0 };

	ts_text_append_char(out, '[');
	if (ts_stack_list_load(&path, show->reader, stack))
		out->failed = true;
	for (size_t i = 0; i < path.count; i++) {
		if (i > 0)
			ts_text_append_char(out, ',');
		append_frame(show, out, path.frames[path.count - 1 - i], i);
	}
	ts_stack_list_release(&path);
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

static void append_bytes(struct ts_text *out, const struct ts_row *row, const char *key)
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

/* Is it "no value"? For durations, booleans and most enums 0 is a value; a float of 0 is none. */
static bool is_left_out(const struct ts_column_info *column, int64_t value)
{
	const char *name;

	switch (column->type) {
	case TS_COLUMN_DURATION:
	case TS_COLUMN_BOOL:
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

void ts_show_json_column(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			 unsigned int column)
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

void ts_show_json_members(const struct ts_show *show, struct ts_text *out, const struct ts_row *row)
{
	uint64_t number;

	if (row->id)
		append_int_member(out, "id", row->id);
	/* Rows of `command` name objects by number. */
	if (row->table->id == TS_TABLE_OBJECT &&
	    ts_object_number(show->reader, row->columns[TS_COLUMN_OF(object, id)], &number))
		append_int_member(out, "number", (int64_t)number);
	for (unsigned int i = 0; i < row->table->column_count; i++)
		ts_show_json_column(show, out, row, i);
}
