/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differences between two traces, name by name: kernels, copies and fills on devices; operators,
 * annotations and calls on the host. docs/analyze.md, section "diff", defines each number and
 * verdict.
 */
#ifndef TS_ANALYZE_COMPARE_COMPARE_H
#define TS_ANALYZE_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include <tracesmith/error.h>

#include "analyze/result.h"
#include "state/work/work.h"

/*
 * What a comparison of host names needs of the work; TS_WORK_PYTHON adds Python
 * functions.
 */
#define TS_COMPARE_LOAD_FLAGS TS_WORK_SLICES

#define TS_COMPARE_GPU 1u
#define TS_COMPARE_CPU 2u

/* A change is significant if its p-value, corrected for the number of names, is below this. */
#define TS_COMPARE_LEVEL 0.05
/* Steps, and instances of a name, that both sides must have for a test. */
#define TS_COMPARE_STEPS 3
#define TS_COMPARE_INSTANCES 5
/* Percent: an insignificant change beyond this is unclear, a smaller one is no change. */
#define TS_COMPARE_UNCLEAR 5
/* Defaults of the options below. */
#define TS_COMPARE_THRESHOLD 1
#define TS_COMPARE_LEAST_NS 1000

struct ts_compare_options {
	unsigned int sides; /* TS_COMPARE_*; 0: all */
	double threshold;   /* percent: ignore changes up to this */
	int64_t least_ns;   /* ignore changes of a name's time per step up to this */
	size_t top;         /* rows of changes in text; 0: all */
	bool brief;         /* output is text: of identical traces only a note */
	/* Names of the traces of A and of B, in the order of ts_work_add(). NULL: not shown. */
	char *const *files[2];
};

enum ts_verdict {
	TS_VERDICT_UNCHANGED,
	TS_VERDICT_UNCLEAR, /* a large change that is not significant */
	TS_VERDICT_ADDED,
	TS_VERDICT_GONE,
	TS_VERDICT_SLOWER,
	TS_VERDICT_FASTER,
	TS_VERDICT_MORE,  /* more instances: their number changed by more than their duration */
	TS_VERDICT_FEWER, /* fewer instances */
	TS_VERDICT_COUNT
};
const char *ts_verdict_name(enum ts_verdict verdict);

enum ts_compare_outcome {
	TS_COMPARE_NOTHING,   /* neither side has a name */
	TS_COMPARE_IDENTICAL, /* the same instances of the same names, with the same durations */
	TS_COMPARE_ALIKE,     /* every name is unchanged or unclear */
	TS_COMPARE_DIFFERENT,
};

/*
 * May the last steps stay out, as the default selection of both works has it? Otherwise the works
 * have to be loaded with all steps: parts that do not correspond would be compared, or a single
 * step.
 */
bool ts_compare_may_leave_out(const struct ts_work *a, const struct ts_work *b);

/*
 * Fills `result` with the tables summary, counts and changes. Both works must be finished, with
 * TS_COMPARE_LOAD_FLAGS if host names are compared.
 */
int ts_compare(const struct ts_work *a, const struct ts_work *b,
	       const struct ts_compare_options *options, struct ts_result *result,
	       enum ts_compare_outcome *ret_outcome, struct ts_error *err);

#endif
