/* SPDX-License-Identifier: Apache-2.0 */
/* rocpd databases: tables, processes, agents, and the names that events refer to. */
#include "import/rocpd/rocpd.h"

#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/text.h"
#include "model/kineto_names.h"

/* Gaps in numbering up to this size stay in the array; beyond it a map is used. */
#define DENSE_GAP 1024
/* Limit on processes in one file: each has its own file unless merged. */
#define MAX_SETS 256

/* ---- lists by number ---- */

static void *put_other(struct ts_rocpd_list *list, int64_t number)
{
	bool is_new;
	uint64_t *index = ts_map_insert(&list->others, (uint64_t)number, &is_new);

	if (!index)
		return NULL;
	if (is_new) {
		if (ts_grow_array((void **)&list->other_items, &list->other_capacity,
				  list->other_count + 1, list->item_bytes))
			return NULL;
		*index = list->other_count++;
	}
	memset(list->other_items + *index * list->item_bytes, 0, list->item_bytes);
	return list->other_items + *index * list->item_bytes;
}

void *ts_rocpd_put(struct ts_rocpd_list *list, int64_t number)
{
	size_t at = (size_t)number;
	bool *item;

	if (number < 0 || at > list->count + DENSE_GAP) {
		item = put_other(list, number);
	} else {
		if (at >= list->count) {
			if (ts_grow_array((void **)&list->items, &list->capacity, at + 1,
					  list->item_bytes))
				return NULL;
			memset(list->items + list->count * list->item_bytes, 0,
			       (at + 1 - list->count) * list->item_bytes);
			list->count = at + 1;
		}
		item = (bool *)(list->items + at * list->item_bytes);
		memset(item, 0, list->item_bytes);
	}
	if (item)
		*item = true;
	return item;
}

void *ts_rocpd_get(const struct ts_rocpd_list *list, int64_t number)
{
	uint64_t index;

	if (number >= 0 && (size_t)number < list->count &&
	    *(bool *)(list->items + (size_t)number * list->item_bytes))
		return list->items + (size_t)number * list->item_bytes;
	if (list->other_count && ts_map_get(&list->others, (uint64_t)number, &index))
		return list->other_items + index * list->item_bytes;
	return NULL;
}

static void clear_list(struct ts_rocpd_list *list)
{
	free(list->items);
	free(list->other_items);
	ts_map_release(&list->others);
	*list = (struct ts_rocpd_list){ .item_bytes = list->item_bytes };
}

static void clear_lists(struct ts_rocpd *r)
{
	clear_list(&r->strings);
	clear_list(&r->nodes);
	clear_list(&r->process_list);
	clear_list(&r->threads);
	clear_list(&r->agents);
	clear_list(&r->symbols);
	clear_list(&r->counters);
	clear_list(&r->tracks);
	clear_list(&r->times);
	clear_list(&r->events);
	r->arg_count = 0;
	ts_arena_release(&r->texts);
}

/* ---- tables ---- */

int ts_rocpd_select(struct ts_rocpd *r, struct ts_sqlite_query *query, const char *table,
		    const char *const *columns, size_t count)
{
	struct ts_sqlite_table *found;

	ts_text_clear(&r->name);
	ts_text_printf(&r->name, "rocpd_%s%s", table, r->ending);
	found = ts_sqlite_table(r->db, ts_text_cstr(&r->name));
	if (found)
		found->is_taken = true;
	/* The table name found stays valid. */
	return ts_sqlite_select(r->db, query, found ? found->name : "rocpd_", columns, count,
				r->err);
}

/* Strings, which everything else refers to. */
static int read_strings(struct ts_rocpd *r)
{
	enum { ID, TEXT };
	static const char *const columns[] = { "id", "string" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "string", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_string *string =
			ts_rocpd_put(&r->strings, ts_sqlite_int(&query, ID));
		size_t length;
		const char *text = ts_sqlite_text(&query, TEXT, &length);

		rc = string ? TS_OK : TS_ENOMEM;
		if (rc || !text)
			continue;
		string->string = ts_import_string(r->rows.import, text, length);
		string->operation = ts_rocprof_operation(text, length);
		string->is_call = ts_rocprof_is_call(text, length);
		string->is_marker = length >= 6 && !memcmp(text, "MARKER", 6);
		string->is_empty = length == 0;
	}
	ts_sqlite_end(&query);
	return rc;
}

const struct ts_rocpd_string *ts_rocpd_string(struct ts_rocpd *r, int64_t number)
{
	static const struct ts_rocpd_string none = { .is_empty = true };
	const struct ts_rocpd_string *string = ts_rocpd_get(&r->strings, number);

	return string ? string : &none;
}

static int read_nodes(struct ts_rocpd *r)
{
	enum { ID, MACHINE, NAME, SYSTEM, RELEASE };
	static const char *const columns[] = { "id", "machine_id", "hostname", "system_name",
					       "release" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "info_node", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_node *node = ts_rocpd_put(&r->nodes, ts_sqlite_int(&query, ID));
		size_t machine_length, name_length, system_length, release_length;
		const char *machine = ts_sqlite_text(&query, MACHINE, &machine_length);
		const char *name = ts_sqlite_text(&query, NAME, &name_length);
		const char *system = ts_sqlite_text(&query, SYSTEM, &system_length);
		const char *release = ts_sqlite_text(&query, RELEASE, &release_length);
		struct ts_host_row *row;

		rc = node ? TS_OK : TS_ENOMEM;
		if (rc || (!machine_length && !name_length))
			continue;
		node->host = ts_entities_host(
			r->rows.entities, ts_hash64(machine ? machine : "", machine_length) * 31 +
						  ts_hash64(name ? name : "", name_length));
		if (!node->host)
			continue;
		row = ts_entities_host_row(r->rows.entities, node->host);
		row->name = ts_sqlite_string(&query, NAME);
		ts_text_clear(&r->name);
		ts_text_append(&r->name, system, system_length);
		ts_text_append_char(&r->name, ' ');
		ts_text_append(&r->name, release, release_length);
		if (r->name.length > 1)
			row->system = ts_import_string(r->rows.import, ts_text_cstr(&r->name),
						       r->name.length);
	}
	ts_sqlite_end(&query);
	return rc;
}

static struct ts_rocpd_process *make_process(struct ts_rocpd *r, int64_t number, int64_t host,
					     int64_t pid)
{
	struct ts_rocpd_process *process = ts_rocpd_put(&r->process_list, number);

	if (!process)
		return NULL;
	process->host = host;
	process->index = r->processes++;
	process->process = ts_entities_process_of(r->rows.entities, host, process->index, pid);
	return process;
}

const struct ts_rocpd_process *ts_rocpd_process(struct ts_rocpd *r, int64_t number)
{
	static const struct ts_rocpd_process none;
	const struct ts_rocpd_process *process = ts_rocpd_get(&r->process_list, number);

	/* Not described in the file. */
	if (!process)
		process = make_process(r, number, 0, number);
	return process ? process : &none;
}

static int read_processes(struct ts_rocpd *r)
{
	enum { ID, NODE, PID, NAME, INIT, FINI, COMMAND };
	static const char *const columns[] = {
		"id", "nid", "pid", "name", "init", "fini", "command"
	};
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "info_process", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		const struct ts_rocpd_node *node =
			ts_rocpd_get(&r->nodes, ts_sqlite_int(&query, NODE));
		struct ts_rocpd_process *process = make_process(r, ts_sqlite_int(&query, ID),
								node ? node->host : 0,
								ts_sqlite_int(&query, PID));
		struct ts_process_row *row;
		size_t length;
		const char *command = ts_sqlite_text(&query, COMMAND, &length);

		rc = process ? TS_OK : TS_ENOMEM;
		if (rc || !process->process)
			continue;
		row = ts_entities_process_row(r->rows.entities, process->process);
		row->name = ts_sqlite_string(&query, NAME);
		row->start = ts_sqlite_int(&query, INIT);
		row->end = ts_sqlite_int(&query, FINI);
		if (!command || !length)
			continue;
		/* A single text that cannot be split: a list of one. */
		ts_text_clear(&r->name);
		ts_text_append_char(&r->name, '[');
		ts_text_append_json(&r->name, command, length);
		ts_text_append_char(&r->name, ']');
		row->command =
			ts_import_string(r->rows.import, ts_text_cstr(&r->name), r->name.length);
	}
	ts_sqlite_end(&query);
	return rc;
}

static int read_threads(struct ts_rocpd *r)
{
	enum { ID, PROCESS, TID, NAME };
	static const char *const columns[] = { "id", "pid", "tid", "name" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "info_thread", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		int64_t process = ts_rocpd_process(r, ts_sqlite_int(&query, PROCESS))->process;
		int64_t tid = ts_sqlite_int(&query, TID);
		struct ts_rocpd_thread *thread =
			ts_rocpd_put(&r->threads, ts_sqlite_int(&query, ID));
		uint32_t name = ts_sqlite_string(&query, NAME);

		rc = thread ? TS_OK : TS_ENOMEM;
		if (rc)
			continue;
		thread->thread = ts_entities_thread(r->rows.entities, process, (uint64_t)tid, tid);
		if (thread->thread && name)
			ts_entities_thread_row(r->rows.entities, thread->thread)->name = name;
	}
	ts_sqlite_end(&query);
	return rc;
}

int64_t ts_rocpd_thread(struct ts_rocpd *r, int64_t process, int64_t number)
{
	const struct ts_rocpd_thread *thread;

	if (number == TS_ABSENT)
		return 0;
	thread = ts_rocpd_get(&r->threads, number);
	if (thread)
		return thread->thread;
	return ts_entities_thread(r->rows.entities, ts_rocpd_process(r, process)->process,
				  (uint64_t)number, number);
}

static void describe_agent(struct ts_rocpd *r, const struct ts_sqlite_query *query,
			   struct ts_rocpd_agent *agent, const int columns[4], int extdata)
{
	struct ts_device_row *row = ts_entities_device_row(r->rows.entities, agent->device);
	size_t length;
	const char *text;
	struct ts_json js;

	for (int i = 0; i < 3 && !row->name; i++) {
		text = ts_sqlite_text(query, columns[i], &length);
		if (text && length)
			row->name = ts_import_string(r->rows.import, text, length);
	}
	row->vendor = ts_sqlite_string(query, columns[3]);
	text = ts_sqlite_text(query, extdata, &length);
	if (!text || length <= 2)
		return;
	ts_json_init(&js, text, length, true);
	if (!ts_json_skip(&js) && ts_json_peek(&js) < 0)
		row->properties = ts_import_string(r->rows.import, text, length);
}

static int read_agents(struct ts_rocpd *r)
{
	enum { ID, PROCESS, TYPE, NODE, NUMBER, PRODUCT, NAME, MODEL, VENDOR, EXTDATA };
	static const char *const columns[] = {
		"id",           "pid",  "type",       "absolute_index", "type_index",
		"product_name", "name", "model_name", "vendor_name",    "extdata"
	};
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "info_agent", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		int64_t id = ts_sqlite_int(&query, ID), node = ts_sqlite_int(&query, NODE);
		int64_t host = ts_rocpd_process(r, ts_sqlite_int(&query, PROCESS))->host;
		struct ts_rocpd_agent *agent = ts_rocpd_put(&r->agents, id);
		size_t length;
		const char *type = ts_sqlite_text(&query, TYPE, &length);

		rc = agent ? TS_OK : TS_ENOMEM;
		if (rc || !type || strcmp(type, "GPU") != 0)
			continue;
		agent->device = ts_entities_device(r->rows.entities, host,
						   (uint64_t)(node == TS_ABSENT ? id : node),
						   ts_sqlite_int(&query, NUMBER));
		if (agent->device)
			describe_agent(r, &query, agent,
				       (const int[]){ PRODUCT, NAME, MODEL, VENDOR }, EXTDATA);
	}
	ts_sqlite_end(&query);
	return rc;
}

int64_t ts_rocpd_device(struct ts_rocpd *r, int64_t process, int64_t number)
{
	const struct ts_rocpd_agent *agent;

	if (number == TS_ABSENT)
		return 0;
	agent = ts_rocpd_get(&r->agents, number);
	if (agent)
		return agent->device;
	return ts_entities_device(r->rows.entities, ts_rocpd_process(r, process)->host,
				  (uint64_t)number | UINT64_C(1) << 63, TS_ABSENT);
}

static int read_symbols(struct ts_rocpd *r)
{
	enum { ID, DISPLAY, NAME, VGPRS, ACCUM, SGPRS };
	static const char *const columns[] = {
		"id",        "display_name", "kernel_name", "arch_vgpr_count", "accum_vgpr_count",
		"sgpr_count"
	};
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "info_kernel_symbol", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_symbol *symbol =
			ts_rocpd_put(&r->symbols, ts_sqlite_int(&query, ID));
		size_t length;
		const char *text = ts_sqlite_text(&query, DISPLAY, &length);

		rc = symbol ? TS_OK : TS_ENOMEM;
		if (rc)
			continue;
		if (!text || !length)
			text = ts_sqlite_text(&query, NAME, &length);
		symbol->vgprs = ts_sqlite_int(&query, VGPRS);
		symbol->accum_vgprs = ts_sqlite_int(&query, ACCUM);
		symbol->sgprs = ts_sqlite_int(&query, SGPRS);
		if (!text || !length || length > TS_IMPORT_MAX_STRING)
			continue;
		symbol->text = ts_arena_copy(&r->texts, text, length);
		rc = symbol->text ? TS_OK : TS_ENOMEM;
		if (rc)
			continue;
		symbol->length = length;
		symbol->is_collective = ts_kineto_kind(TS_GPU_OP_KERNEL, text, length) ==
					TS_GPU_OP_COLLECTIVE;
	}
	ts_sqlite_end(&query);
	return rc;
}

static int read_counters(struct ts_rocpd *r)
{
	enum { ID, NAME };
	static const char *const columns[] = { "id", "name" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "info_pmc", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_string *counter =
			ts_rocpd_put(&r->counters, ts_sqlite_int(&query, ID));

		rc = counter ? TS_OK : TS_ENOMEM;
		if (!rc)
			counter->string = ts_sqlite_string(&query, NAME);
	}
	ts_sqlite_end(&query);
	return rc;
}

static int read_tracks(struct ts_rocpd *r)
{
	enum { ID, PROCESS, THREAD, AGENT, QUEUE, STREAM, NAME };
	static const char *const columns[] = { "id",       "pid",       "tid",    "agent_id",
					       "queue_id", "stream_id", "name_id" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "track", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_track *track = ts_rocpd_put(&r->tracks, ts_sqlite_int(&query, ID));

		rc = track ? TS_OK : TS_ENOMEM;
		if (rc)
			continue;
		track->process = ts_sqlite_int(&query, PROCESS);
		track->thread = ts_sqlite_int(&query, THREAD);
		track->agent = ts_sqlite_int(&query, AGENT);
		track->queue = ts_sqlite_int(&query, QUEUE);
		track->stream = ts_sqlite_int(&query, STREAM);
		track->name = ts_sqlite_int(&query, NAME);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* For the schema with a separate table of times. */
static int read_times(struct ts_rocpd *r)
{
	enum { ID, VALUE };
	static const char *const columns[] = { "id", "value" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "timestamp", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_time *time = ts_rocpd_put(&r->times, ts_sqlite_int(&query, ID));

		rc = time ? TS_OK : TS_ENOMEM;
		if (!rc)
			time->value = ts_sqlite_int(&query, VALUE);
	}
	ts_sqlite_end(&query);
	return rc;
}

static int read_metadata(struct ts_rocpd *r)
{
	enum { TAG, VALUE };
	static const char *const columns[] = { "tag", "value" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "metadata", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		size_t tag_length, length;
		const char *tag = ts_sqlite_text(&query, TAG, &tag_length);
		const char *value = ts_sqlite_text(&query, VALUE, &length);

		rc = TS_OK;
		if (!tag || !value || length > TS_IMPORT_MAX_STRING / 8)
			continue;
		ts_text_clear(&r->name);
		ts_text_append_json(&r->name, value, length);
		ts_entities_meta(r->rows.entities, tag, ts_text_cstr(&r->name), r->name.length);
	}
	ts_sqlite_end(&query);
	return rc;
}

/* ---- the file ---- */

/* Tables that only describe data imported from elsewhere. */
static void take_others(struct ts_rocpd *r)
{
	static const char *const names[] = { "info_queue", "info_stream", "info_code_object" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		struct ts_sqlite_table *table;

		ts_text_clear(&r->name);
		ts_text_printf(&r->name, "rocpd_%s%s", names[i], r->ending);
		table = ts_sqlite_table(r->db, ts_text_cstr(&r->name));
		if (table)
			table->is_taken = true;
	}
}

static int read_tables(struct ts_rocpd *r)
{
	static int (*const readers[])(struct ts_rocpd * r) = {
		read_metadata, read_strings, read_nodes,           read_processes,
		read_threads,  read_agents,  read_symbols,         read_counters,
		read_tracks,   read_times,   ts_rocpd_read_events,
	};
	int rc = TS_OK, first = TS_OK;

	/* A damaged table does not prevent reading the others; the first error counts. */
	for (size_t i = 0; i < TS_ARRAY_SIZE(readers) && (!rc || rc == TS_EFORMAT); i++) {
		rc = readers[i](r);
		if (rc && !first) {
			first = rc;
			r->err = NULL;
		}
	}
	take_others(r);
	return rc && rc != TS_EFORMAT ? rc : first;
}

/* The suffix after "rocpd_string" and similar names; NULL: not one of them. */
static const char *ending_of(const char *table)
{
	static const char *const names[] = { "rocpd_string", "rocpd_kernel_dispatch",
					     "rocpd_region", "rocpd_memory_copy" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);

		if (!sqlite3_strnicmp(table, names[i], (int)length) &&
		    (table[length] == '\0' || table[length] == '_'))
			return table + length;
	}
	return NULL;
}

static bool is_new_ending(struct ts_rocpd *r, size_t before, const char *ending)
{
	for (size_t i = 0; i < before; i++) {
		const char *other = ending_of(r->db->tables[i].name);

		if (other && !sqlite3_stricmp(other, ending))
			return false;
	}
	return true;
}

/* Tables of other tools and future versions. */
static void count_others(struct ts_rocpd *r)
{
	static const struct ts_loss_kind lost = { .what = "table",
						  .one = "unknown table",
						  .many = "unknown tables" };

	for (size_t i = 0; i < r->db->table_count; i++) {
		const struct ts_sqlite_table *table = &r->db->tables[i];

		if (!table->is_taken && table->rows && sqlite3_strnicmp(table->name, "sqlite_", 7))
			ts_entities_add_loss(r->rows.entities, &lost, 1);
	}
}

static void init_lists(struct ts_rocpd *r)
{
	r->strings.item_bytes = r->counters.item_bytes = sizeof(struct ts_rocpd_string);
	r->nodes.item_bytes = sizeof(struct ts_rocpd_node);
	r->process_list.item_bytes = sizeof(struct ts_rocpd_process);
	r->threads.item_bytes = sizeof(struct ts_rocpd_thread);
	r->agents.item_bytes = sizeof(struct ts_rocpd_agent);
	r->symbols.item_bytes = sizeof(struct ts_rocpd_symbol);
	r->tracks.item_bytes = sizeof(struct ts_rocpd_track);
	r->times.item_bytes = sizeof(struct ts_rocpd_time);
	r->events.item_bytes = sizeof(struct ts_rocpd_event);
}

int ts_rocpd_read(struct ts_sqlite *db, struct ts_error *err)
{
	struct ts_rocpd *r = calloc(1, sizeof(*r));
	int rc = TS_OK, first = TS_OK;

	if (!r)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", db->import->path);
	r->db = db;
	r->err = err;
	init_lists(r);
	ts_rocprof_rows_init(&r->rows, &db->entities);
	/* A damaged set does not prevent reading the others. */
	for (size_t i = 0, sets = 0;
	     i < db->table_count && (!rc || rc == TS_EFORMAT) && sets < MAX_SETS; i++) {
		r->ending = ending_of(db->tables[i].name);
		if (!r->ending || !is_new_ending(r, i, r->ending))
			continue;
		sets++;
		rc = read_tables(r);
		first = first ? first : rc;
		clear_lists(r);
	}
	if (!rc || rc == TS_EFORMAT)
		rc = first;
	clear_lists(r);
	count_others(r);
	if (rc == TS_ENOMEM)
		ts_error_set(err, rc, "input '%s': out of memory", db->import->path);
	ts_rocprof_rows_release(&r->rows);
	ts_text_release(&r->name);
	free(r->args);
	free(r->values);
	free(r);
	return rc;
}
