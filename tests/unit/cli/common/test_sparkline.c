/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in a line of text, and their series. */
#include <math.h>

#include "cli/common/sparkline.h"
#include "trace/resample.h"
#include "unit/runner.h"

/* The graph of the values in ASCII. */
static const char *graph(const double *values, size_t count, double low, double high)
{
	static struct ts_text text;

	ts_text_clear(&text);
	ts_sparkline_append(&text, TS_SPARKLINE_ASCII, values, count, low, high);
	return ts_text_cstr(&text);
}

TS_TEST(levels)
{
	const double rising[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const double odd[] = { -5, 0, NAN, 8, 100, INFINITY, -INFINITY };
	const double wide[] = { -1.7e308, 0, 1.7e308 };

	TS_CHECK_STR(graph(rising, 8, 0, 8), "_.:-=+*#");
	TS_CHECK_STR(graph(rising, 8, 0, 7), "_.:-=+*#");
	TS_CHECK_STR(graph(odd, 7, 0, 8), "__ ###_");
	TS_CHECK_STR(graph(wide, 3, wide[0], wide[2]), "_=#");
	TS_CHECK_STR(graph(NULL, 0, 0, 0), "");
}

TS_TEST(constant_values)
{
	const double zeros[] = { 0, NAN, -0.0 }, others[] = { 5, NAN, 5 };

	TS_CHECK_STR(graph(zeros, 3, 0, 0), "_ _");
	TS_CHECK_STR(graph(others, 3, 5, 5), "- -");
}

TS_TEST(blocks)
{
	const double values[] = { 0, NAN, 1 };
	struct ts_text text = { 0 };

	ts_sparkline_append(&text, TS_SPARKLINE_BLOCKS, values, 3, 0, 1);
	TS_CHECK_STR(ts_text_cstr(&text), "\u2581 \u2588");
	ts_text_release(&text);
}

TS_TEST(range)
{
	const double values[] = { NAN, 3, -1, NAN, 2 };
	double low = 7, high = 7;

	TS_CHECK(!ts_sparkline_range(values, 1, &low, &high) && low == 7 && high == 7);
	TS_CHECK(ts_sparkline_range(values, 5, &low, &high));
	TS_CHECK(low == -1 && high == 3);
}

static enum ts_sparkline_style style(const char *all, const char *ctype, const char *lang)
{
	setenv("LC_ALL", all, 1);
	setenv("LC_CTYPE", ctype, 1);
	setenv("LANG", lang, 1);
	return ts_sparkline_style();
}

TS_TEST(style_of_locale)
{
	TS_CHECK_INT(style("", "", "en_US.UTF-8"), TS_SPARKLINE_BLOCKS);
	TS_CHECK_INT(style("", "", "de_DE.utf8@euro"), TS_SPARKLINE_BLOCKS);
	TS_CHECK_INT(style("C", "", "en_US.UTF-8"), TS_SPARKLINE_ASCII);
	TS_CHECK_INT(style("", "C.UTF-8", "C"), TS_SPARKLINE_BLOCKS);
	TS_CHECK_INT(style("", "de_DE.ISO-8859-1", "C.UTF-8"), TS_SPARKLINE_ASCII);
	TS_CHECK_INT(style("", "", ""), TS_SPARKLINE_ASCII);
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	unsetenv("LANG");
	TS_CHECK_INT(ts_sparkline_style(), TS_SPARKLINE_ASCII);
}

/* ---- series ---- */

TS_TEST(means_are_weighted_by_time)
{
	struct ts_resample resample;
	double values[4];

	ts_resample_init(&resample, 1000, 1400);
	ts_resample_add(&resample, 1000, 1300, 10);
	ts_resample_add(&resample, 1300, 1400, 50);
	TS_CHECK(ts_resample_mean(&resample) == 20);
	ts_resample_values(&resample, values, 4);
	TS_CHECK(values[0] == 10 && values[1] == 10 && values[2] == 10 && values[3] == 50);
	ts_resample_values(&resample, values, 2);
	TS_CHECK(values[0] == 10 && values[1] == 30);
}

/* Sums of fractions are not exact, but a mean lies between its inputs. */
TS_TEST(the_mean_of_a_constant)
{
	const double constants[] = { 141.2, 0.1, -1.0 / 3, 1e-300, 1e280 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(constants); i++) {
		double constant = constants[i], values[7];
		struct ts_resample resample;

		ts_resample_init(&resample, 0, 999999999937);
		for (int64_t at = 0; at < 999999999937; at += 100000007)
			ts_resample_add(&resample, at, at + 100000007, constant);
		TS_CHECK(ts_resample_mean(&resample) == constant);
		ts_resample_values(&resample, values, 7);
		for (size_t k = 0; k < 7; k++)
			TS_CHECK(values[k] == constant);
	}
}

TS_TEST(gaps)
{
	struct ts_resample resample;
	double values[4];

	ts_resample_init(&resample, 0, 400);
	TS_CHECK(isnan(ts_resample_mean(&resample)));
	ts_resample_add(&resample, 0, 100, 1);
	ts_resample_add(&resample, 350, 400, 3);
	ts_resample_values(&resample, values, 4);
	TS_CHECK(values[0] == 1 && isnan(values[1]) && isnan(values[2]) && values[3] == 3);
	TS_CHECK(ts_resample_mean(&resample) == 250.0 / 150);
}

TS_TEST(outside_of_the_range)
{
	struct ts_resample resample;

	ts_resample_init(&resample, 0, 100);
	ts_resample_add(&resample, -50, -10, 1);
	ts_resample_add(&resample, 101, 500, 1);
	TS_CHECK(isnan(ts_resample_mean(&resample)));
	ts_resample_add(&resample, -50, 50, 4);
	ts_resample_add(&resample, 50, 500, 8);
	TS_CHECK(ts_resample_mean(&resample) == 6);
}

TS_TEST(values_that_do_not_last)
{
	struct ts_resample resample;
	double value;

	/* At the very end, and in a range of one instant. */
	ts_resample_init(&resample, 0, 100);
	ts_resample_add(&resample, 100, 100, 9);
	TS_CHECK(ts_resample_mean(&resample) == 9);
	TS_CHECK(resample.bins[TS_RESAMPLE_BINS - 1].point == 9);
	ts_resample_init(&resample, 5, 5);
	ts_resample_add(&resample, 5, 5, 3);
	ts_resample_values(&resample, &value, 1);
	TS_CHECK(value == 3);
}

TS_TEST(the_widest_range)
{
	struct ts_resample resample;
	double values[2];

	ts_resample_init(&resample, INT64_MIN, INT64_MAX);
	ts_resample_add(&resample, INT64_MIN, 0, 1);
	ts_resample_add(&resample, 0, INT64_MAX, 3);
	ts_resample_values(&resample, values, 2);
	TS_CHECK(fabs(values[0] - 1) < 1e-9 && fabs(values[1] - 3) < 1e-9);
	TS_CHECK(fabs(ts_resample_mean(&resample) - 2) < 1e-9);
}

/* No time is lost or counted twice if parts are not a whole number of ns. */
TS_TEST(all_time_is_covered)
{
	struct ts_resample resample;
	double covered = 0;

	ts_resample_init(&resample, 3, 1003);
	for (int64_t at = 3; at < 1003; at++)
		ts_resample_add(&resample, at, at + 1, 1);
	for (size_t i = 0; i < TS_RESAMPLE_BINS; i++) {
		covered += resample.bins[i].covered_ns;
		TS_CHECK(resample.bins[i].covered_ns >= 4 && resample.bins[i].covered_ns <= 5);
	}
	TS_CHECK(covered == 1000);
}
