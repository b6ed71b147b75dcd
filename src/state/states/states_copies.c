/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy engine: finds copies that waited for another copy in the same direction on another stream of
 * their device. Copies come sorted per stream and are merged into time order.
 */
#include "base/memory.h"
#include "state/states/states_internal.h"

/* By direction, then time. */
static bool comes_before(const struct ts_work_command *a, const struct ts_work_command *b)
{
	return a->copy_kind != b->copy_kind ? a->copy_kind < b->copy_kind : a->start <= b->start;
}

/* End of the sorted run that begins at `at`. */
static size_t run_end(const struct ts_work_command *commands, const uint32_t *copies, size_t count,
		      size_t at)
{
	for (at++; at < count; at++) {
		if (!comes_before(&commands[copies[at - 1]], &commands[copies[at]]))
			break;
	}
	return TS_MIN(at, count);
}

static void merge_two(const struct ts_work_command *commands, const uint32_t *a,
		      const uint32_t *a_end, const uint32_t *b, const uint32_t *b_end, uint32_t *to)
{
	while (a < a_end && b < b_end)
		*to++ = comes_before(&commands[*a], &commands[*b]) ? *a++ : *b++;
	while (a < a_end)
		*to++ = *a++;
	while (b < b_end)
		*to++ = *b++;
}

/* Merges adjacent runs pairwise; false: only one run is left. */
static bool merge_pass(const struct ts_work_command *commands, const uint32_t *from, size_t count,
		       uint32_t *to)
{
	bool merged = false;

	for (size_t at = 0; at < count;) {
		size_t middle = run_end(commands, from, count, at);
		size_t end = middle < count ? run_end(commands, from, count, middle) : count;

		merge_two(commands, from + at, from + middle, from + middle, from + end, to + at);
		merged = merged || middle < end;
		at = end;
	}
	return merged;
}

static int order(struct ts_states_build *build)
{
	uint32_t *other = calloc(build->copy_count, sizeof(*other)), *kept;
	bool merged = other != NULL;

	if (!other)
		return TS_ENOMEM;
	while (merged) {
		merged = merge_pass(build->work->commands, build->copies, build->copy_count, other);
		kept = build->copies;
		build->copies = other;
		other = kept;
	}
	build->copy_capacity = build->copy_count;
	free(other);
	return 0;
}

static void classify(struct ts_states_build *build, uint32_t earlier, uint32_t later)
{
	const struct ts_work_command *a = &build->work->commands[earlier];
	const struct ts_work_command *b = &build->work->commands[later];
	struct ts_command_state *state = &build->states->commands[later];
	int64_t end = ts_command_end(a);

	if (a->copy_kind != b->copy_kind || a->stream == b->stream ||
	    ts_ns_sub(end, b->start) > build->tolerance_ns)
		return;
	end = TS_MIN(end, b->start);
	if (end <= state->ready)
		return;
	state->ready = end;
	state->blocker = earlier;
	state->reason = TS_REASON_COPY_ENGINE;
}

int ts_states_classify_copies(struct ts_states_build *build)
{
	if (build->copy_count < 2)
		return 0;
	if (order(build))
		return TS_ENOMEM;
	for (size_t i = 1; i < build->copy_count; i++)
		classify(build, build->copies[i - 1], build->copies[i]);
	return 0;
}
