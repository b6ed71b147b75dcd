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

/*
 * Moments of a name's total per step (mean over the ranks that have the step), and the number of
 * its instances in steps.
 */
static int step_moments(struct ts_comparison *compare, int which, uint32_t key,
			struct ts_moments *ret_moments, size_t *ret_inside)
{
	const struct ts_compare_side *side = &compare->names.sides[which];
	double *totals, sum = 0, squares = 0, count = side->slot_count;

	if (ts_grow_array((void **)&compare->values[which], &compare->value_capacity[which],
			  side->slot_count, sizeof(**compare->values)))
		return TS_ENOMEM;
	totals = compare->values[which];
	for (uint32_t i = 0; i < side->slot_count; i++)
		totals[i] = 0;
	*ret_inside = 0;
	for (uint64_t i = side->first[key]; i < side->first[key + 1]; i++) {
		const struct ts_compare_sample *sample = &side->samples[i];

		if (sample->slot == TS_COMPARE_NO_SLOT || sample->ns == TS_ABSENT)
			continue;
		++*ret_inside;
		totals[sample->slot] += (double)sample->ns / side->slot_ranks[sample->slot];
	}
	for (uint32_t i = 0; i < side->slot_count; i++)
		sum += totals[i];
	for (uint32_t i = 0; i < side->slot_count; i++)
		squares += (totals[i] - sum / count) * (totals[i] - sum / count);
	*ret_moments = (struct ts_moments){ .count = side->slot_count,
					    .mean = sum / count,
					    .variance = squares / (count - 1) };
	return TS_OK;
}

/* *ret_done: both sides have enough steps, and the name occurs in them. */
static int test_steps(struct ts_comparison *compare, struct ts_compare_entry *entries,
		      bool *ret_done)
{
	struct ts_moments moments[2];
	size_t inside[2];

	*ret_done = false;
	for (int i = 0; i < 2; i++) {
		if (compare->names.sides[i].slot_count < TS_COMPARE_STEPS)
			return TS_OK;
	}
	for (int i = 0; i < 2; i++) {
		if (step_moments(compare, i, entries->key, &moments[i], &inside[i]))
			return TS_ENOMEM;
		entries->samples[i] = moments[i].count;
		entries->tested[i] = moments[i].mean;
	}
	if (!inside[0] || !inside[1])
		return TS_OK;
	entries->test = TS_COMPARE_BY_STEPS;
	entries->p = ts_welch_p(&moments[0], &moments[1]);
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

static int test_instances(struct ts_comparison *compare, struct ts_compare_entry *entries)
{
	const struct ts_compare_sum *a = &compare->names.sides[0].sums[entries->key];
	const struct ts_compare_sum *b = &compare->names.sides[1].sums[entries->key];

	entries->samples[0] = a->timed;
	entries->samples[1] = b->timed;
	entries->tested[0] = ts_compare_mean(a);
	entries->tested[1] = ts_compare_mean(b);
	entries->test = TS_COMPARE_ONE_SAMPLE;
	if (a->timed < TS_COMPARE_INSTANCES || b->timed < TS_COMPARE_INSTANCES)
		return TS_OK;
	if (sort_instances(compare, 0, entries->key) || sort_instances(compare, 1, entries->key))
		return TS_ENOMEM;
	entries->test = TS_COMPARE_BY_INSTANCES;
	entries->p = ts_mann_whitney_p(compare->values[0], a->timed, compare->values[1], b->timed);
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
static void evaluate_amounts(const struct ts_comparison *compare, struct ts_compare_entry *entries)
{
	const struct ts_compare_sum *a = &compare->names.sides[0].sums[entries->key];
	const struct ts_compare_sum *b = &compare->names.sides[1].sums[entries->key];
	double from = (double)a->total_ns / (double)compare->units[0];
	double to = (double)b->total_ns / (double)compare->units[1];

	entries->change_ns = compare->per_unit ? ts_compare_ns(to - from)
					       : ts_ns_between(a->total_ns, b->total_ns);
	entries->change_percent = percent(from, to);
	entries->count_change = sign((double)b->count * (double)compare->units[0] -
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
	bool steps = a->step_count && b->step_count;

	compare->units[0] = steps ? a->step_count : a->rank_count;
	compare->units[1] = steps ? b->step_count : b->rank_count;
	for (int i = 0; i < 2; i++)
		compare->units[i] = TS_MAX(compare->units[i], 1);
	compare->per_unit = compare->units[0] != compare->units[1];
}

/* ---- verdicts ---- */

static int test_name(struct ts_comparison *compare, struct ts_compare_entry *entries)
{
	bool done;

	if (!compare->names.sides[0].sums[entries->key].count ||
	    !compare->names.sides[1].sums[entries->key].count)
		return TS_OK;
	if (test_steps(compare, entries, &done))
		return TS_ENOMEM;
	return done ? TS_OK : test_instances(compare, entries);
}

static int test_names_of(struct ts_comparison *compare)
{
	for (uint32_t key = 0; key < compare->names.key_count; key++) {
		struct ts_compare_entry *entries = &compare->entries[key];

		*entries = (struct ts_compare_entry){ .key = key, .p = NAN };
		evaluate_amounts(compare, entries);
		if (test_name(compare, entries))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int correct(struct ts_comparison *compare)
{
	uint32_t count = compare->names.key_count;
	TS_AUTO_FREE double *p = ts_alloc_array(count, sizeof(*p));

	if (!p)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		p[i] = compare->entries[i].p;
	if (ts_holm(p, count))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		compare->entries[i].p = p[i];
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

static bool is_significant(const struct ts_compare_entry *entries)
{
	return entries->test == TS_COMPARE_ONE_SAMPLE || entries->p < TS_COMPARE_LEVEL;
}

/*
 * Verdict on a name that is on both sides. `times`: the sign of the change in the number of
 * instances.
 */
static enum ts_verdict evaluate_both(const struct ts_comparison *compare,
				     const struct ts_compare_entry *entries, int times)
{
	const double *tested = entries->tested;
	double least = compare->options->threshold;
	int way = direction(tested[0], tested[1], least);

	/* The mean of few instances means nothing if their number has changed. */
	if (entries->test == TS_COMPARE_ONE_SAMPLE && times)
		way = 0;
	if (way && is_significant(entries))
		return way > 0 ? TS_VERDICT_SLOWER : TS_VERDICT_FASTER;
	if (entries->test != TS_COMPARE_BY_STEPS && times)
		return times > 0 ? TS_VERDICT_MORE : TS_VERDICT_FEWER;
	if (direction(tested[0], tested[1], TS_MAX(least, TS_COMPARE_UNCLEAR)))
		return TS_VERDICT_UNCLEAR;
	return TS_VERDICT_UNCHANGED;
}

static enum ts_verdict evaluate(const struct ts_comparison *compare,
				const struct ts_compare_entry *entries)
{
	double a = (double)compare->names.sides[0].sums[entries->key].count;
	double b = (double)compare->names.sides[1].sums[entries->key].count;

	if (a == 0)
		return TS_VERDICT_ADDED;
	if (b == 0)
		return TS_VERDICT_GONE;
	return evaluate_both(compare, entries,
			     direction(a / (double)compare->units[0], b / (double)compare->units[1],
				       compare->options->threshold));
}

static bool evaluate_all(struct ts_comparison *compare)
{
	bool differs = false;

	for (uint32_t i = 0; i < compare->names.key_count; i++) {
		enum ts_verdict verdict = evaluate(compare, &compare->entries[i]);

		compare->entries[i].verdict = verdict;
		differs |= verdict != TS_VERDICT_UNCHANGED && verdict != TS_VERDICT_UNCLEAR;
	}
	return differs;
}

/* ---- comparison ---- */

static int compare_names(struct ts_comparison *compare, struct ts_result *result, bool *ret_differs)
{
	bool differs;

	choose_units(compare);
	compare->entries = ts_alloc_array(compare->names.key_count, sizeof(*compare->entries));
	if (!compare->entries || test_names_of(compare) || correct(compare))
		return TS_ENOMEM;
	differs = evaluate_all(compare);
	if (ts_compare_show(compare, result))
		return TS_ENOMEM;
	*ret_differs = differs;
	return TS_OK;
}

int ts_compare(const struct ts_work *a, const struct ts_work *b,
	       const struct ts_compare_options *options, struct ts_result *result,
	       bool *ret_differs, struct ts_error *err)
{
	struct ts_comparison compare = { .options = options };
	int rc = ts_compare_names_init(&compare.names, a, b, options);

	if (!rc)
		rc = compare_names(&compare, result, ret_differs);
	free(compare.entries);
	free(compare.values[0]);
	free(compare.values[1]);
	ts_compare_names_release(&compare.names);
	return rc ? ts_error_set(err, rc, "no memory") : ts_result_status(result, err);
}
