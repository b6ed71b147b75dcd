/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA GPU metrics from the management library (NVML) of the driver: opens it, explains failures,
 * and takes one sample.
 *
 * Any call may take long, including open(): waking an idle GPU takes up to two seconds; a faulty
 * one answers after 45 s per call, or never. So use a thread that nobody waits for.
 *
 * The library is loaded into this process; nothing is printed. Devices are numbered as in
 * nvidia-smi.
 */
#include "sample/metrics/nvml/nvml.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sample/metrics/metric_sources.h"

#define SECOND_NS INT64_C(1000000000)
#define MAX_GPUS 256u
/* CPU budget of all devices: queries and output. */
#define BUDGET 0.003

static const struct ts_query_pacing_item readings[NVML_READINGS] = {
	[NVML_READ_UTILIZATION] = { 0, 4 },
	[NVML_READ_MEMORY] = { 0, 4 },
	[NVML_READ_POWER] = { 0, 4 },
	[NVML_READ_CLOCKS] = { 0, 2 },
	/* Minimum interval of two GPM samples. */
	[NVML_READ_GPM] = { SECOND_NS / 5, 4 },
	[NVML_READ_TRAFFIC] = { 0, 2 },
	[NVML_READ_TEMPERATURE] = { SECOND_NS, 1 },
	[NVML_READ_THROTTLE] = { SECOND_NS, 1 },
	[NVML_READ_PROCESSES] = { SECOND_NS, 2 },
};

static void (*const readers[NVML_READINGS])(struct nvml *nvml, struct nvml_gpu *gpu) = {
	[NVML_READ_UTILIZATION] = nvml_read_utilization,
	[NVML_READ_MEMORY] = nvml_read_memory,
	[NVML_READ_POWER] = nvml_read_power,
	[NVML_READ_CLOCKS] = nvml_read_clocks,
	[NVML_READ_GPM] = nvml_read_gpm,
	[NVML_READ_TRAFFIC] = nvml_read_traffic,
	[NVML_READ_TEMPERATURE] = nvml_read_temperature,
	[NVML_READ_THROTTLE] = nvml_read_throttle,
	[NVML_READ_PROCESSES] = nvml_read_processes,
};

/* ---- diagnosis ---- */

static bool exists(const struct nvml *nvml, const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", nvml->root, path);
	return access(full, F_OK) == 0;
}

static bool is_nvidia_gpu(int directory, const char *name)
{
	char path[300], vendor[16], class[16];

	snprintf(path, sizeof(path), "%s/vendor", name);
	if (ts_procfs_read_line(directory, path, vendor, sizeof(vendor)) < 0 ||
	    strcmp(vendor, "0x10de") != 0)
		return false;
	snprintf(path, sizeof(path), "%s/class", name);
	/* Display controllers; not audio functions and bridges. */
	return ts_procfs_read_line(directory, path, class, sizeof(class)) > 0 &&
	       strncmp(class, "0x03", 4) == 0;
}

static bool has_hardware(const struct nvml *nvml)
{
	struct dirent *entry;
	bool found = false;
	char path[512];
	DIR *devices;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", nvml->root);
	devices = opendir(path);
	if (!devices)
		return false;
	while (!found && (entry = readdir(devices)) != NULL)
		found = entry->d_name[0] != '.' && is_nvidia_gpu(dirfd(devices), entry->d_name);
	closedir(devices);
	return found;
}

static bool has_driver(const struct nvml *nvml)
{
	return exists(nvml, "/proc/driver/nvidia/version") || exists(nvml, "/dev/nvidiactl");
}

/* `error`: from dlerror(). */
static enum ts_metrics_state explain_load(const struct nvml *nvml, const char *error, char *why,
					  size_t why_bytes)
{
	if (nvml->api.library) {
		snprintf(why, why_bytes,
			 "the management library of NVIDIA's driver lacks basic functions (is "
			 "libnvidia-ml.so.1 that of the driver?)");
		return TS_METRICS_BROKEN;
	}
	if (nvml->options.library || has_driver(nvml)) {
		snprintf(why, why_bytes,
			 "%s (install the part of NVIDIA's driver that has nvidia-smi, of the same "
			 "version; in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
			 error ? error : "libnvidia-ml.so.1 cannot be loaded");
		return TS_METRICS_BROKEN;
	}
	if (has_hardware(nvml)) {
		snprintf(
			why, why_bytes,
			"NVIDIA GPU found, but no driver (install it; start a container with --gpus all)");
		return TS_METRICS_BROKEN;
	}
	snprintf(why, why_bytes, "no NVIDIA GPU and no NVIDIA driver");
	return TS_METRICS_NONE;
}

static const char *remedy(int code)
{
	switch (code) {
	case NVML_VERSION_MISMATCH:
		return "the driver was updated while the old one is loaded: reboot, or reload the nvidia modules";
	case NVML_DRIVER_NOT_LOADED:
		return "sudo modprobe nvidia; 'dmesg | grep -i nvidia' may say why it is not loaded";
	case NVML_NO_PERMISSION:
		return "give yourself access to /dev/nvidiactl and /dev/nvidia0, or run as root";
	case NVML_OPERATING_SYSTEM:
		return "the container denies access to the GPU's device files: start it with --gpus all";
	default:
		return "see what 'nvidia-smi' says";
	}
}

static enum ts_metrics_state explain_code(const struct nvml *nvml, const char *what, int code,
					  char *why, size_t why_bytes)
{
	/* A library without driver and hardware is left over from a container image. */
	if (code == NVML_DRIVER_NOT_LOADED && !has_driver(nvml) && !has_hardware(nvml)) {
		snprintf(why, why_bytes, "no NVIDIA GPU and no NVIDIA driver");
		return TS_METRICS_NONE;
	}
	snprintf(why, why_bytes, "NVML: %s: %s (%s)", what, nvml_error_text(&nvml->api, code),
		 remedy(code));
	return TS_METRICS_BROKEN;
}

/* ---- opening and closing ---- */

static void close_nvml(void *state)
{
	struct nvml *nvml = state;

	if (!nvml)
		return;
	for (unsigned int i = 0; i < nvml->count; i++)
		nvml_gpm_release(nvml, &nvml->gpus[i]);
	nvml_gpm_leave(nvml);
	if (nvml->is_ready)
		nvml->api.shut_down();
	nvml_api_close(&nvml->api);
	free(nvml->gpus);
	free(nvml->list);
	free(nvml->entries);
	free(nvml->uses);
	free(nvml->users);
	free(nvml);
}

/* Some may fail, which the first sample reports; not all. */
static enum ts_metrics_state open_gpus(struct nvml *nvml, char *why, size_t why_bytes)
{
	unsigned int count = 0, opened = 0;
	int code = nvml->api.count(&count);

	if (code)
		return explain_code(nvml, "cannot count the GPUs", code, why, why_bytes);
	if (count == 0) {
		snprintf(why, why_bytes, "NVIDIA's driver has no GPU");
		return TS_METRICS_NONE;
	}
	count = TS_MIN(count, MAX_GPUS);
	nvml->gpus = calloc(count, sizeof(*nvml->gpus));
	if (!nvml->gpus) {
		snprintf(why, why_bytes, "out of memory");
		return TS_METRICS_BROKEN;
	}
	for (; nvml->count < count; nvml->count++)
		opened += nvml_gpu_open(nvml, &nvml->gpus[nvml->count], nvml->count);
	if (opened == 0)
		return explain_code(nvml, "no GPU can be opened", nvml->gpus[0].open_code, why,
				    why_bytes);
	return TS_METRICS_READY;
}

static enum ts_metrics_state start(struct nvml *nvml, char *why, size_t why_bytes)
{
	int code;

	if (!nvml_api_open(&nvml->api, nvml->options.library, nvml->options.find))
		return explain_load(nvml, nvml->api.library ? NULL : dlerror(), why, why_bytes);
	code = nvml->api.init();
	if (code)
		return explain_code(nvml, "it does not start", code, why, why_bytes);
	nvml->is_ready = true;
	return open_gpus(nvml, why, why_bytes);
}

enum ts_metrics_state nvml_open(struct nvml **ret_nvml, const struct nvml_options *options,
				char *why, size_t why_bytes)
{
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	enum ts_metrics_state state;

	if (!nvml) {
		snprintf(why, why_bytes, "out of memory");
		return TS_METRICS_BROKEN;
	}
	nvml->options = *options;
	if (!nvml->options.find)
		nvml->options.find = dlsym;
	snprintf(nvml->root, sizeof(nvml->root), "%s", options->root ? options->root : "");
	ts_query_pacing_init(&nvml->pace, readings, NVML_READINGS, BUDGET);
	state = start(nvml, why, why_bytes);
	/* They belong to the caller, who may not keep them. */
	nvml->options.library = nvml->options.root = NULL;
	if (state == TS_METRICS_READY)
		*ret_nvml = nvml;
	else
		close_nvml(nvml);
	return state;
}

static enum ts_metrics_state open_system(void **ret_state, char *why, size_t why_bytes)
{
	const struct nvml_options options = {
		/* For tests: another library. */
		.library = secure_getenv("TRACESMITH_NVML"),
		.root = "",
		.is_inner = !ts_is_outermost_pid_namespace(),
	};
	struct nvml *nvml = NULL;
	enum ts_metrics_state state = nvml_open(&nvml, &options, why, why_bytes);

	if (state == TS_METRICS_READY)
		*ret_state = nvml;
	return state;
}

/* ---- a sample ---- */

static unsigned int count_live(const struct nvml *nvml)
{
	unsigned int live = 0;

	for (unsigned int i = 0; i < nvml->count; i++)
		live += !nvml->gpus[i].is_lost;
	return live;
}

/* Reads the clock once between two queries. Returns its last value. */
static int64_t sample_gpu(struct nvml *nvml, struct nvml_gpu *gpu, int64_t clock_ns)
{
	nvml_gpu_announce(nvml, gpu);
	for (unsigned int i = 0; i < NVML_READINGS; i++) {
		int64_t end_ns;

		if (nvml->is_dead || gpu->is_lost)
			break;
		if (!ts_query_pacing_is_due(&nvml->pace, i, &gpu->last_ns[i]))
			continue;
		readers[i](nvml, gpu);
		end_ns = ts_clock_thread_cpu_ns();
		ts_query_pacing_add_cost(&nvml->pace, i, end_ns - clock_ns);
		clock_ns = end_ns;
	}
	return clock_ns;
}

static int sample(void *state, const struct ts_metrics_sink *sink)
{
	struct nvml *nvml = state;
	int64_t clock_ns = ts_clock_thread_cpu_ns();

	nvml->sink = sink;
	nvml->now_ns = ts_clock_monotonic_ns();
	nvml->has_slept = false;
	ts_query_pacing_begin(&nvml->pace, nvml->now_ns, count_live(nvml));
	for (unsigned int i = 0; i < nvml->count && !nvml->is_dead; i++)
		clock_ns = sample_gpu(nvml, &nvml->gpus[i], clock_ns);
	return nvml->is_dead || count_live(nvml) == 0;
}

const struct ts_metrics_source ts_metrics_nvml = {
	.abi = TS_METRICS_ABI,
	.size = sizeof(struct ts_metrics_source),
	.name = "nvml",
	.summary = "NVIDIA GPUs, from the management library of their driver",
	.least_interval_ns = SECOND_NS / 50,
	.open = open_system,
	.sample = sample,
	.close = close_nvml,
};
