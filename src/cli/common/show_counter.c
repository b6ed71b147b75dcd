/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a counter as text: "used=1.5 GiB available=3 GiB". The JSON output has exact
 * values.
 */
#include "cli/common/show.h"
#include "cli/info/info_counters.h"
#include "trace/json_row.h"

/* Formats a number with its unit; without a unit, unchanged. False: not a number. */
static bool append_number(struct ts_text *out, const struct ts_field *field, const char *unit,
			  int64_t value)
{
	double real;

	if (field->type == TS_ARG_INT && !unit[0]) {
		ts_text_append_int(out, value);
		return true;
	}
	if (field->type == TS_ARG_INT)
		real = (double)value;
	else
		memcpy(&real, &value, sizeof(real));
	if (field->type == TS_ARG_INT || field->type == TS_ARG_DOUBLE)
		ts_counter_append_value(out, unit, real);
	return field->type == TS_ARG_INT || field->type == TS_ARG_DOUBLE;
}

static void append_other(const struct ts_show *show, struct ts_text *out,
			 const struct ts_field *field, int64_t value)
{
	switch (field->type) {
	case TS_ARG_STRING:
		ts_json_row_string(show->reader, out, value);
		break;
	case TS_ARG_BOOL:
		ts_text_append_str(out, value ? "true" : "false");
		break;
	case TS_ARG_JSON:
		ts_json_row_raw(show->reader, out, value);
		break;
	default:
		ts_text_append_str(out, "null");
		break;
	}
}

void ts_show_counter_values(const struct ts_show *show, struct ts_text *out,
			    const struct ts_row *row)
{
	const struct ts_counter_row *counter =
		(const struct ts_counter_row *)(const void *)row->columns;
	const struct ts_shape *shape = ts_reader_shape(show->reader, counter->shape);
	struct ts_string name = ts_reader_string(show->reader, counter->name);
	const char *unit = ts_counter_unit(name.data, name.length);
	const int64_t *next = row->values;

	for (uint32_t i = 0; next && i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		int64_t value = ts_arg_has_value(field->type) ? *next++ : 0;
		struct ts_string key = ts_reader_string(show->reader, field->key);

		/* Columns are shown as cells. */
		if (field->beside || field->type == TS_ARG_COLUMN)
			continue;
		ts_text_append_char(out, ' ');
		ts_text_append(out, key.data, key.length);
		ts_text_append_char(out, '=');
		if (!append_number(out, field, unit, value))
			append_other(show, out, field, value);
	}
}
