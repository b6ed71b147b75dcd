/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of track events: debug annotations of every type, and arguments of types known from the
 * schema.
 */
#include <inttypes.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

/* ---- values as JSON ---- */

static void put_uint(struct ts_text *json, uint64_t value)
{
	ts_text_append_uint(json, value);
}

static void put_string_id(struct ts_perfetto *p, uint32_t string)
{
	size_t length = 0;
	const char *text = string ? ts_writer_text(p->writer, string, &length) : NULL;

	ts_text_append_json(&p->json, text ? text : "", text ? length : 0);
}

/* Name of an annotation. 0: none. */
static uint32_t read_name(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			  const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	uint32_t name = 0;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			name = ts_perfetto_interned_string(p, sequence, TS_PERFETTO_ARG_NAME,
							   field.value);
		else if (field.number == 10)
			name = ts_perfetto_string(p, &field);
	}
	return name;
}

static void put_annotation(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			   const struct ts_proto_field *from, int depth);

/* dict_entries or array_values, whichever the message has. */
static void put_entries(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			const struct ts_proto_field *from, uint32_t number, int depth)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	bool is_first = true;

	ts_text_append_char(&p->json, number == 11 ? '{' : '[');
	while (ts_proto_next(&message, &field)) {
		if (field.number != number)
			continue;
		if (!is_first)
			ts_text_append_char(&p->json, ',');
		is_first = false;
		if (number == 11) {
			put_string_id(p, read_name(p, sequence, &field));
			ts_text_append_char(&p->json, ':');
		}
		put_annotation(p, sequence, &field, depth + 1);
	}
	ts_text_append_char(&p->json, number == 11 ? '}' : ']');
}

/* NestedValue: the legacy form of dictionaries and lists. */
static void put_nested(struct ts_perfetto *p, const struct ts_proto_field *from, int depth);

static void put_nested_dict(struct ts_perfetto *p, const struct ts_proto_field *from, int depth)
{
	struct ts_proto_reader keys = ts_proto_message(from), values = ts_proto_message(from);
	struct ts_proto_field key, value;
	bool is_first = true;

	ts_text_append_char(&p->json, '{');
	for (;;) {
		bool has_key, has_value;

		while ((has_key = ts_proto_next(&keys, &key)) && key.number != 2)
			;
		while ((has_value = ts_proto_next(&values, &value)) && value.number != 3)
			;
		if (!has_key || !has_value)
			break;
		if (!is_first)
			ts_text_append_char(&p->json, ',');
		is_first = false;
		ts_text_append_json(&p->json, key.bytes ? key.bytes : "", key.length);
		ts_text_append_char(&p->json, ':');
		put_nested(p, &value, depth + 1);
	}
	ts_text_append_char(&p->json, '}');
}

static void put_nested_array(struct ts_perfetto *p, const struct ts_proto_field *from, int depth)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	bool is_first = true;

	ts_text_append_char(&p->json, '[');
	while (ts_proto_next(&message, &field)) {
		if (field.number != 4)
			continue;
		if (!is_first)
			ts_text_append_char(&p->json, ',');
		is_first = false;
		put_nested(p, &field, depth + 1);
	}
	ts_text_append_char(&p->json, ']');
}

static void put_nested(struct ts_perfetto *p, const struct ts_proto_field *from, int depth)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field, value = { 0 };
	uint64_t type = 0;

	if (depth > TS_PERFETTO_MAX_DEPTH) {
		ts_perfetto_lose(p, &ts_perfetto_loss_deep, 1);
		ts_text_append_str(&p->json, "null");
		return;
	}
	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			type = field.value;
		else if (field.number >= 5 && field.number <= 8)
			value = field;
	}
	if (type == 1)
		put_nested_dict(p, from, depth);
	else if (type == 2)
		put_nested_array(p, from, depth);
	else if (value.number == 5)
		ts_text_append_int(&p->json, (int64_t)value.value);
	else if (value.number == 6)
		ts_text_append_double(&p->json, ts_proto_double(value.value));
	else if (value.number == 7)
		ts_text_append_str(&p->json, value.value ? "true" : "false");
	else if (value.number == 8)
		ts_text_append_json(&p->json, value.bytes ? value.bytes : "", value.length);
	else
		ts_text_append_str(&p->json, "null");
}

/* The field that holds the value of an annotation; number 0: none. */
static struct ts_proto_field find_value(const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field, value = { 0 };

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
		case 10:
		case 13:
		case 16:
			break;
		default:
			/* A list is recognized by its first entry. */
			if (value.number != 11 && value.number != 12)
				value = field;
		}
	}
	return value;
}

static void put_pointer(struct ts_text *text, uint64_t value)
{
	ts_text_printf(text, "\"0x%" PRIx64 "\"", value);
}

/* JSON text is kept as JSON if it is valid. */
static void put_json(struct ts_perfetto *p, const struct ts_proto_field *value)
{
	size_t before = p->json.length;
	struct ts_json js;

	ts_json_init(&js, value->bytes ? value->bytes : "", value->length, true);
	ts_text_clear(&p->text);
	ts_utf8_sanitize(&p->text, value->bytes ? value->bytes : "", value->length);
	ts_json_init(&js, p->text.length ? p->text.data : "", p->text.length, true);
	if (ts_json_minify(&js, &p->json) || (ts_json_skip_space(&js), js.next != js.end)) {
		p->json.length = before;
		ts_text_append_json(&p->json, p->text.length ? p->text.data : "", p->text.length);
	}
}

static void put_value(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		      const struct ts_proto_field *from, const struct ts_proto_field *value,
		      int depth)
{
	switch (value->number) {
	case 2:
		ts_text_append_str(&p->json, value->value ? "true" : "false");
		break;
	case 3:
		put_uint(&p->json, value->value);
		break;
	case 4:
		ts_text_append_int(&p->json, (int64_t)value->value);
		break;
	case 5:
		ts_text_append_double(&p->json, ts_proto_double(value->value));
		break;
	case 6:
		ts_text_append_json(&p->json, value->bytes ? value->bytes : "", value->length);
		break;
	case 7:
		put_pointer(&p->json, value->value);
		break;
	case 8:
		put_nested(p, value, depth);
		break;
	case 9:
		put_json(p, value);
		break;
	case 11:
	case 12:
		put_entries(p, sequence, from, value->number, depth);
		break;
	case 17:
		put_string_id(p, ts_perfetto_interned_string(p, sequence, TS_PERFETTO_ARG_STRING,
							     value->value));
		break;
	default:
		if (value->number)
			ts_perfetto_lose(p, &ts_perfetto_loss_proto, 1);
		ts_text_append_str(&p->json, "null");
	}
}

static void put_annotation(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			   const struct ts_proto_field *from, int depth)
{
	struct ts_proto_field value;

	if (depth > TS_PERFETTO_MAX_DEPTH) {
		ts_perfetto_lose(p, &ts_perfetto_loss_deep, 1);
		ts_text_append_str(&p->json, "null");
		return;
	}
	value = find_value(from);
	put_value(p, sequence, from, &value, depth);
}

/* ---- arguments ---- */

static void add_json(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		     uint32_t key, const struct ts_proto_field *from,
		     const struct ts_proto_field *value)
{
	ts_text_clear(&p->json);
	put_value(p, sequence, from, value, 0);
	if (p->json.failed || p->json.length > TS_IMPORT_MAX_STRING)
		ts_perfetto_lose(p, &ts_perfetto_loss_many, 1);
	else
		ts_row_args_add(&p->args, key, TS_ARG_JSON,
				ts_writer_string(p->writer, p->json.data, p->json.length));
}

static void add_pointer(struct ts_perfetto *p, uint32_t key, uint64_t value)
{
	ts_text_clear(&p->json);
	ts_text_printf(&p->json, "0x%" PRIx64, value);
	ts_row_args_add(&p->args, key, TS_ARG_STRING,
			ts_writer_string(p->writer, p->json.data, p->json.length));
}

static void add_value(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		      uint32_t key, const struct ts_proto_field *from,
		      const struct ts_proto_field *value)
{
	switch (value->number) {
	case 2:
		ts_row_args_add(&p->args, key, TS_ARG_BOOL, value->value != 0);
		break;
	case 3:
		if (value->value > INT64_MAX)
			add_json(p, sequence, key, from, value);
		else
			ts_row_args_add(&p->args, key, TS_ARG_INT, (int64_t)value->value);
		break;
	case 4:
		ts_row_args_add(&p->args, key, TS_ARG_INT, (int64_t)value->value);
		break;
	case 5:
		ts_row_args_add(&p->args, key, TS_ARG_DOUBLE, (int64_t)value->value);
		break;
	case 6:
		ts_row_args_add(&p->args, key, TS_ARG_STRING,
				ts_import_string(p->import, value->bytes ? value->bytes : "",
						 value->length));
		break;
	case 7:
		add_pointer(p, key, value->value);
		break;
	case 17:
		ts_row_args_add(&p->args, key, TS_ARG_STRING,
				ts_perfetto_interned_string(p, sequence, TS_PERFETTO_ARG_STRING,
							    value->value));
		break;
	case 8:
	case 9:
	case 11:
	case 12:
		add_json(p, sequence, key, from, value);
		break;
	case 0:
		ts_row_args_add(&p->args, key, TS_ARG_NULL, 0);
		break;
	default:
		ts_perfetto_lose(p, &ts_perfetto_loss_proto, 1);
	}
}

void ts_perfetto_read_annotation(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
				 const struct ts_proto_field *field)
{
	uint32_t key = read_name(p, sequence, field);
	struct ts_proto_field value = find_value(field);

	add_value(p, sequence, key, field, &value);
}

void ts_perfetto_arg_text(struct ts_perfetto *p, const char *key, const struct ts_proto_field *text)
{
	ts_row_args_add(&p->args, ts_perfetto_text(p, key), TS_ARG_STRING,
			ts_import_string(p->import, text->bytes ? text->bytes : "", text->length));
}

/* ---- types that the schema knows ---- */

static void add_location(struct ts_perfetto *p, const char *prefix,
			 const struct ts_perfetto_location *location)
{
	static const char *const names[] = { "file_name", "function_name", "line_number" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		int64_t value = i == 0   ? location->file
				: i == 1 ? location->function
					 : location->line;

		if (i < 2 ? !value : value == TS_ABSENT)
			continue;
		ts_text_clear(&p->text);
		ts_text_printf(&p->text, "%s.%s", prefix, names[i]);
		ts_row_args_add(&p->args, ts_writer_string(p->writer, p->text.data, p->text.length),
				i < 2 ? TS_ARG_STRING : TS_ARG_INT, value);
	}
}

static void add_location_iid(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			     const char *prefix, uint64_t iid)
{
	uint64_t index;

	if (ts_perfetto_interned(p, sequence, TS_PERFETTO_LOCATION, iid, &index))
		add_location(p, prefix, &p->locations[index]);
}

static void add_inline_location(struct ts_perfetto *p, const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_perfetto_location location = { .line = TS_ABSENT };
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 2)
			location.file = ts_perfetto_string(p, &field);
		else if (field.number == 3)
			location.function = ts_perfetto_string(p, &field);
		else if (field.number == 4)
			location.line = (int64_t)field.value;
	}
	add_location(p, "source_location", &location);
}

static void add_log(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		    const struct ts_proto_field *from)
{
	static const char *const levels[] = { "",     "unused", "verbose", "debug",
					      "info", "warn",   "error",   "fatal" };
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	const char *level;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			add_location_iid(p, sequence, "log_message.source_location", field.value);
		else if (field.number == 2)
			ts_row_args_add(&p->args, ts_perfetto_text(p, "log_message"), TS_ARG_STRING,
					ts_perfetto_interned_string(
						p, sequence, TS_PERFETTO_LOG_BODY, field.value));
		else if (field.number == 3) {
			level = field.value < TS_ARRAY_SIZE(levels) ? levels[field.value] : "";
			ts_row_args_add(&p->args, ts_perfetto_text(p, "log_message.prio"),
					TS_ARG_STRING, ts_perfetto_text(p, level));
		}
	}
}

void ts_perfetto_read_typed(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			    const struct ts_proto_field *field)
{
	struct ts_proto_reader message;
	struct ts_proto_field inner;

	switch (field->number) {
	case 5:
		message = ts_proto_message(field);
		while (ts_proto_next(&message, &inner))
			if (inner.number == 1)
				add_location_iid(p, sequence, "task.posted_from", inner.value);
		break;
	case 21:
		add_log(p, sequence, field);
		break;
	case 33:
		add_inline_location(p, field);
		break;
	case 34:
		add_location_iid(p, sequence, "source_location", field->value);
		break;
	case 52:
		if (field->value > INT64_MAX)
			add_pointer(p, ts_perfetto_text(p, "correlation_id"), field->value);
		else
			ts_row_args_add(&p->args, ts_perfetto_text(p, "correlation_id"), TS_ARG_INT,
					(int64_t)field->value);
		break;
	case 53:
		ts_perfetto_arg_text(p, "correlation_id", field);
		break;
	case 54:
		ts_row_args_add(&p->args, ts_perfetto_text(p, "correlation_id"), TS_ARG_STRING,
				ts_perfetto_interned_string(p, sequence, TS_PERFETTO_CORRELATION,
							    field->value));
		break;
	default:
		ts_perfetto_lose(p,
				 field->number >= 1000 ? &ts_perfetto_loss_extension
						       : &ts_perfetto_loss_typed,
				 1);
	}
}
