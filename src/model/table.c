/* SPDX-License-Identifier: Apache-2.0 */
/* In-memory tables: growing columns. */
#include "model/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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

/* Expands constant columns to one value per row; `columns` is a mask of them. */
static __attribute__((noinline)) int start_varying(struct ts_table *table, uint64_t columns)
{
	for (; columns; columns &= columns - 1) {
		int i = __builtin_ctzll(columns);

		if (ts_grow_array((void **)&table->columns[i], &table->column_capacity[i],
				  (size_t)table->rows + 1, sizeof(int64_t)))
			return TS_ENOMEM;
		for (uint32_t row = 0; row < table->rows; row++)
			table->columns[i][row] = table->constants[i];
		table->varying |= UINT64_C(1) << i;
	}
	return TS_OK;
}

static int add_values(struct ts_table *table, const int64_t *values, uint32_t count)
{
	if ((size_t)table->values + count > table->value_capacity &&
	    ts_grow_array((void **)&table->arg_values, &table->value_capacity,
			  (size_t)table->values + count, sizeof(*values)))
		return TS_ENOMEM;
	memcpy(table->arg_values + table->values, values, count * sizeof(*values));
	table->values += count;
	return TS_OK;
}

/* Mask of the columns in which the row differs from the constant value so far. */
static inline uint64_t differences(const struct ts_table *table, const int64_t *cells)
{
	uint64_t differ = 0;

	for (unsigned int i = 0; i < table->info->column_count; i++)
		differ |= (uint64_t)(cells[i] != table->constants[i]) << (i & 63);
	return differ & ~table->varying;
}

int ts_table_add(struct ts_table *table, const void *row, const int64_t *values,
		 uint32_t value_count)
{
	const int64_t *cells = row;
	uint32_t at = table->rows;
	uint64_t differ;

	if (at == 0)
		memcpy(table->constants, cells, table->info->column_count * sizeof(*cells));
	differ = differences(table, cells);
	if (TS_UNLIKELY(differ) && start_varying(table, differ))
		return TS_ENOMEM;
	if (table->info->shape >= 0) {
		if (at == table->offset_capacity &&
		    ts_grow_array((void **)&table->arg_offsets, &table->offset_capacity,
				  (size_t)at + 1, sizeof(*table->arg_offsets)))
			return TS_ENOMEM;
		table->arg_offsets[at] = table->values;
		if (value_count && add_values(table, values, value_count))
			return TS_ENOMEM;
	}
	for (uint64_t left = table->varying; left; left &= left - 1) {
		int i = __builtin_ctzll(left);

		if (TS_UNLIKELY(at == table->column_capacity[i]) &&
		    ts_grow_array((void **)&table->columns[i], &table->column_capacity[i],
				  (size_t)at + 1, sizeof(int64_t)))
			return TS_ENOMEM;
		table->columns[i][at] = cells[i];
	}
	table->rows = at + 1;
	return TS_OK;
}

int ts_table_add_from(struct ts_table *table, const struct ts_table *other, uint32_t from,
		      uint32_t value_count)
{
	int64_t row[TS_MAX_COLUMNS] = { 0 };
	const int64_t *values = NULL;

	for (int i = 0; i < other->info->column_count; i++)
		row[i] = ts_table_value(other, i, from);
	if (value_count)
		values = other->arg_values + other->arg_offsets[from];
	return ts_table_add(table, row, values, value_count);
}

int ts_table_amend(struct ts_table *table, int column, int64_t value)
{
	if (ts_table_is_constant(table, column)) {
		if (value == table->constants[column])
			return TS_OK;
		if (start_varying(table, UINT64_C(1) << column))
			return TS_ENOMEM;
	}
	table->columns[column][table->rows - 1] = value;
	return TS_OK;
}
