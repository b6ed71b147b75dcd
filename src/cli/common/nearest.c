/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edit distance between words: letters added, dropped, changed, or swapped with their neighbour
 * (optimal string alignment).
 */
#include <string.h>

#include <tracesmith/schema.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/common/nearest.h"
#include "cli/common/report.h"

#define MAX_LETTERS 32

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t least = TS_MIN(a, b);

	return TS_MIN(least, c);
}

/* Words longer than MAX_LETTERS match nothing. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][MAX_LETTERS + 1], *before = rows[0], *last = rows[1], *now = rows[2];
	size_t a_length = strlen(a), b_length = strlen(b);

	if (a_length > MAX_LETTERS || b_length > MAX_LETTERS)
		return MAX_LETTERS;
	for (size_t j = 0; j <= b_length; j++)
		before[j] = last[j] = now[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *freed = before;

		now[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			now[j] = smallest(last[j] + 1, now[j - 1] + 1,
					  last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = TS_MIN(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = freed;
	}
	return last[b_length];
}

void ts_nearest_init(struct ts_nearest *nearest, const char *wanted)
{
	*nearest = (struct ts_nearest){ .wanted = wanted, .distance = MAX_LETTERS };
}

void ts_nearest_offer(struct ts_nearest *nearest, const char *candidate)
{
	size_t length = strlen(nearest->wanted), far = distance(nearest->wanted, candidate);

	/* A prefix is the best match. */
	if (length > 1 && !strncmp(nearest->wanted, candidate, length))
		far = 0;
	/* At most a third of the letters may be wrong. */
	if (far * 3 > TS_MAX(length, strlen(candidate)) || far >= nearest->distance)
		return;
	nearest->best = candidate;
	nearest->distance = far;
}

int ts_report_unknown_table(const char *name)
{
	TS_SCOPED(ts_text) names = { 0 };
	struct ts_nearest nearest;

	ts_nearest_init(&nearest, name);
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		if (!ts_table_info(id) || id == TS_TABLE_INDEX)
			continue;
		ts_nearest_offer(&nearest, ts_table_info(id)->name);
		ts_text_printf(&names, "%s%s", names.length ? ", " : "", ts_table_info(id)->name);
	}
	if (nearest.best)
		return ts_report_usage("there is no table '%s'; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("there is no table '%s'; the tables are %s", name,
			       ts_text_cstr(&names));
}
