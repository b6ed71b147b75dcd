/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD GPU metrics from sysfs: opening, and one sample. Devices are numbered by bus address, as in
 * ROCm's tools. A suspended device is not woken.
 */
#include "sample/metrics/amd/amd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sample/metrics/metric_sources.h"

#define SECOND_NS INT64_C(1000000000)
/* CPU budget of all devices: queries and output. */
#define BUDGET 0.004

static const struct ts_query_pacing_item readings[AMD_READINGS] = {
	[AMD_READ_SENSORS] = { 0, 4 },
	[AMD_READ_MEMORY] = { 0, 2 },
	[AMD_READ_PROCESSES] = { SECOND_NS, 1 },
};

static void (*const readers[AMD_READINGS])(struct amd *amd, struct amd_gpu *gpu) = {
	[AMD_READ_SENSORS] = amd_read_sensors,
	[AMD_READ_MEMORY] = amd_read_memory,
	[AMD_READ_PROCESSES] = amd_read_processes,
};

void amd_message(const struct amd *amd, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	amd->sink->message(amd->sink->context, text);
}

/* ---- opening and closing ---- */

static void close_amd(void *state)
{
	struct amd *amd = state;

	if (!amd)
		return;
	for (size_t i = 0; i < amd->count; i++)
		amd_gpu_release(&amd->gpus[i]);
	free(amd->gpus);
	ts_text_release(&amd->text);
	free(amd);
}

static enum ts_metrics_state start(struct amd *amd, char *why, size_t why_bytes)
{
	if (amd_find_gpus(amd)) {
		snprintf(why, why_bytes, "out of memory");
		return TS_METRICS_BROKEN;
	}
	if (amd->count == 0) {
		snprintf(why, why_bytes, "no AMD GPU with the driver amdgpu");
		return TS_METRICS_NONE;
	}
	amd_find_nodes(amd);
	return TS_METRICS_READY;
}

enum ts_metrics_state amd_open(struct amd **ret_amd, const char *root, bool is_inner, char *why,
			       size_t why_bytes)
{
	struct amd *amd = calloc(1, sizeof(*amd));
	enum ts_metrics_state state;

	if (!amd) {
		snprintf(why, why_bytes, "out of memory");
		return TS_METRICS_BROKEN;
	}
	snprintf(amd->root, sizeof(amd->root), "%s", root);
	amd->is_inner = is_inner;
	ts_query_pacing_init(&amd->pace, readings, AMD_READINGS, BUDGET);
	state = start(amd, why, why_bytes);
	if (state == TS_METRICS_READY)
		*ret_amd = amd;
	else
		close_amd(amd);
	return state;
}

static enum ts_metrics_state open_system(void **ret_state, char *why, size_t why_bytes)
{
	/* For tests: another sysfs root. */
	const char *root = secure_getenv("TRACESMITH_SYSFS");
	bool is_inner = !ts_is_outermost_pid_namespace();
	struct amd *amd = NULL;
	enum ts_metrics_state state =
		amd_open(&amd, root ? root : "/sys", is_inner, why, why_bytes);

	if (state == TS_METRICS_READY)
		*ret_state = amd;
	return state;
}

/* ---- a sample ---- */

static void announce(const struct amd *amd, struct amd_gpu *gpu)
{
	const struct ts_metrics_device device = {
		.number = gpu->number,
		.vendor = "AMD",
		.model = gpu->model,
		.uuid = gpu->uuid,
		.bus = gpu->bus,
		.memory_bytes = gpu->memory_bytes,
	};

	if (!gpu->is_announced)
		amd->sink->device(amd->sink->context, &device);
	gpu->is_announced = true;
}

/* Removed, or its driver was unloaded. */
static bool is_gone(struct amd *amd, struct amd_gpu *gpu)
{
	if (faccessat(gpu->directory, "vendor", F_OK, 0) == 0 || errno != ENOENT)
		return false;
	gpu->is_lost = true;
	amd_message(amd, "AMD GPU %u ('%s') has disappeared", gpu->number, gpu->bus);
	return true;
}

static bool is_asleep(struct amd *amd, struct amd_gpu *gpu)
{
	if (amd_file_read(amd, gpu, AMD_FILE_STATUS) || strncmp(amd->text.data, "suspend", 7) != 0)
		return false;
	amd_message(amd, "AMD GPU %u ('%s') is suspended, and is not woken for sampling",
		    gpu->number, gpu->bus);
	return true;
}

/* Reads the clock once between two queries. Returns its last value. */
static int64_t sample_gpu(struct amd *amd, struct amd_gpu *gpu, int64_t clock_ns)
{
	if (gpu->is_lost || is_gone(amd, gpu))
		return clock_ns;
	announce(amd, gpu);
	if (is_asleep(amd, gpu))
		return clock_ns;
	for (unsigned int i = 0; i < AMD_READINGS; i++) {
		int64_t end_ns;

		if (!ts_query_pacing_is_due(&amd->pace, i, &gpu->last_ns[i]))
			continue;
		readers[i](amd, gpu);
		end_ns = ts_clock_thread_cpu_ns();
		ts_query_pacing_add_cost(&amd->pace, i, end_ns - clock_ns);
		clock_ns = end_ns;
	}
	return clock_ns;
}

static unsigned int count_live(const struct amd *amd)
{
	unsigned int live = 0;

	for (size_t i = 0; i < amd->count; i++)
		live += !amd->gpus[i].is_lost;
	return live;
}

static int sample(void *state, const struct ts_metrics_sink *sink)
{
	struct amd *amd = state;
	int64_t clock_ns = ts_clock_thread_cpu_ns();

	amd->sink = sink;
	ts_query_pacing_begin(&amd->pace, ts_clock_monotonic_ns(), count_live(amd));
	for (size_t i = 0; i < amd->count; i++)
		clock_ns = sample_gpu(amd, &amd->gpus[i], clock_ns);
	return count_live(amd) == 0;
}

const struct ts_metrics_source ts_metrics_amd = {
	.abi = TS_METRICS_ABI,
	.size = sizeof(struct ts_metrics_source),
	.name = "amd",
	.summary = "AMD GPUs, from the sysfs files of their driver",
	.least_interval_ns = SECOND_NS / 50,
	.open = open_system,
	.sample = sample,
	.close = close_amd,
};
