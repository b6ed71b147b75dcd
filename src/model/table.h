/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of one table in memory, by column, with their arguments packed row after row. The writer
 * collects them until a chunk is full. A column whose values are all equal so far costs no memory
 * and no time: most columns are like that. One thread at a time; knows nothing of files.
 */
#ifndef TS_MODEL_TABLE_H
#define TS_MODEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/schema.h>

struct ts_table {
	const struct ts_table_info *info;
	int64_t *columns[TS_MAX_COLUMNS]; /* only those that vary: use ts_table_column() */
	size_t column_capacity[TS_MAX_COLUMNS];
	int64_t constants[TS_MAX_COLUMNS]; /* the value of every row in the other columns */
	uint64_t varying;                  /* one bit per column */
	uint32_t *arg_offsets; /* offset of each row in arg_values; only tables with a shape */
	int64_t *arg_values;
	size_t offset_capacity;
	size_t value_capacity;
	uint32_t rows;
	uint32_t values;
};

/* Allocates nothing before the first row. */
void ts_table_init(struct ts_table *table, const struct ts_table_info *info);
void ts_table_release(struct ts_table *table);

/* Drops the rows, keeps the memory. */
static inline void ts_table_clear(struct ts_table *table)
{
	table->rows = 0;
	table->values = 0;
	table->varying = 0;
}

/* Appends a row and its argument values; 0 or TS_ENOMEM. */
int ts_table_add(struct ts_table *table, const void *row, const int64_t *values,
		 uint32_t value_count);

/* Appends row `from` of another table of the same kind. */
int ts_table_add_from(struct ts_table *table, const struct ts_table *other, uint32_t from,
		      uint32_t value_count);

/* Changes a column of the last row. */
int ts_table_amend(struct ts_table *table, int column, int64_t value);

/* Whether every row has the same value in that column; it is then in constants[]. */
static inline bool ts_table_is_constant(const struct ts_table *table, int column)
{
	return !(table->varying >> column & 1);
}

static inline int64_t ts_table_value(const struct ts_table *table, int column, uint32_t row)
{
	return ts_table_is_constant(table, column) ? table->constants[column]
						   : table->columns[column][row];
}

#endif
