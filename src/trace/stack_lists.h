/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks and frames for exporters and analyses: a stack as a list of frames, a frame as text, equal
 * frames merged. The trace may be hostile.
 */
#ifndef TS_TRACE_STACK_LISTS_H
#define TS_TRACE_STACK_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/map.h"
#include "base/text.h"

/*
 * A frame number is the id of a frame, with an inline depth in its upper bits: the `depth` of rows
 * of `symbol`, 0 for the innermost function. A frame without such rows has depth 0 only. A negative
 * number is not a frame but the negated id of a string: a kernel below the stack that launched it.
 */
#define TS_FRAME_DEPTH_SHIFT 40

static inline int64_t ts_frame_at_depth(int64_t frame, uint32_t depth)
{
	return frame | (int64_t)depth << TS_FRAME_DEPTH_SHIFT;
}

/* Of a string's id, which may be any number in a corrupt trace. */
static inline int64_t ts_frame_of_string(int64_t string)
{
	return string >= 0 ? -string : -INT64_MAX;
}

/* The number of functions, inlined ones included, of a frame: at least 1. */
uint32_t ts_frame_function_count(struct ts_reader *reader, int64_t frame);

/*
 * The frames of a stack, outermost first, with inlined functions as frames of their own. A zeroed
 * struct is empty.
 */
struct ts_stack_list {
	int64_t *frames; /* see above; 0: the stack's row is missing */
	size_t count, capacity;
};

/* 0 or TS_ENOMEM. Stack 0 has no frames. */
int ts_stack_list_load(struct ts_stack_list *path, struct ts_reader *reader, int64_t stack);
void ts_stack_list_release(struct ts_stack_list *path);

/* A frame's row, or a placeholder if it is missing. */
const struct ts_frame_row *ts_frame_get(struct ts_reader *reader, int64_t frame);

/*
 * Is the innermost frame a device instruction? Such a frame has the function and the offset in it.
 */
bool ts_stack_is_instruction(struct ts_reader *reader, int64_t stack);

/* The function alone; "": not known. */
struct ts_string ts_frame_name(struct ts_reader *reader, int64_t frame);

/* The innermost function of a stack; "" for an empty stack. */
struct ts_string ts_stack_leaf_name(struct ts_reader *reader, int64_t stack);

/* Function, else binary and address ("libfoo.so+0x1234"), not escaped. Never empty. */
void ts_frame_append_function(struct ts_reader *reader, struct ts_text *out, int64_t frame);

/*
 * Source file, or for native code the binary; "": not known. Valid until ts_reader_trim().
 */
struct ts_string ts_frame_file(struct ts_reader *reader, int64_t frame);

/* The binary; "": none, or not known. */
struct ts_string ts_frame_module(struct ts_reader *reader, int64_t frame);

/*
 * The source line, or TS_ABSENT. Native frames have one once they are symbolized.
 */
int64_t ts_frame_line(struct ts_reader *reader, int64_t frame);

/* The same function of the same file? Lines do not matter. */
bool ts_frame_same_function(struct ts_reader *reader, int64_t frame, int64_t other);

/*
 * The part of a path that identifies the file for people: below site-packages or the standard
 * library, else the last component.
 */
const char *ts_frame_short_file(struct ts_string path, size_t *ret_length);

/* "name (number)" of a process or thread; shorter for main threads and those without a name. */
void ts_thread_append_process(struct ts_reader *reader, struct ts_text *out, int64_t thread);
void ts_thread_append_name(struct ts_reader *reader, struct ts_text *out, int64_t thread);

/* ---- equal frames ---- */

/*
 * Numbers frames from 0 on, in the order of first use. Frames with equal function, file and line
 * (or any line) share a number, even if the trace stores their texts twice.
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
