/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row's arguments as JSON, in their order, those that have a column of their own put back
 * (docs/format.md 4.2). Must not know what the keys mean.
 */
#include <string.h>

#include "cli/show.h"

static int64_t column_or_absent(const struct ts_shown_row *row, const char *name)
{
	int position = ts_column_by_name(row->table, name);

	return position < 0 ? TS_ABSENT : row->columns[position];
}

static bool append_triple(struct ts_text *out, const struct ts_shown_row *row, const char *x,
			  const char *y, const char *z)
{
	int64_t values[3] = { column_or_absent(row, x), column_or_absent(row, y),
			      column_or_absent(row, z) };

	if (values[0] == TS_ABSENT || values[1] == TS_ABSENT || values[2] == TS_ABSENT)
		return false;
	for (int i = 0; i < 3; i++) {
		ts_text_append_char(out, i ? ',' : '[');
		ts_text_append_int(out, values[i]);
	}
	ts_text_append_char(out, ']');
	return true;
}

static bool append_bandwidth(struct ts_text *out, const struct ts_shown_row *row)
{
	int64_t bytes = column_or_absent(row, "bytes"), ns = column_or_absent(row, "duration");

	if (bytes == TS_ABSENT || ns == TS_ABSENT || ns <= 0)
		return false;
	ts_text_append_double(out, (double)bytes / (double)ns);
	return true;
}

static bool append_int(struct ts_text *out, int64_t value)
{
	if (value == TS_ABSENT)
		return false;
	ts_text_append_int(out, value);
	return true;
}

static int64_t device_number(const struct ts_show *show, const struct ts_shown_row *row)
{
	const struct ts_device_row *device;

	device = ts_reader_entity(show->reader, TS_TABLE_DEVICE, column_or_absent(row, "device"));
	return device ? device->number : TS_ABSENT;
}

static int64_t stream_number(const struct ts_show *show, const struct ts_shown_row *row)
{
	const struct ts_stream_row *stream;

	stream = ts_reader_entity(show->reader, TS_TABLE_STREAM, column_or_absent(row, "stream"));
	return stream ? stream->number : TS_ABSENT;
}

/* The value of a field that names a column; false: it has none. */
static bool append_column(const struct ts_show *show, struct ts_text *out,
			  const struct ts_shown_row *row, unsigned int id)
{
	int position;

	switch (id) {
	case TS_COMPUTED_GRID:
		return append_triple(out, row, "grid_x", "grid_y", "grid_z");
	case TS_COMPUTED_BLOCK:
		return append_triple(out, row, "block_x", "block_y", "block_z");
	case TS_COMPUTED_BANDWIDTH:
		return append_bandwidth(out, row);
	case TS_COMPUTED_DEVICE:
		return append_int(out, device_number(show, row));
	case TS_COMPUTED_STREAM:
		return append_int(out, stream_number(show, row));
	default:
		break;
	}
	position = ts_column_by_id(row->table, id);
	if (position < 0 || row->columns[position] == row->table->columns[position].none)
		return false;
	ts_show_json_scalar(show, out, &row->table->columns[position], row->columns[position]);
	return true;
}

/* False: the field has no value that this build can show. */
static bool append_value(const struct ts_show *show, struct ts_text *out,
			 const struct ts_shown_row *row, const struct ts_field *field,
			 int64_t value)
{
	double real;

	switch (field->type) {
	case TS_ARG_INT:
		ts_text_append_int(out, value);
		return true;
	case TS_ARG_DOUBLE:
		memcpy(&real, &value, sizeof(real));
		ts_text_append_double(out, real);
		return true;
	case TS_ARG_STRING:
		ts_show_json_string(show, out, value);
		return true;
	case TS_ARG_BOOL:
		ts_text_append_str(out, value ? "true" : "false");
		return true;
	case TS_ARG_JSON:
		ts_show_json_raw(show, out, value);
		return true;
	case TS_ARG_NULL:
		ts_text_append_str(out, "null");
		return true;
	case TS_ARG_COLUMN:
		return append_column(show, out, row, field->column);
	default:
		return false;
	}
}

/* The fields of one place as members with commas behind them. */
static void append_fields(const struct ts_show *show, struct ts_text *out,
			  const struct ts_shown_row *row, const struct ts_shape *shape, int beside)
{
	const int64_t *next = row->values;

	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		int64_t value = next && ts_arg_has_value(field->type) ? *next++ : 0;
		size_t before = out->length;

		if (field->beside != beside)
			continue;
		ts_show_json_string(show, out, field->key);
		ts_text_append_char(out, ':');
		if (append_value(show, out, row, field, value))
			ts_text_append_char(out, ',');
		else
			out->length = before;
	}
}

bool ts_show_json_fields(const struct ts_show *show, struct ts_text *out,
			 const struct ts_shown_row *row, int beside)
{
	const struct ts_shape *shape = NULL;
	size_t begin = out->length;

	if (row->table->shape >= 0 && row->columns[row->table->shape])
		shape = ts_reader_shape(show->reader, row->columns[row->table->shape]);
	ts_text_append_char(out, '{');
	if (shape)
		append_fields(show, out, row, shape, beside);
	if (out->length <= begin + 1) {
		out->length = begin;
		return false;
	}
	out->data[out->length - 1] = '}';
	return true;
}

static void append_object(const struct ts_show *show, struct ts_text *out,
			  const struct ts_shown_row *row, const char *key, int beside)
{
	size_t begin = out->length;

	ts_text_printf(out, "\"%s\":", key);
	if (ts_show_json_fields(show, out, row, beside))
		ts_text_append_char(out, ',');
	else
		out->length = begin;
}

void ts_show_json_args(const struct ts_show *show, struct ts_text *out,
		       const struct ts_shown_row *row)
{
	append_object(show, out, row, "args", 0);
	append_object(show, out, row, "beside", 1);
}
