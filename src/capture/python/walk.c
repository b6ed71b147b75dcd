/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames one by one. Every address comes out of memory that may change at any time, so the number of steps is bounded and nothing is
 * taken for granted. Knows nothing of names and lines. libc only, no heap.
 */
#include "capture/python/walk.h"

#define MOST_STEPS (1u << 20) /* shims included */
#define MOST_FRAME_BYTES 512u /* of the fixed part, in every version */
#define TAG_BITS UINT64_C(7)  /* of a tagged reference: objects lie at multiples of 8 */

enum ts_python_frame_kind ts_python_frame_parse(const struct ts_python_layout *layout,
						uint64_t address, const void *copy,
						struct ts_python_raw_frame *ret_frame,
						uint64_t *ret_previous)
{
	uint64_t code = ts_python_word_of(copy, layout->frame.executable);
	uint8_t owner;

	*ret_previous = ts_python_word_of(copy, layout->frame.previous);
	ret_frame->address = address;
	ret_frame->code = layout->frame.executable_is_tagged ? code & ~TAG_BITS : code;
	ret_frame->flags = ret_frame->code_index = 0;
	ret_frame->function = 0;
	if (layout->frames == TS_PYTHON_FRAME_OBJECTS) {
		/* Until 3.10 each has a loop of its own. */
		ret_frame->flags = TS_PYTHON_RAW_ENTRY;
		ret_frame->instruction =
			(uint64_t)(int32_t)ts_python_half_of(copy, layout->frame.instruction);
		return TS_PYTHON_FRAME_THREAD;
	}
	ret_frame->instruction = ts_python_word_of(copy, layout->frame.instruction);
	ret_frame->function = ts_python_word_of(copy, layout->frame.function) & ~TAG_BITS;
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

int64_t ts_python_instruction_offset(const struct ts_python_layout *layout, uint64_t instructions,
				     uint64_t instruction)
{
	if (layout->frames != TS_PYTHON_FRAME_OBJECTS)
		return instruction < instructions ? -1 : (int64_t)(instruction - instructions);
	/* f_lasti: in bytes, from 3.10 on in instructions of two. */
	if ((int64_t)instruction < 0)
		return -1;
	return layout->minor >= 10 ? (int64_t)instruction * 2 : (int64_t)instruction;
}

/* The innermost frame; 0: there is none, or it cannot be read. */
static bool innermost(struct ts_python_process_view *view, uint64_t thread, uint64_t *ret_frame)
{
	const struct ts_python_layout *layout = view->layout;

	if (!ts_memory_read_pointer(view->memory, thread + layout->thread.frame, ret_frame))
		return false;
	if (layout->frames != TS_PYTHON_CFRAME)
		return true;
	return *ret_frame &&
	       ts_memory_read_pointer(view->memory, *ret_frame + layout->cframe.current_frame,
				      ret_frame);
}

size_t ts_python_walk(struct ts_python_process_view *view, uint64_t thread,
		      struct ts_python_raw_frame *ret_frames, size_t room, bool *ret_whole)
{
	const struct ts_python_layout *layout = view->layout;
	uint8_t copy[MOST_FRAME_BYTES];
	uint64_t at;
	size_t depth = 0;

	*ret_whole = false;
	if (layout->frame.bytes > sizeof(copy) || !innermost(view, thread, &at))
		return 0;
	for (unsigned int step = 0; at && step < MOST_STEPS; step++) {
		struct ts_python_raw_frame frame;
		enum ts_python_frame_kind kind;
		uint64_t previous;

		if (!ts_memory_read(view->memory, at, copy, layout->frame.bytes))
			return depth;
		kind = ts_python_frame_parse(layout, at, copy, &frame, &previous);
		if (kind == TS_PYTHON_FRAME_BAD || previous == at)
			return depth;
		if (kind == TS_PYTHON_FRAME_SHIM) {
			if (depth)
				ret_frames[depth - 1].flags |= TS_PYTHON_RAW_ENTRY;
		} else {
			if (depth == room)
				return depth;
			ret_frames[depth++] = frame;
		}
		at = previous;
	}
	*ret_whole = !at;
	return depth;
}
