/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Downsamples a series of values over a time range in constant memory: the range is cut into equal
 * bins, each with its time-weighted mean.
 */
#ifndef TS_TRACE_RESAMPLE_H
#define TS_TRACE_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#define TS_RESAMPLE_BINS 240

struct ts_resample_bin {
	double area; /* values times ns */
	double covered_ns;
	double point; /* the newest value that begins here, or NaN */
	double least,
		greatest; /* of the values that lasted here; sums of fractions are not exact */
};

struct ts_resample {
	int64_t from, to;
	struct ts_resample_bin bins[TS_RESAMPLE_BINS];
};

void ts_resample_init(struct ts_resample *resample, int64_t from, int64_t to);

/* The value holds from `since` until `until`; clipped to the range. */
void ts_resample_add(struct ts_resample *resample, int64_t since, int64_t until, double value);

/* The mean over the range; NaN: no values. Without any duration, the plain mean of the values. */
double ts_resample_mean(const struct ts_resample *resample);

/* The means of `count` equal intervals, at most TS_RESAMPLE_BINS; NaN: no values in one. */
void ts_resample_values(const struct ts_resample *resample, double *ret_values, size_t count);

#endif
