/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptive statistics (count, sum, mean, deviation, quantiles) and sets of time as sorted,
 * merged spans. Sums of ns are exact.
 */
#ifndef TS_ANALYZE_STATISTICS_H
#define TS_ANALYZE_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/ns.h"

/*
 * Statistics of a list of values, which ts_describe() sorts in place. Quantiles interpolate
 * linearly (as pandas and numpy do by default).
 */
struct ts_description {
	size_t count;
	/* NaN without values. The deviation is that of a sample (n - 1): NaN below two values. */
	double mean, deviation;
	double minimum, q25, median, q75, q90, q99, maximum;
	double sum; /* 0 without values */
};
void ts_describe(double *values, size_t count, struct ts_description *ret);
double ts_quantile(const double *sorted, size_t count, double q);

/* Rounds a mean or quantile to the nearest ns; NaN becomes INT64_MIN (no value). */
static inline int64_t ts_ns_of(double ns)
{
	if (ns != ns)
		return INT64_MIN;
	if (ns >= 9.2e18 || ns <= -9.2e18)
		return ns < 0 ? INT64_MIN + 1 : INT64_MAX;
	return (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

struct ts_span {
	int64_t start, end;
};

/*
 * Sorts and merges in place: adjacent and overlapping spans become one; empty and negative ones are
 * dropped. Returns how many are left. Linear if the spans are already sorted.
 */
size_t ts_spans_merge(struct ts_span *spans, size_t count);
int64_t ts_spans_total(const struct ts_span *spans, size_t count);

/* Time in both of two merged sets. */
int64_t ts_spans_shared(const struct ts_span *a, size_t a_count, const struct ts_span *b,
			size_t b_count);

#endif
