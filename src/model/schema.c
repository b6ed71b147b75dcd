/* SPDX-License-Identifier: Apache-2.0 */
/* schema.def as data: tables and columns for generic code (file, SQL, view, export). */
#include <assert.h>
#include <string.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#include "base/memory.h"

/* clang-format would take the macros' braces for code. */
/* clang-format off */

/* Rows without values. */
#define TS_TABLE(NAME, name, id, kind, doc) const struct ts_##name##_row ts_##name##_none = {
#define TS_COLUMN(table, id, column, type, refers, none, doc) .column = (none),
#define TS_TABLE_END(NAME, name) };
#include <tracesmith/schema.def>

/* Indices of columns with a role, found by their type; -1: the table has none. */
#define TS_ROLE_TIME(role, table, column)
#define TS_ROLE_DURATION(role, table, column) +TS_ROLE_IF_##role##_DURATION(table, column)
#define TS_ROLE_INT(role, table, column)
#define TS_ROLE_FLOAT(role, table, column)
#define TS_ROLE_BOOL(role, table, column)
#define TS_ROLE_STRING(role, table, column)
#define TS_ROLE_JSON(role, table, column)
#define TS_ROLE_REF(role, table, column)
#define TS_ROLE_ENUM(role, table, column)
#define TS_ROLE_SHAPE(role, table, column) +TS_ROLE_IF_##role##_SHAPE(table, column)
#define TS_ROLE_BYTES(role, table, column)
#define TS_ROLE_IF_duration_DURATION(table, column) (1 + (int)TS_COLUMN_OF(table, column))
#define TS_ROLE_IF_duration_SHAPE(table, column) 0
#define TS_ROLE_IF_shape_DURATION(table, column) 0
#define TS_ROLE_IF_shape_SHAPE(table, column) (1 + (int)TS_COLUMN_OF(table, column))

#define TS_TABLE(NAME, name, id, kind, doc) enum { name##_duration = -1
#define TS_COLUMN(table, id, column, type, refers, none, doc) TS_ROLE_##type(duration, table, column)
#define TS_TABLE_END(NAME, name) };
#include <tracesmith/schema.def>

#define TS_TABLE(NAME, name, id, kind, doc) enum { name##_shape = -1
#define TS_COLUMN(table, id, column, type, refers, none, doc) TS_ROLE_##type(shape, table, column)
#define TS_TABLE_END(NAME, name) };
#include <tracesmith/schema.def>

#define TS_TABLE(NAME, name, id, kind, doc) static const struct ts_column_info name##_columns[] = {
#define TS_COLUMN(table, column_id, column, column_type, refers_to, no_value, text)                \
	{ .name = #column,                                                                         \
	  .doc = (text),                                                                           \
	  .refers = #refers_to,                                                                    \
	  .none = (no_value),                                                                      \
	  .id = (column_id),                                                                       \
	  .type = TS_COLUMN_##column_type },
#define TS_TABLE_END(NAME, name)                                                                   \
	}                                                                                          \
	;                                                                                          \
	static_assert(sizeof(struct ts_##name##_row) ==                                            \
			      sizeof(int64_t) * TS_ARRAY_SIZE(name##_columns),                     \
		      "every column is 8 bytes");                                                  \
	static_assert(TS_ARRAY_SIZE(name##_columns) < TS_MAX_COLUMNS, "a mask has 64 bits");
#include <tracesmith/schema.def>

/* clang-format on */

static const struct ts_table_info tables[TS_TABLE_COUNT] = {
#define TS_TABLE(NAME, table_name, table_id, table_kind, text)                  \
	[table_id] = { .name = #table_name,                                     \
		       .doc = (text),                                           \
		       .columns = table_name##_columns,                         \
		       .id = (table_id),                                        \
		       .kind = TS_KIND_##table_kind,                            \
		       .column_count = TS_ARRAY_SIZE(table_name##_columns),     \
		       .start = TS_KIND_##table_kind == TS_KIND_EVENT ? 0 : -1, \
		       .duration = table_name##_duration,                       \
		       .shape = table_name##_shape },
#include <tracesmith/schema.def>
};

struct enum_value {
	const char *enumeration;
	const char *name;
	int64_t value;
};

static const struct enum_value enum_values[] = {
#define TS_ENUM_VALUE(enumeration, CONSTANT, name, number) { #enumeration, #name, number },
#include <tracesmith/schema.def>
};

const struct ts_table_info *ts_table_info(uint32_t table)
{
	return table < TS_TABLE_COUNT && tables[table].name ? &tables[table] : NULL;
}

int ts_table_by_name(const char *name)
{
	for (int i = 0; i < TS_TABLE_COUNT; i++)
		if (tables[i].name && strcmp(tables[i].name, name) == 0)
			return i;
	return -1;
}

int ts_column_by_name(const struct ts_table_info *table, const char *name)
{
	for (int i = 0; i < table->column_count; i++)
		if (strcmp(table->columns[i].name, name) == 0)
			return i;
	return -1;
}

int ts_column_by_id(const struct ts_table_info *table, uint32_t id)
{
	/* Ids are mostly sequential, so this guess is mostly right. */
	if (id - 1 < table->column_count && table->columns[id - 1].id == id)
		return (int)id - 1;
	for (int i = 0; i < table->column_count; i++)
		if (table->columns[i].id == id)
			return i;
	return -1;
}

const char *ts_enum_name(const char *enumeration, int64_t value)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(enum_values); i++)
		if (enum_values[i].value == value &&
		    strcmp(enum_values[i].enumeration, enumeration) == 0)
			return enum_values[i].name;
	return NULL;
}

int ts_enum_value(const char *enumeration, const char *name, size_t length, int64_t *ret_value)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(enum_values); i++) {
		const struct enum_value *item = &enum_values[i];

		if (strcmp(item->enumeration, enumeration) == 0 && strlen(item->name) == length &&
		    memcmp(item->name, name, length) == 0) {
			*ret_value = item->value;
			return TS_OK;
		}
	}
	return TS_ENOTFOUND;
}
