/* SPDX-License-Identifier: Apache-2.0 */
/* Merges native and Python stacks. */
#include "sample/python/merge_stacks.h"

struct merging {
	const struct ts_python_frame *python;
	size_t python_count, python_at; /* frames up to here are left out */
	struct ts_sample_frame *frames;
	size_t count, capacity;
};

static void put(struct merging *merging, struct ts_sample_frame frame)
{
	if (merging->count < merging->capacity)
		merging->frames[merging->count++] = frame;
}

/* The Python frames run by one loop. */
static void put_run(struct merging *merging)
{
	while (merging->python_at < merging->python_count) {
		const struct ts_python_frame *frame = &merging->python[merging->python_at++];

		put(merging,
		    (struct ts_sample_frame){ .python = frame->code, .line = frame->line });
		if (frame->flags & TS_PYTHON_FRAME_ENTRY)
			return;
	}
}

/* The innermost function is where the time goes: it stays, unless it is the loop itself. */
static void put_native(struct merging *merging, const struct ts_native_frame *frame)
{
	if (merging->count > 0 && frame->code->is_glue)
		return;
	put(merging, (struct ts_sample_frame){ .native = frame->code, .pc = frame->pc });
}

/* Outermost frames without the entry flag belong to no known loop. */
static size_t count_runs(const struct ts_python_frame *frames, size_t count)
{
	size_t runs = 0;

	for (size_t i = 0; i < count; i++)
		runs += frames[i].flags & TS_PYTHON_FRAME_ENTRY;
	return runs;
}

static size_t count_loops(const struct ts_native_frame *frames, size_t count)
{
	size_t loops = 0;

	for (size_t i = 0; i < count; i++)
		loops += frames[i].code->is_python_eval;
	return loops;
}

/*
 * The innermost frames to leave out together with `loops` loops: also the callers of the last one,
 * since what they call may have changed.
 */
static size_t skip_loops(const struct ts_native_frame *frames, size_t count, size_t loops)
{
	size_t at = 0;

	if (loops == 0)
		return 0;
	while (at < count && loops > 0)
		loops -= frames[at++].code->is_python_eval;
	while (at < count && !frames[at].code->is_python_eval)
		at++;
	return at;
}

/*
 * How many of the innermost Python runs and loops to leave out of the merge. False: nothing can be
 * merged.
 */
static bool align(size_t loops, size_t runs, bool complete, size_t *ret_runs, size_t *ret_loops)
{
	size_t common = TS_MIN(loops, runs);

	*ret_runs = *ret_loops = 0;
	if (loops == runs || (!complete && loops < runs))
		return true;
	if (!complete || common == 0)
		return false;
	/* The innermost common one may have changed. */
	*ret_runs = runs - (common - 1);
	*ret_loops = loops - (common - 1);
	return common > 1;
}

size_t ts_merge_stacks(const struct ts_native_frame *native, size_t native_count, bool complete,
		       const struct ts_python_frame *python, size_t python_count,
		       struct ts_sample_frame *ret_frames, size_t capacity)
{
	struct merging merging = { .python = python,
				   .python_count = python_count,
				   .frames = ret_frames,
				   .capacity = capacity };
	size_t loops = count_loops(native, native_count);
	size_t skipped_runs, skipped_loops, at;

	if (!align(loops, count_runs(python, python_count), complete, &skipped_runs,
		   &skipped_loops))
		native_count = 0;
	while (skipped_runs-- > 0)
		put_run(&merging);
	at = skip_loops(native, native_count, skipped_loops);
	for (; at < native_count; at++) {
		if (native[at].code->is_python_eval)
			put_run(&merging);
		else
			put_native(&merging, &native[at]);
	}
	while (merging.python_at < merging.python_count)
		put_run(&merging);
	return merging.count;
}
