/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives what the sort order implies: row ranges, parents of slices, command lists of calls; and
 * counts anomalies.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"

static void find_ranges(struct ts_work *work)
{
	for (uint32_t i = 0; i < work->device_count; i++) {
		struct ts_work_rank *rank = &work->ranks[work->devices[i].rank];

		if (rank->device_count++ == 0)
			rank->first_device = i;
	}
	for (uint32_t i = 0; i < work->stream_count; i++) {
		struct ts_work_rank *rank = &work->ranks[work->streams[i].rank];
		struct ts_work_device *device = &work->devices[work->streams[i].device];

		if (rank->stream_count++ == 0)
			rank->first_stream = i;
		if (device->stream_count++ == 0)
			device->first_stream = i;
	}
	for (uint32_t i = 0; i < work->thread_count; i++) {
		struct ts_work_rank *rank = &work->ranks[work->threads[i].rank];

		if (rank->thread_count++ == 0)
			rank->first_thread = i;
	}
}

static void widen_rows(struct ts_work_rank *rank, int64_t from, int64_t to)
{
	rank->rows_from = TS_MIN(rank->rows_from, from);
	rank->rows_to = TS_MAX(rank->rows_to, TS_MAX(from, to));
}

static void widen(struct ts_work_rank *rank, int64_t from, int64_t to)
{
	rank->from = TS_MIN(rank->from, from);
	rank->to = TS_MAX(rank->to, TS_MAX(from, to));
	widen_rows(rank, from, to);
}

static void count_commands(struct ts_work *work)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];
		struct ts_work_rank *rank = &work->ranks[command->rank];
		struct ts_work_stream *stream = &work->streams[command->stream];

		if (rank->command_count++ == 0)
			rank->first_command = i;
		if (stream->command_count++ == 0)
			stream->first_command = i;
		widen(rank, command->start, command->end);
	}
	/*
	 * A stream without commands gets an empty range in place, so that the commands of a device
	 * are one range.
	 */
	for (uint32_t i = 0; i < work->stream_count; i++) {
		if (work->streams[i].command_count == 0)
			work->streams[i].first_command = next;
		next = work->streams[i].first_command + work->streams[i].command_count;
	}
}

static void count_host_rows(struct ts_work *work)
{
	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];
		struct ts_work_thread *thread = &work->threads[call->thread];

		if (thread->call_count++ == 0)
			thread->first_call = i;
		widen(&work->ranks[call->rank], call->start, call->end);
	}
	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];
		struct ts_work_thread *thread = &work->threads[slice->thread];

		if (thread->slice_count++ == 0)
			thread->first_slice = i;
		widen_rows(&work->ranks[slice->rank], slice->start, slice->end);
	}
}

/* Finds enclosing slices with a stack through their parents. */
static void find_parents(struct ts_work *work)
{
	uint32_t inner = TS_WORK_NONE;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		struct ts_work_slice *slice = &work->slices[i];

		if (inner != TS_WORK_NONE && work->slices[inner].thread != slice->thread)
			inner = TS_WORK_NONE;
		while (inner != TS_WORK_NONE && work->slices[inner].end <= slice->start)
			inner = work->slices[inner].parent;
		slice->parent = inner;
		inner = i;
	}
}

/* A command of a call that issued several. */
struct chain_key {
	int64_t start;
	uint32_t call, command;
};

static int compare_chain_keys(const void *a_, const void *b_)
{
	const struct chain_key *a = a_, *b = b_;

	if (a->call != b->call)
		return TS_COMPARE(a->call, b->call);
	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->command, b->command);
}

/* Commands of calls that issued several, by call and start. */
static size_t collect_chains(const struct ts_work *work, struct chain_key *keys)
{
	size_t count = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (command->call != TS_WORK_NONE && work->calls[command->call].command_count > 1)
			keys[count++] = (struct chain_key){ command->start, command->call, i };
	}
	ts_sort(keys, count, sizeof(*keys), compare_chain_keys);
	return count;
}

static size_t count_of_calls(struct ts_work *work)
{
	size_t shared = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		uint32_t call = work->commands[i].call;

		work->next_of_call[i] = TS_WORK_NONE;
		if (call == TS_WORK_NONE)
			continue;
		work->calls[call].command = i;
		shared += ++work->calls[call].command_count > 1 ? 2 : 0;
	}
	return shared;
}

/* Links the commands of each call by start. */
static int chain_commands(struct ts_work *work)
{
	TS_AUTO_FREE struct chain_key *keys = NULL;
	size_t count;

	work->next_of_call = ts_alloc_array(work->command_count, sizeof(*work->next_of_call));
	if (!work->next_of_call)
		return TS_ENOMEM;
	count = count_of_calls(work);
	if (count == 0)
		return TS_OK;
	keys = ts_alloc_array(count, sizeof(*keys));
	if (!keys)
		return TS_ENOMEM;
	count = collect_chains(work, keys);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || keys[i - 1].call != keys[i].call)
			work->calls[keys[i].call].command = keys[i].command;
		else
			work->next_of_call[keys[i - 1].command] = keys[i].command;
	}
	return TS_OK;
}

/* As in work_range.c: one that names a call which is not in the trace was issued before it began.
 */
static uint32_t step_of(const struct ts_work *work, const struct ts_work_command *command)
{
	bool is_earlier = command->issued == TS_ABSENT && command->correlation != TS_ABSENT &&
			  work->ranks[command->rank].has_issued_commands;

	if (is_earlier)
		return TS_WORK_NONE;
	return ts_work_step_at(work, command->rank,
			       command->issued == TS_ABSENT ? command->start : command->issued);
}

static void validate_call(struct ts_work *work, struct ts_work_command *command)
{
	const struct ts_work_call *call;

	if (command->call == TS_WORK_NONE) {
		work->commands_without_call++;
	} else {
		call = &work->calls[command->call];
		command->issued = call->start;
		if (call->command_count > 1)
			command->flags |= TS_COMMAND_SHARES_CALL;
	}
	if (command->issued != TS_ABSENT && command->start < command->issued) {
		command->flags |= TS_COMMAND_EARLY;
		work->early_commands++;
		work->earliest_ns = TS_MAX(work->earliest_ns, command->issued - command->start);
	}
	command->step = step_of(work, command);
	work->untimed_commands += command->flags & TS_COMMAND_UNTIMED ? 1 : 0;
}

/* Compares each command with earlier ones of its stream. */
static void validate_order(struct ts_work *work, struct ts_work_command *command, int64_t *end,
			   int64_t *issued)
{
	bool ordered = !(work->streams[command->stream].flags & TS_STREAM_OUT_OF_ORDER);

	if (command->start < *end && ordered) {
		command->flags |= TS_COMMAND_CONCURRENT;
		work->concurrent_commands++;
	}
	if (command->issued != TS_ABSENT && command->issued < *issued && ordered) {
		command->flags |= TS_COMMAND_DISORDERED;
		work->disordered_commands++;
	}
	*end = TS_MAX(*end, command->end);
	if (command->issued != TS_ABSENT)
		*issued = TS_MAX(*issued, command->issued);
}

static void validate(struct ts_work *work)
{
	int64_t end = INT64_MIN, issued = INT64_MIN;
	uint32_t stream = TS_WORK_NONE;

	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];

		if (command->stream != stream) {
			stream = command->stream;
			end = issued = INT64_MIN;
		}
		validate_call(work, command);
		validate_order(work, command, &end, &issued);
	}
	for (uint32_t i = 0; i < work->call_count; i++)
		if (ts_api_is_enqueue(work->calls[i].kind) &&
		    work->calls[i].command == TS_WORK_NONE)
			work->calls_without_command++;
}

int ts_work_validate(struct ts_work *work)
{
	if (chain_commands(work))
		return TS_ENOMEM;
	find_ranges(work);
	count_commands(work);
	count_host_rows(work);
	find_parents(work);
	validate(work);
	return TS_OK;
}
