/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX: ranges, marks, and names of domains, categories and threads, which are stored among them.
 * Names are read first, because they may come after their use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/nsys/nsys.h"

static const struct ts_loss_kind unknown_type = { .what = "NVTX_EVENTS",
						  .one = "NVTX event of unknown type",
						  .many = "NVTX events of unknown type" };

/*
 * Event types of Nsight Systems, the same in all versions; also in ENUM_NSYS_EVENT_TYPE since 2022.
 */
enum {
	CATEGORY_NAME = 33,
	MARK = 34,
	THREAD_NAME = 39,
	PUSH_POP = 59,
	START_END = 60,
	TEXT_PUSH_POP = 70, /* from an .nvtxt file */
	TEXT_START_END = 71,
	DOMAIN_CREATE = 75,
	DOMAIN_DESTROY = 76,
};

enum {
	START,
	END,
	TYPE,
	TEXT,
	TEXT_ID,
	THREAD,
	DOMAIN,
	CATEGORY,
	RANGE,
	COLOR,
	PAYLOADS, /* and the thread that ended a range */
};

static const char *const columns[] = {
	"start",       "end",        "eventType",   "text",        "textId",
	"globalTid",   "domainId",   "category",    "rangeId",     "color",
	"uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value",
	"floatValue",  "jsonTextId", "jsonText",    "binaryData",  "endGlobalTid"
};

static uint32_t text_of(struct ts_nsys *n, const struct ts_sqlite_query *query)
{
	uint32_t text = ts_sqlite_string(query, TEXT);

	return text ? text : ts_nsys_string(n, ts_sqlite_int(query, TEXT_ID));
}

/* ---- names ---- */

static uint64_t domain_process(int64_t global)
{
	return global == TS_ABSENT ? 0 : ts_nsys_process_key(global);
}

/* Domains are numbered by process; 0 is the default. */
static uint64_t domain_key(int64_t global, int64_t domain)
{
	return domain_process(global) << 24 ^ (uint64_t)domain;
}

static int name_domain(struct ts_nsys *n, int64_t global, int64_t domain, uint32_t name)
{
	size_t length;
	const char *text = ts_writer_text(n->writer, name, &length);

	ts_text_clear(&n->scratch);
	ts_text_append_str(&n->scratch, "nvtx:");
	ts_text_append(&n->scratch, text, text ? length : 0);
	return ts_pairmap_put(&n->domains, domain_process(global), (uint64_t)domain,
			      ts_import_string(n->import, n->scratch.data, n->scratch.length));
}

static int read_name(struct ts_nsys *n, const struct ts_sqlite_query *query, int64_t type)
{
	int64_t global = ts_sqlite_int(query, THREAD), thread;
	int64_t domain = ts_sqlite_int(query, DOMAIN), category = ts_sqlite_int(query, CATEGORY);
	uint32_t name = text_of(n, query);

	if (!name)
		return TS_OK;
	domain = domain == TS_ABSENT ? 0 : domain;
	switch (type) {
	case DOMAIN_CREATE:
		return name_domain(n, global, domain, name);
	case CATEGORY_NAME:
		return ts_pairmap_put(&n->categories, domain_key(global, domain),
				      (uint64_t)category, name);
	default:
		thread = global == TS_ABSENT ? 0 : ts_nsys_thread(n, global);
		if (thread)
			ts_entities_thread_row(n->entities, thread)->name = name;
		return TS_OK;
	}
}

static int read_names(struct ts_nsys *n, const char *table)
{
	struct ts_sqlite_query query;
	int rc = ts_sqlite_select(n->db, &query, table, columns, CATEGORY + 1, n->err);

	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t type = ts_sqlite_int(&query, TYPE);

		rc = type == DOMAIN_CREATE || type == CATEGORY_NAME || type == THREAD_NAME
			     ? read_name(n, &query, type)
			     : TS_OK;
	}
	ts_sqlite_end(&query);
	return rc;
}

/* ---- ranges and marks ---- */

static uint32_t resolve_category(struct ts_nsys *n, const struct ts_sqlite_query *query,
				 int64_t number)
{
	int64_t domain = ts_sqlite_int(query, DOMAIN);
	uint64_t name;

	return ts_pairmap_get(
		       &n->categories,
		       domain_key(ts_sqlite_int(query, THREAD), domain == TS_ABSENT ? 0 : domain),
		       (uint64_t)number, &name)
		       ? (uint32_t)name
		       : 0;
}

/*
 * Color and category have the same keys as in our own NVTX recording; payload keys tell their
 * types.
 */
static void name_args(struct ts_nsys *n, struct ts_nsys_args *args)
{
	ts_nsys_args_add(n, args, "color", COLOR, NULL);
	ts_nsys_args_add(n, args, "category", CATEGORY, resolve_category);
	for (int i = PAYLOADS; i < (int)TS_ARRAY_SIZE(columns); i++)
		ts_nsys_args_add(n, args, columns[i], i,
				 strcmp(columns[i], "jsonTextId") ? NULL : ts_nsys_resolve_text);
}

/* "nvtx", or "nvtx:DOMAIN" */
static uint32_t category_of(struct ts_nsys *n, const struct ts_sqlite_query *query, uint32_t none)
{
	int64_t domain = ts_sqlite_int(query, DOMAIN);
	uint64_t category;

	return domain > 0 && ts_pairmap_get(&n->domains,
					    domain_process(ts_sqlite_int(query, THREAD)),
					    (uint64_t)domain, &category)
		       ? (uint32_t)category
		       : none;
}

static void read_range(struct ts_nsys *n, const struct ts_sqlite_query *query, bool is_async,
		       uint32_t category, struct ts_nsys_args *args)
{
	struct ts_slice_row row = ts_slice_none;
	int64_t range = ts_sqlite_int(query, RANGE);
	char id[32];

	row.start = ts_sqlite_int(query, START);
	if (!ts_nsys_span(n, row.start, ts_sqlite_int(query, END), &row.duration))
		return;
	row.thread = ts_nsys_thread(n, ts_sqlite_int(query, THREAD));
	row.name = text_of(n, query);
	row.category = category;
	if (is_async) {
		row.kind = TS_SLICE_ASYNC;
		snprintf(id, sizeof(id), "%" PRId64, range == TS_ABSENT ? 0 : range);
		row.id = ts_nsys_literal(n, id);
	}
	row.shape = ts_nsys_args_read(n, args, query);
	ts_nsys_add_event(n, TS_TABLE_SLICE, &row, args->values);
}

static void read_mark(struct ts_nsys *n, const struct ts_sqlite_query *query, uint32_t category,
		      struct ts_nsys_args *args)
{
	struct ts_mark_row row = ts_mark_none;
	int64_t none;

	row.start = ts_sqlite_int(query, START);
	if (!ts_nsys_span(n, row.start, TS_ABSENT, &none))
		return;
	row.thread = ts_nsys_thread(n, ts_sqlite_int(query, THREAD));
	row.name = text_of(n, query);
	row.category = category;
	row.scope = TS_SCOPE_THREAD;
	row.shape = ts_nsys_args_read(n, args, query);
	ts_nsys_add_event(n, TS_TABLE_MARK, &row, args->values);
}

static void read_event(struct ts_nsys *n, const struct ts_sqlite_query *query, uint32_t nvtx,
		       struct ts_nsys_args *args)
{
	int64_t type = ts_sqlite_int(query, TYPE);

	switch (type) {
	case PUSH_POP:
	case TEXT_PUSH_POP:
	case START_END:
	case TEXT_START_END:
		read_range(n, query, type == START_END || type == TEXT_START_END,
			   category_of(n, query, nvtx), args);
		break;
	case MARK:
		read_mark(n, query, category_of(n, query, nvtx), args);
		break;
	case CATEGORY_NAME:
	case THREAD_NAME:
	case DOMAIN_CREATE:
	case DOMAIN_DESTROY:
		break;
	default:
		/* An unknown newer kind of range: imported as a range. */
		if (ts_sqlite_int(query, END) != TS_ABSENT)
			read_range(n, query, true, category_of(n, query, nvtx), args);
		else
			ts_entities_add_loss(n->entities, &unknown_type, 1);
	}
}

static int read_events(struct ts_nsys *n, const char *table)
{
	uint32_t nvtx = ts_nsys_literal(n, "nvtx");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	int rc;

	name_args(n, &args);
	rc = ts_sqlite_select(n->db, &query, table, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		read_event(n, &query, nvtx, &args);
		rc = TS_OK;
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

int ts_nsys_read_nvtx(struct ts_nsys *n)
{
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "NVTX_EVENTS");
	int rc, names;

	if (!table)
		return TS_OK;
	table->is_taken = true;
	names = read_names(n, table->name);
	if (names && names != TS_EFORMAT)
		return names;
	/* Events before damage in the names are still read. */
	rc = read_events(n, table->name);
	return rc ? rc : names;
}
