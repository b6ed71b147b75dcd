/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects a range: by step, by time, or everything but the last step. Calls and slices are selected
 * by start, commands by their calls.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"

/* Starts in [from, to) are kept. */
struct bounds {
	int64_t from, to;
	bool has_commands;
	bool by_step; /* commands are selected with their calls; those without a call are in no step
		       */
	int64_t first, last; /* of the selected commands */
};

static bool is_inside(const struct bounds *bounds, int64_t time)
{
	return time >= bounds->from && time < bounds->to;
}

/* Before the last step, if there are at least two and it may be incomplete. */
static void cut_last_step(const struct ts_work *work, uint32_t first, uint32_t end,
			  struct bounds *bounds)
{
	const struct ts_work_step *last = &work->steps[end - 1];

	if (!bounds->has_commands && !last->is_mark)
		return;
	for (uint32_t i = first; i < end; i++) {
		if (work->steps[i].number != last->number) {
			bounds->to = work->ranks[last->rank].last_step_start;
			bounds->by_step = true;
			return;
		}
	}
}

static void choose_steps(const struct ts_work *work, uint32_t first, uint32_t end,
			 struct bounds *bounds)
{
	const struct ts_work_options *options = &work->options;
	struct bounds chosen = { .from = INT64_MAX,
				 .to = INT64_MIN,
				 .has_commands = bounds->has_commands,
				 .by_step = true };

	for (uint32_t i = first; i < end; i++) {
		const struct ts_work_step *step = &work->steps[i];

		if ((options->from_step != TS_ABSENT && step->number < options->from_step) ||
		    (options->to_step != TS_ABSENT && step->number > options->to_step))
			continue;
		chosen.from = TS_MIN(chosen.from, step->start);
		chosen.to = TS_MAX(chosen.to, step->end);
	}
	*bounds = chosen;
}

static bool is_by_step(const struct ts_work_options *options)
{
	return options->from_step != TS_ABSENT || options->to_step != TS_ABSENT;
}

/* Nobody has said what to select. */
static bool is_default(const struct ts_work_options *options)
{
	return !options->all && !is_by_step(options) && options->from == TS_ABSENT &&
	       options->to == TS_ABSENT;
}

static void choose_bounds(const struct ts_work *work, uint32_t first, uint32_t end,
			  struct bounds *bounds)
{
	const struct ts_work_options *options = &work->options;

	bounds->from = INT64_MIN;
	bounds->to = INT64_MAX;
	if (is_by_step(options))
		choose_steps(work, first, end, bounds);
	else if (is_default(options) && end > first)
		cut_last_step(work, first, end, bounds);
	if (options->from != TS_ABSENT)
		bounds->from = TS_MAX(bounds->from, options->from);
	if (options->to != TS_ABSENT && options->to < INT64_MAX)
		bounds->to = TS_MIN(bounds->to, options->to + 1);
}

/*
 * Bounds of each rank, and its remaining steps. What was issued in a step that is cut stays: only
 * the step says nothing about the length of steps.
 */
static void choose_all(struct ts_work *work, struct bounds *bounds)
{
	bool leaves_out_cut = is_default(&work->options);
	uint32_t kept = 0, first = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		uint32_t end = first;

		while (end < work->step_count && work->steps[end].rank == rank)
			end++;
		work->ranks[rank].steps_in_trace = end - first;
		work->ranks[rank].last_step = end > first ? work->steps[end - 1].number : 0;
		choose_bounds(work, first, end, &bounds[rank]);
		work->ranks[rank].first_step = kept;
		for (; first < end; first++) {
			if (!is_inside(&bounds[rank], work->steps[first].start))
				continue;
			if (work->steps[first].is_cut && leaves_out_cut)
				work->ranks[rank].cut_steps++;
			else
				work->steps[kept++] = work->steps[first];
		}
		work->ranks[rank].steps_in_trace -= work->ranks[rank].cut_steps;
		work->ranks[rank].step_count = kept - work->ranks[rank].first_step;
	}
	work->step_count = kept;
}

/* New numbers of the calls that are kept; TS_WORK_NONE for the others. */
static void filter_calls(struct ts_work *work, const struct bounds *bounds, uint32_t *numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call call = work->calls[i];

		numbers[i] = TS_WORK_NONE;
		if (!is_inside(&bounds[call.rank], call.start))
			continue;
		numbers[i] = kept;
		work->calls[kept++] = call;
	}
	work->call_count = kept;
}

/* If no command of a rank has its call, steps cannot be derived from calls. */
static void find_call_less_ranks(struct ts_work *work, struct bounds *bounds)
{
	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].call != TS_WORK_NONE)
			work->ranks[work->commands[i].rank].has_issued_commands = true;
	for (uint32_t rank = 0; rank < work->rank_count; rank++)
		bounds[rank].by_step &= work->ranks[rank].has_issued_commands;
}

/* A command without a call reference is selected by its start. */
static bool keeps_command(const struct bounds *bounds, struct ts_work_command *command,
			  const uint32_t *call_numbers)
{
	if (command->call == TS_WORK_NONE)
		return (!bounds->by_step || command->correlation == TS_ABSENT) &&
		       is_inside(bounds, command->start);
	command->call = call_numbers[command->call];
	return command->call != TS_WORK_NONE;
}

/* Time from the first to the last selected command of each rank; from > to if none. */
static void find_windows(const struct ts_work *work, struct bounds *bounds,
			 const uint32_t *call_numbers)
{
	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		bounds[rank].first = INT64_MAX;
		bounds[rank].last = INT64_MIN;
	}
	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command command = work->commands[i];
		struct bounds *of = &bounds[command.rank];

		if (!keeps_command(of, &command, call_numbers))
			continue;
		of->first = TS_MIN(of->first, command.start);
		of->last = TS_MAX(of->last, command.end);
	}
}

static void filter_commands(struct ts_work *work, const struct bounds *bounds,
			    const uint32_t *call_numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command command = work->commands[i];
		const struct bounds *of = &bounds[command.rank];

		if (keeps_command(of, &command, call_numbers)) {
			work->commands[kept++] = command;
			continue;
		}
		work->dropped_commands++;
		work->dropped_between += command.start < of->last && command.end > of->first;
	}
	work->command_count = kept;
}

static void filter_syncs(struct ts_work *work, const struct bounds *bounds,
			 const uint32_t *call_numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->sync_count; i++) {
		struct ts_work_sync sync = work->syncs[i];
		bool inside = is_inside(&bounds[sync.rank], sync.start);

		if (sync.call != TS_WORK_NONE) {
			sync.call = call_numbers[sync.call];
			inside = sync.call != TS_WORK_NONE;
		}
		if (inside)
			work->syncs[kept++] = sync;
	}
	work->sync_count = kept;
}

static void filter_slices(struct ts_work *work, const struct bounds *bounds)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->slice_count; i++)
		if (is_inside(&bounds[work->slices[i].rank], work->slices[i].start))
			work->slices[kept++] = work->slices[i];
	work->slice_count = kept;
}

static void filter_flows(struct ts_work *work, const struct bounds *bounds)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->flow_count; i++) {
		const struct ts_work_flow *flow = &work->flows[i];

		if (is_inside(&bounds[work->threads[flow->from_thread].rank], flow->from_time) &&
		    is_inside(&bounds[work->threads[flow->to_thread].rank], flow->to_time))
			work->flows[kept++] = *flow;
	}
	work->flow_count = kept;
}

/* Collectives in command order; those whose command was dropped are removed. */
static int order_collectives(struct ts_work *work)
{
	struct ts_work_collective *ordered =
		ts_alloc_array(work->collective_count, sizeof(*ordered));
	uint32_t count = 0;

	if (!ordered)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];

		if (command->collective == TS_WORK_NONE)
			continue;
		ordered[count] = work->collectives[command->collective];
		ordered[count].command = i;
		command->collective = count++;
	}
	free(work->collectives);
	work->collectives = ordered;
	work->collective_count = count;
	return TS_OK;
}

int ts_work_select_range(struct ts_work *work)
{
	TS_AUTO_FREE struct bounds *bounds = calloc(work->rank_count + 1u, sizeof(*bounds));
	TS_AUTO_FREE uint32_t *numbers = ts_alloc_array(work->call_count, sizeof(*numbers));

	if (!bounds || !numbers)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->command_count; i++)
		bounds[work->commands[i].rank].has_commands = true;
	choose_all(work, bounds);
	find_call_less_ranks(work, bounds);
	filter_calls(work, bounds, numbers);
	find_windows(work, bounds, numbers);
	filter_commands(work, bounds, numbers);
	filter_syncs(work, bounds, numbers);
	filter_slices(work, bounds);
	filter_flows(work, bounds);
	return order_collectives(work);
}
