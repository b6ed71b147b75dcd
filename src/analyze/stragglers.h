/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank makes the others wait in collectives: the numbers of `stragglers`, for `advice`. */
#ifndef TS_ANALYZE_STRAGGLERS_H
#define TS_ANALYZE_STRAGGLERS_H

#include "analyze/analyze.h"

/* The rank for which the others waited longest. */
struct ts_straggler {
	uint32_t rank;       /* index */
	uint32_t times_last; /* arrivals within clock uncertainty do not count */
	int64_t lost_by_others;
	int64_t lost;         /* waiting for any rank; 0: nobody waited */
	uint32_t collectives; /* matched across ranks */
};

int ts_stragglers_find_worst(struct ts_analyze_request *request, struct ts_straggler *ret_worst,
			     struct ts_error *err);

#endif
