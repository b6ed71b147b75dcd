/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `launch-latency`: time in each launching call, time on the device, and the delay between them. A
 * launch is a call that issued commands; a graph is one launch. docs/analyze.md defines the
 * numbers.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "analyze/busy.h"
#include "analyze/device_side.h"
#include "analyze/hta/hta_calls.h"
#include "base/text.h"

/* A longer call is slow. HTA has the same limit. */
#define SLOW_CALL_NS 50000
/* Rows of the list in text. */
#define SHOWN_ROWS 10

static const struct ts_result_column summary_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "launches", "launches", TS_CELL_INTEGER },
	{ "commands", "commands", TS_CELL_INTEGER },
	{ "cpu_sum_us", "in calls", TS_CELL_TIME },
	{ "gpu_sum_us", "on device", TS_CELL_TIME },
	{ "delay_sum_us", NULL, TS_CELL_TIME },
	{ "short_kernels", "short", TS_CELL_INTEGER },
	{ "launch_longer", "call longer", TS_CELL_INTEGER },
	{ "slow_calls", "slow calls", TS_CELL_INTEGER },
	{ "long_delays", "long delays", TS_CELL_INTEGER },
	{ "delay_mean_us", "delay mean", TS_CELL_TIME },
	{ "delay_median_us", "median", TS_CELL_TIME },
	{ "delay_q90_us", "90 %", TS_CELL_TIME },
	{ "delay_q99_us", "99 %", TS_CELL_TIME },
	{ "delay_max_us", "max", TS_CELL_TIME },
	{ "cpu_median_us", NULL, TS_CELL_TIME },
	{ "cpu_q99_us", NULL, TS_CELL_TIME },
	{ "gpu_median_us", NULL, TS_CELL_TIME },
	{ "gpu_q99_us", NULL, TS_CELL_TIME },
};

static const struct ts_result_column launch_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "correlation", "correlation", TS_CELL_INTEGER },
	{ "launch_delay_us", "delay", TS_CELL_TIME },
	{ "cpu_duration_us", "in call", TS_CELL_TIME },
	{ "gpu_duration_us", "on device", TS_CELL_TIME },
	{ "since_call_us", NULL, TS_CELL_TIME },
	{ "call_ns", "at", TS_CELL_INSTANT },
	{ "commands", "commands", TS_CELL_INTEGER },
	{ "call", "call", TS_CELL_TEXT },
	{ "name", "name", TS_CELL_TEXT },
};

struct launch {
	uint32_t call, command, command_count;
	int64_t cpu_ns, gpu_ns, delay_ns;
};

struct launches {
	const struct ts_work *work;
	struct launch *items; /* sorted by rank */
	size_t count, capacity;
	struct ts_hta_calls known;
	double *values; /* scratch, one per item */
};

static void launches_release(struct launches *launches)
{
	free(launches->items);
	free(launches->values);
}

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the launches");
}

/* ---- launches ---- */

static int add_launch(struct launches *all, uint32_t call, uint32_t command, uint32_t count,
		      int64_t gpu_ns)
{
	const struct ts_work_call *c = &all->work->calls[call];
	struct launch *launch;

	if (ts_grow_array((void **)&all->items, &all->capacity, all->count + 1,
			  sizeof(*all->items)))
		return TS_ENOMEM;
	launch = &all->items[all->count++];
	launch->call = call;
	launch->command = command;
	launch->command_count = count;
	launch->cpu_ns = ts_ns_between(c->start, c->end);
	launch->gpu_ns = gpu_ns;
	launch->delay_ns = ts_ns_between(c->end, all->work->commands[command].start);
	launch->delay_ns = TS_MAX(launch->delay_ns, 0);
	return TS_OK;
}

/*
 * One launch for all commands of a call: device time is their sum, the delay is that of the first.
 */
static int add_call(struct launches *all, uint32_t call)
{
	const struct ts_work *work = all->work;
	uint32_t first = work->calls[call].command, count = 0;
	int64_t gpu_ns = 0;

	for (uint32_t i = first; i != TS_WORK_NONE; i = ts_work_next_of_call(work, i), count++)
		gpu_ns = ts_ns_add(gpu_ns, ts_busy_duration(work, &work->commands[i]));
	return add_launch(all, call, first, count, gpu_ns);
}

/* HTA joins by correlation: one launch for each pair of a known call and a command. */
static int add_pairs(struct launches *all, uint32_t call)
{
	const struct ts_work *work = all->work;
	uint32_t i = work->calls[call].command;

	if (!ts_hta_calls_have(&all->known, work->calls[call].name))
		return TS_OK;
	for (; i != TS_WORK_NONE; i = ts_work_next_of_call(work, i))
		if (ts_busy_counts(work, &work->commands[i]) &&
		    add_launch(all, call, i, 1, ts_busy_duration(work, &work->commands[i])))
			return TS_ENOMEM;
	return TS_OK;
}

static int find_launches(struct launches *all, struct ts_error *err)
{
	const struct ts_work *work = all->work;
	bool hta = work->options.rounding == TS_ROUNDING_HTA;

	ts_hta_calls_init(&all->known, work, TS_HTA_LAUNCH);
	for (uint32_t i = 0; i < work->call_count; i++) {
		if (work->calls[i].command == TS_WORK_NONE)
			continue;
		if (hta ? add_pairs(all, i) : add_call(all, i))
			return no_memory(err);
	}
	all->values = ts_alloc_array(all->count, sizeof(*all->values));
	return all->values ? TS_OK : no_memory(err);
}

/* ---- summary ---- */

enum measure { CPU, GPU, DELAY };

static void describe(const struct launches *all, size_t first, size_t end, enum measure measure,
		     struct ts_description *ret)
{
	for (size_t i = first; i < end; i++) {
		const struct launch *launch = &all->items[i];

		all->values[i - first] = (double)(measure == CPU   ? launch->cpu_ns
						  : measure == GPU ? launch->gpu_ns
								   : launch->delay_ns);
	}
	ts_describe(all->values, end - first, ret);
}

struct counts {
	int64_t commands, cpu_ns, gpu_ns, delay_ns;
	int64_t short_kernels, longer, slow_calls, long_delays;
};

static struct counts count_launches(const struct launches *all, size_t first, size_t end,
				    const struct ts_analysis_options *options)
{
	struct counts counts = { 0 };

	for (size_t i = first; i < end; i++) {
		const struct launch *launch = &all->items[i];

		counts.commands += launch->command_count;
		counts.cpu_ns = ts_ns_add(counts.cpu_ns, launch->cpu_ns);
		counts.gpu_ns = ts_ns_add(counts.gpu_ns, launch->gpu_ns);
		counts.delay_ns = ts_ns_add(counts.delay_ns, launch->delay_ns);
		counts.short_kernels += launch->gpu_ns < options->short_ns;
		counts.longer += launch->gpu_ns < launch->cpu_ns;
		counts.slow_calls += launch->cpu_ns > SLOW_CALL_NS;
		counts.long_delays += launch->delay_ns > options->delay_ns;
	}
	return counts;
}

static void put_rank(struct ts_result_table *table, const struct launches *all, size_t first,
		     size_t end, const struct ts_analysis_options *options)
{
	struct counts counts = count_launches(all, first, end, options);
	const struct ts_work *work = all->work;
	struct ts_description delay, cpu, gpu;

	describe(all, first, end, DELAY, &delay);
	describe(all, first, end, CPU, &cpu);
	describe(all, first, end, GPU, &gpu);
	ts_cell_integer(table, work->ranks[work->calls[all->items[first].call].rank].rank);
	ts_cell_integer(table, (int64_t)(end - first));
	ts_cell_integer(table, counts.commands);
	ts_cell_time(table, counts.cpu_ns);
	ts_cell_time(table, counts.gpu_ns);
	ts_cell_time(table, counts.delay_ns);
	ts_cell_integer(table, counts.short_kernels);
	ts_cell_integer(table, counts.longer);
	ts_cell_integer(table, counts.slow_calls);
	ts_cell_integer(table, counts.long_delays);
	ts_cell_time(table, ts_ns_of(delay.mean));
	ts_cell_time(table, ts_ns_of(delay.median));
	ts_cell_time(table, ts_ns_of(delay.q90));
	ts_cell_time(table, ts_ns_of(delay.q99));
	ts_cell_time(table, ts_ns_of(delay.maximum));
	ts_cell_time(table, ts_ns_of(cpu.median));
	ts_cell_time(table, ts_ns_of(cpu.q99));
	ts_cell_time(table, ts_ns_of(gpu.median));
	ts_cell_time(table, ts_ns_of(gpu.q99));
}

static void put_summary(struct ts_result *result, const struct launches *all,
			const struct ts_analysis_options *options)
{
	struct ts_result_table *table =
		ts_result_table(result, "summary", summary_columns, TS_ARRAY_SIZE(summary_columns));
	const struct ts_work_call *calls = all->work->calls;

	table->details = "commands delay_q90_us delay_q99_us delay_median_us launch_longer";
	for (size_t first = 0, end; first < all->count; first = end) {
		uint32_t rank = calls[all->items[first].call].rank;

		for (end = first; end < all->count; end++)
			if (calls[all->items[end].call].rank != rank)
				break;
		put_rank(table, all, first, end, options);
	}
}

/* ---- the list ---- */

/* The longest delay first, then in the order of the calls. */
static int compare_launches(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;

	if (x->delay_ns != y->delay_ns)
		return x->delay_ns < y->delay_ns ? 1 : -1;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return (x->command > y->command) - (x->command < y->command);
}

static void put_launch(struct ts_result_table *table, const struct ts_work *work,
		       const struct launch *launch)
{
	const struct ts_work_call *call = &work->calls[launch->call];
	const struct ts_work_command *command = &work->commands[launch->command];

	ts_cell_integer(table, work->ranks[call->rank].rank);
	ts_cell_integer(table, call->correlation);
	ts_cell_time(table, launch->delay_ns);
	ts_cell_time(table, launch->cpu_ns);
	ts_cell_time(table, launch->gpu_ns);
	ts_cell_time(table, ts_ns_between(call->start, command->start));
	ts_cell_instant(table, call->start);
	ts_cell_integer(table, launch->command_count);
	ts_cell_text(table, ts_work_text(work, call->name));
	ts_cell_text(table, ts_work_text(work, command->name));
}

static void put_launches(struct ts_result *result, struct launches *all,
			 const struct ts_analysis_options *options)
{
	size_t shown = options->top > 0 ? (size_t)options->top : SHOWN_ROWS;
	size_t rows = options->brief ? TS_MIN(shown, all->count) : all->count;
	struct ts_result_table *table =
		ts_result_table(result, "launches", launch_columns, TS_ARRAY_SIZE(launch_columns));

	table->details = "commands gpu_duration_us cpu_duration_us call_ns";
	table->shown_rows = shown;
	table->left_out = all->count - rows;
	if (all->count)
		ts_sort(all->items, all->count, sizeof(*all->items), compare_launches);
	for (size_t i = 0; i < rows; i++)
		put_launch(table, all->work, &all->items[i]);
}

static void put_notes(struct ts_result *result, const struct launches *all)
{
	const struct ts_work *work = all->work;

	if (!all->count && !work->command_count)
		ts_device_side_note(work, result, "no device activity in this trace");
	else if (!all->count)
		ts_result_note(result, "no call in this trace launched its device work");
	if (work->commands_without_call)
		ts_result_note(result, "left out: %s without a call in the trace",
			       TS_COUNTED(work->commands_without_call, "command"));
	if (work->calls_without_command)
		ts_result_note(result, "left out: %s without device time",
			       TS_COUNTED(work->calls_without_command, "launch"));
	if (work->early_commands)
		ts_result_note(result, "%s started before the call: counted as a delay of 0",
			       TS_COUNTED(work->early_commands, "command"));
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct launches all = { .work = request->work };
	int rc = find_launches(&all, err);

	if (!rc) {
		put_summary(result, &all, &request->options);
		put_launches(result, &all, &request->options);
		put_notes(result, &all);
		rc = ts_result_status(result, err);
	}
	launches_release(&all);
	return rc;
}

static const struct ts_option_spec options[] = {
	TS_ANALYSIS_OPTION_SHORT,
	{
		.name = "delay",
		.type = TS_OPTION_SPEC_TIME,
		.value = "TIME",
		.doc = "a delay above this is long; default 100us",
		.offset = offsetof(struct ts_analysis_options, delay_ns),
	},
};

const struct ts_analysis ts_analysis_launch_latency = {
	.name = "launch-latency",
	.alias = "launch",
	.summary = "launch delays, short kernels and slow calls",
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
