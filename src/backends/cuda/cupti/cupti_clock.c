/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of operations: makes CUPTI use CLOCK_MONOTONIC if it supports a timestamp callback, and
 * emits how that relates to the trace clock. Only for the buffer reader, except for the callback.
 */
#include <time.h>

#include "backends/cuda/cupti/cupti_device.h"

#define DEVICES 64u
#define READINGS 8
/* Uncertainty of CUPTI's conversion from the device clock to the given one. */
#define CUPTI_UNCERTAINTY_NS 1000

static uint64_t last_emitted[DEVICES]; /* ts_now() of the last emission; 0: never */
static bool has_callback;              /* atomic */

/* Called on threads of the program and of CUPTI. */
uint64_t cuda_clock_timestamp(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CUDA_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

void cuda_clock_use_callback(bool has)
{
	__atomic_store_n(&has_callback, has, __ATOMIC_RELEASE);
}

uint64_t cuda_clock_latest(void)
{
	return __atomic_load_n(&has_callback, __ATOMIC_ACQUIRE) ? cuda_clock_timestamp()
								: UINT64_MAX;
}

static uint64_t read_device(void)
{
	uint64_t ns = 0;

	if (__atomic_load_n(&has_callback, __ATOMIC_ACQUIRE))
		return cuda_clock_timestamp();
	return cupti.GetTimestamp && !cupti.GetTimestamp(&ns) ? ns : 0;
}

void cuda_clock_emit(uint32_t device)
{
	uint64_t least = UINT64_MAX, host = 0, ns = 0;

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = ts_now(), at = read_device(), took = ts_now() - before;

		if (at && took < least) {
			least = took;
			host = before + took / 2;
			ns = at;
		}
	}
	if (!ns)
		return;
	ts_accelerator_clock(device, host, (int64_t)ns,
			     (ts_ticks_ns(least) + 1) / 2 + CUPTI_UNCERTAINTY_NS,
			     has_callback ? "cupti timestamp callback" : "cuptiGetTimestamp");
	if (device < DEVICES)
		last_emitted[device] = host;
}

void cuda_clock_again(void)
{
	uint64_t now = ts_now();

	for (uint32_t device = 0; device < DEVICES; device++)
		if (last_emitted[device] &&
		    ts_ticks_ns(now - last_emitted[device]) >= CUDA_NS_PER_SECOND)
			cuda_clock_emit(device);
}
