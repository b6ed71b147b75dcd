/* SPDX-License-Identifier: Apache-2.0 */
/* Users of accelerators: /dev/full stands in for one; scripted sources, some of which hang. */
#include "sample/metrics/device_users.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "sample/metrics/device_files.h"
#include "unit/runner.h"

#define SECOND INT64_C(1000000000)

static struct ts_device_table files;
static struct ts_device_users users;

static void know(const char *path, const char *vendor, const char *name, const char *bus,
		 int64_t number, bool is_render)
{
	struct ts_device_file file = { .number = number, .is_render = is_render };
	struct stat status;

	snprintf(file.vendor, sizeof(file.vendor), "%s", vendor);
	snprintf(file.name, sizeof(file.name), "%s", name);
	snprintf(file.bus, sizeof(file.bus), "%s", bus);
	TS_CHECK_INT(stat(path, &status), 0);
	TS_CHECK_INT(ts_device_table_add_node(&files, status.st_rdev, &file), TS_OK);
}

/* A process that has these files open, until it is killed. */
static pid_t start_user(const char *const *paths)
{
	int ends[2];
	char byte;
	pid_t pid;

	for (size_t i = 0; paths[i]; i++)
		if (access(paths[i], R_OK | W_OK))
			ts_test_skip("this user cannot open the device files that stand in");
	TS_CHECK_INT(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; paths[i]; i++)
			if (open(paths[i], O_RDWR) < 0)
				_exit(1);
		if (write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	TS_CHECK_INT(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void end_user(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Rows of one process. */
static const char *rows_of(pid_t pid)
{
	static char text[1024];

	text[0] = '\0';
	for (size_t i = 0; i < users.count; i++) {
		const struct ts_device_user *user = &users.users[i];
		size_t used = strlen(text);

		if (user->pid != pid)
			continue;
		TS_CHECK_INT(user->start_time, ts_process_start_time(pid));
		snprintf(text + used, sizeof(text) - used, "%s %" PRId64 " %" PRId64 " %u %s\n",
			 user->vendor, user->device == TS_METRICS_UNKNOWN ? -1 : user->device,
			 user->memory_bytes == TS_METRICS_UNKNOWN ? -1 : user->memory_bytes,
			 user->evidence, user->files);
	}
	return text;
}

static void find(const struct ts_metrics_source *const *sources, int64_t limit_ns)
{
	struct ts_error err;

	ts_device_users_release(&users);
	TS_CHECK_INT(ts_device_users_find_by(&users, &files, sources, limit_ns, &err), TS_OK);
}

static void finish(void)
{
	ts_device_users_release(&users);
	ts_device_table_release(&files);
}

/* ---- sources ---- */

static pid_t reported_pid;
static volatile int reports_more;

static enum ts_metrics_state open_source(void **ret_state, char *why, size_t why_bytes)
{
	return TS_METRICS_READY;
}

static enum ts_metrics_state open_broken(void **ret_state, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "its driver is not loaded");
	return TS_METRICS_BROKEN;
}

static int report(void *state, const struct ts_metrics_sink *sink)
{
	const struct ts_metrics_device devices[] = {
		{ .number = 3, .vendor = "Test", .bus = "00000000:0A:00.0", .memory_bytes = 5 },
		{ .number = 4, .vendor = "Test", .memory_bytes = TS_METRICS_UNKNOWN },
	};
	struct ts_metrics_subject subject = { .kind = TS_METRICS_PROCESS_ON_DEVICE,
					      .device = 3,
					      .pid = reported_pid };
	struct ts_metrics_subject other = { .kind = TS_METRICS_DEVICE, .device = 3 };

	sink->device(sink->context, &devices[0]);
	sink->device(sink->context, &devices[1]);
	sink->integer(sink->context, &other, "memory_bytes", "used", 99);
	if (reported_pid) {
		sink->real(sink->context, &subject, "utilization_percent", "compute", 7.0);
		sink->integer(sink->context, &subject, "memory_bytes", "used", 1000);
	}
	if (reports_more) {
		subject.device = 4;
		sink->integer(sink->context, &subject, "memory_bytes", "used", 2000);
	}
	return 0;
}

static int hang(void *state, const struct ts_metrics_sink *sink)
{
	for (;;)
		pause();
	return 0;
}

static void close_source(void *state)
{
}

static const struct ts_metrics_source reporting_source = {
	TS_METRICS_ABI, sizeof(reporting_source), "saying", "", 0, open_source, report, close_source
};
static const struct ts_metrics_source hanging = {
	TS_METRICS_ABI, sizeof(hanging), "hanging", "", 0, open_source, hang, close_source
};
static const struct ts_metrics_source broken = { TS_METRICS_ABI, sizeof(broken), "broken",    "", 0,
						 open_broken,    report,         close_source };

/* ---- files ---- */

TS_TEST(files_make_users)
{
	const char *const both[] = { "/dev/full", "/dev/full", "/dev/kmsg", NULL };
	const char *const common[] = { "/dev/null", "/dev/zero", NULL };
	pid_t user = start_user(both), other = start_user(common);

	know("/dev/full", "Test", "full0", "", 0, false);
	know("/dev/kmsg", "Test", "kmsg1", "", 1, true);
	find(NULL, 0);
	TS_CHECK_STR(rows_of(user), "Test 0 -1 2 full0\nTest 1 -1 4 kmsg1\n");
	TS_CHECK_STR(rows_of(other), "");
	if (getuid() == 0)
		TS_CHECK(users.complete && !users.message[0]);
	ts_device_users_release(&users);
	TS_CHECK_INT(ts_device_users_find_by(&users, NULL, NULL, 0, NULL), TS_OK);
	TS_CHECK_INT(users.count, 0);
	end_user(user);
	end_user(other);
	find(NULL, 0);
	TS_CHECK_STR(rows_of(user), "");
	finish();
}

/* A file for all devices gives the vendor; if others give the device, it adds to them. */
TS_TEST(files_for_all_devices_are_joined)
{
	const char *const both[] = { "/dev/full", "/dev/kmsg", NULL }, *const one[] = { "/dev/full",
											NULL };
	pid_t user = start_user(both), other = start_user(one);

	know("/dev/full", "Test", "all", "", TS_METRICS_UNKNOWN, false);
	know("/dev/kmsg", "Test", "drawn", "", 7, true);
	find(NULL, 0);
	TS_CHECK_STR(rows_of(user), "Test 7 -1 6 drawn,all\n");
	TS_CHECK_STR(rows_of(other), "Test -1 -1 2 all\n");
	end_user(user);
	end_user(other);
	finish();
}

TS_TEST(we_are_no_user)
{
	int fd = open("/dev/full", O_RDWR);

	know("/dev/full", "Test", "full0", "", 0, false);
	find(NULL, 0);
	TS_CHECK_STR(rows_of(getpid()), "");
	close(fd);
	finish();
}

TS_TEST(users_are_sorted)
{
	const char *const both[] = { "/dev/full", "/dev/kmsg", NULL };
	pid_t first = start_user(both), second = start_user(both);

	know("/dev/full", "Zet", "full0", "", 0, false);
	know("/dev/kmsg", "Alef", "kmsg1", "", 1, false);
	find(NULL, 0);
	TS_CHECK(users.count >= 4);
	for (size_t i = 1; i < users.count; i++)
		TS_CHECK(users.users[i - 1].pid < users.users[i].pid ||
			 (users.users[i - 1].pid == users.users[i].pid &&
			  strcmp(users.users[i - 1].vendor, users.users[i].vendor) < 0));
	end_user(first);
	end_user(second);
	finish();
}

/* ---- vendors ---- */

TS_TEST(makers_know_better)
{
	const struct ts_metrics_source *const sources[] = { &reporting_source, NULL };
	const char *const both[] = { "/dev/full", "/dev/kmsg", NULL };
	pid_t user = start_user(both);

	/* Like CUDA: every device is opened, one is used. The bus id gives the vendor's number. */
	know("/dev/full", "Test", "full0", "0000:0a:00.0", 77, false);
	know("/dev/kmsg", "Test", "kmsg1", "0000:0b:00.0", 1, false);
	reported_pid = 0;
	find(sources, 60 * SECOND);
	TS_CHECK_STR(rows_of(user), "Test 1 -1 2 kmsg1\nTest 3 -1 2 full0\n");
	reported_pid = user;
	find(sources, 60 * SECOND);
	TS_CHECK_STR(rows_of(user), "Test 3 1000 3 full0\n");
	reports_more = 1;
	find(sources, 60 * SECOND);
	TS_CHECK_STR(rows_of(user), "Test 3 1000 3 full0\nTest 4 2000 1 \n");
	/* Without asking the sources. */
	find(sources, 0);
	TS_CHECK_STR(rows_of(user), "Test 1 -1 2 kmsg1\nTest 77 -1 2 full0\n");
	end_user(user);
	/* A process that has exited is not a user. */
	find(sources, 60 * SECOND);
	TS_CHECK_STR(rows_of(user), "");
	finish();
}

TS_TEST(one_that_hangs_holds_nobody)
{
	const struct ts_metrics_source *const sources[] = { &hanging, &reporting_source, &broken,
							    NULL };
	const char *const none[] = { NULL };
	pid_t user = start_user(none);

	reported_pid = user;
	find(sources, 2 * SECOND);
	TS_CHECK_STR(rows_of(user), "Test 3 1000 1 \n");
	TS_CHECK(!users.complete);
	/* Unless we are root, the message starts with hidden processes. */
	TS_CHECK(strstr(users.message, "hanging: no answer within 2") != NULL);
	TS_CHECK(strstr(users.message, "; broken: its driver is not loaded") != NULL);
	end_user(user);
	finish();
}

/* ---- others' processes ---- */

TS_TEST(what_is_hidden_is_told)
{
	const char *const one[] = { "/dev/full", NULL };
	pid_t user, child;
	int status;

	if (getuid() != 0)
		ts_test_skip("only root can become another user");
	user = start_user(one);
	know("/dev/full", "Test", "full0", "", 0, false);
	child = fork();
	if (child == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		find(NULL, 0);
		_exit(users.complete || *rows_of(user) ||
				      !strstr(users.message, "run as root to see all")
			      ? 1
			      : 0);
	}
	waitpid(child, &status, 0);
	TS_CHECK_INT(status, 0);
	end_user(user);
	finish();
}

TS_TEST(the_machine_can_be_asked)
{
	struct ts_error err;

	TS_CHECK_INT(ts_device_users_find(&users, 0, &err), TS_OK);
	ts_device_users_release(&users);
}
