/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `advice`: runs all checks and keeps the findings that save most. Has the helpers that checks
 * share.
 */
#include "analyze/advice/advice.h"
#include "analyze/busy.h"
#include "analyze/device_side.h"
#include "analyze/statistics.h"
#include "trace/trace_totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FINDINGS 10
/* Findings that save less than this share of the window (in 1/1000) are dropped. */
#define SMALLEST_PERMILLE 5

/* Which traces a check is for. */
enum subject { DEVICE_WORK, NO_DEVICE_WORK, ANY };

static const struct {
	ts_advice_check *check;
	enum subject subject;
} checks[] = {
	{ ts_advise_host_gaps, DEVICE_WORK },
	{ ts_advise_launch_bound, DEVICE_WORK },
	{ ts_advise_unknown_idle, DEVICE_WORK },
	{ ts_advise_exposed_communication, DEVICE_WORK },
	{ ts_advise_fusion, DEVICE_WORK },
	{ ts_advise_single_precision, DEVICE_WORK },
	{ ts_advise_best_kernel, DEVICE_WORK },
	{ ts_advise_pageable_copies, DEVICE_WORK },
	{ ts_advise_small_copies, DEVICE_WORK },
	{ ts_advise_allocations, DEVICE_WORK },
	{ ts_advise_stragglers, DEVICE_WORK },
	{ ts_advise_operators, NO_DEVICE_WORK },
	{ ts_advise_samples, ANY },
	{ ts_advise_slow_steps, ANY },
};

static const char *keep(struct ts_advisor *advisor, struct ts_text *text)
{
	char *copy = text->failed ? NULL
				  : ts_arena_strdup_len(&advisor->result->arena, ts_text_cstr(text),
							text->length);

	ts_text_release(text);
	return copy;
}

static int add_finding(struct ts_advisor *advisor, struct ts_advice *advice, int64_t ns_of_all,
		       struct ts_text *finding, struct ts_text *evidence)
{
	advice->weight_ns = ns_of_all / TS_MAX(advisor->work->rank_count, 1);
	advice->finding = keep(advisor, finding);
	advice->evidence = keep(advisor, evidence);
	if (advice->weight_ns <= 0 ||
	    advice->weight_ns < advisor->window_ns / 1000 * SMALLEST_PERMILLE)
		return TS_OK;
	if (!advice->finding || !advice->evidence ||
	    ts_grow_array((void **)&advisor->findings, &advisor->capacity, advisor->count + 1,
			  sizeof(*advice)))
		return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	advisor->findings[advisor->count++] = *advice;
	return TS_OK;
}

int ts_advise(struct ts_advisor *advisor, int64_t saves_ns_of_all, const char *analysis,
	      struct ts_text *finding, struct ts_text *evidence)
{
	struct ts_advice advice = { .is_saving = true, .analysis = analysis };

	return add_finding(advisor, &advice, saves_ns_of_all, finding, evidence);
}

int ts_advise_at_most(struct ts_advisor *advisor, int64_t saves_ns_of_all, const char *analysis,
		      struct ts_text *finding, struct ts_text *evidence)
{
	struct ts_advice advice = { .is_saving = true, .is_bound = true, .analysis = analysis };

	return add_finding(advisor, &advice, saves_ns_of_all, finding, evidence);
}

int ts_advise_unexplained(struct ts_advisor *advisor, int64_t ns_of_all, const char *analysis,
			  struct ts_text *finding, struct ts_text *evidence)
{
	struct ts_advice advice = { .analysis = analysis };

	return add_finding(advisor, &advice, ns_of_all, finding, evidence);
}

/* ---- sums ---- */

void ts_advice_busiest_add(struct ts_advice_busiest *busiest, uint32_t rank, uint32_t thread,
			   int64_t ns)
{
	if (rank != busiest->rank)
		busiest->rank_ns = 0;
	if (rank != busiest->rank || thread != busiest->thread)
		busiest->thread_ns = 0;
	busiest->rank = rank;
	busiest->thread = thread;
	busiest->thread_ns = ts_ns_add(busiest->thread_ns, ns);
	if (busiest->thread_ns <= busiest->rank_ns)
		return;
	busiest->ns = ts_ns_add(busiest->ns, busiest->thread_ns - busiest->rank_ns);
	busiest->rank_ns = busiest->thread_ns;
}

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

	/* Python's "<module>" and "f.<locals>.<lambda>". */
	if (name[length] && (length == 0 || name[length - 1] == '.'))
		return all;
	if (!all || name[all - 1] != ')')
		return length;
	for (size_t i = 1; i < length; i++)
		if (name[i] == '(' && strncmp(&name[i], "(anonymous", 10) != 0)
			return name[i - 1] == ' ' ? i - 1 : i;
	return length;
}

#define NAME_HEAD 30
#define NAME_TAIL 30

/* The first byte of the character that a byte belongs to. */
static size_t character_at(const char *name, size_t at)
{
	while (at > 0 && ((unsigned char)name[at] & 0xc0) == 0x80)
		at--;
	return at;
}

void ts_advice_append_name(struct ts_text *out, const char *name)
{
	size_t length, tail;

	if (!strncmp(name, "void ", 5))
		name += 5;
	length = length_without_arguments(name);
	if (length <= NAME_HEAD + NAME_TAIL) {
		ts_text_append(out, name, length);
		return;
	}
	/* Kernels of one library often differ at the end only. */
	tail = character_at(name, length - NAME_TAIL);
	ts_text_append(out, name, character_at(name, NAME_HEAD));
	ts_text_append_str(out, "...");
	ts_text_append(out, name + tail, length - tail);
}

/* ---- the analysis ---- */

static int compare_advice(const void *a_, const void *b_)
{
	const struct ts_advice *a = a_, *b = b_;

	if (a->weight_ns != b->weight_ns)
		return a->weight_ns > b->weight_ns ? -1 : 1;
	return strcmp(a->finding, b->finding);
}

enum { COMMAND = 6 };

static const struct ts_result_column columns[] = {
	{ "number", "#", TS_CELL_INTEGER },
	{ "at_most", "at most", TS_CELL_BOOL },
	{ "saves_us", "could save", TS_CELL_TIME },
	{ "saves_pct", "of the window", TS_CELL_PERCENT },
	{ "finding", "finding", TS_CELL_TEXT },
	{ "evidence", "evidence", TS_CELL_TEXT },
	[COMMAND] = { "command", "shown by", TS_CELL_TEXT },
};

static void fill_table(struct ts_advisor *advisor, struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "advice", columns, TS_ARRAY_SIZE(columns));
	const char *traces = advisor->request->options.traces;

	table->as_list = true;
	table->commands = 1u << COMMAND;
	for (size_t i = 0; i < TS_MIN(advisor->count, MOST_FINDINGS); i++) {
		const struct ts_advice *advice = &advisor->findings[i];

		ts_cell_integer(table, (int64_t)i + 1);
		if (advice->is_saving) {
			ts_cell_bool(table, advice->is_bound);
			ts_cell_time(table, advice->weight_ns);
			ts_cell_share(table, advice->weight_ns, TS_MAX(advisor->window_ns, 1));
		} else {
			ts_cell_none(table);
			ts_cell_none(table);
			ts_cell_none(table);
		}
		ts_cell_text(table, advice->finding);
		ts_cell_text(table, advice->evidence);
		ts_cell_format(table, "tracesmith analyze %s %s", traces ? traces : "T",
			       advice->analysis);
	}
}

/* The time range of a trace that has samples alone. */
static int64_t trace_window(const struct ts_work *work, const struct ts_work_rank *rank)
{
	struct ts_trace_range range;

	if (ts_trace_range(work->readers[rank->trace], &range, NULL) || !range.any)
		return 0;
	return ts_ns_between(range.from, range.to);
}

static int64_t mean_window(const struct ts_work *work)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < work->rank_count; i++) {
		const struct ts_work_rank *rank = &work->ranks[i];

		sum += (rank->rows_to > rank->rows_from
				? ts_ns_between(rank->rows_from, rank->rows_to)
				: trace_window(work, rank)) /
		       work->rank_count;
	}
	return sum;
}

static void note(const struct ts_advisor *advisor, struct ts_result *result)
{
	if (advisor->work->command_count == 0)
		ts_device_side_note(advisor->work, result,
				    "the trace has no device work: advice is about the host");
	if (advisor->work->command_count)
		ts_busy_note_windows(advisor->work, result);
	if (advisor->count == 0)
		ts_result_note(result, "found nothing that could save 0.5 %% of the time or more");
	else
		ts_result_note(
			result,
			"each saving is estimated independently; savings overlap and do not add up");
	if (advisor->count && advisor->work->rank_count > 1)
		ts_result_note(result,
			       "savings are of one rank, the mean of %u; evidence counts all ranks",
			       advisor->work->rank_count);
}

static bool is_for(enum subject subject, const struct ts_work *work)
{
	return subject == ANY || (subject == DEVICE_WORK) == (work->command_count > 0);
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct ts_advisor advisor = {
		.request = request, .work = request->work, .result = result, .err = err
	};
	int code = TS_OK;

	advisor.window_ns = mean_window(request->work);
	advisor.words = ts_advice_words(request->work);
	advisor.states = ts_analyze_all_states(request, err);
	if (!advisor.states)
		return err->code;
	for (size_t i = 0; !code && i < TS_ARRAY_SIZE(checks); i++)
		if (is_for(checks[i].subject, request->work))
			code = checks[i].check(&advisor);
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
	.flags = TS_ANALYSIS_ALIGNED | TS_ANALYSIS_NOTES_ANSWER,
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
