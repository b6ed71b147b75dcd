/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the result of an analysis (<tracesmith/result.h>). The tool shows it as text, JSON or CSV;
 * the analysis does not know which. Cells are appended from left to right, row by row:
 *
 *	static const struct ts_result_column columns[] = {
 *		{ "rank", "rank", TS_CELL_INTEGER },
 *		{ "idle_us", "idle", TS_CELL_TIME },
 *	};
 *	struct ts_result_table *table = ts_result_table(result, "breakdown", columns, 2);
 *	ts_cell_integer(table, rank);
 *	ts_cell_time(table, idle_ns);
 *
 * Out of memory is sticky; ts_result_status() reports it.
 */
#ifndef TS_ANALYZE_RESULT_H
#define TS_ANALYZE_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/result.h>

#include "base/arena.h"
#include "base/memory.h"

struct ts_result_table {
	const char *name;                       /* used in JSON if there are several tables */
	const struct ts_result_column *columns; /* borrowed: static, or in the result's arena */
	struct ts_result_column *own_columns;   /* the same if some are hidden; else NULL */
	size_t column_count;
	struct ts_cell *cells; /* row by row */
	size_t cell_count, cell_capacity;
	struct ts_result *result;
	struct ts_result_table *next;
	/*
	 * Text shows this many rows and notes how many are left out; 0: all. JSON and CSV always
	 * have all.
	 */
	size_t shown_rows;
	size_t left_out;     /* rows that were never computed (options.brief) */
	bool as_list;        /* text: each row is a paragraph, for cells that are sentences */
	uint64_t commands;   /* bit set of the columns of a list that are on one line, to paste */
	uint64_t below;      /* text: bit set of the columns that are shown below their row */
	const char *divider; /* splits those into lines: " < " makes "main < start" two lines */
	/*
	 * Keys of columns that text leaves out on a narrow line, the first ones first: "std_us
	 * count_a+count_b" for one, then two at once. Then numbers go from the right; other texts
	 * stay. NULL: numbers only.
	 */
	const char *details;
};

#define TS_RESULT_RECENT 64 /* a power of two */

struct ts_result {
	struct ts_result_table *tables, *last_table;
	struct ts_result_note {
		struct ts_result_note *next;
		const char *text;
	} * notes, *last_note;
	struct ts_arena arena;
	int64_t start; /* text shows instants relative to this */
	int status;
	/* Cache of recently copied texts: names repeat. */
	struct ts_result_text {
		const char *text, *copy;
	} recent[TS_RESULT_RECENT];
	struct ts_result_table swallows; /* returned by ts_result_table() when out of memory */
};

void ts_result_init(struct ts_result *result, int64_t start);
void ts_result_release(struct ts_result *result);

/* One for the caller of the library, who frees it with ts_result_free(). */
int ts_result_new(struct ts_result **ret_result, int64_t start, struct ts_error *err);
TS_DEFINE_AUTO(ts_result, ts_result_free);

/* Never NULL: when out of memory, a table that discards everything. */
struct ts_result_table *ts_result_table(struct ts_result *result, const char *name,
					const struct ts_result_column *columns,
					size_t column_count);

/* Text does not show the column of this key: it has no values in this trace. */
void ts_result_hide(struct ts_result_table *table, const char *key);

/*
 * A sentence for the user: what was left out, what a number does not mean. Shown below the tables,
 * or on stderr with JSON and CSV.
 */
void ts_result_note(struct ts_result *result, const char *format, ...) TS_PRINTF_LIKE(2, 3);

void ts_cell_none(struct ts_result_table *table);
void ts_cell_text(struct ts_result_table *table, const char *text);   /* copied; NULL: none */
void ts_cell_amount(struct ts_result_table *table, const char *text); /* copied; NULL: none */
void ts_cell_format(struct ts_result_table *table, const char *format, ...) TS_PRINTF_LIKE(2, 3);
void ts_cell_integer(struct ts_result_table *table, int64_t value); /* TS_ABSENT: none */
void ts_cell_real(struct ts_result_table *table, double value);     /* NaN: none */
void ts_cell_time(struct ts_result_table *table, int64_t ns);       /* TS_ABSENT: none */
void ts_cell_instant(struct ts_result_table *table, int64_t ns);    /* TS_ABSENT: none */
void ts_cell_percent(struct ts_result_table *table, double value);  /* NaN: none */
/* `part` in percent of `total`; none if `total` is 0. */
void ts_cell_share(struct ts_result_table *table, int64_t part, int64_t total);
void ts_cell_bytes(struct ts_result_table *table, int64_t bytes); /* TS_ABSENT: none */
void ts_cell_bool(struct ts_result_table *table, bool value);

static inline size_t ts_result_rows(const struct ts_result_table *table)
{
	return table->cell_count / table->column_count;
}

/* Neither has rows nor left any out. */
static inline bool ts_result_is_empty(const struct ts_result_table *table)
{
	return table->cell_count == 0 && table->left_out == 0;
}

/* Removes the empty tables. */
void ts_result_drop_empty(struct ts_result *result);

/* 0, or TS_ENOMEM with its message. */
int ts_result_status(const struct ts_result *result, struct ts_error *err);

#endif
