/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that HTA takes for launches. It knows a few names, and different ones for each
 * analysis. `--rounding hta` must leave out what HTA leaves out (graphs, cooperative launches, many
 * of AMD's calls).
 */
#ifndef TS_ANALYZE_HTA_HTA_CALLS_H
#define TS_ANALYZE_HTA_HTA_CALLS_H

#include "state/work/work.h"

#define TS_HTA_LAUNCH 1u /* counted in its launch statistics */
#define TS_HTA_QUEUE 2u  /* increases its queue length */

#define TS_HTA_CALLS_MAX 16

struct ts_hta_calls {
	uint32_t names[TS_HTA_CALLS_MAX]; /* texts of the work */
	uint32_t count;
};

/* The calls for `use`, a TS_HTA_* value. Nothing to release. */
void ts_hta_calls_init(struct ts_hta_calls *calls, const struct ts_work *work, unsigned int use);

static inline bool ts_hta_calls_have(const struct ts_hta_calls *calls, uint32_t name)
{
	for (uint32_t i = 0; i < calls->count; i++)
		if (calls->names[i] == name)
			return true;
	return false;
}

#endif
