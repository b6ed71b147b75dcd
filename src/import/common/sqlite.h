/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Databases of other tools: opened so that nothing in them can run, read table by table. Schemas
 * differ by version, so a reader names the columns that it knows, in the order of an enum of its
 * own; those that a table does not have read as absent.
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
 * Only tables are read: views, virtual tables and computed columns are SQL of the file's, and are
 * as if they were not there. Only this header and the readers of databases know SQLite. Built only
 * where it is there.
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
	uint64_t rows; /* about as many: the largest row id; wrong where the file lies */
	bool is_taken; /* for readers: whoever has read it, or knows why not, says so here */
};

struct ts_sqlite {
	struct ts_import *import;
	struct ts_entities entities; /* started before a reader is called, finished after it */
	sqlite3 *handle;
	struct ts_spool spool;
	struct ts_sqlite_table *tables; /* all real ones, as they stand in the schema */
	size_t table_count, table_capacity;
	uint64_t rows;          /* stepped over so far */
	uint64_t most_rows;     /* that a file of this size can hold, read a few times over */
	uint64_t expected_rows; /* of all tables; for progress */
	bool is_canceled;       /* by the caller's progress function */
	bool is_cut;            /* the file is shorter than it says */
	bool has_log;           /* some of it still stands in a file beside it, which is not read */
	struct ts_arena arena;  /* for what has to last until losses are written: their names */
};

/*
 * The readers. They read; source, entities, losses and the rest of a file that went wrong are
 * written by their caller. TS_EFORMAT from a query that found damage has its message already; what
 * other tables hold may still be read.
 */
int ts_nsys_read(struct ts_sqlite *db, struct ts_error *err);
int ts_rocpd_read(struct ts_sqlite *db, struct ts_error *err);

/* NULL: there is none of that name (as SQL compares names). */
struct ts_sqlite_table *ts_sqlite_table(struct ts_sqlite *db, const char *name);

/*
 * Told each stored column of a table with its declared type ("" where there is none), in order;
 * stops at the first non-zero answer, which is returned. TS_OK for a table that is not there.
 */
int ts_sqlite_columns(struct ts_sqlite *db, const char *table,
		      int (*tell)(void *context, const char *column, const char *type),
		      void *context, struct ts_error *err);

/* ---- queries ---- */

#define TS_SQLITE_MAX_COLUMNS 128

struct ts_sqlite_query {
	struct ts_sqlite *db;
	sqlite3_stmt *statement; /* NULL: has no rows */
	const char *table;       /* borrowed; for messages */
	/* Those of the columns that the table has; of the first 64. */
	uint64_t has;
};

/*
 * All rows of a table, in the order of their row ids. No rows, and TS_OK, where there is no such
 * table. A query that failed has ended. At most TS_SQLITE_MAX_COLUMNS columns.
 */
int ts_sqlite_select(struct ts_sqlite *db, struct ts_sqlite_query *query, const char *table,
		     const char *const *columns, size_t count, struct ts_error *err);

/* 1: a row, 0: no more; else an error, after which the query has ended. Tells progress. */
int ts_sqlite_step(struct ts_sqlite_query *query, struct ts_error *err);

/* Needed after a loop that was left early; harmless else. */
void ts_sqlite_end(struct ts_sqlite_query *query);

/* ---- values of the row that the query is at ---- */

/* TS_ABSENT for NULL, texts, blobs, and numbers that are no int64. */
static inline int64_t ts_sqlite_int(const struct ts_sqlite_query *query, int column)
{
	/* Not shared with another thread, so that it may be looked at: see sqlite3_value. */
	sqlite3_value *value = sqlite3_column_value(query->statement, column);
	int type = sqlite3_value_type(value);
	double real;

	if (TS_LIKELY(type == SQLITE_INTEGER))
		return sqlite3_value_int64(value);
	if (type != SQLITE_FLOAT)
		return TS_ABSENT;
	real = sqlite3_value_double(value);
	/* 2^63, beyond which int64 has no values. */
	return real > -9223372036854775808.0 && real < 9223372036854775808.0 ? (int64_t)real
									     : TS_ABSENT;
}

/* False for what is no number. */
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
 * NULL for what is no text. Valid until the next step; a NUL stands behind it. Numbers and blobs
 * are no texts: a blob's bytes are not looked at.
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

/* A text as a string of the trace; 0 for what is no text, or where the writer has failed. */
uint32_t ts_sqlite_string(const struct ts_sqlite_query *query, int column);

#endif
