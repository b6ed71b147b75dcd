/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program launched a command: the stack of its call, by correlation, else by thread and
 * time.
 */
#include "base/ns.h"
#include "replay/output/replay_output.h"

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

struct search {
	const struct ts_replay *replay;
	const struct ts_replay_command_info *command;
	int64_t stack;
	int64_t start; /* of the best call so far, if found by time */
	bool is_exact;
};

static const struct ts_replay_command_info *find_command(const struct ts_replay *replay,
							 uint64_t sequence)
{
	for (uint32_t i = 0; i < replay->stream->command_count; i++)
		if (replay->stream->commands[i].sequence == sequence)
			return &replay->stream->commands[i];
	return NULL;
}

static bool is_of_process(const struct search *search, int64_t thread)
{
	const struct ts_thread_row *row =
		ts_reader_entity(search->replay->reader, TS_TABLE_THREAD, thread);

	return row && row->process == search->replay->stream->process;
}

static void look_at(struct search *search, const struct ts_api_call_row *call)
{
	const struct ts_replay_command_info *command = search->command;

	if (!call->stack || search->is_exact)
		return;
	if (command->correlation > 0 && call->correlation == command->correlation &&
	    is_of_process(search, call->thread)) {
		search->stack = call->stack;
		search->is_exact = true;
		return;
	}
	/* The innermost call in which the command was enqueued. */
	if (call->thread != command->thread || !command->thread || call->duration < 0 ||
	    call->start > command->start_ns ||
	    ts_ns_add(call->start, call->duration) < command->start_ns ||
	    (search->stack && call->start < search->start))
		return;
	search->stack = call->stack;
	search->start = call->start;
}

static int64_t find_stack(const struct ts_replay *replay, uint64_t sequence)
{
	struct search search = { .replay = replay, .command = find_command(replay, sequence) };
	TS_AUTO(ts_batch) batch = NULL;

	if (!search.command || ts_batch_new(&batch, replay->reader, NULL))
		return 0;
	for (size_t i = 0; i < ts_reader_chunk_count(replay->reader) && !search.is_exact; i++) {
		if (ts_reader_chunk(replay->reader, i)->table != TS_TABLE_API_CALL ||
		    ts_batch_read(batch, i, TS_MASK_ALL & ~TS_MASK_OF(api_call, shape), NULL))
			continue;
		for (uint32_t row = 0; row < batch->rows; row++) {
			struct ts_api_call_row call;

			ts_batch_row(batch, row, &call);
			look_at(&search, &call);
		}
	}
	return search.stack;
}

void ts_replay_find_stacks(const struct ts_replay *replay, struct ts_replay_report *report)
{
	if (report->differs && report->command)
		report->stack = find_stack(replay, report->command);
	if (report->other_command)
		report->other_stack = find_stack(replay, report->other_command);
}
