/* SPDX-License-Identifier: Apache-2.0 */
/* Nsight Systems exports: the order in which tables are read, and what their rows refer to. */
#include "import/nsys/nsys.h"

#include <stdlib.h>
#include <string.h>

static const struct ts_loss_kind no_time = { .what = "event",
					     .one = "event without time",
					     .many = "events without time" };
static const struct ts_loss_kind backwards = { .what = "event",
					       .one = "event that ends before it starts",
					       .many = "events that end before they start" };

static const struct ts_loss_kind bytes = { .what = "argument",
					   .one = "binary argument",
					   .many = "binary arguments" };

/* ---- texts ---- */

/* Ids count up from 0, so most are in an array; the file size bounds it. */
static int note_text(struct ts_nsys *n, int64_t id, const char *text, size_t length)
{
	struct ts_nsys_text *entry;

	if (ts_grow_array((void **)&n->texts, &n->text_capacity, n->text_count + 1,
			  sizeof(*n->texts)))
		return TS_ENOMEM;
	entry = &n->texts[n->text_count];
	*entry = (struct ts_nsys_text){
		.text = ts_arena_strdup_len(&n->db->arena, text, length),
		.length = (uint32_t)length,
	};
	if (!entry->text)
		return TS_ENOMEM;
	n->text_count++;
	if (id >= 0 && (uint64_t)id < n->dense_count)
		n->dense_texts[id] = (uint32_t)n->text_count;
	else
		return ts_map_put(&n->sparse_texts, (uint64_t)id, n->text_count - 1);
	return TS_OK;
}

static int read_texts(struct ts_nsys *n)
{
	enum { ID, VALUE };
	static const char *const columns[] = { "id", "value" };
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, "StringIds");
	struct ts_sqlite_query query;
	int rc;

	if (!table)
		return TS_OK;
	table->is_taken = true;
	n->dense_count = (size_t)table->rows + 1;
	n->dense_texts = calloc(n->dense_count, sizeof(*n->dense_texts));
	if (!n->dense_texts)
		return TS_ENOMEM;
	rc = ts_sqlite_select(n->db, &query, table->name, columns, TS_ARRAY_SIZE(columns), n->err);
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t id = ts_sqlite_int(&query, ID);
		size_t length;
		const char *text = ts_sqlite_text(&query, VALUE, &length);

		rc = id != TS_ABSENT && text ? note_text(n, id, text, length) : TS_OK;
	}
	ts_sqlite_end(&query);
	return rc;
}

struct ts_nsys_text *ts_nsys_text(struct ts_nsys *n, int64_t id)
{
	uint64_t index;

	if (TS_LIKELY(id >= 0 && (uint64_t)id < n->dense_count))
		return n->dense_texts[id] ? &n->texts[n->dense_texts[id] - 1] : NULL;
	if (id == TS_ABSENT || !ts_map_get(&n->sparse_texts, (uint64_t)id, &index))
		return NULL;
	return &n->texts[index];
}

uint32_t ts_nsys_string(struct ts_nsys *n, int64_t id)
{
	struct ts_nsys_text *text = ts_nsys_text(n, id);

	if (!text)
		return 0;
	if (!text->string)
		text->string = ts_import_string(n->import, text->text, text->length);
	return text->string;
}

bool ts_nsys_is_text_id(const char *column)
{
	static const char *const ids[] = { "nameId",       "textId",     "endNameId",
					   "objectNameId", "jsonTextId", "fileNameId",
					   "filenameId",   "contentId",  "providerNameId",
					   "taskNameId",   "srcFile",    "funcName",
					   "varName",      "kernelName", "CpuInstruction",
					   "module",       "symbol" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(ids); i++)
		if (!strcmp(column, ids[i]))
			return true;
	return false;
}

uint32_t ts_nsys_literal(struct ts_nsys *n, const char *literal)
{
	return ts_import_string(n->import, literal, strlen(literal));
}

/* ---- processes and threads ---- */

static struct ts_nsys_process *add_process(struct ts_nsys *n, uint64_t key, int64_t pid)
{
	struct ts_nsys_process *process;

	if (ts_grow_array((void **)&n->processes, &n->process_capacity, n->process_count + 1,
			  sizeof(*n->processes)) ||
	    ts_map_put(&n->process_by_key, key, n->process_count))
		return NULL;
	process = &n->processes[n->process_count];
	*process = (struct ts_nsys_process){ .key = key, .correlation_base = 1 };
	process->host = ts_entities_host(n->entities, key >> 24);
	process->id = ts_entities_process_of(n->entities, process->host, key, pid);
	if (!process->host || !process->id)
		return NULL;
	n->last_process = n->process_count++;
	return process;
}

struct ts_nsys_process *ts_nsys_process(struct ts_nsys *n, int64_t global)
{
	bool is_absent = global == TS_ABSENT;
	uint64_t index, key = is_absent ? 0 : ts_nsys_process_key(global);

	if (TS_LIKELY(n->last_process < n->process_count &&
		      n->processes[n->last_process].key == key))
		return &n->processes[n->last_process];
	if (!ts_map_get(&n->process_by_key, key, &index))
		return add_process(n, key, is_absent ? TS_ABSENT : ts_nsys_pid(global));
	n->last_process = index;
	return &n->processes[index];
}

int64_t ts_nsys_thread(struct ts_nsys *n, int64_t global)
{
	struct ts_nsys_process *process = ts_nsys_process(n, global);
	int64_t tid = global == TS_ABSENT ? TS_ABSENT : global & 0xffffff, id;

	if (!process)
		return 0;
	id = ts_entities_thread(n->entities, process->id, (uint64_t)global, tid);
	return id;
}

/* ---- devices and streams ---- */

static uint64_t process_index(const struct ts_nsys *n, const struct ts_nsys_process *process)
{
	return (uint64_t)(process - n->processes);
}

int64_t ts_nsys_device(struct ts_nsys *n, struct ts_nsys_process *process, int64_t device)
{
	uint64_t id, gpu = (uint64_t)device, index = process_index(n, process);

	if (device == TS_ABSENT)
		return 0;
	if (ts_pairmap_get(&n->devices, index, (uint64_t)device, &id))
		return (int64_t)id;
	/* Only newer versions say which GPU a process calls device 0. */
	ts_pairmap_get(&n->cuda_gpus, process->key & 0xffffff, (uint64_t)device, &gpu);
	id = (uint64_t)ts_entities_device(n->entities, process->host, gpu, (int64_t)gpu);
	return id && !ts_pairmap_put(&n->devices, index, (uint64_t)device, id) ? (int64_t)id : 0;
}

/* Streams are numbered within their context. */
static uint64_t stream_key(int64_t context, int64_t stream)
{
	return (uint64_t)context << 32 ^ (uint64_t)stream;
}

struct ts_nsys_stream_fact *ts_nsys_stream_fact(struct ts_nsys *n, int64_t pid, int64_t context,
						int64_t stream)
{
	bool is_new;
	uint64_t *index = ts_pairmap_insert(&n->stream_facts, (uint64_t)pid,
					    stream_key(context, stream), &is_new);

	if (!index)
		return NULL;
	if (is_new) {
		if (ts_grow_array((void **)&n->facts, &n->fact_capacity, n->fact_count + 1,
				  sizeof(*n->facts)))
			return NULL;
		*index = n->fact_count++;
		n->facts[*index] = (struct ts_nsys_stream_fact){ .priority = TS_ABSENT };
	}
	return &n->facts[*index];
}

static int64_t add_stream(struct ts_nsys *n, struct ts_nsys_process *process, int64_t device,
			  int64_t context, int64_t stream)
{
	uint64_t index, key = stream_key(context, stream);
	uint64_t stream_key = process_index(n, process) << 48 ^ key;
	int64_t id = ts_entities_stream(n->entities, device, stream_key, stream);

	if (id && ts_pairmap_get(&n->stream_facts, process->key & 0xffffff, key, &index)) {
		struct ts_stream_row *row = ts_entities_stream_row(n->entities, id);

		row->name = n->facts[index].name;
		row->priority = n->facts[index].priority;
	}
	return id && !ts_pairmap_put(&n->streams, process_index(n, process), key, (uint64_t)id) ? id
												: 0;
}

int64_t ts_nsys_stream(struct ts_nsys *n, struct ts_nsys_process *process, int64_t device,
		       int64_t context, int64_t stream)
{
	uint64_t id;

	/* -1 and its unsigned form: none. */
	if (stream < 0 || stream == UINT32_MAX || !device)
		return 0;
	if (ts_pairmap_get(&n->streams, process_index(n, process), stream_key(context, stream),
			   &id))
		return (int64_t)id;
	return add_stream(n, process, device, context, stream);
}

/* ---- events ---- */

int64_t ts_nsys_correlation(struct ts_nsys *n, struct ts_nsys_process *process, int64_t id)
{
	if (id <= 0)
		return TS_ABSENT;
	if (TS_UNLIKELY(process->correlation_base == 1))
		process->correlation_base = n->correlation_bases++ << 32;
	if (process->correlation_base && id > UINT32_MAX)
		return TS_ABSENT;
	return (int64_t)process->correlation_base + id;
}

bool ts_nsys_span(struct ts_nsys *n, int64_t start, int64_t end, int64_t *ret_duration)
{
	if (TS_UNLIKELY(start == TS_ABSENT)) {
		ts_entities_add_loss(n->entities, &no_time, 1);
		return false;
	}
	n->entities->time = start;
	if (end == TS_ABSENT) {
		*ret_duration = -1;
		return true;
	}
	if (TS_UNLIKELY(__builtin_sub_overflow(end, start, ret_duration) || *ret_duration < 0)) {
		ts_entities_add_loss(n->entities, &backwards, 1);
		return false;
	}
	return true;
}

void ts_nsys_add_event(struct ts_nsys *n, enum ts_table_id table, const void *row,
		       const int64_t *values)
{
	if (!ts_writer_add(n->writer, table, row, values) && table != TS_TABLE_ALLOCATION)
		n->import->result.events++;
}

/* ---- arguments ---- */

uint32_t ts_nsys_resolve_text(struct ts_nsys *n, const struct ts_sqlite_query *query,
			      int64_t number)
{
	return ts_nsys_string(n, number);
}

void ts_nsys_args_add(struct ts_nsys *n, struct ts_nsys_args *args, const char *name, int column,
		      ts_nsys_resolve *resolve)
{
	if (args->count < TS_NSYS_MAX_ARGS)
		args->list[args->count++] = (struct ts_nsys_arg){ .key = ts_nsys_literal(n, name),
								  .column = column,
								  .resolve = resolve };
}

void ts_nsys_args_release(struct ts_nsys_args *args)
{
	ts_map_release(&args->shapes);
}

enum { ABSENT, INT, DOUBLE, STRING };

static unsigned int read_value(struct ts_nsys *n, const struct ts_nsys_arg *arg,
			       const struct ts_sqlite_query *query, int64_t *ret_value)
{
	sqlite3_value *value = sqlite3_column_value(query->statement, arg->column);
	uint32_t string;
	double real;

	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		*ret_value = sqlite3_value_int64(value);
		string = arg->resolve ? arg->resolve(n, query, *ret_value) : 0;
		if (string)
			*ret_value = string;
		return string ? STRING : INT;
	case SQLITE_FLOAT:
		real = sqlite3_value_double(value);
		memcpy(ret_value, &real, sizeof(real));
		return DOUBLE;
	case SQLITE_TEXT:
		*ret_value = ts_sqlite_string(query, arg->column);
		return *ret_value ? STRING : ABSENT;
	case SQLITE_BLOB:
		ts_entities_add_loss(n->entities, &bytes, 1);
		return ABSENT;
	default:
		return ABSENT;
	}
}

static uint32_t make_shape(struct ts_nsys *n, const struct ts_nsys_args *args, uint64_t code)
{
	static const uint8_t types[] = {
		[INT] = TS_ARG_INT, [DOUBLE] = TS_ARG_DOUBLE, [STRING] = TS_ARG_STRING
	};
	struct ts_field fields[TS_NSYS_MAX_ARGS];
	uint32_t count = 0;

	for (size_t i = 0; i < args->count; i++)
		if (code >> 2 * i & 3)
			fields[count++] = (struct ts_field){ .key = args->list[i].key,
							     .type = types[code >> 2 * i & 3] };
	return ts_writer_shape(n->writer, fields, count);
}

uint32_t ts_nsys_args_read(struct ts_nsys *n, struct ts_nsys_args *args,
			   const struct ts_sqlite_query *query)
{
	uint64_t shape, code = 0;
	size_t count = 0;

	for (size_t i = 0; i < args->count; i++) {
		unsigned int type = read_value(n, &args->list[i], query, &args->values[count]);

		count += type != ABSENT;
		code |= (uint64_t)type << 2 * i;
	}
	if (TS_LIKELY(code == args->last_code))
		return args->last_shape;
	if (!ts_map_get(&args->shapes, code, &shape)) {
		shape = make_shape(n, args, code);
		ts_map_put(&args->shapes, code, shape);
	}
	args->last_code = code;
	args->last_shape = (uint32_t)shape;
	return args->last_shape;
}

/* ---- entry points ---- */

/* Facts and strings first, so that events refer to known ids. */
static int (*const readers[])(struct ts_nsys *n) = {
	ts_nsys_read_info,   ts_nsys_read_stacks,  ts_nsys_read_calls,       ts_nsys_read_kernels,
	ts_nsys_read_copies, ts_nsys_read_fills,   ts_nsys_read_syncs,       ts_nsys_read_graphs,
	ts_nsys_read_nvtx,   ts_nsys_read_samples, ts_nsys_read_allocations, ts_nsys_read_metrics,
	ts_nsys_read_other,  ts_nsys_read_names,
};

/* A damaged table does not affect the others; the first error is reported. */
static int read_all(struct ts_nsys *n, struct ts_error *err)
{
	struct ts_error later = { 0 };
	int first = read_texts(n);

	for (size_t i = 0; i < TS_ARRAY_SIZE(readers) && (!first || first == TS_EFORMAT); i++) {
		int rc;

		n->err = first ? &later : err;
		rc = readers[i](n);
		if (rc && (!first || rc != TS_EFORMAT)) {
			if (first && err)
				*err = later;
			first = rc;
		}
	}
	return first;
}

static void release(struct ts_nsys *n)
{
	free(n->texts);
	free(n->dense_texts);
	free(n->processes);
	free(n->facts);
	ts_map_release(&n->sparse_texts);
	ts_map_release(&n->process_by_key);
	ts_map_release(&n->cuda_chains.stacks);
	ts_map_release(&n->osrt_chains.stacks);
	ts_map_release(&n->sample_chains.stacks);
	ts_map_release(&n->modules);
	ts_pairmap_release(&n->cuda_gpus);
	ts_pairmap_release(&n->devices);
	ts_pairmap_release(&n->streams);
	ts_pairmap_release(&n->stream_facts);
	ts_pairmap_release(&n->domains);
	ts_pairmap_release(&n->categories);
	ts_pairmap_release(&n->metrics);
	ts_text_release(&n->scratch);
}

int ts_nsys_read(struct ts_sqlite *db, struct ts_error *err)
{
	struct ts_nsys n = { .db = db,
			     .import = db->import,
			     .writer = db->import->writer,
			     .entities = &db->entities,
			     .err = err };
	int rc = read_all(&n, err);

	if (rc == TS_ENOMEM)
		ts_error_set(err, rc, "input '%s': out of memory", db->import->path);
	release(&n);
	return rc;
}
