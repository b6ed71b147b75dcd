/* SPDX-License-Identifier: Apache-2.0 */
/* Significance tests: compared with SciPy 1.16 on the same lists, and edge cases. */
#include "analyze/significance.h"

#include <math.h>

#include "base/memory.h"

#include "unit/runner.h"

static struct ts_moments moments_of(const double *values, size_t count)
{
	struct ts_moments moments = { .count = count };

	for (size_t i = 0; i < count; i++)
		moments.mean += values[i] / (double)count;
	for (size_t i = 0; i < count; i++)
		moments.variance += (values[i] - moments.mean) * (values[i] - moments.mean) /
				    (double)(count - 1);
	return moments;
}

static double welch(const double *a, size_t a_count, const double *b, size_t b_count)
{
	struct ts_moments first = moments_of(a, a_count), second = moments_of(b, b_count);

	return ts_welch_p(&first, &second);
}

static void check_near(int line, double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
		ts_test_fail(__FILE__, line, "%.17g is not %.17g", value, expected);
}
#define CHECK_NEAR(value, expected) check_near(__LINE__, value, expected)

static const double few[] = { 9.5, 10, 11, 12, 13 };
static const double more[] = { 13.5, 14, 14.2, 15, 15.5, 16 };

TS_TEST(welch_is_as_scipy_has_it)
{
	static const double a[] = { 1, 2, 3 }, b[] = { 1.5, 2.5, 9 };
	static const double c[] = { 10, 10.1, 9.9 }, d[] = { 20, 20.1, 20.05 };
	double x[1000], y[1000];

	CHECK_NEAR(welch(few, 5, more, 6), 0.002146312038292014);
	CHECK_NEAR(welch(more, 6, few, 5), 0.002146312038292014);
	CHECK_NEAR(welch(a, 3, b, 3), 0.4273367389662567);
	CHECK_NEAR(welch(c, 3, d, 3), 7.455579558436154e-07);
	for (int i = 0; i < 1000; i++) {
		x[i] = i;
		y[i] = i + 40;
	}
	CHECK_NEAR(welch(x, 1000, y, 1000), 0.0019831431678404387);
}

TS_TEST(welch_without_variance)
{
	static const double same[] = { 5, 5, 5 }, other[] = { 6, 6, 6 }, wide[] = { 4, 5, 6 };
	struct ts_moments tiny = { .count = 3, .mean = 1, .variance = 1e-320 };
	struct ts_moments huge = { .count = 3, .mean = 1e300, .variance = 1e300 };

	TS_CHECK(welch(same, 3, same, 3) == 1);
	TS_CHECK(welch(same, 3, other, 3) == 0);
	TS_CHECK(welch(same, 3, wide, 3) == 1);
	TS_CHECK(isnan(welch(same, 1, other, 3)));
	TS_CHECK(ts_welch_p(&tiny, &huge) >= 0 && ts_welch_p(&tiny, &huge) <= 1);
	TS_CHECK(ts_welch_p(&tiny, &tiny) == 1);
}

TS_TEST(mann_whitney_is_as_scipy_has_it)
{
	static const double a[] = { 1, 1, 2, 2, 3, 3, 3, 4 };
	static const double b[] = { 2, 2, 3, 4, 4, 5, 5, 5, 6 };
	double x[1000], y[1000];

	CHECK_NEAR(ts_mann_whitney_p(few, 5, more, 6), 0.00811311726556578);
	CHECK_NEAR(ts_mann_whitney_p(a, 8, b, 9), 0.031114780150942208);
	CHECK_NEAR(ts_mann_whitney_p(b, 9, a, 8), 0.031114780150942208);
	for (int i = 0; i < 1000; i++) {
		x[i] = i;
		y[i] = i + 40;
	}
	CHECK_NEAR(ts_mann_whitney_p(x, 1000, y, 1000), 0.002400396953971824);
}

TS_TEST(mann_whitney_at_its_edges)
{
	static const double same[] = { 7, 7, 7, 7, 7 };

	TS_CHECK(ts_mann_whitney_p(same, 5, same, 5) == 1);
	TS_CHECK(ts_mann_whitney_p(same, 1, same, 1) == 1);
	TS_CHECK(ts_mann_whitney_p(few, 5, few, 5) == 1);
	TS_CHECK(isnan(ts_mann_whitney_p(same, 0, same, 5)));
	TS_CHECK(isnan(ts_mann_whitney_p(same, 5, same, 0)));
}

TS_TEST(holm_corrects_in_place)
{
	double p[] = { 0.04, 0.01, NAN, 0.03, 0.005 };
	double many[] = { 0.9, 0.8 };

	TS_CHECK_INT(ts_holm(p, TS_ARRAY_SIZE(p)), 0);
	CHECK_NEAR(p[4], 0.02);
	CHECK_NEAR(p[1], 0.03);
	CHECK_NEAR(p[3], 0.06);
	/* Never less than the adjusted value of a smaller one. */
	CHECK_NEAR(p[0], 0.06);
	TS_CHECK(isnan(p[2]));
	TS_CHECK_INT(ts_holm(many, 2), 0);
	TS_CHECK(many[0] == 1 && many[1] == 1);
	TS_CHECK_INT(ts_holm(NULL, 0), 0);
}
