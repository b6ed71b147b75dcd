/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of clocks share: samples of how two clocks stand to each other, and the line
 * through them.
 */
#ifndef TS_STATE_CLOCKS_CLOCK_ALIGNMENT_INTERNAL_H
#define TS_STATE_CLOCKS_CLOCK_ALIGNMENT_INTERNAL_H

#include "state/clocks/clock_alignment.h"

/*
 * One collective on two ranks. `apart`, `low` and `high` are what would have to be added to the
 * second one's times.
 */
struct ts_clock_sample {
	int64_t time;      /* its end, by the second clock */
	int64_t apart;     /* so that both end at once */
	int64_t low, high; /* so that it ends on neither before it has begun on the other */
	uint32_t pair;     /* which two */
	bool hard;         /* low and high must hold; else they are only usual */
};

/* The line offset + drift * (time - epoch), and how well it is known. */
struct ts_clock_line {
	int64_t epoch, offset;
	double drift;
	double drift_slack; /* how far off the drift may be */
	int64_t from, to;   /* range of the samples */
	int64_t spread;     /* at most how far nearly all samples are off it */
	int64_t bound;      /* how far off it may be at most, by causality; TS_ABSENT: unbounded */
	uint64_t points, outliers;
};

/* Sorts the samples by time. `resolution`: what times are multiples of. count > 0. */
int ts_clock_fit(struct ts_clock_line *ret_line, struct ts_clock_sample *samples, size_t count,
		 int64_t resolution, struct ts_error *err);

/* How far off the line may be anywhere in [from, to]. */
int64_t ts_clock_line_uncertainty(const struct ts_clock_line *line, int64_t from, int64_t to);

/* The line of the other direction: from the first clock to the second. */
struct ts_clock_line ts_clock_line_inverse(const struct ts_clock_line *line);

/* Devices against their hosts: fills clocks->devices. */
int ts_clock_alignment_fit_devices(struct ts_clock_alignment *clocks, const struct ts_work *work,
			  struct ts_error *err);

#endif
