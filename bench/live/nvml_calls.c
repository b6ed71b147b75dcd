/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_calls [--device N] [--rounds N]: measures each NVML call, in microseconds of wall and of CPU
 * time: median and maximum. One JSON line each.
 *
 * nvml_calls --values SECONDS [--interval MS] [--times N] [--quiet]: prints the values of the
 * source "nvml", one per line: time (seconds since 1970), device, pid or 0, name, series, value;
 * then the cost as JSON. --quiet: only the cost. --times: as if each GPU were present N times.
 *
 * Needs no NVIDIA headers. TRACESMITH_NVML names another library. scripts/gpu-metrics writes a
 * report from this.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/metrics.h>

/* Uses private headers. */
#include "../../src/sample/metrics/metric_sources.h"
#include "../../src/sample/metrics/nvml/nvml_api.h"
#include "../../src/sample/metrics/nvml/nvml_open.h"

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- cost of calls ---- */

static struct nvml_api api;
static struct nvml_device *device;
static char note[128]; /* result of the last call */

static int call_utilization(void)
{
	struct nvml_utilization value = { 0 };
	int code = NVML_CALL(&api, utilization, device, &value);

	snprintf(note, sizeof(note), "%u %% %u %%", value.compute, value.memory);
	return code;
}

static int call_memory(void)
{
	struct nvml_memory value = { .version = NVML_VERSION(struct nvml_memory, 2) };
	int code = NVML_CALL(&api, memory, device, &value);

	snprintf(note, sizeof(note), "used %" PRIu64 " reserved %" PRIu64, value.used,
		 value.reserved);
	return code;
}

static int call_memory_v1(void)
{
	struct nvml_memory_v1 value = { 0 };
	int code = NVML_CALL(&api, memory_v1, device, &value);

	snprintf(note, sizeof(note), "used %" PRIu64, value.used);
	return code;
}

static int call_power(void)
{
	unsigned int value = 0;
	int code = NVML_CALL(&api, power_mw, device, &value);

	snprintf(note, sizeof(note), "%u mW", value);
	return code;
}

static int call_clock(int clock)
{
	unsigned int value = 0;
	int code = NVML_CALL(&api, clock_mhz, device, clock, &value);

	snprintf(note, sizeof(note), "%u MHz", value);
	return code;
}

static int call_clock_sm(void)
{
	return call_clock(NVML_CLOCK_COMPUTE);
}

static int call_clock_memory(void)
{
	return call_clock(NVML_CLOCK_MEMORY);
}

static int call_temperature(void)
{
	unsigned int value = 0;
	int code = NVML_CALL(&api, temperature, device, 0, &value);

	snprintf(note, sizeof(note), "%u C", value);
	return code;
}

static int call_throttle(void)
{
	uint64_t value = 0;
	int code = NVML_CALL(&api, throttle, device, &value);

	snprintf(note, sizeof(note), "%#" PRIx64, value);
	return code;
}

static int call_fields(const uint32_t *ids, int count, uint32_t scope)
{
	struct nvml_field fields[4] = { 0 };
	size_t length = 0;
	int code;

	for (int i = 0; i < count; i++) {
		fields[i].field = ids[i];
		fields[i].scope = scope;
	}
	code = NVML_CALL(&api, fields, device, count, fields);
	for (int i = 0; i < count && length < sizeof(note); i++)
		length += (size_t)snprintf(note + length, sizeof(note) - length,
					   "%s%u: code %d type %u value %" PRIu64, i ? ", " : "",
					   ids[i], fields[i].code, fields[i].type,
					   fields[i].value.uint64);
	return code ? code : fields[0].code;
}

static int call_field_power(void)
{
	return call_fields((const uint32_t[]){ NVML_FIELD_POWER_INSTANT }, 1, 0);
}

static int call_field_temperature(void)
{
	return call_fields((const uint32_t[]){ NVML_FIELD_MEMORY_TEMPERATURE }, 1, 0);
}

static int call_field_pcie(void)
{
	return call_fields(
		(const uint32_t[]){ NVML_FIELD_PCIE_SENT_BYTES, NVML_FIELD_PCIE_RECEIVED_BYTES }, 2,
		0);
}

static int call_field_links(void)
{
	return call_fields(
		(const uint32_t[]){ NVML_FIELD_LINK_SENT_KIB, NVML_FIELD_LINK_RECEIVED_KIB }, 2,
		NVML_ALL_LINKS);
}

static int call_pcie(void)
{
	unsigned int value = 0;
	int code = NVML_CALL(&api, pcie_kbps, device, NVML_PCIE_RECEIVED, &value);

	snprintf(note, sizeof(note), "%u KB/s", value);
	return code;
}

static int call_list(enum nvml_process_kind kind)
{
	static unsigned char list[256 * NVML_PROCESS_BYTES_MOST];
	unsigned int count = 256;
	size_t end = sizeof(list);
	int code;

	if (!api.processes[kind])
		return NVML_FUNCTION_NOT_FOUND;
	memset(list, 0xaa, sizeof(list));
	code = api.processes[kind](device, &count, list);
	while (end && list[end - 1] == 0xaa)
		end--;
	snprintf(note, sizeof(note), "%u processes, %zu bytes written", count, end);
	return code;
}

static int call_compute_processes(void)
{
	return call_list(NVML_COMPUTE);
}

static int call_graphics_processes(void)
{
	return call_list(NVML_GRAPHICS);
}

static int call_mps_processes(void)
{
	return call_list(NVML_MPS);
}

static int call_process_use(void)
{
	static struct nvml_process_use uses[256];
	unsigned int count = 256;
	int code = NVML_CALL(&api, process_use, device, uses, &count, 0);

	snprintf(note, sizeof(note), "%u samples", count);
	return code;
}

static struct nvml_gpm_sample *gpm[2];

static int call_gpm_sample(void)
{
	struct nvml_gpm_sample *older = gpm[0];
	int code = older ? NVML_CALL(&api, gpm_sample, device, older) : NVML_NOT_SUPPORTED;

	gpm[0] = gpm[1];
	gpm[1] = older;
	note[0] = '\0';
	return code;
}

static int call_gpm_metrics(void)
{
	static const uint32_t metrics[] = {
		NVML_GPM_SM,
		NVML_GPM_OCCUPANCY,
		NVML_GPM_TENSOR,
		NVML_GPM_DRAM,
		NVML_GPM_PCIE_SENT,
		NVML_GPM_PCIE_RECEIVED,
		NVML_GPM_LINK_RECEIVED,
		NVML_GPM_LINK_SENT,
	};
	static struct nvml_gpm_get get;
	size_t length = 0;
	int code;

	if (!gpm[0])
		return NVML_NOT_SUPPORTED;
	get.version = 1;
	get.count = sizeof(metrics) / sizeof(metrics[0]);
	get.from = gpm[0];
	get.to = gpm[1];
	for (uint32_t i = 0; i < get.count; i++)
		get.values[i].metric = metrics[i];
	code = NVML_CALL(&api, gpm_metrics, &get);
	for (uint32_t i = 0; i < get.count && length < sizeof(note); i++)
		length += (size_t)snprintf(note + length, sizeof(note) - length, "%s%u=%.3g(%d)",
					   i ? " " : "", metrics[i], get.values[i].value,
					   get.values[i].code);
	return code;
}

static const struct {
	const char *name;
	int (*call)(void);
	int most_rounds; /* 0: as many as given */
} calls[] = {
	{ "UtilizationRates", call_utilization, 0 },
	{ "MemoryInfo_v2", call_memory, 0 },
	{ "MemoryInfo", call_memory_v1, 0 },
	{ "PowerUsage", call_power, 0 },
	{ "ClockInfo SM", call_clock_sm, 0 },
	{ "ClockInfo memory", call_clock_memory, 0 },
	{ "Temperature", call_temperature, 0 },
	{ "ClocksEventReasons", call_throttle, 0 },
	{ "FieldValues power instant", call_field_power, 0 },
	{ "FieldValues memory temperature", call_field_temperature, 0 },
	{ "FieldValues PCIe bytes", call_field_pcie, 0 },
	{ "FieldValues NVLink", call_field_links, 0 },
	{ "GpmSampleGet", call_gpm_sample, 20 },
	{ "GpmMetricsGet", call_gpm_metrics, 0 },
	{ "PcieThroughput", call_pcie, 10 },
	{ "ComputeRunningProcesses", call_compute_processes, 0 },
	{ "GraphicsRunningProcesses", call_graphics_processes, 0 },
	{ "MPSComputeRunningProcesses", call_mps_processes, 0 },
	{ "ProcessUtilization", call_process_use, 0 },
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Pauses between calls, so that NVML's short-lived caches do not hide the cost. */
static void measure(const char *name, int (*call)(void), int rounds)
{
	double wall[1000] = { 0 }, cpu[1000] = { 0 };
	int code = 0;

	for (int i = 0; i < rounds; i++) {
		double wall_from = seconds(CLOCK_MONOTONIC);
		double cpu_from = seconds(CLOCK_THREAD_CPUTIME_ID);

		note[0] = '\0';
		code = call();
		cpu[i] = (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_from) * 1e6;
		wall[i] = (seconds(CLOCK_MONOTONIC) - wall_from) * 1e6;
		/* GPM needs more than 100 ms between two samples. */
		pause_ms(call == call_gpm_sample ? 120 : 10);
	}
	qsort(wall, (size_t)rounds, sizeof(wall[0]), by_value);
	qsort(cpu, (size_t)rounds, sizeof(cpu[0]), by_value);
	printf("{\"call\": \"%s\", \"code\": %d, \"median_us\": %.1f, \"longest_us\": %.1f, "
	       "\"cpu_median_us\": %.1f, \"cpu_longest_us\": %.1f, \"found\": \"%s\"}\n",
	       name, code, wall[rounds / 2], wall[rounds - 1], cpu[rounds / 2], cpu[rounds - 1],
	       note);
	fflush(stdout);
}

static int measure_calls(unsigned int index, int rounds)
{
	double from = seconds(CLOCK_MONOTONIC);
	struct nvml_gpm_support support = { .version = 1 };
	char version[96] = "";
	int code;

	if (!nvml_api_open(&api, getenv("TRACESMITH_NVML"), dlsym)) {
		const char *why = dlerror();

		fprintf(stderr, "nvml_calls: %s\n", why ? why : "basic functions are missing");
		return 77;
	}
	code = api.init();
	if (!code)
		code = api.by_index(index, &device);
	if (code) {
		fprintf(stderr, "nvml_calls: %s\n", nvml_error_text(&api, code));
		return 77;
	}
	NVML_CALL(&api, driver_version, version, sizeof(version));
	printf("{\"call\": \"open\", \"code\": 0, \"median_us\": %.1f, \"found\": \"driver %s\"}\n",
	       (seconds(CLOCK_MONOTONIC) - from) * 1e6, version);
	if (NVML_CALL(&api, gpm_support, device, &support) == NVML_OK && support.is_supported &&
	    NVML_CALL(&api, gpm_alloc, &gpm[0]) == NVML_OK)
		NVML_CALL(&api, gpm_alloc, &gpm[1]);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		measure(calls[i].name, calls[i].call,
			calls[i].most_rounds && calls[i].most_rounds < rounds ? calls[i].most_rounds
									      : rounds);
	for (int i = 0; i < 2; i++)
		if (gpm[i])
			NVML_CALL(&api, gpm_free, gpm[i]);
	api.shut_down();
	nvml_api_close(&api);
	return 0;
}

/* ---- source ---- */

static bool is_quiet;
static unsigned long values_given;
static unsigned int devices_given;

static void give_device(void *context, const struct ts_metrics_device *given)
{
	devices_given++;
	if (!is_quiet)
		printf("# device %u '%s' %s %s %" PRId64 " bytes\n", given->number, given->model,
		       given->uuid, given->bus, given->memory_bytes);
}

static void give_real(void *context, const struct ts_metrics_subject *subject, const char *name,
		      const char *series, double value)
{
	values_given++;
	if (!is_quiet)
		printf("%.3f %u %d %s %s %.9g\n", seconds(CLOCK_REALTIME), subject->device,
		       (int)subject->pid, name, series, value);
}

static void give_integer(void *context, const struct ts_metrics_subject *subject, const char *name,
			 const char *series, int64_t value)
{
	values_given++;
	if (!is_quiet)
		printf("%.3f %u %d %s %s %" PRId64 "\n", seconds(CLOCK_REALTIME), subject->device,
		       (int)subject->pid, name, series, value);
}

static void give_message(void *context, const char *text)
{
	printf("# message: %s\n", text);
}

/* ---- simulated GPUs ---- */

static long times = 1;
static int (*real_count)(unsigned int *count);
static int (*real_by_index)(unsigned int index, struct nvml_device **ret_device);

static int count_more(unsigned int *count)
{
	int code = real_count(count);

	*count *= (unsigned int)times;
	return code;
}

static int by_index_less(unsigned int index, struct nvml_device **ret_device)
{
	return real_by_index(index / (unsigned int)times, ret_device);
}

static void *find_more(void *library, const char *name)
{
	int (*replacement_count)(unsigned int *) = count_more;
	int (*replacement_by_index)(unsigned int, struct nvml_device **) = by_index_less;
	void *found = dlsym(library, name), *replacement = NULL;

	/* Pointers to functions are not pointers to objects in C; the bytes are the same here. */
	if (found && strcmp(name, "nvmlDeviceGetCount_v2") == 0) {
		memcpy(&real_count, &found, sizeof(found));
		memcpy(&replacement, &replacement_count, sizeof(replacement));
	} else if (found && strcmp(name, "nvmlDeviceGetHandleByIndex_v2") == 0) {
		memcpy(&real_by_index, &found, sizeof(found));
		memcpy(&replacement, &replacement_by_index, sizeof(replacement));
	}
	return replacement ? replacement : found;
}

/* The first samples cost more, once per recording; they are reported separately. */
#define WARM_UP_SAMPLES 20u

static int sample_values(double duration_s, long interval_ms)
{
	const struct ts_metrics_sink sink = {
		.size = sizeof(sink),
		.device = give_device,
		.real = give_real,
		.integer = give_integer,
		.message = give_message,
	};
	const struct nvml_options options = {
		.library = getenv("TRACESMITH_NVML"),
		.find = find_more,
	};
	double from, until, cpu_from, warm_up = 0, sampled = 0;
	unsigned long samples = 0;
	struct nvml *state = NULL;
	char why[256] = "";

	if (nvml_open(&state, &options, why, sizeof(why)) != TS_METRICS_READY) {
		fprintf(stderr, "nvml_calls: %s\n", why);
		return 77;
	}
	from = seconds(CLOCK_MONOTONIC);
	cpu_from = seconds(CLOCK_PROCESS_CPUTIME_ID);
	do {
		double begin = seconds(CLOCK_THREAD_CPUTIME_ID);

		if (samples == WARM_UP_SAMPLES) {
			warm_up = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_from;
			from = seconds(CLOCK_MONOTONIC);
			cpu_from = seconds(CLOCK_PROCESS_CPUTIME_ID);
			sampled = 0;
		}
		if (ts_metrics_nvml.sample(state, &sink))
			break;
		sampled += seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
		samples++;
		fflush(stdout);
		pause_ms(interval_ms);
		until = seconds(CLOCK_MONOTONIC);
	} while (until - from < duration_s);
	duration_s = seconds(CLOCK_MONOTONIC) - from;
	printf("{\"devices\": %u, \"samples\": %lu, \"values\": %lu, \"seconds\": %.2f, "
	       "\"warm_up_cpu_ms\": %.2f, \"cpu_percent_of_samples\": %.4f, \"cpu_percent_of_process\": %.4f}\n",
	       devices_given, samples, values_given, duration_s, warm_up * 1e3,
	       sampled / duration_s * 100,
	       (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_from) / duration_s * 100);
	ts_metrics_nvml.close(state);
	return 0;
}

int main(int argc, char **argv)
{
	double duration_s = 0;
	long interval_ms = 100, index = 0, rounds = 100;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--quiet") == 0) {
			is_quiet = true;
			continue;
		}
		if (strcmp(argv[i], "--values") == 0)
			duration_s = strtod(value, NULL);
		else if (strcmp(argv[i], "--interval") == 0)
			interval_ms = strtol(value, NULL, 10);
		else if (strcmp(argv[i], "--device") == 0)
			index = strtol(value, NULL, 10);
		else if (strcmp(argv[i], "--times") == 0)
			times = strtol(value, NULL, 10);
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = strtol(value, NULL, 10);
		else
			return fprintf(stderr, "nvml_calls: no option '%s'\n", argv[i]), 2;
		i++;
	}
	if (times < 1 || times > 64)
		return fprintf(stderr, "nvml_calls: --times is from 1 to 64\n"), 2;
	if (duration_s > 0)
		return sample_values(duration_s, interval_ms);
	return measure_calls((unsigned int)index, rounds < 1 || rounds > 1000 ? 100 : (int)rounds);
}
