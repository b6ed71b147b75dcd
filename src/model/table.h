/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of one table in memory, by column, with their arguments packed row after row. What the
 * writer collects before a chunk is full. One thread at a time; knows nothing of files.
 */
#ifndef TS_MODEL_TABLE_H
#define TS_MODEL_TABLE_H

#include <stdint.h>

#include <tracesmith/schema.h>

struct ts_table {
	const struct ts_table_info *info;
	int64_t *columns[TS_MAX_COLUMNS];
	uint32_t *arg_offsets;	/* of each row into arg_values; only tables with a shape */
	int64_t *arg_values;
	size_t capacity;	/* rows that fit */
	size_t value_capacity;
	uint32_t rows;
	uint32_t values;
};

/* No memory is taken before the first row. */
void ts_table_init(struct ts_table *table, const struct ts_table_info *info);
void ts_table_release(struct ts_table *table);

/* Forgets the rows, keeps the memory. */
static inline void ts_table_clear(struct ts_table *table)
{
	table->rows = 0;
	table->values = 0;
}

/* Appends a row and the values of its arguments; 0 or TS_ENOMEM. */
int ts_table_add(struct ts_table *table, const void *row, const int64_t *values,
		 uint32_t value_count);

/* Appends row `from` of another table of the same kind. */
int ts_table_add_from(struct ts_table *table, const struct ts_table *other, uint32_t from,
		      uint32_t value_count);

#endif
