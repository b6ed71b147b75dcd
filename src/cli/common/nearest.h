/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": finds the word nearest to a misspelt one. */
#ifndef TS_CLI_COMMON_NEAREST_H
#define TS_CLI_COMMON_NEAREST_H

#include <stddef.h>

struct ts_nearest {
	const char *wanted;
	const char *best; /* NULL: no candidate is near enough; borrowed */
	size_t distance;
};

void ts_nearest_init(struct ts_nearest *nearest, const char *wanted);

/* Of equally near words the first one offered wins. */
void ts_nearest_offer(struct ts_nearest *nearest, const char *candidate);

/* Reports that a trace has no table of this name, with the nearest one. Returns the exit code. */
int ts_report_unknown_table(const char *name);

#endif
