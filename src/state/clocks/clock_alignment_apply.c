/* SPDX-License-Identifier: Apache-2.0 */
/* Applies clock estimates to the times of a job's work. */
#include <math.h>

#include "base/memory.h"
#include "state/clocks/clock_alignment.h"

/* Times are clamped to this, so that no difference overflows. */
#define TIME_LIMIT (INT64_C(1) << 61)

int64_t ts_clock_estimate_apply(const struct ts_clock_estimate *estimate, int64_t time)
{
	double grown;
	int64_t moved;

	time = TS_MAX(-TIME_LIMIT, TS_MIN(time, TIME_LIMIT));
	grown = estimate->drift_ppb * 1e-9 * (double)(time - estimate->epoch);
	if (fabs(grown) > 0x1p60)
		grown = grown < 0 ? -0x1p60 : 0x1p60;
	moved = time + estimate->offset_ns + (int64_t)llrint(grown);
	return TS_MAX(-TIME_LIMIT, TS_MIN(moved, TIME_LIMIT));
}

static bool moves(const struct ts_clock_estimate *estimate)
{
	return estimate->known && (estimate->offset_ns || estimate->drift_ppb != 0);
}

static void move(const struct ts_clock_estimate *estimate, int64_t *time)
{
	if (*time != TS_ABSENT)
		*time = ts_clock_estimate_apply(estimate, *time);
}

static void move_both(const struct ts_clock_estimate *estimate, int64_t *start, int64_t *end)
{
	if (!moves(estimate))
		return;
	move(estimate, start);
	move(estimate, end);
}

static void move_commands(const struct ts_clock_alignment *clocks, struct ts_work *work)
{
	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];
		uint32_t device = work->streams[command->stream].device;

		/* First device to host, then both. */
		move_both(&clocks->devices[device], &command->start, &command->end);
		move_both(&clocks->ranks[command->rank], &command->start, &command->end);
		if (moves(&clocks->ranks[command->rank]))
			move(&clocks->ranks[command->rank], &command->issued);
	}
}

static void move_host(const struct ts_clock_alignment *clocks, struct ts_work *work)
{
	for (uint32_t i = 0; i < work->call_count; i++)
		move_both(&clocks->ranks[work->calls[i].rank], &work->calls[i].start,
			  &work->calls[i].end);
	for (uint32_t i = 0; i < work->sync_count; i++)
		move_both(&clocks->ranks[work->syncs[i].rank], &work->syncs[i].start,
			  &work->syncs[i].end);
	for (uint32_t i = 0; i < work->slice_count; i++)
		move_both(&clocks->ranks[work->slices[i].rank], &work->slices[i].start,
			  &work->slices[i].end);
	for (uint32_t i = 0; i < work->step_count; i++)
		move_both(&clocks->ranks[work->steps[i].rank], &work->steps[i].start,
			  &work->steps[i].end);
}

static void move_flow_end(const struct ts_clock_alignment *clocks, const struct ts_work *work,
			  uint32_t thread, int64_t *time)
{
	const struct ts_clock_estimate *estimate;

	if (thread >= work->thread_count)
		return;
	estimate = &clocks->ranks[work->threads[thread].rank];
	if (moves(estimate))
		move(estimate, time);
}

static void move_flows(const struct ts_clock_alignment *clocks, struct ts_work *work)
{
	for (uint32_t i = 0; i < work->flow_count; i++) {
		struct ts_work_flow *flow = &work->flows[i];

		move_flow_end(clocks, work, flow->from_thread, &flow->from_time);
		move_flow_end(clocks, work, flow->to_thread, &flow->to_time);
	}
}

static void move_ranks(const struct ts_clock_alignment *clocks, struct ts_work *work)
{
	for (uint32_t i = 0; i < work->rank_count; i++) {
		struct ts_work_rank *rank = &work->ranks[i];

		if (rank->from <= rank->to)
			move_both(&clocks->ranks[i], &rank->from, &rank->to);
		if (rank->rows_from <= rank->rows_to)
			move_both(&clocks->ranks[i], &rank->rows_from, &rank->rows_to);
		rank->uncertainty_ns = clocks->ranks[i].known ? clocks->ranks[i].uncertainty_ns
							      : TS_ABSENT;
	}
}

/* After alignment only outliers start before their call. */
static void check_early(struct ts_work *work)
{
	work->early_commands = 0;
	work->earliest_ns = 0;
	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];
		int64_t early;

		command->flags &= (uint8_t)~TS_COMMAND_EARLY;
		if (command->issued == TS_ABSENT || command->start >= command->issued)
			continue;
		early = command->issued - command->start;
		command->flags |= TS_COMMAND_EARLY;
		work->early_commands++;
		work->earliest_ns = TS_MAX(work->earliest_ns, early);
	}
}

void ts_clock_alignment_apply(const struct ts_clock_alignment *clocks, struct ts_work *work)
{
	move_commands(clocks, work);
	move_host(clocks, work);
	move_flows(clocks, work);
	move_ranks(clocks, work);
	check_early(work);
}
