/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What describes a list of numbers: count, sum, mean, deviation, quantiles; and sets of time as
 * sorted, merged intervals. Sums of ns are exact.
 */
#ifndef TS_ANALYZE_STATISTICS_H
#define TS_ANALYZE_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/ns.h"

/*
 * Of n values, sorted in place. Quantiles interpolate linearly (as pandas and numpy do by default).
 */
struct ts_description {
	size_t count;
	/*
	 * NaN where there are no values; the deviation is that of a sample (n - 1): NaN below two.
	 */
	double mean, deviation;
	double minimum, q25, median, q75, q90, q99, maximum;
	double sum; /* 0 where there are none */
};
void ts_describe(double *values, size_t count, struct ts_description *ret);
double ts_quantile(const double *sorted, size_t count, double q);

/* The nearest ns of a mean or quantile of ns; INT64_MIN (no value) of a NaN. */
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
 * Sorts and merges in place: spans that touch or overlap become one, empty and negative ones
 * vanish. Returns how many are left. Linear where they are in order already.
 */
size_t ts_spans_merge(struct ts_span *spans, size_t count);
int64_t ts_spans_total(const struct ts_span *spans, size_t count);

/* Time that two merged sets share. */
int64_t ts_spans_shared(const struct ts_span *a, size_t a_count, const struct ts_span *b,
			size_t b_count);

#endif
