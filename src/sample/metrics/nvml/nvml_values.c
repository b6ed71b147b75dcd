/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instantaneous values of one GPU: utilization, memory, power, clocks, temperature, throttling.
 * Implausible values are dropped.
 */
#include "sample/metrics/nvml/nvml.h"

/* Plausibility limits: beyond these, the bytes are not a number. */
#define MAX_POWER_MW 10000000u
#define MAX_CLOCK_MHZ 100000u
#define MAX_CELSIUS 250

static void give_percent(const struct nvml *nvml, const struct nvml_gpu *gpu, const char *series,
			 uint32_t percent)
{
	if (percent <= 100)
		nvml_integer(nvml, gpu, "utilization_percent", series, percent);
}

void nvml_read_utilization(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_utilization utilization = { UINT32_MAX, UINT32_MAX };

	if (!nvml_wants(nvml, gpu, NVML_VALUE_UTILIZATION) ||
	    !nvml_got(nvml, gpu, NVML_VALUE_UTILIZATION,
		      NVML_CALL(&nvml->api, utilization, gpu->handle, &utilization)))
		return;
	give_percent(nvml, gpu, "compute", utilization.compute);
	give_percent(nvml, gpu, "memory", utilization.memory);
}

/* A total of 0 means unified host memory, of which the library knows nothing. */
static void give_memory(const struct nvml *nvml, const struct nvml_gpu *gpu, uint64_t total,
			uint64_t used)
{
	if (total && used <= total && total <= INT64_MAX)
		nvml_integer(nvml, gpu, "memory_bytes", "used", (int64_t)used);
}

void nvml_read_memory(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_memory memory = { .version = NVML_VERSION(struct nvml_memory, 2) };
	struct nvml_memory_v1 old = { 0 };

	if (nvml_wants(nvml, gpu, NVML_VALUE_MEMORY)) {
		if (nvml_got(nvml, gpu, NVML_VALUE_MEMORY,
			     NVML_CALL(&nvml->api, memory, gpu->handle, &memory)))
			give_memory(nvml, gpu, memory.total, memory.used);
	}
	/* The two differ in reserved memory: never mix them. */
	if (!nvml_lacks(gpu, NVML_VALUE_MEMORY) || !nvml_wants(nvml, gpu, NVML_VALUE_MEMORY_V1))
		return;
	if (nvml_got(nvml, gpu, NVML_VALUE_MEMORY_V1,
		     NVML_CALL(&nvml->api, memory_v1, gpu->handle, &old)))
		give_memory(nvml, gpu, old.total, old.used);
}

/* "draw" is nvidia-smi's power.draw: on most devices since Ampere a one-second average. */
void nvml_read_power(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_field field = { .field = NVML_FIELD_POWER_INSTANT };
	unsigned int power_mw = 0;
	uint64_t instant_mw;

	if (nvml_wants(nvml, gpu, NVML_VALUE_POWER) &&
	    nvml_got(nvml, gpu, NVML_VALUE_POWER,
		     NVML_CALL(&nvml->api, power_mw, gpu->handle, &power_mw)) &&
	    power_mw && power_mw < MAX_POWER_MW)
		nvml_real(nvml, gpu, "power_W", "draw", power_mw / 1e3);
	if (!nvml_wants(nvml, gpu, NVML_VALUE_POWER_INSTANT))
		return;
	if (nvml_got(nvml, gpu, NVML_VALUE_POWER_INSTANT, nvml_fields(nvml, gpu, &field, 1)) &&
	    nvml_got(nvml, gpu, NVML_VALUE_POWER_INSTANT, field.code) &&
	    nvml_field_number(&field, &instant_mw) && instant_mw && instant_mw < MAX_POWER_MW)
		nvml_real(nvml, gpu, "power_W", "instant", (double)instant_mw / 1e3);
}

static void read_clock(struct nvml *nvml, struct nvml_gpu *gpu, enum nvml_value value,
		       enum nvml_clock clock, const char *series)
{
	unsigned int mhz = UINT32_MAX;

	if (nvml_wants(nvml, gpu, value) &&
	    nvml_got(nvml, gpu, value,
		     NVML_CALL(&nvml->api, clock_mhz, gpu->handle, (int)clock, &mhz)) &&
	    mhz < MAX_CLOCK_MHZ)
		nvml_integer(nvml, gpu, "clock_MHz", series, mhz);
}

void nvml_read_clocks(struct nvml *nvml, struct nvml_gpu *gpu)
{
	read_clock(nvml, gpu, NVML_VALUE_CLOCK_COMPUTE, NVML_CLOCK_COMPUTE, "compute");
	read_clock(nvml, gpu, NVML_VALUE_CLOCK_MEMORY, NVML_CLOCK_MEMORY, "memory");
}

/* The old function while it exists, else the new one. */
static void read_core_temperature(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_temperature temperature = {
		.version = NVML_VERSION(struct nvml_temperature, 1),
		.celsius = INT32_MAX,
	};
	unsigned int celsius = UINT32_MAX;

	if (nvml_wants(nvml, gpu, NVML_VALUE_TEMPERATURE) &&
	    nvml_got(nvml, gpu, NVML_VALUE_TEMPERATURE,
		     NVML_CALL(&nvml->api, temperature, gpu->handle, 0, &celsius)) &&
	    celsius <= MAX_CELSIUS)
		nvml_integer(nvml, gpu, "temperature_C", "core", celsius);
	if (!nvml_lacks(gpu, NVML_VALUE_TEMPERATURE) ||
	    !nvml_wants(nvml, gpu, NVML_VALUE_TEMPERATURE_V))
		return;
	if (nvml_got(nvml, gpu, NVML_VALUE_TEMPERATURE_V,
		     NVML_CALL(&nvml->api, temperature_v, gpu->handle, &temperature)) &&
	    temperature.celsius <= MAX_CELSIUS && temperature.celsius >= -MAX_CELSIUS)
		nvml_integer(nvml, gpu, "temperature_C", "core", temperature.celsius);
}

void nvml_read_temperature(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_field field = { .field = NVML_FIELD_MEMORY_TEMPERATURE };
	uint64_t celsius;

	read_core_temperature(nvml, gpu);
	if (!nvml_wants(nvml, gpu, NVML_VALUE_MEMORY_TEMPERATURE))
		return;
	/* Devices without that sensor say 0. */
	if (nvml_got(nvml, gpu, NVML_VALUE_MEMORY_TEMPERATURE, nvml_fields(nvml, gpu, &field, 1)) &&
	    nvml_got(nvml, gpu, NVML_VALUE_MEMORY_TEMPERATURE, field.code) &&
	    nvml_field_number(&field, &celsius) && celsius && celsius <= MAX_CELSIUS)
		nvml_integer(nvml, gpu, "temperature_C", "memory", (int64_t)celsius);
}

void nvml_read_throttle(struct nvml *nvml, struct nvml_gpu *gpu)
{
	static const struct {
		const char *series;
		uint64_t bits;
	} reasons[] = {
		{ "power_cap", NVML_THROTTLE_POWER_CAP },
		{ "thermal", NVML_THROTTLE_SOFTWARE_THERMAL | NVML_THROTTLE_HARDWARE_THERMAL },
		{ "power_brake", NVML_THROTTLE_POWER_BRAKE },
		{ "slowdown", NVML_THROTTLE_SLOWDOWN },
		{ "sync_boost", NVML_THROTTLE_SYNC_BOOST },
	};
	uint64_t bits = 0;

	if (!nvml_wants(nvml, gpu, NVML_VALUE_THROTTLE) ||
	    !nvml_got(nvml, gpu, NVML_VALUE_THROTTLE,
		      NVML_CALL(&nvml->api, throttle, gpu->handle, &bits)))
		return;
	for (size_t i = 0; i < TS_ARRAY_SIZE(reasons); i++)
		if (gpu->throttle_known & reasons[i].bits)
			nvml_integer(nvml, gpu, "throttled", reasons[i].series,
				     (bits & reasons[i].bits) != 0);
}
