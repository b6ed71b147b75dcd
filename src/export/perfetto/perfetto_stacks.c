/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned call stacks: binaries, functions, frames and stacks, each written before its first use.
 */
#include "base/memory.h"
#include "export/perfetto/perfetto_export.h"
#include "trace/stack_lists.h"

/* Fields of InternedData. */
enum { INTERNED_FRAME = 6, INTERNED_STACK = 7, INTERNED_BUILD_ID = 16, INTERNED_MAPPING = 19 };
/* Kinds of a frame, as Perfetto has them. */
enum { KIND_NATIVE = 1, KIND_KERNEL = 2, KIND_INTERPRETED = 3 };
/* Pseudo binaries, by kind, for code without one. */
#define SYNTHETIC_MAPPING (UINT64_C(1) << 60)

/* True the first time. */
static bool is_new(struct ts_map *map, uint64_t key)
{
	bool first = false;

	return !ts_map_insert(map, key, &first) || first;
}

static void put_synthetic_mapping(struct ts_pf_export *x, uint64_t iid, const char *name)
{
	uint64_t path = ts_pf_intern_synthetic(x, TS_PF_MAPPING_PATH, iid, name, strlen(name));
	size_t open = ts_proto_open(&x->interned, INTERNED_MAPPING);

	ts_proto_put_uint(&x->interned, 1, iid);
	ts_proto_put_uint(&x->interned, 7, path);
	ts_proto_close(&x->interned, open);
}

static void put_mapping(struct ts_pf_export *x, int64_t id, const struct ts_mapping_row *mapping)
{
	uint64_t path = ts_pf_intern(x, TS_PF_MAPPING_PATH, mapping->path);
	size_t open;

	if (mapping->build_id) {
		struct ts_string build = ts_reader_string(x->reader, mapping->build_id);

		open = ts_proto_open(&x->interned, INTERNED_BUILD_ID);
		ts_proto_put_uint(&x->interned, 1, (uint64_t)id);
		ts_proto_put_bytes(&x->interned, 2, build.data, build.length);
		ts_proto_close(&x->interned, open);
	}
	open = ts_proto_open(&x->interned, INTERNED_MAPPING);
	ts_proto_put_uint(&x->interned, 1, (uint64_t)id);
	if (mapping->build_id)
		ts_proto_put_uint(&x->interned, 2, (uint64_t)id);
	if (mapping->file_offset != TS_ABSENT)
		ts_proto_put_int(&x->interned, 8, mapping->file_offset);
	if (mapping->address != TS_ABSENT) {
		ts_proto_put_int(&x->interned, 4, mapping->address);
		if (mapping->bytes != TS_ABSENT)
			ts_proto_put_uint(&x->interned, 5,
					  (uint64_t)mapping->address + (uint64_t)mapping->bytes);
	}
	ts_proto_put_uint(&x->interned, 7, path);
	ts_proto_close(&x->interned, open);
}

static uint64_t mapping_of(struct ts_pf_export *x, const struct ts_frame_row *frame)
{
	static const char *const names[] = {
		[TS_FRAME_UNKNOWN] = "[unknown]",    [TS_FRAME_PYTHON] = "[python]",
		[TS_FRAME_NATIVE] = "[native]",      [TS_FRAME_KERNEL] = "[kernel]",
		[TS_FRAME_INSTRUCTION] = "[device]", [TS_FRAME_SCRIPT] = "[script]"
	};
	const struct ts_mapping_row *mapping =
		ts_reader_entity(x->reader, TS_TABLE_MAPPING, frame->mapping);
	size_t kind = (uint64_t)frame->kind < TS_ARRAY_SIZE(names) ? (size_t)frame->kind : 0;
	uint64_t iid = mapping ? (uint64_t)frame->mapping : SYNTHETIC_MAPPING + kind;

	if (is_new(&x->mappings, iid)) {
		if (mapping)
			put_mapping(x, frame->mapping, mapping);
		else
			put_synthetic_mapping(x, iid, names[kind]);
	}
	return iid;
}

static uint64_t function_of(struct ts_pf_export *x, int64_t frame)
{
	TS_SCOPED(ts_text) name = { 0 };

	ts_frame_append_function(x->reader, &name, frame);
	return ts_pf_intern_text(x, TS_PF_FUNCTION, name.data, name.length);
}

/* Numbers begin at 1; a missing frame is 0. */
static uint64_t iid_of(int64_t frame)
{
	return (uint64_t)frame + 1;
}

static int kind_of(const struct ts_frame_row *frame)
{
	switch (frame->kind) {
	case TS_FRAME_PYTHON:
	case TS_FRAME_SCRIPT:
		return KIND_INTERPRETED;
	case TS_FRAME_NATIVE:
		return KIND_NATIVE;
	case TS_FRAME_KERNEL:
		return KIND_KERNEL;
	default:
		return 0;
	}
}

static void put_frame(struct ts_pf_export *x, int64_t id)
{
	const struct ts_frame_row *frame = ts_frame_get(x->reader, id);
	struct ts_string file = ts_frame_file(x->reader, id);
	int64_t line = ts_frame_line(x->reader, id);
	uint64_t function, mapping, path = 0;
	size_t open;

	if (!is_new(&x->frames, (uint64_t)id))
		return;
	if (file.length)
		path = ts_pf_intern_text(x, TS_PF_SOURCE_PATH, file.data, file.length);
	function = function_of(x, id);
	mapping = mapping_of(x, frame);
	open = ts_proto_open(&x->interned, INTERNED_FRAME);
	ts_proto_put_uint(&x->interned, 1, iid_of(id));
	ts_proto_put_uint(&x->interned, 2, function);
	ts_proto_put_uint(&x->interned, 3, mapping);
	if (frame->pc != TS_ABSENT)
		ts_proto_put_int(&x->interned, 4, frame->pc);
	if (path)
		ts_proto_put_uint(&x->interned, 5, path);
	if (line > 0 && line <= UINT32_MAX)
		ts_proto_put_int(&x->interned, 6, line);
	if (kind_of(frame))
		ts_proto_put_int(&x->interned, 7, kind_of(frame));
	ts_proto_close(&x->interned, open);
}

uint64_t ts_pf_intern_stack(struct ts_pf_export *x, int64_t stack)
{
	size_t open;

	if (!stack || !is_new(&x->stacks, (uint64_t)stack))
		return (uint64_t)stack;
	if (ts_stack_list_load(&x->path, x->reader, stack)) {
		x->interned.failed = true;
		return 0;
	}
	for (size_t i = 0; i < x->path.count; i++)
		put_frame(x, x->path.frames[i]);
	open = ts_proto_open(&x->interned, INTERNED_STACK);
	ts_proto_put_uint(&x->interned, 1, (uint64_t)stack);
	for (size_t i = 0; i < x->path.count; i++)
		ts_proto_put_uint(&x->interned, 2, iid_of(x->path.frames[i]));
	ts_proto_close(&x->interned, open);
	return (uint64_t)stack;
}
