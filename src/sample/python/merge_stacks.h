/* SPDX-License-Identifier: Apache-2.0 */
/* One stack out of a thread's native and Python ones, which were read one after the other. */
#ifndef TS_SAMPLE_PYTHON_MERGE_STACKS_H
#define TS_SAMPLE_PYTHON_MERGE_STACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "code/unwind.h"
#include "python/reader/python_reader.h"
#include "sample/python/python_sampler.h"

/*
 * Innermost first; the number of frames, at most `room` (the outermost are left out then). Each
 * frame of the interpreter's loop becomes the Python frames that it runs: those up to one with
 * TS_PYTHON_FRAME_ENTRY. Native frames that only lead from one to the next, and those that start
 * programs and threads, are left out; those of extension modules and libraries stay.
 *
 * The thread went on between the two readings, so that they need not fit. As many loops as entries,
 * or fewer and the native stack not whole: they fit. Else what they have in common at the outer end
 * is merged, but for the innermost of that, and the rest is Python's alone; without a whole native
 * stack all is. Python frames are never left out, nor native ones put where they were not seen.
 */
size_t ts_merge_stacks(const struct ts_native_frame *native, size_t native_count, bool whole,
		       const struct ts_python_frame *python, size_t python_count,
		       struct ts_sample_frame *ret_frames, size_t room);

#endif
