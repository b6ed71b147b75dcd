/* SPDX-License-Identifier: Apache-2.0 */
/* The table of analyses from analyses.def, and lookup by name. */
#include <string.h>

#include "analyze/analyze.h"

static const struct ts_analysis *const analyses[] = {
#define ANALYSIS(name) &ts_analysis_##name,
#include "analyze/analyses.def"
#undef ANALYSIS
};

const struct ts_analysis *const *ts_analysis_table(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(analyses);
	return analyses;
}

static bool is_name(const char *name, const char *text, size_t length)
{
	return name && strlen(name) == length && !memcmp(name, text, length);
}

const struct ts_analysis *ts_analysis_lookup(const char *text, size_t length)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(analyses); i++) {
		if (is_name(analyses[i]->name, text, length) ||
		    is_name(analyses[i]->alias, text, length))
			return analyses[i];
	}
	return NULL;
}
