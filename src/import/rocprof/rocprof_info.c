/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process metadata: the process and its machine, agents, names of kernels, operations, markers and
 * counters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "import/rocprof/rocprof.h"
#include "model/kineto_names.h"

/*
 * An object whose members are read by `member`, one by one; skips anything that is not an object.
 */
static int read_object(struct ts_rocprof *r,
		       int (*member)(struct ts_rocprof *r, const struct ts_json_string *key,
				     void *context),
		       void *context)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };

	while (ts_json_walk_next(&walk, r->js))
		walk.rc = member(r, &walk.key, context);
	return walk.rc;
}

/* A number; unchanged if the value is something else. */
static int read_int(struct ts_rocprof *r, int64_t *ret_value)
{
	int64_t value;
	bool is;
	int rc = ts_rocprof_read_signed(r->js, &value, &is);

	if (!rc && is)
		*ret_value = value;
	return rc;
}

/* ---- the process ---- */

struct metadata {
	uint32_t host_name, machine, system, release, command, config;
	int64_t pid, init, fini;
	bool by_queue, renames;
};

static int read_node(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct metadata *metadata = context;

	if (ts_json_string_is(key, "hostname"))
		return ts_rocprof_read_string(r, &metadata->host_name);
	if (ts_json_string_is(key, "machine_id"))
		return ts_rocprof_read_string(r, &metadata->machine);
	if (ts_json_string_is(key, "system_name"))
		return ts_rocprof_read_string(r, &metadata->system);
	if (ts_json_string_is(key, "release"))
		return ts_rocprof_read_string(r, &metadata->release);
	return ts_json_skip(r->js);
}

static int read_flag(struct ts_rocprof *r, bool *ret_flag)
{
	*ret_flag = ts_json_peek(r->js) == 't';
	return ts_json_peek(r->js) < 0 ? ts_json_cut(r->js) : ts_json_skip(r->js);
}

static int read_config(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct metadata *metadata = context;

	if (ts_json_string_is(key, "group_by_queue"))
		return read_flag(r, &metadata->by_queue);
	if (ts_json_string_is(key, "kernel_rename"))
		return read_flag(r, &metadata->renames);
	return ts_json_skip(r->js);
}

static int read_metadata_member(struct ts_rocprof *r, const struct ts_json_string *key,
				void *context)
{
	struct metadata *metadata = context;
	const char *from;
	int rc;

	if (ts_json_string_is(key, "node"))
		return read_object(r, read_node, metadata);
	if (ts_json_string_is(key, "pid"))
		return read_int(r, &metadata->pid);
	if (ts_json_string_is(key, "init_time"))
		return read_int(r, &metadata->init);
	if (ts_json_string_is(key, "fini_time"))
		return read_int(r, &metadata->fini);
	if (ts_json_string_is(key, "command"))
		return ts_rocprof_read_json(r, &metadata->command);
	if (!ts_json_string_is(key, "config"))
		return ts_json_skip(r->js);
	from = r->js->next;
	rc = ts_rocprof_read_json(r, &metadata->config);
	if (rc)
		return rc;
	r->js->next = from;
	return read_object(r, read_config, metadata);
}

/* The text of a string just added; never NULL. */
static const char *text_of(struct ts_rocprof *r, uint32_t string)
{
	const char *text = string ? ts_writer_text(r->rows.writer, string, NULL) : NULL;

	return text ? text : "";
}

static void make_host(struct ts_rocprof *r, const struct metadata *metadata)
{
	const char *machine = text_of(r, metadata->machine);
	const char *name = text_of(r, metadata->host_name);
	struct ts_host_row *row;

	if (!*machine && !*name)
		return;
	r->host = ts_entities_host(r->rows.entities, ts_hash64(machine, strlen(machine)) * 31 +
							     ts_hash64(name, strlen(name)));
	if (!r->host)
		return;
	ts_text_clear(&r->other);
	ts_text_printf(&r->other, "%s %s", text_of(r, metadata->system),
		       text_of(r, metadata->release));
	row = ts_entities_host_row(r->rows.entities, r->host);
	row->name = metadata->host_name;
	if (r->other.length > 1)
		row->system = ts_writer_string(r->rows.writer, r->other.data, r->other.length);
}

static void make_process(struct ts_rocprof *r, const struct metadata *metadata)
{
	struct ts_process_row *row;
	struct ts_meta_row meta = ts_meta_none;

	r->process = ts_entities_process_of(r->rows.entities, r->host, r->index, metadata->pid);
	if (!r->process)
		return;
	row = ts_entities_process_row(r->rows.entities, r->process);
	row->start = metadata->init;
	row->end = metadata->fini;
	if (metadata->command && *text_of(r, metadata->command) == '[')
		row->command = metadata->command;
	if (!metadata->config)
		return;
	meta.source = r->rows.entities->source;
	meta.process = r->process;
	meta.key = ts_rocprof_text(&r->rows, "config");
	meta.value = metadata->config;
	ts_writer_add(r->rows.writer, TS_TABLE_META, &meta, NULL);
}

int64_t ts_rocprof_process(struct ts_rocprof *r)
{
	static const struct metadata nothing = { .pid = TS_ABSENT,
						 .init = TS_ABSENT,
						 .fini = TS_ABSENT };

	if (!r->process)
		make_process(r, &nothing);
	return r->process;
}

int ts_rocprof_read_metadata(void *context)
{
	struct ts_rocprof *r = context;
	struct metadata metadata = { .pid = TS_ABSENT, .init = TS_ABSENT, .fini = TS_ABSENT };
	int rc = read_object(r, read_metadata_member, &metadata);

	if (rc || r->process)
		return rc;
	make_host(r, &metadata);
	make_process(r, &metadata);
	r->by_queue = metadata.by_queue;
	r->renames = metadata.renames;
	return TS_OK;
}

/* ---- agents ---- */

struct agent {
	uint64_t handle;
	int64_t type, node, number, cores, memory;
	uint32_t name, product, model, vendor;
	unsigned char uuid[16];
	size_t uuid_bytes;
};

static int read_bank_member(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct agent *agent = context;
	int64_t bytes = 0;
	int rc;

	if (!ts_json_string_is(key, "size_in_bytes"))
		return ts_json_skip(r->js);
	rc = read_int(r, &bytes);
	if (!rc && bytes > 0 && __builtin_add_overflow(agent->memory, bytes, &agent->memory))
		agent->memory = INT64_MAX;
	return rc;
}

static int read_banks(struct ts_rocprof *r, struct agent *agent)
{
	struct ts_json_walk walk = { .open = '[', .skips_others = true };

	while (ts_json_walk_next(&walk, r->js))
		walk.rc = read_object(r, read_bank_member, agent);
	return walk.rc;
}

/* value0 ... value15 */
static int read_uuid_byte(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct agent *agent = context;
	int64_t value = 0;
	int rc = read_int(r, &value);

	if (!rc && agent->uuid_bytes < sizeof(agent->uuid))
		agent->uuid[agent->uuid_bytes++] = (unsigned char)value;
	return rc;
}

static int read_uuid(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	if (ts_json_string_is(key, "bytes"))
		return read_object(r, read_uuid_byte, context);
	return ts_json_skip(r->js);
}

static int read_agent_member(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct agent *agent = context;
	bool is;

	if (ts_json_string_is(key, "id"))
		return ts_rocprof_read_unsigned(r->js, &agent->handle, &is);
	if (ts_json_string_is(key, "type"))
		return read_int(r, &agent->type);
	if (ts_json_string_is(key, "node_id"))
		return read_int(r, &agent->node);
	if (ts_json_string_is(key, "logical_node_type_id"))
		return read_int(r, &agent->number);
	if (ts_json_string_is(key, "cpu_cores_count"))
		return read_int(r, &agent->cores);
	if (ts_json_string_is(key, "name"))
		return ts_rocprof_read_string(r, &agent->name);
	if (ts_json_string_is(key, "product_name"))
		return ts_rocprof_read_string(r, &agent->product);
	if (ts_json_string_is(key, "model_name"))
		return ts_rocprof_read_string(r, &agent->model);
	if (ts_json_string_is(key, "vendor_name"))
		return ts_rocprof_read_string(r, &agent->vendor);
	if (ts_json_string_is(key, "uuid"))
		return read_object(r, read_uuid, agent);
	if (ts_json_string_is(key, "mem_banks"))
		return read_banks(r, agent);
	return ts_json_skip(r->js);
}

static uint32_t uuid_text(struct ts_rocprof *r, const struct agent *agent)
{
	char text[33];
	unsigned int any = 0;

	if (agent->uuid_bytes < sizeof(agent->uuid))
		return 0;
	for (size_t i = 0; i < sizeof(agent->uuid); i++) {
		snprintf(text + 2 * i, 3, "%02x", agent->uuid[i]);
		any |= agent->uuid[i];
	}
	return any ? ts_rocprof_text(&r->rows, text) : 0;
}

static void make_device(struct ts_rocprof *r, const struct agent *agent, uint32_t properties)
{
	struct ts_device_row *row;
	uint64_t key = agent->node == TS_ABSENT ? agent->handle | UINT64_C(1) << 63
						: (uint64_t)agent->node;
	int64_t id = ts_entities_device(r->rows.entities, r->host, key, agent->number);

	if (!id)
		return;
	ts_map_put(&r->agents, agent->handle, (uint64_t)id);
	row = ts_entities_device_row(r->rows.entities, id);
	row->name = *text_of(r, agent->product) ? agent->product
		    : *text_of(r, agent->name)  ? agent->name
						: agent->model;
	row->vendor = agent->vendor;
	row->uuid = uuid_text(r, agent);
	if (agent->memory)
		row->memory_bytes = agent->memory;
	row->properties = properties;
}

/* CPUs and memory of the machine, reported in pieces. */
static void add_to_host(struct ts_rocprof *r, const struct agent *agent)
{
	struct ts_host_row *row;

	if (agent->cores > 0)
		r->processors += TS_MIN(agent->cores, 1 << 20);
	if (__builtin_add_overflow(r->memory_bytes, agent->memory, &r->memory_bytes))
		r->memory_bytes = INT64_MAX;
	if (!r->host)
		return;
	row = ts_entities_host_row(r->rows.entities, r->host);
	if (r->processors)
		row->processors = r->processors;
	if (r->memory_bytes)
		row->memory_bytes = r->memory_bytes;
}

int ts_rocprof_read_agent(void *context)
{
	enum { IS_CPU = 1, IS_GPU = 2 };
	struct ts_rocprof *r = context;
	struct agent agent = { .node = TS_ABSENT, .number = TS_ABSENT };
	const char *from = r->js->next;
	uint32_t properties = 0;
	int rc = read_object(r, read_agent_member, &agent);

	if (rc)
		return rc;
	if (agent.type == IS_GPU) {
		r->js->next = from;
		rc = ts_rocprof_read_json(r, &properties);
		if (!rc)
			make_device(r, &agent, properties);
		return rc;
	}
	if (ts_map_put(&r->agents, agent.handle, 0))
		return TS_ENOMEM;
	if (agent.type == IS_CPU)
		add_to_host(r, &agent);
	return TS_OK;
}

/* ---- names ---- */

struct symbol {
	uint64_t id;
	struct ts_json_string formatted, demangled, mangled;
	int64_t vgprs, accum_vgprs, sgprs;
};

static int scan_text(struct ts_json *js, struct ts_json_string *ret_text)
{
	int first = ts_json_peek(js);

	if (first == '"')
		return ts_json_scan_string(js, ret_text);
	return first < 0 ? ts_json_cut(js) : ts_json_skip(js);
}

static int read_symbol_member(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct symbol *symbol = context;
	bool is;

	if (ts_json_string_is(key, "kernel_id"))
		return ts_rocprof_read_unsigned(r->js, &symbol->id, &is);
	if (ts_json_string_is(key, "formatted_kernel_name"))
		return scan_text(r->js, &symbol->formatted);
	if (ts_json_string_is(key, "demangled_kernel_name"))
		return scan_text(r->js, &symbol->demangled);
	if (ts_json_string_is(key, "kernel_name"))
		return scan_text(r->js, &symbol->mangled);
	if (ts_json_string_is(key, "arch_vgpr_count"))
		return read_int(r, &symbol->vgprs);
	if (ts_json_string_is(key, "accum_vgpr_count"))
		return read_int(r, &symbol->accum_vgprs);
	if (ts_json_string_is(key, "sgpr_count"))
		return read_int(r, &symbol->sgprs);
	return ts_json_skip(r->js);
}

/* Most kernels of a program never run: their names are added to the trace when one does. */
static int keep_name(struct ts_rocprof *r, struct ts_rocprof_symbol *symbol,
		     const struct ts_json_string *string)
{
	char *copy;

	ts_text_clear(&r->scratch);
	if (string->length)
		ts_json_unescape(string, &r->scratch);
	if (r->scratch.failed || r->scratch.length > TS_IMPORT_MAX_STRING)
		return TS_ENOMEM;
	if (!r->scratch.length)
		return TS_OK;
	copy = ts_arena_alloc(&r->names, r->scratch.length);
	if (!copy)
		return TS_ENOMEM;
	memcpy(copy, r->scratch.data, r->scratch.length);
	symbol->text = copy;
	symbol->length = r->scratch.length;
	symbol->is_collective = ts_kineto_kind(TS_GPU_OP_KERNEL, copy, symbol->length) ==
				TS_GPU_OP_COLLECTIVE;
	return TS_OK;
}

/* The first name is what rocprofv3 itself shows, depending on its naming options. */
int ts_rocprof_read_symbol(void *context)
{
	struct ts_rocprof *r = context;
	struct symbol from = { .vgprs = TS_ABSENT, .accum_vgprs = TS_ABSENT, .sgprs = TS_ABSENT };
	struct ts_rocprof_symbol *symbol;
	int rc = read_object(r, read_symbol_member, &from);

	if (rc)
		return rc;
	if (ts_grow_array((void **)&r->symbol_list, &r->symbol_capacity, r->symbol_count + 1,
			  sizeof(*r->symbol_list)) ||
	    ts_map_put(&r->symbols, from.id, r->symbol_count))
		return TS_ENOMEM;
	symbol = &r->symbol_list[r->symbol_count++];
	*symbol = (struct ts_rocprof_symbol){ .vgprs = from.vgprs,
					      .accum_vgprs = from.accum_vgprs,
					      .sgprs = from.sgprs };
	return keep_name(r, symbol,
			 from.formatted.length   ? &from.formatted
			 : from.demangled.length ? &from.demangled
						 : &from.mangled);
}

uint32_t ts_rocprof_symbol_name(struct ts_rocprof *r, struct ts_rocprof_symbol *symbol)
{
	if (!symbol->name && symbol->length)
		symbol->name = ts_import_string(r->import, symbol->text, symbol->length);
	return symbol->name;
}

struct pair {
	uint64_t key;
	uint32_t text;
};

static int read_counter_member(struct ts_rocprof *r, const struct ts_json_string *key,
			       void *context)
{
	struct pair *pair = context;
	bool is;

	if (ts_json_string_is(key, "id") || ts_json_string_is(key, "key"))
		return ts_rocprof_read_unsigned(r->js, &pair->key, &is);
	if (ts_json_string_is(key, "name") || ts_json_string_is(key, "value"))
		return ts_rocprof_read_string(r, &pair->text);
	return ts_json_skip(r->js);
}

static int read_pair(struct ts_rocprof *r, struct ts_map *map)
{
	struct pair pair = { 0 };
	int rc = read_object(r, read_counter_member, &pair);

	if (!rc && pair.text && ts_map_put(map, pair.key, pair.text))
		return TS_ENOMEM;
	return rc;
}

int ts_rocprof_read_counter(void *context)
{
	struct ts_rocprof *r = context;

	return read_pair(r, &r->counters);
}

int ts_rocprof_read_message(void *context)
{
	struct ts_rocprof *r = context;

	return read_pair(r, &r->messages);
}

int ts_rocprof_read_external(void *context)
{
	struct ts_rocprof *r = context;

	return read_pair(r, &r->renamed);
}

static int read_operations(struct ts_rocprof *r)
{
	struct ts_json_walk walk = { .open = '[', .skips_others = true };
	struct ts_rocprof_name *name;
	const char *text;

	while (ts_json_walk_next(&walk, r->js)) {
		if (ts_grow_array((void **)&r->operations, &r->operation_capacity,
				  r->operation_count + 1, sizeof(*r->operations)))
			return TS_ENOMEM;
		name = &r->operations[r->operation_count++];
		walk.rc = ts_rocprof_read_string(r, &name->string);
		if (walk.rc)
			break;
		text = text_of(r, name->string);
		name->operation = ts_rocprof_operation(text, strlen(text));
	}
	return walk.rc;
}

static int read_kind_member(struct ts_rocprof *r, const struct ts_json_string *key, void *context)
{
	struct ts_rocprof_kind *kind = context;
	int rc;

	if (ts_json_string_is(key, "kind"))
		return ts_rocprof_read_string(r, &kind->name);
	if (!ts_json_string_is(key, "operations"))
		return ts_json_skip(r->js);
	kind->first = r->operation_count;
	rc = read_operations(r);
	kind->count = r->operation_count - kind->first;
	return rc;
}

int ts_rocprof_read_kind(void *context)
{
	struct ts_rocprof *r = context;
	struct ts_rocprof_kind kind = { 0 };
	size_t operations = r->operation_count;
	int rc = read_object(r, read_kind_member, &kind);

	if (rc) {
		r->operation_count = operations;
		return rc;
	}
	if (ts_grow_array((void **)&r->kinds, &r->kind_capacity, r->kind_count + 1,
			  sizeof(*r->kinds)))
		return TS_ENOMEM;
	r->kinds[r->kind_count++] = kind;
	return TS_OK;
}

static int read_text_item(struct ts_rocprof *r, uint32_t **list, size_t *count, size_t *capacity)
{
	uint32_t string;
	int rc = ts_rocprof_read_string(r, &string);

	if (rc)
		return rc;
	if (ts_grow_array((void **)list, capacity, *count + 1, sizeof(**list)))
		return TS_ENOMEM;
	(*list)[(*count)++] = string;
	return TS_OK;
}

int ts_rocprof_read_instruction(void *context)
{
	struct ts_rocprof *r = context;

	return read_text_item(r, &r->instructions, &r->instruction_count, &r->instruction_capacity);
}

int ts_rocprof_read_comment(void *context)
{
	struct ts_rocprof *r = context;

	return read_text_item(r, &r->comments, &r->comment_count, &r->comment_capacity);
}

/* ---- from process to process ---- */

void ts_rocprof_next_process(struct ts_rocprof *r)
{
	r->seen = 0;
	r->host = r->process = 0;
	r->by_queue = r->renames = false;
	r->processors = r->memory_bytes = 0;
	r->symbol_count = r->kind_count = r->operation_count = 0;
	r->instruction_count = r->comment_count = 0;
	r->dispatches = 0;
	ts_arena_release(&r->names);
	ts_map_clear(&r->agents);
	ts_map_clear(&r->symbols);
	ts_map_clear(&r->messages);
	ts_map_clear(&r->renamed);
	ts_map_clear(&r->counters);
}

void ts_rocprof_info_release(struct ts_rocprof *r)
{
	ts_arena_release(&r->names);
	ts_map_release(&r->agents);
	ts_map_release(&r->symbols);
	ts_map_release(&r->messages);
	ts_map_release(&r->renamed);
	ts_map_release(&r->counters);
	free(r->symbol_list);
	free(r->kinds);
	free(r->operations);
	free(r->instructions);
	free(r->comments);
}
