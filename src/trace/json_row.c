/* SPDX-License-Identifier: Apache-2.0 */
/* See json_row.h. */
#include "trace/json_row.h"

#include <string.h>

#include "base/json.h"

void ts_json_row_string(struct ts_reader *reader, struct ts_text *out, int64_t string)
{
	struct ts_string text = ts_reader_string(reader, string);

	ts_text_append_json(out, text.data, text.length);
}

/* The end of the bytes that need no escape for sure. */
static const char *skip_plain(const char *p, const char *end)
{
	while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f)
		p++;
	return p;
}

/*
 * Control characters inside the strings of JSON text, which some tools write and our scanner takes,
 * as escapes. There are none elsewhere: white space has been dropped. The text is valid UTF-8.
 */
static void escape_controls(struct ts_text *out, size_t from)
{
	TS_SCOPED(ts_text) escaped = { 0 };
	const char *end = out->data + out->length, *p = skip_plain(out->data + from, end);
	size_t first = (size_t)(p - out->data);

	while (p < end) {
		const char *plain = skip_plain(p, end), *other = plain;

		ts_text_append(&escaped, p, (size_t)(plain - p));
		while (other < end && skip_plain(other, end) == other)
			other++;
		ts_text_append_json_bare(&escaped, plain, (size_t)(other - plain));
		p = other;
	}
	out->length = first;
	ts_text_append(out, escaped.data, escaped.length);
	out->failed |= escaped.failed;
}

void ts_json_row_raw(struct ts_reader *reader, struct ts_text *out, int64_t string)
{
	struct ts_string text = ts_reader_string(reader, string);
	size_t before = out->length;
	struct ts_json json;

	ts_json_init(&json, text.data, text.length, true);
	if (ts_json_minify(&json, out) || ts_json_peek(&json) >= 0 ||
	    !ts_utf8_valid(text.data, text.length)) {
		out->length = before;
		ts_text_append_json(out, text.data, text.length);
	} else {
		escape_controls(out, before);
	}
}

static void append_double(struct ts_text *out, int64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof(real));
	ts_text_append_double(out, real);
}

void ts_json_row_scalar(struct ts_reader *reader, struct ts_text *out,
			const struct ts_column_info *column, int64_t value)
{
	const char *name;

	switch (column->type) {
	case TS_COLUMN_FLOAT:
		append_double(out, value);
		break;
	case TS_COLUMN_BOOL:
		ts_text_append_str(out, value ? "true" : "false");
		break;
	case TS_COLUMN_STRING:
		ts_json_row_string(reader, out, value);
		break;
	case TS_COLUMN_JSON:
		ts_json_row_raw(reader, out, value);
		break;
	case TS_COLUMN_ENUM:
		name = ts_enum_name(column->refers, value);
		if (name)
			ts_text_append_json(out, name, strlen(name));
		else
			ts_text_append_int(out, value);
		break;
	default:
		ts_text_append_int(out, value);
	}
}

void ts_json_row_close(struct ts_text *out, char bracket)
{
	if (out->length && out->data[out->length - 1] == ',')
		out->length--;
	ts_text_append_char(out, bracket);
}

/* ---- columns ---- */

static void append_key(struct ts_text *out, const char *key)
{
	ts_text_append_json(out, key, strlen(key));
	ts_text_append_char(out, ':');
}

bool ts_json_row_columns(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			 uint64_t mask)
{
	bool any = false;

	for (int i = 0; i < row->table->column_count; i++) {
		const struct ts_column_info *column = &row->table->columns[i];

		if (!(mask >> i & 1) || row->columns[i] == column->none ||
		    column->type == TS_COLUMN_SHAPE || column->type == TS_COLUMN_BYTES)
			continue;
		append_key(out, column->name);
		ts_json_row_scalar(reader, out, column, row->columns[i]);
		ts_text_append_char(out, ',');
		any = true;
	}
	return any;
}

/* ---- arguments ---- */

static bool append_int(struct ts_text *out, int64_t value)
{
	if (value == TS_ABSENT)
		return false;
	ts_text_append_int(out, value);
	return true;
}

static bool append_triple(struct ts_text *out, const int64_t *values)
{
	for (int i = 0; i < 3; i++) {
		if (values[i] == TS_ABSENT)
			return false;
		ts_text_append_char(out, i ? ',' : '[');
		ts_text_append_int(out, values[i]);
	}
	ts_text_append_char(out, ']');
	return true;
}

/* Computed columns are those of a gpu_op; false: this row has no such value. */
static bool append_computed(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			    unsigned int computed)
{
	const int64_t *columns = row->columns;
	const struct ts_device_row *device;
	const struct ts_stream_row *stream;
	int64_t bytes, duration;

	if (row->table->id != TS_TABLE_GPU_OP)
		return false;
	switch (computed) {
	case TS_COMPUTED_GRID:
		return append_triple(out, columns + TS_COLUMN_OF(gpu_op, grid_x));
	case TS_COMPUTED_BLOCK:
		return append_triple(out, columns + TS_COLUMN_OF(gpu_op, block_x));
	case TS_COMPUTED_BANDWIDTH:
		bytes = columns[TS_COLUMN_OF(gpu_op, bytes)];
		duration = columns[TS_COLUMN_OF(gpu_op, duration)];
		if (bytes == TS_ABSENT || duration <= 0)
			return false;
		ts_text_append_double(out, (double)bytes / (double)duration);
		return true;
	case TS_COMPUTED_DEVICE:
		device = ts_reader_entity(reader, TS_TABLE_DEVICE,
					  columns[TS_COLUMN_OF(gpu_op, device)]);
		return device && append_int(out, device->number);
	case TS_COMPUTED_STREAM:
		stream = ts_reader_entity(reader, TS_TABLE_STREAM,
					  columns[TS_COLUMN_OF(gpu_op, stream)]);
		return stream && append_int(out, stream->number);
	default:
		return false;
	}
}

static bool append_column(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			  unsigned int id)
{
	int position = ts_column_by_id(row->table, id);

	if (position < 0)
		return append_computed(reader, out, row, id);
	if (row->columns[position] == row->table->columns[position].none)
		return false;
	ts_json_row_scalar(reader, out, &row->table->columns[position], row->columns[position]);
	return true;
}

/* False: the field has no value, or one that this build does not know. */
static bool append_value(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			 const struct ts_field *field, int64_t value)
{
	switch (field->type) {
	case TS_ARG_INT:
		ts_text_append_int(out, value);
		return true;
	case TS_ARG_DOUBLE:
		append_double(out, value);
		return true;
	case TS_ARG_STRING:
		ts_json_row_string(reader, out, value);
		return true;
	case TS_ARG_BOOL:
		ts_text_append_str(out, value ? "true" : "false");
		return true;
	case TS_ARG_JSON:
		ts_json_row_raw(reader, out, value);
		return true;
	case TS_ARG_NULL:
		ts_text_append_str(out, "null");
		return true;
	case TS_ARG_COLUMN:
		return append_column(reader, out, row, field->column);
	default:
		return false;
	}
}

bool ts_json_row_fields(struct ts_reader *reader, struct ts_text *out, const struct ts_row *row,
			int beside)
{
	const struct ts_shape *shape;
	const int64_t *next = row->values;
	bool any = false;

	if (row->table->shape < 0 || !row->columns[row->table->shape])
		return false;
	shape = ts_reader_shape(reader, row->columns[row->table->shape]);
	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		int64_t value = next && ts_arg_has_value(field->type) ? *next++ : 0;
		size_t before = out->length;

		if (field->beside != beside)
			continue;
		ts_json_row_string(reader, out, field->key);
		ts_text_append_char(out, ':');
		if (append_value(reader, out, row, field, value)) {
			ts_text_append_char(out, ',');
			any = true;
		} else {
			out->length = before;
		}
	}
	return any;
}
