/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Significance tests for two independent samples, two-sided, and the correction for multiple tests.
 */
#ifndef TS_ANALYZE_SIGNIFICANCE_H
#define TS_ANALYZE_SIGNIFICANCE_H

#include <stddef.h>

/* Moments of a sample, for tests that do not need its values. */
struct ts_moments {
	size_t count;
	double mean;
	double variance; /* sample variance (n - 1); 0 below two values */
};

/*
 * p-value of Welch's t test: do the means differ? NaN if a side has fewer than two values. Without
 * any variance: 1 for equal means, else 0.
 */
double ts_welch_p(const struct ts_moments *a, const struct ts_moments *b);

/*
 * p-value of the Mann-Whitney U test (normal approximation, corrected for ties and continuity): are
 * values of one side larger than those of the other more often than not? Both lists must be sorted.
 * Linear in their length. NaN if a side is empty; 1 if all values are equal.
 */
double ts_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);

/*
 * Holm's correction of `count` p-values, in place: each becomes the smallest level at which its
 * hypothesis is still rejected among all others. NaNs stay and are not counted. 0 or TS_ENOMEM.
 */
int ts_holm(double *p, size_t count);

#endif
