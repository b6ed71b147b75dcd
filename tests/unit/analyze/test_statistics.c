/* SPDX-License-Identifier: Apache-2.0 */
/* Summary statistics, compared with pandas 3 on the same lists; sets of time intervals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"
#include "base/memory.h"

#include "unit/runner.h"

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fmax(1, fabs(b));
}

#define CHECK_NEAR(a, b)                                                                        \
	do {                                                                                    \
		double a_ = (a), b_ = (b);                                                      \
		if (!is_near(a_, b_))                                                           \
			ts_test_fail(__FILE__, __LINE__, "%s is %.17g, not %.17g", #a, a_, b_); \
	} while (0)

TS_TEST(description_of_a_list)
{
	double values[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5 };
	struct ts_description d;

	ts_describe(values, TS_ARRAY_SIZE(values), &d);
	TS_CHECK_INT(d.count, 11);
	CHECK_NEAR(d.sum, 44);
	CHECK_NEAR(d.mean, 4);
	CHECK_NEAR(d.deviation, 2.3664319132398464);
	CHECK_NEAR(d.minimum, 1);
	CHECK_NEAR(d.q25, 2.5);
	CHECK_NEAR(d.median, 4);
	CHECK_NEAR(d.q75, 5);
	CHECK_NEAR(d.q90, 6);
	CHECK_NEAR(d.q99, 8.700000000000001);
	CHECK_NEAR(d.maximum, 9);
	for (size_t i = 1; i < TS_ARRAY_SIZE(values); i++)
		TS_CHECK(values[i - 1] <= values[i]);
}

/* Naive sums of squares give 0 or worse for these. */
TS_TEST(small_differences_of_large_numbers)
{
	double values[] = { 1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16 };
	struct ts_description d;

	ts_describe(values, 4, &d);
	CHECK_NEAR(d.mean, 1000000010);
	CHECK_NEAR(d.deviation, 5.477225575051661);
	CHECK_NEAR(d.q25, 1000000006.25);
	CHECK_NEAR(d.q90, 1000000015.1);
	CHECK_NEAR(d.q99, 1000000015.91);
}

TS_TEST(lists_of_none_one_and_two)
{
	double values[] = { 42, 0 }, pair[] = { 2, 1 };
	struct ts_description d;

	ts_describe(values, 0, &d);
	TS_CHECK_INT(d.count, 0);
	TS_CHECK(isnan(d.mean) && isnan(d.deviation) && isnan(d.minimum) && isnan(d.median));
	TS_CHECK(isnan(d.q99) && isnan(d.maximum));
	CHECK_NEAR(d.sum, 0);
	ts_describe(values, 1, &d);
	TS_CHECK(isnan(d.deviation));
	CHECK_NEAR(d.mean, 42);
	CHECK_NEAR(d.q25, 42);
	CHECK_NEAR(d.q99, 42);
	ts_describe(pair, 2, &d);
	CHECK_NEAR(d.deviation, 0.7071067811865476);
	CHECK_NEAR(d.q90, 1.9);
}

/* Adding doubles one by one would lose each of the small ones. */
TS_TEST(sum_keeps_small_values)
{
	static double values[10001];
	struct ts_description d;

	values[0] = 9007199254740992.0;
	for (size_t i = 1; i < TS_ARRAY_SIZE(values); i++)
		values[i] = -1;
	ts_describe(values, TS_ARRAY_SIZE(values), &d);
	TS_CHECK(d.sum == 9007199254730992.0);
}

TS_TEST(values_that_are_no_numbers_come_last)
{
	double values[] = { NAN, 2, INFINITY, 1 };
	struct ts_description d;

	ts_describe(values, 4, &d);
	TS_CHECK(values[0] == 1 && values[1] == 2 && isinf(values[2]) && isnan(values[3]));
	CHECK_NEAR(d.minimum, 1);
}

TS_TEST(quantiles_beyond_the_ends)
{
	double values[] = { 1, 2, 3 };

	CHECK_NEAR(ts_quantile(values, 3, -1), 1);
	CHECK_NEAR(ts_quantile(values, 3, 0), 1);
	CHECK_NEAR(ts_quantile(values, 3, 1), 3);
	CHECK_NEAR(ts_quantile(values, 3, 7), 3);
	TS_CHECK(isnan(ts_quantile(values, 0, 0.5)));
}

TS_TEST(spans_merge)
{
	struct ts_span spans[] = { { 50, 60 }, { 0, 10 },  { 10, 20 }, { 15, 18 },
				   { 70, 70 }, { 90, 80 }, { 55, 65 }, { 30, 31 } };
	size_t count = ts_spans_merge(spans, TS_ARRAY_SIZE(spans));

	TS_CHECK_INT(count, 3);
	TS_CHECK_INT(spans[0].start, 0);
	TS_CHECK_INT(spans[0].end, 20);
	TS_CHECK_INT(spans[1].start, 30);
	TS_CHECK_INT(spans[2].start, 50);
	TS_CHECK_INT(spans[2].end, 65);
	TS_CHECK_INT(ts_spans_total(spans, count), 20 + 1 + 15);
	TS_CHECK_INT(ts_spans_merge(spans, 0), 0);
}

TS_TEST(spans_share_time)
{
	const struct ts_span a[] = { { 0, 10 }, { 20, 30 }, { 40, 50 } };
	const struct ts_span b[] = { { 5, 22 }, { 25, 26 }, { 29, 45 }, { 50, 60 } };

	TS_CHECK_INT(ts_spans_shared(a, 3, b, 4), 5 + 2 + 1 + 1 + 5);
	TS_CHECK_INT(ts_spans_shared(b, 4, a, 3), 14);
	TS_CHECK_INT(ts_spans_shared(a, 3, b, 0), 0);
	TS_CHECK_INT(ts_spans_shared(a, 3, a, 3), 30);
}

TS_TEST(times_at_the_limits_stay_there)
{
	struct ts_span spans[] = { { INT64_MIN, -5 }, { 5, INT64_MAX }, { INT64_MAX, INT64_MIN } };
	struct ts_span all = { INT64_MIN, INT64_MAX };
	size_t count = ts_spans_merge(spans, 3);

	TS_CHECK_INT(count, 2);
	TS_CHECK_INT(ts_spans_total(spans, count), INT64_MAX);
	TS_CHECK_INT(ts_spans_total(&all, 1), INT64_MAX);
	TS_CHECK_INT(ts_spans_shared(spans, count, &all, 1), INT64_MAX);
	TS_CHECK_INT(ts_ns_between(INT64_MAX, INT64_MIN), INT64_MIN);
	TS_CHECK_INT(ts_ns_between(-1, INT64_MAX), INT64_MAX);
	TS_CHECK_INT(ts_ns_add(INT64_MIN, -1), INT64_MIN);
	TS_CHECK_INT(ts_ns_add(3, -5), -2);
}

/* Compared with an array of instants, each marked or not. */
TS_TEST(spans_at_random)
{
	enum { INSTANTS = 200, SPANS = 12 };
	unsigned int seed = 1;

	for (int round = 0; round < 300; round++) {
		struct ts_span sets[2][SPANS];
		bool marks[2][INSTANTS] = { 0 };
		size_t counts[2];
		int64_t totals[2] = { 0, 0 }, shared = 0;

		for (int set = 0; set < 2; set++) {
			for (int i = 0; i < SPANS; i++) {
				int64_t start = rand_r(&seed) % (INSTANTS - 30);
				int64_t end = start + rand_r(&seed) % 30 - 3;

				sets[set][i] = (struct ts_span){ start, end };
				for (int64_t at = start; at < end; at++)
					marks[set][at] = true;
			}
			counts[set] = ts_spans_merge(sets[set], SPANS);
		}
		for (int at = 0; at < INSTANTS; at++) {
			totals[0] += marks[0][at];
			totals[1] += marks[1][at];
			shared += marks[0][at] && marks[1][at];
		}
		TS_CHECK_INT(ts_spans_total(sets[0], counts[0]), totals[0]);
		TS_CHECK_INT(ts_spans_total(sets[1], counts[1]), totals[1]);
		TS_CHECK_INT(ts_spans_shared(sets[0], counts[0], sets[1], counts[1]), shared);
	}
}
