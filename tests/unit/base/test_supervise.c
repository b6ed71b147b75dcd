/* SPDX-License-Identifier: Apache-2.0 */
/* Children that exit, crash, hang, are stopped, and leave incomplete outputs. */
#include "base/supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "unit/runner.h"

#define MS INT64_C(1000000)
#define FOREVER_MS 600000

static struct ts_heartbeat *heartbeat;
static struct ts_supervised end;

static void sleep_ms(int64_t ms)
{
	usleep((useconds_t)(ms * 1000));
}

/* The child does `work`; it exits with what that returns. */
static void supervise(int (*work)(void))
{
	struct ts_error err;

	heartbeat = ts_supervise_alloc(sizeof(*heartbeat));
	TS_CHECK(heartbeat);
	TS_CHECK_INT(ts_supervise(heartbeat, &end, &err), TS_OK);
	if (end.is_child)
		_exit(work());
	TS_CHECK_INT(end.remains, 0);
}

static int return_7(void)
{
	return 7;
}

TS_TEST(exit_code)
{
	supervise(return_7);
	TS_CHECK_INT(end.exit_code, 7);
	TS_CHECK_INT(end.signal, 0);
	TS_CHECK_INT(end.stop_signal, 0);
	TS_CHECK(!end.timed_out);
}

/* With SIGCHLD ignored, as some shells start programs, the exit code is known all the same. */
TS_TEST(ignored_children)
{
	signal(SIGCHLD, SIG_IGN);
	supervise(return_7);
	TS_CHECK_INT(end.exit_code, 7);
}

static int crash(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

TS_TEST(crash)
{
	supervise(crash);
	TS_CHECK_INT(end.exit_code, -1);
	TS_CHECK_INT(end.signal, SIGSEGV);
	TS_CHECK(!end.timed_out);
}

/* ---- the time limit ---- */

static int hang(void)
{
	ts_heartbeat_set_limit(heartbeat, 200 * MS);
	sleep_ms(FOREVER_MS);
	return 0;
}

TS_TEST(time_limit)
{
	supervise(hang);
	TS_CHECK(end.timed_out);
	TS_CHECK_INT(end.limit_ns, 200 * MS);
	TS_CHECK_INT(end.signal, SIGKILL);
	TS_CHECK_INT(end.exit_code, -1);
}

static int beat(void)
{
	ts_heartbeat_set_limit(heartbeat, 1000 * MS);
	for (int i = 0; i < 15; i++) {
		sleep_ms(100);
		ts_heartbeat_beat(heartbeat);
	}
	return 0;
}

TS_TEST(beats_extend_the_limit)
{
	supervise(beat);
	TS_CHECK_INT(end.exit_code, 0);
}

static int be_stopped(void)
{
	pid_t child = getpid();

	/* Again, if it was not stopped yet. */
	if (!fork()) {
		while (getppid() == child) {
			sleep_ms(1500);
			kill(child, SIGCONT);
		}
		_exit(0);
	}
	ts_heartbeat_set_limit(heartbeat, 1000 * MS);
	raise(SIGSTOP);
	return 3;
}

TS_TEST(stopped_time_does_not_count)
{
	supervise(be_stopped);
	TS_CHECK_INT(end.exit_code, 3);
	TS_CHECK(!end.timed_out);
}

/* ---- terminals ---- */

/* As a terminal does with "stty tostop", if the child writes to it in the background. */
static int write_in_background(void)
{
	raise(SIGTTOU);
	return 4;
}

/* A shell continues a job only if it has seen it stop. */
TS_TEST(parent_stops_with_its_child)
{
	pid_t parent = fork();
	int status;

	if (!parent) {
		setpgid(0, 0);
		supervise(write_in_background);
		_exit(end.exit_code);
	}
	TS_CHECK_INT(waitpid(parent, &status, WUNTRACED), parent);
	TS_CHECK(WIFSTOPPED(status));
	TS_CHECK_INT(WSTOPSIG(status), SIGTTOU);
	kill(parent, SIGCONT);
	TS_CHECK_INT(waitpid(parent, &status, 0), parent);
	TS_CHECK(WIFEXITED(status));
	TS_CHECK_INT(WEXITSTATUS(status), 4);
}

/* ---- signals ---- */

static int stop_number;

/* A signal for the parent, once the child works. */
static void signal_parent(void)
{
	kill(getppid(), stop_number);
}

static void on_stop(int number)
{
	_exit(100 + number);
}

static int end_when_asked(void)
{
	signal(stop_number, on_stop);
	signal_parent();
	sleep_ms(FOREVER_MS);
	return 0;
}

static int take_no_notice(void)
{
	signal(stop_number, SIG_IGN);
	signal_parent();
	sleep_ms(FOREVER_MS);
	return 0;
}

TS_TEST(signals_are_passed_on)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++) {
		stop_number = numbers[i];
		signal(stop_number, SIG_DFL);
		supervise(end_when_asked);
		TS_CHECK_INT(end.stop_signal, stop_number);
		TS_CHECK_INT(end.exit_code, 100 + stop_number);
	}
}

TS_TEST(child_that_takes_no_notice_is_killed)
{
	stop_number = SIGTERM;
	supervise(take_no_notice);
	TS_CHECK_INT(end.stop_signal, SIGTERM);
	TS_CHECK_INT(end.signal, SIGKILL);
	TS_CHECK(!end.timed_out);
}

static int signal_and_return(void)
{
	signal_parent();
	return 5;
}

/* nohup. */
TS_TEST(ignored_signals_stay_ignored)
{
	stop_number = SIGHUP;
	signal(SIGHUP, SIG_IGN);
	supervise(signal_and_return);
	TS_CHECK_INT(end.exit_code, 5);
	TS_CHECK_INT(end.stop_signal, 0);
}

/* ---- the parent dies ---- */

TS_TEST(child_dies_with_its_parent)
{
	int ends[2];
	char byte;
	pid_t parent;

	TS_CHECK_INT(pipe(ends), 0);
	parent = fork();
	if (!parent) {
		struct ts_error err;

		heartbeat = ts_supervise_alloc(sizeof(*heartbeat));
		if (heartbeat && !ts_supervise(heartbeat, &end, &err) && end.is_child) {
			(void)!write(ends[1], "r", 1);
			sleep_ms(FOREVER_MS);
		}
		_exit(0);
	}
	close(ends[1]);
	TS_CHECK_INT(read(ends[0], &byte, 1), 1);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	/* The pipe ends when the child has gone, too. */
	TS_CHECK_INT(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

/* ---- outputs ---- */

static char output[64], part_path[80];

static int end_number; /* the signal that kills the child; 0: it exits */

static int begin_output(void)
{
	struct ts_output_part part;
	struct ts_error err;

	if (ts_output_part_init(&part, output, &err))
		return 1;
	if (access(part_path, F_OK))
		return 2;
	if (end_number)
		raise(end_number);
	return 0;
}

static void check_no_part(int number)
{
	char folder[] = "/tmp/test_supervise.XXXXXX";

	TS_CHECK(mkdtemp(folder));
	snprintf(output, sizeof(output), "%s/out", folder);
	snprintf(part_path, sizeof(part_path), "%s.part", output);
	end_number = number;
	supervise(begin_output);
	TS_CHECK_INT(end.signal, number);
	TS_CHECK_INT(end.exit_code, number ? -1 : 0);
	TS_CHECK(access(part_path, F_OK));
	TS_CHECK(access(output, F_OK));
	TS_CHECK_INT(rmdir(folder), 0);
}

TS_TEST(killed_child_leaves_no_part)
{
	check_no_part(SIGKILL);
}

/* A driver may call exit(). */
TS_TEST(child_that_exits_leaves_no_part)
{
	check_no_part(0);
}
