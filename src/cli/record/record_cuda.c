/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of the backend cuda (docs/cuda.md): host stacks, samples of instructions, windows
 * that the program marks. It goes to the program by its environment; must not know how any of it is
 * taken.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"

/* 2^n cycles between two samples of instructions. */
#define PERIOD_LEAST 5
#define PERIOD_GREATEST 31
#define PERIOD "14"

#define CUDA "cuda"
#define SERIALIZED "serialized"

/* Is it there to be asked? `option` as it was written. */
static int check_backend(const struct ts_record *record, const char *option)
{
	if (!record->command)
		return ts_report_usage(
			"'%s' needs the backend cuda in a program from its start: tracesmith record -- CMD",
			option);
	if (!ts_record_runs_in_program(record, CUDA))
		return ts_report_usage("'%s' needs the backend cuda: add it to '--backends'",
				       option);
	return TS_EXIT_DONE;
}

static int read_stacks(struct ts_record *record, const char *text)
{
	static const char *const words[] = { "none", "native", "python", "all" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(words); i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		record->launch.stacks = words[i];
		return check_backend(record, "--stacks");
	}
	return ts_report_usage("option '--stacks': '%s' is none of none, native, python and all",
			       text);
}

/* "", "14", "serialized", "14,serialized" */
static int read_sampling(struct ts_record *record, const char *text)
{
	size_t length = strcspn(text, ",");
	const char *mode = text[length] ? text + length + 1 : NULL;
	int64_t period;

	if (!mode && !strcmp(text, SERIALIZED)) {
		mode = text;
		length = 0;
	}
	if (mode && strcmp(mode, SERIALIZED) != 0)
		return ts_report_usage(
			"option '--pc-sampling': '%s': after the comma only '" SERIALIZED
			"' is known",
			mode);
	if (length && (ts_parse_int64(text, length, &period) || period < PERIOD_LEAST ||
		       period > PERIOD_GREATEST))
		return ts_report_usage(
			"option '--pc-sampling': '%.*s' is not N from %d to %d: a sample is taken every 2^N cycles",
			(int)length, text, PERIOD_LEAST, PERIOD_GREATEST);
	snprintf(record->pc_sampling, sizeof(record->pc_sampling), "%.*s%s",
		 length ? (int)length : (int)strlen(PERIOD), length ? text : PERIOD,
		 mode ? "," SERIALIZED : "");
	record->launch.pc_sampling = record->pc_sampling;
	return check_backend(record, "--pc-sampling");
}

static int read_window(struct ts_record *record)
{
	const struct ts_window_spec *window = &record->options.window;

	if (window->kind != TS_WINDOW_NVTX && window->kind != TS_WINDOW_PROFILER)
		return TS_EXIT_DONE;
	record->launch.window = window->path;
	return check_backend(record, "--window nvtx, cuda-profiler-api");
}

/* '--python-on calls' adds Python's frames to what '--stacks' says. */
static void add_python(struct ts_record *record)
{
	const char *stacks = record->launch.stacks;

	if (stacks && strstr(record->python.stacks, "calls"))
		record->launch.stacks = !strcmp(stacks, "none")     ? "python"
					: !strcmp(stacks, "native") ? "all"
								    : stacks;
}

int ts_record_cuda(struct ts_record *record, const char *stacks, const char *pc_sampling)
{
	int code = stacks ? read_stacks(record, stacks) : TS_EXIT_DONE;

	if (!stacks && record->command && ts_record_runs_in_program(record, CUDA))
		record->launch.stacks = "all";
	add_python(record);
	if (!code && pc_sampling)
		code = read_sampling(record, pc_sampling);
	if (!code)
		code = read_window(record);
	return code;
}
