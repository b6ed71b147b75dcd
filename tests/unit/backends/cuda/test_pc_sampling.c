/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction sampling against stand-ins for CUPTI and the agent, both in this file: they record
 * calls, samples, functions and images for comparison. CUDA is not needed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/sample.h>

#include "backends/cuda/sampling/pc_sampling.h"
#include "unit/runner.h"

__thread struct cuda_thread cuda_thread __attribute__((tls_model("initial-exec")));

#define REASONS 3u
#define KEPT 16384u

/* ---- stand-in for the agent ---- */

struct kept {
	char function[64], reason[64];
	uint32_t offset, correlation;
	int64_t count;
};
static struct kept kept[KEPT];
static size_t kept_count;
static char codes[64][64];
static uint32_t code_count;
#define FACTS 8u
static char facts[FACTS][256];
static size_t fact_count;
static char images[8][64];
static size_t image_count;
static bool refuses_images;
static uint64_t lost;
static const char *setting = "14";
static bool is_forked;

void ts_sample(struct ts_emit_site *site, const struct ts_sample *sample,
	       const struct ts_emit_arg *args, unsigned int count)
{
	struct kept *to = &kept[kept_count++ % KEPT]; /* by one thread at a time */

	TS_CHECK(!args && !count && sample->count == 1 && sample->state == TS_SAMPLE_ON_DEVICE);
	TS_CHECK_STR(site->name, "pc");
	snprintf(to->function, sizeof(to->function), "%s", codes[sample->frames[0] >> 32]);
	snprintf(to->reason, sizeof(to->reason), "%s", site->category);
	to->offset = (uint32_t)sample->frames[0];
	to->correlation = sample->tid;
	to->count = sample->weight_ns;
}

uint32_t ts_code(enum ts_code_kind kind, const char *name, const char *file, uint32_t first_line)
{
	TS_CHECK_INT(kind, TS_CODE_DEVICE);
	TS_CHECK_INT(first_line, 0);
	snprintf(codes[++code_count], sizeof(codes[0]), "%s %s", name, file);
	return code_count;
}

static uint32_t is_enabled = 1;
const uint32_t *ts_emit_switch = &is_enabled;

uint64_t ts_now(void)
{
	static uint64_t now;

	return __atomic_add_fetch(&now, 1, __ATOMIC_RELAXED);
}

void ts_accelerator_lost(const char *what, uint64_t count, const char *reason)
{
	TS_CHECK(*what && *reason);
	lost += count;
}

void ts_accelerator_fact(const char *key, const char *json)
{
	size_t position = __atomic_fetch_add(&fact_count, 1, __ATOMIC_RELAXED);

	if (position < FACTS)
		snprintf(facts[position], sizeof(facts[0]), "%s %s", key, json);
}

const char *ts_accelerator_setting(const char *key)
{
	if (!strcmp(key, "redact"))
		return NULL;
	TS_CHECK_STR(key, "pc_sampling");
	return setting;
}

bool ts_accelerator_module(const char *name, const void *image, uint64_t bytes)
{
	if (refuses_images)
		return false;
	snprintf(images[image_count++], sizeof(images[0]), "%s %.*s", name, (int)bytes,
		 (const char *)image);
	return true;
}

bool cuda_is_forked(void)
{
	return is_forked;
}

/* ---- stand-in for CUPTI ---- */

static struct {
	int enable_result, get_result;
	unsigned int enabled, disabled, gets;
	uint32_t period, mode;
	size_t reason_count;
	struct sampling_data *at_end;
	size_t left; /* pcs to deliver */
	uint64_t dropped;
	bool lacks_worker_sleep;
	uint32_t not_issued; /* per pc */
	uint64_t samples;    /* number of reasons it reports; 0: as many as pcs */
} cupti;

static int enable(struct sampling_context_params *params)
{
	TS_CHECK(params->size == sizeof(*params) && params->context);
	TS_CHECK(cuda_thread.is_ours > 0);
	if (!cupti.enable_result)
		__atomic_add_fetch(&cupti.enabled, 1, __ATOMIC_RELAXED);
	return cupti.enable_result;
}

static void give(struct sampling_pc *pc, uint32_t number)
{
	static char names[2][8] = { "first", "second" };

	TS_CHECK(pc->size == sizeof(*pc) && pc->reasons);
	pc->cubin_crc = 0xabc;
	pc->offset = 16 * number;
	pc->function = number % 2;
	pc->name = names[number % 2];
	pc->correlation = cupti.mode == SAMPLING_SERIALIZED ? 7 : 0;
	pc->reason_count = 3;
	pc->reasons[2] = (struct sampling_reason){ .index = 11, .samples = cupti.not_issued };
	pc->reasons[0] = (struct sampling_reason){ .index = 10, .samples = number + 1 };
	pc->reasons[1] = (struct sampling_reason){ .index = 12, .samples = number % 3 };
}

static int disable(struct sampling_context_params *params)
{
	TS_CHECK(params->size == sizeof(*params) && params->context);
	__atomic_add_fetch(&cupti.disabled, 1, __ATOMIC_RELAXED);
	/* The rest goes to the buffer of the configuration. */
	if (cupti.at_end) {
		give(&cupti.at_end->pcs[0], 1000);
		cupti.at_end->count = 1;
		cupti.at_end->samples = 1001;
	}
	return SAMPLING_OK;
}

static int get(struct sampling_get_params *params)
{
	struct sampling_data *data = params->data;
	size_t count = cupti.left < data->capacity ? cupti.left : data->capacity;

	TS_CHECK(params->size == sizeof(*params) && data->size == sizeof(*data));
	TS_CHECK(data != cupti.at_end);
	cupti.gets++;
	if (cupti.get_result)
		return cupti.get_result;
	for (size_t i = 0; i < count; i++)
		give(&data->pcs[i], (uint32_t)i);
	cupti.left -= count;
	data->count = count;
	data->remaining = cupti.left;
	data->samples = cupti.samples ? cupti.samples : count;
	data->dropped = cupti.dropped;
	cupti.dropped = 0;
	return SAMPLING_OK;
}

static int count_reasons(struct sampling_count_params *params)
{
	*params->count = REASONS;
	return SAMPLING_OK;
}

static int name_reasons(struct sampling_reasons_params *params)
{
	static const char *const names[REASONS] = {
		"smsp__pcsamp_warps_issue_stalled_long_scoreboard",
		"smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
		"smsp__pcsamp_warps_issue_stalled_wait",
	};

	TS_CHECK_INT(params->count, REASONS);
	for (uint32_t i = 0; i < REASONS; i++) {
		params->indexes[i] = 10 + i;
		snprintf(params->names[i], SAMPLING_REASON_BYTES, "%s", names[i]);
	}
	return SAMPLING_OK;
}

static int configure(struct sampling_configure_params *params)
{
	for (size_t i = 0; i < params->count; i++) {
		struct sampling_attribute *one = &params->attributes[i];

		if (one->type == SAMPLING_PERIOD)
			cupti.period = one->value.number;
		else if (one->type == SAMPLING_MODE)
			cupti.mode = one->value.number;
		else if (one->type == SAMPLING_STALL_REASON)
			cupti.reason_count = one->value.reasons.count;
		else if (one->type == SAMPLING_DATA_BUFFER)
			cupti.at_end = one->value.buffer;
		else if (one->type == SAMPLING_WORKER_SLEEP && cupti.lacks_worker_sleep)
			return 1;
	}
	return SAMPLING_OK;
}

/* A fake checksum; images that begin with 'c' match the samples. */
static int checksum(struct sampling_crc_params *params)
{
	const char *bytes = params->cubin;

	params->crc = bytes[0] == 'c' ? 0xabc : 0xdef;
	return SAMPLING_OK;
}

void *cuda_cupti(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "cuptiPCSamplingEnable", (void *)enable },
		{ "cuptiPCSamplingDisable", (void *)disable },
		{ "cuptiPCSamplingGetData", (void *)get },
		{ "cuptiPCSamplingGetNumStallReasons", (void *)count_reasons },
		{ "cuptiPCSamplingGetStallReasons", (void *)name_reasons },
		{ "cuptiPCSamplingSetConfigurationAttribute", (void *)configure },
		{ "cuptiGetCubinCrc", (void *)checksum },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].function;
	return NULL;
}

/* ---- tests; each runs in its own process ---- */

static int context, other_context;

static int64_t sum_kept(const char *function, const char *reason)
{
	int64_t sum = 0;

	for (size_t i = 0; i < kept_count; i++)
		if (strcmp(kept[i].function, function) == 0 && strcmp(kept[i].reason, reason) == 0)
			sum += kept[i].count;
	return sum;
}

TS_TEST(samples_become_rows)
{
	cuda_sampling_context(&context, true);
	TS_CHECK_INT(cupti.enabled, 1);
	TS_CHECK_INT(cupti.period, 14);
	TS_CHECK_INT(cupti.mode, SAMPLING_CONTINUOUS);
	TS_CHECK_INT(cupti.reason_count, REASONS);
	TS_CHECK_STR(facts[0], "pc_sampling {\"period\":14,\"mode\":\"continuous\",\"reasons\":3}");
	cupti.left = 4;
	for (unsigned int tick = 0; tick < 4; tick++)
		cuda_sampling_drain(false);
	TS_CHECK_INT(cupti.gets, 1);
	/* 4 with the first reason; 2 with the second, the other counts of which are 0. */
	TS_CHECK_INT(kept_count, 6);
	TS_CHECK_INT(sum_kept("first cubin:0000000000000abc", "long_scoreboard"), 1 + 3);
	TS_CHECK_INT(sum_kept("second cubin:0000000000000abc", "long_scoreboard"), 2 + 4);
	TS_CHECK_INT(sum_kept("first cubin:0000000000000abc", "wait"), 2);
	TS_CHECK_INT(sum_kept("second cubin:0000000000000abc", "wait"), 1);
	TS_CHECK_INT(kept[0].offset, 0);
	TS_CHECK_INT(kept[0].correlation, 0);
	TS_CHECK_INT(code_count, 2);
	TS_CHECK_INT(cuda_thread.is_ours, 0);
}

TS_TEST(more_than_a_buffer)
{
	cuda_sampling_context(&context, true);
	cupti.left = 2 * SAMPLING_BUFFER_PCS + 5;
	for (unsigned int tick = 0; tick < 4; tick++)
		cuda_sampling_drain(false);
	TS_CHECK_INT(cupti.left, 0);
	TS_CHECK_INT(cupti.gets, 3);
	TS_CHECK_INT(code_count, 2);
}

TS_TEST(the_end)
{
	cuda_sampling_context(&context, true);
	cuda_sampling_context(&other_context, true);
	cuda_sampling_context(&context, false);
	TS_CHECK_INT(cupti.disabled, 1);
	/* Into the buffer of the configuration. */
	TS_CHECK_INT(sum_kept("first cubin:0000000000000abc", "long_scoreboard"), 0);
	cupti.left = 1;
	cupti.dropped = 5;
	cuda_sampling_drain(true);
	TS_CHECK_INT(cupti.disabled, 2);
	TS_CHECK_INT(sum_kept("first cubin:0000000000000abc", "long_scoreboard"), 1 + 1001);
	TS_CHECK_INT(lost, 5);
	TS_CHECK_STR(
		facts[fact_count - 1],
		"pc_samples {\"samples\":1002,\"stored\":1003,\"dropped\":5,\"other_kernels\":0,\"not_issued\":0}");
	cuda_sampling_drain(true);
	TS_CHECK_INT(cupti.disabled, 2);
}

TS_TEST(serialized)
{
	setting = "12,serialized";
	cuda_sampling_context(&context, true);
	TS_CHECK_INT(cupti.mode, SAMPLING_SERIALIZED);
	TS_CHECK_INT(cupti.period, 12);
	cupti.left = 1;
	cuda_sampling_launched();
	TS_CHECK_INT(kept_count, 1);
	TS_CHECK_INT(kept[0].correlation, 7);
}

/* Samples arrive up to a quarter of a second after their launch, perhaps after its window. */
TS_TEST(windows)
{
	cuda_sampling_context(&context, true);
	is_enabled = 0;
	cupti.left = 1;
	cuda_sampling_launched();
	sampling_drain_now();
	TS_CHECK_INT(kept_count, 0);
	is_enabled = 1;
	cuda_sampling_launched();
	is_enabled = 0;
	cupti.left = 1;
	sampling_drain_now();
	TS_CHECK_INT(kept_count, 1);
	cupti.left = 1;
	sampling_drain_now();
	TS_CHECK_INT(kept_count, 1);
}

/*
 * One pc, with 1 sample of a plain reason and 2000 of cycles without an instruction: each counts
 * once, however CUPTI counts.
 */
TS_TEST(samples_are_counted_once)
{
	const char *function = "first cubin:0000000000000abc";

	cuda_sampling_context(&context, true);
	cupti.not_issued = 2000;
	cupti.samples = 2001;
	for (unsigned int i = 0; i < 2; i++) {
		cupti.left = 1;
		sampling_drain_now();
		/* Not known the first time. */
		TS_CHECK_INT(sum_kept(function, "long_scoreboard_not_issued"), 2000 * (int64_t)i);
	}
	/* The plain reasons have them, too. */
	cupti.samples = 1;
	for (unsigned int i = 0; i < 3; i++) {
		cupti.left = 1;
		sampling_drain_now();
	}
	TS_CHECK_INT(sum_kept(function, "long_scoreboard_not_issued"), 4000);
}

TS_TEST(settings)
{
	static const char *const bad[] = { "", "4", "32", "x", "14serialized", "-14", " 14" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pid_t child = fork();
		int status = 0;

		if (child == 0) {
			setting = bad[i];
			_exit(cuda_sampling_is_wanted());
		}
		waitpid(child, &status, 0);
		TS_CHECK_INT(status, 0);
	}
	setting = NULL;
	TS_CHECK(!cuda_sampling_is_wanted());
	cuda_sampling_context(&context, true);
	cuda_sampling_drain(true);
	TS_CHECK_INT(cupti.enabled, 0);
}

TS_TEST(refused)
{
	cupti.enable_result = SAMPLING_NO_PRIVILEGES;
	cuda_sampling_context(&context, true);
	TS_CHECK(strstr(facts[0], "administrators") != NULL);
	cuda_sampling_drain(true);
	TS_CHECK_INT(cupti.gets, 0);
	TS_CHECK_INT(cupti.disabled, 0);
}

TS_TEST(an_older_cupti)
{
	cupti.lacks_worker_sleep = true;
	cuda_sampling_context(&context, true);
	TS_CHECK(strstr(facts[0], "\"period\":14") != NULL);
}

TS_TEST(a_full_buffer_is_lost)
{
	cuda_sampling_context(&context, true);
	cupti.get_result = SAMPLING_OUT_OF_MEMORY;
	for (unsigned int tick = 0; tick < 4; tick++)
		cuda_sampling_drain(false);
	TS_CHECK_INT(lost, 1);
	TS_CHECK_INT(kept_count, 0);
}

TS_TEST(a_forked_child_does_nothing)
{
	cuda_sampling_context(&context, true);
	is_forked = true;
	cuda_sampling_drain(true);
	cuda_sampling_context(&context, false);
	cuda_sampling_module(&context, 1, "c", 1, true);
	TS_CHECK_INT(cupti.gets, 0);
	TS_CHECK_INT(cupti.disabled, 0);
}

TS_TEST(images)
{
	char code[] = "code";

	cuda_sampling_context(&context, true);
	cuda_sampling_module(&context, 1, code, 4, true);
	cuda_sampling_module(&context, 2, "other", 5, true);
	cuda_sampling_module(&other_context, 1, code, 4, true);
	/* CUPTI does not promise that the code stays mapped. */
	memset(code, 0, sizeof(code));
	cuda_sampling_drain(false);
	TS_CHECK_INT(image_count, 0);
	cupti.left = 1;
	refuses_images = true;
	for (unsigned int tick = 0; tick < 4; tick++)
		cuda_sampling_drain(false);
	TS_CHECK_INT(image_count, 0);
	refuses_images = false;
	cuda_sampling_drain(false);
	/* Once, though two contexts have it. */
	TS_CHECK_INT(image_count, 1);
	TS_CHECK_STR(images[0], "cubin:0000000000000abc code");
	/* Loaded again: already known. */
	cuda_sampling_module(&context, 3, "code", 4, true);
	cuda_sampling_module(&context, 2, NULL, 0, false);
	cuda_sampling_drain(true);
	TS_CHECK_INT(image_count, 1);
	TS_CHECK_INT(lost, 0);
}

TS_TEST(images_that_cannot_be_stored)
{
	cuda_sampling_context(&context, true);
	cuda_sampling_module(&context, 1, "code", 4, true);
	cuda_sampling_module(&context, 2, "other", 5, true);
	cupti.left = 1;
	refuses_images = true;
	cuda_sampling_drain(false);
	TS_CHECK_INT(lost, 0);
	cuda_sampling_drain(true);
	TS_CHECK_INT(lost, 1);
}

TS_TEST(images_have_a_limit)
{
	size_t bytes = (size_t)200 << 20;
	char *large = calloc(1, bytes);

	TS_CHECK(large != NULL);
	cuda_sampling_context(&context, true);
	cuda_sampling_module(&context, 1, large, bytes, true);
	TS_CHECK_INT(lost, 0);
	cuda_sampling_module(&context, 2, large, bytes, true);
	TS_CHECK_INT(lost, 1);
	/* Unloading makes room. */
	cuda_sampling_module(&context, 1, NULL, 0, false);
	cuda_sampling_drain(false);
	cuda_sampling_module(&context, 3, large, bytes, true);
	TS_CHECK_INT(lost, 1);
	free(large);
}

/* ---- several threads ---- */

static void *come_and_go(void *unused)
{
	int user_samples;

	(void)unused;
	for (unsigned int i = 0; i < 500; i++) {
		cuda_sampling_context(&user_samples, true);
		cuda_sampling_module(&user_samples, i, "code", 4, true);
		cuda_sampling_module(&user_samples, i, NULL, 0, false);
		cuda_sampling_context(&user_samples, false);
	}
	return NULL;
}

TS_TEST(contexts_come_and_go)
{
	pthread_t threads[3];

	for (size_t i = 0; i < 3; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (unsigned int i = 0; i < 300; i++)
		cuda_sampling_drain(false);
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	cuda_sampling_drain(true);
	/* Everything started has ended; there were no samples, so no code was requested. */
	TS_CHECK_INT(cupti.enabled, 1500);
	TS_CHECK(cupti.disabled <= cupti.enabled);
	TS_CHECK(image_count <= 1);
}
