/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite databases of other tools, opened so that none of their SQL runs, and read table by table.
 * Schemas differ between versions, so a reader lists the columns that it knows, in the order of an
 * enum; columns that a table lacks read as absent.
 *
 *	enum { START, END, NAME };
 *	static const char *const columns[] = { "start", "end", "nameId" };
 *	struct ts_sqlite_query query;
 *	int rc = ts_sqlite_select(db, &query, "OSRT_API", columns, 3, err);
 *
 *	while (!rc && (rc = ts_sqlite_step(&query, err)) > 0)
 *		... ts_sqlite_int(&query, START) ...
 *	ts_sqlite_end(&query);
 *
 * Only tables are read: views, virtual tables and computed columns are SQL of the file and are
 * ignored. Built only if SQLite is available.
 */
#ifndef TS_IMPORT_COMMON_SQLITE_H
#define TS_IMPORT_COMMON_SQLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#include "base/arena.h"
#include "base/memory.h"
#include "import/common/entities.h"
#include "import/common/spool.h"
#include "import/import.h"

struct ts_sqlite_table {
	char *name;
	uint64_t rows; /* approximate: the largest row id; wrong if the file is corrupt */
	bool is_taken; /* set by a reader that has read the table, or skips it on purpose */
};

struct ts_sqlite {
	struct ts_import *import;
	struct ts_entities entities; /* started before a reader is called, finished after it */
	sqlite3 *handle;
	struct ts_spool spool;
	struct ts_sqlite_table *tables; /* all real tables, in schema order */
	size_t table_count, table_capacity;
	uint64_t rows;          /* stepped over so far */
	uint64_t most_rows;     /* upper bound for a file of this size, allowing several passes */
	uint64_t expected_rows; /* of all tables; for progress */
	bool is_canceled;       /* by the caller's progress function */
	bool is_cut;            /* the file is shorter than its header says */
	bool has_log;           /* has a write-ahead log, which is not read */
	struct ts_arena arena;  /* lives until losses are written: holds their names */
};

/*
 * The readers. Their caller writes the source, entities, losses and the error of a damaged file.
 * TS_EFORMAT from a query has its message already; other tables may still be read.
 */
int ts_nsys_read(struct ts_sqlite *db, struct ts_error *err);
int ts_rocpd_read(struct ts_sqlite *db, struct ts_error *err);

/* NULL: no table of that name (compared as SQL does). */
struct ts_sqlite_table *ts_sqlite_table(struct ts_sqlite *db, const char *name);

/*
 * Calls `report` for each stored column with its declared type ("" if none), in order; stops at the
 * first non-zero result and returns it. TS_OK if there is no such table.
 */
int ts_sqlite_columns(struct ts_sqlite *db, const char *table,
		      int (*report)(void *context, const char *column, const char *type),
		      void *context, struct ts_error *err);

/* ---- queries ---- */

#define TS_SQLITE_MAX_COLUMNS 128

struct ts_sqlite_query {
	struct ts_sqlite *db;
	sqlite3_stmt *statement; /* NULL: has no rows */
	const char *table;       /* borrowed; for messages */
	/* Which of the first 64 columns the table has. */
	uint64_t has;
};

/*
 * Selects all rows of a table by row id. No rows and TS_OK if there is no such table. A failed
 * query has ended. At most TS_SQLITE_MAX_COLUMNS columns.
 */
int ts_sqlite_select(struct ts_sqlite *db, struct ts_sqlite_query *query, const char *table,
		     const char *const *columns, size_t count, struct ts_error *err);

/* 1: a row, 0: no more; else an error, after which the query has ended. Reports progress. */
int ts_sqlite_step(struct ts_sqlite_query *query, struct ts_error *err);

/* Required after leaving a loop early; otherwise harmless. */
void ts_sqlite_end(struct ts_sqlite_query *query);

/* ---- values of the row that the query is at ---- */

/* TS_ABSENT for NULL, text, blobs, and numbers outside int64. */
static inline int64_t ts_sqlite_int(const struct ts_sqlite_query *query, int column)
{
	/* Not shared with another thread, so reading it unprotected is safe: see sqlite3_value. */
	sqlite3_value *value = sqlite3_column_value(query->statement, column);
	int type = sqlite3_value_type(value);
	double real;

	if (TS_LIKELY(type == SQLITE_INTEGER))
		return sqlite3_value_int64(value);
	if (type != SQLITE_FLOAT)
		return TS_ABSENT;
	real = sqlite3_value_double(value);
	/* 2^63: the int64 limit. */
	return real > -9223372036854775808.0 && real < 9223372036854775808.0 ? (int64_t)real
									     : TS_ABSENT;
}

/* False if it is not a number. */
static inline bool ts_sqlite_double(const struct ts_sqlite_query *query, int column,
				    double *ret_value)
{
	int type = sqlite3_column_type(query->statement, column);

	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		return false;
	*ret_value = sqlite3_column_double(query->statement, column);
	return true;
}

/*
 * NULL if it is not text. Valid until the next step; NUL-terminated. Numbers and blobs are not
 * text.
 */
static inline const char *ts_sqlite_text(const struct ts_sqlite_query *query, int column,
					 size_t *ret_length)
{
	const char *text;

	*ret_length = 0;
	if (sqlite3_column_type(query->statement, column) != SQLITE_TEXT)
		return NULL;
	text = (const char *)sqlite3_column_text(query->statement, column);
	if (text)
		*ret_length = (size_t)sqlite3_column_bytes(query->statement, column);
	return text;
}

/* Text as a string of the trace; 0 if it is not text, or the writer has failed. */
uint32_t ts_sqlite_string(const struct ts_sqlite_query *query, int column);

#endif
