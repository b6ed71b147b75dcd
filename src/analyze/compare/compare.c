/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two works name by name: what was added, what is gone, what takes more or less time, and
 * whether the change is significant. Only repeated steps or instances are tested.
 */
#include "analyze/compare/compare.h"

#include <math.h>

#include "analyze/compare/compare_internal.h"
#include "analyze/significance.h"
#include "analyze/statistics.h"

static const char *const verdict_names[TS_VERDICT_COUNT] = {
	[TS_VERDICT_UNCHANGED] = "unchanged", [TS_VERDICT_UNCLEAR] = "unclear",
	[TS_VERDICT_ADDED] = "added",         [TS_VERDICT_GONE] = "gone",
	[TS_VERDICT_SLOWER] = "slower",       [TS_VERDICT_FASTER] = "faster",
	[TS_VERDICT_MORE] = "more",           [TS_VERDICT_FEWER] = "fewer",
};

const char *ts_verdict_name(enum ts_verdict verdict)
{
	return verdict_names[verdict];
}

/* ---- tests ---- */

static struct ts_moments moments_of(const double *values, uint32_t count)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += values[i];
	for (uint32_t i = 0; i < count; i++)
		squares += (values[i] - sum / count) * (values[i] - sum / count);
	return (struct ts_moments){ .count = count,
				    .mean = sum / count,
				    .variance = count > 1 ? squares / (count - 1) : 0 };
}

/* A zero for each step of a side, in compare->values; NULL: no memory. */
static double *zero_steps(struct ts_comparison *compare, int which)
{
	uint32_t count = compare->names.sides[which].slot_count;

	if (ts_grow_array((void **)&compare->values[which], &compare->value_capacity[which], count,
			  sizeof(**compare->values)))
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		compare->values[which][i] = 0;
	return compare->values[which];
}

/*
 * Moments of a name's total per step (mean over the ranks that have the step), and the number of
 * its instances in steps.
 */
static int step_moments(struct ts_comparison *compare, int which, uint32_t key,
			struct ts_moments *ret_moments, size_t *ret_inside)
{
	const struct ts_compare_side *side = &compare->names.sides[which];
	double *totals = zero_steps(compare, which);

	if (!totals)
		return TS_ENOMEM;
	*ret_inside = 0;
	for (uint64_t i = side->first[key]; i < side->first[key + 1]; i++) {
		const struct ts_compare_sample *sample = &side->samples[i];

		if (sample->slot == TS_COMPARE_NO_SLOT || sample->ns == TS_ABSENT)
			continue;
		++*ret_inside;
		totals[sample->slot] += (double)sample->ns / side->slot_ranks[sample->slot];
	}
	*ret_moments = moments_of(totals, side->slot_count);
	return TS_OK;
}

/* *ret_done: both sides have enough steps, and the name occurs in them. */
static int test_steps(struct ts_comparison *compare, struct ts_compare_entry *entry, bool *ret_done)
{
	struct ts_moments moments[2];
	size_t inside[2];

	*ret_done = false;
	for (int i = 0; i < 2; i++) {
		if (compare->names.sides[i].slot_count < TS_COMPARE_STEPS)
			return TS_OK;
	}
	for (int i = 0; i < 2; i++) {
		if (step_moments(compare, i, entry->key, &moments[i], &inside[i]))
			return TS_ENOMEM;
		entry->samples[i] = moments[i].count;
		entry->tested[i] = moments[i].mean;
	}
	if (!inside[0] || !inside[1])
		return TS_OK;
	entry->test = TS_COMPARE_BY_STEPS;
	entry->p = ts_welch_p(&moments[0], &moments[1]);
	*ret_done = true;
	return TS_OK;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Durations of a name, sorted. */
static int sort_instances(struct ts_comparison *compare, int which, uint32_t key)
{
	const struct ts_compare_side *side = &compare->names.sides[which];
	size_t count = 0;

	if (ts_grow_array((void **)&compare->values[which], &compare->value_capacity[which],
			  side->sums[key].timed, sizeof(**compare->values)))
		return TS_ENOMEM;
	for (uint64_t i = side->first[key]; i < side->first[key + 1]; i++) {
		if (side->samples[i].ns != TS_ABSENT)
			compare->values[which][count++] = (double)side->samples[i].ns;
	}
	qsort(compare->values[which], count, sizeof(double), by_value);
	return TS_OK;
}

static int test_instances(struct ts_comparison *compare, struct ts_compare_entry *entry)
{
	const struct ts_compare_sum *a = &compare->names.sides[0].sums[entry->key];
	const struct ts_compare_sum *b = &compare->names.sides[1].sums[entry->key];

	entry->samples[0] = a->timed;
	entry->samples[1] = b->timed;
	entry->tested[0] = ts_compare_mean(a);
	entry->tested[1] = ts_compare_mean(b);
	entry->test = TS_COMPARE_ONE_SAMPLE;
	if (a->timed < TS_COMPARE_INSTANCES || b->timed < TS_COMPARE_INSTANCES)
		return TS_OK;
	if (sort_instances(compare, 0, entry->key) || sort_instances(compare, 1, entry->key))
		return TS_ENOMEM;
	entry->test = TS_COMPARE_BY_INSTANCES;
	entry->p = ts_mann_whitney_p(compare->values[0], a->timed, compare->values[1], b->timed);
	return TS_OK;
}

/* ---- amounts ---- */

static int sign(double value)
{
	return (value > 0) - (value < 0);
}

static double percent(double from, double to)
{
	return from > 0 ? (to - from) / from * 100 : NAN;
}

/*
 * Change of a name's total, or of its total per unit if the sides have different numbers of units.
 */
static void evaluate_amounts(const struct ts_comparison *compare, struct ts_compare_entry *entry)
{
	const struct ts_compare_sum *a = &compare->names.sides[0].sums[entry->key];
	const struct ts_compare_sum *b = &compare->names.sides[1].sums[entry->key];
	double from = (double)a->total_ns / (double)compare->units[0];
	double to = (double)b->total_ns / (double)compare->units[1];

	entry->unit_change_ns = to - from;
	entry->change_ns = compare->per_unit ? ts_compare_ns(to - from)
					     : ts_ns_between(a->total_ns, b->total_ns);
	entry->time_percent = percent(from, to);
	entry->count_change = sign((double)b->count * (double)compare->units[0] -
				   (double)a->count * (double)compare->units[1]);
}

/*
 * Chooses what amounts are divided by: steps, or ranks without steps, if the sides have different
 * numbers of them.
 */
static void choose_units(struct ts_comparison *compare)
{
	const struct ts_work *a = compare->names.sides[0].work;
	const struct ts_work *b = compare->names.sides[1].work;
	bool steps = compare->names.by_step;

	compare->units[0] = steps ? a->step_count : a->rank_count;
	compare->units[1] = steps ? b->step_count : b->rank_count;
	for (int i = 0; i < 2; i++)
		compare->units[i] = TS_MAX(compare->units[i], 1);
	compare->per_unit = compare->units[0] != compare->units[1];
}

/* ---- verdicts ---- */

static int test_name(struct ts_comparison *compare, struct ts_compare_entry *entry)
{
	bool done;

	if (!compare->names.sides[0].sums[entry->key].count ||
	    !compare->names.sides[1].sums[entry->key].count)
		return TS_OK;
	if (test_steps(compare, entry, &done))
		return TS_ENOMEM;
	return done ? TS_OK : test_instances(compare, entry);
}

static int test_names_of(struct ts_comparison *compare)
{
	for (uint32_t key = 0; key < compare->names.key_count; key++) {
		struct ts_compare_entry *entry = &compare->entries[key];

		*entry = (struct ts_compare_entry){
			.key = key,
			.is_step = ts_compare_key_kind(&compare->names, key) == TS_COMPARE_STEP,
			.p = NAN,
		};
		evaluate_amounts(compare, entry);
		if (test_name(compare, entry))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/*
 * The time of a step is the one question that every comparison asks: to correct it for the number
 * of names inside the step would hide the answer.
 */
static int correct(struct ts_comparison *compare)
{
	uint32_t count = compare->names.key_count;
	TS_AUTO_FREE double *p = ts_alloc_array(count, sizeof(*p));

	if (!p)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		p[i] = compare->entries[i].is_step ? NAN : compare->entries[i].p;
	if (ts_holm(p, count))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (!compare->entries[i].is_step)
			compare->entries[i].p = p[i];
	return TS_OK;
}

/* ---- counts ---- */

/* Means of counts over ranks and steps that differ by less than this factor are equal. */
#define ROUNDING 1e-9

/* Moments of the number of a name's instances in a step (mean over the ranks that have it). */
static int count_in_steps(struct ts_comparison *compare, int which, uint32_t key,
			  struct ts_moments *ret)
{
	const struct ts_compare_side *side = &compare->names.sides[which];
	double *counts = zero_steps(compare, which);

	if (!counts)
		return TS_ENOMEM;
	for (uint64_t i = side->first[key]; i < side->first[key + 1]; i++) {
		uint32_t slot = side->samples[i].slot;

		if (slot != TS_COMPARE_NO_SLOT)
			counts[slot] += 1.0 / side->slot_ranks[slot];
	}
	*ret = moments_of(counts, side->slot_count);
	return TS_OK;
}

/*
 * Measures how often a name occurs in a step, or rank, and whether a difference may be chance:
 * numbers that vary from step to step (polling) must change by more than they vary. By steps if
 * both sides have enough and the name occurs in them, else over everything.
 */
static int measure_rates(struct ts_comparison *compare, struct ts_compare_entry *entry,
			 bool *ret_by_chance)
{
	const struct ts_compare_side *sides = compare->names.sides;
	struct ts_moments moments[2];

	*ret_by_chance = false;
	for (int i = 0; i < 2; i++)
		entry->rates[i] = (double)sides[i].sums[entry->key].count /
				  (double)compare->units[i];
	if (sides[0].slot_count < TS_COMPARE_STEPS || sides[1].slot_count < TS_COMPARE_STEPS)
		return TS_OK;
	for (int i = 0; i < 2; i++)
		if (count_in_steps(compare, i, entry->key, &moments[i]))
			return TS_ENOMEM;
	if (moments[0].mean <= 0 || moments[1].mean <= 0)
		return TS_OK;
	for (int i = 0; i < 2; i++)
		entry->rates[i] = moments[i].mean;
	/* As many tests as names: Bonferroni's correction. */
	*ret_by_chance = ts_welch_p(&moments[0], &moments[1]) * compare->names.key_count >=
			 TS_COMPARE_LEVEL;
	return TS_OK;
}

/* The sign of a change of more than `least` percent, else 0. A change from 0 always counts. */
static int direction(double from, double to, double least)
{
	double change = percent(from, to);

	if (isnan(from) || isnan(to) || fabs(change) <= least)
		return 0;
	return sign(to - from);
}

/* The same for the time of a name, which must also change by enough to matter. */
static int time_direction(const struct ts_comparison *compare, const struct ts_compare_entry *entry,
			  double least)
{
	if (fabs(entry->unit_change_ns) <= (double)compare->options->least_ns)
		return 0;
	return direction(entry->tested[0], entry->tested[1], least);
}

/* The same for the number of instances. */
static int count_direction(const struct ts_compare_entry *entry, double least)
{
	const double *rates = entry->rates;

	if (fabs(rates[1] - rates[0]) <= ROUNDING * rates[0])
		return 0;
	return direction(rates[0], rates[1], least);
}

static bool is_significant(const struct ts_compare_entry *entry)
{
	return entry->test == TS_COMPARE_ONE_SAMPLE || entry->p < TS_COMPARE_LEVEL;
}

/* Did the durations of the instances change by a larger factor than their number? */
static bool is_by_duration(const struct ts_comparison *compare,
			   const struct ts_compare_entry *entry)
{
	double from = ts_compare_mean(&compare->names.sides[0].sums[entry->key]);
	double to = ts_compare_mean(&compare->names.sides[1].sums[entry->key]);

	return fabs(log(to / from)) > fabs(log(entry->rates[1] / entry->rates[0]));
}

/*
 * The verdict on a name that is on both sides. A time per step that changed is that of more or
 * fewer instances, or of slower or faster ones: whichever changed by the larger factor.
 */
static enum ts_verdict evaluate_both(const struct ts_comparison *compare,
				     const struct ts_compare_entry *entry, bool count_by_chance)
{
	double least = compare->options->threshold, unclear = TS_MAX(least, TS_COMPARE_UNCLEAR);
	int times = count_direction(entry, least);
	int way = time_direction(compare, entry, least);
	bool changed = way && is_significant(entry);

	/* The mean of few instances means nothing if their number has changed. */
	bool by_count = times &&
			(entry->test == TS_COMPARE_ONE_SAMPLE || !is_by_duration(compare, entry));

	if (changed && !by_count)
		return way > 0 ? TS_VERDICT_SLOWER : TS_VERDICT_FASTER;
	if (times && (!count_by_chance || (changed && entry->test == TS_COMPARE_BY_STEPS)))
		return times > 0 ? TS_VERDICT_MORE : TS_VERDICT_FEWER;
	if (time_direction(compare, entry, unclear) || count_direction(entry, unclear))
		return TS_VERDICT_UNCLEAR;
	return TS_VERDICT_UNCHANGED;
}

static int evaluate(struct ts_comparison *compare, struct ts_compare_entry *entry)
{
	bool count_by_chance;

	if (measure_rates(compare, entry, &count_by_chance))
		return TS_ENOMEM;
	if (compare->names.sides[0].sums[entry->key].count == 0)
		entry->verdict = TS_VERDICT_ADDED;
	else if (compare->names.sides[1].sums[entry->key].count == 0)
		entry->verdict = TS_VERDICT_GONE;
	else
		entry->verdict = evaluate_both(compare, entry, count_by_chance);
	return TS_OK;
}

static int evaluate_all(struct ts_comparison *compare, bool *ret_differs)
{
	*ret_differs = false;
	for (uint32_t i = 0; i < compare->names.key_count; i++) {
		struct ts_compare_entry *entry = &compare->entries[i];

		if (evaluate(compare, entry))
			return TS_ENOMEM;
		*ret_differs |= entry->verdict != TS_VERDICT_UNCHANGED &&
				entry->verdict != TS_VERDICT_UNCLEAR;
	}
	return TS_OK;
}

/* ---- comparison ---- */

/* The most steps that a rank has, or 0 if no rank leaves out its last one. */
static uint32_t steps_left(const struct ts_work *work)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < work->rank_count; i++)
		if (ts_work_leaves_out_last_step(work, i))
			most = TS_MAX(most, work->ranks[i].step_count);
	return most;
}

bool ts_compare_may_leave_out(const struct ts_work *a, const struct ts_work *b)
{
	return steps_left(a) > 1 && steps_left(b) > 1;
}

/* Samples of a key are in the order of the trace. Short names hide differences. */
static bool are_identical(const struct ts_compare_names *names)
{
	const struct ts_compare_side *a = &names->sides[0], *b = &names->sides[1];

	if (a->work->options.short_names || a->work->rank_count != b->work->rank_count ||
	    a->work->step_count != b->work->step_count)
		return false;
	for (uint32_t key = 0; key < names->key_count; key++)
		if (a->sums[key].count != b->sums[key].count)
			return false;
	for (uint64_t i = 0; i < a->first[names->key_count]; i++)
		if (a->samples[i].ns != b->samples[i].ns ||
		    a->samples[i].slot != b->samples[i].slot)
			return false;
	return true;
}

static enum ts_compare_outcome outcome_of(const struct ts_comparison *compare, bool differs)
{
	if (compare->names.key_count == 0)
		return TS_COMPARE_NOTHING;
	if (differs)
		return TS_COMPARE_DIFFERENT;
	return are_identical(&compare->names) ? TS_COMPARE_IDENTICAL : TS_COMPARE_ALIKE;
}

static int compare_names(struct ts_comparison *compare, struct ts_result *result,
			 enum ts_compare_outcome *ret_outcome)
{
	enum ts_compare_outcome outcome;
	bool differs;

	choose_units(compare);
	compare->entries = ts_alloc_array(compare->names.key_count, sizeof(*compare->entries));
	if (!compare->entries || test_names_of(compare) || correct(compare) ||
	    evaluate_all(compare, &differs))
		return TS_ENOMEM;
	outcome = outcome_of(compare, differs);
	if (ts_compare_show(compare, outcome, result))
		return TS_ENOMEM;
	*ret_outcome = outcome;
	return TS_OK;
}

int ts_compare(const struct ts_work *a, const struct ts_work *b,
	       const struct ts_compare_options *options, struct ts_result *result,
	       enum ts_compare_outcome *ret_outcome, struct ts_error *err)
{
	struct ts_comparison compare = { .options = options };
	int rc = ts_compare_names_init(&compare.names, a, b, options);

	if (!rc)
		rc = compare_names(&compare, result, ret_outcome);
	free(compare.entries);
	free(compare.values[0]);
	free(compare.values[1]);
	ts_compare_names_release(&compare.names);
	return rc ? ts_error_set(err, rc, "no memory") : ts_result_status(result, err);
}
