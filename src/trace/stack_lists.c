/* SPDX-License-Identifier: Apache-2.0 */
/* See stack_lists.h. */
#include "trace/stack_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FRAME_MASK (((int64_t)1 << TS_FRAME_DEPTH_SHIFT) - 1)

/* A hostile file may hold any id. */
static bool is_frame(int64_t id)
{
	return id >= 0 && id <= FRAME_MASK;
}

uint32_t ts_frame_function_count(struct ts_reader *reader, int64_t frame)
{
	uint32_t count;

	ts_reader_symbols(reader, frame, &count);
	return count ? count : 1;
}

/* ---- stacks ---- */

static void reverse(int64_t *items, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		int64_t item = items[i];

		items[i] = items[count - 1 - i];
		items[count - 1 - i] = item;
	}
}

/* Appends a frame's functions, innermost first: the complete path is reversed later. */
static int add_frame(struct ts_stack_list *path, struct ts_reader *reader, int64_t frame)
{
	uint32_t depths = ts_frame_function_count(reader, frame);

	if (ts_grow_array((void **)&path->frames, &path->capacity, path->count + depths,
			  sizeof(*path->frames)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < depths; i++)
		path->frames[path->count++] = ts_frame_at_depth(frame, i);
	return TS_OK;
}

int ts_stack_list_load(struct ts_stack_list *path, struct ts_reader *reader, int64_t stack)
{
	int64_t id = stack;

	path->count = 0;
	while (id > 0 && path->count < TS_STACK_MAX_DEPTH) {
		const struct ts_stack_row *row = ts_reader_entity(reader, TS_TABLE_STACK, id);

		if (add_frame(path, reader, row && is_frame(row->frame) ? row->frame : 0))
			return TS_ENOMEM;
		/* Parents have smaller ids; anything else could be a cycle. */
		id = row && row->parent < id ? row->parent : 0;
	}
	reverse(path->frames, path->count);
	return TS_OK;
}

void ts_stack_list_release(struct ts_stack_list *path)
{
	free(path->frames);
	*path = (struct ts_stack_list){ 0 };
}

/* ---- frames ---- */

/* A frame, or one of its inlined functions. Strings are ids. */
struct frame_info {
	const struct ts_frame_row *frame; /* NULL: missing */
	int64_t name, file, line;
};

static void find_frame_info(struct ts_reader *reader, int64_t id, struct frame_info *ret_info)
{
	const struct ts_frame_row *frame =
		ts_reader_entity(reader, TS_TABLE_FRAME, id & FRAME_MASK);
	const struct ts_symbol_row *symbol;
	uint32_t count, depth = (uint32_t)(id >> TS_FRAME_DEPTH_SHIFT);

	*ret_info = (struct frame_info){ .frame = frame, .line = TS_ABSENT };
	if (id < 0)
		*ret_info = (struct frame_info){ .frame = &ts_frame_none,
						 .name = -id,
						 .line = TS_ABSENT };
	if (!frame || id < 0)
		return;
	ret_info->name = frame->name;
	ret_info->file = frame->file;
	/* The `line` of an unsymbolized native frame is not a source line. */
	if (frame->kind != TS_FRAME_NATIVE && frame->line >= 0)
		ret_info->line = frame->line;
	symbol = ts_reader_symbols(reader, id & FRAME_MASK, &count);
	if (depth >= count)
		return;
	symbol += depth;
	if (symbol->name)
		ret_info->name = symbol->name;
	if (symbol->file) {
		ret_info->file = symbol->file;
		ret_info->line = symbol->line >= 0 ? symbol->line : TS_ABSENT;
	}
}

const struct ts_frame_row *ts_frame_get(struct ts_reader *reader, int64_t frame)
{
	const struct ts_frame_row *row = NULL;

	if (frame >= 0)
		row = ts_reader_entity(reader, TS_TABLE_FRAME, frame & FRAME_MASK);

	return row ? row : &ts_frame_none;
}

bool ts_stack_is_instruction(struct ts_reader *reader, int64_t stack)
{
	const struct ts_stack_row *row = ts_reader_entity(reader, TS_TABLE_STACK, stack);

	return row && ts_frame_get(reader, row->frame)->kind == TS_FRAME_INSTRUCTION;
}

static struct ts_string module_of(struct ts_reader *reader, const struct ts_frame_row *frame)
{
	const struct ts_mapping_row *mapping = NULL;

	if (frame->mapping)
		mapping = ts_reader_entity(reader, TS_TABLE_MAPPING, frame->mapping);
	return ts_reader_string(reader, mapping ? mapping->path : 0);
}

static void append_address(struct ts_reader *reader, struct ts_text *out,
			   const struct ts_frame_row *frame)
{
	struct ts_string module = module_of(reader, frame);
	size_t length;
	const char *name = ts_frame_short_file(module, &length);

	ts_text_append(out, name, length);
	ts_text_printf(out, length ? "+0x%llx" : "0x%llx", (unsigned long long)frame->pc);
}

struct ts_string ts_frame_name(struct ts_reader *reader, int64_t frame)
{
	struct frame_info frame_info;

	find_frame_info(reader, frame, &frame_info);
	return ts_reader_string(reader, frame_info.name);
}

struct ts_string ts_stack_leaf_name(struct ts_reader *reader, int64_t stack)
{
	const struct ts_stack_row *row = ts_reader_entity(reader, TS_TABLE_STACK, stack);

	return ts_frame_name(reader, row ? row->frame : 0);
}

struct ts_string ts_frame_module(struct ts_reader *reader, int64_t frame)
{
	return module_of(reader, ts_frame_get(reader, frame));
}

void ts_frame_append_function(struct ts_reader *reader, struct ts_text *out, int64_t frame)
{
	struct frame_info frame_info;
	struct ts_string name;

	find_frame_info(reader, frame, &frame_info);
	name = ts_reader_string(reader, frame_info.name);
	if (!frame_info.frame)
		ts_text_append_str(out, "(lost)");
	else if (name.length)
		ts_text_append(out, name.data, name.length);
	else if (frame_info.frame->pc != TS_ABSENT)
		append_address(reader, out, frame_info.frame);
	else
		ts_text_append_str(out, "(unknown)");
}

struct ts_string ts_frame_file(struct ts_reader *reader, int64_t frame)
{
	struct frame_info frame_info;

	find_frame_info(reader, frame, &frame_info);
	if (!frame_info.file && frame_info.frame)
		return module_of(reader, frame_info.frame);
	return ts_reader_string(reader, frame_info.file);
}

int64_t ts_frame_line(struct ts_reader *reader, int64_t frame)
{
	struct frame_info frame_info;

	find_frame_info(reader, frame, &frame_info);
	return frame_info.line;
}

static bool same_text(struct ts_string a, struct ts_string b)
{
	return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

bool ts_frame_same_function(struct ts_reader *reader, int64_t frame, int64_t other)
{
	struct frame_info a, b;

	if (frame == other)
		return true;
	find_frame_info(reader, frame, &a);
	find_frame_info(reader, other, &b);
	if (!a.frame || !b.frame)
		return a.frame == b.frame;
	/* Without a name there is only the address. */
	if (!a.name || !b.name)
		return a.name == b.name && a.frame->pc == b.frame->pc && a.file == b.file &&
		       a.frame->mapping == b.frame->mapping;
	/* Equal texts have the same id, except in resumed traces. */
	if (a.name != b.name &&
	    !same_text(ts_reader_string(reader, a.name), ts_reader_string(reader, b.name)))
		return false;
	return (a.file == b.file && a.frame->mapping == b.frame->mapping) ||
	       same_text(ts_frame_file(reader, frame), ts_frame_file(reader, other));
}

/* Length of a prefix like "python3.11/", else 0. */
static size_t library_folder(const char *text, const char *end)
{
	static const char *const names[] = { "site-packages/", "dist-packages/" };
	const char *at = text + strlen("python");

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);

		if ((size_t)(end - text) > length && !memcmp(text, names[i], length))
			return length;
	}
	if (end - text < 8 || memcmp(text, "python", strlen("python")) != 0)
		return 0;
	while (at < end && ((*at >= '0' && *at <= '9') || *at == '.' || *at == 't'))
		at++;
	return at > text + strlen("python") && at + 1 < end && *at == '/' ? (size_t)(at + 1 - text)
									  : 0;
}

const char *ts_frame_short_file(struct ts_string path, size_t *ret_length)
{
	const char *end = path.data + path.length, *last = path.data, *library = NULL;

	for (const char *at = path.data; at < end; at++) {
		size_t folder;

		if (*at != '/' || at + 1 == end)
			continue;
		last = at + 1;
		folder = library_folder(last, end);
		if (folder)
			library = last + folder;
	}
	if (library)
		last = library;
	*ret_length = (size_t)(end - last);
	return last;
}

/* ---- processes and threads ---- */

static const struct ts_thread_row *thread_row(struct ts_reader *reader, int64_t thread)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, thread);

	return row ? row : &ts_thread_none;
}

static const struct ts_process_row *process_row(struct ts_reader *reader, int64_t thread)
{
	int64_t id = thread_row(reader, thread)->process;
	const struct ts_process_row *row = ts_reader_entity(reader, TS_TABLE_PROCESS, id);

	return row ? row : &ts_process_none;
}

/* A name and a number, or the one that is known. */
static void append_entity(struct ts_text *out, struct ts_string name, int64_t number,
			  struct ts_string number_text, const char *otherwise)
{
	ts_text_append(out, name.data, name.length);
	if (!name.length)
		ts_text_append_str(out, otherwise);
	if (number_text.length)
		ts_text_printf(out, name.length ? " (%s)" : " %s", number_text.data);
	else if (number != TS_ABSENT)
		ts_text_printf(out, name.length ? " (%lld)" : " %lld", (long long)number);
}

void ts_thread_append_process(struct ts_reader *reader, struct ts_text *out, int64_t thread)
{
	const struct ts_process_row *process = process_row(reader, thread);

	append_entity(out, ts_reader_string(reader, process->name), process->pid,
		      ts_reader_string(reader, process->pid_text), "process");
}

void ts_thread_append_name(struct ts_reader *reader, struct ts_text *out, int64_t thread)
{
	const struct ts_thread_row *row = thread_row(reader, thread);
	struct ts_string name = ts_reader_string(reader, row->name);
	int64_t tid = row->tid;

	/* The tid of a main thread is its pid. */
	if (name.length && tid == process_row(reader, thread)->pid)
		tid = TS_ABSENT;
	append_entity(out, name, tid, ts_reader_string(reader, row->tid_text), "thread");
}

/* ---- frames that say the same ---- */

void ts_frame_keys_init(struct ts_frame_keys *keys, struct ts_reader *reader, bool with_lines)
{
	*keys = (struct ts_frame_keys){ .reader = reader, .with_lines = with_lines };
	ts_strmap_init(&keys->texts, 0);
	ts_map_init(&keys->numbers);
	ts_text_init(&keys->scratch);
}

void ts_frame_keys_release(struct ts_frame_keys *keys)
{
	ts_strmap_release(&keys->texts);
	ts_map_release(&keys->numbers);
	ts_text_release(&keys->scratch);
	free(keys->frames);
}

static void write_key(struct ts_frame_keys *keys, int64_t frame)
{
	struct ts_string file = ts_frame_file(keys->reader, frame);
	int64_t line = ts_frame_line(keys->reader, frame);

	ts_text_clear(&keys->scratch);
	ts_frame_append_function(keys->reader, &keys->scratch, frame);
	ts_text_append_char(&keys->scratch, '\0');
	ts_text_append(&keys->scratch, file.data, file.length);
	if (keys->with_lines && line != TS_ABSENT) {
		ts_text_append_char(&keys->scratch, '\0');
		ts_text_append_int(&keys->scratch, line);
	}
}

static uint32_t find_key(struct ts_frame_keys *keys, int64_t frame)
{
	bool is_new = false;
	uint32_t number;

	write_key(keys, frame);
	if (ts_text_status(&keys->scratch))
		return TS_STRMAP_NONE;
	number = ts_strmap_intern(&keys->texts, keys->scratch.data, keys->scratch.length, &is_new);
	if (number == TS_STRMAP_NONE || !is_new)
		return number;
	if (ts_grow_array((void **)&keys->frames, &keys->capacity, (size_t)number + 1,
			  sizeof(*keys->frames)))
		return TS_STRMAP_NONE;
	keys->frames[number] = frame;
	return number;
}

uint32_t ts_frame_key(struct ts_frame_keys *keys, int64_t frame)
{
	uint64_t known;
	uint32_t number;

	if (ts_map_get(&keys->numbers, (uint64_t)frame, &known))
		return (uint32_t)known;
	number = find_key(keys, frame);
	if (number != TS_STRMAP_NONE && ts_map_put(&keys->numbers, (uint64_t)frame, number))
		return TS_STRMAP_NONE;
	return number;
}
