/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits a line through samples with outliers: Theil-Sen slope over at most 256 medians, so that the
 * cost stays n log n, then the median of the residuals; bounded by causality (docs/state.md,
 * "Clocks").
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "state/clocks/clock_alignment_internal.h"

#define MOST_BINS 256
#define LEAST_FOR_DRIFT 8  /* samples: fewer do not determine a drift */
#define LEAST_FOR_SPREAD 5 /* samples: fewer do not determine a spread */
#define UNKNOWN_DRIFT                                                                         \
	2e-4            /* drift that clocks are assumed to stay below if samples do not tell \
			 */
#define MOST_DRIFT 1e-2 /* larger values are not clock drift */
#define OUTLIER_SCALE (6 * 1.4826)
#define CONFIDENCE 1.96 /* standard deviations: 95 % */

struct fit {
	struct ts_clock_sample *samples;
	size_t count;
	int64_t resolution;
	int64_t base;      /* median of `apart`: keeps the residuals small */
	double *rest;      /* residual of each sample */
	double *scratch;   /* count */
	double centre;     /* of the line at epoch, relative to base */
	double outlier_at; /* distance from the line; INFINITY: no outliers */
	struct ts_clock_line line;
};

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static int compare_times(const void *left, const void *right)
{
	const struct ts_clock_sample *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->apart < b->apart ? -1 : a->apart > b->apart;
}

static double sorted_median(const double *values, size_t count)
{
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double median(double *values, size_t count)
{
	ts_sort(values, count, sizeof(*values), compare_doubles);
	return sorted_median(values, count);
}

static int compare_apart(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

/* In integers: an offset of years must not cost nanosecond precision. */
static int find_base(struct fit *fit)
{
	int64_t *values = ts_alloc_array(fit->count, sizeof(*values));

	if (!values)
		return TS_ENOMEM;
	for (size_t i = 0; i < fit->count; i++)
		values[i] = fit->samples[i].apart;
	ts_sort(values, fit->count, sizeof(*values), compare_apart);
	fit->base = values[fit->count / 2];
	free(values);
	return TS_OK;
}

static double x_of(const struct fit *fit, const struct ts_clock_sample *sample)
{
	return (double)(sample->time - fit->line.epoch);
}

static double y_of(const struct fit *fit, const struct ts_clock_sample *sample)
{
	return (double)(sample->apart - fit->base);
}

/* ---- drift ---- */

struct point {
	double x, y;
};

/* Medians of equal-sized groups of neighbouring samples. */
static size_t make_bins(const struct fit *fit, struct point *bins)
{
	size_t count = TS_MIN(fit->count, MOST_BINS);

	for (size_t k = 0; k < count; k++) {
		size_t from = k * fit->count / count, to = (k + 1) * fit->count / count;

		for (size_t i = from; i < to; i++)
			fit->scratch[i - from] = x_of(fit, &fit->samples[i]);
		bins[k].x = sorted_median(fit->scratch, to - from);
		for (size_t i = from; i < to; i++)
			fit->scratch[i - from] = y_of(fit, &fit->samples[i]);
		bins[k].y = median(fit->scratch, to - from);
	}
	return count;
}

static size_t make_slopes(const struct point *bins, size_t count, double *slopes)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (bins[k].x > bins[i].x)
				slopes[found++] = (bins[k].y - bins[i].y) / (bins[k].x - bins[i].x);
	ts_sort(slopes, found, sizeof(*slopes), compare_doubles);
	return found;
}

/* Median slope and Sen's confidence interval, from the variance of Kendall's statistic. */
static void check_slopes(struct ts_clock_line *line, const double *slopes, size_t count,
			 size_t bins)
{
	double n = (double)bins, middle = (double)count / 2, slope, low, high;
	double half = CONFIDENCE * sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2;

	slope = sorted_median(slopes, count);
	low = slopes[(size_t)TS_MAX(0, middle - half)];
	high = slopes[(size_t)TS_MIN((double)count - 1, middle + half)];
	/* A slope that cannot be distinguished from 0 is 0. */
	if ((low <= 0 && high >= 0) || fabs(slope) > MOST_DRIFT)
		slope = 0;
	line->drift = slope;
	line->drift_slack = TS_MIN(TS_MAX(fabs(low - slope), fabs(high - slope)), UNKNOWN_DRIFT);
}

static int fit_drift(struct fit *fit)
{
	struct point bins[MOST_BINS];
	TS_AUTO_FREE double *slopes = NULL;
	size_t bin_count, count = 0;

	fit->line.drift_slack = UNKNOWN_DRIFT;
	if (fit->count < LEAST_FOR_DRIFT)
		return TS_OK;
	bin_count = make_bins(fit, bins);
	slopes = ts_alloc_array(bin_count * bin_count / 2, sizeof(*slopes));
	if (!slopes)
		return TS_ENOMEM;
	count = make_slopes(bins, bin_count, slopes);
	if (count)
		check_slopes(&fit->line, slopes, count, bin_count);
	return TS_OK;
}

/* ---- offset and spread ---- */

static void fit_offset(struct fit *fit)
{
	for (size_t i = 0; i < fit->count; i++) {
		const struct ts_clock_sample *sample = &fit->samples[i];

		fit->rest[i] = y_of(fit, sample) - fit->line.drift * x_of(fit, sample);
		fit->scratch[i] = fit->rest[i];
	}
	fit->centre = median(fit->scratch, fit->count);
	for (size_t i = 0; i < fit->count; i++) {
		fit->rest[i] -= fit->centre;
		fit->scratch[i] = fabs(fit->rest[i]);
	}
}

/* If a fifth of the samples were outliers, none are: the clocks or operations behave like that. */
static void find_outliers(struct fit *fit)
{
	double deviation = median(fit->scratch, fit->count);
	uint64_t outliers = 0;

	fit->outlier_at = TS_MAX(OUTLIER_SCALE * deviation, 2 * (double)fit->resolution);
	for (size_t i = 0; i < fit->count; i++)
		outliers += fabs(fit->rest[i]) > fit->outlier_at;
	if (outliers * 5 > fit->count) {
		fit->outlier_at = INFINITY;
		outliers = 0;
	}
	fit->line.points = fit->count;
	fit->line.outliers = outliers;
}

/* 95th percentile of the others, slightly higher for few samples. scratch is sorted. */
static double find_spread(const struct fit *fit)
{
	size_t kept = fit->count - (size_t)fit->line.outliers;
	double rank = ceil(0.95 * (double)kept) - 1;

	return fit->scratch[(size_t)TS_MAX(rank, 0)] * (1 + 4 / (double)kept) +
	       (double)fit->resolution;
}

/* ---- causality ---- */

struct bounds {
	double low, high; /* around the line */
	double usual;     /* the same for the narrowest sample, hard or not */
};

static struct bounds find_bounds(const struct fit *fit)
{
	struct bounds bounds = { .low = -INFINITY, .high = INFINITY, .usual = INFINITY };

	for (size_t i = 0; i < fit->count; i++) {
		const struct ts_clock_sample *sample = &fit->samples[i];
		double line = fit->centre + fit->line.drift * x_of(fit, sample);
		double low = (double)(sample->low - fit->base) - line - (double)fit->resolution;
		double high = (double)(sample->high - fit->base) - line + (double)fit->resolution;

		if (fabs(fit->rest[i]) > fit->outlier_at)
			continue;
		bounds.usual = TS_MIN(bounds.usual, TS_MAX(-low, high));
		if (!sample->hard)
			continue;
		bounds.low = TS_MAX(bounds.low, low);
		bounds.high = TS_MIN(bounds.high, high);
	}
	return bounds;
}

static int64_t to_ns(double value)
{
	return value >= 0x1p61 ? INT64_C(1) << 61 : (int64_t)ceil(value);
}

/* Moves the line by the minimum that causality requires, and computes the remaining bound. */
static void fit_bounds(struct fit *fit, double spread)
{
	struct bounds bounds = find_bounds(fit);
	double move = 0;

	if (bounds.low > bounds.high) /* an undetected outlier among them */
		bounds.low = -INFINITY, bounds.high = INFINITY;
	if (bounds.low > 0)
		move = bounds.low;
	else if (bounds.high < 0)
		move = bounds.high;
	fit->centre += move;
	spread += fabs(move);
	fit->line.bound = TS_ABSENT;
	if (isfinite(bounds.low) && isfinite(bounds.high))
		fit->line.bound = to_ns(TS_MAX(move - bounds.low, bounds.high - move));
	if (fit->count < LEAST_FOR_SPREAD)
		spread = fit->line.bound == TS_ABSENT ? TS_MAX(spread, bounds.usual)
						      : (double)fit->line.bound;
	fit->line.spread = to_ns(spread);
}

static int run(struct fit *fit)
{
	const struct ts_clock_sample *last;
	int rc;

	assert(fit->count > 0);
	ts_sort(fit->samples, fit->count, sizeof(*fit->samples), compare_times);
	last = &fit->samples[fit->count - 1];
	fit->line.from = fit->samples[0].time;
	fit->line.to = last->time;
	fit->line.epoch = fit->line.from + (fit->line.to - fit->line.from) / 2;
	rc = find_base(fit);
	if (!rc)
		rc = fit_drift(fit);
	if (rc)
		return rc;
	fit_offset(fit);
	find_outliers(fit);
	fit_bounds(fit, find_spread(fit));
	fit->line.offset = fit->base + (int64_t)llrint(fit->centre);
	return TS_OK;
}

int ts_clock_fit(struct ts_clock_line *ret_line, struct ts_clock_sample *samples, size_t count,
		 int64_t resolution, struct ts_error *err)
{
	struct fit fit = { .samples = samples, .count = count, .resolution = resolution };
	int rc;

	fit.rest = ts_alloc_array(count, sizeof(*fit.rest));
	fit.scratch = ts_alloc_array(count, sizeof(*fit.scratch));
	rc = fit.rest && fit.scratch ? run(&fit) : TS_ENOMEM;
	free(fit.rest);
	free(fit.scratch);
	if (rc)
		return ts_error_set(err, rc, "no memory");
	*ret_line = fit.line;
	return TS_OK;
}

int64_t ts_clock_line_uncertainty(const struct ts_clock_line *line, int64_t from, int64_t to)
{
	int64_t inside = line->spread, outside = TS_MAX(line->from - from, to - line->to);

	if (line->bound != TS_ABSENT)
		inside = TS_MIN(inside, line->bound);
	return inside + to_ns(line->drift_slack * (double)TS_MAX(outside, 0));
}

struct ts_clock_line ts_clock_line_inverse(const struct ts_clock_line *line)
{
	struct ts_clock_line inverse = *line;

	inverse.epoch = line->epoch + line->offset;
	inverse.offset = -line->offset;
	inverse.drift = 1 / (1 + line->drift) - 1;
	inverse.from = line->from + line->offset;
	inverse.to = line->to + line->offset;
	return inverse;
}
