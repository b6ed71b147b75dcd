/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issue order of commands in their streams, and the content of a stream at a given moment. Used by
 * the other edge groups; adds no edges itself.
 */
#include "state/graph/graph_build.h"

struct ts_graph_moment ts_graph_call_moment(const struct ts_work *work, uint32_t call)
{
	return (struct ts_graph_moment){ work->calls[call].start, work->calls[call].correlation };
}

/*
 * Issue time of each command. If unknown: no later than its start, than the issue of the command
 * that ran next, and than the first call if it was issued before all calls.
 */
static void find_issue_times(struct ts_graph_build *build, const struct ts_work_stream *stream,
			     int64_t *issued)
{
	const struct ts_work_command *commands = build->work->commands;
	uint32_t end = stream->first_command + stream->command_count;

	for (uint32_t i = end; i-- > stream->first_command;) {
		issued[i] = commands[i].issued;
		if (issued[i] == TS_ABSENT) {
			issued[i] = commands[i].start;
			if (i + 1 < end)
				issued[i] = TS_MIN(issued[i], issued[i + 1]);
			if (ts_work_is_before(build->begins, &commands[i]))
				issued[i] = TS_MIN(issued[i],
						   build->begins[commands[i].rank].first_call);
		}
	}
}

struct issue {
	int64_t issued, correlation;
	uint32_t command;
};

static int compare_issues(const void *one, const void *other)
{
	const struct issue *a = one, *b = other;

	if (a->issued != b->issued)
		return a->issued < b->issued ? -1 : 1;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	return a->command < b->command ? -1 : a->command > b->command;
}

static bool is_in_order(const struct ts_work *work, const struct ts_work_stream *stream,
			const int64_t *issued)
{
	uint32_t end = stream->first_command + stream->command_count;

	for (uint32_t i = stream->first_command + 1; i < end; i++) {
		if (issued[i - 1] > issued[i] ||
		    (issued[i - 1] == issued[i] &&
		     work->commands[i - 1].correlation > work->commands[i].correlation))
			return false;
	}
	return true;
}

/* Sorts a stream's range by issue time; issued[] is permuted along. */
static void sort_stream(struct ts_graph_build *build, const struct ts_work_stream *stream)
{
	uint32_t first = stream->first_command, count = stream->command_count;
	struct issue *issues = ts_graph_array(build, count, sizeof(*issues));

	if (!issues)
		return;
	for (uint32_t i = 0; i < count; i++) {
		issues[i].issued = build->issued[first + i];
		issues[i].correlation = build->work->commands[first + i].correlation;
		issues[i].command = first + i;
	}
	ts_sort(issues, count, sizeof(*issues), compare_issues);
	for (uint32_t i = 0; i < count; i++) {
		build->issued[first + i] = issues[i].issued;
		build->order[first + i] = issues[i].command;
	}
	free(issues);
}

static void order_stream(struct ts_graph_build *build, const struct ts_work_stream *stream)
{
	const struct ts_work_command *commands = build->work->commands;
	uint32_t first = stream->first_command, end = first + stream->command_count;

	find_issue_times(build, stream, build->issued);
	for (uint32_t i = first; i < end; i++)
		build->order[i] = i;
	if (!is_in_order(build->work, stream, build->issued))
		sort_stream(build, stream);
	for (uint32_t p = first; p < end; p++) {
		uint32_t command = build->order[p];

		build->position[command] = p;
		build->latest[p] = command;
		if (p > first && commands[build->latest[p - 1]].end > commands[command].end)
			build->latest[p] = build->latest[p - 1];
	}
}

static void find_operands(struct ts_graph_build *build)
{
	build->has_operands =
		ts_graph_array(build, build->work->rank_count, sizeof(*build->has_operands));
	if (!build->has_operands)
		return;
	memset(build->has_operands, 0, build->work->rank_count * sizeof(*build->has_operands));
	for (uint32_t i = 0; i < build->work->sync_count; i++)
		build->has_operands[build->work->syncs[i].rank] = true;
}

void ts_graph_issue_order(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;

	build->order = ts_graph_array(build, work->command_count, sizeof(*build->order));
	build->position = ts_graph_array(build, work->command_count, sizeof(*build->position));
	build->latest = ts_graph_array(build, work->command_count, sizeof(*build->latest));
	build->issued = ts_graph_array(build, work->command_count, sizeof(*build->issued));
	build->begins = build->rc ? NULL : ts_work_begins(work);
	if (!build->begins)
		build->rc = TS_ENOMEM;
	find_operands(build);
	for (uint32_t s = 0; s < work->stream_count && !build->rc; s++)
		order_stream(build, &work->streams[s]);
}

/* ---- what was in a stream at a moment ---- */

static bool is_issued_by(const struct ts_graph_build *build, uint32_t position,
			 struct ts_graph_moment moment)
{
	if (build->issued[position] != moment.time)
		return build->issued[position] < moment.time;
	return moment.correlation == TS_ABSENT ||
	       build->work->commands[build->order[position]].correlation <= moment.correlation;
}

uint32_t ts_graph_issued_before(const struct ts_graph_build *build, uint32_t stream,
				struct ts_graph_moment moment)
{
	const struct ts_work_stream *in = &build->work->streams[stream];
	uint32_t low = 0, high = in->command_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (is_issued_by(build, in->first_command + middle, moment))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t ts_graph_latest_before(const struct ts_graph_build *build, uint32_t stream,
				struct ts_graph_moment moment)
{
	uint32_t count = ts_graph_issued_before(build, stream, moment);

	if (count == 0)
		return TS_WORK_NONE;
	return build->latest[build->work->streams[stream].first_command + count - 1];
}

/* ---- by end ---- */

struct ended {
	int64_t end;
	uint32_t command;
};

static int compare_ends(const void *one, const void *other)
{
	const struct ended *a = one, *b = other;

	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->command < b->command ? -1 : a->command > b->command;
}

bool ts_graph_by_end(struct ts_graph_build *build)
{
	const struct ts_work *work = build->work;
	struct ended *ended;

	if (build->by_end)
		return true;
	build->by_end = ts_graph_array(build, work->command_count, sizeof(*build->by_end));
	ended = ts_graph_array(build, work->command_count, sizeof(*ended));
	if (!ended)
		return false;
	for (uint32_t i = 0; i < work->command_count; i++)
		ended[i] = (struct ended){ work->commands[i].end, i };
	for (uint32_t r = 0; r < work->rank_count; r++)
		ts_sort(ended + work->ranks[r].first_command, work->ranks[r].command_count,
			sizeof(*ended), compare_ends);
	for (uint32_t i = 0; i < work->command_count; i++)
		build->by_end[i] = ended[i].command;
	free(ended);
	return true;
}

/* Number of commands of the rank that ended at or before an instant. */
static uint32_t ended_by(const struct ts_graph_build *build, const struct ts_work_rank *rank,
			 int64_t time)
{
	uint32_t low = 0, high = rank->command_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t command = build->by_end[rank->first_command + middle];

		if (build->work->commands[command].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Number of candidates examined: among more commands ending together nothing can be decided. */
#define LOOK_BACK 64

uint32_t ts_graph_ended_last(struct ts_graph_build *build, const struct ts_graph_question *question)
{
	const struct ts_work *work = build->work;
	const struct ts_work_rank *rank = &work->ranks[question->rank];
	uint32_t found = TS_WORK_NONE;

	if (!ts_graph_by_end(build))
		return TS_WORK_NONE;
	for (uint32_t i = ended_by(build, rank, question->to), n = 0; i-- > 0; n++) {
		uint32_t candidate = build->by_end[rank->first_command + i];
		const struct ts_work_command *command = &work->commands[candidate];

		if (command->end <= question->from || n == LOOK_BACK)
			break;
		if (command->stream == question->except ||
		    ts_graph_latest_before(build, command->stream, question->moment) != candidate)
			continue;
		if (found == TS_WORK_NONE)
			found = candidate;
		else if (command->stream != work->commands[found].stream)
			return work->commands[found].end - command->end <= question->close_ns
				       ? TS_WORK_NONE
				       : found;
		if (question->close_ns < 0)
			break;
	}
	return found;
}
