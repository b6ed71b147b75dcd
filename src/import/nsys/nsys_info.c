/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about machine, devices and session, and names of processes and threads. Facts without a
 * column become rows of `meta`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/nsys/nsys.h"

/* ---- rows as JSON ---- */

struct names {
	struct ts_nsys *n;
	char *list[TS_SQLITE_MAX_COLUMNS];
	size_t count;
};

static int add_name(void *context, const char *column, const char *type)
{
	struct names *names = context;

	if (names->count == TS_SQLITE_MAX_COLUMNS)
		return TS_OK;
	names->list[names->count] =
		ts_arena_strdup_len(&names->n->db->arena, column, strlen(column));
	return names->list[names->count] ? (names->count++, TS_OK) : TS_ENOMEM;
}

/* {"column":value, ...}, without absent values and blobs. */
static void append_row(struct ts_nsys *n, const struct ts_sqlite_query *query,
		       const struct names *names, struct ts_text *out)
{
	const char *comma = "{";

	for (int i = 0; i < (int)names->count; i++) {
		size_t length;
		const char *text = ts_sqlite_text(query, i, &length);
		int type = sqlite3_column_type(query->statement, i);
		const struct ts_nsys_text *known;
		double real;

		if (type == SQLITE_NULL || type == SQLITE_BLOB)
			continue;
		ts_text_append_str(out, comma);
		ts_text_append_json(out, names->list[i], strlen(names->list[i]));
		ts_text_append_char(out, ':');
		if (type == SQLITE_INTEGER && ts_nsys_is_text_id(names->list[i]) &&
		    (known = ts_nsys_text(n, ts_sqlite_int(query, i))))
			ts_text_append_json(out, known->text, known->length);
		else if (type == SQLITE_INTEGER)
			ts_text_printf(out, "%" PRId64, ts_sqlite_int(query, i));
		else if (text)
			ts_text_append_json(out, text, length);
		else if (ts_sqlite_double(query, i, &real) && real - real == 0)
			ts_text_append_double(out, real);
		else
			ts_text_append_str(out, "null");
		comma = ",";
	}
	ts_text_append_str(out, *comma == '{' ? "{}" : "}");
}

int ts_nsys_read_as_meta(struct ts_nsys *n, const char *table, uint64_t most, uint64_t *ret_rows)
{
	struct names names = { .n = n };
	struct ts_sqlite_query query = { 0 };
	int rc = ts_sqlite_columns(n->db, table, add_name, &names, n->err);

	if (!rc && names.count)
		rc = ts_sqlite_select(n->db, &query, table, (const char *const *)names.list,
				      names.count, n->err);
	for (*ret_rows = 0; !rc && names.count && (rc = ts_sqlite_step(&query, n->err)) > 0;
	     ++*ret_rows) {
		rc = TS_OK;
		if (*ret_rows >= most)
			continue;
		ts_text_clear(&n->scratch);
		append_row(n, &query, &names, &n->scratch);
		if (ts_text_status(&n->scratch))
			rc = TS_ENOMEM;
		else
			ts_entities_meta(n->entities, table, n->scratch.data, n->scratch.length);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* ---- devices ---- */

/* The machine of the first event, for tables that do not name one. */
static int64_t first_machine(struct ts_nsys *n)
{
	static const char *const columns[] = { "globalPid", "globalTid" };
	static const char *const tables[] = { "CUPTI_ACTIVITY_KIND_KERNEL",
					      "CUPTI_ACTIVITY_KIND_RUNTIME" };
	int64_t machine = TS_ABSENT;

	for (size_t i = 0; machine == TS_ABSENT && i < TS_ARRAY_SIZE(tables); i++) {
		struct ts_sqlite_query query;

		if (!ts_sqlite_select(n->db, &query, tables[i], columns, 2, NULL) &&
		    ts_sqlite_step(&query, NULL) > 0)
			machine = ts_sqlite_int(&query, i == 0 ? 0 : 1);
		ts_sqlite_end(&query);
	}
	return machine == TS_ABSENT ? 0 : machine;
}

/* Device rows, with all properties that the source has. */
static int read_gpus(struct ts_nsys *n)
{
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "TARGET_INFO_GPU");
	struct names names = { .n = n };
	struct ts_sqlite_query query;
	int rc = TS_OK;

	if (table)
		rc = ts_sqlite_columns(n->db, table->name, add_name, &names, n->err);
	if (rc || !names.count)
		return rc;
	table->is_taken = true;
	rc = ts_sqlite_select(n->db, &query, table->name, (const char *const *)names.list,
			      names.count, n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t machine = TS_ABSENT, number = TS_ABSENT, memory = TS_ABSENT, host, id;
		uint32_t name = 0, uuid = 0;
		struct ts_device_row *row;

		for (int i = 0; i < (int)names.count; i++) {
			if (!strcmp(names.list[i], "vmId"))
				machine = ts_sqlite_int(&query, i);
			else if (!strcmp(names.list[i], "id"))
				number = ts_sqlite_int(&query, i);
			else if (!strcmp(names.list[i], "totalMemory"))
				memory = ts_sqlite_int(&query, i);
			else if (!strcmp(names.list[i], "name"))
				name = ts_sqlite_string(&query, i);
			else if (!strcmp(names.list[i], "uuid"))
				uuid = ts_sqlite_string(&query, i);
		}
		if (number == TS_ABSENT)
			number = 0;
		if (machine == TS_ABSENT)
			machine = first_machine(n);
		host = ts_entities_host(n->entities, (uint64_t)machine >> 48);
		id = ts_entities_device(n->entities, host, (uint64_t)number, number);
		rc = id ? TS_OK : ts_writer_status(n->writer, n->err);
		if (!id)
			continue;
		ts_text_clear(&n->scratch);
		append_row(n, &query, &names, &n->scratch);
		row = ts_entities_device_row(n->entities, id);
		row->name = name;
		row->vendor = ts_nsys_literal(n, "NVIDIA");
		row->uuid = uuid;
		row->memory_bytes = memory;
		row->properties = ts_import_string(n->import, n->scratch.data, n->scratch.length);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* Maps a process's CUDA device numbers to GPUs. */
static int read_cuda_devices(struct ts_nsys *n)
{
	enum { GPU, CUDA, PROCESS };
	static const char *const columns[] = { "gpuId", "cudaId", "pid" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "TARGET_INFO_CUDA_DEVICE");
	struct ts_sqlite_query query;
	int rc;

	if (!table)
		return TS_OK;
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t gpu = ts_sqlite_int(&query, GPU), process = ts_sqlite_int(&query, PROCESS);

		rc = gpu == TS_ABSENT || process == TS_ABSENT
			     ? TS_OK
			     : ts_pairmap_put(&n->cuda_gpus, (uint64_t)process & 0xffffff,
					      (uint64_t)ts_sqlite_int(&query, CUDA), (uint64_t)gpu);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* ---- streams ---- */

/* Names and priorities: three tables, a fourth since 2023. */
static const struct stream_table {
	const char *table;
	const char *stream, *priority, *name; /* columns */
	const char *fixed_name;
} stream_tables[] = {
	{ "TARGET_INFO_CUDA_STREAM", "streamId", "priority", NULL, NULL },
	{ "TARGET_INFO_CUDA_NULL_STREAM", "streamId", NULL, NULL, "default stream" },
	{ "TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId", NULL, NULL, "default stream" },
	{ "TARGET_INFO_NVTX_CUDA_STREAM", "streamId", NULL, "name", NULL },
};

static int read_stream_facts(struct ts_nsys *n, const struct stream_table *about)
{
	enum { PROCESS, CONTEXT, STREAM, PRIORITY, NAME };
	const char *const columns[] = { "processId", "contextId", about->stream,
					about->priority ? about->priority : "",
					about->name ? about->name : "" };
	struct ts_sqlite_query query;
	int rc = ts_sqlite_select(n->db, &query, about->table, columns, TS_ARRAY_SIZE(columns),
				  n->err);

	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t priority = ts_sqlite_int(&query, PRIORITY);
		uint32_t name = about->fixed_name ? ts_nsys_literal(n, about->fixed_name)
						  : ts_sqlite_string(&query, NAME);
		struct ts_nsys_stream_fact *fact = ts_nsys_stream_fact(
			n, ts_sqlite_int(&query, PROCESS) & 0xffffff,
			ts_sqlite_int(&query, CONTEXT), ts_sqlite_int(&query, STREAM));

		rc = fact ? TS_OK : TS_ENOMEM;
		if (fact && name)
			fact->name = name;
		/* Negative priorities are stored unsigned. */
		if (fact && priority != TS_ABSENT)
			fact->priority = (int32_t)priority;
	}
	ts_sqlite_end(&query);
	return rc;
}

/* ---- machine and session ---- */

struct fact {
	const char *name;
	void (*take)(struct ts_nsys *n, struct ts_host_row *row, const char *text, size_t length);
};

static void take_name(struct ts_nsys *n, struct ts_host_row *row, const char *text, size_t length)
{
	row->name = ts_import_string(n->import, text, length);
}

static void take_system(struct ts_nsys *n, struct ts_host_row *row, const char *text, size_t length)
{
	row->system = ts_import_string(n->import, text, length);
}

static void take_processors(struct ts_nsys *n, struct ts_host_row *row, const char *text,
			    size_t length)
{
	ts_parse_int64(text, length, &row->processors);
}

static const struct fact facts[] = {
	{ "Hostname", take_name },
	{ "OsDescription", take_system },
	{ "CpuCores", take_processors },
};

static int read_environment(struct ts_nsys *n)
{
	enum { MACHINE, NAME, VALUE };
	static const char *const columns[] = { "globalVid", "name", "value" };
	struct ts_sqlite_query query;
	int rc = ts_sqlite_select(n->db, &query, "TARGET_INFO_SYSTEM_ENV", columns,
				  TS_ARRAY_SIZE(columns), n->err);

	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t machine = ts_sqlite_int(&query, MACHINE);
		int64_t host = ts_entities_host(n->entities,
						machine == TS_ABSENT ? 0 : (uint64_t)machine >> 48);
		size_t name_length, length;
		const char *name = ts_sqlite_text(&query, NAME, &name_length);
		const char *value = ts_sqlite_text(&query, VALUE, &length);

		rc = host ? TS_OK : TS_ENOMEM;
		for (size_t i = 0; host && name && value && i < TS_ARRAY_SIZE(facts); i++)
			if (!strcmp(name, facts[i].name))
				facts[i].take(n, ts_entities_host_row(n->entities, host), value,
					      length);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* Times are relative to the session start, which is given as time of day. */
static int read_session(struct ts_nsys *n)
{
	static const char *const columns[] = { "utcEpochNs" };
	struct ts_sqlite_query query;
	int rc = ts_sqlite_select(n->db, &query, "TARGET_INFO_SESSION_START_TIME", columns, 1,
				  n->err);

	if (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		struct ts_clock_sync_row row = ts_clock_sync_none;

		rc = TS_OK;
		row.clock = n->entities->clock;
		row.reference = ts_sqlite_int(&query, 0);
		row.method = ts_nsys_literal(n, "utcEpochNs");
		if (row.reference != TS_ABSENT)
			ts_writer_add(n->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* If there is only one rank, it becomes the rank of the source. */
static int read_rank(struct ts_nsys *n)
{
	static const char *const columns[] = { "rank" };
	struct ts_sqlite_query query;
	int64_t rank = TS_ABSENT;
	bool several = false;
	int rc = ts_sqlite_select(n->db, &query, "MPI_RANKS", columns, 1, n->err);

	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t next = ts_sqlite_int(&query, 0);

		several |= rank != TS_ABSENT && next != rank;
		rank = next;
		rc = TS_OK;
	}
	ts_sqlite_end(&query);
	if (!rc && rank != TS_ABSENT && !several)
		ts_entities_source_row(n->entities)->rank = rank;
	return rc;
}

int ts_nsys_read_info(struct ts_nsys *n)
{
	int rc = read_session(n);

	if (!rc)
		rc = read_environment(n);
	if (!rc)
		rc = read_gpus(n);
	if (!rc)
		rc = read_cuda_devices(n);
	for (size_t i = 0; !rc && i < TS_ARRAY_SIZE(stream_tables); i++)
		rc = read_stream_facts(n, &stream_tables[i]);
	if (!rc)
		rc = read_rank(n);
	return rc;
}

/* ---- names ---- */

static int read_thread_names(struct ts_nsys *n)
{
	enum { NAME, THREAD };
	static const char *const columns[] = { "nameId", "globalTid" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "ThreadNames");
	struct ts_sqlite_query query;
	int rc;

	if (!table)
		return TS_OK;
	table->is_taken = true;
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t global = ts_sqlite_int(&query, THREAD);
		uint32_t name = ts_nsys_string(n, ts_sqlite_int(&query, NAME));
		int64_t thread = global == TS_ABSENT || !name ? 0 : ts_nsys_thread(n, global);
		struct ts_thread_row *row = thread ? ts_entities_thread_row(n->entities, thread)
						   : NULL;

		/* An NVTX name was given on purpose. */
		if (row && !row->name)
			row->name = name;
		rc = TS_OK;
	}
	ts_sqlite_end(&query);
	return rc;
}

/* The file lists all processes of the machine; those without events are only counted. */
int ts_nsys_read_names(struct ts_nsys *n)
{
	enum { PROCESS, NAME };
	static const char *const columns[] = { "globalPid", "name" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "PROCESSES");
	uint64_t index, listed = 0, taken = 0;
	struct ts_sqlite_query query;
	int rc = read_thread_names(n);

	if (rc || !table)
		return rc;
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t global = ts_sqlite_int(&query, PROCESS);

		rc = TS_OK;
		listed++;
		if (global == TS_ABSENT ||
		    !ts_map_get(&n->process_by_key, ts_nsys_process_key(global), &index))
			continue;
		ts_entities_process_row(n->entities, n->processes[index].id)->name =
			ts_sqlite_string(&query, NAME);
		taken++;
	}
	ts_sqlite_end(&query);
	ts_text_clear(&n->scratch);
	ts_text_printf(&n->scratch, "{\"listed\":%" PRIu64 ",\"with_events\":%" PRIu64 "}", listed,
		       taken);
	if (!ts_text_status(&n->scratch))
		ts_entities_meta(n->entities, "PROCESSES", n->scratch.data, n->scratch.length);
	return rc;
}
