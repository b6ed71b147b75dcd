/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a process by the address of their code objects, with names and lines. A code object
 * may be destroyed and another created at its address: its identity is checked again when a frame
 * is new, all of a sweep in one read.
 */
#include <stdlib.h>

#include "base/local/hash.h"
#include "python/reader/python_reader_internal.h"

#define RECHECK_NS INT64_C(1000000) /* a code verified this recently is not checked again */
#define TABLE_BYTES (1u << 20)      /* size limit of a line table; code beyond has no lines */
#define MAX_INSTRUCTION_BYTES (64u << 20)
#define MAX_COPIES 4096u     /* copies of the instructions: one per thread */
#define LOOK_BACK_BYTES 128u /* search distance for a line, from an instruction without one */
#define MAX_OFFSET (INT64_C(64) << 20) /* of an instruction, where its code does not say */
#define LINE_UNKNOWN (-1)

static void free_code_at(struct python_code_at *at)
{
	free(at->table);
	free(at->lines);
	free(at->copies);
	free(at);
}

void ts_python_codes_release(struct python_codes *codes)
{
	uint64_t key, value;
	size_t cursor = 0;

	while (ts_map_next(&codes->at, &cursor, &key, &value))
		free_code_at((struct python_code_at *)(uintptr_t)value);
	ts_map_release(&codes->at);
	ts_map_release(&codes->known);
	ts_arena_release(&codes->arena);
	free(codes->noted);
	free(codes->copies);
	free(codes->ranges);
	free(codes->scratch);
}

/* ---- functions ---- */

/* The function with that name and location, however often its code object is created. */
static struct ts_python_code *intern(struct python_codes *codes, const char *name, const char *file,
				     int32_t first_line)
{
	uint64_t hash =
		ts_hash_mix64(ts_hash64(name, strlen(name)) ^
			      ts_hash_mix64(ts_hash64(file, strlen(file)) + (uint32_t)first_line));
	uint64_t *slot = ts_map_insert(&codes->known, hash, NULL);
	struct ts_python_code *code;

	if (!slot)
		return NULL;
	code = (struct ts_python_code *)(uintptr_t)*slot;
	if (code && code->first_line == first_line && strcmp(code->name, name) == 0 &&
	    strcmp(code->file, file) == 0)
		return code;
	code = ts_arena_alloc_zeroed(&codes->arena, 1, sizeof(*code));
	if (!code)
		return NULL;
	code->name = ts_arena_strdup_len(&codes->arena, name, strlen(name));
	code->file = ts_arena_strdup_len(&codes->arena, file, strlen(file));
	if (!code->name || !code->file)
		return NULL;
	code->first_line = first_line;
	code->number = ++codes->next_number;
	*slot = (uint64_t)(uintptr_t)code;
	return code;
}

struct ts_python_code *ts_python_code_of_rest(struct ts_python_reader *python)
{
	return intern(&python->codes, "(outer frames left out)", "", 0);
}

/* ---- reading ---- */

/* Recognises PyCode_Type by name, if no symbol was found. */
static bool learn_code_type(struct ts_python_reader *python, const void *copy)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint64_t type = ts_python_word_of(copy, layout->object.type), name;
	char text[5];

	if (!ts_python_memory_read_pointer(&python->memory, type + layout->type.name, &name) ||
	    !ts_python_memory_read(&python->memory, name, text, sizeof(text)) ||
	    memcmp(text, "code", 5) != 0)
		return false;
	python->view.code_type = type;
	return true;
}

static bool identify(struct ts_python_reader *python, uint64_t address, const void *copy,
		     struct ts_python_code_identity *ret_identity)
{
	if (!python->view.code_type && !learn_code_type(python, copy))
		return false;
	return ts_python_code_identify(&python->runtime_info.layout, address,
				       python->view.code_type, copy, ret_identity);
}

static bool keep_table(struct python_code_at *at, const uint8_t *table, uint32_t bytes)
{
	uint8_t *copy = realloc(at->table, bytes ? bytes : 1);

	if (!copy)
		return false;
	memcpy(copy, table, bytes);
	at->table = copy;
	at->table_bytes = bytes;
	return true;
}

/* Everything about a code whose identity is known. */
static bool read_code(struct ts_python_reader *python, struct python_code_at *at)
{
	struct python_codes *codes = &python->codes;
	struct ts_python_code_text text;

	at->code = NULL;
	free(at->lines);
	at->lines = NULL;
	at->copy_count = 0;
	if (!codes->scratch && !(codes->scratch = malloc(TABLE_BYTES)))
		return false;
	if (!ts_python_code_read(&python->view, &at->identity, &text, codes->scratch, TABLE_BYTES))
		return false;
	at->instructions = text.instructions;
	at->instruction_bytes =
		text.instruction_bytes < MAX_INSTRUCTION_BYTES ? text.instruction_bytes : 0;
	if (!keep_table(at, codes->scratch, text.table_bytes))
		return false;
	at->code = intern(codes, text.name, text.file, at->identity.first_line);
	return at->code != NULL;
}

static bool is_same(const struct ts_python_code_identity *a,
		    const struct ts_python_code_identity *b)
{
	return a->name == b->name && a->file == b->file && a->line_table == b->line_table &&
	       a->first_line == b->first_line;
}

/* Synthetic code: what runs after __init__ (3.12 on). Not traceable. */
static bool is_hidden(const struct ts_python_layout *layout, const struct python_code_at *at,
		      const void *copy)
{
	uint16_t offset = layout->code.first_traceable;

	return offset != TS_PYTHON_NONE && offset + 4u <= layout->code.bytes && at->code &&
	       2 * (uint64_t)ts_python_half_of(copy, offset) >= at->instruction_bytes;
}

static void renew(struct ts_python_reader *python, struct python_code_at *at, const void *copy,
		  int64_t now_ns)
{
	struct ts_python_code_identity identity;

	if (!identify(python, at->identity.address, copy, &identity)) {
		at->code = NULL;
	} else if (!at->code || !is_same(&identity, &at->identity)) {
		at->identity = identity;
		read_code(python, at);
		at->is_hidden = is_hidden(&python->runtime_info.layout, at, copy);
	}
	at->checked_ns = now_ns;
	at->generation = python->codes.generation;
}

struct python_code_at *ts_python_code_at(struct ts_python_reader *python, uint64_t address)
{
	struct python_code_at *at;
	uint64_t value;

	if (ts_map_get(&python->codes.at, address, &value))
		return (struct python_code_at *)(uintptr_t)value;
	at = calloc(1, sizeof(*at));
	if (!at || ts_map_put(&python->codes.at, address, (uint64_t)(uintptr_t)at)) {
		free(at);
		return NULL;
	}
	at->identity.address = address;
	return at;
}

/* ---- checking ---- */

int ts_python_code_note(struct ts_python_reader *python, struct python_code_at *at, int64_t now_ns)
{
	struct python_codes *codes = &python->codes;

	if (at->is_noted)
		return TS_OK;
	if (at->code && codes->generation && at->generation == codes->generation)
		return TS_OK;
	if (at->code && !codes->generation && now_ns - at->checked_ns < RECHECK_NS)
		return TS_OK;
	if (ts_grow_array((void **)&codes->noted, &codes->noted_capacity, codes->noted_count + 1,
			  sizeof(struct python_code_at *)))
		return TS_ENOMEM;
	codes->noted[codes->noted_count++] = at;
	at->is_noted = true;
	return TS_OK;
}

static int read_noted(struct ts_python_reader *python, size_t bytes)
{
	struct python_codes *codes = &python->codes;

	if (ts_grow_array((void **)&codes->copies, &codes->copies_capacity,
			  codes->noted_count * bytes, 1) ||
	    ts_grow_array((void **)&codes->ranges, &codes->range_capacity, codes->noted_count,
			  sizeof(*codes->ranges)))
		return TS_ENOMEM;
	for (size_t i = 0; i < codes->noted_count; i++)
		codes->ranges[i] =
			(struct ts_python_memory_range){ codes->noted[i]->identity.address,
							 codes->copies + i * bytes,
							 (uint32_t)bytes };
	return TS_OK;
}

int ts_python_codes_check(struct ts_python_reader *python, int64_t now_ns)
{
	struct python_codes *codes = &python->codes;
	size_t bytes = python->runtime_info.layout.code.bytes, done = 0;
	int status = TS_OK;

	if (!codes->noted_count)
		return TS_OK;
	if (read_noted(python, bytes))
		status = TS_ENOMEM;
	while (done < codes->noted_count && status != TS_ENOMEM) {
		int got = ts_python_memory_read_ranges(&python->memory, codes->ranges + done,
						       codes->noted_count - done);

		for (int i = 0; i < got; i++)
			renew(python, codes->noted[done + (size_t)i],
			      codes->ranges[done + (size_t)i].copy, now_ns);
		done += got > 0 ? (size_t)got : 0;
		if (done < codes->noted_count)
			codes->noted[done++]->code = NULL;
	}
	for (size_t i = 0; i < codes->noted_count; i++) {
		codes->noted[i]->is_noted = false;
		if (!codes->noted[i]->code && !status)
			status = TS_ENOTFOUND;
	}
	codes->noted_count = 0;
	return status;
}

/* ---- instructions ---- */

/* Address of the instruction copy that a thread of a free-threaded build runs; 0: unknown. */
static uint64_t copy_address(struct ts_python_reader *python, struct python_code_at *at,
			     uint32_t index)
{
	uint64_t array, count, address = 0;
	uint64_t *copies;

	if (index < at->copy_count && at->copies[index])
		return at->copies[index];
	if (index >= MAX_COPIES ||
	    !ts_python_memory_read_pointer(
		    &python->memory,
		    at->identity.address + python->runtime_info.layout.code.thread_instructions,
		    &array) ||
	    !ts_python_memory_read_pointer(&python->memory, array, &count) || index >= count ||
	    !ts_python_memory_read_pointer(&python->memory, array + 8 + (uint64_t)index * 8,
					   &address))
		return 0;
	if (index >= at->copy_count) {
		copies = realloc(at->copies, (index + 1) * sizeof(*copies));
		if (!copies)
			return 0;
		memset(copies + at->copy_count, 0, (index + 1 - at->copy_count) * sizeof(*copies));
		at->copies = copies;
		at->copy_count = index + 1;
	}
	at->copies[index] = address;
	return address;
}

static uint64_t first_instruction(struct ts_python_reader *python, struct python_code_at *at,
				  const struct ts_python_raw_frame *frame)
{
	if (!frame->code_index ||
	    python->runtime_info.layout.code.thread_instructions == TS_PYTHON_NONE)
		return at->instructions;
	return copy_address(python, at, frame->code_index);
}

bool ts_python_code_has(struct ts_python_reader *python, struct python_code_at *at,
			const struct ts_python_raw_frame *frame, int64_t *ret_offset)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint64_t first;
	int64_t offset;

	if (!at->code)
		return false;
	first = first_instruction(python, at, frame);
	offset = ts_python_instruction_offset(layout, first, frame->instruction);
	if (layout->frames != TS_PYTHON_FRAME_OBJECTS && offset < 0 &&
	    frame->instruction + 2 != first)
		return false;
	if (!first ||
	    offset >= (at->instruction_bytes ? (int64_t)at->instruction_bytes : MAX_OFFSET))
		return false;
	*ret_offset = offset;
	return true;
}

static bool make_lines(struct python_code_at *at)
{
	size_t count = at->instruction_bytes / 2;

	at->lines = ts_alloc_array(count, sizeof(*at->lines));
	for (size_t i = 0; at->lines && i < count; i++)
		at->lines[i] = LINE_UNKNOWN;
	return at->lines != NULL;
}

/* Prologue instructions have no line: use the function's first one. */
static int32_t line_at(const struct ts_python_layout *layout, const struct python_code_at *at,
		       uint32_t offset)
{
	int32_t line = ts_python_line(layout->lines, at->table, at->table_bytes,
				      at->identity.first_line, offset);

	for (uint32_t before = 2; !line && before <= TS_MIN(offset, LOOK_BACK_BYTES); before += 2)
		line = ts_python_line(layout->lines, at->table, at->table_bytes,
				      at->identity.first_line, offset - before);
	return line ? line : at->identity.first_line;
}

int32_t ts_python_code_line(const struct ts_python_layout *layout, struct python_code_at *at,
			    int64_t offset)
{
	int32_t *line;

	if (offset < 0)
		return at->identity.first_line;
	if (offset / 2 >= at->instruction_bytes / 2 || (!at->lines && !make_lines(at)))
		return line_at(layout, at, (uint32_t)offset);
	line = &at->lines[offset / 2];
	if (*line == LINE_UNKNOWN)
		*line = line_at(layout, at, (uint32_t)offset);
	return *line;
}
