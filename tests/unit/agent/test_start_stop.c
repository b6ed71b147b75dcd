/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping at run time, as the area shows it. The test has no recorder:
 * tests/cli/record/start_stop.sh has.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "unit/agent/agent_support.h"

/* As agent_begin(), for a process that nobody wants to record. */
static void load_unrequested(void)
{
	snprintf(agent_folder, sizeof(agent_folder), "%s/ts-agent-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	TS_CHECK(mkdtemp(agent_folder) != NULL);
	setenv("TRACESMITH_LIVE_DIR", agent_folder, 1);
	unsetenv("TRACESMITH_AGENT");
	agent_load();
}

static uint64_t marks_now(void)
{
	struct agent_reader reader;
	uint64_t count;

	agent_open_reader(&reader);
	agent_drain(&reader);
	count = agent_count(&reader, TS_LIVE_INSTANT);
	agent_close_reader(&reader);
	return count;
}

static void mark(int times)
{
	for (int i = 0; i < times; i++)
		TS_INSTANT("mark", "test", TS_INT("i", i));
}

TS_TEST(a_process_that_nobody_records_starts_itself)
{
	load_unrequested();
	mark(3);
	TS_CHECK(!ts_enabled());
	TS_CHECK(!ts_process_tracer.core || !ts_process_tracer.core->control);
	TS_CHECK_INT(ts_stop(NULL, 0), -ESRCH);
	TS_CHECK_INT(ts_start(NULL), 0);
	TS_CHECK(ts_enabled());
	mark(4);
	TS_CHECK_INT(marks_now(), 4);
	TS_CHECK_INT(agent_control()->target_state, TS_LIVE_RUNNING);
	TS_CHECK_INT(agent_control()->mode, TS_LIVE_FLIGHT);
	TS_CHECK(agent_control()->session == 0 && agent_control()->since == 0);
	/* What it kept belongs to no later recording. */
	TS_CHECK_INT(ts_stop(NULL, 0), 0);
	TS_CHECK_INT(ts_start(NULL), 0);
	TS_CHECK(agent_control()->since > agent_control()->created.counter);
	agent_end(true);
}

TS_TEST(call_sites_and_threads_work_again_after_each_start)
{
	load_unrequested();
	for (int i = 0; i < 5; i++) {
		TS_CHECK_INT(ts_start(NULL), 0);
		mark(10);
		TS_CHECK_INT(marks_now(), 10);
		TS_CHECK_INT(ts_stop(NULL, 0), 0);
		TS_CHECK(!ts_enabled());
		TS_CHECK_INT(agent_control()->target_state, TS_LIVE_STOPPED);
		mark(10);
		TS_CHECK_INT(ts_stop(NULL, 0), -ESRCH);
	}
	/* One site, one ring. */
	TS_CHECK_INT(ts_process_tracer.core->sites, 1);
	TS_CHECK_INT(agent_control()->rings, 1);
	agent_end(true);
}

TS_TEST(options_are_in_the_area)
{
	struct ts_start_options options = { .size = sizeof(options),
					    .budget = 2 << 20,
					    .flags = TS_START_REDACT };
	char text[64];

	load_unrequested();
	TS_CHECK_INT(ts_start(&options), 0);
	TS_CHECK_INT(agent_control()->redact, 1);
	TS_CHECK_INT(agent_control()->budget, 2 << 20);
	/* Flight mode has no session that others could belong to. */
	TS_CHECK_INT(ts_start_environment(text, sizeof(text)), -ESRCH);
	TS_CHECK_INT(ts_stop(NULL, 0), 0);
	TS_CHECK_INT(ts_start(NULL), 0);
	TS_CHECK_INT(agent_control()->redact, 0);
	TS_CHECK_INT(ts_stop(NULL, 0), 0);
	agent_end(true);
}

TS_TEST(a_process_that_is_recorded_does_not_start)
{
	agent_begin("enabled=1");
	mark(1);
	TS_CHECK_INT(ts_start(NULL), -EBUSY);
	TS_CHECK_INT(ts_stop(NULL, 0), -ESRCH);
	TS_CHECK(ts_enabled());
	TS_CHECK(agent_control()->session == 0x1234);
	agent_end(true);
}

TS_TEST(without_the_tool_nothing_is_started)
{
	struct ts_start_options options = { .size = sizeof(options), .output = "x.sbt" };
	struct ts_start_options empty = { .size = sizeof(options), .output = "" };

	load_unrequested();
	setenv("TRACESMITH_RECORDER", "/nonexistent/tracesmith", 1);
	TS_CHECK_INT(ts_start(&empty), -EINVAL);
	TS_CHECK_INT(ts_start(&options), -ENOENT);
	TS_CHECK(!ts_enabled());
	TS_CHECK_INT(ts_stop(NULL, 0), -ESRCH);
	TS_CHECK_INT(ts_start(NULL), 0);
	mark(2);
	TS_CHECK_INT(marks_now(), 2);
	agent_end(true);
}

TS_TEST(a_live_directory_that_was_missing_may_come)
{
	load_unrequested();
	TS_CHECK_INT(chmod(agent_folder, 0755), 0);
	TS_CHECK_INT(ts_start(NULL), -EPERM);
	TS_CHECK(!ts_enabled());
	TS_CHECK_INT(chmod(agent_folder, 0700), 0);
	TS_CHECK_INT(ts_start(NULL), 0);
	mark(2);
	TS_CHECK_INT(marks_now(), 2);
	agent_end(true);
}

TS_TEST(a_child_follows_and_does_not_stop_its_parent)
{
	pid_t child;

	load_unrequested();
	TS_CHECK_INT(ts_start(NULL), 0);
	mark(1);
	child = fork();
	if (child == 0) {
		TS_CHECK_INT(ts_stop(NULL, 0), -ESRCH);
		mark(3);
		TS_CHECK_INT(marks_now(), 3);
		_exit(0);
	}
	agent_join_child(child);
	TS_CHECK_INT(ts_stop(NULL, 0), 0);
	/* Its children are off, and may start themselves. */
	child = fork();
	if (child == 0) {
		mark(3);
		TS_CHECK(!ts_enabled());
		TS_CHECK_INT(ts_start(NULL), 0);
		mark(2);
		TS_CHECK_INT(marks_now(), 2);
		_exit(0);
	}
	agent_join_child(child);
	agent_end(true);
}

/* ---- threads that emit all the time ---- */

static bool is_over;

static void *emit_always(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		TS_BEGIN("noise", "test");
		TS_END();
	}
	return NULL;
}

TS_TEST(threads_emit_while_others_start_and_stop)
{
	pthread_t threads[2];

	load_unrequested();
	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, emit_always, NULL), 0);
	for (int i = 0; i < 200; i++) {
		TS_CHECK_INT(ts_start(NULL), 0);
		mark(1);
		TS_CHECK_INT(ts_stop(NULL, 0), 0);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	TS_CHECK_INT(marks_now(), 200);
	TS_CHECK(agent_control()->rings <= 8);
	agent_end(true);
}
