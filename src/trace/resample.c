/* SPDX-License-Identifier: Apache-2.0 */
/* See resample.h. */
#include "trace/resample.h"

#include <math.h>

#include "base/memory.h"

typedef __int128 wide_int;

void ts_resample_init(struct ts_resample *resample, int64_t from, int64_t to)
{
	*resample = (struct ts_resample){ .from = from, .to = TS_MAX(from, to) };
	for (size_t i = 0; i < TS_RESAMPLE_PARTS; i++)
		resample->parts[i] = (struct ts_resample_part){ .point = NAN,
								.least = INFINITY,
								.greatest = -INFINITY };
}

static size_t part_at(const struct ts_resample *resample, int64_t time)
{
	wide_int span = (wide_int)resample->to - resample->from;
	wide_int part = 0;

	if (span > 0)
		part = ((wide_int)time - resample->from) * TS_RESAMPLE_PARTS / span;
	return (size_t)TS_MIN(part, TS_RESAMPLE_PARTS - 1);
}

static int64_t end_of(const struct ts_resample *resample, size_t part)
{
	wide_int span = (wide_int)resample->to - resample->from;

	return (int64_t)(resample->from + span * (wide_int)(part + 1) / TS_RESAMPLE_PARTS);
}

void ts_resample_add(struct ts_resample *resample, int64_t since, int64_t until, double value)
{
	size_t at;

	if (since >= resample->from && since <= resample->to)
		resample->parts[part_at(resample, since)].point = value;
	since = TS_MAX(since, resample->from);
	until = TS_MIN(until, resample->to);
	if (since >= until)
		return;
	for (at = part_at(resample, since); since < until && at < TS_RESAMPLE_PARTS; at++) {
		struct ts_resample_part *part = &resample->parts[at];
		int64_t end = TS_MIN(until, end_of(resample, at));
		double ns = (double)((wide_int)end - since);

		if (ns > 0) {
			part->area += value * ns;
			part->covered_ns += ns;
			part->least = TS_MIN(part->least, value);
			part->greatest = TS_MAX(part->greatest, value);
		}
		since = end;
	}
}

/* The mean of parts from `first` to before `end`. */
static double mean_of(const struct ts_resample *resample, size_t first, size_t end)
{
	double area = 0, covered = 0, points = 0, least = INFINITY, greatest = -INFINITY;
	unsigned int count = 0;

	for (size_t i = first; i < end; i++) {
		const struct ts_resample_part *part = &resample->parts[i];

		area += part->area;
		covered += part->covered_ns;
		least = TS_MIN(least, part->least);
		greatest = TS_MAX(greatest, part->greatest);
		if (!isnan(part->point)) {
			points += part->point;
			count++;
		}
	}
	if (covered > 0)
		return TS_MIN(TS_MAX(area / covered, least), greatest);
	return count ? points / count : NAN;
}

double ts_resample_mean(const struct ts_resample *resample)
{
	return mean_of(resample, 0, TS_RESAMPLE_PARTS);
}

void ts_resample_values(const struct ts_resample *resample, double *ret_values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ret_values[i] = mean_of(resample, i * TS_RESAMPLE_PARTS / count,
					(i + 1) * TS_RESAMPLE_PARTS / count);
}
