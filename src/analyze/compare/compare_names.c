/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the names of two works and collects the samples of each name. Two passes over each side,
 * one that counts and one that stores, keep memory to the samples alone.
 */
#include <string.h>

#include "analyze/compare/compare_internal.h"
#include "analyze/statistics.h"
#include "base/text.h"

#define STEP_NAME "step" /* of all steps, whatever their spans are called */

/* ---- keys ---- */

enum ts_compare_kind ts_compare_key_kind(const struct ts_compare_names *names, uint32_t key)
{
	return (enum ts_compare_kind)(ts_strmap_text(&names->texts, key, NULL)[0] - 'a');
}

const char *ts_compare_key_name(const struct ts_compare_names *names, uint32_t key)
{
	return ts_strmap_text(&names->texts, key, NULL) + 1;
}

/* Writes the letter of the kind and the name as compared into scratch. */
static void make_text(enum ts_compare_kind kind, const char *name, struct ts_text *scratch)
{
	size_t length;

	if (kind == TS_COMPARE_STEP)
		name = STEP_NAME;
	length = strlen(name);
	ts_text_clear(scratch);
	ts_text_append_char(scratch, (char)('a' + kind));
	ts_text_append(scratch, name, length);
}

static int new_key(struct ts_compare_names *names, struct ts_compare_side *side,
		   enum ts_compare_kind kind, uint32_t name, uint32_t *ret_key)
{
	TS_SCOPED(ts_text) text = { 0 };
	uint32_t key;

	make_text(kind, ts_work_text(side->work, name), &text);
	if (ts_text_status(&text))
		return TS_ENOMEM;
	key = ts_strmap_intern(&names->texts, text.data, text.length, NULL);
	if (key == TS_STRMAP_NONE)
		return TS_ENOMEM;
	*ret_key = key;
	return ts_map_put(&side->keys, (uint64_t)name << 8 | kind, key);
}

static int find_key(struct ts_compare_names *names, struct ts_compare_side *side,
		    enum ts_compare_kind kind, uint32_t name, uint32_t *ret_key)
{
	uint64_t key;

	if (!ts_map_get(&side->keys, (uint64_t)name << 8 | kind, &key))
		return new_key(names, side, kind, name, ret_key);
	*ret_key = (uint32_t)key;
	return TS_OK;
}

/* ---- steps ---- */

static int make_slots(struct ts_compare_side *side)
{
	const struct ts_work *work = side->work;
	struct ts_map numbers = { 0 };
	int result = TS_OK;

	side->slot_of_step = ts_alloc_array(work->step_count, sizeof(*side->slot_of_step));
	side->slot_ranks = ts_alloc_array(work->step_count, sizeof(*side->slot_ranks));
	if (!side->slot_of_step || !side->slot_ranks)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->step_count && !result; i++) {
		bool is_new;
		uint64_t *slot = ts_map_insert(&numbers, (uint64_t)work->steps[i].number, &is_new);

		if (!slot) {
			result = TS_ENOMEM;
			break;
		}
		if (is_new) {
			*slot = side->slot_count++;
			side->slot_ranks[*slot] = 0;
		}
		side->slot_of_step[i] = (uint32_t)*slot;
		side->slot_ranks[*slot]++;
	}
	ts_map_release(&numbers);
	return result;
}

/* The slot of the step that contains an instant of a rank. */
static uint32_t slot_at(const struct ts_compare_side *side, uint32_t rank, int64_t time)
{
	uint32_t step = ts_work_step_at(side->work, rank, time);

	return step == TS_WORK_NONE ? TS_COMPARE_NO_SLOT : side->slot_of_step[step];
}

/* ---- passes over the work ---- */

typedef void take_function(struct ts_compare_side *side, uint32_t key,
			   const struct ts_compare_sample *sample);

static void count_sample(struct ts_compare_side *side, uint32_t key,
			 const struct ts_compare_sample *sample)
{
	struct ts_compare_sum *sum = &side->sums[key];

	sum->count++;
	if (sample->ns == TS_ABSENT)
		return;
	sum->timed++;
	sum->total_ns = ts_ns_add(sum->total_ns, sample->ns);
}

/* Stores from the end: first[key + 1] counts down to the first sample. */
static void file_sample(struct ts_compare_side *side, uint32_t key,
			const struct ts_compare_sample *sample)
{
	side->samples[--side->first[key + 1]] = *sample;
}

static int64_t length_of(int64_t start, int64_t end)
{
	return TS_MAX(ts_ns_between(start, end), 0);
}

/* Makes space for the sums of keys below `count`; new ones are zero. */
static int reserve(struct ts_compare_side *side, size_t count)
{
	size_t had = side->sum_capacity;

	if (count <= had)
		return TS_OK;
	if (ts_grow_array((void **)&side->sums, &side->sum_capacity, count, sizeof(*side->sums)))
		return TS_ENOMEM;
	memset(side->sums + had, 0, (side->sum_capacity - had) * sizeof(*side->sums));
	return TS_OK;
}

static int take_name(struct ts_compare_names *names, struct ts_compare_side *side,
		     take_function *take, enum ts_compare_kind kind, uint32_t name,
		     const struct ts_compare_sample *sample)
{
	uint32_t key;

	if (find_key(names, side, kind, name, &key) || reserve(side, (size_t)key + 1))
		return TS_ENOMEM;
	take(side, key, sample);
	return TS_OK;
}

static enum ts_compare_kind command_kind(const struct ts_work_command *command)
{
	switch (command->kind) {
	case TS_GPU_OP_KERNEL:
	case TS_GPU_OP_COLLECTIVE:
		return TS_COMPARE_KERNEL;
	case TS_GPU_OP_COPY:
		return TS_COMPARE_COPY;
	case TS_GPU_OP_FILL:
		return TS_COMPARE_FILL;
	default:
		return TS_COMPARE_OTHER;
	}
}

static int walk_commands(struct ts_compare_names *names, struct ts_compare_side *side,
			 take_function *take)
{
	const struct ts_work *work = side->work;
	int result = TS_OK;

	for (uint32_t i = 0; i < work->command_count && !result; i++) {
		const struct ts_work_command *command = &work->commands[i];
		struct ts_compare_sample sample = {
			.ns = command->flags & TS_COMMAND_UNTIMED
				      ? TS_ABSENT
				      : length_of(command->start, command->end),
			.slot = command->step == TS_WORK_NONE ? TS_COMPARE_NO_SLOT
							      : side->slot_of_step[command->step],
		};

		result =
			take_name(names, side, take, command_kind(command), command->name, &sample);
	}
	return result;
}

static int walk_calls(struct ts_compare_names *names, struct ts_compare_side *side,
		      take_function *take)
{
	const struct ts_work *work = side->work;
	int result = TS_OK;

	for (uint32_t i = 0; i < work->call_count && !result; i++) {
		const struct ts_work_call *call = &work->calls[i];
		struct ts_compare_sample sample = {
			.ns = length_of(call->start, call->end),
			.slot = slot_at(side, call->rank, call->start),
		};

		result = take_name(names, side, take, TS_COMPARE_CALL, call->name, &sample);
	}
	return result;
}

static int walk_steps(struct ts_compare_names *names, struct ts_compare_side *side,
		      take_function *take)
{
	const struct ts_work *work = side->work;
	int result = TS_OK;

	for (uint32_t i = 0; i < work->step_count && !result; i++) {
		struct ts_compare_sample sample = {
			.ns = length_of(work->steps[i].start, work->steps[i].end),
			.slot = side->slot_of_step[i],
		};

		result = take_name(names, side, take, TS_COMPARE_STEP, 0, &sample);
	}
	return result;
}

static enum ts_compare_kind slice_kind(const struct ts_work_slice *slice)
{
	switch (slice->class) {
	case TS_SLICE_OP:
		return TS_COMPARE_OPERATOR;
	case TS_SLICE_ANNOTATION:
		return TS_COMPARE_ANNOTATION;
	case TS_SLICE_PYTHON:
		return TS_COMPARE_PYTHON;
	default:
		return TS_COMPARE_SLICE;
	}
}

static int walk_slices(struct ts_compare_names *names, struct ts_compare_side *side,
		       take_function *take)
{
	const struct ts_work *work = side->work;
	int result = TS_OK;

	for (uint32_t i = 0; i < work->slice_count && !result; i++) {
		const struct ts_work_slice *slice = &work->slices[i];
		struct ts_compare_sample sample;

		/* The span around an annotation's kernels, which are compared themselves. */
		if (slice->class == TS_SLICE_GPU_ANNOTATION || ts_work_is_step(work, slice))
			continue;
		sample.ns = length_of(slice->start, slice->end);
		sample.slot = slot_at(side, slice->rank, slice->start);
		result = take_name(names, side, take, slice_kind(slice), slice->name, &sample);
	}
	return result;
}

static int walk(struct ts_compare_names *names, struct ts_compare_side *side, take_function *take)
{
	int result = TS_OK;

	if (names->wanted & TS_COMPARE_GPU)
		result = walk_commands(names, side, take);
	if (!result && names->wanted & TS_COMPARE_CPU && names->by_step)
		result = walk_steps(names, side, take);
	if (!result && names->wanted & TS_COMPARE_CPU)
		result = walk_calls(names, side, take);
	if (!result && names->wanted & TS_COMPARE_CPU)
		result = walk_slices(names, side, take);
	return result;
}

/* Stores the samples of a side in key order, once all keys are known. */
static int file_samples(struct ts_compare_names *names, struct ts_compare_side *side)
{
	uint64_t all = 0;

	if (reserve(side, names->key_count))
		return TS_ENOMEM;
	side->first = ts_alloc_array((size_t)names->key_count + 1, sizeof(*side->first));
	if (!side->first)
		return TS_ENOMEM;
	side->first[0] = 0;
	for (uint32_t key = 0; key < names->key_count; key++) {
		all += side->sums[key].count;
		side->first[key + 1] = all;
	}
	side->samples = ts_alloc_array(all, sizeof(*side->samples));
	if (!side->samples || walk(names, side, file_sample))
		return TS_ENOMEM;
	/* Each first[key + 1] is now where the key's samples begin. */
	memmove(side->first, side->first + 1, names->key_count * sizeof(*side->first));
	side->first[names->key_count] = all;
	return TS_OK;
}

int ts_compare_names_init(struct ts_compare_names *names, const struct ts_work *a,
			  const struct ts_work *b, const struct ts_compare_options *options)
{
	int result = TS_OK;

	*names = (struct ts_compare_names){ .wanted = options->sides ? options->sides : ~0u,
					    .by_step = a->step_count && b->step_count };
	ts_strmap_init(&names->texts, 0);
	names->sides[0].work = a;
	names->sides[1].work = b;
	for (int i = 0; i < 2 && !result; i++) {
		result = make_slots(&names->sides[i]);
		if (!result)
			result = walk(names, &names->sides[i], count_sample);
	}
	names->key_count = ts_strmap_count(&names->texts);
	for (int i = 0; i < 2 && !result; i++)
		result = file_samples(names, &names->sides[i]);
	return result;
}

void ts_compare_names_release(struct ts_compare_names *names)
{
	for (int i = 0; i < 2; i++) {
		struct ts_compare_side *side = &names->sides[i];

		free(side->slot_of_step);
		free(side->slot_ranks);
		free(side->sums);
		free(side->first);
		free(side->samples);
		ts_map_release(&side->keys);
	}
	ts_strmap_release(&names->texts);
}
