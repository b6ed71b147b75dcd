/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Could two lists of numbers differ like that by chance? Tests of two independent samples,
 * two-sided, and the correction for asking many such questions at once.
 */
#ifndef TS_ANALYZE_SIGNIFICANCE_H
#define TS_ANALYZE_SIGNIFICANCE_H

#include <stddef.h>

/* What is left of a sample for tests that need no single values. */
struct ts_moments {
	size_t count;
	double mean;
	double variance; /* of a sample (n - 1); 0 below two values */
};

/*
 * Welch's t test: do the means differ? NaN where a side has less than two values. Without any
 * variance the answer is plain: 1 for equal means, else 0.
 */
double ts_welch_p(const struct ts_moments *a, const struct ts_moments *b);

/*
 * The U test of Mann and Whitney, normal approximation with corrections for ties and continuity:
 * are values of one side larger than those of the other more often than not? Both lists must be
 * sorted; linear in their length. NaN where a side is empty; 1 where all values are equal.
 */
double ts_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);

/*
 * Holm's correction over `count` probabilities, in place: each becomes the smallest level at which
 * it would still be rejected beside all others. NaNs stay and count for nothing. Returns 0 or
 * TS_ENOMEM.
 */
int ts_holm(double *p, size_t count);

#endif
