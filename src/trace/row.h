/* SPDX-License-Identifier: Apache-2.0 */
/* One row of any table, wherever it came from: a batch, an entity, a copy. */
#ifndef TS_TRACE_ROW_H
#define TS_TRACE_ROW_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

/* Everything is borrowed. */
struct ts_row {
	const struct ts_table_info *table;
	const int64_t *columns; /* one per column of the table; not read: "no value" */
	const int64_t *values;  /* arguments, laid out by the row's shape */
	const char *bytes;      /* content of the BYTES column, if the table has one */
	size_t bytes_length;
	int64_t id; /* implicit id of a row of a DICTIONARY table; else 0 */
};

/* Position of the column that best names a row of the table, or -1. */
int ts_row_name_column(const struct ts_table_info *table);

/*
 * Position of the column that says how long a row took, or -1. Other than `table->duration`, which
 * orders and selects rows, also torch_trace's, which is in seconds.
 */
int ts_row_duration_column(const struct ts_table_info *table);

/* A value of that column in ns; negative: the row did not end. */
int64_t ts_row_duration_ns(const struct ts_table_info *table, int64_t value);

#endif
