/* SPDX-License-Identifier: Apache-2.0 */
/* Growing columns. Must not know what the values mean. */
#include "model/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_CAPACITY 64

void ts_table_init(struct ts_table *table, const struct ts_table_info *info)
{
	memset(table, 0, sizeof(*table));
	table->info = info;
}

void ts_table_release(struct ts_table *table)
{
	for (int i = 0; table->info && i < table->info->column_count; i++)
		free(table->columns[i]);
	free(table->arg_offsets);
	free(table->arg_values);
	ts_table_init(table, table->info);
}

static int grow_rows(struct ts_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY;

	for (int i = 0; i < table->info->column_count; i++) {
		int64_t *grown = realloc(table->columns[i], capacity * sizeof(*grown));

		if (!grown)
			return TS_ENOMEM;
		table->columns[i] = grown;
	}
	if (table->info->shape >= 0) {
		uint32_t *grown = realloc(table->arg_offsets, capacity * sizeof(*grown));

		if (!grown)
			return TS_ENOMEM;
		table->arg_offsets = grown;
	}
	table->capacity = capacity;
	return TS_OK;
}

static int add_values(struct ts_table *table, const int64_t *values, uint32_t count)
{
	if (ts_grow_array((void **)&table->arg_values, &table->value_capacity,
			  (size_t)table->values + count, sizeof(*values)))
		return TS_ENOMEM;
	memcpy(table->arg_values + table->values, values, count * sizeof(*values));
	table->values += count;
	return TS_OK;
}

int ts_table_add(struct ts_table *table, const void *row, const int64_t *values,
		 uint32_t value_count)
{
	const int64_t *words = row;
	uint32_t at = table->rows;

	if (TS_UNLIKELY(at == table->capacity) && grow_rows(table))
		return TS_ENOMEM;
	if (table->info->shape >= 0) {
		table->arg_offsets[at] = table->values;
		if (value_count && add_values(table, values, value_count))
			return TS_ENOMEM;
	}
	for (int i = 0; i < table->info->column_count; i++)
		table->columns[i][at] = words[i];
	table->rows = at + 1;
	return TS_OK;
}

int ts_table_add_from(struct ts_table *table, const struct ts_table *other, uint32_t from,
		      uint32_t value_count)
{
	int64_t row[TS_MAX_COLUMNS];
	const int64_t *values = NULL;

	for (int i = 0; i < other->info->column_count; i++)
		row[i] = other->columns[i][from];
	if (value_count)
		values = other->arg_values + other->arg_offsets[from];
	return ts_table_add(table, row, values, value_count);
}
