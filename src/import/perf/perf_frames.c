/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of perf script. The text of a frame is the lookup key: it is parsed once. */
#include "import/perf/perf_import.h"

#include <stdlib.h>
#include <string.h>

/*
 * File offsets are below this, addresses of a process above, except for programs linked to a fixed
 * address.
 */
#define MAX_OFFSET ((uint64_t)1 << 32)
#define KERNEL_HALF 0xffff000000000000u

int ts_perf_frames_init(struct ts_perf *p)
{
	ts_strmap_init(&p->frame_lines, 0);
	ts_strmap_init(&p->objects, 0);
	return TS_OK;
}

void ts_perf_frames_release(struct ts_perf *p)
{
	ts_strmap_release(&p->frame_lines);
	ts_strmap_release(&p->objects);
	free(p->frames);
	free(p->frame_ids);
	free(p->mappings);
}

static bool ends(struct ts_perf_text text, const char *with)
{
	size_t length = strlen(with);

	return text.length >= length && memcmp(text.text + text.length - length, with, length) == 0;
}

/* User space, though it looks like part of the kernel. */
static bool is_of_process(struct ts_perf_text object)
{
	static const char *const names[] = { "[vdso",     "[vsyscall]", "[heap",
					     "[stack",    "[anon",      "[uprobes]",
					     "[sigpage]", "[vectors]",  "[vvar" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++)
		if (ts_perf_starts(object, names[i]))
			return true;
	return false;
}

static bool is_kernel(const struct ts_perf_frame *frame)
{
	struct ts_perf_text object = frame->object;

	if (is_of_process(object))
		return false;
	/* A module is shown as "[nf_tables]", or as its file. */
	return frame->ip >= KERNEL_HALF || (object.length > 2 && object.text[0] == '[') ||
	       ends(object, "/vmlinux") || ends(object, ".ko") || ends(object, ".ko.xz") ||
	       ends(object, ".ko.zst") || ends(object, ".ko.gz");
}

/* Function names in the map that V8 writes for perf. */
static bool is_script(struct ts_perf_text symbol)
{
	static const char *const names[] = { "JS:", "LazyCompile:", "Function:", "Script:",
					     "Eval:" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++)
		if (ts_perf_starts(symbol, names[i]))
			return true;
	return false;
}

/* "py::function:/file.py": Python's trampolines. */
static bool split_python(struct ts_perf_text symbol, struct ts_perf_text *ret_function,
			 struct ts_perf_text *ret_file)
{
	const char *colon;

	if (!ts_perf_starts(symbol, "py::"))
		return false;
	symbol.text += 4;
	symbol.length -= 4;
	colon = memchr(symbol.text, ':', symbol.length);
	if (!colon || colon == symbol.text)
		return false;
	*ret_function = (struct ts_perf_text){ symbol.text, (size_t)(colon - symbol.text) };
	*ret_file = (struct ts_perf_text){ colon + 1, symbol.length - ret_function->length - 1 };
	return true;
}

static uint32_t string(struct ts_perf *p, struct ts_perf_text text)
{
	return text.length ? ts_import_string(p->import, text.text,
					      TS_MIN(text.length, TS_IMPORT_MAX_STRING))
			   : 0;
}

static int64_t mapping(struct ts_perf *p, struct ts_perf_text object)
{
	struct ts_mapping_row row = ts_mapping_none;
	bool is_new = false;
	uint32_t index;

	if (!object.length)
		return 0;
	index = ts_strmap_intern(&p->objects, object.text, object.length, &is_new);
	if (index == TS_STRMAP_NONE ||
	    (is_new && ts_grow_array((void **)&p->mappings, &p->mapping_capacity, (size_t)index + 1,
				     sizeof(*p->mappings)))) {
		p->rc = TS_ENOMEM;
		return 0;
	}
	if (is_new) {
		row.path = string(p, object);
		p->mappings[index] = ts_writer_new_id(p->writer, TS_TABLE_MAPPING);
		ts_writer_add(p->writer, TS_TABLE_MAPPING, &row, NULL);
	}
	return p->mappings[index];
}

static void make_row(struct ts_perf *p, const struct ts_perf_frame *frame, struct ts_frame_row *row)
{
	struct ts_perf_text function, file;
	bool is_map = ts_perf_starts(frame->object, "/tmp/perf-") && ends(frame->object, ".map");

	*row = ts_frame_none;
	row->kind = is_kernel(frame) ? TS_FRAME_KERNEL : TS_FRAME_NATIVE;
	row->mapping = mapping(p, frame->object);
	if (split_python(frame->symbol, &function, &file)) {
		row->kind = TS_FRAME_PYTHON;
		row->name = string(p, function);
		row->file = string(p, file);
		row->mapping = 0;
		return;
	}
	if (is_map && is_script(frame->symbol))
		row->kind = TS_FRAME_SCRIPT;
	row->name = string(p, frame->symbol);
	/* Without a name the number is all there is; otherwise only certain offsets. */
	if (!row->name || (row->kind == TS_FRAME_NATIVE && row->mapping && !is_map &&
			   !frame->is_inlined && frame->ip < MAX_OFFSET))
		row->pc = (int64_t)frame->ip;
	if (row->pc == TS_ABSENT && !row->name)
		row->pc = 0;
}

uint32_t ts_perf_frame(struct ts_perf *p, struct ts_perf_text text, struct ts_frame_row *ret_row)
{
	struct ts_perf_frame frame;
	bool is_new = false;
	uint32_t index = ts_strmap_find(&p->frame_lines, text.text, text.length);

	if (index == TS_STRMAP_NONE) {
		if (!ts_perf_parse_frame(text, &frame))
			return 0;
		index = ts_strmap_intern(&p->frame_lines, text.text, text.length, &is_new);
		if (index == TS_STRMAP_NONE ||
		    ts_grow_array((void **)&p->frames, &p->frame_capacity, (size_t)index + 1,
				  sizeof(*p->frames)) ||
		    ts_grow_array((void **)&p->frame_ids, &p->frame_id_capacity, (size_t)index + 1,
				  sizeof(*p->frame_ids))) {
			p->rc = TS_ENOMEM;
			return 0;
		}
		make_row(p, &frame, &p->frames[index]);
		p->frame_ids[index] = ts_writer_frame(p->writer, &p->frames[index]);
	}
	if (ret_row)
		*ret_row = p->frames[index];
	return p->frame_ids[index];
}
