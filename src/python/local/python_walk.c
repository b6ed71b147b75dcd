/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks frames one by one. Addresses come from memory that may change at any time, so the number of
 * steps is bounded and nothing is assumed. libc only, no heap.
 */
#include "python/local/python_walk.h"

#define MAX_STEPS (1u << 20) /* shims included */
#define MAX_FRAME_BYTES 512u /* size of the fixed part in every version */

int64_t ts_python_instruction_offset(const struct ts_python_layout *layout, uint64_t instructions,
				     uint64_t instruction)
{
	if (layout->frames != TS_PYTHON_FRAME_OBJECTS)
		return instruction < instructions ? -1 : (int64_t)(instruction - instructions);
	/* f_lasti: in bytes; since 3.10 in 2-byte instructions. */
	if ((int64_t)instruction < 0)
		return -1;
	return layout->minor >= 10 ? (int64_t)instruction * 2 : (int64_t)instruction;
}

/* The innermost frame; 0: none, or unreadable. */
static bool innermost(struct ts_python_process_view *view, uint64_t thread, uint64_t *ret_frame)
{
	const struct ts_python_layout *layout = view->layout;

	if (!ts_python_memory_read_pointer(view->memory, thread + layout->thread.frame, ret_frame))
		return false;
	if (layout->frames != TS_PYTHON_CFRAME)
		return true;
	return *ret_frame &&
	       ts_python_memory_read_pointer(view->memory,
					     *ret_frame + layout->cframe.current_frame, ret_frame);
}

size_t ts_python_walk(struct ts_python_process_view *view, uint64_t thread,
		      struct ts_python_raw_frame *ret_frames, size_t capacity, bool *ret_complete)
{
	const struct ts_python_layout *layout = view->layout;
	uint8_t copy[MAX_FRAME_BYTES];
	uint64_t at;
	size_t depth = 0;

	*ret_complete = false;
	if (layout->frame.bytes > sizeof(copy) || !innermost(view, thread, &at))
		return 0;
	for (unsigned int step = 0; at && step < MAX_STEPS; step++) {
		struct ts_python_raw_frame frame;
		enum ts_python_frame_kind kind;
		uint64_t previous;

		if (!ts_python_memory_read(view->memory, at, copy, layout->frame.bytes))
			return depth;
		kind = ts_python_frame_parse(layout, at, copy, &frame, &previous);
		if (kind == TS_PYTHON_FRAME_BAD || previous == at)
			return depth;
		if (kind == TS_PYTHON_FRAME_SHIM) {
			if (depth)
				ret_frames[depth - 1].flags |= TS_PYTHON_RAW_ENTRY;
		} else {
			if (depth == capacity)
				return depth;
			ret_frames[depth++] = frame;
		}
		at = previous;
	}
	*ret_complete = !at;
	return depth;
}
