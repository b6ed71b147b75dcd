/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the work of a job to analyze: steps, ranks, a time range. Used by analyze.h, diff.h and
 * state.h. Members have the meaning and default of the option of `tracesmith analyze` of the same
 * name.
 *
 *	struct ts_selection selection = { .size = sizeof(selection), .steps = "3-5" };
 */
#ifndef TRACESMITH_SELECTION_H
#define TRACESMITH_SELECTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_SELECT_ALL 1u         /* all steps, including the last one */
#define TS_SELECT_NO_ALIGN 2u    /* do not align the clocks of the ranks */
#define TS_SELECT_SHORT_NAMES 4u /* names of kernels and operators without arguments */

/* NULL and zero mean the default. `size` is sizeof(struct ts_selection). */
struct ts_selection {
	size_t size;
	unsigned int flags; /* TS_SELECT_* */
	/*
	 * Work issued in these steps: "3", "3-5" or "all"; default: all but the last one, which is
	 * often incomplete.
	 */
	const char *steps;
	/* Spans of this name are the steps; default: ProfilerStep#N, else TS_STEP(). */
	const char *step_span;
	/*
	 * Work issued in [from, to): "1.5ms" after the start of the job, or "@" and ns of trace
	 * time.
	 */
	const char *from, *to;
	const char *rounding; /* "exact" (default), or "hta": as HTA, to compare with it */
	const int64_t *ranks; /* only these; rank_count 0: all */
	size_t rank_count;
};

/* An option by its name without dashes, and its value as on the command line; NULL for a flag. */
struct ts_option_value {
	const char *name;
	const char *value;
};

#ifdef __cplusplus
}
#endif

#endif
