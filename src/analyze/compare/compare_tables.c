/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a comparison: summary of both traces, number of names by verdict, and each name. */
#include <inttypes.h>
#include <math.h>

#include "analyze/busy.h"
#include "analyze/compare/compare_internal.h"
#include "analyze/statistics.h"
#include "base/text.h"

static const char *const kind_names[TS_COMPARE_KIND_COUNT] = {
	[TS_COMPARE_KERNEL] = "kernel",
	[TS_COMPARE_COPY] = "copy",
	[TS_COMPARE_FILL] = "fill",
	[TS_COMPARE_OTHER] = "other",
	[TS_COMPARE_STEP] = "step",
	[TS_COMPARE_OPERATOR] = "operator",
	[TS_COMPARE_ANNOTATION] = "annotation",
	[TS_COMPARE_CALL] = "call",
	[TS_COMPARE_PYTHON] = "python",
	[TS_COMPARE_SLICE] = "slice",
};

static const char *const test_names[] = {
	[TS_COMPARE_UNTESTED] = NULL,
	[TS_COMPARE_ONE_SAMPLE] = "one sample",
	[TS_COMPARE_BY_STEPS] = "Welch t, steps",
	[TS_COMPARE_BY_INSTANCES] = "Mann-Whitney U, instances",
};

/* ---- summary ---- */

struct totals {
	int64_t span_ns, busy_ns, operator_ns, step_ns;
	int64_t commands, operators, calls, steps;
};

/* Busy time of a device. */
static int device_busy(const struct ts_work *work, const struct ts_work_device *device,
		       int64_t *busy_ns)
{
	TS_AUTO_FREE struct ts_span *spans = NULL;
	size_t count = 0, all = 0;

	for (uint32_t i = 0; i < device->stream_count; i++)
		all += work->streams[device->first_stream + i].command_count;
	spans = ts_alloc_array(all, sizeof(*spans));
	if (!spans)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < device->stream_count; i++) {
		const struct ts_work_stream *stream = &work->streams[device->first_stream + i];

		for (uint32_t k = 0; k < stream->command_count; k++) {
			const struct ts_work_command *command =
				&work->commands[stream->first_command + k];

			spans[count++] = (struct ts_span){ command->start, command->end };
		}
	}
	count = ts_spans_merge(spans, count);
	*busy_ns = ts_ns_add(*busy_ns, ts_spans_total(spans, count));
	return TS_OK;
}

/* Time of a thread inside operators. Slices are sorted by start. */
static void thread_operators(const struct ts_work *work, const struct ts_work_thread *thread,
			     struct totals *totals)
{
	int64_t until = INT64_MIN;

	for (uint32_t i = 0; i < thread->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[thread->first_slice + i];
		int64_t start = TS_MAX(slice->start, until);

		if (slice->class != TS_SLICE_OP)
			continue;
		totals->operators++;
		if (slice->end <= start)
			continue;
		totals->operator_ns =
			ts_ns_add(totals->operator_ns, ts_ns_between(start, slice->end));
		until = slice->end;
	}
}

static int sum_up(const struct ts_work *work, unsigned int wanted, struct totals *ret)
{
	struct totals totals = { .commands = work->command_count,
				 .calls = work->call_count,
				 .steps = work->step_count,
				 .step_ns = TS_ABSENT };
	double step_ns = 0;

	for (uint32_t i = 0; i < work->rank_count; i++) {
		int64_t span = ts_ns_between(work->ranks[i].rows_from, work->ranks[i].rows_to);

		totals.span_ns = TS_MAX(totals.span_ns, span);
	}
	for (uint32_t i = 0; i < work->device_count; i++) {
		if (device_busy(work, &work->devices[i], &totals.busy_ns))
			return TS_ENOMEM;
	}
	for (uint32_t i = 0; i < work->thread_count; i++)
		thread_operators(work, &work->threads[i], &totals);
	for (uint32_t i = 0; i < work->step_count; i++)
		step_ns += (double)ts_ns_between(work->steps[i].start, work->steps[i].end);
	if (work->step_count)
		totals.step_ns = ts_compare_ns(step_ns / work->step_count);
	/*
	 * Operators are not loaded if only the device is compared: their number is unknown, not 0.
	 */
	if (!(wanted & TS_COMPARE_CPU))
		totals.operator_ns = totals.operators = TS_ABSENT;
	*ret = totals;
	return TS_OK;
}

static const struct ts_result_column summary_columns[] = {
	{ "trace", "", TS_CELL_TEXT },
	{ "ranks", "ranks", TS_CELL_INTEGER },
	{ "steps", "steps", TS_CELL_INTEGER },
	{ "step_us", "a step", TS_CELL_TIME },
	{ "span_us", "span", TS_CELL_TIME },
	{ "device_busy_us", "device busy", TS_CELL_TIME },
	{ "commands", "commands", TS_CELL_INTEGER },
	{ "operator_us", "in operators", TS_CELL_TIME },
	{ "operators", "operators", TS_CELL_INTEGER },
	{ "calls", "calls", TS_CELL_INTEGER },
	{ "file", "file", TS_CELL_TEXT },
};

static void summary_row(struct ts_result_table *table, const char *name, int64_t ranks,
			const struct totals *totals)
{
	ts_cell_text(table, name);
	ts_cell_integer(table, ranks);
	ts_cell_integer(table, totals->steps);
	ts_cell_time(table, totals->step_ns);
	ts_cell_time(table, totals->span_ns);
	ts_cell_time(table, totals->busy_ns);
	ts_cell_integer(table, totals->commands);
	ts_cell_time(table, totals->operator_ns);
	ts_cell_integer(table, totals->operators);
	ts_cell_integer(table, totals->calls);
}

/* The name that the user gave: a trace may have been renamed, or made from another one. */
static void file_cell(struct ts_result_table *table, const struct ts_work *work, char *const *files)
{
	const char *first = files && work->rank_count ? files[work->ranks[0].trace] : NULL;
	uint32_t count = TS_MIN(work->rank_count, work->trace_count);

	if (first && count > 1)
		ts_cell_format(table, "%s and %" PRIu32 " more", first, count - 1);
	else
		ts_cell_text(table, first);
}

static int64_t change(int64_t a, int64_t b)
{
	return a == TS_ABSENT || b == TS_ABSENT ? TS_ABSENT : ts_ns_between(a, b);
}

static struct totals change_of(const struct totals *a, const struct totals *b)
{
	return (struct totals){
		.span_ns = change(a->span_ns, b->span_ns),
		.busy_ns = change(a->busy_ns, b->busy_ns),
		.operator_ns = change(a->operator_ns, b->operator_ns),
		.step_ns = change(a->step_ns, b->step_ns),
		.commands = change(a->commands, b->commands),
		.operators = change(a->operators, b->operators),
		.calls = change(a->calls, b->calls),
		.steps = change(a->steps, b->steps),
	};
}

static int show_summary(const struct ts_comparison *compare, struct ts_result *result)
{
	const struct ts_work *a = compare->names.sides[0].work;
	const struct ts_work *b = compare->names.sides[1].work;
	unsigned int wanted = compare->names.wanted;
	struct ts_result_table *table =
		ts_result_table(result, "summary", summary_columns, TS_ARRAY_SIZE(summary_columns));
	struct totals totals[2], difference;

	if (sum_up(a, wanted, &totals[0]) || sum_up(b, wanted, &totals[1]))
		return TS_ENOMEM;
	difference = change_of(&totals[0], &totals[1]);
	summary_row(table, "A", a->rank_count, &totals[0]);
	file_cell(table, a, compare->options->files[0]);
	summary_row(table, "B", b->rank_count, &totals[1]);
	file_cell(table, b, compare->options->files[1]);
	summary_row(table, "change", (int64_t)b->rank_count - a->rank_count, &difference);
	ts_cell_none(table);
	return TS_OK;
}

/* ---- tables of names ---- */

static const struct ts_result_column count_columns[] = {
	{ "device", "where", TS_CELL_TEXT },          { "names", "names", TS_CELL_INTEGER },
	{ "added", "added", TS_CELL_INTEGER },        { "gone", "gone", TS_CELL_INTEGER },
	{ "slower", "slower", TS_CELL_INTEGER },      { "faster", "faster", TS_CELL_INTEGER },
	{ "more", "more", TS_CELL_INTEGER },          { "fewer", "fewer", TS_CELL_INTEGER },
	{ "unclear", "unclear", TS_CELL_INTEGER },    { "unchanged", "unchanged", TS_CELL_INTEGER },
	{ "count_up", "count +", TS_CELL_INTEGER },   { "count_down", "count -", TS_CELL_INTEGER },
	{ "count_same", "count =", TS_CELL_INTEGER },
};

static void count_row(const struct ts_comparison *compare, bool gpu, struct ts_result_table *table)
{
	static const enum ts_verdict order[] = { TS_VERDICT_ADDED,   TS_VERDICT_GONE,
						 TS_VERDICT_SLOWER,  TS_VERDICT_FASTER,
						 TS_VERDICT_MORE,    TS_VERDICT_FEWER,
						 TS_VERDICT_UNCLEAR, TS_VERDICT_UNCHANGED };
	int64_t verdicts[TS_VERDICT_COUNT] = { 0 }, signs[3] = { 0 }, names = 0;

	for (uint32_t i = 0; i < compare->names.key_count; i++) {
		const struct ts_compare_entry *entries = &compare->entries[i];

		if (ts_compare_is_gpu(ts_compare_key_kind(&compare->names, entries->key)) != gpu)
			continue;
		names++;
		verdicts[entries->verdict]++;
		signs[entries->count_change + 1]++;
	}
	ts_cell_text(table, gpu ? "gpu" : "cpu");
	ts_cell_integer(table, names);
	for (size_t i = 0; i < TS_ARRAY_SIZE(order); i++)
		ts_cell_integer(table, verdicts[order[i]]);
	ts_cell_integer(table, signs[2]);
	ts_cell_integer(table, signs[0]);
	ts_cell_integer(table, signs[1]);
}

static void show_counts(const struct ts_comparison *compare, struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "counts", count_columns, TS_ARRAY_SIZE(count_columns));

	if (compare->names.wanted & TS_COMPARE_GPU)
		count_row(compare, true, table);
	if (compare->names.wanted & TS_COMPARE_CPU)
		count_row(compare, false, table);
}

static const struct ts_result_column change_columns[] = {
	{ "verdict", "verdict", TS_CELL_TEXT },
	{ "device", NULL, TS_CELL_TEXT },
	{ "kind", "kind", TS_CELL_TEXT },
	{ "count_a", "count A", TS_CELL_INTEGER },
	{ "count_b", "count B", TS_CELL_INTEGER },
	{ "total_a_us", "total A", TS_CELL_TIME },
	{ "total_b_us", "total B", TS_CELL_TIME },
	{ "mean_a_us", "mean A", TS_CELL_TIME },
	{ "mean_b_us", "mean B", TS_CELL_TIME },
	{ "change", "change", TS_CELL_AMOUNT },
	{ "change_us", NULL, TS_CELL_TIME },
	{ "change_pct", "change %", TS_CELL_PERCENT },
	{ "count_change", NULL, TS_CELL_TEXT },
	{ "test", NULL, TS_CELL_TEXT },
	{ "samples_a", NULL, TS_CELL_INTEGER },
	{ "samples_b", NULL, TS_CELL_INTEGER },
	{ "p", NULL, TS_CELL_REAL },
	{ "significance", "significance", TS_CELL_TEXT },
	{ "name", "name", TS_CELL_TEXT },
};

static void significance_cell(const struct ts_compare_entry *entries, struct ts_result_table *table)
{
	const char *of = entries->test == TS_COMPARE_BY_STEPS ? "steps" : "instances";

	if (entries->test == TS_COMPARE_UNTESTED)
		ts_cell_none(table);
	else if (entries->test == TS_COMPARE_ONE_SAMPLE)
		ts_cell_text(table, test_names[TS_COMPARE_ONE_SAMPLE]);
	else if (entries->p < 0.0001)
		ts_cell_format(table, "p < 0.0001 (%s)", of);
	else
		ts_cell_format(table, "p = %.4f (%s)", entries->p, of);
}

/* Per step or rank as all changes are, if the sides have different numbers of them. */
static void append_instances(struct ts_text *out, const struct ts_comparison *compare, double rate,
			     uint64_t count)
{
	char text[TS_FORMAT_BYTES];

	if (compare->per_unit && rate < 1000)
		ts_text_printf(out, "%.4g", rate);
	else
		ts_text_append_str(
			out, ts_format_count(text, sizeof(text),
					     compare->per_unit ? llround(rate) : (int64_t)count));
}

/* What the verdict is about: the number of instances, or their time. */
static void change_cells(const struct ts_comparison *compare,
			 const struct ts_compare_entry *entries, struct ts_result_table *table)
{
	const struct ts_compare_side *sides = compare->names.sides;
	const double *rates = entries->rates;
	TS_SCOPED(ts_text) text = { 0 };
	char time[TS_FORMAT_BYTES];
	bool by_count = entries->verdict == TS_VERDICT_MORE || entries->verdict == TS_VERDICT_FEWER;

	if (by_count) {
		append_instances(&text, compare, rates[0], sides[0].sums[entries->key].count);
		ts_text_append_str(&text, " -> ");
		append_instances(&text, compare, rates[1], sides[1].sums[entries->key].count);
	} else {
		ts_text_append_str(&text,
				   ts_format_duration_ns(time, sizeof(time), entries->change_ns));
	}
	ts_cell_amount(table, ts_text_cstr(&text));
	ts_cell_time(table, entries->change_ns);
	ts_cell_percent(table,
			by_count ? (rates[1] - rates[0]) / rates[0] * 100 : entries->time_percent);
}

static void change_row(const struct ts_comparison *compare, const struct ts_compare_entry *entries,
		       struct ts_result_table *table)
{
	enum ts_compare_kind kind = ts_compare_key_kind(&compare->names, entries->key);
	const struct ts_compare_sum *a = &compare->names.sides[0].sums[entries->key];
	const struct ts_compare_sum *b = &compare->names.sides[1].sums[entries->key];
	bool tested = entries->test == TS_COMPARE_BY_STEPS ||
		      entries->test == TS_COMPARE_BY_INSTANCES;

	ts_cell_text(table, ts_verdict_name(entries->verdict));
	ts_cell_text(table, ts_compare_is_gpu(kind) ? "gpu" : "cpu");
	ts_cell_text(table, kind_names[kind]);
	ts_cell_integer(table, (int64_t)a->count);
	ts_cell_integer(table, (int64_t)b->count);
	ts_cell_time(table, a->total_ns);
	ts_cell_time(table, b->total_ns);
	ts_cell_time(table, ts_compare_ns(ts_compare_mean(a)));
	ts_cell_time(table, ts_compare_ns(ts_compare_mean(b)));
	change_cells(compare, entries, table);
	ts_cell_text(table, entries->count_change > 0   ? "+"
			    : entries->count_change < 0 ? "-"
							: "=");
	ts_cell_text(table, test_names[entries->test]);
	ts_cell_integer(table, tested ? (int64_t)entries->samples[0] : TS_ABSENT);
	ts_cell_integer(table, tested ? (int64_t)entries->samples[1] : TS_ABSENT);
	ts_cell_real(table, entries->p);
	significance_cell(entries, table);
	ts_cell_text(table, ts_compare_key_name(&compare->names, entries->key));
}

static uint64_t size_of(int64_t change)
{
	return change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
}

/* Steps first, then the largest change, then by key: first appearance in A, then in B. */
static int by_change(const void *left, const void *right)
{
	const struct ts_compare_entry *a = left, *b = right;
	uint64_t a_size = size_of(a->change_ns), b_size = size_of(b->change_ns);

	if (a->is_step != b->is_step)
		return a->is_step ? -1 : 1;
	if (a_size != b_size)
		return a_size < b_size ? 1 : -1;
	return (a->key > b->key) - (a->key < b->key);
}

static void show_changes(struct ts_comparison *compare, struct ts_result *result)
{
	struct ts_result_table *table =
		ts_result_table(result, "changes", change_columns, TS_ARRAY_SIZE(change_columns));

	table->details = "mean_a_us+mean_b_us significance count_a+count_b total_a_us+total_b_us "
			 "kind";
	qsort(compare->entries, compare->names.key_count, sizeof(*compare->entries), by_change);
	for (uint32_t i = 0; i < compare->names.key_count; i++)
		change_row(compare, &compare->entries[i], table);
	table->shown_rows = compare->options->top;
}

static bool have_common_name(const struct ts_comparison *compare)
{
	for (uint32_t i = 0; i < compare->names.key_count; i++)
		if (compare->entries[i].verdict != TS_VERDICT_ADDED &&
		    compare->entries[i].verdict != TS_VERDICT_GONE)
			return true;
	return false;
}

static void add_notes(const struct ts_comparison *compare, struct ts_result *result)
{
	const struct ts_work *a = compare->names.sides[0].work;
	const struct ts_work *b = compare->names.sides[1].work;
	const char *unit = compare->names.by_step ? "step" : "rank";
	char text[TS_FORMAT_BYTES];

	if (!have_common_name(compare))
		ts_result_note(result, "no name is in both traces: are they of the same program?");
	if (compare->per_unit)
		ts_result_note(result, "A has %s and B %s: changes and percentages are per %s",
			       TS_COUNTED(compare->units[0], unit),
			       ts_format_count(text, sizeof(text), (int64_t)compare->units[1]),
			       unit);
	else if (!a->step_count != !b->step_count)
		ts_result_note(result, "%s has no steps: the traces are compared as a whole",
			       a->step_count ? "B" : "A");
	for (uint32_t i = 0; i < compare->names.key_count; i++) {
		if (compare->entries[i].test < TS_COMPARE_BY_STEPS)
			continue;
		ts_result_note(
			result,
			"p: Welch's t test over steps or Mann-Whitney U test over instances, Holm-corrected over all names but the step");
		break;
	}
}

static void append_left_out(struct ts_text *out, int64_t step, const char *of)
{
	if (out->length)
		ts_text_append_str(out, " and ");
	if (step == TS_ABSENT)
		ts_text_append_str(out, "the last step");
	else
		ts_text_printf(out, "step %" PRId64, step);
	ts_text_append_str(out, of);
}

static void note_left_out(const struct ts_comparison *compare, struct ts_result *result)
{
	TS_SCOPED(ts_text) text = { 0 };
	int64_t steps[2];
	bool a = ts_busy_leaves_out_step(compare->names.sides[0].work, &steps[0]);
	bool b = ts_busy_leaves_out_step(compare->names.sides[1].work, &steps[1]);
	bool same = a && b && steps[0] == steps[1];

	if (a)
		append_left_out(&text, steps[0], same ? "" : " of A");
	if (b && !same)
		append_left_out(&text, steps[1], " of B");
	if (a || b)
		ts_result_note(result, "%s left out: %s may be cut off (--all includes %s)",
			       ts_text_cstr(&text), a && b && !same ? "they" : "it",
			       a && b && !same ? "them" : "it");
}

static void note_identical(const struct ts_comparison *compare, struct ts_result *result)
{
	const char *what = "traces are";
	int64_t step;
	bool left_out = ts_busy_leaves_out_step(compare->names.sides[0].work, &step) ||
			ts_busy_leaves_out_step(compare->names.sides[1].work, &step);
	uint32_t names = compare->names.key_count;
	uint64_t instances = compare->names.sides[0].first[names];

	if (!(compare->names.wanted & TS_COMPARE_CPU))
		what = "device work of the traces is";
	else if (!(compare->names.wanted & TS_COMPARE_GPU))
		what = "host work of the traces is";
	ts_result_note(result, "the %s identical%s: %s, %s, the same durations", what,
		       left_out ? " before the last step" : "", TS_COUNTED(names, "name"),
		       TS_COUNTED(instances, "instance"));
}

int ts_compare_show(struct ts_comparison *compare, enum ts_compare_outcome outcome,
		    struct ts_result *result)
{
	if (outcome == TS_COMPARE_IDENTICAL)
		note_identical(compare, result);
	note_left_out(compare, result);
	if (outcome == TS_COMPARE_IDENTICAL && compare->options->brief)
		return TS_OK;
	if (show_summary(compare, result))
		return TS_ENOMEM;
	show_counts(compare, result);
	show_changes(compare, result);
	add_notes(compare, result);
	return TS_OK;
}
