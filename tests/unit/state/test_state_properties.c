/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of the states of any trace, over thousands of random ones: lanes partition time,
 * totals add up, commands pass through their states in order, and an independent model, which
 * examines everything at one instant, agrees with the passes of src/state/states/. The seed is
 * fixed.
 */
#include <stdio.h>

#include "unit/state/state_fixture.h"
#include "unit/state/state_model.h"

#define WORKS 4000
#define MOST_COMMANDS 14u

static uint64_t seed = 88172645463325252u;

static uint32_t any(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? (uint32_t)(seed >> 33) % below : 0;
}

static bool sometimes(uint32_t one_in)
{
	return any(one_in) == 0;
}

/* ---- random works ---- */

/* A command, regardless of its position in the file. */
struct plan {
	uint32_t stream, call, thread, direction;
	int64_t call_start, call_end, start, end;
	bool missing, early, other;
};

struct plans {
	struct plan items[MOST_COMMANDS];
	uint32_t count, threads, devices, streams;
	int64_t syncs[8][2];
	uint32_t sync_count, sync_threads[8];
	int64_t unit;
};

/* Starts differ, so that the order does not depend on the file. */
static void plan_command(struct plans *plans, uint32_t i)
{
	struct plan *plan = &plans->items[i];
	int64_t unit = plans->unit;

	plan->stream = any(plans->streams);
	plan->thread = any(plans->threads);
	plan->call_start = any(60) * unit;
	plan->call_end = plan->call_start + (int64_t)any(8) * unit;
	if (sometimes(30))
		plan->call_end = plan->call_start - unit;
	plan->start = plan->call_start + (any(16) * 32 + i + 1) * (unit / 8 / 4);
	plan->missing = sometimes(8);
	plan->early = sometimes(20);
	if (plan->early && !plan->missing)
		plan->start -= 20 * unit;
	plan->end = plan->start + (int64_t)any(10) * unit / 2;
	if (sometimes(30))
		plan->end = plan->start - (int64_t)any(5);
	plan->direction = sometimes(3) ? 1 + any(2) : 0;
	plan->other = sometimes(12);
	/* Several commands of one call: a graph. */
	plan->call = i && sometimes(6) ? plans->items[i - 1].call : i;
}

static void make_plans(struct plans *plans)
{
	*plans = (struct plans){
		.count = any(MOST_COMMANDS + 1),
		.threads = 1 + any(3),
		.devices = 1 + any(2),
		.unit = sometimes(2) ? 4096 : 32000,
	};
	plans->streams = plans->devices * (1 + any(3));
	for (uint32_t i = 0; i < plans->count; i++)
		plan_command(plans, i);
	plans->sync_count = any(8);
	for (uint32_t i = 0; i < plans->sync_count; i++) {
		plans->sync_threads[i] = any(plans->threads);
		plans->syncs[i][0] = any(80) * plans->unit;
		plans->syncs[i][1] = plans->syncs[i][0] + (int64_t)any(12) * plans->unit;
	}
}

static void make_command(struct fixture *fixture, const struct plans *plans, uint32_t i,
			 uint32_t *calls)
{
	const struct plan *plan = &plans->items[i];
	const struct plan *caller = &plans->items[plan->call];
	struct ts_work_command *command;
	uint32_t call = TS_WORK_NONE;

	if (!plan->missing) {
		if (calls[plan->call] == TS_WORK_NONE)
			calls[plan->call] = fixture_call(fixture, caller->thread, TS_API_LAUNCH,
							 fixture->launch, caller->call_start,
							 caller->call_end);
		call = calls[plan->call];
	}
	command = fixture_command(fixture, plan->stream, call, plan->start, plan->end);
	command->correlation = i;
	if (plan->direction) {
		command->kind = TS_GPU_OP_COPY;
		command->copy_kind = (uint8_t)plan->direction;
	}
	if (plan->other)
		command->class = TS_CLASS_OTHER;
	if (plan->missing && plan->early)
		command->issued = plan->call_start; /* of the column `queued` */
}

static void make_window(struct ts_work *work)
{
	int64_t from = INT64_MAX, to = INT64_MIN;

	for (uint32_t i = 0; i < work->command_count; i++) {
		from = TS_MIN(from, work->commands[i].start);
		to = TS_MAX(to, TS_MAX(work->commands[i].start, work->commands[i].end));
	}
	for (uint32_t i = 0; i < work->call_count; i++) {
		from = TS_MIN(from, work->calls[i].start);
		to = TS_MAX(to, work->calls[i].end);
	}
	work->ranks[0].from = from;
	work->ranks[0].to = to;
}

/* The rows are in the file in the order of `order`. */
static struct ts_work *make_work(const struct plans *plans, const uint32_t *order)
{
	uint32_t calls[MOST_COMMANDS];
	struct fixture fixture;

	memset(calls, 0xff, sizeof(calls));
	fixture_begin(&fixture, 1, plans->threads, plans->devices, plans->streams);
	fixture_entities(&fixture);
	for (uint32_t i = 0; i < plans->count; i++)
		make_command(&fixture, plans, order[i], calls);
	for (uint32_t i = 0; i < plans->sync_count; i++)
		fixture_call(&fixture, plans->sync_threads[i], TS_API_STREAM_SYNC, fixture.sync,
			     plans->syncs[i][0], plans->syncs[i][1]);
	fixture_finish(&fixture);
	make_window(fixture.work);
	return fixture.work;
}

/* Events between streams, as a graph has them: never back in time. */
static void make_edges(struct fixture_graph *graph, const struct ts_work *work)
{
	fixture_graph_begin(graph, work);
	for (uint32_t i = 0; i < 4 && work->command_count > 1; i++) {
		uint32_t from = any(work->command_count), to = any(work->command_count);
		const struct ts_work_command *a = &work->commands[from], *b = &work->commands[to];

		if (from != to && TS_MAX(a->end, a->start) <= b->start)
			fixture_graph_add(
				graph,
				(struct ts_edge){ .from = from, .to = to, .kind = TS_EDGE_EVENT });
	}
}

/* ---- invariants ---- */

static void check_instant(const struct model *model, const struct ts_state_lane *lane,
			  const struct ts_state_interval *interval, int64_t time)
{
	unsigned int reason, state = lane->stream == TS_WORK_NONE
					     ? device_at(model, lane->device, time, &reason)
					     : stream_at(model, lane->stream, time, &reason);

	TS_CHECK_INT(interval->state, state);
	TS_CHECK_INT(interval->reason, reason);
}

static void check_partition(const struct ts_states *states, const struct ts_state_lane *lane)
{
	const struct ts_state_interval *intervals = states->intervals + lane->first;
	const struct ts_work_rank *rank = &states->work->ranks[0];
	__int128 totals = 0, reasons = 0;
	int64_t at = rank->from;

	for (size_t i = 0; i < lane->count; i++) {
		TS_CHECK_INT(intervals[i].start, at);
		TS_CHECK(intervals[i].end > at);
		TS_CHECK(intervals[i].state <= TS_STATE_RUNNING);
		at = intervals[i].end;
	}
	TS_CHECK_INT(at, TS_MAX(rank->from, lane->count ? rank->to : rank->from));
	if (rank->from < rank->to)
		TS_CHECK_INT(at, rank->to);
	for (int i = 0; i <= TS_STATE_FINISHED; i++)
		totals += lane->total_ns[i];
	for (int i = TS_REASON_NONE + 1; i < TS_REASON_COUNT; i++)
		reasons += lane->reason_ns[i];
	if (rank->to > rank->from && (__int128)rank->to - rank->from <= INT64_MAX) {
		TS_CHECK(totals == (__int128)rank->to - rank->from);
		TS_CHECK(reasons == (__int128)lane->total_ns[TS_STATE_WAIT] +
					    lane->total_ns[TS_STATE_IDLE] +
					    lane->reason_ns[TS_REASON_PEERS]);
	}
}

static void check_commands(const struct ts_states *states, int64_t tolerance)
{
	for (uint32_t c = 0; c < states->work->command_count; c++) {
		const struct ts_command_state *state = &states->commands[c];
		struct ts_command_phases phases;

		ts_command_phases(states, c, &phases);
		TS_CHECK(phases.issued <= state->handed && state->handed <= state->ready);
		TS_CHECK(state->ready <= phases.start);
		TS_CHECK(phases.issued <= phases.handed_on && phases.handed_on <= phases.released);
		TS_CHECK(phases.released <= phases.start && phases.start <= phases.joined);
		TS_CHECK(phases.joined <= phases.end);
		TS_CHECK((state->reason != TS_REASON_NONE) == (state->ready > state->handed));
		TS_CHECK((state->reason != TS_REASON_NONE) == (state->blocker != TS_WORK_NONE));
		if (state->blocker != TS_WORK_NONE)
			TS_CHECK((__int128)end_of(&states->work->commands[state->blocker]) <=
				 (__int128)phases.start + tolerance);
	}
}

/* Each command that began before its predecessor ended is counted, if these may not overlap. */
static void check_violations(const struct model *model)
{
	uint64_t violations = 0;

	for (uint32_t c = 0; c < model->work->command_count; c++) {
		const struct ts_work_command *command = &model->work->commands[c], *ahead;
		uint32_t last = last_ahead(model, c);

		if (last == TS_WORK_NONE)
			continue;
		ahead = &model->work->commands[last];
		violations += end_of(ahead) > command->start + model->tolerance &&
			      ahead->class != TS_CLASS_OTHER &&
			      (ahead->call != command->call || ahead->call == TS_WORK_NONE);
	}
	TS_CHECK_INT(model->states->violations, violations);
}

static void check_same(const struct ts_states *a, const struct ts_states *b)
{
	TS_CHECK_INT(a->interval_count, b->interval_count);
	TS_CHECK_INT(a->violations, b->violations);
	for (size_t i = 0; i < a->interval_count; i++) {
		const struct ts_state_interval *x = &a->intervals[i], *y = &b->intervals[i];

		TS_CHECK_INT(x->start, y->start);
		TS_CHECK_INT(x->end, y->end);
		TS_CHECK_INT(x->state, y->state);
		TS_CHECK_INT(x->reason, y->reason);
		TS_CHECK_INT(x->command == TS_WORK_NONE, y->command == TS_WORK_NONE);
		if (x->command != TS_WORK_NONE)
			TS_CHECK_INT(a->work->commands[x->command].correlation,
				     b->work->commands[y->command].correlation);
	}
}

static void shuffle(uint32_t *order, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t j = any(i + 1), kept = order[j];

		order[j] = order[i];
		order[i] = kept;
	}
}

static void check_model(const struct model *model)
{
	const struct ts_states *states = model->states;

	for (uint32_t l = 0; l < states->lane_count; l++) {
		const struct ts_state_lane *lane = &states->lanes[l];

		check_partition(states, lane);
		for (size_t i = 0; i < lane->count; i++) {
			const struct ts_state_interval *interval =
				&states->intervals[lane->first + i];
			int64_t length = interval->end - interval->start;

			check_instant(model, lane, interval, interval->start);
			check_instant(model, lane, interval, interval->end - 1);
			check_instant(model, lane, interval,
				      interval->start + any((uint32_t)length));
		}
	}
}

/*
 * Resolution of whole us: 32 times 1000 is; 4096 ns is not, unless all are multiples of it by
 * chance.
 */
static int64_t tolerance_of(const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->command_count; i++) {
		if ((work->commands[i].start - work->commands[0].start) % 1000 ||
		    (work->commands[i].end - work->commands[0].start) % 1000)
			return 0;
	}
	return work->command_count ? 1000 : 0;
}

static struct ts_states *build(const struct ts_work *work, const struct ts_graph *graph)
{
	struct ts_states *states;

	TS_CHECK_INT(ts_states_new(&states, work, graph, NULL), 0);
	return states;
}

static void check_one(void)
{
	static struct fixture_graph graph;
	uint32_t order[MOST_COMMANDS];
	struct ts_work *work, *other;
	struct ts_states *states, *others;
	struct plans plans;
	bool with_graph = sometimes(2);

	make_plans(&plans);
	shuffle(order, plans.count);
	work = make_work(&plans, order);
	if (with_graph)
		make_edges(&graph, work);
	states = build(work, with_graph ? &graph.graph : NULL);
	struct model model = { work, with_graph ? &graph : NULL, states, tolerance_of(work) };
	check_model(&model);
	check_commands(states, model.tolerance);
	check_violations(&model);
	shuffle(order, plans.count);
	other = make_work(&plans, order);
	graph.graph.work = other;
	others = build(other, with_graph ? &graph.graph : NULL);
	check_same(states, others);
	ts_states_free(states);
	ts_states_free(others);
	ts_work_free(work);
	ts_work_free(other);
}

TS_TEST(any_trace)
{
	for (int i = 0; i < WORKS; i++)
		check_one();
}

/* Enough commands for latencies to be estimated, long gaps, and all of it without a model. */
TS_TEST(longer_traces)
{
	for (int round = 0; round < 50; round++) {
		uint32_t streams = 1 + any(6), commands = any(2000);
		int64_t host = 0, done[8] = { 0 };
		struct ts_states *states;
		struct fixture fixture;

		fixture_begin(&fixture, 1, 1, 1, streams);
		fixture_entities(&fixture);
		for (uint32_t i = 0; i < commands; i++) {
			uint32_t s = any(streams);
			uint32_t call = fixture_call(&fixture, 0, TS_API_LAUNCH, fixture.launch,
						     host, host + 2000 + any(4000));
			int64_t start = TS_MAX(host + 3000, done[s]) + 300 + any(2500);

			done[s] = start + any(30000);
			fixture_command(&fixture, s, call, start, done[s]);
			host += 2000 + any(sometimes(10) ? 300000 : 9000);
		}
		fixture_finish(&fixture);
		make_window(fixture.work);
		states = build(fixture.work, NULL);
		for (uint32_t l = 0; l < states->lane_count; l++)
			check_partition(states, &states->lanes[l]);
		check_commands(states, 0);
		TS_CHECK_INT(states->violations, 0);
		ts_states_free(states);
		ts_work_free(fixture.work);
	}
}

static int64_t hostile(void)
{
	static const int64_t times[] = {
		INT64_MIN, INT64_MIN + 1,    -(INT64_C(1) << 61), -1000,         -1,        0, 1,
		1000,      INT64_C(1) << 61, INT64_MAX - 1000,    INT64_MAX - 1, INT64_MAX,
	};

	return times[any(TS_ARRAY_SIZE(times))];
}

/* Arbitrary times: nothing overflows, the window is partitioned, states are in order. */
TS_TEST(hostile_times)
{
	for (int round = 0; round < WORKS; round++) {
		uint32_t commands = any(12);
		struct ts_states *states;
		struct fixture fixture;

		fixture_begin(&fixture, 1, 2, 1, 2);
		fixture_entities(&fixture);
		for (uint32_t i = 0; i < commands; i++) {
			uint32_t call = fixture_call(&fixture, any(2), TS_API_LAUNCH,
						     fixture.launch, hostile(), hostile());

			if (sometimes(3))
				fixture_call(&fixture, any(2), TS_API_STREAM_SYNC, fixture.sync,
					     hostile(), hostile());
			fixture_command(&fixture, any(2), sometimes(4) ? TS_WORK_NONE : call,
					hostile(), hostile())
				->copy_kind = (uint8_t)any(3);
		}
		fixture_finish(&fixture);
		if (sometimes(2))
			make_window(fixture.work);
		else
			fixture.work->ranks[0] = (struct ts_work_rank){ .from = hostile(),
									.to = hostile(),
									.device_count = 1 };
		states = build(fixture.work, NULL);
		for (uint32_t l = 0; l < states->lane_count; l++)
			check_partition(states, &states->lanes[l]);
		check_commands(states, 1000);
		ts_states_free(states);
		ts_work_free(fixture.work);
	}
}
