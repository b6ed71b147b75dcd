/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table `causes` of `idle`: why streams and devices did not run, according to the state machine
 * (state/states/states.h).
 */
#include "analyze/idle.h"
#include "base/text.h"

static const struct ts_result_column cause_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },         { "device", "device", TS_CELL_INTEGER },
	{ "stream", "stream", TS_CELL_INTEGER },     { "state", "state", TS_CELL_TEXT },
	{ "cause", "cause", TS_CELL_TEXT },          { "time_us", "time", TS_CELL_TIME },
	{ "share_pct", "share %", TS_CELL_PERCENT },
};

struct cause {
	uint8_t state, reason;
	int64_t ns;
};

#define CAUSE_COUNT ((TS_STATE_FINISHED + 1) * TS_REASON_COUNT)

static int longer_first(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* Sums the time of a lane by state and reason, without running time. */
static int64_t sum_lane(const struct ts_states *states, const struct ts_state_lane *lane,
			struct cause *causes)
{
	int64_t total_ns = 0;

	for (unsigned int i = 0; i < CAUSE_COUNT; i++)
		causes[i] = (struct cause){ .state = (uint8_t)(i / TS_REASON_COUNT),
					    .reason = (uint8_t)(i % TS_REASON_COUNT) };
	for (uint32_t i = lane->first; i < lane->first + lane->count; i++) {
		const struct ts_state_interval *interval = &states->intervals[i];
		int64_t ns = ts_ns_between(interval->start, interval->end);
		struct cause *cause = &causes[interval->state * TS_REASON_COUNT + interval->reason];

		if (interval->state == TS_STATE_RUNNING)
			continue;
		cause->ns = ts_ns_add(cause->ns, ns);
		total_ns = ts_ns_add(total_ns, ns);
	}
	return total_ns;
}

/* A stream with one command is idle before and after it: that says nothing. */
static bool says_nothing(const struct ts_states *states, const struct ts_state_lane *lane)
{
	return lane->stream != TS_WORK_NONE &&
	       states->work->streams[lane->stream].command_count <= 1;
}

/* Returns the time in which the lane did not run. */
static int64_t put_lane(struct ts_result_table *table, const struct ts_states *states,
			const struct ts_state_lane *lane)
{
	const struct ts_work *work = states->work;
	const struct ts_work_device *device = &work->devices[lane->device];
	struct cause causes[CAUSE_COUNT];
	int64_t total_ns = sum_lane(states, lane, causes);

	ts_sort(causes, CAUSE_COUNT, sizeof(*causes), longer_first);
	if (says_nothing(states, lane))
		return total_ns;
	for (unsigned int i = 0; i < CAUSE_COUNT && causes[i].ns > 0; i++) {
		ts_cell_integer(table, work->ranks[device->rank].rank);
		ts_cell_integer(table, device->number);
		ts_cell_integer(table, lane->stream == TS_WORK_NONE
					       ? TS_ABSENT
					       : work->streams[lane->stream].number);
		ts_cell_text(table, ts_enum_name("execution_state", causes[i].state));
		ts_cell_text(table, causes[i].reason == TS_REASON_NONE
					    ? NULL
					    : ts_state_reason_name(causes[i].reason));
		ts_cell_time(table, causes[i].ns);
		ts_cell_share(table, causes[i].ns, total_ns);
	}
	return total_ns;
}

/* Time in which a device did not run before the first or after the last command of its rank. */
static int64_t edges_of(const struct ts_states *states, const struct ts_state_lane *lane,
			const struct ts_span *commands)
{
	int64_t edges_ns = 0;

	for (size_t i = lane->first; i < lane->first + lane->count; i++) {
		const struct ts_state_interval *interval = &states->intervals[i];
		int64_t from = TS_MIN(interval->end, TS_MAX(interval->start, commands->start));
		int64_t to = TS_MAX(from, TS_MIN(interval->end, commands->end));

		if (interval->state != TS_STATE_RUNNING)
			edges_ns =
				ts_ns_add(edges_ns, ts_ns_add(ts_ns_between(interval->start, from),
							      ts_ns_between(to, interval->end)));
	}
	return edges_ns;
}

/* From the first to the last selected command of a rank; start > end if there are none. */
static struct ts_span commands_of(const struct ts_work *work, uint32_t rank)
{
	struct ts_span span = { INT64_MAX, INT64_MIN };

	for (uint32_t i = 0; i < work->ranks[rank].command_count; i++) {
		const struct ts_work_command *command =
			&work->commands[work->ranks[rank].first_command + i];

		if (!ts_busy_counts(work, command))
			continue;
		span.start = TS_MIN(span.start, command->start);
		span.end = TS_MAX(span.end, command->end);
	}
	return span;
}

/* Why device rows add up to more than the idle time of breakdown. */
static void note_edges(const struct ts_work *work, const struct ts_states *states,
		       struct ts_result *result)
{
	char text[TS_FORMAT_BYTES];
	int64_t edges_ns = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		struct ts_span commands = commands_of(work, rank);

		for (uint32_t i = 0; i < states->lane_count; i++) {
			const struct ts_state_lane *lane = &states->lanes[i];

			if (lane->stream == TS_WORK_NONE &&
			    states->work->devices[lane->device].rank == rank)
				edges_ns = ts_ns_add(edges_ns, edges_of(states, lane, &commands));
		}
	}
	if (edges_ns)
		ts_result_note(result,
			       "of the time in which devices did not run, %s are before the first "
			       "or after the last command of their rank; breakdown leaves them out",
			       ts_format_duration_ns(text, sizeof(text), edges_ns));
}

int ts_idle_put_causes(struct ts_analyze_request *request, int64_t gaps_ns,
		       struct ts_result *result, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "causes", cause_columns, TS_ARRAY_SIZE(cause_columns));
	const struct ts_states *states;
	int64_t streams_ns = 0;
	uint64_t left_out = 0;

	if (request->work->options.rounding == TS_ROUNDING_HTA) {
		ts_result_note(result, "causes need exact times (--rounding exact)");
		return TS_OK;
	}
	if (request->work->command_count == 0)
		return TS_OK;
	states = ts_analyze_all_states(request, err);
	if (!states)
		return err ? err->code : TS_ENOMEM;
	for (uint32_t i = 0; i < states->lane_count; i++) {
		int64_t ns = put_lane(table, states, &states->lanes[i]);

		if (states->lanes[i].stream != TS_WORK_NONE)
			streams_ns = ts_ns_add(streams_ns, ns);
		left_out += says_nothing(states, &states->lanes[i]);
	}
	if (streams_ns != gaps_ns)
		ts_result_note(result, "gaps are between commands of a stream; causes also cover "
				       "the time before its first and after its last one");
	note_edges(request->work, states, result);
	if (left_out)
		ts_result_note(result, "causes leave out: %s with one command",
			       TS_COUNTED(left_out, "stream"));
	return TS_OK;
}
