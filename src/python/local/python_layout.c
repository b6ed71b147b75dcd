/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of one process: from the tables of its version, and since 3.13 from its own runtime
 * (_Py_DebugOffsets). That is untrusted: a number that does not fit its structure invalidates all
 * of it. libc only, no heap.
 */
#include <string.h>

#include <tracesmith/error.h>

#include "python/local/python_layout_internal.h"

#define HEADER_BYTES 16 /* of an object */
#define FREE_THREADED_HEADER_BYTES 32
#define MAX_STRUCTURE (1u << 24) /* bytes; the runtime has half a million */
#define MAX_OFFSET 4096u         /* in a structure other than the interpreter */

/* ---- what all versions share ---- */

/* Everything that begins with an object header, by that header's size. */
static void set_objects(struct ts_python_layout *layout, uint16_t header)
{
	unsigned int minor = layout->minor;

	layout->object.reference_count = header == HEADER_BYTES ? 0 : 16;
	layout->object.type = (uint16_t)(header - 8);
	layout->object.var_size = header;
	layout->object.bytes = header;
	layout->type.name = (uint16_t)(header + 8);
	layout->type.basic_size = (uint16_t)(header + 16);
	layout->type.flags = (uint16_t)(header + 152);
	layout->type.base = (uint16_t)(header + 240);
	layout->type.dictionary = (uint16_t)(header + 272);
	layout->unicode.length = header;
	layout->unicode.state = (uint16_t)(header + 16);
	layout->unicode.ascii_bytes = (uint16_t)(header + (minor < 12 ? 32 : 24));
	layout->unicode.compact_bytes = (uint16_t)(header + (minor < 12 ? 56 : 40));
	layout->unicode.kind_shift = header == HEADER_BYTES || minor < 14 ? 2 : 8;
	layout->tuple.items = (uint16_t)(header + (minor < 14 ? 8 : 16));
	layout->list.items = (uint16_t)(header + 8);
	layout->bytes.bytes = (uint16_t)(header + 16);
	layout->integer.size = header;
	layout->integer.digits = (uint16_t)(header + 8);
	layout->integer.size_shift = minor < 12 ? 0 : 3;
	layout->real.value = header;
}

/* Call instructions cache the version of the function they called last (3.11 on). */
static void set_function(struct ts_python_layout *layout, uint16_t header)
{
	unsigned int minor = layout->minor;

	layout->function.code = (uint16_t)(header + 32);
	layout->function.version = TS_PYTHON_NONE;
	if (minor < 11)
		return;
	layout->function.version = (uint16_t)(header + (minor < 12 ? 112 : minor < 14 ? 120 : 128));
	/* 3.11 and 3.12 point at the last cache entry. */
	layout->function.call_cache = minor < 12 ? -4 : minor < 13 ? -2 : 4;
}

static void set_dict(struct ts_python_layout *layout, uint16_t header)
{
	bool is_log2 = layout->minor >= 11;

	layout->dict.used = header;
	layout->dict.keys = (uint16_t)(header + 16);
	layout->dict.values = (uint16_t)(header + 24);
	layout->dict.keys_size_is_log2 = is_log2;
	layout->dict.keys_size = 8;
	layout->dict.keys_log2_index = is_log2 ? 9 : TS_PYTHON_NONE;
	layout->dict.keys_kind = is_log2 ? 10 : TS_PYTHON_NONE;
	layout->dict.keys_count = is_log2 ? 24 : 32;
	layout->dict.keys_indices = is_log2 ? 32 : 40;
}

/* Extends the end to this member, if it exists. */
static void reach(uint32_t *end, uint32_t none, uint32_t offset, uint32_t bytes)
{
	if (offset != none && offset + bytes > *end)
		*end = offset + bytes;
}

/* How much of each structure has to be read. */
static void set_sizes(struct ts_python_layout *layout)
{
	uint32_t thread = 0, frame = 0, interpreter = 0;
	const uint16_t words[] = { layout->thread.next,
				   layout->thread.frame,
				   layout->thread.interpreter,
				   layout->thread.thread_id,
				   layout->thread.native_thread_id,
				   layout->thread.data_stack_limit,
				   layout->thread.status,
				   layout->thread.holds_gil,
				   layout->thread.gil_requested,
				   layout->thread.attached,
				   layout->thread.base_frame };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		reach(&thread, TS_PYTHON_NONE, words[i], 8);
	reach(&frame, TS_PYTHON_NONE, layout->frame.previous, 8);
	reach(&frame, TS_PYTHON_NONE, layout->frame.executable, 8);
	reach(&frame, TS_PYTHON_NONE, layout->frame.instruction, 8);
	reach(&frame, TS_PYTHON_NONE, layout->frame.stack_top, 8);
	reach(&frame, TS_PYTHON_NONE, layout->frame.function, 8);
	reach(&frame, TS_PYTHON_NONE, layout->frame.code_index, 4);
	reach(&frame, TS_PYTHON_NONE, layout->frame.owner, 2);
	reach(&frame, TS_PYTHON_NONE, layout->frame.state, 1);
	reach(&interpreter, TS_PYTHON_NONE_32, layout->interpreter.id, 8);
	reach(&interpreter, TS_PYTHON_NONE_32, layout->interpreter.next, 8);
	reach(&interpreter, TS_PYTHON_NONE_32, layout->interpreter.threads_head, 8);
	reach(&interpreter, TS_PYTHON_NONE_32, layout->interpreter.collecting, 8);
	reach(&interpreter, TS_PYTHON_NONE_32, layout->interpreter.modules, 8);
	layout->thread.bytes = (uint16_t)thread;
	layout->frame.bytes = (uint16_t)((frame + 7) & ~7u);
	layout->interpreter.bytes = interpreter;
	layout->code.first_traceable = TS_PYTHON_NONE;
	if (layout->frames != TS_PYTHON_FRAME_OBJECTS)
		layout->code.first_traceable =
			(uint16_t)(layout->code.instructions - 16 -
				   (layout->code.thread_instructions != TS_PYTHON_NONE ? 8 : 0));
	layout->chunk.previous = 0;
	layout->chunk.bytes = 8;
	layout->chunk.top = 16;
	layout->chunk.data = 24;
}

static void start(struct ts_python_layout *layout, unsigned int minor, uint16_t header)
{
	*layout = ts_python_layouts[minor - TS_PYTHON_OLDEST_MINOR];
	set_objects(layout, header);
	set_dict(layout, header);
	set_function(layout, header);
}

bool ts_python_layout_of_version(struct ts_python_layout *ret_layout, unsigned int minor,
				 bool is_debug)
{
	if (minor < TS_PYTHON_OLDEST_MINOR || minor > 12)
		return false;
	start(ret_layout, minor, HEADER_BYTES);
	set_sizes(ret_layout);
	ret_layout->is_debug = is_debug;
	return true;
}

/* ---- debug offsets of a runtime ---- */

#define FIRST_WITH_OFFSETS 13
#define OFFSET_VERSIONS (TS_PYTHON_NEWEST_MINOR - FIRST_WITH_OFFSETS + 1)

/* Words of _Py_DebugOffsets, which grows in the middle with each minor version; 0: missing. */
enum debug_offset {
	T_FREE_THREADED,
	T_RUNTIME_SIZE,
	T_INTERPRETER_SIZE,
	T_GC,
	T_GC_COLLECTING,
	T_GC_FRAME,
	T_GIL,
	T_GIL_LOCKED,
	T_GIL_HOLDER,
	T_THREAD_SIZE,
	T_FRAME_SIZE,
	T_CODE_SIZE,
	T_OBJECT_SIZE,
	T_COUNT,
};
static const uint8_t debug_offset_words[T_COUNT][OFFSET_VERSIONS] = {
	[T_FREE_THREADED] = { 2, 2, 2 },    [T_RUNTIME_SIZE] = { 3, 3, 3 },
	[T_INTERPRETER_SIZE] = { 6, 6, 6 }, [T_GC] = { 10, 11, 11 },
	[T_GC_COLLECTING] = { 72, 82, 95 }, [T_GC_FRAME] = { 0, 0, 96 },
	[T_GIL] = { 15, 16, 16 },           [T_GIL_LOCKED] = { 17, 18, 18 },
	[T_GIL_HOLDER] = { 18, 19, 19 },    [T_THREAD_SIZE] = { 19, 22, 22 },
	[T_FRAME_SIZE] = { 28, 31, 39 },    [T_CODE_SIZE] = { 34, 39, 47 },
	[T_OBJECT_SIZE] = { 44, 50, 58 },
};

/* Members taken as reported. `within`: the size that bounds it. */
#define MEMBER(member, bound, first, second, third)                            \
	{                                                                      \
		offsetof(struct ts_python_layout, member),                     \
			sizeof(((struct ts_python_layout *)0)->member), bound, \
		{                                                              \
			first, second, third                                   \
		}                                                              \
	}
static const struct {
	uint16_t at;
	uint8_t bytes;
	uint8_t within; /* enum debug_offset; T_COUNT: MAX_OFFSET */
	uint8_t words[OFFSET_VERSIONS];
} members[] = {
	MEMBER(runtime.interpreters_head, T_RUNTIME_SIZE, 5, 5, 5),
	MEMBER(interpreter.id, T_INTERPRETER_SIZE, 7, 7, 7),
	MEMBER(interpreter.next, T_INTERPRETER_SIZE, 8, 8, 8),
	MEMBER(interpreter.threads_head, T_INTERPRETER_SIZE, 9, 9, 9),
	MEMBER(interpreter.threads_main, T_INTERPRETER_SIZE, 0, 10, 10),
	MEMBER(interpreter.modules, T_INTERPRETER_SIZE, 11, 12, 12),
	MEMBER(interpreter.gil, T_INTERPRETER_SIZE, 14, 15, 15),
	MEMBER(interpreter.code_generation, T_INTERPRETER_SIZE, 0, 20, 20),
	MEMBER(thread.previous, T_THREAD_SIZE, 20, 23, 23),
	MEMBER(thread.next, T_THREAD_SIZE, 21, 24, 24),
	MEMBER(thread.interpreter, T_THREAD_SIZE, 22, 25, 25),
	MEMBER(thread.frame, T_THREAD_SIZE, 23, 26, 26),
	MEMBER(thread.base_frame, T_THREAD_SIZE, 0, 0, 27),
	MEMBER(thread.thread_id, T_THREAD_SIZE, 24, 27, 30),
	MEMBER(thread.native_thread_id, T_THREAD_SIZE, 25, 28, 31),
	MEMBER(thread.data_stack_chunk, T_THREAD_SIZE, 26, 29, 32),
	MEMBER(thread.status, T_THREAD_SIZE, 27, 30, 33),
	MEMBER(thread.holds_gil, T_THREAD_SIZE, 0, 0, 34),
	MEMBER(thread.gil_requested, T_THREAD_SIZE, 0, 0, 35),
	MEMBER(frame.previous, T_FRAME_SIZE, 29, 32, 40),
	MEMBER(frame.executable, T_FRAME_SIZE, 30, 33, 41),
	MEMBER(frame.instruction, T_FRAME_SIZE, 31, 34, 42),
	MEMBER(frame.locals, T_FRAME_SIZE, 32, 35, 43),
	MEMBER(frame.owner, T_FRAME_SIZE, 33, 36, 44),
	MEMBER(frame.stack_top, T_FRAME_SIZE, 0, 37, 45),
	MEMBER(code.file, T_CODE_SIZE, 35, 40, 48),
	MEMBER(code.name, T_CODE_SIZE, 36, 41, 49),
	MEMBER(code.qualified_name, T_CODE_SIZE, 37, 42, 50),
	MEMBER(code.line_table, T_CODE_SIZE, 38, 43, 51),
	MEMBER(code.first_line, T_CODE_SIZE, 39, 44, 52),
	MEMBER(code.argument_count, T_CODE_SIZE, 40, 45, 53),
	MEMBER(code.local_names, T_CODE_SIZE, 41, 46, 54),
	MEMBER(code.local_kinds, T_CODE_SIZE, 42, 47, 55),
	MEMBER(code.instructions, T_CODE_SIZE, 43, 48, 56),
	MEMBER(object.type, T_OBJECT_SIZE, 45, 51, 59),
	MEMBER(type.name, T_COUNT, 47, 53, 61),
	MEMBER(type.flags, T_COUNT, 49, 55, 63),
	MEMBER(type.basic_size, T_COUNT, 0, 0, 64),
	MEMBER(type.dictionary, T_COUNT, 0, 0, 65),
	MEMBER(tuple.items, T_COUNT, 51, 57, 69),
	MEMBER(object.var_size, T_COUNT, 52, 58, 70),
	MEMBER(list.items, T_COUNT, 54, 60, 72),
	MEMBER(dict.keys, T_COUNT, 57, 67, 79),
	MEMBER(dict.values, T_COUNT, 58, 68, 80),
	MEMBER(real.value, T_COUNT, 60, 70, 82),
	MEMBER(integer.size, T_COUNT, 62, 72, 84),
	MEMBER(integer.digits, T_COUNT, 63, 73, 85),
	MEMBER(bytes.bytes, T_COUNT, 66, 76, 88),
	MEMBER(unicode.state, T_COUNT, 68, 78, 90),
	MEMBER(unicode.length, T_COUNT, 69, 79, 91),
	MEMBER(unicode.ascii_bytes, T_COUNT, 70, 80, 92),
	MEMBER(unicode.compact_bytes, T_COUNT, 0, 0, 93),
};
/* Free-threaded builds only: 0 elsewhere, which is not an offset. */
static const uint8_t thread_instructions_word[OFFSET_VERSIONS] = { 0, 49, 57 };
static const uint8_t code_index_word[OFFSET_VERSIONS] = { 0, 38, 46 };

struct runtime_words {
	const uint8_t *bytes;
	size_t count; /* of words */
	unsigned int column;
	unsigned int missing; /* a word that it does not have yet, so that all later ones are one
				 lower; 0: none */
};

/* UINT64_MAX: missing. */
static uint64_t word_at(const struct runtime_words *words, unsigned int index)
{
	uint64_t value;

	if (words->missing && index > words->missing)
		index--;
	if (!index || index >= words->count)
		return UINT64_MAX;
	memcpy(&value, words->bytes + index * 8, sizeof(value));
	return value;
}

static uint64_t debug_offset(const struct runtime_words *words, enum debug_offset what)
{
	return word_at(words, debug_offset_words[what][words->column]);
}

static bool take_members(struct ts_python_layout *layout, const struct runtime_words *words)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		unsigned int index = members[i].words[words->column];
		uint64_t bound = members[i].within == T_COUNT
					 ? MAX_OFFSET
					 : debug_offset(words, members[i].within);
		uint64_t value = word_at(words, index);
		uint16_t narrow = (uint16_t)value;
		uint32_t wide = (uint32_t)value;

		if (!index)
			continue;
		if (value >= bound || (members[i].bytes == 2 && value >= TS_PYTHON_NONE))
			return false;
		memcpy((char *)layout + members[i].at,
		       members[i].bytes == 2 ? (const void *)&narrow : (const void *)&wide,
		       members[i].bytes);
	}
	return true;
}

/* Values reported in parts, and derived ones. */
static bool take_rest(struct ts_python_layout *layout, const struct runtime_words *words)
{
	uint64_t interpreter = debug_offset(words, T_INTERPRETER_SIZE),
		 gc = debug_offset(words, T_GC);
	uint64_t collecting = debug_offset(words, T_GC_COLLECTING),
		 frame = debug_offset(words, T_GC_FRAME);
	uint64_t gil = debug_offset(words, T_GIL), locked = debug_offset(words, T_GIL_LOCKED);
	uint64_t holder = debug_offset(words, T_GIL_HOLDER);

	if (gc >= interpreter || collecting >= interpreter - gc || gil >= interpreter ||
	    locked < gil || locked - gil > MAX_OFFSET || holder < gil || holder - gil > MAX_OFFSET)
		return false;
	layout->interpreter.collecting = (uint32_t)(gc + collecting);
	if (frame < interpreter - gc)
		layout->interpreter.collecting_frame = (uint32_t)(gc + frame);
	layout->gil.locked = (uint16_t)(locked - gil);
	layout->gil.last_holder = (uint16_t)(holder - gil);
	layout->runtime.main_interpreter = (uint16_t)(layout->runtime.interpreters_head + 8);
	layout->thread.data_stack_top = (uint16_t)(layout->thread.data_stack_chunk + 8);
	layout->thread.data_stack_limit = (uint16_t)(layout->thread.data_stack_chunk + 16);
	layout->code.bytes = layout->code.instructions;
	if (layout->code.bytes < layout->object.type + 8u || layout->frame.owner < 2)
		return false;
	return layout->thread.data_stack_limit + 8u <= debug_offset(words, T_THREAD_SIZE);
}

/* Free-threaded builds: which copy of a code a frame runs, and which threads may run. */
static void take_free_threaded(struct ts_python_layout *layout, const struct runtime_words *words)
{
	static const uint8_t after_status[OFFSET_VERSIONS] = { 8, 12, 16 };
	uint64_t code_index = word_at(words, code_index_word[words->column]);
	uint64_t instructions = word_at(words, thread_instructions_word[words->column]);

	layout->frame.in_generator += FREE_THREADED_HEADER_BYTES - HEADER_BYTES;
	layout->thread.attached = (uint16_t)(layout->thread.status + after_status[words->column]);
	if (code_index && code_index < debug_offset(words, T_FRAME_SIZE))
		layout->frame.code_index = (uint16_t)code_index;
	if (instructions && instructions < debug_offset(words, T_CODE_SIZE))
		layout->code.thread_instructions = (uint16_t)instructions;
}

static bool are_sizes_sound(const struct runtime_words *words)
{
	return debug_offset(words, T_RUNTIME_SIZE) < MAX_STRUCTURE &&
	       debug_offset(words, T_INTERPRETER_SIZE) < MAX_STRUCTURE &&
	       debug_offset(words, T_THREAD_SIZE) < MAX_OFFSET &&
	       debug_offset(words, T_FRAME_SIZE) < MAX_OFFSET &&
	       debug_offset(words, T_CODE_SIZE) < MAX_OFFSET &&
	       debug_offset(words, T_OBJECT_SIZE) <= 64;
}

/* False: implausible numbers. */
static bool take(struct ts_python_layout *layout, unsigned int minor,
		 const struct runtime_words *words)
{
	bool is_free_threaded = debug_offset(words, T_FREE_THREADED) == 1;

	if (!are_sizes_sound(words))
		return false;
	start(layout, minor, is_free_threaded ? FREE_THREADED_HEADER_BYTES : HEADER_BYTES);
	if (!take_members(layout, words) || !take_rest(layout, words))
		return false;
	layout->is_free_threaded = is_free_threaded;
	if (is_free_threaded)
		take_free_threaded(layout, words);
	set_sizes(layout);
	return true;
}

int ts_python_layout_of_runtime(struct ts_python_layout *ret_layout, const void *bytes,
				size_t count, uint64_t *ret_version)
{
	struct ts_python_layout layout;
	struct runtime_words words = { .bytes = bytes, .count = count / 8 };
	uint64_t version;
	unsigned int minor;

	if (count < 24 || memcmp(bytes, TS_PYTHON_COOKIE, 8) != 0)
		return TS_EFORMAT;
	version = word_at(&words, 1);
	minor = (unsigned int)(version >> 16 & 0xff);
	if (version >> 32 || minor < FIRST_WITH_OFFSETS)
		return TS_EFORMAT;
	*ret_version = version;
	if (version >> 24 != 3 || minor > TS_PYTHON_NEWEST_MINOR)
		return TS_EVERSION;
	words.column = minor - FIRST_WITH_OFFSETS;
	if (!take(&layout, minor, &words)) {
		/* Betas of 3.15 do not report last_profiled_frame_seq. */
		words.missing = version >> 8 == 0x030f00 ? 29 : 0;
		if (!words.missing || !take(&layout, minor, &words))
			return TS_EFORMAT;
	}
	*ret_layout = layout;
	return TS_OK;
}
