/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a comparison as text, for <tracesmith/diff.h> and `tracesmith diff`. */
#ifndef TS_ANALYZE_COMPARE_COMPARE_CHOICE_H
#define TS_ANALYZE_COMPARE_COMPARE_CHOICE_H

#include "analyze/compare/compare.h"
#include "base/option_spec.h"

/* NULL: the default. */
struct ts_compare_choice {
	const char *steps_b;    /* steps of B; NULL: those of A */
	const char *device;     /* "gpu", "cpu", "all" */
	const char *threshold;  /* "5", "0.5", "5%" */
	const char *min_change; /* "500ns", "2us"; "0": none */
	bool python;
};

/* Into a struct ts_compare_choice. */
const struct ts_option_spec *ts_compare_choice_specs(size_t *ret_count);

/* Sets sides, threshold and least_ns. 0, or TS_EINVAL. */
int ts_compare_choice_parse(const struct ts_compare_choice *choice,
			    struct ts_compare_options *options, struct ts_error *err);

/* What has to be loaded, TS_WORK_*. */
unsigned int ts_compare_choice_load_flags(const struct ts_compare_choice *choice,
					  const struct ts_compare_options *options);

/* TS_ENOTFOUND for TS_COMPARE_NOTHING: "no difference" would be misleading. */
int ts_compare_nothing(const struct ts_compare_options *options, struct ts_error *err);

#endif
