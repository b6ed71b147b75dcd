/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summary statistics of lists of numbers, and sets of time spans. Arithmetic saturates at the
 * limits of int64.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analyze/statistics.h"
#include "base/memory.h"

/* ---- lists of numbers ---- */

/* NaNs, which no caller should pass, come last: the order must be total. */
static int compare_doubles(const void *a, const void *b)
{
	double x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (isnan(x) || isnan(y))
		return !!isnan(x) - !!isnan(y);
	return (x > y) - (x < y);
}

static void sort_doubles(double *values, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (values[i - 1] <= values[i])
			continue;
		ts_sort(values, count, sizeof(*values), compare_doubles);
		return;
	}
}

/* Compensated summation (Neumaier), so that the order does not matter. */
static double sum_of(const double *values, size_t count)
{
	double sum = 0, lost = 0;

	for (size_t i = 0; i < count; i++) {
		double next = sum + values[i];

		if (fabs(sum) >= fabs(values[i]))
			lost += (sum - next) + values[i];
		else
			lost += (values[i] - next) + sum;
		sum = next;
	}
	return isfinite(sum) ? sum + lost : sum;
}

static double deviation_of(const double *values, size_t count, double mean)
{
	double squares = 0, rest = 0;

	if (count < 2)
		return NAN;
	for (size_t i = 0; i < count; i++) {
		double difference = values[i] - mean;

		squares += difference * difference;
		rest += difference;
	}
	/* Removes the error that rounding the mean has added. */
	squares -= rest * rest / (double)count;
	return sqrt(TS_MAX(squares, 0.0) / (double)(count - 1));
}

double ts_quantile(const double *sorted, size_t count, double q)
{
	double position, part, low, high;
	size_t below;

	if (count == 0)
		return NAN;
	position = TS_MIN(TS_MAX(q, 0.0), 1.0) * (double)(count - 1);
	below = TS_MIN((size_t)position, count - 1);
	part = position - (double)below;
	low = sorted[below];
	high = sorted[TS_MIN(below + 1, count - 1)];
	/* Interpolates from the nearer end, so that the ends are exact. */
	return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

void ts_describe(double *values, size_t count, struct ts_description *ret)
{
	sort_doubles(values, count);
	ret->count = count;
	ret->sum = sum_of(values, count);
	ret->mean = count ? ret->sum / (double)count : NAN;
	ret->deviation = deviation_of(values, count, ret->mean);
	ret->minimum = count ? values[0] : NAN;
	ret->q25 = ts_quantile(values, count, 0.25);
	ret->median = ts_quantile(values, count, 0.5);
	ret->q75 = ts_quantile(values, count, 0.75);
	ret->q90 = ts_quantile(values, count, 0.90);
	ret->q99 = ts_quantile(values, count, 0.99);
	ret->maximum = count ? values[count - 1] : NAN;
}

/* ---- sets of time ---- */

static int compare_spans(const void *a, const void *b)
{
	const struct ts_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Drops empty spans and checks whether the rest is already sorted, as rows of one stream are. */
static size_t keep_spans(struct ts_span *spans, size_t count, bool *ret_sorted)
{
	size_t kept = 0;

	*ret_sorted = true;
	for (size_t i = 0; i < count; i++) {
		if (spans[i].end <= spans[i].start)
			continue;
		if (kept > 0 && spans[i].start < spans[kept - 1].start)
			*ret_sorted = false;
		spans[kept++] = spans[i];
	}
	return kept;
}

size_t ts_spans_merge(struct ts_span *spans, size_t count)
{
	size_t merged = 0;
	bool sorted;

	count = keep_spans(spans, count, &sorted);
	if (!sorted)
		ts_sort(spans, count, sizeof(*spans), compare_spans);
	for (size_t i = 0; i < count; i++) {
		if (merged > 0 && spans[i].start <= spans[merged - 1].end)
			spans[merged - 1].end = TS_MAX(spans[merged - 1].end, spans[i].end);
		else
			spans[merged++] = spans[i];
	}
	return merged;
}

int64_t ts_spans_total(const struct ts_span *spans, size_t count)
{
	int64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total = ts_ns_add(total, ts_ns_between(spans[i].start, spans[i].end));
	return total;
}

int64_t ts_spans_shared(const struct ts_span *a, size_t a_count, const struct ts_span *b,
			size_t b_count)
{
	int64_t total = 0;
	size_t i = 0, j = 0;

	while (i < a_count && j < b_count) {
		int64_t start = TS_MAX(a[i].start, b[j].start);
		int64_t end = TS_MIN(a[i].end, b[j].end);

		if (start < end)
			total = ts_ns_add(total, ts_ns_between(start, end));
		if (a[i].end <= b[j].end)
			i++;
		else
			j++;
	}
	return total;
}
