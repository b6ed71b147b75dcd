/* SPDX-License-Identifier: Apache-2.0 */
/* Read access to results, for callers of the library. */
#include <string.h>

#include "analyze/result.h"

/* ---- tables ---- */

size_t ts_result_table_count(const struct ts_result *result)
{
	size_t count = 0;

	for (const struct ts_result_table *table = result->tables; table; table = table->next)
		count++;
	return count;
}

const struct ts_result_table *ts_result_table_at(const struct ts_result *result, size_t index)
{
	const struct ts_result_table *table = result->tables;

	while (table && index--)
		table = table->next;
	return table;
}

const struct ts_result_table *ts_result_table_find(const struct ts_result *result, const char *name)
{
	const struct ts_result_table *table = result->tables;

	while (table && strcmp(table->name, name) != 0)
		table = table->next;
	return table;
}

const char *ts_result_table_name(const struct ts_result_table *table)
{
	return table->name;
}

size_t ts_result_row_count(const struct ts_result_table *table)
{
	return ts_result_rows(table);
}

/* ---- columns and cells ---- */

size_t ts_result_column_count(const struct ts_result_table *table)
{
	return table->column_count;
}

const struct ts_result_column *ts_result_column(const struct ts_result_table *table, size_t index)
{
	return index < table->column_count ? &table->columns[index] : NULL;
}

int ts_result_column_find(const struct ts_result_table *table, const char *key)
{
	for (size_t i = 0; i < table->column_count; i++)
		if (!strcmp(table->columns[i].key, key))
			return (int)i;
	return -1;
}

const struct ts_cell *ts_result_cell(const struct ts_result_table *table, size_t row, size_t column)
{
	if (row >= ts_result_rows(table) || column >= table->column_count)
		return NULL;
	return &table->cells[row * table->column_count + column];
}

/* ---- notes ---- */

const char *ts_result_note_at(const struct ts_result *result, size_t index)
{
	const struct ts_result_note *note = result->notes;

	while (note && index--)
		note = note->next;
	return note ? note->text : NULL;
}
