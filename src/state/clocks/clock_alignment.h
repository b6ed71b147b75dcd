/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock alignment: ranks by matched collectives, devices by launches and synchronisations. Offset
 * and drift are robust estimates with an uncertainty (docs/state.md, "Clocks").
 */
#ifndef TS_STATE_CLOCKS_CLOCK_ALIGNMENT_H
#define TS_STATE_CLOCKS_CLOCK_ALIGNMENT_H

#include "state/collectives/collectives.h"
#include "state/work/work.h"

/*
 * Clock of a rank or device relative to the reference: the first rank that shares a collective with
 * another one, or the device's host.
 */
struct ts_clock_estimate {
	uint32_t rank;
	uint32_t device;    /* TS_WORK_NONE: the rank's clock */
	uint32_t domain;    /* ranks with equal domains share a clock */
	uint32_t reference; /* rank whose clock this maps to; differs from clocks->reference where
			       nothing links the two */
	bool known;         /* false: not linked to any other clock; the rest is 0 */
	int64_t epoch;      /* instant of the offset: middle of the matched range, trace time */
	int64_t offset_ns;  /* to add to its times at epoch */
	double drift_ppb;   /* growth of the offset, in ns per second */
	int64_t uncertainty_ns; /* over the entire trace; TS_ABSENT: unbounded */
	int64_t bound_ns;       /* largest error that causality allows; TS_ABSENT: unbounded */
	uint64_t points, outliers;
	const char *method; /* "collectives", "launches and syncs" ... */
};

struct ts_clock_alignment {
	struct ts_clock_estimate
		*ranks; /* one per rank; the reference has offset 0, uncertainty 0 */
	struct ts_clock_estimate *devices; /* one a device */
	uint32_t reference;                /* rank index */
};

int ts_clock_alignment_new(struct ts_clock_alignment **ret_alignment, const struct ts_work *work,
			   const struct ts_collectives *collectives, struct ts_error *err);
void ts_clock_alignment_free(struct ts_clock_alignment *clocks);
TS_DEFINE_AUTO(ts_clock_alignment, ts_clock_alignment_free);

/*
 * Shifts all times of each rank by its estimate and sets uncertainty_ns. Keeps the order within a
 * rank.
 */
void ts_clock_alignment_apply(const struct ts_clock_alignment *clocks, struct ts_work *work);

/*
 * Remaining uncertainty between the corrected times of two ranks; TS_ABSENT: unknown. 0 for ranks
 * that share a clock.
 */
int64_t ts_clock_alignment_uncertainty(const struct ts_clock_alignment *clocks, uint32_t rank,
				       uint32_t other);

/*
 * Is a time difference between two ranks larger than their clock uncertainty? If not, it must be
 * reported as such.
 */
bool ts_clock_alignment_can_resolve(const struct ts_clock_alignment *clocks, uint32_t rank,
				    uint32_t other, int64_t effect_ns);

/* Corrects an instant: time + offset + drift. Never reverses the order of two instants. */
int64_t ts_clock_estimate_apply(const struct ts_clock_estimate *estimate, int64_t time);

#endif
