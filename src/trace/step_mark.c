/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes the marks that TS_STEP() leaves in a trace. */
#include "trace/step_mark.h"

#include <string.h>

static bool is_step(struct ts_reader *reader, int64_t string)
{
	return !strcmp(ts_reader_string(reader, string).data, TS_STEP_MARK);
}

bool ts_step_mark(struct ts_reader *reader, const struct ts_mark_row *mark, const int64_t *values,
		  int64_t *ret_number)
{
	const struct ts_shape *shape;

	if (!values || !is_step(reader, mark->name) || !is_step(reader, mark->category))
		return false;
	shape = ts_reader_shape(reader, mark->shape);
	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];

		if (field->type == TS_ARG_INT && !field->beside && is_step(reader, field->key)) {
			*ret_number = *values;
			return true;
		}
		values += ts_arg_has_value(field->type);
	}
	return false;
}
