/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs, with a scripted library: tests/lib/fake_nvml.c. */
#include "sample/metrics/nvml/nvml.h"

#include <dlfcn.h>
#include <math.h>

#include "sample/metrics/metric_sources.h"
#include "unit/sample/metrics/gpu_support.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- the library ---- */

static void configure(const char *settings)
{
	TS_CHECK_INT(setenv("FAKE_NVML", settings, 1), 0);
}

/* Hides symbols of the library with this prefix. */
static char hidden[64], hidden_too[64];

static void *find_unhidden(void *library, const char *name)
{
	if ((hidden[0] && strncmp(name, hidden, strlen(hidden)) == 0) ||
	    (hidden_too[0] && strcmp(name, hidden_too) == 0))
		return NULL;
	return dlsym(library, name);
}

static enum ts_metrics_state try_open(struct nvml **ret_nvml, const char *settings,
				      const char *root, char why[256])
{
	const struct nvml_options options = {
		.library = fake_nvml_path(),
		.find = find_unhidden,
		.root = root,
	};

	configure(settings);
	why[0] = '\0';
	return nvml_open(ret_nvml, &options, why, 256);
}

static struct nvml *open_fake(const char *settings)
{
	struct nvml *nvml = NULL;
	char why[256];

	if (try_open(&nvml, settings, "/nowhere", why) != TS_METRICS_READY)
		ts_test_fail(__FILE__, __LINE__, "not ready: %s", why);
	return nvml;
}

static void close_fake(struct nvml *nvml)
{
	ts_metrics_nvml.close(nvml);
}

/* Takes all readings, due or not. */
static int sample_all(struct nvml *nvml, struct collected *all)
{
	collected_init(all);
	for (unsigned int i = 0; i < nvml->count; i++)
		memset(nvml->gpus[i].last_ns, 0, sizeof(nvml->gpus[i].last_ns));
	return ts_metrics_nvml.sample(nvml, &all->sink);
}

static struct collected all;

/* Opens, takes one sample, closes. */
static int sample_once(const char *settings)
{
	struct nvml *nvml = open_fake(settings);
	int result = sample_all(nvml, &all);

	close_fake(nvml);
	return result;
}

/* ---- opening ---- */

static void expect_state(const char *settings, const char *root, enum ts_metrics_state state,
			 const char *part)
{
	struct nvml *nvml = NULL;
	char why[256];

	TS_CHECK_INT(try_open(&nvml, settings, root, why), state);
	TS_CHECK(nvml == NULL);
	if (!strstr(why, part))
		ts_test_fail(__FILE__, __LINE__, "'%s': '%s' does not say '%s'", settings, why,
			     part);
}

TS_TEST(reasons_of_not_starting)
{
	const char *root = tree_make();

	expect_state("nvmlInit_v2=9", "/nowhere", TS_METRICS_NONE, "no NVIDIA GPU");
	tree_file(root, "proc/driver/nvidia/version", "NVRM version\n");
	expect_state("nvmlInit_v2=9", root, TS_METRICS_BROKEN, "modprobe");
	expect_state("nvmlInit_v2=18", root, TS_METRICS_BROKEN, "reboot");
	expect_state("nvmlInit_v2=18", root, TS_METRICS_BROKEN, "version mismatch");
	expect_state("nvmlInit_v2=4", root, TS_METRICS_BROKEN, "/dev/nvidiactl");
	expect_state("nvmlInit_v2=17", root, TS_METRICS_BROKEN, "--gpus all");
	expect_state("nvmlInit_v2=999", root, TS_METRICS_BROKEN, "nvidia-smi");
	expect_state("nvmlDeviceGetCount_v2=999", root, TS_METRICS_BROKEN, "cannot count");
	expect_state("devices=0", root, TS_METRICS_NONE, "no GPU");
	expect_state("nvmlDeviceGetHandleByIndex_v2=15", root, TS_METRICS_BROKEN, "GPU is lost");
	tree_remove(root);
}

TS_TEST(hardware_without_a_driver)
{
	const char *root = tree_make();

	tree_file(root, "sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n");
	tree_file(root, "sys/bus/pci/devices/0000:00:1f.0/class", "0x030000\n");
	tree_file(root, "sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
	tree_file(root, "sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
	expect_state("nvmlInit_v2=9", root, TS_METRICS_NONE, "no NVIDIA GPU");
	tree_file(root, "sys/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n");
	tree_file(root, "sys/bus/pci/devices/0000:02:00.0/class", "0x030200\n");
	expect_state("nvmlInit_v2=9", root, TS_METRICS_BROKEN, "modprobe");
	tree_remove(root);
}

TS_TEST(no_library)
{
	struct nvml_options options = { .library = "/nowhere/libnvidia-ml.so.1" };
	struct nvml *nvml = NULL;
	char why[256];

	TS_CHECK_INT(nvml_open(&nvml, &options, why, sizeof(why)), TS_METRICS_BROKEN);
	TS_CHECK(strstr(why, "/nowhere/libnvidia-ml.so.1") && strstr(why, "utility"));
	options.library = NULL;
	options.root = "/nowhere";
	if (nvml_open(&nvml, &options, why, sizeof(why)) == TS_METRICS_READY)
		ts_test_skip("a real library is here");
	TS_CHECK(strstr(why, "no NVIDIA GPU") != NULL);
}

TS_TEST(every_start_is_ended)
{
	void *library = dlopen(fake_nvml_path(), RTLD_NOW);
	int (*count)(void);

	TS_CHECK(library != NULL);
	*(void **)&count = dlsym(library, "fake_nvml_open");
	expect_state("devices=0", "/nowhere", TS_METRICS_NONE, "");
	TS_CHECK_INT(count(), 0);
	sample_once("devices=3 gpm=1");
	TS_CHECK_INT(count(), 0);
	dlclose(library);
}

TS_TEST(one_of_three_does_not_open)
{
	TS_CHECK_INT(sample_once("devices=3 nvmlDeviceGetHandleByIndex_v2@1=15"), 0);
	TS_CHECK_INT(all.device_count, 2);
	TS_CHECK(has_message(&all, "GPU 1 cannot be opened: GPU is lost"));
	CHECK_GIVEN(&all, 0, "power_W", "draw", 71.5);
	CHECK_ABSENT(&all, 1, "power_W", "draw");
	CHECK_GIVEN(&all, 2, "power_W", "draw", 71.5);
}

/* ---- values ---- */

static void expect_values(uint32_t device)
{
	CHECK_GIVEN(&all, device, "utilization_percent", "compute", 90 + device);
	CHECK_GIVEN(&all, device, "utilization_percent", "memory", 20);
	CHECK_GIVEN(&all, device, "memory_bytes", "used", 1000000);
	CHECK_GIVEN(&all, device, "power_W", "draw", 71.5);
	CHECK_GIVEN(&all, device, "power_W", "instant", 80.25);
	CHECK_GIVEN(&all, device, "clock_MHz", "compute", 1980);
	CHECK_GIVEN(&all, device, "clock_MHz", "memory", 3201);
	CHECK_GIVEN(&all, device, "temperature_C", "core", 41);
	CHECK_GIVEN(&all, device, "temperature_C", "memory", 55);
	CHECK_GIVEN(&all, device, "throttled", "power_cap", 1);
	CHECK_GIVEN(&all, device, "throttled", "thermal", 1);
	CHECK_GIVEN(&all, device, "throttled", "slowdown", 0);
}

TS_TEST(values_of_eight)
{
	TS_CHECK_INT(sample_once("devices=8 utilization@0=90 utilization@1=91 utilization@2=92 "
				 "utilization@3=93 utilization@4=94 utilization@5=95 "
				 "utilization@6=96 utilization@7=97 power_instant_mw=80250 "
				 "memory_temperature=55 field_type=1 throttle=0x44"),
		     0);
	TS_CHECK_INT(all.device_count, 8);
	for (uint32_t i = 0; i < 8; i++)
		expect_values(i);
	TS_CHECK_INT(all.devices[7].number, 7);
	TS_CHECK_INT(all.devices[7].memory_bytes, 80000000000);
	TS_CHECK_STR(all.texts[7][0], "NVIDIA");
	TS_CHECK_STR(all.texts[7][1], "NVIDIA Fake");
	TS_CHECK_STR(all.texts[7][2], "GPU-00000000-0000-0000-0000-000000000007");
	TS_CHECK_STR(all.texts[7][3], "0001:a7:00.0");
	TS_CHECK_INT(all.message_count, 0);
}

TS_TEST(nonsense_is_not_given)
{
	sample_once("utilization=101 memory_utilization=4294967295 power_mw=0 "
		    "power_instant_mw=4294967295 clock_sm=4294967295 temperature=65535 "
		    "memory_temperature=0 used=90000000000 pcie_kbps=4294967295");
	CHECK_ABSENT(&all, 0, "utilization_percent", "compute");
	CHECK_ABSENT(&all, 0, "utilization_percent", "memory");
	CHECK_ABSENT(&all, 0, "power_W", "draw");
	CHECK_ABSENT(&all, 0, "power_W", "instant");
	CHECK_ABSENT(&all, 0, "clock_MHz", "compute");
	CHECK_GIVEN(&all, 0, "clock_MHz", "memory", 3201);
	CHECK_ABSENT(&all, 0, "temperature_C", "core");
	CHECK_ABSENT(&all, 0, "temperature_C", "memory");
	CHECK_ABSENT(&all, 0, "memory_bytes", "used");
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent");
	sample_once("total=0 used=0");
	CHECK_ABSENT(&all, 0, "memory_bytes", "used");
	TS_CHECK_INT(all.devices[0].memory_bytes, TS_METRICS_UNKNOWN);
}

TS_TEST(types_of_fields)
{
	sample_once("memory_temperature=55 field_type=6");
	CHECK_GIVEN(&all, 0, "temperature_C", "memory", 55);
	sample_once("memory_temperature=55 field_type=5");
	CHECK_GIVEN(&all, 0, "temperature_C", "memory", 55);
	sample_once("memory_temperature=-55 field_type=4");
	CHECK_ABSENT(&all, 0, "temperature_C", "memory");
	sample_once("memory_temperature=55 field_type=0");
	CHECK_ABSENT(&all, 0, "temperature_C", "memory");
	sample_once("memory_temperature=55 field_type=77");
	CHECK_ABSENT(&all, 0, "temperature_C", "memory");
}

TS_TEST(reasons_that_a_device_does_not_know)
{
	sample_once("throttle=0xff throttle_known=0x24");
	CHECK_GIVEN(&all, 0, "throttled", "power_cap", 1);
	CHECK_GIVEN(&all, 0, "throttled", "thermal", 1);
	CHECK_ABSENT(&all, 0, "throttled", "power_brake");
	CHECK_ABSENT(&all, 0, "throttled", "slowdown");
	CHECK_ABSENT(&all, 0, "throttled", "sync_boost");
	sample_once("nvmlDeviceGetSupportedClocksEventReasons=3");
	CHECK_GIVEN(&all, 0, "throttled", "sync_boost", 0);
}

/* ---- errors ---- */

static const char *const calls[] = {
	"nvmlDeviceGetName",
	"nvmlDeviceGetUUID",
	"nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetMigMode",
	"nvmlDeviceGetUtilizationRates",
	"nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetMemoryInfo_v2",
	"nvmlDeviceGetPowerUsage",
	"nvmlDeviceGetClockInfo",
	"nvmlDeviceGetTemperature",
	"nvmlDeviceGetTemperatureV",
	"nvmlDeviceGetCurrentClocksEventReasons",
	"nvmlDeviceGetSupportedClocksEventReasons",
	"nvmlDeviceGetFieldValues",
	"nvmlDeviceGetPcieThroughput",
	"nvmlDeviceGetMaxPcieLinkGeneration",
	"nvmlDeviceGetMaxPcieLinkWidth",
	"nvmlGpmQueryDeviceSupport",
	"nvmlGpmSampleAlloc",
	"nvmlGpmSampleGet",
	"nvmlGpmMetricsGet",
	"nvmlDeviceGetComputeRunningProcesses_v3",
	"nvmlDeviceGetGraphicsRunningProcesses_v3",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3",
	"nvmlDeviceGetProcessUtilization",
};

static const int codes[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
			     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 999 };

/* GPU 0 has the error, GPU 1 is not affected. */
static void try_error(const char *call, int code)
{
	bool is_dead = code == 1 || code == 9 || code == 18;
	struct nvml *nvml;
	char settings[256];

	snprintf(settings, sizeof(settings),
		 "devices=2 gpm=1 gpm.2=10 gpm.20=1 gpm.21=1 links=2 link_sent_kib=1 "
		 "link_received_kib=2 processes=%d:5000 uses=1:2:3:4 %s@0=%d",
		 (int)getpid(), call, code);
	nvml = open_fake(settings);
	for (int i = 0; i < 3; i++) {
		int result = sample_all(nvml, &all);

		TS_CHECK(result == 0 || is_dead);
		if (result)
			break;
		CHECK_GIVEN(&all, 1, "power_W", "draw", 71.5);
		CHECK_OF_PROCESS(&all, 1, getpid(), "memory_bytes", "used", 5000);
	}
	close_fake(nvml);
}

TS_TEST(every_error_of_every_call)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(calls); i++)
		for (size_t k = 0; k < TS_ARRAY_SIZE(codes); k++)
			try_error(calls[i], codes[k]);
}

TS_TEST(what_fails_is_absent_and_told)
{
	sample_once("nvmlDeviceGetPowerUsage=3");
	CHECK_ABSENT(&all, 0, "power_W", "draw");
	CHECK_GIVEN(&all, 0, "clock_MHz", "memory", 3201);
	TS_CHECK(has_message(&all, "GPU 0: the power cannot be read: Not Supported"));
	sample_once("nvmlDeviceGetUtilizationRates=999");
	CHECK_ABSENT(&all, 0, "utilization_percent", "compute");
	TS_CHECK(has_message(&all, "utilization cannot be read: error 999"));
	sample_once("nvmlDeviceGetComputeRunningProcesses_v3=4");
	TS_CHECK(has_message(&all, "no permission to read the list of processes (run as root)"));
}

TS_TEST(what_is_not_there_is_asked_once)
{
	struct nvml *nvml = open_fake("nvmlDeviceGetPowerUsage=3");

	sample_all(nvml, &all);
	TS_CHECK_INT(all.message_count, 1);
	/* It would work now. */
	configure("");
	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "power_W", "draw");
	TS_CHECK_INT(all.message_count, 0);
	close_fake(nvml);
}

TS_TEST(what_is_forbidden_is_asked_again)
{
	struct nvml *nvml = open_fake("nvmlDeviceGetPowerUsage=4");

	sample_all(nvml, &all);
	configure("");
	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "power_W", "draw");
	nvml->gpus[0].off_until_ns[NVML_VALUE_POWER] -= 61 * SECOND_NS;
	sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 71.5);
	close_fake(nvml);
}

TS_TEST(what_passes_is_asked_each_time)
{
	struct nvml *nvml = open_fake("nvmlDeviceGetPowerUsage=10");

	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "power_W", "draw");
	configure("");
	sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 71.5);
	close_fake(nvml);
}

TS_TEST(lost_gpus)
{
	struct nvml *nvml = open_fake("devices=2");

	TS_CHECK_INT(sample_all(nvml, &all), 0);
	configure("devices=2 nvmlDeviceGetMemoryInfo_v2@1=15");
	TS_CHECK_INT(sample_all(nvml, &all), 0);
	TS_CHECK(has_message(&all, "GPU 1 is lost"));
	TS_CHECK(has_message(&all, "Xid"));
	CHECK_ABSENT(&all, 1, "power_W", "draw");
	CHECK_GIVEN(&all, 0, "power_W", "draw", 71.5);
	configure("devices=2 nvmlDeviceGetMemoryInfo_v2=28");
	TS_CHECK(sample_all(nvml, &all) != 0);
	TS_CHECK(has_message(&all, "GPU 0 is lost"));
	TS_CHECK(!has_message(&all, "GPU 1"));
	close_fake(nvml);
}

TS_TEST(the_driver_goes)
{
	struct nvml *nvml = open_fake("devices=2");

	TS_CHECK_INT(sample_all(nvml, &all), 0);
	configure("nvmlDeviceGetUtilizationRates=9");
	TS_CHECK(sample_all(nvml, &all) != 0);
	TS_CHECK_INT(all.message_count, 1);
	TS_CHECK(has_message(&all, "driver was unloaded"));
	TS_CHECK_INT(all.count, 0);
	close_fake(nvml);
}

/* ---- old drivers ---- */

TS_TEST(any_function_may_be_missing)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(calls); i++) {
		snprintf(hidden_too, sizeof(hidden_too), "%s", calls[i]);
		TS_CHECK_INT(sample_once("devices=2 gpm=1"), 0);
		TS_CHECK(all.count > 0);
	}
	snprintf(hidden_too, sizeof(hidden_too), "nvmlErrorString");
	sample_once("nvmlDeviceGetPowerUsage=3");
	TS_CHECK_INT(all.message_count, 1);
}

TS_TEST(nearly_all_functions_are_missing)
{
	snprintf(hidden, sizeof(hidden), "nvmlDeviceGet");
	expect_state("", "/nowhere", TS_METRICS_BROKEN, "lacks basic functions");
	snprintf(hidden, sizeof(hidden), "nvmlInit");
	expect_state("", "/nowhere", TS_METRICS_BROKEN, "lacks basic functions");
	hidden[0] = '\0';
}

TS_TEST(memory_of_an_old_driver_has_what_is_reserved)
{
	snprintf(hidden_too, sizeof(hidden_too), "nvmlDeviceGetMemoryInfo_v2");
	sample_once("used=7000 reserved=30");
	CHECK_GIVEN(&all, 0, "memory_bytes", "used", 7030);
	hidden_too[0] = '\0';
	/* The newer function exists, but is not permitted: the older one returns another number. */
	sample_once("used=7000 reserved=30 nvmlDeviceGetMemoryInfo_v2=4");
	CHECK_ABSENT(&all, 0, "memory_bytes", "used");
	TS_CHECK(has_message(&all, "no permission to read the memory"));
}

TS_TEST(temperature_of_a_new_driver)
{
	snprintf(hidden_too, sizeof(hidden_too), "nvmlDeviceGetTemperature");
	sample_once("temperature=33");
	CHECK_GIVEN(&all, 0, "temperature_C", "core", 33);
	TS_CHECK_INT(all.message_count, 0);
}

/* ---- MIG ---- */

TS_TEST(a_divided_gpu)
{
	sample_once("mig=1 nvmlDeviceGetUtilizationRates=3 nvmlDeviceGetMemoryInfo_v2=4");
	CHECK_ABSENT(&all, 0, "utilization_percent", "compute");
	CHECK_ABSENT(&all, 0, "memory_bytes", "used");
	CHECK_GIVEN(&all, 0, "power_W", "draw", 71.5);
	TS_CHECK(has_message(&all, "MIG is enabled"));
	TS_CHECK(has_message(&all, "no permission to read the memory"));
}

/* ---- GPM ---- */

TS_TEST(gpm_gives_shares_and_traffic)
{
	struct nvml *nvml = open_fake("gpm=1 links=18 gpm.1=70 gpm.2=37.5 gpm.3=12 gpm.5=5 "
				      "gpm.10=100.4 gpm.20=2 gpm.21=3 gpm.60=4 gpm.61=5");

	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "utilization_percent", "sm");
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent");
	for (int i = 0; i < 3; i++) {
		sample_all(nvml, &all);
		/* From another function. */
		CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 50);
		CHECK_GIVEN(&all, 0, "utilization_percent", "sm", 37.5);
		CHECK_GIVEN(&all, 0, "utilization_percent", "sm_occupancy", 12);
		CHECK_GIVEN(&all, 0, "utilization_percent", "tensor", 5);
		CHECK_GIVEN(&all, 0, "utilization_percent", "memory_bandwidth", 100);
		CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 2097152);
		CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "received", 3145728);
		CHECK_GIVEN(&all, 0, "link_bytes_per_s", "received", 4194304);
		CHECK_GIVEN(&all, 0, "link_bytes_per_s", "sent", 5242880);
	}
	close_fake(nvml);
}

TS_TEST(gpm_of_a_divided_gpu)
{
	struct nvml *nvml = open_fake("gpm=1 mig=1 gpm.1=70 nvmlDeviceGetUtilizationRates=3");

	sample_all(nvml, &all);
	sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 70);
	close_fake(nvml);
}

TS_TEST(gpm_nonsense)
{
	struct nvml *nvml = open_fake("gpm=1 gpm.2=nan gpm.3=250 gpm.5=-1 gpm.10=inf gpm.20=1e30");

	sample_all(nvml, &all);
	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "utilization_percent", "sm");
	CHECK_ABSENT(&all, 0, "utilization_percent", "sm_occupancy");
	CHECK_ABSENT(&all, 0, "utilization_percent", "tensor");
	CHECK_ABSENT(&all, 0, "utilization_percent", "memory_bandwidth");
	/* Falls back to the next source. */
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 1000000);
	close_fake(nvml);
}

TS_TEST(gpm_never_works)
{
	struct nvml *nvml = open_fake("gpm=1 nvmlGpmSampleGet=999");

	for (int i = 0; i < 6 && !given_of(&all, 0, 0, "pcie_bytes_per_s", "sent"); i++)
		sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 1000000);
	close_fake(nvml);
}

/*
 * A failed sample does not start an interval: the library would reject it, and GPM would be given
 * up.
 */
TS_TEST(gpm_fails_between)
{
	struct nvml *nvml = open_fake("gpm=1 gpm.2=10");

	for (int i = 0; i < 6; i++) {
		configure(i % 2 ? "gpm=1 gpm.2=10 nvmlGpmSampleGet=999" : "gpm=1 gpm.2=10");
		sample_all(nvml, &all);
		CHECK_ABSENT(&all, 0, "utilization_percent", "sm");
	}
	configure("gpm=1 gpm.2=10");
	sample_all(nvml, &all);
	sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "utilization_percent", "sm", 10);
	close_fake(nvml);
}

/* The library crashes if two use GPM; the second one gets PCIe from elsewhere. */
TS_TEST(gpm_is_for_one_at_a_time)
{
	struct nvml *first = open_fake("gpm=1 gpm.2=10 gpm.20=2 gpm.21=3");
	struct nvml *second = open_fake("gpm=1 gpm.2=10 gpm.20=2 gpm.21=3");

	sample_all(first, &all);
	for (int i = 0; i < 3; i++) {
		sample_all(second, &all);
		CHECK_ABSENT(&all, 0, "utilization_percent", "sm");
		TS_CHECK(!second->gpus[0].gpm[0] && !second->gpus[0].gpm_failures);
		if (i == 0)
			CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 1000000);
		sample_all(first, &all);
		CHECK_GIVEN(&all, 0, "utilization_percent", "sm", 10);
		CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 2097152);
	}
	close_fake(first);
	sample_all(second, &all);
	sample_all(second, &all);
	CHECK_GIVEN(&all, 0, "utilization_percent", "sm", 10);
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 2097152);
	close_fake(second);
}

/* ---- PCIe ---- */

/* This much time passes before the next sample, as far as rates know. */
static void pass(struct nvml_gpu *gpu, int64_t ns)
{
	gpu->pcie_sent.at_ns -= ns;
	gpu->pcie_received.at_ns -= ns;
	gpu->links_sent.at_ns -= ns;
	gpu->links_received.at_ns -= ns;
}

/* The real clock runs as well, so a rate is at most the expected one, and not much less. */
static void expect_rate(const char *name, const char *series, double most)
{
	const struct given *given = given_of(&all, 0, 0, name, series);

	if (!given || given->value > most || given->value < most / 2)
		ts_test_fail(__FILE__, __LINE__, "%s of %s is %g, not %g", series, name,
			     given ? given->value : NAN, most);
}

/* A link of 250 MB/s, whose 32 bits last 16 s. */
#define SLOW_LINK "pcie_generation=1 pcie_width=1 "

static void next_counters(struct nvml *nvml, const char *settings, int64_t ns)
{
	pass(&nvml->gpus[0], ns);
	configure(settings);
	TS_CHECK_INT(sample_all(nvml, &all), 0);
}

TS_TEST(pcie_counters)
{
	struct nvml *nvml = open_fake(SLOW_LINK "pcie_sent=100 pcie_received=200");

	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent");
	next_counters(nvml, SLOW_LINK "pcie_sent=800000100 pcie_received=200", 10 * SECOND_NS);
	expect_rate("pcie_bytes_per_s", "sent", 80000000);
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "received", 0);
	/* They wrap. */
	next_counters(nvml, SLOW_LINK "pcie_sent=4294967000 pcie_received=200", 10 * SECOND_NS);
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent"); /* more than the link can carry */
	next_counters(nvml, SLOW_LINK "pcie_sent=704 pcie_received=200", 10 * SECOND_NS);
	expect_rate("pcie_bytes_per_s", "sent", 100);
	/* They may have wrapped twice. */
	next_counters(nvml, SLOW_LINK "pcie_sent=1000704 pcie_received=200", 20 * SECOND_NS);
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent");
	/* They restart. */
	next_counters(nvml, SLOW_LINK "pcie_sent=5 pcie_received=0", 10 * SECOND_NS);
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent");
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "received");
	close_fake(nvml);
}

TS_TEST(pcie_counters_of_64_bits)
{
	struct nvml *nvml = open_fake(SLOW_LINK "pcie_sent=5000000000 pcie_received=6");

	sample_all(nvml, &all);
	next_counters(nvml, SLOW_LINK "pcie_sent=105000000000 pcie_received=6", 1000 * SECOND_NS);
	expect_rate("pcie_bytes_per_s", "sent", 1e8);
	next_counters(nvml, SLOW_LINK "pcie_sent=5 pcie_received=6", 1000 * SECOND_NS);
	CHECK_ABSENT(&all, 0, "pcie_bytes_per_s", "sent");
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "received", 0);
	close_fake(nvml);
}

/* If samples are too far apart for the counters, or there are none, the library measures. */
TS_TEST(pcie_by_the_library)
{
	struct nvml *nvml = open_fake("pcie_sent=1 pcie_received=1");

	nvml->pace.now_ns = 1;
	sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 1000000);
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "received", 1001000);
	close_fake(nvml);
	sample_once("pcie_generation=99 pcie_sent=1 pcie_received=1");
	CHECK_GIVEN(&all, 0, "pcie_bytes_per_s", "sent", 1000000);
}

TS_TEST(the_library_measures_one_gpu_a_sample)
{
	struct nvml *nvml = open_fake("devices=3");
	unsigned int times[3] = { 0 };

	for (int i = 0; i < 5; i++) {
		unsigned int given = 0;

		sample_all(nvml, &all);
		for (uint32_t k = 0; k < 3; k++) {
			bool is_given = given_of(&all, k, 0, "pcie_bytes_per_s", "sent") != NULL;

			given += is_given;
			times[k] += is_given;
		}
		TS_CHECK_INT(given, i < 3);
	}
	for (uint32_t k = 0; k < 3; k++)
		TS_CHECK_INT(times[k], 1);
	close_fake(nvml);
}

/* ---- NVLink ---- */

TS_TEST(links_as_a_sum)
{
	struct nvml *nvml = open_fake("links=18 link_sent_kib=1000 link_received_kib=1000");

	sample_all(nvml, &all);
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
	next_counters(nvml, "link_sent_kib=101000 link_received_kib=2000", 1000 * SECOND_NS);
	expect_rate("link_bytes_per_s", "sent", 102400);
	expect_rate("link_bytes_per_s", "received", 1024);
	next_counters(nvml, "link_sent_kib=5 link_received_kib=3000", 1000 * SECOND_NS);
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
	expect_rate("link_bytes_per_s", "received", 1024);
	close_fake(nvml);
}

TS_TEST(links_one_by_one)
{
	struct nvml *nvml = open_fake(
		"links=4 links_up=3 all_links=0 link_sent_kib=1000 link_received_kib=1000");

	sample_all(nvml, &all);
	sample_all(nvml, &all);
	next_counters(nvml, "links_up=3 all_links=0 link_sent_kib=11000 link_received_kib=1000",
		      1000 * SECOND_NS);
	expect_rate("link_bytes_per_s", "sent", 3 * 10240);
	CHECK_GIVEN(&all, 0, "link_bytes_per_s", "received", 0);
	/* A new link has its own history. */
	next_counters(nvml, "links_up=4 all_links=0 link_sent_kib=11000 link_received_kib=1000",
		      1000 * SECOND_NS);
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
	close_fake(nvml);
}

TS_TEST(no_links)
{
	sample_once("links=0 link_sent_kib=1000 link_received_kib=1000");
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
	sample_once("links=4000000000 link_sent_kib=1000 link_received_kib=1000");
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
}

/* ---- intervals ---- */

TS_TEST(slow_things_are_read_rarely)
{
	struct nvml *nvml = open_fake("processes=1:1");

	/* However slow this library is. */
	nvml->pace.budget = 1e9;
	sample_all(nvml, &all);
	CHECK_GIVEN(&all, 0, "temperature_C", "core", 41);
	collected_init(&all);
	TS_CHECK_INT(ts_metrics_nvml.sample(nvml, &all.sink), 0);
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 50);
	CHECK_ABSENT(&all, 0, "temperature_C", "core");
	TS_CHECK_INT(all.device_count, 0);
	close_fake(nvml);
}

/* ---- the source ---- */

TS_TEST(as_a_source)
{
	void *state = NULL;
	char why[256];

	TS_CHECK_STR(ts_metrics_nvml.name, "nvml");
	TS_CHECK_INT(ts_metrics_nvml.abi, TS_METRICS_ABI);
	TS_CHECK_INT(ts_metrics_nvml.size, sizeof(ts_metrics_nvml));
	setenv("TRACESMITH_NVML", fake_nvml_path(), 1);
	configure("devices=2");
	TS_CHECK_INT(ts_metrics_nvml.open(&state, why, sizeof(why)), TS_METRICS_READY);
	collected_init(&all);
	TS_CHECK_INT(ts_metrics_nvml.sample(state, &all.sink), 0);
	TS_CHECK_INT(all.device_count, 2);
	ts_metrics_nvml.close(state);
}
