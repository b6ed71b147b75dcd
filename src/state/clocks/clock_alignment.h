/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How clocks stand to each other: ranks by matched collectives, devices by launches and
 * synchronisations. Offset and drift are estimated robustly, with an uncertainty (docs/state.md,
 * "Clocks").
 */
#ifndef TS_STATE_CLOCKS_CLOCK_ALIGNMENT_H
#define TS_STATE_CLOCKS_CLOCK_ALIGNMENT_H

#include "state/collectives/collectives.h"
#include "state/work/work.h"

/*
 * How a rank's clock, or a device's, stands to that of the reference (rank 0's; the device's host).
 */
struct ts_clock_estimate {
	uint32_t rank;
	uint32_t device;    /* TS_WORK_NONE: the rank's own clock */
	uint32_t domain;    /* ranks of equal domains share one clock */
	uint32_t reference; /* rank to whose clock this leads; another than clocks->reference where
			       nothing ties both */
	bool known;         /* false: nothing ties it to any other; the rest is 0 */
	int64_t epoch;      /* instant of the offset: middle of what was matched, trace time */
	int64_t offset_ns;  /* to be added to its times at epoch */
	double drift_ppb;   /* ns a second that the offset grows */
	int64_t uncertainty_ns; /* over the whole range of the trace; TS_ABSENT: unbounded */
	int64_t bound_ns; /* the most that causes before effects allow; TS_ABSENT: unbounded */
	uint64_t points, outliers;
	const char *method; /* "collectives", "launches and syncs" ... */
};

struct ts_clock_alignment {
	struct ts_clock_estimate *ranks; /* one a rank; the reference has offset 0, uncertainty 0 */
	struct ts_clock_estimate *devices; /* one a device */
	uint32_t reference;                /* rank index */
};

int ts_clock_alignment_new(struct ts_clock_alignment **ret_alignment, const struct ts_work *work,
		  const struct ts_collectives *collectives, struct ts_error *err);
void ts_clock_alignment_free(struct ts_clock_alignment *clocks);
TS_DEFINE_AUTO(ts_clock_alignment, ts_clock_alignment_free);

/*
 * Moves all times of each rank by its estimate and sets uncertainty_ns. Order inside a rank stays.
 */
void ts_clock_alignment_apply(const struct ts_clock_alignment *clocks, struct ts_work *work);

/*
 * How far times of two ranks may be off against each other once both are corrected; TS_ABSENT:
 * unknown. Ranks that share a clock are not off at all.
 */
int64_t ts_clock_alignment_uncertainty(const struct ts_clock_alignment *clocks, uint32_t rank, uint32_t other);

/*
 * Is a difference of times between two ranks more than what their clocks may be off? What is not
 * must be said to be so.
 */
bool ts_clock_alignment_can_tell(const struct ts_clock_alignment *clocks, uint32_t rank, uint32_t other,
			int64_t effect_ns);

/* The correction of an instant: time + offset + drift. Never reverses the order of two. */
int64_t ts_clock_estimate_apply(const struct ts_clock_estimate *estimate, int64_t time);

#endif
