/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configures sampling of program counters for a context: period, mode, stall reasons, buffers. Runs
 * inside CUPTI's callback for a new context, before its modules are loaded.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/sample.h>

#include "backends/cuda/sampling/pc_sampling.h"

#define HARDWARE_BYTES ((size_t)256 << 20) /* device memory */
#define SCRATCH_BYTES ((size_t)8 << 20)
#define WORKER_SLEEP_MS 50
#define NEEDED_ATTRIBUTES 4
#define REASON_PREFIX "smsp__pcsamp_warps_issue_stalled_"
#define NOT_ISSUED_SUFFIX "_not_issued"

typedef int cupti_function(void *params);

/* ---- settings ---- */

static struct sampling_settings settings;

/* PERIOD, or PERIOD,serialized; anything else is off. */
static void read_settings(void)
{
	const char *text = ts_accelerator_setting("pc_sampling");
	unsigned long period;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return;
	period = strtoul(text, &end, 10);
	if (period < SAMPLING_LEAST_PERIOD || period > SAMPLING_GREATEST_PERIOD ||
	    (*end && *end != ','))
		return;
	settings.period = (uint32_t)period;
	settings.is_serialized = strcmp(end, ",serialized") == 0;
}

const struct sampling_settings *sampling_settings(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_settings);
	return &settings;
}

bool cuda_sampling_is_wanted(void)
{
	return sampling_settings()->period != 0;
}

/* ---- buffers ---- */

bool sampling_make_buffer(struct sampling_data *data, size_t pcs, size_t reasons)
{
	size_t pc_bytes = pcs * sizeof(struct sampling_pc);
	size_t bytes = pc_bytes + pcs * reasons * sizeof(struct sampling_reason);
	struct sampling_reason *next;
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	*data = (struct sampling_data){ .size = sizeof(*data), .capacity = pcs, .pcs = memory };
	next = (struct sampling_reason *)(void *)((char *)memory + pc_bytes);
	for (size_t i = 0; i < pcs; i++, next += reasons) {
		data->pcs[i].size = sizeof(struct sampling_pc);
		data->pcs[i].reasons = next;
	}
	return true;
}

/* ---- stall reasons ---- */

/* One per name, whatever number a device gives it. Never freed. */
static struct {
	struct ts_emit_site sites[SAMPLING_REASONS];
	char names[SAMPLING_REASONS][SAMPLING_REASON_BYTES];
	size_t count;
	pthread_mutex_t lock;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct ts_emit_site *find_site(const char *name)
{
	const struct ts_emit_site empty = TS_SAMPLE_SITE("pc", NULL);
	size_t i;

	for (i = 0; i < known.count; i++)
		if (strcmp(known.names[i], name) == 0)
			return &known.sites[i];
	if (i == SAMPLING_REASONS)
		return NULL;
	memccpy(known.names[i], name, 0, sizeof(known.names[i]) - 1); /* the rest is 0 */
	known.sites[i] = empty;
	known.sites[i].category = known.names[i];
	known.count++;
	return &known.sites[i];
}

static struct ts_emit_site *site_of(const char *name)
{
	size_t prefix = strlen(REASON_PREFIX);
	struct ts_emit_site *site;

	if (strncmp(name, REASON_PREFIX, prefix) == 0)
		name += prefix;
	pthread_mutex_lock(&known.lock);
	site = find_site(name);
	pthread_mutex_unlock(&known.lock);
	return site;
}

static bool is_not_issued(const char *name)
{
	size_t length = strlen(name), suffix = strlen(NOT_ISSUED_SUFFIX);

	return length > suffix && strcmp(name + length - suffix, NOT_ISSUED_SUFFIX) == 0;
}

/* Gets names and numbers of all reasons; returns their count. */
static size_t query_reasons(void *context, uint32_t *indexes, char names[][SAMPLING_REASON_BYTES],
			    int *ret_result)
{
	cupti_function *get_reason_count =
		(cupti_function *)cuda_cupti("cuptiPCSamplingGetNumStallReasons");
	cupti_function *get_reasons =
		(cupti_function *)cuda_cupti("cuptiPCSamplingGetStallReasons");
	char *pointers[SAMPLING_REASONS];
	size_t count = 0;
	struct sampling_count_params number = { .size = sizeof(number),
						.context = context,
						.count = &count };
	struct sampling_reasons_params reasons = {
		.size = sizeof(reasons), .context = context, .indexes = indexes, .names = pointers
	};

	*ret_result = get_reason_count && get_reasons ? get_reason_count(&number)
						      : SAMPLING_NOT_SUPPORTED;
	if (*ret_result || count > SAMPLING_REASONS)
		return 0;
	for (size_t i = 0; i < count; i++)
		pointers[i] = names[i];
	reasons.count = count;
	*ret_result = get_reasons(&reasons);
	return *ret_result ? 0 : count;
}

/* Enables all reasons. */
static size_t choose_reasons(struct sampled *sampled, int *ret_result)
{
	char names[SAMPLING_REASONS][SAMPLING_REASON_BYTES] = { { 0 } };
	uint32_t *indexes = sampled->indexes;
	size_t count = query_reasons(sampled->context, indexes, names, ret_result), kept = 0;

	for (size_t i = 0; i < count; i++) {
		names[i][SAMPLING_REASON_BYTES - 1] = 0;
		if (indexes[i] >= SAMPLING_REASONS)
			continue;
		sampled->sites[indexes[i]] = site_of(names[i]);
		sampled->is_not_issued[indexes[i]] = is_not_issued(names[i]);
		indexes[kept++] = indexes[i];
	}
	sampled->reason_count = count; /* buffers have space for all */
	return kept;
}

/* ---- start ---- */

static void emit_off(const char *what, int result)
{
	const char *why = result == SAMPLING_NO_PRIVILEGES || result == SAMPLING_VIRTUALIZED
				  ? "the driver restricts performance counters to administrators "
				    "(NVreg_RestrictProfilingToAdminUsers)"
			  : result == SAMPLING_NOT_SUPPORTED
				  ? "not supported by this device, driver or CUPTI"
				  : "CUPTI refused to start sampling";
	char json[320];

	snprintf(json, sizeof(json), "{\"off\":\"%s\",\"at\":\"%s\",\"result\":%d}", why, what,
		 result);
	ts_accelerator_fact("pc_sampling", json);
}

static void emit_on(size_t reasons)
{
	char json[160];

	snprintf(json, sizeof(json), "{\"period\":%u,\"mode\":\"%s\",\"reasons\":%zu}",
		 settings.period, settings.is_serialized ? "serialized" : "continuous", reasons);
	ts_accelerator_fact("pc_sampling", json);
}

/*
 * The most important settings come first: an older CUPTI may refuse some of the others, for which
 * it has other functions.
 */
static int configure(struct sampled *sampled, size_t count)
{
	cupti_function *set =
		(cupti_function *)cuda_cupti("cuptiPCSamplingSetConfigurationAttribute");
	struct sampling_attribute attributes[] = {
		{ .type = SAMPLING_STALL_REASON, .value.reasons = { count, sampled->indexes } },
		{ .type = SAMPLING_PERIOD, .value.number = settings.period },
		{ .type = SAMPLING_MODE,
		  .value.number = settings.is_serialized ? SAMPLING_SERIALIZED
							 : SAMPLING_CONTINUOUS },
		{ .type = SAMPLING_DATA_BUFFER, .value.buffer = &sampled->at_end },
		{ .type = SAMPLING_HARDWARE_BYTES, .value.size = HARDWARE_BYTES },
		{ .type = SAMPLING_SCRATCH_BYTES, .value.size = SCRATCH_BYTES },
		{ .type = SAMPLING_START_STOP, .value.number = 0 },
		{ .type = SAMPLING_FORMAT, .value.number = SAMPLING_FORMAT_PARSED },
		{ .type = SAMPLING_WORKER_SLEEP, .value.number = WORKER_SLEEP_MS },
	};
	struct sampling_configure_params params = {
		.size = sizeof(params),
		.context = sampled->context,
		.count = sizeof(attributes) / sizeof(attributes[0]),
		.attributes = attributes,
	};
	int result = SAMPLING_NOT_SUPPORTED;

	for (; set && result && params.count >= NEEDED_ATTRIBUTES; params.count--)
		result = set(&params);
	return result;
}

static bool set_up(struct sampled *sampled)
{
	int result = SAMPLING_OK;
	size_t count = choose_reasons(sampled, &result);

	if (result || !count) {
		emit_off("reasons of stalls", result);
		return false;
	}
	/* A reused slot still has its buffer. */
	if (!sampled->at_end.pcs &&
	    !sampling_make_buffer(&sampled->at_end, SAMPLING_AT_END_PCS, SAMPLING_REASONS)) {
		emit_off("memory", SAMPLING_OUT_OF_MEMORY);
		return false;
	}
	result = configure(sampled, count);
	if (result) {
		emit_off("configuration", result);
		return false;
	}
	emit_on(count);
	return true;
}

bool sampling_begin(struct sampled *sampled)
{
	cupti_function *enable = (cupti_function *)cuda_cupti("cuptiPCSamplingEnable");
	cupti_function *disable = (cupti_function *)cuda_cupti("cuptiPCSamplingDisable");
	struct sampling_context_params params = { .size = sizeof(params),
						  .context = sampled->context };
	int result = enable && disable ? enable(&params) : SAMPLING_NOT_SUPPORTED;

	if (result) {
		emit_off("beginning", result);
		return false;
	}
	if (set_up(sampled))
		return true;
	disable(&params);
	return false;
}
