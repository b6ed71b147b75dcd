/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes with their totals, and anomalies, as result tables. */
#include <string.h>

#include "base/ns.h"
#include "cli/state/state_show.h"

/* ---- lanes ---- */

struct totals {
	int64_t state_ns[TS_STATE_FINISHED + 1], reason_ns[TS_REASON_COUNT];
	int64_t all_ns;
};

static void sum_up(const struct ts_state_view *view, const struct ts_state_lane *lane,
		   struct totals *totals)
{
	const struct ts_states *states = view->states;

	*totals = (struct totals){ 0 };
	for (size_t i = 0; i < lane->count; i++) {
		struct ts_state_interval interval = states->intervals[lane->first + i];
		int64_t ns;

		if (!ts_state_filter_cut(&view->filter, &interval))
			continue;
		ns = ts_ns_between(interval.start, interval.end);
		totals->state_ns[interval.state] = ts_ns_add(totals->state_ns[interval.state], ns);
		totals->reason_ns[interval.reason] =
			ts_ns_add(totals->reason_ns[interval.reason], ns);
		totals->all_ns = ts_ns_add(totals->all_ns, ns);
	}
}

enum { FIRST_REASON = 9, REASONS = 10, COLUMNS = FIRST_REASON + REASONS };

/* In column order. */
static const enum ts_state_reason reasons[REASONS] = {
	TS_REASON_PEERS,          TS_REASON_QUEUE,   TS_REASON_EVENT,      TS_REASON_COPY_ENGINE,
	TS_REASON_HOST,           TS_REASON_UNKNOWN, TS_REASON_HOST_BOUND, TS_REASON_DEPENDENCY,
	TS_REASON_LAUNCH_MISSING, TS_REASON_NOTHING,
};

static const struct ts_result_column lane_columns[COLUMNS] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "device", "device", TS_CELL_INTEGER },
	{ "stream", "stream", TS_CELL_INTEGER },
	{ "commands", "commands", TS_CELL_INTEGER },
	{ "window_us", NULL, TS_CELL_TIME },
	{ "running_us", "running", TS_CELL_TIME },
	{ "wait_us", "wait", TS_CELL_TIME },
	{ "dispatch_pending_us", "pending", TS_CELL_TIME },
	{ "idle_us", "idle", TS_CELL_TIME },
	{ "running_peers_us", "for peers", TS_CELL_TIME },
	{ "wait_queue_us", "queue", TS_CELL_TIME },
	{ "wait_event_us", "event", TS_CELL_TIME },
	{ "wait_copy_engine_us", "copy engine", TS_CELL_TIME },
	{ "wait_host_us", "host", TS_CELL_TIME },
	{ "wait_unknown_us", "unknown", TS_CELL_TIME },
	{ "idle_host_bound_us", "host bound", TS_CELL_TIME },
	{ "idle_dependency_us", "dependency", TS_CELL_TIME },
	{ "idle_launch_missing_us", "launch missing", TS_CELL_TIME },
	{ "idle_nothing_us", "nothing", TS_CELL_TIME },
};

/* A copy of the columns; reasons that no lane has get no title. */
static const struct ts_result_column *choose_columns(const struct ts_state_view *view,
						     struct ts_result *result)
{
	struct ts_result_column *columns =
		ts_arena_copy(&result->arena, lane_columns, sizeof(lane_columns));

	if (!columns)
		return lane_columns;
	for (size_t i = 0; i < REASONS; i++) {
		bool any = false;

		for (uint32_t l = 0; !any && l < view->states->lane_count; l++)
			any = ts_state_view_lane(view, &view->states->lanes[l]) &&
			      view->states->lanes[l].reason_ns[reasons[i]] > 0;
		if (!any)
			columns[FIRST_REASON + i].title = NULL;
	}
	return columns;
}

static uint32_t commands_of(const struct ts_work *work, const struct ts_state_lane *lane)
{
	const struct ts_work_device *device = &work->devices[lane->device];
	uint32_t count = 0;

	if (lane->stream != TS_WORK_NONE)
		return work->streams[lane->stream].command_count;
	for (uint32_t i = 0; i < device->stream_count; i++)
		count += work->streams[device->first_stream + i].command_count;
	return count;
}

static void fill_lane(const struct ts_state_view *view, const struct ts_state_lane *lane,
		      struct ts_result_table *table)
{
	const struct ts_work *work = view->states->work;
	struct totals totals;

	sum_up(view, lane, &totals);
	ts_cell_integer(table, work->ranks[work->devices[lane->device].rank].rank);
	ts_cell_integer(table, work->devices[lane->device].number);
	ts_cell_integer(table, lane->stream == TS_WORK_NONE ? TS_ABSENT
							    : work->streams[lane->stream].number);
	ts_cell_integer(table, commands_of(work, lane));
	ts_cell_time(table, totals.all_ns);
	ts_cell_time(table, totals.state_ns[TS_STATE_RUNNING]);
	ts_cell_time(table, totals.state_ns[TS_STATE_WAIT]);
	ts_cell_time(table, totals.state_ns[TS_STATE_DISPATCH_PENDING]);
	ts_cell_time(table, totals.state_ns[TS_STATE_IDLE]);
	for (size_t i = 0; i < REASONS; i++)
		ts_cell_time(table, totals.reason_ns[reasons[i]]);
}

void ts_state_fill_lanes(const struct ts_state_view *view, struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "lanes", choose_columns(view, result), COLUMNS);

	table->details = "commands wait_unknown_us idle_nothing_us idle_dependency_us";
	table->shown_rows = (size_t)view->top;
	for (uint32_t i = 0; i < view->states->lane_count; i++) {
		if (ts_state_view_lane(view, &view->states->lanes[i]))
			fill_lane(view, &view->states->lanes[i], table);
	}
}

/* ---- counts ---- */

static const struct ts_result_column count_columns[] = {
	{ "what", "anomaly", TS_CELL_TEXT },
	{ "count", "count", TS_CELL_INTEGER },
	{ "worst_us", "worst", TS_CELL_TIME },
	{ "meaning", "meaning", TS_CELL_TEXT },
};

struct count {
	const char *what;
	uint64_t count;
	int64_t worst_ns; /* TS_ABSENT: not applicable */
	const char *meaning;
};

static void fill_latencies(const struct ts_state_view *view, struct ts_result *result)
{
	static const struct ts_result_column columns[] = {
		{ "rank", "rank", TS_CELL_INTEGER },
		{ "device", "device", TS_CELL_INTEGER },
		{ "launch_us", "typical launch latency", TS_CELL_TIME },
		{ "launch_samples", "seen", TS_CELL_INTEGER },
		{ "next_us", "typical gap between commands", TS_CELL_TIME },
		{ "next_samples", "seen", TS_CELL_INTEGER },
	};
	const struct ts_work *work = view->states->work;
	struct ts_result_table *table =
		ts_result_table(result, "latencies", columns, TS_ARRAY_SIZE(columns));

	table->shown_rows = (size_t)view->top;
	for (uint32_t d = 0; d < work->device_count; d++) {
		const struct ts_state_latency *latency = &view->states->latencies[d];

		if (!ts_state_filter_device(&view->filter, view->states, d))
			continue;
		ts_cell_integer(table, work->ranks[work->devices[d].rank].rank);
		ts_cell_integer(table, work->devices[d].number);
		ts_cell_time(table, latency->launch_ns);
		ts_cell_integer(table, latency->launch_samples);
		ts_cell_time(table, latency->next_ns);
		ts_cell_integer(table, latency->next_samples);
	}
}

void ts_state_fill_counts(const struct ts_state_view *view, const struct ts_graph *graph,
			  struct ts_result *result)
{
	const struct ts_states *states = view->states;
	const struct ts_work *work = states->work;
	const struct count counts[] = {
		{ "violations", states->violations, states->worst_violation_ns,
		  "started before a dependency ended" },
		{ "within_uncertainty", states->within_uncertainty, TS_ABSENT,
		  "the same, within the clock uncertainty" },
		{ "backward_edges", graph ? graph->backward_count : 0,
		  graph ? graph->worst_backward_ns : 0,
		  "other dependencies that go back in time: ignored" },
		{ "early_commands", work->early_commands, work->earliest_ns,
		  "started before their calls: host and device clocks disagree" },
		{ "disordered_commands", work->disordered_commands, TS_ABSENT,
		  "started before an earlier command of their stream" },
		{ "concurrent_commands", work->concurrent_commands, TS_ABSENT,
		  "overlapped other commands of their stream" },
		{ "commands_without_call", work->commands_without_call, TS_ABSENT,
		  "launch not in the trace" },
		{ "calls_without_command", work->calls_without_command, TS_ABSENT,
		  "launches without device activity" },
		{ "untimed_commands", work->untimed_commands, TS_ABSENT,
		  "end not in the trace: counted with zero duration" },
		{ "shared_calls", work->shared_calls, TS_ABSENT,
		  "correlation ids of several calls: first one used" },
		{ "coarse_gaps", states->coarse_gaps, TS_ABSENT,
		  "idle intervals not split at each host wait" },
	};
	struct ts_result_table *table = NULL;

	for (size_t i = 0; i < TS_ARRAY_SIZE(counts); i++) {
		if (view->format == TS_STATE_TEXT && counts[i].count == 0)
			continue;
		if (!table)
			table = ts_result_table(result, "counts", count_columns,
						TS_ARRAY_SIZE(count_columns));
		ts_cell_text(table, counts[i].what);
		ts_cell_integer(table, (int64_t)counts[i].count);
		ts_cell_time(table, counts[i].count ? counts[i].worst_ns : TS_ABSENT);
		ts_cell_text(table, counts[i].meaning);
	}
	fill_latencies(view, result);
}
