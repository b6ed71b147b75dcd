/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens databases, detects the tool that wrote them, and steps over rows. The file is untrusted: it
 * is opened read-only, none of its SQL runs, and the number of rows is bounded by its size, because
 * pages may form cycles.
 */
#include "import/common/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

/* SQLite VM steps between two checks for cancellation: a few ms. */
#define STEPS_BETWEEN_LOOKS 200000
/* Rows between checks, a power of 2. */
#define ROWS_BETWEEN_LOOKS 8192
/* No tool creates that many, and each is compared with the others. */
#define MOST_TABLES 4096
/* KiB of page cache: each page is read once, so more does not help. */
#define CACHE_PRAGMA "PRAGMA cache_size=-2048"

static const struct ts_loss_kind log_beside = {
	.what = "file",
	.one = "rows in the -wal file next to the database (open and close it once with sqlite3 to merge them, then import again)",
	.many = "",
	.is_rest = true
};

/* ---- errors and progress ---- */

static int fail(struct ts_sqlite *db, int code, const char *table, struct ts_error *err)
{
	struct ts_import *import = db->import;
	const char *reason = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
	int rc = ts_writer_status(import->writer, err);

	if (rc)
		return rc;
	if (db->is_canceled)
		return ts_error_set(err, TS_ECANCELED,
				    "input '%s': stopped after %" PRIu64
				    " rows; everything read so far is in the trace",
				    import->path, db->rows);
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return ts_error_set(err, TS_EIO, "input '%s': SQLite cannot open it: %s",
				    import->path, reason);
	default:
		return ts_error_set(
			err, TS_EFORMAT,
			"input '%s': %s%s%sthe database is damaged (%s); %sexport or copy the file again",
			import->path, table ? "table " : "", table ? table : "", table ? ": " : "",
			reason,
			import->result.events ? "the readable part was kept; to get the rest, "
					      : "");
	}
}

/* Non-zero: stop. Called between rows and during long statements. */
static int look(void *context)
{
	struct ts_sqlite *db = context;
	struct ts_import *import = db->import;
	uint64_t total = db->spool.bytes;
	double part = (double)TS_MIN(db->rows, db->expected_rows) /
		      (double)TS_MAX(db->expected_rows, UINT64_C(1));

	if (import->options.progress &&
	    import->options.progress(import->options.context, (uint64_t)(part * (double)total),
				     total))
		db->is_canceled = true;
	return db->is_canceled || ts_writer_status(import->writer, NULL);
}

/* ---- opening ---- */

/* The path as a URI. immutable: no locks, no journal, nothing is created next to the file. */
static void append_uri(struct ts_text *uri, const char *path)
{
	ts_text_append_str(uri, path[0] == '/' ? "file://" : "file:");
	for (; *path; path++) {
		if (*path == '%' || *path == '?' || *path == '#')
			ts_text_printf(uri, "%%%02x", (unsigned int)(unsigned char)*path);
		else
			ts_text_append_char(uri, *path);
	}
	ts_text_append_str(uri, "?mode=ro&immutable=1");
}

static void defend(struct ts_sqlite *db)
{
	sqlite3 *handle = db->handle;

	sqlite3_extended_result_codes(handle, 1);
	/*
	 * SQLite reads truncated files only with a writable schema, which defensive mode forbids;
	 * nothing is written here.
	 */
	sqlite3_db_config(handle,
			  db->is_cut ? SQLITE_DBCONFIG_WRITABLE_SCHEMA : SQLITE_DBCONFIG_DEFENSIVE,
			  1, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, (int)TS_IMPORT_MAX_STRING);
	sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
	sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, 64);
	sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0);
	sqlite3_progress_handler(handle, STEPS_BETWEEN_LOOKS, look, db);
	/* Optional. */
	sqlite3_exec(handle, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
	sqlite3_exec(handle, CACHE_PRAGMA, NULL, NULL, NULL);
}

/* Does the file end before the last page that its header counts? Old writers count none. */
static bool is_cut(const struct ts_spool *spool)
{
	enum { PAGE_BYTES = 16, CHANGES = 24, PAGES = 28, PAGES_OF = 92 };
	unsigned char header[100];
	uint64_t page;

	if (pread(spool->fd, header, sizeof(header), 0) != sizeof(header))
		return true;
	page = (uint64_t)header[PAGE_BYTES] << 8 | header[PAGE_BYTES + 1];
	page = page == 1 ? 65536 : page;
	return !memcmp(header + CHANGES, header + PAGES_OF, 4) &&
	       spool->bytes / TS_MAX(page, UINT64_C(512)) <
		       ((uint64_t)header[PAGES] << 24 | (uint64_t)header[PAGES + 1] << 16 |
			(uint64_t)header[PAGES + 2] << 8 | header[PAGES + 3]);
}

/* A write-ahead log left by a writer that crashed: that file is not read. */
static bool has_log(const struct ts_spool *spool)
{
	struct ts_text path = { 0 };
	struct stat status;
	bool has;

	if (spool->is_copy)
		return false;
	ts_text_printf(&path, "%s-wal", spool->path);
	has = !path.failed && !stat(ts_text_cstr(&path), &status) && status.st_size > 0;
	ts_text_release(&path);
	return has;
}

static int open_database(struct ts_sqlite *db, struct ts_error *err)
{
	struct ts_text uri = { 0 };
	int code, rc = ts_spool_open(&db->spool, db->import, err);

	if (rc)
		return rc;
	append_uri(&uri, db->spool.path);
	code = uri.failed ? SQLITE_NOMEM
			  : sqlite3_open_v2(ts_text_cstr(&uri), &db->handle,
					    SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX |
						    SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_URI,
					    NULL);
	ts_text_release(&uri);
	if (code)
		return fail(db, code, NULL, err);
	ts_spool_hide(&db->spool);
	db->is_cut = is_cut(&db->spool);
	db->has_log = has_log(&db->spool);
	defend(db);
	/* A row needs at least 5 bytes; a reader may make several passes. */
	db->most_rows = db->spool.bytes;
	return TS_OK;
}

/* ---- tables ---- */

static int add_table(struct ts_sqlite *db, const char *name)
{
	if (ts_grow_array((void **)&db->tables, &db->table_capacity, db->table_count + 1,
			  sizeof(*db->tables)))
		return SQLITE_NOMEM;
	db->tables[db->table_count] = (struct ts_sqlite_table){ .name = strdup(name) };
	if (!db->tables[db->table_count].name)
		return SQLITE_NOMEM;
	db->table_count++;
	return SQLITE_OK;
}

/* Estimates the number of rows; tables without row ids get no estimate. */
static void measure_table(struct ts_sqlite *db, struct ts_sqlite_table *table)
{
	char *sql = sqlite3_mprintf("SELECT max(rowid) FROM \"%w\"", table->name);
	sqlite3_stmt *statement = NULL;

	if (sql && !sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL) &&
	    sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int64(statement, 0) > 0)
		table->rows =
			TS_MIN((uint64_t)sqlite3_column_int64(statement, 0), db->spool.bytes / 5);
	sqlite3_finalize(statement);
	sqlite3_free(sql);
	db->expected_rows += table->rows;
}

static int list_tables(struct ts_sqlite *db, struct ts_error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(
		db->handle, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0",
		-1, &statement, NULL);

	while (!code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);

		code = name && sqlite3_strnicmp(name, "sqlite_", 7) ? add_table(db, name)
								    : SQLITE_OK;
		if (++db->rows > db->most_rows)
			code = SQLITE_CORRUPT;
	}
	code = code == SQLITE_DONE ? TS_OK : fail(db, code, NULL, err);
	sqlite3_finalize(statement);
	if (!code && db->table_count > MOST_TABLES)
		code = ts_error_set(
			err, TS_EFORMAT,
			"input '%s': a SQLite database with %zu tables, not written by a supported tool",
			db->import->path, db->table_count);
	for (size_t i = 0; !code && i < db->table_count; i++)
		measure_table(db, &db->tables[i]);
	return code;
}

struct ts_sqlite_table *ts_sqlite_table(struct ts_sqlite *db, const char *name)
{
	for (size_t i = 0; i < db->table_count; i++)
		if (!sqlite3_stricmp(db->tables[i].name, name))
			return &db->tables[i];
	return NULL;
}

int ts_sqlite_columns(struct ts_sqlite *db, const char *table,
		      int (*report)(void *context, const char *column, const char *type),
		      void *context, struct ts_error *err)
{
	enum { NAME = 1, TYPE = 2, HIDDEN = 6 };
	sqlite3_stmt *statement = NULL;
	int code, rc = TS_OK;
	char *sql;

	if (!ts_sqlite_table(db, table))
		return TS_OK;
	sql = sqlite3_mprintf("PRAGMA table_xinfo(\"%w\")", table);
	code = sql ? sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL) : SQLITE_NOMEM;
	while (!rc && !code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, NAME);
		const char *type = (const char *)sqlite3_column_text(statement, TYPE);

		code = SQLITE_OK;
		/* Hidden: computed by an expression in the file. */
		if (name && !sqlite3_column_int(statement, HIDDEN))
			rc = report(context, name, type ? type : "");
	}
	if (!rc && code && code != SQLITE_DONE)
		rc = fail(db, code, table, err);
	sqlite3_finalize(statement);
	sqlite3_free(sql);
	return rc;
}

/* ---- queries ---- */

/* Which of the requested columns a table has. */
struct wanted {
	const char *const *columns;
	size_t count;
	bool has[TS_SQLITE_MAX_COLUMNS];
};

static int mark_column(void *context, const char *column, const char *type)
{
	struct wanted *wanted = context;

	for (size_t i = 0; i < wanted->count; i++)
		if (!sqlite3_stricmp(wanted->columns[i], column))
			wanted->has[i] = true;
	return TS_OK;
}

/* NOT INDEXED: the file's indexes may not match the table. */
static char *compose(const struct wanted *wanted, const char *table)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendall(sql, "SELECT ");
	for (size_t i = 0; i < wanted->count; i++) {
		sqlite3_str_appendall(sql, i ? "," : "");
		if (wanted->has[i])
			sqlite3_str_appendf(sql, "\"%w\"", wanted->columns[i]);
		else
			sqlite3_str_appendall(sql, "NULL");
	}
	sqlite3_str_appendf(sql, " FROM \"%w\" NOT INDEXED", table);
	return sqlite3_str_finish(sql);
}

int ts_sqlite_select(struct ts_sqlite *db, struct ts_sqlite_query *query, const char *table,
		     const char *const *columns, size_t count, struct ts_error *err)
{
	struct wanted wanted = { .columns = columns, .count = count };
	char *sql;
	int code, rc;

	*query = (struct ts_sqlite_query){ .db = db, .table = table };
	if (!ts_sqlite_table(db, table))
		return TS_OK;
	rc = ts_sqlite_columns(db, table, mark_column, &wanted, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < TS_MIN(count, (size_t)64); i++)
		query->has |= (uint64_t)wanted.has[i] << i;
	sql = compose(&wanted, table);
	code = sql ? sqlite3_prepare_v2(db->handle, sql, -1, &query->statement, NULL)
		   : SQLITE_NOMEM;
	if (code)
		rc = fail(db, code, table, err);
	sqlite3_free(sql);
	return rc;
}

void ts_sqlite_end(struct ts_sqlite_query *query)
{
	sqlite3_finalize(query->statement);
	query->statement = NULL;
}

static int step_failed(struct ts_sqlite_query *query, int code, struct ts_error *err)
{
	int rc = fail(query->db, code, query->table, err);

	ts_sqlite_end(query);
	return rc;
}

int ts_sqlite_step(struct ts_sqlite_query *query, struct ts_error *err)
{
	struct ts_sqlite *db = query->db;
	int code;

	if (!query->statement)
		return 0;
	code = sqlite3_step(query->statement);
	if (TS_LIKELY(code == SQLITE_ROW)) {
		if (TS_LIKELY(++db->rows % ROWS_BETWEEN_LOOKS))
			return 1;
		if (look(db))
			return step_failed(query, SQLITE_INTERRUPT, err);
		return db->rows <= db->most_rows ? 1 : step_failed(query, SQLITE_CORRUPT, err);
	}
	if (code != SQLITE_DONE)
		return step_failed(query, code, err);
	ts_sqlite_end(query);
	return 0;
}

uint32_t ts_sqlite_string(const struct ts_sqlite_query *query, int column)
{
	size_t length;
	const char *text = ts_sqlite_text(query, column, &length);

	return text ? ts_import_string(query->db->import, text, length) : 0;
}

/* ---- which format ---- */

struct format {
	const char *name;
	const char *whose;
	int (*read)(struct ts_sqlite *db, struct ts_error *err);
};

static const struct format nsys = { "nsys", "an Nsight Systems export", ts_nsys_read };
static const struct format rocpd = { "rocpd", "a rocprofv3 database (rocpd)", ts_rocpd_read };

static const struct format *recognise(struct ts_sqlite *db)
{
	for (size_t i = 0; i < db->table_count; i++) {
		const char *name = db->tables[i].name;

		if (!sqlite3_strnicmp(name, "rocpd_", 6))
			return &rocpd;
		if (!sqlite3_stricmp(name, "StringIds") ||
		    !sqlite3_stricmp(name, "EXPORT_META_DATA") ||
		    !sqlite3_stricmp(name, "META_DATA_EXPORT") ||
		    !sqlite3_stricmp(name, "TARGET_INFO_SYSTEM_ENV"))
			return &nsys;
	}
	return NULL;
}

/* A database of another tool; lists some table names in the message. */
static int refuse(struct ts_sqlite *db, struct ts_error *err)
{
	struct ts_text names = { 0 };
	int rc;

	for (size_t i = 0; i < db->table_count && i < 5; i++)
		ts_text_printf(&names, "%s%.40s", i ? ", " : "", db->tables[i].name);
	if (db->table_count > 5)
		ts_text_append_str(&names, " ...");
	rc = ts_error_set(
		err, TS_EFORMAT,
		"input '%s': a SQLite database, but neither from Nsight Systems (table StringIds) nor from rocprofv3 (tables rocpd_...); it has %s%s",
		db->import->path, names.length ? "the tables " : "no tables", ts_text_cstr(&names));
	ts_text_release(&names);
	return rc;
}

static int read_database(struct ts_sqlite *db, const struct format *format, struct ts_error *err)
{
	struct ts_import *import = db->import;
	int rc;

	import->result.format = format->name;
	rc = ts_entities_start(&db->entities, import, err);
	if (rc)
		return rc;
	rc = format->read(db, err);
	if (!rc && db->spool.damage.code)
		rc = ts_error_set(err, db->spool.damage.code, "%s", db->spool.damage.message);
	else if (!rc && db->is_cut)
		rc = ts_import_cut(import, db->spool.bytes, err);
	if (db->has_log)
		ts_entities_add_loss(&db->entities, &log_beside, 1);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&db->entities, &ts_loss_rest, 1);
	if (!ts_writer_status(import->writer, NULL))
		ts_entities_finish(&db->entities);
	ts_entities_release(&db->entities);
	return rc;
}

static int run(struct ts_sqlite *db, struct ts_error *err)
{
	const char *wanted = db->import->options.format;
	const struct format *format;
	int rc = open_database(db, err);

	if (!rc)
		rc = list_tables(db, err);
	if (rc)
		return rc;
	db->import->result.bytes = db->spool.bytes;
	format = recognise(db);
	if (!format)
		return refuse(db, err);
	if (wanted && strcmp(wanted, format->name))
		return ts_error_set(
			err, TS_EFORMAT,
			"input '%s': is %s, which --format %s cannot read; omit --format",
			db->import->path, format->whose, wanted);
	return read_database(db, format, err);
}

int ts_sqlite_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_sqlite db = { .import = import, .spool = { .fd = -1, .is_hidden = true } };
	int rc = run(&db, err);

	for (size_t i = 0; i < db.table_count; i++)
		free(db.tables[i].name);
	free(db.tables);
	sqlite3_close(db.handle);
	ts_spool_close(&db.spool);
	ts_arena_release(&db.arena);
	return rc;
}
