/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks and frames of a trace as exporters and analyses want them: a stack as a list, a frame in
 * words, frames that say the same as one. The trace may be hostile.
 */
#ifndef TS_TRACE_STACK_LISTS_H
#define TS_TRACE_STACK_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/map.h"
#include "base/text.h"

/* Frames beyond this are left out, the outermost ones. */
#define TS_STACK_MAX_DEPTH 65536

/*
 * Where frames are asked for by number, this is the id of a frame, or one of the functions that a
 * compiler has inlined there: the id with a depth above it, as rows of `symbol` count it (0: the
 * innermost). A frame without such rows has depth 0 only. A negative number is no frame, but a text
 * by its id: a kernel below the stack that launched it.
 */
#define TS_STACK_DEPTH_SHIFT 40

static inline int64_t ts_stack_at_depth(int64_t frame, uint32_t depth)
{
	return frame | (int64_t)depth << TS_STACK_DEPTH_SHIFT;
}

/* How many functions a frame stands for: at least 1. */
uint32_t ts_stack_depths(struct ts_reader *reader, int64_t frame);

/*
 * The frames of a stack, outermost first, inlined functions each for itself. A zeroed struct is an
 * empty one.
 */
struct ts_stack_path {
	int64_t *frames; /* see above; of a stack that is lost, 0 */
	size_t count, capacity;
};

/* 0 or TS_ENOMEM. Stack 0 has no frames. */
int ts_stack_path(struct ts_stack_path *path, struct ts_reader *reader, int64_t stack);
void ts_stack_path_release(struct ts_stack_path *path);

/* A frame's row, or one that says that it is lost. */
const struct ts_frame_row *ts_stack_frame(struct ts_reader *reader, int64_t frame);

/*
 * Does the stack end at an instruction of a device? Its frame has the function, and the offset in
 * it.
 */
bool ts_stack_is_instruction(struct ts_reader *reader, int64_t stack);

/* The function alone; "": not known. */
struct ts_string ts_stack_name(struct ts_reader *reader, int64_t frame);

/* The innermost function of a stack; "" for an empty stack. */
struct ts_string ts_stack_leaf_name(struct ts_reader *reader, int64_t stack);

/* Function, else binary and address ("libfoo.so+0x1234"): as it is, not escaped. Never empty. */
void ts_stack_append_function(struct ts_reader *reader, struct ts_text *out, int64_t frame);

/*
 * Source file, or for native code the binary; "" where the trace does not say. Valid until a trim.
 */
struct ts_string ts_stack_file(struct ts_reader *reader, int64_t frame);

/* The binary; "" where there is none, or the trace does not say. */
struct ts_string ts_stack_module(struct ts_reader *reader, int64_t frame);

/*
 * A line for people, or TS_ABSENT; native frames have one where their names were found out later.
 */
int64_t ts_stack_line(struct ts_reader *reader, int64_t frame);

/* The same function of the same file? Lines do not matter. */
bool ts_stack_same_function(struct ts_reader *reader, int64_t frame, int64_t other);

/*
 * The part of a path that tells people which file it is: below site-packages or the standard
 * library, else the last component.
 */
const char *ts_stack_short_file(struct ts_string path, size_t *ret_length);

/* "name (number)" of a process or thread; of a main thread, or of one without a name, less. */
void ts_stack_append_process(struct ts_reader *reader, struct ts_text *out, int64_t thread);
void ts_stack_append_thread(struct ts_reader *reader, struct ts_text *out, int64_t thread);

/* ---- frames that say the same ---- */

/*
 * Frames of a trace by number, from 0 on, in the order in which they were asked for. Two of the
 * same function, file and line (or with any line) have the same one, also where a trace has stored
 * a text twice.
 */
struct ts_frame_keys {
	struct ts_reader *reader;
	bool with_lines;
	struct ts_strmap texts; /* function, file, line: the number */
	struct ts_map numbers;  /* frame id to number */
	int64_t *frames;        /* number to the id of one of them */
	size_t capacity;
	struct ts_text scratch;
};

void ts_frame_keys_init(struct ts_frame_keys *keys, struct ts_reader *reader, bool with_lines);
void ts_frame_keys_release(struct ts_frame_keys *keys);

/* TS_STRMAP_NONE: no memory. */
uint32_t ts_frame_key(struct ts_frame_keys *keys, int64_t frame);

static inline uint32_t ts_frame_keys_count(const struct ts_frame_keys *keys)
{
	return ts_strmap_count(&keys->texts);
}

#endif
