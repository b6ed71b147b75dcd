/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps are outliers: `steps` marks them, `advice` counts what they cost. */
#ifndef TS_ANALYZE_STEPS_H
#define TS_ANALYZE_STEPS_H

#include "analyze/statistics.h"
#include "state/work/work.h"

struct ts_step_spread {
	struct ts_description durations; /* ns */
	double limit; /* a step that exceeds the median by more than this is an outlier */
};

/* Of the steps of a rank; `scratch` has an element for each. */
void ts_steps_measure_spread(const struct ts_work *work, const struct ts_work_rank *rank,
			     double *scratch, struct ts_step_spread *ret);
bool ts_step_is_outlier(const struct ts_step_spread *spread, const struct ts_work_step *step);

#endif
