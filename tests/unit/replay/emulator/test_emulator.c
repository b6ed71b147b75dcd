/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator: small cases with known times, random models against a simple simulator, works as
 * loaded from traces; recorded starts are not used.
 */
#include "unit/replay/emulator/emulator_support.h"
#include "unit/replay/emulator/emulator_works.h"

static uint64_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % limit);
}

/* ---- handmade ---- */

struct simulated {
	struct ts_emulator_model *model;
	struct ts_emulator_times times;
	uint32_t positions[MOST];
};

static void simulate(struct simulated *simulated, const struct maker *maker,
		     enum ts_emulator_policy policy)
{
	struct ts_error err;

	memset(simulated, 0, sizeof(*simulated));
	simulated->model = maker_model(maker, simulated->positions);
	TS_CHECK_INT(ts_emulator_run(simulated->model,
				     &(struct ts_emulator_run_options){ .policy = policy },
				     &simulated->times, &err),
		     0);
}

static void forget(struct simulated *simulated)
{
	ts_emulator_times_release(&simulated->times);
	ts_emulator_model_free(simulated->model);
}

TS_TEST(a_command_begins_a_latency_behind_its_call)
{
	static struct maker maker;
	struct simulated simulated;

	maker_begin(&maker, 1, 1);
	maker_point(&maker, 0, 100, maker_command(&maker, 0, 50, 7));
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK_INT(simulated.times.issued[0], 100);
	TS_CHECK_INT(simulated.times.start[0], 107);
	TS_CHECK_INT(simulated.times.end[0], 157);
	TS_CHECK_INT(ts_emulator_span(simulated.model, &simulated.times), 50);
	forget(&simulated);
}

/* A call that waits for a command returns a fixed time after it, and all later calls move. */
TS_TEST(a_thread_waits)
{
	static struct maker maker;
	struct simulated simulated;
	uint32_t wait;

	maker_begin(&maker, 1, 1);
	maker_point(&maker, 0, 0, maker_command(&maker, 0, 50, 10));
	wait = maker_point(&maker, 0, 5, TS_WORK_NONE);
	maker_arrow(&maker, 0, wait, 3);
	maker_point(&maker, 0, 20, maker_command(&maker, 0, 1, 10));
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK_INT(simulated.times.points[1], 63);
	TS_CHECK_INT(simulated.times.issued[1], 83);
	TS_CHECK_INT(simulated.times.start[1], 93);
	forget(&simulated);
}

/* One slot: in the order of their calls; two: concurrently. */
TS_TEST(slots)
{
	static struct maker maker;
	struct simulated simulated;

	maker_begin(&maker, 1, 1);
	for (int i = 0; i < 3; i++)
		maker_point(&maker, 0, i ? 1 : 0, maker_command(&maker, 0, 10, 0));
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK_INT(simulated.times.start[1], 10);
	TS_CHECK_INT(simulated.times.start[2], 20);
	forget(&simulated);
	maker.slots[0] = 2;
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK_INT(simulated.times.start[1], 1);
	TS_CHECK_INT(simulated.times.start[2], 10);
	forget(&simulated);
}

/* While the first runs, two arrive; the policy chooses. Ties go by number. */
TS_TEST(policies)
{
	static struct maker maker;
	struct simulated simulated;

	maker_begin(&maker, 1, 1);
	maker_point(&maker, 0, 0, maker_command(&maker, 0, 10, 0));
	maker_point(&maker, 0, 1, maker_command(&maker, 0, 10, 0));
	maker_point(&maker, 0, 1, maker_command(&maker, 0, 5, 0));
	maker.commands[1].priority = 0;
	maker.commands[2].priority = -1;
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK_INT(simulated.times.start[1], 10);
	TS_CHECK_INT(simulated.times.start[2], 20);
	forget(&simulated);
	simulate(&simulated, &maker, TS_EMULATOR_PRIORITY);
	TS_CHECK_INT(simulated.times.start[2], 10);
	TS_CHECK_INT(simulated.times.start[1], 15);
	forget(&simulated);
	simulate(&simulated, &maker, TS_EMULATOR_SHORTEST);
	TS_CHECK_INT(simulated.times.start[2], 10);
	forget(&simulated);
	/* Both are ready at the instant a slot becomes free: the order is defined. */
	maker.points[1].gap_ns = 10;
	maker.points[2].gap_ns = 0;
	maker.commands[2].priority = 0;
	simulate(&simulated, &maker, TS_EMULATOR_PRIORITY);
	TS_CHECK_INT(simulated.times.start[1], 10);
	TS_CHECK_INT(simulated.times.start[2], 20);
	forget(&simulated);
}

/* A successor may overlap with its predecessor, but not begin before it. */
TS_TEST(followers)
{
	static struct maker maker;
	struct simulated simulated;

	maker_begin(&maker, 2, 1);
	maker.slots[0] = 2;
	maker_point(&maker, 0, 30, maker_command(&maker, 0, 10, 0));
	maker_point(&maker, 1, 0, maker_command(&maker, 0, 10, 0));
	maker.commands[0].follower = 1;
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK_INT(simulated.times.start[1], 30);
	forget(&simulated);
}

/*
 * Two commands that wait for each other, and a thread that waits for both: given up and counted,
 * and the simulation ends.
 */
TS_TEST(waits_for_ever)
{
	static struct maker maker;
	struct simulated simulated;
	uint32_t wait;

	maker_begin(&maker, 1, 1);
	maker_point(&maker, 0, 0, maker_command(&maker, 0, 10, 0));
	maker_point(&maker, 0, 0, maker_command(&maker, 0, 10, 0));
	maker_arrow(&maker, 0, 1, 0);
	maker_arrow(&maker, 1, 0, 0);
	wait = maker_point(&maker, 0, 0, TS_WORK_NONE);
	maker_arrow(&maker, 1, wait, 0);
	maker_point(&maker, 0, 5, maker_command(&maker, 0, 1, 0));
	simulate(&simulated, &maker, TS_EMULATOR_FIFO);
	TS_CHECK(simulated.times.broken_waits > 0);
	for (uint32_t c = 0; c < 3; c++)
		TS_CHECK(simulated.times.start[c] >= 0 && simulated.times.end[c] <= 100);
	forget(&simulated);
}

/* ---- random ---- */

/*
 * Everything depends only on what was created before it. Few distinct times: much happens at once.
 */
static void make_random(struct maker *maker, uint32_t points, bool cycles)
{
	uint32_t times = 1 + random_below(12);

	maker_begin(maker, 1 + random_below(3), 1 + random_below(3));
	for (uint32_t r = 0; r < maker->resource_count; r++)
		maker->slots[r] = 1 + random_below(3);
	for (uint32_t i = 0; i < points; i++) {
		uint32_t command = TS_WORK_NONE, node, thread = random_below(maker->thread_count);

		if (random_below(4)) {
			uint32_t resource = random_below(maker->resource_count + 1);

			command = maker_command(
				maker, resource == maker->resource_count ? TS_WORK_NONE : resource,
				random_below(times), random_below(times));
			maker->commands[command].priority = random_below(3);
			maker->commands[command].held_ns = random_below(4) ? 0
									   : random_below(times);
		}
		node = maker_point(maker, thread, random_below(times), command);
		if (command != TS_WORK_NONE)
			node = command;
		for (uint32_t e = random_below(4); e > 0; e--) {
			uint32_t from = random_below(2) || !maker->command_count
						? MOST + random_below(i + 1)
						: random_below(maker->command_count);

			if (from == node || (from == MOST + i && !cycles))
				continue;
			maker_arrow(maker, from, node, random_below(times));
			if (cycles && random_below(4) == 0)
				maker_arrow(maker, node, from, random_below(times));
		}
		if (command != TS_WORK_NONE && command > 0 && random_below(3) == 0) {
			uint32_t leader = random_below(command);

			if (maker->commands[leader].follower == TS_WORK_NONE)
				maker->commands[leader].follower = command;
		}
	}
}

static void compare_with_slow(const struct maker *maker, enum ts_emulator_policy policy)
{
	static struct slow slow;
	struct simulated simulated;

	simulate(&simulated, maker, policy);
	slow_run(&slow, simulated.model, policy);
	TS_CHECK_INT(simulated.times.broken_waits, 0);
	for (uint32_t c = 0; c < maker->command_count; c++) {
		TS_CHECK_INT(simulated.times.issued[c], slow.issued[c]);
		TS_CHECK_INT(simulated.times.start[c], slow.start[c]);
		TS_CHECK_INT(simulated.times.end[c], slow.end[c]);
	}
	for (uint32_t p = 0; p < maker->point_count; p++)
		TS_CHECK_INT(simulated.times.points[p], slow.points[p]);
	forget(&simulated);
}

TS_TEST(as_a_slow_simulator)
{
	static struct maker maker;

	for (int i = 0; i < 1500; i++) {
		make_random(&maker, 1 + random_below(40), false);
		compare_with_slow(&maker, (enum ts_emulator_policy)random_below(3));
	}
}

TS_TEST(cycles_end)
{
	static struct maker maker;
	struct simulated simulated;

	for (int i = 0; i < 1000; i++) {
		make_random(&maker, 1 + random_below(60), true);
		simulate(&simulated, &maker, (enum ts_emulator_policy)random_below(3));
		for (uint32_t c = 0; c < maker.command_count; c++)
			TS_CHECK(simulated.times.start[c] >= 0 &&
				 simulated.times.end[c] ==
					 simulated.times.start[c] + maker.commands[c].duration);
		forget(&simulated);
	}
}

TS_TEST(twice_the_same)
{
	static struct maker maker;
	struct simulated one, other;

	make_random(&maker, 200, true);
	simulate(&one, &maker, TS_EMULATOR_FIFO);
	simulate(&other, &maker, TS_EMULATOR_FIFO);
	TS_CHECK(!memcmp(one.times.start, other.times.start, 8 * maker.command_count));
	TS_CHECK(!memcmp(one.times.points, other.times.points, 8 * maker.point_count));
	TS_CHECK_INT(one.times.broken_waits, other.times.broken_waits);
	forget(&one);
	forget(&other);
}

/* ---- works ---- */

/*
 * A program of two streams, steadier than a real one: latencies and pauses are constant, but for
 * one kernel that is compiled first, so the emulator must reproduce every time.
 */
static void make_steady(struct fixture *fixture, uint32_t rounds)
{
	int64_t host = 1000, done[2] = { 0, 0 };

	fixture_begin(fixture, 1, 1, 1, 2);
	fixture_entities(fixture);
	for (uint32_t i = 0; i < rounds; i++) {
		for (uint32_t s = 0; s < 2; s++) {
			uint32_t call = fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch,
						     host, host + 2000);
			int64_t start = TS_MAX(host + 5000, done[s] + 1000);

			start += i == 20 && s == 0 ? 3000000 : 0;
			done[s] = start + 10000 + (i * 7919 + s * 104729) % 30000;
			fixture_command(fixture, s, call, start, done[s]);
			host += 3000;
		}
		if (i % 4 == 3) {
			int64_t end = TS_MAX(done[0], done[1]) + 2500;

			fixture_call(fixture, 0, TS_API_DEVICE_SYNC,
				     fixture_name(fixture->work, "cudaDeviceSynchronize"), host,
				     end);
			host = end + 1000;
		}
	}
	finish_work(fixture);
}

TS_TEST(a_steady_program_is_found_again)
{
	struct emulated emulated = { 0 };
	struct ts_emulator_errors errors;
	struct ts_error err;

	make_steady(&emulated.fixture, 40);
	emulate(&emulated, &AS_RECORDED);
	TS_CHECK_INT(ts_emulator_errors(&errors, emulated.fixture.work, &emulated.times, &err), 0);
	TS_CHECK_INT(errors.span_ns, errors.recorded_span_ns);
	TS_CHECK(errors.max == 0.0);
	TS_CHECK_INT(emulated.observed.slots[0][TS_EMULATOR_KERNELS], 2);
	TS_CHECK_INT(emulated.model->guessed_commands, 0);
	TS_CHECK_INT(emulated.model->held_commands, 1);
	forget_work(&emulated);
}

/*
 * Recorded starts are not used: if all of them change, but durations, calls, the order in each
 * queue, dependencies and the few observed numbers stay, the model is identical.
 */
TS_TEST(recorded_starts_do_not_go_in)
{
	struct emulated emulated = { 0 };
	struct ts_emulator_model *garbled;
	struct ts_emulator_times times = { 0 };
	struct ts_error err;
	uint32_t nodes;

	make_steady(&emulated.fixture, 60);
	emulate(&emulated, &AS_RECORDED);
	for (uint32_t s = 0; s < emulated.fixture.work->stream_count; s++) {
		const struct ts_work_stream *stream = &emulated.fixture.work->streams[s];
		int64_t at = -1000000000;

		for (uint32_t i = 0; i < stream->command_count; i++) {
			struct ts_work_command *command =
				&emulated.fixture.work->commands[stream->first_command + i];
			int64_t duration = command->end - command->start;

			at += random_below(1000000);
			command->start = at;
			command->end = at + duration;
		}
	}
	TS_CHECK_INT(ts_emulator_model_new(&garbled, emulated.fixture.work, emulated.graph,
					   &emulated.observed, &AS_RECORDED, &err),
		     0);
	nodes = garbled->command_count + garbled->point_count;
	TS_CHECK_INT(garbled->edge_count, emulated.model->edge_count);
	TS_CHECK(!memcmp(garbled->waits, emulated.model->waits, nodes * sizeof(uint32_t)));
	for (uint32_t c = 0; c < garbled->command_count; c++) {
		TS_CHECK_INT(garbled->commands[c].duration, emulated.model->commands[c].duration);
		TS_CHECK_INT(garbled->commands[c].launch_ns, emulated.model->commands[c].launch_ns);
		TS_CHECK_INT(garbled->commands[c].held_ns, emulated.model->commands[c].held_ns);
	}
	TS_CHECK_INT(ts_emulator_run(garbled, &(struct ts_emulator_run_options){ 0 }, &times, &err),
		     0);
	TS_CHECK(!memcmp(times.start, emulated.times.start, 8 * garbled->command_count));
	TS_CHECK(!memcmp(times.end, emulated.times.end, 8 * garbled->command_count));
	TS_CHECK(!memcmp(times.points, emulated.times.points, 8 * garbled->point_count));
	ts_emulator_times_release(&times);
	ts_emulator_model_free(garbled);
	forget_work(&emulated);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
	uint64_t *seen = context;

	TS_CHECK(done && done < total);
	*seen = done;
	return 1;
}

TS_TEST(a_simulation_can_be_stopped)
{
	struct emulated emulated = { 0 };
	struct ts_error err;
	uint64_t seen = 0;
	const struct ts_emulator_run_options options = { .progress = stop, .context = &seen };

	make_steady(&emulated.fixture, 1500);
	emulate(&emulated, &AS_RECORDED);
	TS_CHECK_INT(ts_emulator_run(emulated.model, &options, &emulated.times, &err),
		     TS_ECANCELED);
	TS_CHECK(seen);
	forget_work(&emulated);
}

/*
 * With one queue nothing runs concurrently; with more than recorded, everything without an event
 * may.
 */
TS_TEST(other_streams)
{
	static const struct ts_emulator_shape one = { .streams = 1 }, eight = { .streams = 8 };
	struct emulated emulated = { 0 };
	int64_t sum = 0, span;

	make_steady(&emulated.fixture, 40);
	emulate(&emulated, &one);
	for (uint32_t c = 0; c < emulated.model->command_count; c++) {
		sum += emulated.model->commands[c].duration;
		for (uint32_t d = 0; d < c; d++)
			TS_CHECK(emulated.times.end[c] <= emulated.times.start[d] ||
				 emulated.times.end[d] <= emulated.times.start[c]);
	}
	span = ts_emulator_span(emulated.model, &emulated.times);
	TS_CHECK(span >= sum);
	TS_CHECK_INT(emulated.model->streams[0], 0);
	forget_work(&emulated);
	make_steady(&emulated.fixture, 40);
	emulate(&emulated, &eight);
	TS_CHECK(ts_emulator_span(emulated.model, &emulated.times) < span);
	TS_CHECK_INT(emulated.model->slots[TS_EMULATOR_KERNELS], 8);
	forget_work(&emulated);
}

/* Copies of two directions that never overlapped share an engine. */
TS_TEST(copy_engines)
{
	for (int together = 0; together < 2; together++) {
		struct emulated emulated = { 0 };
		uint32_t call;

		fixture_begin(&emulated.fixture, 1, 1, 1, 2);
		fixture_entities(&emulated.fixture);
		call = fixture_call(&emulated.fixture, 0, TS_API_COPY, emulated.fixture.copy, 0,
				    1000);
		*fixture_command(&emulated.fixture, 0, call, 5000, 50000) =
			(struct ts_work_command){ .start = 5000,
						  .end = 50000,
						  .call = call,
						  .collective = TS_WORK_NONE,
						  .step = TS_WORK_NONE,
						  .kind = TS_GPU_OP_COPY,
						  .copy_kind = TS_COPY_HOST_TO_DEVICE };
		call = fixture_call(&emulated.fixture, 0, TS_API_COPY, emulated.fixture.copy, 2000,
				    3000);
		*fixture_command(&emulated.fixture, 1, call, together ? 7000 : 50000,
				 together ? 52000 : 95000) =
			(struct ts_work_command){ .start = together ? 7000 : 50000,
						  .end = together ? 52000 : 95000,
						  .issued = 2000,
						  .correlation = 1,
						  .stream = 1,
						  .row = 1,
						  .call = call,
						  .collective = TS_WORK_NONE,
						  .step = TS_WORK_NONE,
						  .kind = TS_GPU_OP_COPY,
						  .copy_kind = TS_COPY_DEVICE_TO_HOST };
		finish_work(&emulated.fixture);
		emulate(&emulated, &AS_RECORDED);
		TS_CHECK_INT(emulated.observed.engines[0],
			     together ? TS_EMULATOR_ENGINES : TS_EMULATOR_ONE_ENGINE);
		TS_CHECK((emulated.times.start[1] >= emulated.times.end[0]) == !together);
		forget_work(&emulated);
	}
}

/* A command without a call is submitted when it began, and marked as a guess. */
TS_TEST(without_calls)
{
	struct emulated emulated = { 0 };

	fixture_begin(&emulated.fixture, 1, 0, 1, 1);
	fixture_entities(&emulated.fixture);
	for (int i = 0; i < 5; i++)
		fixture_command(&emulated.fixture, 0, TS_WORK_NONE, i * 10000, i * 10000 + 4000);
	finish_work(&emulated.fixture);
	emulate(&emulated, &AS_RECORDED);
	TS_CHECK_INT(emulated.model->guessed_commands, 5);
	for (uint32_t c = 0; c < 5; c++)
		TS_CHECK_INT(emulated.times.start[c], c * 10000);
	forget_work(&emulated);
}

/* Traces may hold anything: the simulation ends, and every command keeps its duration. */
TS_TEST(hostile_works)
{
	static const int64_t odd[] = {
		0, 1, -1, INT64_C(1) << 60, -(INT64_C(1) << 60), (INT64_C(1) << 61) - 1, 1000, 2000
	};

	for (int i = 0; i < 400; i++) {
		const struct ts_emulator_shape shape = { .streams = random_below(4) };
		struct emulated emulated = { 0 };
		uint32_t count = 1 + random_below(60);

		fixture_begin(&emulated.fixture, 1, 2, 2, 4);
		fixture_entities(&emulated.fixture);
		for (uint32_t k = 0; k < count; k++) {
			int64_t start = odd[random_below(TS_ARRAY_SIZE(odd))] + random_below(50);
			int64_t end = odd[random_below(TS_ARRAY_SIZE(odd))] + random_below(50);
			enum ts_api_kind kind = random_below(TS_API_FREE + 1);
			uint32_t call = fixture_call(&emulated.fixture, random_below(2), kind,
						     random_below(2) ? emulated.fixture.blocking
								     : emulated.fixture.sync,
						     start, TS_MAX(start, end));

			if (random_below(3))
				fixture_command(&emulated.fixture, random_below(4),
						random_below(5) ? call : TS_WORK_NONE, end, start);
		}
		for (uint32_t s = 0; s < 4; s++)
			emulated.fixture.work->streams[s].flags =
				random_below(3) ? 0 : TS_STREAM_OUT_OF_ORDER;
		finish_work(&emulated.fixture);
		emulate(&emulated, &shape);
		for (uint32_t c = 0; c < emulated.model->command_count; c++)
			TS_CHECK(emulated.times.end[c] >= emulated.times.start[c]);
		forget_work(&emulated);
	}
}

/*
 * Waiting for an out-of-order queue means waiting for everything submitted to it, whatever ended
 * last.
 */
TS_TEST(a_queue_without_an_order)
{
	struct emulated emulated = { 0 };
	struct fixture *fixture = &emulated.fixture;
	uint32_t waits = 0;

	fixture_begin(fixture, 1, 1, 1, 1);
	fixture_entities(fixture);
	fixture->work->streams[0].flags = TS_STREAM_OUT_OF_ORDER;
	fixture_command(fixture, 0,
			fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch, 0, 1000), 5000,
			50000);
	fixture_command(fixture, 0,
			fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch, 2000, 3000), 7000,
			20000);
	fixture_call(fixture, 0, TS_API_STREAM_SYNC, fixture->sync, 4000, 52000);
	finish_work(fixture);
	emulate(&emulated, &AS_RECORDED);
	TS_CHECK_INT(emulated.times.start[0], 5000);
	TS_CHECK_INT(emulated.times.start[1], 7000);
	for (uint32_t p = 0; p < emulated.model->point_count; p++)
		waits += emulated.model->waits[emulated.model->command_count + p];
	TS_CHECK_INT(waits, 3); /* two commands, and the thread itself */
	TS_CHECK_INT(emulated.times.points[emulated.model->point_count - 1], 52000);
	forget_work(&emulated);
}

/*
 * Copies that were ready while a kernel ran, and began when it ended: the device has no copy
 * engine.
 */
TS_TEST(no_copy_engine)
{
	struct emulated emulated = { 0 };
	struct fixture *fixture = &emulated.fixture;
	struct ts_emulator_errors errors;
	struct ts_error err;

	fixture_begin(fixture, 1, 1, 1, 2);
	fixture_entities(fixture);
	for (int i = 0; i < 8; i++) {
		int64_t at = i * 2000000;
		struct ts_work_command *copy;

		fixture_command(
			fixture, 0,
			fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch, at, at + 1000),
			at + 5000, at + 1005000);
		copy = fixture_command(fixture, 1,
				       fixture_call(fixture, 0, TS_API_COPY, fixture->copy,
						    at + 2000 + i * 20000, at + 3000 + i * 20000),
				       at + 1005000, at + 1010000);
		copy->kind = TS_GPU_OP_COPY;
		copy->copy_kind = TS_COPY_DEVICE_TO_HOST;
	}
	finish_work(fixture);
	emulate(&emulated, &AS_RECORDED);
	TS_CHECK_INT(emulated.observed.engines[0], TS_EMULATOR_NO_ENGINE);
	TS_CHECK_INT(ts_emulator_errors(&errors, fixture->work, &emulated.times, &err), 0);
	TS_CHECK(errors.max < 0.001);
	forget_work(&emulated);
}
