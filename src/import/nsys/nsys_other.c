/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All remaining tables, by their columns: those with a time are events, those without are facts.
 * This covers libraries that later versions trace.
 */
#include <stdio.h>
#include <string.h>

#include "import/nsys/nsys.h"

/* Limit on facts per table; the rest is counted as lost. */
#define MOST_FACTS 1000

static const struct ts_loss_kind many_columns = {
	.what = "argument",
	.one = "argument of an event with more than 31 arguments",
	.many = "arguments of events with more than 31 arguments"
};

/*
 * Columns with a known meaning, at fixed positions. Of several names the first with a value is
 * used.
 */
enum { START, TIMESTAMP, END, THREAD, PROCESS, DEVICE, CHAIN, NAME_ID, TEXT_ID, TEXT, NAME, KNOWN };

static const char *const known[KNOWN] = { "start",     "timestamp", "end",         "globalTid",
					  "globalPid", "deviceId",  "callchainId", "nameId",
					  "textId",    "text",      "name" };

struct other {
	struct ts_nsys *n;
	const char *columns[TS_SQLITE_MAX_COLUMNS];
	size_t count;
	struct ts_nsys_args args;
	uint64_t left_out; /* columns */
	uint32_t category;
	uint64_t has; /* of known[] */
	const struct ts_nsys_chains *chains;
};

static bool has(const struct other *other, int column)
{
	return other->has >> column & 1;
}

static int sort_column(void *context, const char *column, const char *type)
{
	struct other *other = context;
	struct ts_nsys *n = other->n;

	for (int i = 0; i < KNOWN; i++) {
		if (sqlite3_stricmp(column, known[i]) == 0) {
			other->has |= UINT64_C(1) << i;
			/* Not a column of slices: kept as an argument too. */
			if (i != DEVICE)
				return TS_OK;
		}
	}
	/* The class is an internal number of Nsight Systems. */
	if (!strcmp(column, "eventClass"))
		return TS_OK;
	if (other->args.count == TS_NSYS_MAX_ARGS || other->count == TS_SQLITE_MAX_COLUMNS) {
		other->left_out++;
		return TS_OK;
	}
	other->columns[other->count] = ts_arena_strdup_len(&n->db->arena, column, strlen(column));
	if (!other->columns[other->count])
		return TS_ENOMEM;
	ts_nsys_args_add(n, &other->args, column, (int)other->count,
			 ts_nsys_is_text_id(column) ? ts_nsys_resolve_text : NULL);
	other->count++;
	return TS_OK;
}

static uint32_t name_of(struct other *other, const struct ts_sqlite_query *query)
{
	uint32_t name =
		has(other, NAME_ID) ? ts_nsys_string(other->n, ts_sqlite_int(query, NAME_ID)) : 0;

	if (!name && has(other, TEXT_ID))
		name = ts_nsys_string(other->n, ts_sqlite_int(query, TEXT_ID));
	if (!name && has(other, TEXT))
		name = ts_sqlite_string(query, TEXT);
	if (!name && has(other, NAME))
		name = ts_sqlite_string(query, NAME);
	return name ? name : other->category;
}

/* Thread of an event; if it names only its process, that process's first thread. */
static int64_t thread_of(struct other *other, const struct ts_sqlite_query *query)
{
	int64_t thread = ts_sqlite_int(query, THREAD), process = ts_sqlite_int(query, PROCESS);

	if (thread != TS_ABSENT || process == TS_ABSENT)
		return ts_nsys_thread(other->n, thread);
	return ts_nsys_thread(other->n,
			      (int64_t)((uint64_t)process | (uint64_t)ts_nsys_pid(process)));
}

/* A device span without a thread, such as GPU page faults. */
static void add_device_span(struct other *other, const struct ts_sqlite_query *query, int64_t start,
			    int64_t duration)
{
	struct ts_nsys *n = other->n;
	struct ts_nsys_process *process = ts_nsys_process(n, ts_sqlite_int(query, PROCESS));
	struct ts_gpu_op_row row = ts_gpu_op_none;

	if (!process)
		return;
	row.start = start;
	row.duration = duration;
	row.device = ts_nsys_device(n, process, ts_sqlite_int(query, DEVICE));
	row.process = process->id;
	row.name = name_of(other, query);
	row.category = other->category;
	row.shape = ts_nsys_args_read(n, &other->args, query);
	ts_nsys_add_event(n, TS_TABLE_GPU_OP, &row, other->args.values);
}

static void add_span(struct other *other, const struct ts_sqlite_query *query, int64_t start,
		     int64_t duration)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = start;
	row.duration = duration;
	row.thread = thread_of(other, query);
	row.name = name_of(other, query);
	row.category = other->category;
	if (has(other, CHAIN))
		ts_nsys_find_stack(other->chains, ts_sqlite_int(query, CHAIN), &row.stack);
	row.shape = ts_nsys_args_read(other->n, &other->args, query);
	ts_nsys_add_event(other->n, TS_TABLE_SLICE, &row, other->args.values);
}

static void add_instant(struct other *other, const struct ts_sqlite_query *query, int64_t start)
{
	struct ts_mark_row row = ts_mark_none;

	row.start = start;
	row.thread = thread_of(other, query);
	row.name = name_of(other, query);
	row.category = other->category;
	row.scope = has(other, THREAD)    ? TS_SCOPE_THREAD
		    : has(other, PROCESS) ? TS_SCOPE_PROCESS
					  : TS_SCOPE_UNSAID;
	row.shape = ts_nsys_args_read(other->n, &other->args, query);
	ts_nsys_add_event(other->n, TS_TABLE_MARK, &row, other->args.values);
}

static void read_event(struct other *other, const struct ts_sqlite_query *query)
{
	struct ts_nsys *n = other->n;
	int64_t start = ts_sqlite_int(query, has(other, START) ? START : TIMESTAMP), duration;

	if (!ts_nsys_span(n, start, ts_sqlite_int(query, END), &duration))
		return;
	if (other->left_out)
		ts_entities_add_loss(n->entities, &many_columns, other->left_out);
	if (!has(other, END))
		add_instant(other, query, start);
	else if (!has(other, THREAD) && has(other, DEVICE))
		add_device_span(other, query, start, duration);
	else
		add_span(other, query, start, duration);
}

static int read_events(struct other *other, const char *table)
{
	struct ts_nsys *n = other->n;
	struct ts_sqlite_query query;
	int rc = ts_sqlite_select(n->db, &query, table, other->columns, other->count, n->err);

	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		read_event(other, &query);
		rc = TS_OK;
	}
	ts_sqlite_end(&query);
	return rc;
}

/* ---- facts ---- */

static int lose_rows(struct ts_nsys *n, const char *table, uint64_t rows)
{
	static const char one[] = "row of table %s", many[] = "rows of table %s";
	size_t bytes = strlen(table) + sizeof(many);
	char *texts[2] = { ts_arena_alloc(&n->db->arena, bytes),
			   ts_arena_alloc(&n->db->arena, bytes) };
	struct ts_loss_kind *kind = ts_arena_alloc(&n->db->arena, sizeof(*kind));

	if (!texts[0] || !texts[1] || !kind)
		return TS_ENOMEM;
	snprintf(texts[0], bytes, one, table);
	snprintf(texts[1], bytes, many, table);
	*kind = (struct ts_loss_kind){ .what = table, .one = texts[0], .many = texts[1] };
	ts_entities_add_loss(n->entities, kind, rows);
	return TS_OK;
}

static int read_facts(struct ts_nsys *n, const char *table)
{
	uint64_t rows;
	int rc = ts_nsys_read_as_meta(n, table, MOST_FACTS, &rows);
	char *name;

	if (rc || rows <= MOST_FACTS)
		return rc;
	name = ts_arena_strdup_len(&n->db->arena, table, strlen(table));
	return name ? lose_rows(n, name, rows - MOST_FACTS) : TS_ENOMEM;
}

/* ---- which is which ---- */

/* Enum labels are built in. */
static bool is_nothing(const char *table)
{
	return !sqlite3_strnicmp(table, "ENUM_", 5) ||
	       !sqlite3_stricmp(table, "UnwindMethodType") ||
	       !sqlite3_stricmp(table, "PROCESSES") || !sqlite3_stricmp(table, "ThreadNames");
}

static int read_table(struct ts_nsys *n, const char *table)
{
	struct other other = { .n = n, .count = KNOWN };
	int rc;

	memcpy(other.columns, known, sizeof(known));
	other.category = ts_import_string(n->import, table, strlen(table));
	other.chains = !strcmp(table, "OSRT_API") ? &n->osrt_chains : &n->cuda_chains;
	rc = ts_sqlite_columns(n->db, table, sort_column, &other, n->err);
	if (!rc) {
		bool is_event = has(&other, START) || has(&other, TIMESTAMP);

		rc = is_event ? read_events(&other, table) : read_facts(n, table);
	}
	ts_nsys_args_release(&other.args);
	return rc;
}

int ts_nsys_read_other(struct ts_nsys *n)
{
	int first = TS_OK;

	for (size_t i = 0; i < n->db->table_count && (!first || first == TS_EFORMAT); i++) {
		struct ts_sqlite_table *table = &n->db->tables[i];
		int rc;

		if (table->is_taken || is_nothing(table->name))
			continue;
		table->is_taken = true;
		rc = read_table(n, table->name);
		if (rc && (!first || rc != TS_EFORMAT))
			first = rc;
	}
	return first;
}
