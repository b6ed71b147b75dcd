/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of NPU metrics with stand-ins for npu-smi (tests/lib/fake_npu_smi.sh) that misbehave
 * in every way.
 */
#include "sample/metrics/ascend/npu_smi.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "sample/metrics/metric_sources.h"
#include "unit/runner.h"

#define MS INT64_C(1000000)

/* ---- a sink that writes down what it gets ---- */

static struct ts_text values, messages;

static void put_device(void *context, const struct ts_metrics_device *device)
{
	ts_text_printf(&values, "device %u %s %s %s %" PRId64 "\n", device->number, device->vendor,
		       device->model, device->bus, device->memory_bytes);
}

static void put_subject(const struct ts_metrics_subject *subject, const char *name,
			const char *series)
{
	ts_text_printf(&values, "%u", subject->device);
	if (subject->kind == TS_METRICS_PROCESS_ON_DEVICE)
		ts_text_printf(&values, " %s",
			       subject->pid == getpid() && subject->start_time ==
								   ts_process_start_time(getpid())
				       ? "self"
				       : "other");
	ts_text_printf(&values, " %s{%s} ", name, series);
}

static void put_real(void *context, const struct ts_metrics_subject *subject, const char *name,
		     const char *series, double value)
{
	put_subject(subject, name, series);
	ts_text_printf(&values, "%.1f\n", value);
}

static void put_integer(void *context, const struct ts_metrics_subject *subject, const char *name,
			const char *series, int64_t value)
{
	put_subject(subject, name, series);
	ts_text_printf(&values, "%" PRId64 "\n", value);
}

static void put_message(void *context, const char *text)
{
	ts_text_printf(&messages, "%s\n", text);
}

static const struct ts_metrics_sink sink = { sizeof(sink), NULL,        put_device,
					     put_real,     put_integer, put_message };

/* ---- a stand-in ---- */

static char folder[] = "/tmp/ts-npu-XXXXXX";
static char log_path[64];
static struct ts_npu_smi *smi;

static void set_table(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/data/npu-smi/%s.txt", getenv("TS_SOURCE"), name);
	setenv("FAKE_TABLE", path, 1);
}

static void behave(const char *how)
{
	setenv("FAKE_NPU_SMI", how, 1);
}

static void start(const char *how)
{
	char link_path[256], target[512], path[512], why[256];
	void *state = NULL;

	if (!getenv("TS_SOURCE"))
		ts_test_skip("TS_SOURCE does not say where the repository is");
	TS_CHECK(mkdtemp(folder) != NULL);
	snprintf(link_path, sizeof(link_path), "%s/npu-smi", folder);
	snprintf(target, sizeof(target), "%s/tests/lib/fake_npu_smi.sh", getenv("TS_SOURCE"));
	TS_CHECK_INT(symlink(target, link_path), 0);
	snprintf(path, sizeof(path), "%s:/bin:/usr/bin", folder);
	setenv("PATH", path, 1);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	setenv("FAKE_LOG", log_path, 1);
	behave(how);
	set_table("910B-23.0.rc3.3");
	TS_CHECK_INT(ts_metrics_npu_smi.open(&state, why, sizeof(why)), TS_METRICS_READY);
	smi = state;
	smi->limit_ns = 60000 * MS;
	smi->pause_ns = 0;
}

static void finish(void)
{
	char path[256];

	ts_metrics_npu_smi.close(smi);
	snprintf(path, sizeof(path), "%s/npu-smi", folder);
	unlink(path);
	unlink(log_path);
	rmdir(folder);
	ts_text_release(&values);
	ts_text_release(&messages);
	/* No child remains to be waited for. */
	TS_CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);
}

static int sample(void)
{
	ts_text_clear(&values);
	ts_text_clear(&messages);
	smi->next_ns = 0;
	return ts_metrics_npu_smi.sample(smi, &sink);
}

/* No value at all, and a message that contains this. */
static void expect_nothing(const char *message)
{
	TS_CHECK_INT(sample(), 0);
	TS_CHECK_STR(ts_text_cstr(&values), "");
	if (!strstr(ts_text_cstr(&messages), message))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", ts_text_cstr(&messages),
			     message);
	TS_CHECK(smi->failures > 0);
}

#define VALUES_910B                           \
	"0 utilization_percent{compute} 93\n" \
	"0 memory_bytes{used} 62202576896\n"  \
	"0 power_W{draw} 141.2\n"             \
	"0 temperature_C{core} 43\n"

#define DEVICES_910B                                                   \
	"device 0 Ascend 910B3 0000:C1:00.0 68719476736\n" VALUES_910B \
	"device 1 Ascend 910B3 0000:C2:00.0 -9223372036854775808\n"    \
	"device 2 Ascend 910B3 0000:81:00.0 68719476736\n"             \
	"2 memory_bytes{used} 0\n"                                     \
	"2 power_W{draw} 91.5\n"                                       \
	"2 temperature_C{core} 40\n"

static void expect_values(const char *expected)
{
	TS_CHECK_INT(sample(), 0);
	TS_CHECK_STR(ts_text_cstr(&values), expected);
	TS_CHECK_INT(smi->failures, 0);
}

/* ---- expected behaviour ---- */

TS_TEST(values_are_given)
{
	start("print");
	expect_values(DEVICES_910B);
	TS_CHECK_STR(
		ts_text_cstr(&messages),
		"NPU 1 chip 0 does not answer (npu-smi shows zeros only); its values are left out\n"
		"NPU 2 chip 0: its health is 'Critical'\n"
		"npu-smi printed an implausible 'AICore(%)' of NPU 2; it is left out\n");
	/* Devices are reported once. */
	expect_values(VALUES_910B "2 memory_bytes{used} 0\n2 power_W{draw} 91.5\n"
				  "2 temperature_C{core} 40\n");
	finish();
}

TS_TEST(power_says_what_it_is)
{
	start("print");
	set_table("910C-25.2.0");
	TS_CHECK_INT(sample(), 0);
	TS_CHECK(strstr(ts_text_cstr(&values), "\n0 power_W{card} 158.3\n") != NULL);
	TS_CHECK(strstr(ts_text_cstr(&values), "\n1 power_W") == NULL);
	TS_CHECK(strstr(ts_text_cstr(&values), "power_W{draw}") == NULL);
	set_table("310-20.2.2");
	TS_CHECK_INT(sample(), 0);
	TS_CHECK(strstr(ts_text_cstr(&values), "\n0 power_W{rated} 12.8\n") != NULL);
	set_table("950-25.7.rc1");
	TS_CHECK_INT(sample(), 0);
	TS_CHECK(strstr(ts_text_cstr(&values), "\n0 utilization_percent{npu} 33\n") != NULL);
	TS_CHECK(strstr(ts_text_cstr(&values), "{compute}") == NULL);
	finish();
}

/* A table that lists us, and one that has ended. */
static void write_table(const char *path)
{
	FILE *file = fopen(path, "w");

	TS_CHECK(file != NULL);
	fprintf(file,
		"+--+\n| npu-smi 1 Version: 1 |\n+--+\n| NPU Name | Health | Power(W) |\n"
		"| Chip | Bus-Id | HBM-Usage(MB) |\n+==+\n| 5 M | OK | 1.0 |\n| 0 | NA | 1/2 |\n+==+\n"
		"| NPU Chip | Process id | Process name | Process memory(MB) | Process id in container |\n+==+\n"
		"| 5 0 | %d | a | 3 | NA |\n| 5 0 | 2147483646 | b | 4 | NA |\n+==+\n",
		(int)getpid());
	fclose(file);
	setenv("FAKE_TABLE", path, 1);
}

TS_TEST(processes_are_those_that_we_see)
{
	const char *device =
		"device 5 Ascend M  2097152\n5 memory_bytes{used} 1048576\n5 power_W{draw} 1.0\n";
	char expected[256], path[64];

	start("print");
	snprintf(path, sizeof(path), "%s/table", folder);
	write_table(path);
	smi->sees_host_pids = true;
	snprintf(expected, sizeof(expected), "%s5 self memory_bytes{used} 3145728\n", device);
	expect_values(expected);
	TS_CHECK_STR(ts_text_cstr(&messages), "");
	/* In a container another process may have that number. */
	smi->sees_host_pids = false;
	expect_values(strchr(device, '\n') + 1);
	TS_CHECK(strstr(ts_text_cstr(&messages), "host pids in this container") != NULL);
	unlink(path);
	finish();
}

TS_TEST(the_locale_is_ours)
{
	setenv("LC_ALL", "zh_CN.UTF-8", 1);
	setenv("LANGUAGE", "zh", 1);
	start("locale");
	expect_values(DEVICES_910B);
	finish();
}

TS_TEST(without_a_tool_there_is_nothing)
{
	char why[256] = "";
	void *state = NULL;

	setenv("PATH", "/nowhere", 1);
	if (!access("/usr/local/sbin/npu-smi", X_OK) || !access("/usr/local/bin/npu-smi", X_OK))
		ts_test_skip("there is an npu-smi here");
	TS_CHECK(ts_metrics_npu_smi.open(&state, why, sizeof(why)) != TS_METRICS_READY);
	TS_CHECK(state == NULL);
	TS_CHECK(strstr(why, "npu-smi") != NULL);
}

/* ---- misbehaviour ---- */

TS_TEST(failures_give_no_values)
{
	start("fail");
	expect_nothing(
		"npu-smi exited with code 187, saying 'dcmi module initialize failed. ret is -8005'; values are left out: load the driver");
	behave("fail_behind_table");
	expect_nothing("npu-smi exited with code 1; values are left out");
	behave("nothing");
	expect_nothing("npu-smi printed nothing");
	behave("killed");
	expect_nothing("npu-smi was killed by signal 11; values are left out");
	behave("print");
	for (int i = 0; i < 8; i++) {
		static const char *const names[] = { "bad-locale",      "bad-comma",
						     "bad-new-column",  "bad-renamed",
						     "bad-unit",        "bad-cut",
						     "bad-row-missing", "bad-no-driver" };

		set_table(names[i]);
		expect_nothing("; values are left out");
	}
	finish();
}

TS_TEST(unknown_processes_do_not_hide_devices)
{
	start("print");
	set_table("bad-processes");
	expect_values(DEVICES_910B);
	TS_CHECK(strstr(ts_text_cstr(&messages), "memory of processes is left out") != NULL);
	finish();
}

TS_TEST(without_an_npu_it_is_closed)
{
	start("none");
	TS_CHECK(sample() != 0);
	TS_CHECK_STR(ts_text_cstr(&values), "");
	finish();
}

TS_TEST(endless_output_gives_no_values)
{
	start("endless");
	smi->max_bytes = 100000;
	expect_nothing("npu-smi printed more than 97.7 KiB and was killed");
	finish();
}

/* The pids that the stand-in wrote down. */
static int logged_pids(int *pids, int most)
{
	FILE *file = fopen(log_path, "r");
	char line[128];
	int count = 0;

	TS_CHECK(file != NULL);
	while (count < most && fgets(line, sizeof(line), file))
		pids[count++] = (int)strtol(line, NULL, 10);
	fclose(file);
	return count;
}

static void expect_gone(pid_t pid)
{
	for (int i = 0; i < 1000 && ts_process_start_time(pid); i++)
		usleep(10000);
	TS_CHECK_INT(ts_process_start_time(pid), 0);
}

TS_TEST(one_that_hangs_is_killed)
{
	int pids[4];

	start("hang");
	/* On a busy machine it needs longer to write its log. */
	for (smi->limit_ns = 300 * MS; access(log_path, F_OK); smi->limit_ns *= 2)
		expect_nothing("and was killed");
	smi->limit_ns = 300 * MS;
	TS_CHECK_INT(logged_pids(pids, 4), 1);
	expect_gone(pids[0]);
	behave("drip");
	expect_nothing("npu-smi did not end within 300 ms and was killed");
	finish();
}

TS_TEST(a_pipe_held_open_delays_nobody)
{
	int pids[4];

	start("grandchild");
	expect_values(DEVICES_910B);
	TS_CHECK_INT(logged_pids(pids, 4), 2);
	expect_gone(pids[1]);
	finish();
}

/* ---- intervals ---- */

static int calls(void)
{
	int pids[64];

	return logged_pids(pids, 64);
}

TS_TEST(failures_are_asked_less_often)
{
	int64_t before, pause = 0;

	start("fail");
	smi->pause_ns = 2000 * MS;
	for (int i = 0; i < 8; i++) {
		TS_CHECK_INT(sample(), 0);
		before = pause;
		pause = smi->next_ns - ts_clock_monotonic_ns();
		/* Twice as long, up to the time that this check takes; never more than a minute. */
		TS_CHECK(pause > before || pause > 50000 * MS);
		TS_CHECK(pause <= 60000 * MS);
	}
	TS_CHECK(pause > 50000 * MS);
	TS_CHECK_INT(calls(), 8);
	/* Not early. */
	TS_CHECK_INT(ts_metrics_npu_smi.sample(smi, &sink), 0);
	TS_CHECK_INT(calls(), 8);
	/* It recovers, and is as before. */
	behave("print");
	expect_values(DEVICES_910B);
	TS_CHECK_INT(calls(), 9);
	finish();
}

/* Waits for another instance of us. */
TS_TEST(calls_take_turns)
{
	int ends[2], status;
	char byte;
	pid_t other;

	start("print");
	TS_CHECK_INT(pipe(ends), 0);
	other = fork();
	if (other == 0) {
		int fd = open(smi->program, O_RDONLY);

		if (fd < 0 || flock(fd, LOCK_EX) || write(ends[1], "", 1) != 1)
			_exit(2);
		usleep(200000);
		/* No call was made meanwhile. */
		_exit(access(log_path, F_OK) ? 0 : 1);
	}
	TS_CHECK_INT(read(ends[0], &byte, 1), 1);
	expect_values(DEVICES_910B);
	waitpid(other, &status, 0);
	TS_CHECK_INT(status, 0);
	close(ends[0]);
	close(ends[1]);
	finish();
}

/* An instance that never ends its turn does not stop us. */
TS_TEST(turns_are_not_waited_for_without_end)
{
	int fd;

	start("print");
	fd = open(smi->program, O_RDONLY);
	TS_CHECK_INT(flock(fd, LOCK_EX), 0);
	smi->limit_ns = 2000 * MS;
	expect_values(DEVICES_910B);
	close(fd);
	finish();
}

TS_TEST(none_is_started_beside_one_that_hangs)
{
	start("print");
	/* As if a killed one were stuck in the kernel. */
	smi->remains = getpid();
	smi->remains_start = ts_process_start_time(getpid());
	expect_nothing("was killed but hangs in the driver");
	TS_CHECK(access(log_path, F_OK) != 0);
	smi->remains_start++;
	expect_values(DEVICES_910B);
	finish();
}
