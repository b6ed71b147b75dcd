/* SPDX-License-Identifier: Apache-2.0 */
/* See resample.h. */
#include "trace/resample.h"

#include <math.h>

#include "base/memory.h"

typedef __int128 wide_int;

void ts_resample_init(struct ts_resample *resample, int64_t from, int64_t to)
{
	*resample = (struct ts_resample){ .from = from, .to = TS_MAX(from, to) };
	for (size_t i = 0; i < TS_RESAMPLE_BINS; i++)
		resample->bins[i] = (struct ts_resample_bin){ .point = NAN,
							      .least = INFINITY,
							      .greatest = -INFINITY };
}

static size_t bin_at(const struct ts_resample *resample, int64_t time)
{
	wide_int span = (wide_int)resample->to - resample->from;
	wide_int bin = 0;

	if (span > 0)
		bin = ((wide_int)time - resample->from) * TS_RESAMPLE_BINS / span;
	return (size_t)TS_MIN(bin, TS_RESAMPLE_BINS - 1);
}

static int64_t end_of(const struct ts_resample *resample, size_t bin)
{
	wide_int span = (wide_int)resample->to - resample->from;

	return (int64_t)(resample->from + span * (wide_int)(bin + 1) / TS_RESAMPLE_BINS);
}

void ts_resample_add(struct ts_resample *resample, int64_t since, int64_t until, double value)
{
	size_t at;

	if (since >= resample->from && since <= resample->to)
		resample->bins[bin_at(resample, since)].point = value;
	since = TS_MAX(since, resample->from);
	until = TS_MIN(until, resample->to);
	if (since >= until)
		return;
	for (at = bin_at(resample, since); since < until && at < TS_RESAMPLE_BINS; at++) {
		struct ts_resample_bin *bin = &resample->bins[at];
		int64_t end = TS_MIN(until, end_of(resample, at));
		double ns = (double)((wide_int)end - since);

		if (ns > 0) {
			bin->area += value * ns;
			bin->covered_ns += ns;
			bin->least = TS_MIN(bin->least, value);
			bin->greatest = TS_MAX(bin->greatest, value);
		}
		since = end;
	}
}

/* The mean of bins from `first` to before `end`. */
static double mean_of(const struct ts_resample *resample, size_t first, size_t end)
{
	double area = 0, covered = 0, points = 0, least = INFINITY, greatest = -INFINITY;
	unsigned int count = 0;

	for (size_t i = first; i < end; i++) {
		const struct ts_resample_bin *bin = &resample->bins[i];

		area += bin->area;
		covered += bin->covered_ns;
		least = TS_MIN(least, bin->least);
		greatest = TS_MAX(greatest, bin->greatest);
		if (!isnan(bin->point)) {
			points += bin->point;
			count++;
		}
	}
	if (covered > 0)
		return TS_MIN(TS_MAX(area / covered, least), greatest);
	return count ? points / count : NAN;
}

double ts_resample_mean(const struct ts_resample *resample)
{
	return mean_of(resample, 0, TS_RESAMPLE_BINS);
}

void ts_resample_values(const struct ts_resample *resample, double *ret_values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ret_values[i] = mean_of(resample, i * TS_RESAMPLE_BINS / count,
					(i + 1) * TS_RESAMPLE_BINS / count);
}
