/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames in memory: parses one, and walks those of one thread. For the calling thread in our own
 * process (the agent), and for a sweep whose prediction was wrong. libc only, no heap.
 */
#ifndef TS_PYTHON_LOCAL_PYTHON_WALK_H
#define TS_PYTHON_LOCAL_PYTHON_WALK_H

#include <string.h>

#include "python/local/python_objects.h"

#define TS_PYTHON_RAW_ENTRY 1u  /* as TS_PYTHON_FRAME_ENTRY of python_reader.h */
#define TS_PYTHON_RAW_SURE 2u   /* python_stack.c: the caller shows evidence of this call */
#define TS_PYTHON_RAW_HIDDEN 4u /* python_sweep.c: not shown */

struct ts_python_raw_frame {
	uint64_t address;
	uint64_t code;        /* address of the code object */
	uint64_t instruction; /* raw: see ts_python_instruction_offset() */
	uint64_t function;    /* function object: 3.11 on, else 0 */
	uint32_t flags;
	uint32_t code_index; /* which copy of the code's instructions: free-threaded builds; else 0
			      */
};

enum ts_python_frame_kind {
	TS_PYTHON_FRAME_BAD,       /* an owner that no frame on a stack has */
	TS_PYTHON_FRAME_THREAD,    /* on the thread's data stack; 3.8 to 3.10: on the heap */
	TS_PYTHON_FRAME_GENERATOR, /* inside a generator or coroutine */
	TS_PYTHON_FRAME_SHIM,      /* not Python: native code entered the interpreter here */
};

/*
 * Innermost first. Returns their number, at most `capacity`. *ret_complete: the outermost frame was
 * reached. `thread`: address of the PyThreadState. Reliable only for a thread that does not run
 * meanwhile, such as the calling one.
 */
size_t ts_python_walk(struct ts_python_process_view *view, uint64_t thread,
		      struct ts_python_raw_frame *ret_frames, size_t capacity, bool *ret_complete);

/*
 * Byte offset of the running instruction in the code (`instructions`: address of the copy selected
 * by code_index). -1: not started yet; use its first line.
 */
int64_t ts_python_instruction_offset(const struct ts_python_layout *layout, uint64_t instructions,
				     uint64_t instruction);

static inline uint64_t ts_python_word_of(const void *copy, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)copy + offset, sizeof(word));
	return word;
}

static inline uint32_t ts_python_half_of(const void *copy, size_t offset)
{
	uint32_t half;

	memcpy(&half, (const char *)copy + offset, sizeof(half));
	return half;
}

#define TS_PYTHON_TAG_BITS UINT64_C(7) /* tag bits of a reference: objects are 8-byte aligned */

/*
 * Parses a frame from a copy of layout->frame.bytes bytes; *ret_previous: its caller, 0: none.
 * Inline, since the agent does little else.
 */
static inline enum ts_python_frame_kind ts_python_frame_parse(const struct ts_python_layout *layout,
							      uint64_t address, const void *copy,
							      struct ts_python_raw_frame *ret_frame,
							      uint64_t *ret_previous)
{
	uint64_t code = ts_python_word_of(copy, layout->frame.executable);
	uint8_t owner;

	*ret_previous = ts_python_word_of(copy, layout->frame.previous);
	ret_frame->address = address;
	ret_frame->code = layout->frame.executable_is_tagged ? code & ~TS_PYTHON_TAG_BITS : code;
	ret_frame->flags = ret_frame->code_index = 0;
	ret_frame->function = 0;
	if (layout->frames == TS_PYTHON_FRAME_OBJECTS) {
		/* Until 3.10 each frame has its own loop. */
		ret_frame->flags = TS_PYTHON_RAW_ENTRY;
		ret_frame->instruction =
			(uint64_t)(int32_t)ts_python_half_of(copy, layout->frame.instruction);
		return TS_PYTHON_FRAME_THREAD;
	}
	ret_frame->instruction = ts_python_word_of(copy, layout->frame.instruction);
	ret_frame->function = ts_python_word_of(copy, layout->frame.function) & ~TS_PYTHON_TAG_BITS;
	if (layout->frame.code_index != TS_PYTHON_NONE)
		ret_frame->code_index = ts_python_half_of(copy, layout->frame.code_index);
	owner = ((const uint8_t *)copy)[layout->frame.owner];
	if (owner == layout->frame.owner_c_stack || owner == layout->frame.owner_interpreter)
		return TS_PYTHON_FRAME_SHIM;
	if (layout->frame.is_entry != TS_PYTHON_NONE &&
	    ((const uint8_t *)copy)[layout->frame.is_entry])
		ret_frame->flags = TS_PYTHON_RAW_ENTRY;
	return owner == layout->frame.owner_thread      ? TS_PYTHON_FRAME_THREAD
	       : owner == layout->frame.owner_generator ? TS_PYTHON_FRAME_GENERATOR
							: TS_PYTHON_FRAME_BAD;
}

#endif
