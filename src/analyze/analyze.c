/* SPDX-License-Identifier: Apache-2.0 */
/* The table of analyses. Explicit: an analysis that is not listed here does not exist. */
#include <string.h>

#include "analyze/analyze.h"

/* clang-format off */
static const struct ts_analysis *const analyses[] = {
	&ts_analysis_breakdown,
	&ts_analysis_kernels,
	&ts_analysis_idle,
	&ts_analysis_overlap,
	&ts_analysis_launch,
	&ts_analysis_launches,
	&ts_analysis_queue,
	&ts_analysis_bandwidth,
	&ts_analysis_critical_path,
	&ts_analysis_stragglers,
	&ts_analysis_annotations,
	&ts_analysis_steps,
	&ts_analysis_memory,
	&ts_analysis_functions,
	&ts_analysis_advice,
};
/* clang-format on */

const struct ts_analysis *const *ts_analysis_list(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(analyses);
	return analyses;
}

const struct ts_analysis *ts_analysis_find(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(analyses); i++) {
		if (!strcmp(analyses[i]->name, name))
			return analyses[i];
	}
	return NULL;
}
