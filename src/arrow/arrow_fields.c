/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of each table; see arrow_fields.h. */
#include "arrow/arrow_fields.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct ts_arrow_options ts_arrow_options_read(const struct ts_arrow_options *options)
{
	struct ts_arrow_options all = { 0 };

	if (options)
		memcpy(&all, options, TS_MIN(options->size, sizeof(all)));
	all.size = sizeof(all);
	return all;
}

static struct ts_arrow_field *add_field(struct ts_arrow_fields *fields, enum ts_arrow_kind kind,
					const char *name, const char *doc)
{
	struct ts_arrow_field *field = &fields->list[fields->count++];

	*field = (struct ts_arrow_field){
		.kind = (uint8_t)kind, .doc = doc, .is_nullable = true, .is_default = true
	};
	snprintf(field->name, sizeof(field->name), "%s", name);
	return field;
}

static void set_null(struct ts_arrow_field *field, const struct ts_table_info *table,
		     const struct ts_column_info *column, int position)
{
	switch (column->type) {
	case TS_COLUMN_DURATION:
		field->null = -1;
		field->has_null = true;
		break;
	case TS_COLUMN_REF:
	case TS_COLUMN_FLOAT:
		field->null = 0;
		field->has_null = true;
		break;
	default:
		field->null = TS_ABSENT;
		field->has_null = (column->none == TS_ABSENT && position != table->start) ||
				  table->kind == TS_KIND_DERIVED;
	}
	field->is_nullable = field->has_null;
}

static enum ts_arrow_kind kind_of(const struct ts_table_info *table,
				  const struct ts_column_info *column, bool is_plain)
{
	switch (column->type) {
	case TS_COLUMN_FLOAT:
		return TS_ARROW_FLOAT;
	case TS_COLUMN_BOOL:
		return TS_ARROW_BOOL;
	case TS_COLUMN_STRING:
		return is_plain ? TS_ARROW_TEXT : TS_ARROW_NAME;
	case TS_COLUMN_JSON:
		return TS_ARROW_TEXT;
	case TS_COLUMN_ENUM:
		return TS_ARROW_ENUM;
	case TS_COLUMN_SHAPE:
		return TS_ARROW_ARGUMENTS;
	case TS_COLUMN_BYTES:
		return table->id == TS_TABLE_STRING ? TS_ARROW_BYTES : TS_ARROW_BINARY;
	default:
		return TS_ARROW_INTEGER;
	}
}

static void add_arguments(struct ts_arrow_fields *fields, const struct ts_column_info *column,
			  int position)
{
	static const char *const names[2] = { "args", "beside" };
	static const char *const docs[2] = {
		"arguments, as a JSON object", "what stood beside the arguments in an imported file"
	};

	for (uint8_t i = 0; i < 2; i++) {
		struct ts_arrow_field *field =
			add_field(fields, TS_ARROW_ARGUMENTS, names[i], docs[i]);

		field->column = column;
		field->source = (uint8_t)position;
		field->beside = i;
		/* The values of a counter are its arguments. */
		field->is_default = i == 0 && fields->table->id == TS_TABLE_COUNTER;
	}
}

static void add_besides(struct ts_arrow_fields *fields, const struct ts_column_info *column,
			int position, bool is_plain)
{
	for (const struct ts_arrow_beside *beside = ts_arrow_besides; beside->table; beside++) {
		struct ts_arrow_field *field;
		char name[TS_ARROW_COLUMN_NAME_BYTES];
		enum ts_arrow_kind kind = beside->lookup.number ? TS_ARROW_NUMBER
					  : is_plain            ? TS_ARROW_TEXT
								: TS_ARROW_NAME;

		if (strcmp(beside->table, column->refers))
			continue;
		snprintf(name, sizeof(name), "%s_%s", column->name, beside->suffix);
		field = add_field(fields, kind, name, beside->doc);
		field->column = column;
		field->source = (uint8_t)position;
		field->lookup = &beside->lookup;
	}
}

static void add_column(struct ts_arrow_fields *fields, int position, bool is_plain)
{
	const struct ts_table_info *table = fields->table;
	const struct ts_column_info *column = &table->columns[position];
	enum ts_arrow_kind kind = kind_of(table, column, is_plain);
	const struct ts_arrow_lookup *derived = ts_arrow_derived_lookup(table, column);
	struct ts_arrow_field *field;

	if (kind == TS_ARROW_ARGUMENTS) {
		add_arguments(fields, column, position);
		return;
	}
	field = add_field(fields, kind, column->name, column->doc);
	field->column = column;
	field->source = (uint8_t)position;
	field->enumeration = column->refers;
	if (column->type == TS_COLUMN_STRING)
		field->lookup = derived ? derived : &ts_arrow_string_lookup;
	else if (column->type == TS_COLUMN_JSON)
		field->lookup = &ts_arrow_json_lookup;
	if (kind == TS_ARROW_INTEGER || kind == TS_ARROW_FLOAT)
		set_null(field, table, column, position);
	else if (kind == TS_ARROW_BYTES || kind == TS_ARROW_BINARY)
		field->is_nullable = false;
	field->is_default = kind != TS_ARROW_BINARY;
	if (column->type == TS_COLUMN_REF)
		add_besides(fields, column, position, is_plain);
}

static int list_all(struct ts_arrow_fields *fields, bool with_trace,
		    const struct ts_arrow_options *options, struct ts_error *err)
{
	bool is_plain = options->flags & TS_ARROW_PLAIN_STRINGS;

	assert(fields->table);
	fields->list = calloc(TS_ARROW_MOST_FIELDS, sizeof(*fields->list));
	if (!fields->list)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (with_trace)
		add_field(fields, TS_ARROW_TRACE, "trace", "index of the trace")->is_nullable =
			false;
	if (fields->table->kind == TS_KIND_DICTIONARY)
		add_field(fields, TS_ARROW_ROW_ID, "id", "id")->is_nullable = false;
	for (int i = 0; i < fields->table->column_count; i++)
		add_column(fields, i, is_plain);
	return TS_OK;
}

static int choose_table(struct ts_arrow_fields *fields, const char *name, struct ts_error *err)
{
	int id = name ? ts_table_by_name(name) : -1;

	if (id < 0)
		return ts_error_set(err, name ? TS_ENOTFOUND : TS_EINVAL, "unknown table '%s'",
				    name ? name : "");
	fields->table = ts_table_info((uint32_t)id);
	if (!fields->table || fields->table->kind == TS_KIND_INTERNAL)
		return ts_error_set(err, TS_EINVAL, "table '%s' describes the file itself", name);
	return TS_OK;
}

static const struct ts_arrow_field *find_field(const struct ts_arrow_fields *fields,
					       const char *name)
{
	for (size_t i = 0; i < fields->count; i++)
		if (name && !strcmp(fields->list[i].name, name))
			return &fields->list[i];
	return NULL;
}

static int unknown_column(const struct ts_arrow_fields *fields, const char *name,
			  struct ts_error *err)
{
	TS_SCOPED(ts_text) names = { 0 };

	for (size_t i = 0; i < fields->count; i++) {
		ts_text_append_str(&names, i ? ", " : "");
		ts_text_append_str(&names, fields->list[i].name);
	}
	return ts_error_set(err, TS_ENOTFOUND, "table '%s' has no column '%s'; it has %s",
			    fields->table->name, name ? name : "", ts_text_cstr(&names));
}

/* The columns that the caller names, in the caller's order. */
static int choose_named(struct ts_arrow_fields *fields, const struct ts_arrow_options *options,
			struct ts_error *err)
{
	struct ts_arrow_field *chosen;

	if (options->column_count > TS_ARROW_MOST_FIELDS)
		return ts_error_set(err, TS_EINVAL, "table '%s': too many columns",
				    fields->table->name);
	chosen = calloc(TS_ARROW_MOST_FIELDS, sizeof(*chosen));
	if (!chosen)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < options->column_count; i++) {
		const struct ts_arrow_field *field = find_field(fields, options->columns[i]);

		if (!field) {
			free(chosen);
			return unknown_column(fields, options->columns[i], err);
		}
		chosen[i] = *field;
	}
	free(fields->list);
	fields->list = chosen;
	fields->count = options->column_count;
	return TS_OK;
}

static void choose_default(struct ts_arrow_fields *fields)
{
	size_t count = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (fields->list[i].is_default)
			fields->list[count++] = fields->list[i];
	fields->count = count;
}

int ts_arrow_fields_init(struct ts_arrow_fields *fields, const char *table, bool with_trace,
			 const struct ts_arrow_options *options, struct ts_error *err)
{
	int result;

	*fields = (struct ts_arrow_fields){ 0 };
	result = choose_table(fields, table, err);
	if (!result)
		result = list_all(fields, with_trace, options, err);
	if (!result && options->columns)
		result = choose_named(fields, options, err);
	else if (!result && !(options->flags & TS_ARROW_ALL_COLUMNS))
		choose_default(fields);
	for (size_t i = 0; !result && i < fields->count; i++)
		if (fields->list[i].column)
			fields->mask |= UINT64_C(1) << fields->list[i].source;
	return result;
}

void ts_arrow_fields_release(struct ts_arrow_fields *fields)
{
	free(fields->list);
	*fields = (struct ts_arrow_fields){ 0 };
}

int ts_arrow_columns(const char *table, struct ts_arrow_column *ret_columns, size_t capacity,
		     size_t *ret_count, struct ts_error *err)
{
	const struct ts_arrow_options options = { .size = sizeof(options),
						  .flags = TS_ARROW_ALL_COLUMNS };
	struct ts_arrow_fields fields;
	int result = ts_arrow_fields_init(&fields, table, false, &options, err);

	for (size_t i = 0; !result && i < fields.count && i < capacity; i++) {
		snprintf(ret_columns[i].name, sizeof(ret_columns[i].name), "%s",
			 fields.list[i].name);
		ret_columns[i].doc = fields.list[i].doc;
		ret_columns[i].is_default = fields.list[i].is_default;
	}
	if (!result)
		*ret_count = fields.count;
	ts_arrow_fields_release(&fields);
	return result;
}
