/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Welch's t test, Mann-Whitney U test, Holm correction. Textbook formulas in doubles; Student's t
 * distribution by the continued fraction of the incomplete beta function.
 */
#include "analyze/significance.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* ---- Student's t ---- */

#define FRACTION_ROUNDS 300
#define FRACTION_EPSILON 1e-14
#define FRACTION_TINY 1e-300

static double not_zero(double value)
{
	return fabs(value) < FRACTION_TINY ? FRACTION_TINY : value;
}

/* The continued fraction of the incomplete beta function, evaluated from the front (Lentz). */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m <= FRACTION_ROUNDS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 / not_zero(1 + even * d);
		c = not_zero(1 + even / c);
		h *= d * c;
		d = 1 / not_zero(1 + odd * d);
		c = not_zero(1 + odd / c);
		step = d * c;
		h *= step;
		if (fabs(step - 1) < FRACTION_EPSILON)
			break;
	}
	return h;
}

/* The regularised incomplete beta function: I_x(a, b). */
static double beta(double x, double a, double b)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double ts_welch_p(const struct ts_moments *a, const struct ts_moments *b)
{
	double a_part, b_part, t, freedom;

	if (a->count < 2 || b->count < 2)
		return NAN;
	a_part = a->variance / (double)a->count;
	b_part = b->variance / (double)b->count;
	if (!(a_part + b_part > 0))
		return a->mean == b->mean ? 1 : 0;
	t = (a->mean - b->mean) / sqrt(a_part + b_part);
	freedom = (a_part + b_part) * (a_part + b_part) /
		  (a_part * a_part / (double)(a->count - 1) +
		   b_part * b_part / (double)(b->count - 1));
	/* The squares of tiny variances underflow: treat them as 0. */
	if (!isfinite(t) || !isfinite(freedom) || !(freedom > 0))
		return a->mean == b->mean ? 1 : 0;
	return beta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

/* ---- ranks ---- */

/* Removes the next run of equal values from the front of a sorted list. */
static size_t take_equal(const double *values, size_t count, size_t *at, double value)
{
	size_t first = *at;

	while (*at < count && values[*at] == value)
		++*at;
	return *at - first;
}

double ts_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
	double n = (double)a_count, m = (double)b_count, all = n + m;
	double rank_sum = 0, ties = 0, before = 0, distance, variance;
	size_t i = 0, k = 0;

	if (!a_count || !b_count)
		return NAN;
	while (i < a_count || k < b_count) {
		double value = k == b_count || (i < a_count && a[i] <= b[k]) ? a[i] : b[k];
		double of_a = (double)take_equal(a, a_count, &i, value);
		double equal = of_a + (double)take_equal(b, b_count, &k, value);

		/* Equal values share the mean of their ranks. */
		rank_sum += of_a * (before + (equal + 1) / 2);
		ties += equal * equal * equal - equal;
		before += equal;
	}
	variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
	if (!(variance > 0))
		return 1;
	distance = fabs(rank_sum - n * (n + 1) / 2 - n * m / 2) - 0.5;
	return erfc(TS_MAX(distance, 0) / sqrt(2 * variance));
}

/* ---- multiple tests ---- */

struct position {
	double p;
	size_t index;
};

static int by_p(const void *left, const void *right)
{
	const struct position *a = left, *b = right;

	return (a->p > b->p) - (a->p < b->p);
}

int ts_holm(double *p, size_t count)
{
	TS_AUTO_FREE struct position *positions = ts_alloc_array(count, sizeof(*positions));
	size_t tested = 0;
	double least = 0;

	if (!positions)
		return TS_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!isnan(p[i]))
			positions[tested++] = (struct position){ .p = p[i], .index = i };
	}
	ts_sort(positions, tested, sizeof(*positions), by_p);
	for (size_t i = 0; i < tested; i++) {
		double corrected = TS_MIN(positions[i].p * (double)(tested - i), 1);

		least = TS_MAX(least, corrected);
		p[positions[i].index] = least;
	}
	return TS_OK;
}
