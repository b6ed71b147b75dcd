/* SPDX-License-Identifier: Apache-2.0 */
/* Merges a thread's native and Python stacks, which were read one after the other. */
#ifndef TS_SAMPLE_PYTHON_MERGE_STACKS_H
#define TS_SAMPLE_PYTHON_MERGE_STACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "code/unwind.h"
#include "python/reader/python_reader.h"
#include "sample/python/python_sampler.h"

/*
 * Innermost first. Returns the number of frames, at most `capacity` (then the outermost are left
 * out). Each frame of the interpreter's loop is replaced by the Python frames it runs: those up to
 * one with TS_PYTHON_FRAME_ENTRY. Glue frames and program or thread startup are left out; frames of
 * extension modules and libraries stay.
 *
 * The thread ran between the two readings, so the stacks may not match. They match with as many
 * loops as entries, or with fewer and an incomplete native stack. Otherwise the common outer part
 * is merged, except its innermost run, and the rest is Python only; with an incomplete native
 * stack, all of it. Python frames are never left out, and native ones never put where they were not
 * seen.
 */
size_t ts_merge_stacks(const struct ts_native_frame *native, size_t native_count, bool complete,
		       const struct ts_python_frame *python, size_t python_count,
		       struct ts_sample_frame *ret_frames, size_t capacity);

#endif
