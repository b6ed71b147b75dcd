/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process lists of NVIDIA's drivers: entries of several lengths, duplicates, other users, unknown
 * pids.
 */
#include "sample/metrics/nvml/nvml.h"

#include <dlfcn.h>

#include "base/process.h"
#include "sample/metrics/metric_sources.h"
#include "unit/sample/metrics/gpu_support.h"

static struct collected all;
static char hidden[64];

/* For drivers whose entries are longer than the name of their version says. */
static bool has_long_entries;

static void *find_unhidden(void *library, const char *name)
{
	if (has_long_entries && strcmp(name, "nvmlDeviceGetConfComputeMemSizeInfo") == 0)
		return dlsym(library, "nvmlInit_v2");
	return hidden[0] && strcmp(name, hidden) == 0 ? NULL : dlsym(library, name);
}

static struct nvml *open_fake(const char *settings, bool is_inner)
{
	const struct nvml_options options = {
		.library = fake_nvml_path(),
		.find = find_unhidden,
		.root = "/nowhere",
		.is_inner = is_inner,
	};
	struct nvml *nvml = NULL;
	char why[256] = "";

	setenv("FAKE_NVML", settings, 1);
	if (nvml_open(&nvml, &options, why, sizeof(why)) != TS_METRICS_READY)
		ts_test_fail(__FILE__, __LINE__, "not ready: %s", why);
	return nvml;
}

static void sample(struct nvml *nvml)
{
	collected_init(&all);
	nvml->gpus[0].last_ns[NVML_READ_PROCESSES] = 0;
	TS_CHECK_INT(ts_metrics_nvml.sample(nvml, &all.sink), 0);
}

/* "ME" and "PARENT" in the text are existing pids; 4000001 and above do not exist. */
static const char *with_pids(const char *format)
{
	static char settings[16384];
	size_t length = 0;

	while (*format && length < sizeof(settings) - 16) {
		if (strncmp(format, "ME", 2) == 0) {
			length += (size_t)sprintf(settings + length, "%d", (int)getpid());
			format += 2;
		} else if (strncmp(format, "PARENT", 6) == 0) {
			length += (size_t)sprintf(settings + length, "%d", (int)getppid());
			format += 6;
		} else {
			settings[length++] = *format++;
		}
	}
	settings[length] = '\0';
	return settings;
}

static void sample_once(const char *format)
{
	struct nvml *nvml = open_fake(with_pids(format), false);

	sample(nvml);
	ts_metrics_nvml.close(nvml);
}

static void expect_none(pid_t pid)
{
	TS_CHECK(given_of(&all, 0, pid, "memory_bytes", "used") == NULL);
}

TS_TEST(processes)
{
	sample_once("processes=ME:1234,4000001:5000,PARENT:77 graphics=0:3 mps=");
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1234);
	CHECK_OF_PROCESS(&all, 0, getppid(), "memory_bytes", "used", 77);
	TS_CHECK_INT(given_of(&all, 0, getpid(), "memory_bytes", "used")->subject.start_time,
		     ts_process_start_time(getpid()));
	expect_none(4000001);
}

TS_TEST(lengths_of_entries)
{
	static const char *const lengths[] = { "16", "24", "32" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(lengths); i++) {
		char settings[128];

		snprintf(settings, sizeof(settings),
			 "entry_bytes=%s processes=ME:1234,4000001:5000,PARENT:77", lengths[i]);
		sample_once(settings);
		CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1234);
		CHECK_OF_PROCESS(&all, 0, getppid(), "memory_bytes", "used", 77);
		snprintf(settings, sizeof(settings), "entry_bytes=%s processes=ME:1234",
			 lengths[i]);
		sample_once(settings);
		CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1234);
	}
	/* What the driver wrote is ambiguous: its version gives the length. */
	sample_once("dirty=1 processes=ME:1234,PARENT:77");
	CHECK_OF_PROCESS(&all, 0, getppid(), "memory_bytes", "used", 77);
}

TS_TEST(drivers_with_long_entries)
{
	has_long_entries = true;
	sample_once("dirty=1 entry_bytes=32 processes=ME:1234,PARENT:77");
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1234);
	CHECK_OF_PROCESS(&all, 0, getppid(), "memory_bytes", "used", 77);
}

TS_TEST(old_functions)
{
	snprintf(hidden, sizeof(hidden), "nvmlDeviceGetComputeRunningProcesses_v3");
	sample_once("processes=ME:1234,PARENT:77");
	CHECK_OF_PROCESS(&all, 0, getppid(), "memory_bytes", "used", 77);
}

TS_TEST(lengths_can_be_told)
{
	unsigned char list[256];

	memset(list, NVML_FILL, sizeof(list));
	TS_CHECK_INT(nvml_entry_bytes(list, sizeof(list), 2), 0);
	memset(list, 0, 32);
	TS_CHECK_INT(nvml_entry_bytes(list, sizeof(list), 2), 16);
	TS_CHECK_INT(nvml_entry_bytes(list, sizeof(list), 1), 32);
	TS_CHECK_INT(nvml_entry_bytes(list, sizeof(list), 3), 0);
	TS_CHECK_INT(nvml_entry_bytes(list, sizeof(list), 0), 0);
	memset(list, 0, sizeof(list));
	TS_CHECK_INT(nvml_entry_bytes(list, sizeof(list), 2), 0);
}

TS_TEST(memory_is_counted_once)
{
	sample_once("processes=ME:1000 graphics=ME:900 mps=ME:1000");
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1000);
	sample_once("processes=ME:1000/1/0,ME:500/2/0 graphics=ME:1000/1/0");
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1500);
}

TS_TEST(memory_that_is_not_known)
{
	sample_once("processes=ME:na");
	expect_none(getpid());
	sample_once("processes=ME:100/1/0,ME:na/2/0");
	expect_none(getpid());
	sample_once("processes=ME:100 graphics=ME:na");
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 100);
	sample_once("total=5000 processes=ME:5001");
	expect_none(getpid());
}

TS_TEST(more_than_there_is_room_for)
{
	static char settings[16384];
	size_t length = (size_t)sprintf(settings, "processes=");

	for (int i = 0; i < 300; i++)
		length += (size_t)sprintf(settings + length, "%d:%d,", 4000001 + i, i);
	sprintf(settings + length, "ME:4321");
	sample_once(settings);
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 4321);
}

TS_TEST(how_busy)
{
	struct nvml *nvml =
		open_fake(with_pids("processes=ME:1,PARENT:1 uses=ME:1000:40:10"), false);

	/* The first reading covers the entire past. */
	sample(nvml);
	TS_CHECK(given_of(&all, 0, getpid(), "utilization_percent", "compute") == NULL);
	setenv("FAKE_NVML",
	       with_pids("processes=ME:1,PARENT:1 uses=ME:2000:60:20,ME:1500:1:1,PARENT:900:7:7"),
	       1);
	sample(nvml);
	CHECK_OF_PROCESS(&all, 0, getpid(), "utilization_percent", "compute", 60);
	CHECK_OF_PROCESS(&all, 0, getpid(), "utilization_percent", "memory", 20);
	TS_CHECK(given_of(&all, 0, getppid(), "utilization_percent", "compute") == NULL);
	/* Nothing new, and garbage. */
	sample(nvml);
	TS_CHECK(given_of(&all, 0, getpid(), "utilization_percent", "compute") == NULL);
	setenv("FAKE_NVML", with_pids("processes=ME:1 uses=ME:3000:4000000:20"), 1);
	sample(nvml);
	TS_CHECK(given_of(&all, 0, getpid(), "utilization_percent", "compute") == NULL);
	ts_metrics_nvml.close(nvml);
}

/* In our own namespace a pid may be another process. */
TS_TEST(pids_of_another_namespace)
{
	struct nvml *nvml = open_fake(with_pids("processes=ME:1000 uses=ME:1000:40:10"), true);

	sample(nvml);
	expect_none(getpid());
	ts_metrics_nvml.close(nvml);
}

TS_TEST(who_has_the_driver_open)
{
	const char *root = tree_make();

	tree_link(root, "proc/41/fd/0", "/dev/null");
	tree_link(root, "proc/42/fd/0", "/dev/null");
	tree_link(root, "proc/42/fd/9", "/dev/nvidia0");
	TS_CHECK(!nvml_is_user(root, 40));
	TS_CHECK(!nvml_is_user(root, 41));
	TS_CHECK(nvml_is_user(root, 42));
	tree_remove(root);
}
