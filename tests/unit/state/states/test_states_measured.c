/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine where it depends on numbers that no drawing shows
 * (unit/state/states/test_states.c): resolutions, latencies, uncertainties of ranks, many segments.
 */
#include "unit/state/state_fixture.h"

static struct ts_states *build(const struct ts_work *work, const struct ts_graph *graph)
{
	struct ts_states *states;

	TS_CHECK_INT(ts_states_new(&states, work, graph, NULL), 0);
	return states;
}

/* Two commands, the second of which begins `overlap` ns before the first ends. */
static struct ts_states *overlap(struct fixture *fixture, int64_t scale, int64_t overlap_ns)
{
	fixture_begin(fixture, 1, 1, 1, 1);
	fixture_entities(fixture);
	fixture->work->ranks[0].to = 100 * scale;
	fixture_command(fixture, 0,
			fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch, 0, scale),
			10 * scale, 20 * scale);
	fixture_command(fixture, 0,
			fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch, scale, 2 * scale),
			20 * scale - overlap_ns, 30 * scale);
	fixture_finish(fixture);
	return build(fixture->work, NULL);
}

static void check_overlap(int64_t scale, int64_t overlap_ns, uint64_t violations, uint64_t within)
{
	struct fixture fixture;
	struct ts_states *states = overlap(&fixture, scale, overlap_ns);

	TS_CHECK_INT(states->violations, violations);
	TS_CHECK_INT(states->worst_violation_ns, violations ? overlap_ns : 0);
	TS_CHECK_INT(states->within_uncertainty, within);
	/* Within the uncertainty it was still held; beyond, it was not. */
	TS_CHECK_INT(states->commands[1].reason, violations ? TS_REASON_NONE : TS_REASON_QUEUE);
	TS_CHECK_INT(states->lanes[1].total_ns[TS_STATE_RUNNING], 20 * scale);
	ts_states_free(states);
	ts_work_free(fixture.work);
}

/* Times in whole us are uncertain by one; a device's own clock in ns is not. */
TS_TEST(overlaps_within_the_resolution)
{
	check_overlap(1000, 0, 0, 0);
	check_overlap(1000, 1000, 0, 1);
	check_overlap(1000, 2000, 1, 0);
	check_overlap(1001, 0, 0, 0);
	check_overlap(1001, 1, 1, 0);
	check_overlap(1001, 1000, 1, 0);
}

/*
 * Twice the median, of enough samples; it does not matter if a third of them were held by something
 * unknown.
 */
TS_TEST(usual_latency)
{
	struct ts_states *states;
	struct fixture fixture;

	fixture_begin(&fixture, 1, 1, 1, 1);
	fixture_entities(&fixture);
	for (int64_t i = 0; i < 30; i++) {
		int64_t at = i * 1000003;
		uint32_t call =
			fixture_call(&fixture, 0, TS_API_LAUNCH, fixture.launch, at, at + 3000);

		fixture_command(&fixture, 0, call, at + (i % 3 ? 6500 : 400000), at + 500000);
		call = fixture_call(&fixture, 0, TS_API_LAUNCH, fixture.launch, at + 3500,
				    at + 6000);
		fixture_command(&fixture, 0, call, at + 500000 + (i % 3 ? 1100 : 90000),
				at + 700000);
	}
	fixture.work->ranks[0].to = 30 * 1000003;
	fixture_finish(&fixture);
	states = build(fixture.work, NULL);
	TS_CHECK_INT(states->latencies[0].launch_ns, 13000);
	TS_CHECK_INT(states->latencies[0].launch_samples, 30);
	TS_CHECK_INT(states->latencies[0].next_ns, 2200);
	TS_CHECK_INT(states->latencies[0].next_samples, 30);
	TS_CHECK_INT(states->lanes[1].reason_ns[TS_REASON_UNKNOWN],
		     10 * (400000 - 13000) + 10 * (90000 - 2200));
	ts_states_free(states);
	ts_work_free(fixture.work);
}

/*
 * Two ranks, a collective on each: that of rank 0 ends at 5000, that of rank 1 begins at `begin`.
 */
static struct ts_states *meet(struct fixture *fixture, struct fixture_graph *graph, int64_t begin,
			      int64_t uncertainty_ns)
{
	struct ts_edge edge = { .kind = TS_EDGE_COLLECTIVE,
				.flags = TS_EDGE_FROM_START | TS_EDGE_TO_END };

	fixture_begin(fixture, 2, 0, 2, 2);
	for (uint32_t r = 0; r < 2; r++) {
		fixture->work->ranks[r] = (struct ts_work_rank){ .first_device = r,
								 .device_count = 1,
								 .first_stream = r,
								 .stream_count = 1,
								 .to = 10001,
								 .uncertainty_ns = uncertainty_ns };
		fixture->work->devices[r] =
			(struct ts_work_device){ .rank = r, .first_stream = r, .stream_count = 1 };
		fixture->work->streams[r] = (struct ts_work_stream){ .rank = r, .device = r };
	}
	fixture_command(fixture, 0, TS_WORK_NONE, 1, 5000)->class = TS_CLASS_COMMUNICATION;
	fixture_command(fixture, 1, TS_WORK_NONE, begin, 10000)->class = TS_CLASS_COMMUNICATION;
	fixture_finish(fixture);
	fixture_graph_begin(graph, fixture->work);
	edge.from = 1;
	fixture_graph_add(graph, edge);
	edge.from = 0;
	edge.to = 1;
	fixture_graph_add(graph, edge);
	return build(fixture->work, &graph->graph);
}

static void check_collective(int64_t begin, int64_t uncertainty_ns, uint64_t violations,
			     uint64_t within)
{
	static struct fixture_graph graph;
	struct fixture fixture;
	struct ts_states *states = meet(&fixture, &graph, begin, uncertainty_ns);

	TS_CHECK_INT(states->violations, violations);
	TS_CHECK_INT(states->within_uncertainty, within);
	TS_CHECK_INT(states->lanes[1].reason_ns[TS_REASON_PEERS],
		     (begin > 5000 ? 5000 : begin) - 1);
	TS_CHECK_INT(states->lanes[3].reason_ns[TS_REASON_PEERS], 0);
	TS_CHECK_INT(states->lanes[1].total_ns[TS_STATE_RUNNING], 4999);
	ts_states_free(states);
	ts_work_free(fixture.work);
}

TS_TEST(collectives_across_ranks)
{
	check_collective(3000, 0, 0, 0);
	check_collective(5100, 0, 1, 0);
	check_collective(5100, 50, 0, 1);
	check_collective(5101, 50, 1, 0);
	/* The clock offset is unknown: nothing counts as an anomaly. */
	check_collective(9000, TS_ABSENT, 0, 0);
}

/* Spans of parent nodes contain their children. */
TS_TEST(jobs_hold_others)
{
	struct ts_states *states;
	struct fixture fixture;

	fixture_begin(&fixture, 1, 0, 1, 1);
	fixture_entities(&fixture);
	fixture.work->ranks[0].to = 1000;
	fixture_command(&fixture, 0, TS_WORK_NONE, 10, 900)->class = TS_CLASS_OTHER;
	fixture_command(&fixture, 0, TS_WORK_NONE, 20, 301);
	fixture_command(&fixture, 0, TS_WORK_NONE, 310, 800);
	fixture_finish(&fixture);
	states = build(fixture.work, NULL);
	TS_CHECK_INT(states->violations, 0);
	TS_CHECK_INT(states->lanes[0].total_ns[TS_STATE_RUNNING], 890);
	ts_states_free(states);
	ts_work_free(fixture.work);
}

/*
 * A thread waits very often, while many streams are idle: intervals must not be streams times
 * waits.
 */
TS_TEST(idle_in_too_many_pieces)
{
	enum { MANY = 1500 };
	struct ts_states *states;
	struct fixture fixture;

	fixture_begin(&fixture, 1, 1, 1, MANY / 2);
	fixture_entities(&fixture);
	for (uint32_t s = 0; s < MANY / 2; s++) {
		uint32_t call = fixture_call(&fixture, 0, TS_API_LAUNCH, fixture.launch, s, s + 1);

		fixture_command(&fixture, s, call, 3000 + s, 4000 + s);
		call = fixture_call(&fixture, 0, TS_API_LAUNCH, fixture.launch, 900000 + s,
				    900001 + s);
		fixture_command(&fixture, s, call, 903000 + s, 904000 + s);
	}
	for (int64_t i = 0; i < MANY; i++)
		fixture_call(&fixture, 0, TS_API_STREAM_SYNC, fixture.sync, 10000 + i * 500,
			     10000 + i * 500 + 400);
	fixture.work->ranks[0].to = 1000000;
	fixture_finish(&fixture);
	states = build(fixture.work, NULL);
	TS_CHECK(states->coarse_gaps > 0);
	TS_CHECK(states->interval_count < 40 * MANY * 4);
	/* The host waited for four fifths of it. */
	TS_CHECK_INT(states->intervals[states->lanes[MANY / 2].first + 3].reason,
		     TS_REASON_DEPENDENCY);
	for (uint32_t l = 0; l < states->lane_count; l++)
		TS_CHECK_INT(states->lanes[l].total_ns[TS_STATE_IDLE] +
				     states->lanes[l].total_ns[TS_STATE_DISPATCH_PENDING] +
				     states->lanes[l].total_ns[TS_STATE_WAIT] +
				     states->lanes[l].total_ns[TS_STATE_RUNNING],
			     1000000);
	ts_states_free(states);
	ts_work_free(fixture.work);
}

TS_TEST(nothing_at_all)
{
	struct ts_states *states;
	struct fixture fixture;

	fixture_begin(&fixture, 1, 0, 0, 0);
	fixture.work->ranks[0].from = 1;
	fixture_finish(&fixture);
	states = build(fixture.work, NULL);
	TS_CHECK_INT(states->lane_count, 0);
	TS_CHECK_INT(states->interval_count, 0);
	ts_states_free(states);
	ts_work_free(fixture.work);
}

TS_TEST(names)
{
	TS_CHECK_STR(ts_state_reason_name(TS_REASON_NONE), "");
	TS_CHECK_STR(ts_state_reason_name(TS_REASON_NOTHING), "nothing");
	TS_CHECK_STR(ts_state_reason_name((enum ts_state_reason)99), "");
	TS_CHECK_STR(ts_state_name(TS_STATE_DISPATCH_PENDING), "dispatch_pending");
	TS_CHECK_STR(ts_state_name(TS_STATE_FINISHED), "finished");
}
