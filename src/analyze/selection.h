/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a selection (<tracesmith/selection.h>) means for the work of a job. The verbs analyze,
 * state, align and diff, and the functions of the library, select by the same code. Messages name
 * options as on the command line.
 */
#ifndef TS_ANALYZE_SELECTION_H
#define TS_ANALYZE_SELECTION_H

#include <tracesmith/selection.h>

#include "analyze/analyze.h"
#include "base/text.h"

/* A complete copy: members beyond the caller's size are zero. NULL: the default. */
struct ts_selection ts_selection_complete(const struct ts_selection *selection);

/* What is wrong whatever the traces: TS_EINVAL. */
int ts_selection_check(const struct ts_selection *selection, struct ts_error *err);

/*
 * The options that load it; times count from `start`. They borrow from the selection. `load_flags`
 * and the progress are up to the caller.
 */
int ts_selection_options(const struct ts_selection *selection, int64_t start,
			 struct ts_work_options *ret_options, struct ts_error *err);

/*
 * A missing rank or step is most likely a typo, and an empty result would hide it: TS_ENOTFOUND.
 * `path`: a trace, for the message.
 */
int ts_selection_check_found(const struct ts_selection *selection, const struct ts_work *work,
			     const char *path, struct ts_error *err);

/*
 * The operands and options that select the same work again, quoted for a shell: "'my run.sbt'
 * --steps 3". If there are many traces only the first ones are named, then "...".
 */
void ts_selection_append_arguments(const struct ts_selection *selection, const char *const *paths,
				   size_t count, struct ts_text *out);

/*
 * Aligns the clocks of several ranks by their collectives, unless the selection says otherwise or
 * there are none: then *ret_clocks is NULL. Drops what `request` computed from the old times.
 */
int ts_selection_align(const struct ts_selection *selection, struct ts_analyze_request *request,
		       const struct ts_clock_alignment **ret_clocks, struct ts_error *err);

/* Offsets and uncertainty as a sentence; and one about ranks that were not aligned, if any. */
void ts_selection_describe_clocks(const struct ts_work *work,
				  const struct ts_clock_alignment *clocks, struct ts_text *aligned,
				  struct ts_text *not_aligned);

#endif
