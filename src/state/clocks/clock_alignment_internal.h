/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the clock files: samples of the offset between two clocks, and the line fitted through
 * them.
 */
#ifndef TS_STATE_CLOCKS_CLOCK_ALIGNMENT_INTERNAL_H
#define TS_STATE_CLOCKS_CLOCK_ALIGNMENT_INTERNAL_H

#include "state/clocks/clock_alignment.h"

/*
 * One collective on two ranks. `apart`, `low` and `high` are offsets to add to the second rank's
 * times.
 */
struct ts_clock_sample {
	int64_t time;  /* its end, by the second clock */
	int64_t apart; /* makes both end at the same time */
	int64_t low,
		high;  /* keeps it from ending on either rank before it has started on the other */
	uint32_t pair; /* which two */
	bool hard;     /* low and high must hold; otherwise they are only typical */
};

/* The line offset + drift * (time - epoch), with its error bounds. */
struct ts_clock_line {
	int64_t epoch, offset;
	double drift;
	double drift_slack; /* error of the drift */
	int64_t from, to;   /* range of the samples */
	int64_t spread;     /* bound on the distance of nearly all samples from the line */
	int64_t bound;      /* largest error that causality allows; TS_ABSENT: unbounded */
	uint64_t points, outliers;
};

/* Sorts the samples by time. `resolution`: granularity of the times. count > 0. */
int ts_clock_fit(struct ts_clock_line *ret_line, struct ts_clock_sample *samples, size_t count,
		 int64_t resolution, struct ts_error *err);

/* Largest error of the line anywhere in [from, to]. */
int64_t ts_clock_line_uncertainty(const struct ts_clock_line *line, int64_t from, int64_t to);

/* The inverse line: from the first clock to the second. */
struct ts_clock_line ts_clock_line_inverse(const struct ts_clock_line *line);

/* Aligns devices with their hosts: fills clocks->devices. */
int ts_clock_alignment_fit_devices(struct ts_clock_alignment *clocks, const struct ts_work *work,
				   struct ts_error *err);

#endif
