/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits of a replay, what it tells a watcher, and stopping it. */
#include "replay/monitor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "replay/replay.h"
#include "unit/replay/replay_fixture.h"
#include "unit/runner.h"

#define SECOND INT64_C(1000000000)
#define MEMORY 10
#define CORRELATION 7

static char path[64];
static const struct ts_replay_target target = {
	.name = "none",
	.needs = TS_REPLAY_NEEDS_STREAM,
	.can = TS_REPLAY_CAN_ALL,
};
static struct ts_replay_monitor monitor;
static struct ts_reader *reader;
static struct ts_replay *replay;

/* A launch, command 2, and its recorded duration; TS_ABSENT: it has none. */
static void make_trace(int64_t duration_ns)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;
	struct fixture_trace fixture;

	snprintf(path, sizeof(path), "/tmp/test_monitor.%d.sbt", (int)getpid());
	fixture_open(&fixture, path);
	fixture_objects(&fixture);
	fixture_memory(&fixture, MEMORY, NULL, 64);
	fixture_begin(&fixture, 1);
	fixture_command(&fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_LAUNCH,
				.queue = FIXTURE_QUEUE,
				.object = FIXTURE_STEP,
				.correlation = CORRELATION,
				.details = "{\"call\":\"clEnqueueNDRangeKernel\","
					   "\"global\":[16],\"args\":[{\"kind\":\"memory\","
					   "\"object\":10,\"offset\":0,\"bytes\":64,"
					   "\"access\":\"both\"}]}" });
	fixture_finish(&fixture, 1, NULL);
	row.correlation = CORRELATION;
	row.start = 1000000;
	row.kind = TS_GPU_OP_KERNEL;
	row.duration = duration_ns;
	if (duration_ns != TS_ABSENT)
		ts_writer_add(fixture.writer, TS_TABLE_GPU_OP, &row, NULL);
	fixture_close(&fixture);
}

static void start(int64_t duration_ns, int64_t limit_ns)
{
	struct ts_replay_options options = {
		.target = &target, .repeat = 1, .monitor = &monitor, .time_limit_ns = limit_ns
	};
	struct ts_error err;

	memset(&monitor, 0, sizeof(monitor));
	make_trace(duration_ns);
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), TS_OK);
	TS_CHECK_INT(ts_replay_open(&replay, reader, &options, &err), TS_OK);
}

static void end(void)
{
	ts_replay_close(replay);
	ts_reader_close(reader);
	unlink(path);
}

TS_TEST(limits)
{
	static const struct {
		int64_t duration_ns, limit_ns, run_ns, build_ns;
	} cases[] = {
		{ TS_ABSENT, TS_REPLAY_LIMIT_DEFAULT, 60 * SECOND, 600 * SECOND },
		{ SECOND / 1000, TS_REPLAY_LIMIT_DEFAULT, 60 * SECOND, 600 * SECOND },
		{ 2 * SECOND, TS_REPLAY_LIMIT_DEFAULT, 200 * SECOND, 600 * SECOND },
		/* A trace cannot ask for any time. */
		{ 1000 * SECOND, TS_REPLAY_LIMIT_DEFAULT, 3600 * SECOND, 600 * SECOND },
		{ INT64_MAX, TS_REPLAY_LIMIT_DEFAULT, 3600 * SECOND, 600 * SECOND },
		{ 2 * SECOND, 5 * SECOND, 5 * SECOND, 5 * SECOND },
		{ 2 * SECOND, TS_REPLAY_LIMIT_NONE, 0, 0 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		start(cases[i].duration_ns, cases[i].limit_ns);
		TS_CHECK_INT(monitor.run_limit_ns, cases[i].run_ns);
		TS_CHECK_INT(monitor.build_limit_ns, cases[i].build_ns);
		end();
	}
}

static uint64_t beats_since(uint64_t *last)
{
	uint64_t beats = monitor.heartbeat.beats - *last;

	*last = monitor.heartbeat.beats;
	return beats;
}

TS_TEST(activities)
{
	uint64_t last = 0;

	start(2 * SECOND, TS_REPLAY_LIMIT_DEFAULT);
	ts_replay_monitor_enter(replay, TS_REPLAY_BUILDING, "module 5");
	TS_CHECK_INT(monitor.activity, TS_REPLAY_BUILDING);
	TS_CHECK_STR(monitor.subject, "module 5");
	TS_CHECK_INT(monitor.heartbeat.limit_ns, 600 * SECOND);
	TS_CHECK(beats_since(&last) > 0);

	ts_replay_monitor_enter(replay, TS_REPLAY_RUNNING, NULL);
	TS_CHECK_STR(monitor.subject, "");
	TS_CHECK_INT(monitor.heartbeat.limit_ns, 0);

	ts_replay_monitor_command(replay, 0, true);
	TS_CHECK_STR(monitor.subject, "command 2, launch of 'step_'");
	TS_CHECK_INT(monitor.command, 2);
	TS_CHECK_INT(monitor.recorded_ns, 2 * SECOND);
	TS_CHECK_INT(monitor.heartbeat.limit_ns, 200 * SECOND);
	TS_CHECK(beats_since(&last) > 0);
	/* It is still the same command. */
	ts_replay_monitor_command(replay, 0, false);
	TS_CHECK_INT(beats_since(&last), 0);
	/* Others complete. */
	ts_replay_monitor_command(replay, 0, true);
	TS_CHECK(beats_since(&last) > 0);

	ts_replay_monitor_command(replay, TS_REPLAY_NONE, false);
	TS_CHECK_INT(monitor.heartbeat.limit_ns, 0);
	TS_CHECK_INT(monitor.command, 0);
	end();
}

/* ---- stopping ---- */

static int calls_left;
static const char *stopped_at;

static int stop_later(void *context, const char *doing, uint64_t done, uint64_t total)
{
	(void)context, (void)done, (void)total;
	stopped_at = doing;
	return calls_left-- == 0;
}

/* Simulates, and stops at the nth call of the callback. */
static int emulate(int n)
{
	const struct ts_replay_options options = { .target = &ts_replay_target_emulator,
						   .repeat = 1,
						   .progress = stop_later };
	struct ts_replay_report report;
	struct ts_error err;
	int rc;

	calls_left = n;
	replay = NULL;
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), TS_OK);
	rc = ts_replay_open(&replay, reader, &options, &err);
	if (!rc)
		rc = ts_replay_run(replay, &report, &err);
	ts_replay_close(replay);
	ts_reader_close(reader);
	return rc;
}

/* It runs nothing, and nobody could kill it: it has to look by itself. */
TS_TEST(emulator_can_be_stopped)
{
	bool while_loading = false, while_simulating = false;
	int rc, n = 0;

	make_trace(SECOND);
	while ((rc = emulate(n++)) != TS_OK) {
		TS_CHECK_INT(rc, TS_ECANCELED);
		while_loading |= !strcmp(stopped_at, "load");
		while_simulating |= !strcmp(stopped_at, "simulate");
	}
	TS_CHECK(while_loading && while_simulating);
	unlink(path);
}
