/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks of imported files: frames are collected one by one, innermost or outermost first, and
 * become a stack of the trace, which is stored once.
 *
 *	struct ts_frame_list frames = { 0 };
 *	ts_frame_list_add(&frames, ts_writer_frame(writer, &row));
 *	sample.stack = ts_frame_list_inner_first(&frames, writer);
 *	ts_frame_list_clear(&frames);
 *	...
 *	ts_frame_list_release(&frames);
 */
#ifndef TS_IMPORT_COMMON_FRAME_LIST_H
#define TS_IMPORT_COMMON_FRAME_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <tracesmith/writer.h>

#include "base/memory.h"

/* A zeroed struct is an empty list. */
struct ts_frame_list {
	uint32_t *ids;
	size_t count, capacity;
};

static inline void ts_frame_list_clear(struct ts_frame_list *frames)
{
	frames->count = 0;
}

static inline void ts_frame_list_release(struct ts_frame_list *frames)
{
	free(frames->ids);
	*frames = (struct ts_frame_list){ 0 };
}

static inline int ts_frame_list_add(struct ts_frame_list *frames, uint32_t id)
{
	if (ts_grow_array((void **)&frames->ids, &frames->capacity, frames->count + 1,
			  sizeof(*frames->ids)))
		return TS_ENOMEM;
	frames->ids[frames->count++] = id;
	return TS_OK;
}

/* The stack of the frames; 0: no frames, or the writer has failed. */
static inline uint32_t ts_frame_list_inner_first(const struct ts_frame_list *frames,
						 struct ts_writer *writer)
{
	uint32_t stack = 0;

	for (size_t i = frames->count; i > 0; i--)
		stack = ts_writer_stack(writer, stack, frames->ids[i - 1]);
	return stack;
}

static inline uint32_t ts_frame_list_outer_first(const struct ts_frame_list *frames,
						 struct ts_writer *writer)
{
	uint32_t stack = 0;

	for (size_t i = 0; i < frames->count; i++)
		stack = ts_writer_stack(writer, stack, frames->ids[i]);
	return stack;
}

#endif
