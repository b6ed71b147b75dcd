/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is observed of single commands and calls: those that something outside the trace held up,
 * such as a compilation, keep their delay; those that waited for the device do not.
 */
#include "replay/emulator/what_if.h"

#include "unit/replay/emulator/emulator_works.h"

#define MS INT64_C(1000000)
#define US INT64_C(1000)

static void begin(struct emulated *emulated, uint32_t streams)
{
	*emulated = (struct emulated){ 0 };
	fixture_begin(&emulated->fixture, 1, 1, 1, streams);
	fixture_entities(&emulated->fixture);
}

/* A launch of 2 us, whose kernel runs in this time. */
static void launch(struct emulated *emulated, uint32_t stream, int64_t at, int64_t start,
		   int64_t end)
{
	struct fixture *fixture = &emulated->fixture;

	fixture_command(fixture, stream,
			fixture_call(fixture, 0, TS_API_LAUNCH, fixture->launch, at, at + 2 * US),
			start, end);
}

static void wait_until(struct emulated *emulated, int64_t at, int64_t end)
{
	struct fixture *fixture = &emulated->fixture;

	fixture_call(fixture, 0, TS_API_STREAM_SYNC, fixture->sync, at, end);
}

static void finish(struct emulated *emulated)
{
	finish_work(&emulated->fixture);
	emulate(emulated, &AS_RECORDED);
}

static int64_t held(const struct emulated *emulated, uint32_t command)
{
	return emulated->observed.held_ns ? emulated->observed.held_ns[command] : 0;
}

static void check_starts(const struct emulated *emulated)
{
	const struct ts_work *work = emulated->fixture.work;

	for (uint32_t c = 0; c < work->command_count; c++)
		TS_CHECK_INT(emulated->times.start[c], work->commands[c].start);
}

/*
 * Two kernels are compiled at their first launch, one after the other. The delay of the second one
 * counts from the end of the first one.
 */
static void make_compiled(struct emulated *emulated)
{
	int64_t at = 1000 * MS;

	begin(emulated, 1);
	launch(emulated, 0, 0, 300 * MS, 310 * MS);
	launch(emulated, 0, 10 * US, 500 * MS, 510 * MS);
	wait_until(emulated, 20 * US, 510 * MS + 3 * US);
	for (int i = 0; i < 4; i++, at += 100 * US)
		launch(emulated, 0, at, at + 5 * US, at + 50 * US);
	finish(emulated);
}

TS_TEST(a_compilation_is_kept)
{
	struct emulated emulated;

	make_compiled(&emulated);
	TS_CHECK_INT(held(&emulated, 0), 300 * MS - 5 * US);
	TS_CHECK_INT(held(&emulated, 1), 190 * MS - 1 * US); /* latency to the next */
	TS_CHECK_INT(emulated.model->held_commands, 2);
	TS_CHECK_INT(emulated.observed.latencies[0][TS_EMULATOR_KERNEL].launch_ns, 5 * US);
	check_starts(&emulated);
	forget_work(&emulated);
}

/* It is time of the host: a faster kernel or device is not compiled sooner, and latency is not it.
 */
TS_TEST(what_changes_a_compilation)
{
	static const struct {
		const char *text;
		int64_t held_ns;
	} cases[] = {
		{ "host-speed=2x", 300 * MS / 2 - 5 * US / 2 },
		{ "device-speed=2x", 300 * MS - 5 * US },
		{ "kernel:*=0.5x", 300 * MS - 5 * US },
		{ "latency=0.5x", 300 * MS - 5 * US },
	};
	struct emulated emulated;

	make_compiled(&emulated);
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		const struct ts_work *work = emulated.fixture.work;
		struct ts_emulator_model *model;
		struct ts_what_if what_if;
		struct ts_error err;

		TS_CHECK_INT(ts_what_if_parse(&what_if, &cases[i].text, 1, &err), 0);
		TS_CHECK_INT(ts_emulator_model_new(&model, work, emulated.graph, &emulated.observed,
						   &AS_RECORDED, &err),
			     0);
		TS_CHECK_INT(ts_what_if_apply(&what_if, work, model, &err), 0);
		TS_CHECK_INT(model->commands[0].held_ns, cases[i].held_ns);
		ts_emulator_model_free(model);
		ts_what_if_release(&what_if);
	}
	forget_work(&emulated);
}

/* The same delay, but at its end, or until after it, a kernel of another queue ran. */
TS_TEST(a_busy_device_does_not_hold)
{
	static const int64_t ends[] = { 20 * MS - 10 * US, 20 * MS, 30 * MS };

	for (size_t i = 0; i < TS_ARRAY_SIZE(ends); i++) {
		struct emulated emulated;

		begin(&emulated, 2);
		launch(&emulated, 0, 0, 5 * US, ends[i]);
		launch(&emulated, 1, 10 * US, 20 * MS, 40 * MS);
		finish(&emulated);
		TS_CHECK_INT(emulated.model->held_commands, 0);
		forget_work(&emulated);
	}
}

/* A kernel of another queue that ended before does not matter. */
TS_TEST(a_device_that_was_busy_before)
{
	struct emulated emulated;

	begin(&emulated, 2);
	launch(&emulated, 0, 0, 5 * US, 10 * MS);
	launch(&emulated, 1, 10 * US, 20 * MS, 40 * MS);
	finish(&emulated);
	TS_CHECK_INT(held(&emulated, 1), 20 * MS - 15 * US);
	check_starts(&emulated);
	forget_work(&emulated);
}

/* A machine on which every launch takes long: that is its latency, which a what-if can change. */
TS_TEST(a_usual_delay_is_a_latency)
{
	struct emulated emulated;

	begin(&emulated, 1);
	for (int i = 0; i < 20; i++)
		launch(&emulated, 0, i * 10 * MS, i * 10 * MS + 3 * MS, i * 10 * MS + 4 * MS);
	finish(&emulated);
	TS_CHECK_INT(emulated.model->held_commands, 0);
	TS_CHECK_INT(emulated.observed.latencies[0][TS_EMULATOR_KERNEL].launch_ns, 3 * MS);
	check_starts(&emulated);
	forget_work(&emulated);
}

/* A thread that lost the processor after what it waited for; the other waits are as usual. */
TS_TEST(a_long_tail_is_kept)
{
	struct emulated emulated;
	const struct ts_work *work;
	int64_t at = 0;

	begin(&emulated, 1);
	for (int i = 0; i < 8; i++) {
		int64_t tail = i == 3 ? 5 * MS : 4 * US;

		launch(&emulated, 0, at, at + 5 * US, at + 50 * US);
		wait_until(&emulated, at + 3 * US, at + 50 * US + tail);
		at += 60 * US + tail;
	}
	finish(&emulated);
	work = emulated.fixture.work;
	for (uint32_t i = 0; i < work->call_count; i++)
		if (ts_api_is_sync(work->calls[i].kind))
			TS_CHECK_INT(emulated.observed.tail_ns[i], i == 7 ? 5 * MS : 4 * US);
	check_starts(&emulated);
	forget_work(&emulated);
}
