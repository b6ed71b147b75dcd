/* SPDX-License-Identifier: Apache-2.0 */
/* Fills results: cells, tables, notes. After an allocation failure, additions are ignored. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "analyze/result.h"
#include "base/local/hash.h"

void ts_result_init(struct ts_result *result, int64_t start)
{
	*result = (struct ts_result){ .start = start };
	ts_arena_init(&result->arena);
}

void ts_result_release(struct ts_result *result)
{
	for (struct ts_result_table *table = result->tables; table; table = table->next)
		free(table->cells);
	ts_arena_release(&result->arena);
	*result = (struct ts_result){ 0 };
}

int ts_result_new(struct ts_result **ret_result, int64_t start, struct ts_error *err)
{
	struct ts_result *result = malloc(sizeof(*result));

	if (!result)
		return ts_error_set(err, TS_ENOMEM, "no memory for the results");
	ts_result_init(result, start);
	*ret_result = result;
	return TS_OK;
}

void ts_result_free(struct ts_result *result)
{
	if (result)
		ts_result_release(result);
	free(result);
}

int ts_result_status(const struct ts_result *result, struct ts_error *err)
{
	if (result->status)
		return ts_error_set(err, result->status, "no memory for the results");
	return TS_OK;
}

struct ts_result_table *ts_result_table(struct ts_result *result, const char *name,
					const struct ts_result_column *columns, size_t column_count)
{
	struct ts_result_table *table = ts_arena_alloc(&result->arena, sizeof(*table));

	assert(column_count > 0);
	if (!table) {
		result->status = TS_ENOMEM;
		table = &result->swallows;
	}
	*table = (struct ts_result_table){
		.name = name,
		.columns = columns,
		.column_count = column_count,
		.result = result,
	};
	if (table == &result->swallows)
		return table;
	if (result->last_table)
		result->last_table->next = table;
	else
		result->tables = table;
	result->last_table = table;
	return table;
}

/* The static columns are shared by all results: hides in a copy. */
void ts_result_hide(struct ts_result_table *table, const char *key)
{
	size_t bytes = table->column_count * sizeof(*table->columns);

	if (!table->own_columns) {
		table->own_columns = ts_arena_alloc(&table->result->arena, bytes);
		if (!table->own_columns) {
			table->result->status = TS_ENOMEM;
			return;
		}
		memcpy(table->own_columns, table->columns, bytes);
		table->columns = table->own_columns;
	}
	for (size_t i = 0; i < table->column_count; i++)
		if (!strcmp(table->own_columns[i].key, key))
			table->own_columns[i].title = NULL;
}

void ts_result_drop_empty(struct ts_result *result)
{
	struct ts_result_table *table = result->tables;

	result->tables = result->last_table = NULL;
	for (struct ts_result_table *next; table; table = next) {
		next = table->next;
		if (ts_result_is_empty(table)) {
			free(table->cells);
			continue;
		}
		table->next = NULL;
		if (result->last_table)
			result->last_table->next = table;
		else
			result->tables = table;
		result->last_table = table;
	}
}

/* A copy in the arena, or NULL with the status set. */
static const char *format_text(struct ts_result *result, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
static const char *format_text(struct ts_result *result, const char *format, va_list arguments)
{
	va_list again;
	char *text = NULL;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, arguments);
	if (length >= 0)
		text = ts_arena_alloc(&result->arena, (size_t)length + 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	else
		result->status = TS_ENOMEM;
	va_end(again);
	return text;
}

void ts_result_note(struct ts_result *result, const char *format, ...)
{
	struct ts_result_note *note = ts_arena_alloc(&result->arena, sizeof(*note));
	va_list arguments;

	if (!note) {
		result->status = TS_ENOMEM;
		return;
	}
	va_start(arguments, format);
	note->next = NULL;
	note->text = format_text(result, format, arguments);
	va_end(arguments);
	if (!note->text)
		return;
	if (result->last_note)
		result->last_note->next = note;
	else
		result->notes = note;
	result->last_note = note;
}

/* ---- cells ---- */

static void add_cell(struct ts_result_table *table, struct ts_cell cell)
{
	struct ts_result *result = table->result;

	if (result->status)
		return;
	if (table->cell_count == table->cell_capacity &&
	    ts_grow_array((void **)&table->cells, &table->cell_capacity,
			  table->cell_count + table->column_count, sizeof(*table->cells))) {
		result->status = TS_ENOMEM;
		return;
	}
	table->cells[table->cell_count++] = cell;
}

/* The next cell must have this type. A mismatch is a bug in the analysis. */
static void expect(const struct ts_result_table *table, enum ts_cell_type type)
{
	assert(table->result->status ||
	       table->columns[table->cell_count % table->column_count].type == type);
	(void)table;
	(void)type;
}

static void add_integer(struct ts_result_table *table, enum ts_cell_type type, int64_t value)
{
	expect(table, type);
	if (value == TS_ABSENT)
		ts_cell_none(table);
	else
		add_cell(table, (struct ts_cell){ .integer = value });
}

static void add_real(struct ts_result_table *table, enum ts_cell_type type, double value)
{
	expect(table, type);
	if (isnan(value))
		ts_cell_none(table);
	else
		add_cell(table, (struct ts_cell){ .real = value });
}

void ts_cell_none(struct ts_result_table *table)
{
	add_cell(table, (struct ts_cell){ .none = true });
}

/* Names are interned and repeat by the thousand: reuses the copy if the text is still the same. */
static const char *copy_text(struct ts_result *result, const char *text)
{
	size_t position = ts_hash_mix64((uintptr_t)text) & (TS_RESULT_RECENT - 1);
	struct ts_result_text *recent = &result->recent[position];

	if (recent->text == text && !strcmp(recent->copy, text))
		return recent->copy;
	recent->copy = ts_arena_strdup_len(&result->arena, text, strlen(text));
	recent->text = recent->copy ? text : NULL;
	return recent->copy;
}

static void add_text(struct ts_result_table *table, enum ts_cell_type type, const char *text)
{
	const char *copy;

	expect(table, type);
	if (!text) {
		ts_cell_none(table);
		return;
	}
	copy = copy_text(table->result, text);
	if (!copy)
		table->result->status = TS_ENOMEM;
	add_cell(table, (struct ts_cell){ .text = copy });
}

void ts_cell_text(struct ts_result_table *table, const char *text)
{
	add_text(table, TS_CELL_TEXT, text);
}

void ts_cell_amount(struct ts_result_table *table, const char *text)
{
	add_text(table, TS_CELL_AMOUNT, text);
}

void ts_cell_format(struct ts_result_table *table, const char *format, ...)
{
	va_list arguments;

	expect(table, TS_CELL_TEXT);
	va_start(arguments, format);
	add_cell(table, (struct ts_cell){ .text = format_text(table->result, format, arguments) });
	va_end(arguments);
}

void ts_cell_integer(struct ts_result_table *table, int64_t value)
{
	add_integer(table, TS_CELL_INTEGER, value);
}

void ts_cell_real(struct ts_result_table *table, double value)
{
	add_real(table, TS_CELL_REAL, value);
}

void ts_cell_time(struct ts_result_table *table, int64_t ns)
{
	add_integer(table, TS_CELL_TIME, ns);
}

void ts_cell_instant(struct ts_result_table *table, int64_t ns)
{
	add_integer(table, TS_CELL_INSTANT, ns);
}

void ts_cell_percent(struct ts_result_table *table, double value)
{
	add_real(table, TS_CELL_PERCENT, value);
}

void ts_cell_share(struct ts_result_table *table, int64_t part, int64_t total)
{
	ts_cell_percent(table, total ? 100.0 * (double)part / (double)total : NAN);
}

void ts_cell_bytes(struct ts_result_table *table, int64_t bytes)
{
	add_integer(table, TS_CELL_BYTES, bytes);
}

void ts_cell_bool(struct ts_result_table *table, bool value)
{
	expect(table, TS_CELL_BOOL);
	add_cell(table, (struct ts_cell){ .integer = value });
}
