/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of an analysis (analyze.h, diff.h): tables of typed cells, and notes.
 *
 *	const struct ts_result_table *table = ts_result_table_find(result, "breakdown");
 *	int idle = ts_result_column_find(table, "idle_us");
 *
 *	for (size_t row = 0; row < ts_result_row_count(table); row++) {
 *		const struct ts_cell *cell = ts_result_cell(table, row, (size_t)idle);
 *		if (!cell->none)
 *			printf("%lld ns\n", (long long)cell->integer);
 *	}
 *	ts_result_free(result);
 *
 * A result is complete when it is returned, and does not change. It does not refer to the traces it
 * came from, which may be closed. Several threads may read it. Pointers that functions return are
 * borrowed until ts_result_free().
 */
#ifndef TRACESMITH_RESULT_H
#define TRACESMITH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ts_result;
struct ts_result_table;

/* Which member of a cell holds its value. */
enum ts_cell_type {
	TS_CELL_TEXT,    /* text */
	TS_CELL_AMOUNT,  /* text that is aligned like a number: "64 -> 76" */
	TS_CELL_INTEGER, /* integer */
	TS_CELL_REAL,    /* real; the key has the unit */
	/* integer, ns; JSON and CSV show us with three decimals, exact; the key ends in _us */
	TS_CELL_TIME,
	/*
	 * integer, trace time in ns. JSON and CSV show it as it is (the key ends in _ns), text the
	 * time since the start of the trace.
	 */
	TS_CELL_INSTANT,
	TS_CELL_PERCENT, /* real, 0 to 100 */
	TS_CELL_BYTES,   /* integer */
	TS_CELL_BOOL,    /* integer, 0 or 1 */
};

struct ts_result_column {
	const char *key;   /* in JSON and CSV, unit included */
	const char *title; /* in text; NULL: not shown there */
	enum ts_cell_type type;
};

struct ts_cell {
	bool none; /* no value: null, an empty field, "-" */
	union {
		int64_t integer;  /* also time, instant, bytes, bool */
		double real;      /* also percent; may be infinite, which JSON shows as null */
		const char *text; /* NUL-terminated */
	};
};

/* Accepts NULL. */
void ts_result_free(struct ts_result *result);

size_t ts_result_table_count(const struct ts_result *result);

/* In the order of `tracesmith analyze`; NULL: no such table. */
const struct ts_result_table *ts_result_table_at(const struct ts_result *result, size_t index);
const struct ts_result_table *ts_result_table_find(const struct ts_result *result,
						   const char *name);

const char *ts_result_table_name(const struct ts_result_table *table);
size_t ts_result_row_count(const struct ts_result_table *table);
size_t ts_result_column_count(const struct ts_result_table *table);

/* NULL: no such column. */
const struct ts_result_column *ts_result_column(const struct ts_result_table *table, size_t index);

/* The index of the column of this key, or -1. */
int ts_result_column_find(const struct ts_result_table *table, const char *key);

/*
 * The cell of a row and column; NULL: there is none. The cells of a table are an array, row by
 * row: from this one on, those of the following columns and rows follow.
 */
const struct ts_cell *ts_result_cell(const struct ts_result_table *table, size_t row,
				     size_t column);

/*
 * Notes on the result, in order: what was left out, what a number does not mean, how clocks were
 * aligned. NULL at the end.
 */
const char *ts_result_note_at(const struct ts_result *result, size_t index);

/*
 * The tables as JSON, as `tracesmith analyze --json` prints them: a list of objects, or an object
 * of lists if there are several tables. NUL-terminated; the caller frees *ret_json with free().
 * `ret_bytes` may be NULL.
 */
int ts_result_json(const struct ts_result *result, char **ret_json, size_t *ret_bytes,
		   struct ts_error *err);

#ifdef __cplusplus
}
#endif

#endif
