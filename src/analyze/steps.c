/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `steps`: duration, device time and waits of each step, and which steps are outliers.
 * docs/analyze.md defines the numbers.
 */
#include "analyze/steps.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "analyze/busy.h"
#include "base/text.h"

/* A step this many deviations (estimated by the median deviation) above the median is an outlier.
 */
#define OUTLIER_DEVIATIONS 3.0
/* The median deviation times this estimates the standard deviation of a normal distribution. */
#define DEVIATION_OF_MEDIAN 1.4826
/* Steps that exceed the median by less than this fraction of it are never outliers. */
#define LEAST_EXCESS 0.05

static const struct ts_result_column summary_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "steps", "steps", TS_CELL_INTEGER },
	{ "median_us", "median", TS_CELL_TIME },
	{ "mean_us", "mean", TS_CELL_TIME },
	{ "std_us", "deviation", TS_CELL_TIME },
	{ "variation_pct", "variation", TS_CELL_PERCENT },
	{ "fastest", "fastest", TS_CELL_INTEGER },
	{ "fastest_us", "fastest took", TS_CELL_TIME },
	{ "slowest", "slowest", TS_CELL_INTEGER },
	{ "slowest_us", "slowest took", TS_CELL_TIME },
	{ "outliers", "outliers", TS_CELL_INTEGER },
};

static const struct ts_result_column step_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "step", "step", TS_CELL_INTEGER },
	{ "start_ns", "at", TS_CELL_INSTANT },
	{ "duration_us", "duration", TS_CELL_TIME },
	{ "host_us", "host", TS_CELL_TIME },
	{ "sync_us", "waits", TS_CELL_TIME },
	{ "calls_us", NULL, TS_CELL_TIME },
	{ "kernels", "commands", TS_CELL_INTEGER },
	{ "device_us", "device span", TS_CELL_TIME },
	{ "busy_us", "busy", TS_CELL_TIME },
	{ "idle_us", "idle", TS_CELL_TIME },
	{ "compute_us", "compute", TS_CELL_TIME },
	{ "communication_us", "communication", TS_CELL_TIME },
	{ "memory_us", "memory", TS_CELL_TIME },
	{ "exposed_communication_us", NULL, TS_CELL_TIME },
	{ "versus_median_pct", "vs. median", TS_CELL_PERCENT },
	{ "outlier", "outlier", TS_CELL_BOOL },
};

#define DEVICE_TIMES 7 /* from device_us to exposed_communication_us */

struct steps {
	const struct ts_work *work;
	uint32_t *commands; /* indices, grouped by step */
	uint32_t *first;    /* of each step: index into commands; one more at the end */
	int64_t *calls_ns;  /* of each call: time in earlier calls of its thread */
	int64_t *sync_ns;   /* the same for waiting calls */
	struct ts_span *spans;
	double *durations; /* scratch */
};

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the steps");
}

static void steps_release(struct steps *steps)
{
	free(steps->commands);
	free(steps->first);
	free(steps->calls_ns);
	free(steps->sync_ns);
	free(steps->spans);
	free(steps->durations);
}

static int steps_init(struct steps *steps, const struct ts_work *work)
{
	size_t calls = (size_t)work->call_count + 1, count = (size_t)work->step_count + 2;

	*steps = (struct steps){ .work = work };
	steps->commands = ts_alloc_array(work->command_count, sizeof(*steps->commands));
	steps->spans = ts_alloc_array(work->command_count, sizeof(*steps->spans));
	steps->first = calloc(count, sizeof(*steps->first));
	steps->calls_ns = ts_alloc_array(calls, sizeof(*steps->calls_ns));
	steps->sync_ns = ts_alloc_array(calls, sizeof(*steps->sync_ns));
	steps->durations = ts_alloc_array(count, sizeof(*steps->durations));
	return steps->commands && steps->spans && steps->first && steps->calls_ns &&
			       steps->sync_ns && steps->durations
		       ? TS_OK
		       : TS_ENOMEM;
}

/* ---- commands and calls of steps ---- */

/* Counting sort of the commands by the step that issued them. */
static void group_commands(struct steps *steps)
{
	const struct ts_work *work = steps->work;
	uint32_t *first = steps->first;

	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].step < work->step_count)
			first[work->commands[i].step + 2]++;
	for (uint32_t i = 2; i < work->step_count + 2; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].step < work->step_count)
			steps->commands[first[work->commands[i].step + 1]++] = i;
}

/* Time covered so far; overlapping calls count once. */
struct cover {
	int64_t ns, until;
};

static void cover_call(struct cover *cover, const struct ts_work_call *call)
{
	int64_t from = TS_MAX(call->start, cover->until);

	if (call->end > from)
		cover->ns = ts_ns_add(cover->ns, ts_ns_between(from, call->end));
	cover->until = TS_MAX(cover->until, call->end);
}

/* Prefix sums over the calls of each thread. */
static void sum_calls(struct steps *steps)
{
	const struct ts_work *work = steps->work;
	struct cover calls = { 0 }, syncs = { 0 };

	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (i == 0 || call->thread != call[-1].thread)
			calls.until = syncs.until = INT64_MIN;
		steps->calls_ns[i] = calls.ns;
		steps->sync_ns[i] = syncs.ns;
		cover_call(&calls, call);
		if (ts_api_is_sync((enum ts_api_kind)call->kind))
			cover_call(&syncs, call);
	}
	steps->calls_ns[work->call_count] = calls.ns;
	steps->sync_ns[work->call_count] = syncs.ns;
}

/*
 * The first call of a thread that begins at or after `time`; the end of the thread's calls if none
 * does.
 */
static uint32_t first_call_from(const struct ts_work *work, uint32_t thread, int64_t time)
{
	uint32_t low = work->threads[thread].first_call;
	uint32_t high = low + work->threads[thread].call_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->calls[middle].start < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- a step ---- */

/* Spans of the step's commands of a class (TS_CLASS_COUNT: of all), merged. */
static size_t merge_class(struct steps *steps, uint32_t step, unsigned int class,
			  struct ts_span *spans)
{
	const struct ts_work *work = steps->work;
	size_t count = 0;

	for (uint32_t i = steps->first[step]; i < steps->first[step + 1]; i++) {
		const struct ts_work_command *command = &work->commands[steps->commands[i]];

		if ((class == TS_CLASS_COUNT || command->class == class) &&
		    command->end > command->start)
			spans[count++] = (struct ts_span){ command->start, command->end };
	}
	return ts_spans_merge(spans, count);
}

struct device_time {
	int64_t span_ns, busy_ns, class_ns[TS_CLASS_COUNT], exposed_ns;
};

/*
 * The spans of computation and communication share one buffer: together they are no more than all
 * commands.
 */
static struct device_time measure_device(struct steps *steps, uint32_t step)
{
	struct ts_span *spans = steps->spans;
	struct device_time time = { 0 };
	size_t count = merge_class(steps, step, TS_CLASS_COUNT, spans), other;

	if (count > 0)
		time.span_ns = ts_ns_between(spans[0].start, spans[count - 1].end);
	time.busy_ns = ts_spans_total(spans, count);
	count = merge_class(steps, step, TS_CLASS_MEMORY, spans);
	time.class_ns[TS_CLASS_MEMORY] = ts_spans_total(spans, count);
	count = merge_class(steps, step, TS_CLASS_COMPUTE, spans);
	time.class_ns[TS_CLASS_COMPUTE] = ts_spans_total(spans, count);
	other = merge_class(steps, step, TS_CLASS_COMMUNICATION, spans + count);
	time.class_ns[TS_CLASS_COMMUNICATION] = ts_spans_total(spans + count, other);
	time.exposed_ns = ts_ns_between(ts_spans_shared(spans, count, spans + count, other),
					time.class_ns[TS_CLASS_COMMUNICATION]);
	return time;
}

static void put_host(struct ts_result_table *table, const struct steps *steps,
		     const struct ts_work_step *step)
{
	const struct ts_work *work = steps->work;
	int64_t duration_ns = ts_ns_between(step->start, step->end);
	int64_t sync_ns = 0, calls_ns = 0;

	if (step->thread < work->thread_count) {
		uint32_t from = first_call_from(work, step->thread, step->start);
		uint32_t to = first_call_from(work, step->thread, step->end);

		to = TS_MAX(from, to);
		sync_ns = ts_ns_between(steps->sync_ns[from], steps->sync_ns[to]);
		calls_ns = ts_ns_between(steps->calls_ns[from], steps->calls_ns[to]);
	}
	ts_cell_time(table, duration_ns);
	ts_cell_time(table, TS_MAX(ts_ns_between(sync_ns, duration_ns), 0));
	ts_cell_time(table, sync_ns);
	ts_cell_time(table, calls_ns);
}

/* A rank without device work has no device times. */
static void put_no_device(struct ts_result_table *table)
{
	ts_cell_integer(table, 0);
	for (size_t i = 0; i < DEVICE_TIMES; i++)
		ts_cell_time(table, TS_ABSENT);
}

static void put_device(struct ts_result_table *table, struct steps *steps, uint32_t step)
{
	struct device_time time;

	if (!steps->work->ranks[steps->work->steps[step].rank].command_count) {
		put_no_device(table);
		return;
	}
	time = measure_device(steps, step);
	ts_cell_integer(table, (int64_t)(steps->first[step + 1] - steps->first[step]));
	ts_cell_time(table, time.span_ns);
	ts_cell_time(table, time.busy_ns);
	ts_cell_time(table, ts_ns_between(time.busy_ns, time.span_ns));
	ts_cell_time(table, time.class_ns[TS_CLASS_COMPUTE]);
	ts_cell_time(table, time.class_ns[TS_CLASS_COMMUNICATION]);
	ts_cell_time(table, time.class_ns[TS_CLASS_MEMORY]);
	ts_cell_time(table, time.exposed_ns);
}

/* ---- outliers ---- */

void ts_steps_measure_spread(const struct ts_work *work, const struct ts_work_rank *rank,
			     double *scratch, struct ts_step_spread *ret)
{
	struct ts_description deviations;

	for (uint32_t i = 0; i < rank->step_count; i++) {
		const struct ts_work_step *step = &work->steps[rank->first_step + i];

		scratch[i] = (double)ts_ns_between(step->start, step->end);
	}
	ts_describe(scratch, rank->step_count, &ret->durations);
	for (uint32_t i = 0; i < rank->step_count; i++)
		scratch[i] = fabs(scratch[i] - ret->durations.median);
	ts_describe(scratch, rank->step_count, &deviations);
	ret->limit = TS_MAX(OUTLIER_DEVIATIONS * DEVIATION_OF_MEDIAN * deviations.median,
			    LEAST_EXCESS * ret->durations.median);
}

/* Three steps are too few to have an outlier. */
bool ts_step_is_outlier(const struct ts_step_spread *spread, const struct ts_work_step *step)
{
	double ns = (double)ts_ns_between(step->start, step->end);

	return spread->durations.count > 3 && ns - spread->durations.median > spread->limit;
}

static void put_step(struct ts_result_table *table, struct steps *steps, uint32_t index,
		     const struct ts_step_spread *spread)
{
	const struct ts_work_step *step = &steps->work->steps[index];
	double median = spread->durations.median;
	double ns = (double)ts_ns_between(step->start, step->end);

	ts_cell_integer(table, steps->work->ranks[step->rank].rank);
	ts_cell_integer(table, step->number);
	ts_cell_instant(table, step->start);
	put_host(table, steps, step);
	put_device(table, steps, index);
	ts_cell_percent(table, median > 0 ? 100.0 * (ns - median) / median : NAN);
	ts_cell_bool(table, ts_step_is_outlier(spread, step));
}

static const struct ts_work_step *extreme_step(const struct ts_work *work,
					       const struct ts_work_rank *rank, bool slowest)
{
	const struct ts_work_step *best = &work->steps[rank->first_step];

	for (uint32_t i = 1; i < rank->step_count; i++) {
		const struct ts_work_step *step = &work->steps[rank->first_step + i];
		int64_t ns = ts_ns_between(step->start, step->end);
		int64_t best_ns = ts_ns_between(best->start, best->end);

		if (slowest ? ns > best_ns : ns < best_ns)
			best = step;
	}
	return best;
}

static void put_extreme(struct ts_result_table *table, const struct ts_work_step *step)
{
	ts_cell_integer(table, step->number);
	ts_cell_time(table, ts_ns_between(step->start, step->end));
}

static void put_summary(struct ts_result_table *table, const struct steps *steps,
			const struct ts_work_rank *rank, const struct ts_step_spread *spread)
{
	const struct ts_description *durations = &spread->durations;
	int64_t outliers = 0;

	for (uint32_t i = 0; i < rank->step_count; i++)
		outliers += ts_step_is_outlier(spread, &steps->work->steps[rank->first_step + i]);
	ts_cell_integer(table, rank->rank);
	ts_cell_integer(table, rank->step_count);
	ts_cell_time(table, ts_ns_of(durations->median));
	ts_cell_time(table, ts_ns_of(durations->mean));
	ts_cell_time(table, ts_ns_of(durations->deviation));
	ts_cell_percent(table,
			durations->mean > 0 ? 100.0 * durations->deviation / durations->mean : NAN);
	put_extreme(table, extreme_step(steps->work, rank, false));
	put_extreme(table, extreme_step(steps->work, rank, true));
	ts_cell_integer(table, outliers);
}

/* ---- analysis ---- */

/* Text of a job without device work, or without calls, does without their columns. */
static void hide_device(struct ts_result_table *table, const struct ts_work *work)
{
	static const char *const of_device[] = { "kernels",  "device_us",  "busy_us",
						 "idle_us",  "compute_us", "communication_us",
						 "memory_us" };

	for (size_t i = 0; !work->command_count && i < TS_ARRAY_SIZE(of_device); i++)
		ts_result_hide(table, of_device[i]);
	if (!work->call_count) {
		ts_result_hide(table, "host_us");
		ts_result_hide(table, "sync_us");
	}
}

static void put_notes(struct ts_result *result, const struct ts_work *work)
{
	uint64_t left_out = 0, cut = 0;

	for (uint32_t i = 0; i < work->rank_count; i++) {
		left_out += work->ranks[i].steps_in_trace - work->ranks[i].step_count;
		cut += work->ranks[i].cut_steps;
	}
	if (left_out)
		ts_result_note(
			result,
			"left out: %s (by default the last one of each rank, which is rarely complete; --all shows it)",
			TS_COUNTED(left_out, "step"));
	if (cut)
		ts_result_note(result,
			       "left out: %s in which a recording window closed (--all shows the "
			       "part before)",
			       TS_COUNTED(cut, "step"));
	if (!work->step_count && !left_out && !cut)
		ts_result_note(result,
			       "the trace has no steps (ProfilerStep#N, TS_STEP()); --step-span "
			       "NAME names the spans that are");
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	const struct ts_work *work = request->work;
	struct ts_result_table *summary =
		ts_result_table(result, "summary", summary_columns, TS_ARRAY_SIZE(summary_columns));
	struct ts_result_table *table =
		ts_result_table(result, "steps", step_columns, TS_ARRAY_SIZE(step_columns));
	struct steps steps;
	int rc = steps_init(&steps, work) ? no_memory(err) : TS_OK;

	summary->details = "mean_us variation_pct fastest+fastest_us";
	table->details = "start_ns memory_us communication_us compute_us kernels host_us busy_us";
	if (!rc) {
		hide_device(table, work);
		group_commands(&steps);
		sum_calls(&steps);
	}
	for (uint32_t i = 0; !rc && i < work->rank_count; i++) {
		const struct ts_work_rank *rank = &work->ranks[i];
		struct ts_step_spread spread;

		if (!rank->step_count)
			continue;
		ts_steps_measure_spread(work, rank, steps.durations, &spread);
		put_summary(summary, &steps, rank, &spread);
		for (uint32_t k = 0; k < rank->step_count; k++)
			put_step(table, &steps, rank->first_step + k, &spread);
	}
	put_notes(result, work);
	steps_release(&steps);
	return rc ? rc : ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_steps = {
	.name = "steps",
	.summary = "duration, device time and waits of each step; outliers",
	.run = run,
};
