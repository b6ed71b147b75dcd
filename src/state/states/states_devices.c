/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals of a device: at each instant the strongest state of its streams (docs/state.md, "A
 * device"). Streams are merged pairwise: n log s for n intervals of s streams.
 */
#include "base/memory.h"
#include "state/states/states_internal.h"

/* A list of intervals that partition the window. */
struct run {
	const struct ts_state_interval *intervals;
	size_t count;
};

/* Larger is stronger: by state, then the reason listed first. */
static unsigned int strength(const struct ts_state_interval *interval)
{
	return ((unsigned int)interval->state << 4) + (15u - interval->reason);
}
_Static_assert(TS_REASON_COUNT <= 16, "reasons must fit into four bits");

static struct ts_state_interval *append(struct ts_state_interval *first,
					struct ts_state_interval *next, int64_t start, int64_t end,
					const struct ts_state_interval *like)
{
	if (next > first && next[-1].state == like->state && next[-1].reason == like->reason) {
		next[-1].end = end;
		return next;
	}
	*next = *like;
	next->start = start;
	next->end = end;
	return next + 1;
}

/* `to` has space for a->count + b->count. */
static size_t merge_two(const struct run *a, const struct run *b, struct ts_state_interval *to)
{
	const struct ts_state_interval *left = a->intervals, *right = b->intervals;
	const struct ts_state_interval *left_end = left + a->count, *right_end = right + b->count;
	struct ts_state_interval *next = to;
	int64_t at = a->count ? left->start : 0;

	while (left < left_end && right < right_end) {
		int64_t end = TS_MIN(left->end, right->end);

		next = append(to, next, at, end, strength(right) > strength(left) ? right : left);
		left += left->end == end;
		right += right->end == end;
		at = end;
	}
	return (size_t)(next - to);
}

/* A single run: merges adjacent intervals with the same state and reason. */
static size_t join_one(const struct run *run, struct ts_state_interval *to)
{
	struct ts_state_interval *next = to;

	for (size_t i = 0; i < run->count; i++)
		next = append(to, next, run->intervals[i].start, run->intervals[i].end,
			      &run->intervals[i]);
	return (size_t)(next - to);
}

/* Halves the number of runs; the results are in `to`. */
static size_t merge_level(struct run *runs, size_t count, struct ts_state_interval *to)
{
	size_t merged = 0;

	for (size_t i = 0; i < count; i += 2) {
		size_t intervals = i + 1 < count ? merge_two(&runs[i], &runs[i + 1], to)
						 : join_one(&runs[i], to);

		runs[merged++] = (struct run){ .intervals = to, .count = intervals };
		to += intervals;
	}
	return merged;
}

static int reserve_scratch(struct ts_states_build *build, size_t count)
{
	for (int i = 0; i < 2; i++) {
		if (ts_grow_array((void **)&build->scratch[i], &build->scratch_capacity[i], count,
				  sizeof(*build->scratch[i])))
			return TS_ENOMEM;
	}
	return 0;
}

/*
 * Merges adjacent intervals with the same state and reason. Idle intervals name the command that
 * ends them.
 */
static int emit_all(struct ts_states_build *build, const struct run *run)
{
	int rc = 0;

	for (size_t i = 0, next; !rc && i < run->count; i = next) {
		struct ts_state_interval interval = run->intervals[i];

		for (next = i + 1;
		     next < run->count && strength(&run->intervals[next]) == strength(&interval);
		     next++)
			interval.end = run->intervals[next].end;
		if (interval.state == TS_STATE_IDLE && next < run->count &&
		    run->intervals[next].state != TS_STATE_IDLE)
			interval.command = run->intervals[next].command;
		rc = ts_states_emit(build, &interval);
	}
	return rc;
}

static int emit_nothing(struct ts_states_build *build)
{
	const struct ts_state_interval interval = {
		.start = build->from,
		.end = build->to,
		.command = TS_WORK_NONE,
		.state = TS_STATE_IDLE,
		.reason = TS_REASON_NOTHING,
	};

	return build->from < build->to ? ts_states_emit(build, &interval) : 0;
}

int ts_states_build_device(struct ts_states_build *build, const struct ts_state_lane *streams,
			   uint32_t stream_count)
{
	TS_AUTO_FREE struct run *runs = ts_alloc_array(stream_count, sizeof(*runs));
	size_t count = stream_count, intervals = 0;
	int turn = 0;

	for (uint32_t i = 0; i < stream_count; i++)
		intervals += streams[i].count;
	if (!intervals)
		return emit_nothing(build);
	/* Runs point into the intervals, which must not move while they are read. */
	if (!runs || (count > 1 && reserve_scratch(build, intervals)) ||
	    ts_grow_array((void **)&build->states->intervals, &build->states->interval_capacity,
			  build->states->interval_count + intervals,
			  sizeof(*build->states->intervals)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < stream_count; i++)
		runs[i] = (struct run){ build->states->intervals + streams[i].first,
					streams[i].count };
	for (; count > 1; turn = !turn)
		count = merge_level(runs, count, build->scratch[turn]);
	return emit_all(build, &runs[0]);
}
