/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA as the tool sees it (docs/cuda.md): how its library gets into a program, host stacks,
 * instruction samples, windows that the program marks, checks of the machine, and what a finished
 * trace has of CUDA.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/recorder/backend_table.h"
#include "backends/recorder/cuda_checks.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define LIBRARY "libtracesmith-backend-cuda.so"

static const char *const preload[] = { LIBRARY, NULL };

/* NVTX calls one library: where the user has chosen another, that stays. */
static const struct ts_backend_variable environment[] = {
	{ "NVTX_INJECTION64_PATH", TS_BACKEND_LIBRARY, TS_BACKEND_KEEP, LIBRARY },
	{ 0 },
};

/* ---- options ---- */

static int parse_stacks(const char *text, char *ret_value, size_t bytes, char *why,
			size_t why_bytes)
{
	static const char *const values[] = { "none", "native", "python", "all" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(values); i++) {
		if (strcmp(text, values[i]) != 0)
			continue;
		snprintf(ret_value, bytes, "%s", text);
		return 0;
	}
	snprintf(why, why_bytes, "'%s' is not none, native, python or all", text);
	return TS_EINVAL;
}

/* 2^n cycles between two samples of instructions. */
#define PERIOD_LEAST 5
#define PERIOD_GREATEST 31
#define PERIOD "14"
#define SERIALIZED "serialized"

/* "", "14", "serialized", "14,serialized" */
static int parse_sampling(const char *text, char *ret_value, size_t bytes, char *why,
			  size_t why_bytes)
{
	size_t length = strcspn(text, ",");
	const char *mode = text[length] ? text + length + 1 : NULL;
	int64_t period;

	if (!mode && !strcmp(text, SERIALIZED)) {
		mode = text;
		length = 0;
	}
	if (mode && strcmp(mode, SERIALIZED) != 0) {
		snprintf(why, why_bytes, "'%s': only '" SERIALIZED "' can follow the comma", mode);
		return TS_EINVAL;
	}
	if (length && (ts_parse_int64(text, length, &period) || period < PERIOD_LEAST ||
		       period > PERIOD_GREATEST)) {
		snprintf(why, why_bytes,
			 "'%.*s' is not a number from %d to %d (N: one sample every 2^N cycles)",
			 (int)length, text, PERIOD_LEAST, PERIOD_GREATEST);
		return TS_EINVAL;
	}
	snprintf(ret_value, bytes, "%.*s%s", length ? (int)length : (int)strlen(PERIOD),
		 length ? text : PERIOD, mode ? "," SERIALIZED : "");
	return 0;
}

static const struct ts_backend_option options[] = {
	{
		.name = "stacks",
		.type = TS_BACKEND_OPTION_VALUE,
		.value = "WHICH",
		.help = "call stacks of launches, copies, allocations and waits: none, native, "
			"python or all (default)",
		.setting = "stacks",
		.default_value = "all",
		.parse = parse_stacks,
	},
	{
		.name = "pc-sampling",
		.type = TS_BACKEND_OPTION_OPTIONAL,
		.value = "N[,serialized]",
		.help = "sample instructions on the device every 2^N cycles, 5 to 31; default: "
			"14. serialized: run one kernel at a time, to assign samples to launches",
		.setting = "pc_sampling",
		.parse = parse_sampling,
	},
	{ 0 },
};

/* ---- windows ---- */

static int check_range(const char *argument, char *why, size_t why_bytes)
{
	if (*argument && *argument != '@')
		return 0;
	snprintf(why, why_bytes,
		 "nvtx needs the name of a range, such as nvtx:step or nvtx:step@DOMAIN");
	return TS_EINVAL;
}

static const struct ts_backend_window windows[] = {
	{
		.name = "nvtx",
		.argument = "NAME[@DOMAIN]",
		.help = "inside NVTX ranges with this name",
		.check = check_range,
		.never_opened = "no NVTX range with exactly this name was opened; record without "
				"'--window' to see the names (NVTX_DISABLE or another "
				"NVTX_INJECTION64_PATH turns NVTX off)",
	},
	{
		.name = "cuda-profiler-api",
		.help = "between cudaProfilerStart and cudaProfilerStop",
		.never_opened =
			"the program has not called cudaProfilerStart (torch.cuda.profiler.start())",
	},
	{ 0 },
};

/* ---- checks ---- */

#define NOT_RUN "not tested on this hardware"

static const struct ts_backend_check checks[] = {
	{ "cuda", "CUDA driver", ts_check_cuda, NULL, NULL },
	{ "cuda_files", "device files", ts_check_cuda_files, NULL, NULL },
	{ "cuda_recording", "recording", ts_check_cuda_recording, NULL, NULL },
	{ "cuda_replay", "replay", ts_check_cuda_replay, "record --replayable, replay", NULL },
	{ "cupti", "CUPTI", ts_check_cupti, NULL, NULL },
	{ "cuda_profilers", "other profilers", ts_check_cuda_profilers, NULL, NULL },
	{ "gpu_counters", "profiling permission", ts_check_gpu_counters, "record --pc-sampling",
	  NULL },
	{ "mig", "MIG", ts_check_mig, NULL, NOT_RUN },
	{ "mps", "MPS", ts_check_mps, NULL, NOT_RUN },
	{ "disassembler", "instructions", ts_check_disassembler, "view --hot", NULL },
	{ "source_lines", "source lines", ts_check_source_lines, "record, symbolize", NULL },
	{ 0 },
};

/* ---- the summary ---- */

#define SEE " (see 'tracesmith doctor cuda')"

struct cuda_facts {
	bool is_used; /* a program has initialized CUDA */
	char no_device_side[256];
	char no_samples[256];
};

static void on_used(void *user, const char *json)
{
	struct cuda_facts *facts = user;

	(void)json;
	facts->is_used = true;
}

/* {"state": "off", "reason": "...", ...}: what the backend says of its device side. */
static void on_device_side(void *user, const char *json)
{
	struct cuda_facts *facts = user;
	char state[16] = "", reason[sizeof(facts->no_device_side)] = "";
	size_t length = strlen(json);

	ts_json_member_string(json, length, "state", state, sizeof(state));
	if (strcmp(state, "off") != 0)
		return;
	ts_json_member_string(json, length, "reason", reason, sizeof(reason));
	snprintf(facts->no_device_side, sizeof(facts->no_device_side), "%s%.200s",
		 strncmp(reason, "CUPTI_ERROR", strlen("CUPTI_ERROR")) == 0
			 ? "CUPTI could not be started: "
			 : "",
		 *reason ? reason : "the reason is unknown");
}

static void on_sampling(void *user, const char *json)
{
	struct cuda_facts *facts = user;

	*facts->no_samples = 0;
	ts_json_member_string(json, strlen(json), "off", facts->no_samples,
			      sizeof(facts->no_samples));
}

static void put_count(const struct ts_backend_recording *recording, const char *key, uint64_t count)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, count);
	recording->json(recording->context, key, number);
}

static void put_string(const struct ts_backend_recording *recording, const char *key,
		       const char *value)
{
	TS_SCOPED(ts_text) json = { 0 };

	ts_text_append_json(&json, value, strlen(value));
	if (!ts_text_status(&json))
		recording->json(recording->context, key, ts_text_cstr(&json));
}

static void summarize_counts(const struct ts_backend_recording *recording)
{
	char calls[TS_FORMAT_BYTES], ops[TS_FORMAT_BYTES], stacks[TS_FORMAT_BYTES], line[160];
	uint64_t call_count, op_count, stack_count;

	if (recording->flags & TS_BACKEND_QUIET && !(recording->flags & TS_BACKEND_JSON))
		return;
	call_count = recording->rows(recording->context, "api_call", NULL);
	op_count = recording->rows(recording->context, "gpu_op", NULL);
	stack_count = recording->rows(recording->context, "api_call", "stack");
	snprintf(line, sizeof(line), "CUDA: %s calls, %s with a stack; %s device operations",
		 ts_format_count(calls, sizeof(calls), (int64_t)call_count),
		 ts_format_count(stacks, sizeof(stacks), (int64_t)stack_count),
		 ts_format_count(ops, sizeof(ops), (int64_t)op_count));
	recording->note(recording->context, line);
	put_count(recording, "api_calls", call_count);
	put_count(recording, "api_calls_with_stack", stack_count);
	put_count(recording, "gpu_ops", op_count);
}

/* Programs without CUDA can have NVTX ranges: reported only if more than these was requested. */
static void summarize_unused(const struct ts_backend_recording *recording, bool is_sampling)
{
	if (!(recording->flags & TS_BACKEND_ONE_FILE))
		return;
	if (is_sampling)
		recording->warning(recording->context,
				   "no instruction samples: no program used CUDA");
	else if (recording->flags & TS_BACKEND_NAMED)
		recording->note(recording->context, "no program used CUDA");
}

static void summarize_missing(const struct ts_backend_recording *recording,
			      const struct cuda_facts *facts)
{
	char line[400];

	if (facts->no_device_side[0]) {
		snprintf(line, sizeof(line), "no device activity was recorded: %s" SEE,
			 facts->no_device_side);
		(recording->flags & TS_BACKEND_QUIET ? recording->warning
						     : recording->note)(recording->context, line);
		put_string(recording, "no_device_side", facts->no_device_side);
	}
	if (facts->no_samples[0]) {
		snprintf(line, sizeof(line), "no instruction samples: %s" SEE, facts->no_samples);
		recording->warning(recording->context, line);
		put_string(recording, "no_instruction_samples", facts->no_samples);
	}
}

static void summarize(const struct ts_backend_recording *recording)
{
	bool is_sampling = recording->setting(recording->context, "pc_sampling") != NULL;
	struct cuda_facts facts = { 0 };

	recording->facts(recording->context, "cuda", on_used, &facts);
	if (!facts.is_used) {
		summarize_unused(recording, is_sampling);
		return;
	}
	recording->facts(recording->context, "cuda_device_side", on_device_side, &facts);
	recording->facts(recording->context, "pc_sampling", on_sampling, &facts);
	if (!is_sampling)
		facts.no_samples[0] = '\0';
	else if (!facts.no_samples[0])
		memcpy(facts.no_samples, facts.no_device_side, sizeof(facts.no_samples));
	summarize_counts(recording);
	summarize_missing(recording, &facts);
}

const struct ts_backend ts_cuda_descriptor = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_cuda_descriptor),
	.name = "cuda",
	.summary = "CUDA calls, device activity, NVTX ranges, call stacks, replay",
	.flags = TS_BACKEND_REPLAYABLE,
	.preload = preload,
	.environment = environment,
	.options = options,
	.windows = windows,
	.checks = checks,
	.summarize = summarize,
};
