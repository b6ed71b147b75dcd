/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `advice`: runs all checks and keeps the findings that save most. Has the helpers that checks
 * share.
 */
#include "analyze/advice/advice.h"
#include "analyze/device_side.h"
#include "analyze/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FINDINGS 10
/* Findings that save less than this share of the window (in 1/1000) are dropped. */
#define SMALLEST_PERMILLE 5

static ts_advice_check *const checks[] = {
	ts_advise_host_gaps,       ts_advise_launch_bound,     ts_advise_exposed_communication,
	ts_advise_fusion,          ts_advise_single_precision, ts_advise_best_kernel,
	ts_advise_pageable_copies, ts_advise_small_copies,     ts_advise_allocations,
	ts_advise_slow_steps,      ts_advise_stragglers,
};

static const char *keep(struct ts_advisor *advisor, struct ts_text *text)
{
	char *copy = text->failed ? NULL
				  : ts_arena_strdup_len(&advisor->result->arena, ts_text_cstr(text),
							text->length);

	ts_text_release(text);
	return copy;
}

int ts_advise(struct ts_advisor *advisor, int64_t saves_ns_of_all, const char *analysis,
	      struct ts_text *finding, struct ts_text *evidence)
{
	int64_t saves = saves_ns_of_all / TS_MAX(advisor->work->rank_count, 1);
	struct ts_advice advice = { .saves_ns = saves, .analysis = analysis };

	advice.finding = keep(advisor, finding);
	advice.evidence = keep(advisor, evidence);
	if (saves <= 0 || saves < advisor->window_ns / 1000 * SMALLEST_PERMILLE)
		return TS_OK;
	if (!advice.finding || !advice.evidence ||
	    ts_grow_array((void **)&advisor->findings, &advisor->capacity, advisor->count + 1,
			  sizeof(advice)))
		return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	advisor->findings[advisor->count++] = advice;
	return TS_OK;
}

/* ---- sums by name ---- */

int ts_advice_sums_add(struct ts_advice_sums *sums, uint32_t name, int64_t ns)
{
	bool is_new;
	uint64_t *position = ts_map_insert(&sums->positions, name, &is_new);

	if (!position)
		return TS_ENOMEM;
	if (is_new) {
		if (ts_grow_array((void **)&sums->sums, &sums->capacity, sums->count + 1,
				  sizeof(*sums->sums)))
			return TS_ENOMEM;
		*position = sums->count;
		sums->sums[sums->count++] = (struct ts_advice_sum){ .name = name };
	}
	sums->sums[*position].count++;
	sums->sums[*position].ns = ts_ns_add(sums->sums[*position].ns, ns);
	return TS_OK;
}

void ts_advice_sums_release(struct ts_advice_sums *sums)
{
	ts_map_release(&sums->positions);
	free(sums->sums);
}

const struct ts_advice_sum *ts_advice_sums_largest(const struct ts_advice_sums *sums)
{
	const struct ts_advice_sum *largest = NULL;

	for (size_t i = 0; i < sums->count; i++)
		if (!largest || sums->sums[i].ns > largest->ns)
			largest = &sums->sums[i];
	return largest;
}

/* Start of the arguments at the end of a name; "(anonymous namespace)" is not an argument. */
static size_t length_without_arguments(const char *name)
{
	size_t length = strcspn(name, "<"), all = strlen(name);

	if (all == 0 || name[all - 1] != ')')
		return length;
	for (size_t i = 1; i < length; i++)
		if (name[i] == '(' && strncmp(&name[i], "(anonymous", 10) != 0)
			return name[i - 1] == ' ' ? i - 1 : i;
	return length;
}

void ts_advice_append_name(struct ts_text *out, const char *name)
{
	size_t length, most = 60;

	if (!strncmp(name, "void ", 5))
		name += 5;
	length = length_without_arguments(name);
	ts_text_append(out, name, TS_MIN(length, most));
	if (length > most)
		ts_text_append_str(out, "...");
}

const char *ts_advice_count_(char *buffer, size_t size, uint64_t count, const char *noun)
{
	char number[TS_FORMAT_BYTES];
	size_t length = strlen(noun);
	bool to_ies = count != 1 && length > 0 && noun[length - 1] == 'y';

	ts_format_count(number, sizeof(number), (int64_t)TS_MIN(count, INT64_MAX));
	snprintf(buffer, size, "%s %.*s%s", number, (int)(length - to_ies), noun,
		 to_ies       ? "ies"
		 : count == 1 ? ""
			      : "s");
	return buffer;
}

/* ---- the analysis ---- */

static int compare_advice(const void *a_, const void *b_)
{
	const struct ts_advice *a = a_, *b = b_;

	if (a->saves_ns != b->saves_ns)
		return a->saves_ns > b->saves_ns ? -1 : 1;
	return strcmp(a->finding, b->finding);
}

static const struct ts_result_column columns[] = {
	{ "number", "#", TS_CELL_INTEGER },
	{ "saves_us", "could save", TS_CELL_TIME },
	{ "saves_pct", "of the window", TS_CELL_PERCENT },
	{ "finding", "finding", TS_CELL_TEXT },
	{ "evidence", "evidence", TS_CELL_TEXT },
	{ "command", "shown by", TS_CELL_TEXT },
};

static void fill_table(struct ts_advisor *advisor, struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "advice", columns, TS_ARRAY_SIZE(columns));
	const char *traces = advisor->request->options.traces;

	table->as_list = true;
	for (size_t i = 0; i < TS_MIN(advisor->count, MOST_FINDINGS); i++) {
		const struct ts_advice *advice = &advisor->findings[i];

		ts_cell_integer(table, (int64_t)i + 1);
		ts_cell_time(table, advice->saves_ns);
		ts_cell_share(table, advice->saves_ns, TS_MAX(advisor->window_ns, 1));
		ts_cell_text(table, advice->finding);
		ts_cell_text(table, advice->evidence);
		ts_cell_format(table, "tracesmith analyze %s %s", traces ? traces : "T",
			       advice->analysis);
	}
}

static int64_t mean_window(const struct ts_work *work)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < work->rank_count; i++)
		if (work->ranks[i].rows_to > work->ranks[i].rows_from)
			sum += (work->ranks[i].rows_to - work->ranks[i].rows_from) /
			       work->rank_count;
	return sum;
}

static void note(const struct ts_advisor *advisor, struct ts_result *result)
{
	if (advisor->work->command_count == 0)
		ts_device_side_note(advisor->work, result,
				    "the trace has no device work to advise on");
	else if (advisor->count == 0)
		ts_result_note(result, "found nothing that could save 0.5 %% of the time or more");
	else
		ts_result_note(
			result,
			"each saving is estimated independently; savings overlap and do not add up");
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct ts_advisor advisor = {
		.request = request, .work = request->work, .result = result, .err = err
	};
	int code = TS_OK;

	advisor.window_ns = mean_window(request->work);
	advisor.states = ts_analyze_all_states(request, err);
	if (!advisor.states)
		return err->code;
	if (request->work->command_count > 0)
		for (size_t i = 0; !code && i < TS_ARRAY_SIZE(checks); i++)
			code = checks[i](&advisor);
	if (!code) {
		ts_sort(advisor.findings, advisor.count, sizeof(*advisor.findings), compare_advice);
		fill_table(&advisor, result);
		note(&advisor, result);
	}
	free(advisor.findings);
	return code;
}

static const struct ts_option_spec options[] = {
	TS_ANALYSIS_OPTION_SHORT,
};

const struct ts_analysis ts_analysis_advice = {
	.name = "advice",
	.summary = "what could save the most time, with evidence",
	.example = "run.sbt advice",
	.load_flags = TS_WORK_SLICES | TS_WORK_DETAILS | TS_WORK_FLOWS,
	.flags = TS_ANALYSIS_ALIGNED,
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
