/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction sampling of the stand-in for CUPTI: for each launch, 100 samples of one kernel at two
 * offsets. Nothing runs on a device. The code checksum is synthetic, and the same for equal bytes.
 */
#include "cuda/stand_in_sampling.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/sampling/pc_sampling_abi.h"

#define EXPORTED __attribute__((visibility("default")))
#define LAUNCHES 4096

/* As in CUPTI's header, with our own structs. */
int cuptiPCSamplingEnable(struct sampling_context_params *params);
int cuptiPCSamplingDisable(struct sampling_context_params *params);
int cuptiPCSamplingGetNumStallReasons(struct sampling_count_params *params);
int cuptiPCSamplingGetStallReasons(struct sampling_reasons_params *params);
int cuptiPCSamplingSetConfigurationAttribute(struct sampling_configure_params *params);
int cuptiPCSamplingGetData(struct sampling_get_params *params);
int cuptiGetCubinCrc(struct sampling_crc_params *params);

static struct {
	pthread_mutex_t lock;
	void *context;
	const char *function;
	uint64_t crc;
	uint32_t mode, period;
	uint32_t launches[LAUNCHES]; /* pending launches, by correlation */
	uint32_t count;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t checksum(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t sum = 0xcbf29ce484222325u;

	for (size_t i = 0; i < count; i++)
		sum = (sum ^ at[i]) * 0x100000001b3u;
	return sum;
}

EXPORTED void stand_in_sample(const char *function, const void *cubin, size_t bytes,
			      uint32_t correlation)
{
	pthread_mutex_lock(&state.lock);
	state.function = function;
	state.crc = checksum(cubin, bytes);
	if (state.context && state.count < LAUNCHES)
		state.launches[state.count++] = correlation;
	pthread_mutex_unlock(&state.lock);
}

EXPORTED uint32_t stand_in_samples_left(void)
{
	uint32_t count;

	pthread_mutex_lock(&state.lock);
	count = state.count;
	pthread_mutex_unlock(&state.lock);
	return count;
}

EXPORTED uint32_t stand_in_sampling_period(void)
{
	return state.period;
}

/* ---- CUPTI's functions ---- */

EXPORTED int cuptiPCSamplingEnable(struct sampling_context_params *params)
{
	state.context = params->context;
	return SAMPLING_OK;
}

EXPORTED int cuptiPCSamplingDisable(struct sampling_context_params *params)
{
	(void)params;
	state.context = NULL;
	return SAMPLING_OK;
}

EXPORTED int cuptiPCSamplingGetNumStallReasons(struct sampling_count_params *params)
{
	*params->count = 2;
	return SAMPLING_OK;
}

EXPORTED int cuptiPCSamplingGetStallReasons(struct sampling_reasons_params *params)
{
	static const char *const names[] = {
		"smsp__pcsamp_warps_issue_stalled_wait",
		"smsp__pcsamp_warps_issue_stalled_math_pipe_throttle"
	};

	for (uint32_t i = 0; i < 2; i++) {
		params->indexes[i] = i + 1;
		snprintf(params->names[i], SAMPLING_REASON_BYTES, "%s", names[i]);
	}
	return SAMPLING_OK;
}

EXPORTED int cuptiPCSamplingSetConfigurationAttribute(struct sampling_configure_params *params)
{
	for (size_t i = 0; i < params->count; i++) {
		if (params->attributes[i].type == SAMPLING_MODE)
			state.mode = params->attributes[i].value.number;
		if (params->attributes[i].type == SAMPLING_PERIOD)
			state.period = params->attributes[i].value.number;
	}
	return SAMPLING_OK;
}

static void put(struct sampling_data *data, uint64_t offset, uint32_t reason, uint32_t samples,
		uint32_t correlation)
{
	struct sampling_pc *pc = &data->pcs[data->count++];

	pc->cubin_crc = state.crc;
	pc->offset = offset;
	pc->function = 1;
	pc->name = (char *)(uintptr_t)state.function;
	pc->correlation = correlation;
	pc->reason_count = 1;
	pc->reasons[0] = (struct sampling_reason){ .index = reason, .samples = samples };
	data->samples += samples;
}

EXPORTED int cuptiPCSamplingGetData(struct sampling_get_params *params)
{
	struct sampling_data *data = params->data;
	uint32_t given;

	pthread_mutex_lock(&state.lock);
	if (state.mode == SAMPLING_SERIALIZED) {
		for (given = 0; given < state.count && data->count + 2 <= data->capacity; given++) {
			put(data, 0xd0, 1, 75, state.launches[given]);
			put(data, 0x190, 2, 25, state.launches[given]);
		}
	} else if (state.count) {
		put(data, 0xd0, 1, 75 * state.count, 0);
		put(data, 0x190, 2, 25 * state.count, 0);
		given = state.count;
	} else {
		given = 0;
	}
	memmove(state.launches, state.launches + given,
		(state.count - given) * sizeof(state.launches[0]));
	state.count -= given;
	data->remaining = 2 * state.count;
	pthread_mutex_unlock(&state.lock);
	return SAMPLING_OK;
}

EXPORTED int cuptiGetCubinCrc(struct sampling_crc_params *params)
{
	params->crc = checksum(params->cubin, params->cubin_bytes);
	return SAMPLING_OK;
}
