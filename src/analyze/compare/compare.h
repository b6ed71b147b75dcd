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

/* The part of the work that a comparison of host names needs; TS_WORK_PYTHON adds functions. */
#define TS_COMPARE_PARTS TS_WORK_SLICES

#define TS_COMPARE_GPU 1u
#define TS_COMPARE_CPU 2u

/* A change is called significant below this probability, corrected for the number of names. */
#define TS_COMPARE_LEVEL 0.05
/* Steps, and instances of a name, that both sides must have for a test. */
#define TS_COMPARE_STEPS 3
#define TS_COMPARE_INSTANCES 5
/* Per cent: a change beyond this that may be chance is called unclear, a smaller one none. */
#define TS_COMPARE_UNCLEAR 5

struct ts_compare_options {
	unsigned int sides; /* TS_COMPARE_*; 0: all */
	bool short_names; /* template and call arguments, and addresses, do not tell names apart */
	double threshold; /* per cent: a smaller change is none */
	size_t top;       /* rows of changes in text; 0: all */
};

enum ts_verdict {
	TS_VERDICT_UNCHANGED,
	TS_VERDICT_UNCLEAR, /* a large change that may well be chance */
	TS_VERDICT_ADDED,
	TS_VERDICT_GONE,
	TS_VERDICT_SLOWER,
	TS_VERDICT_FASTER,
	TS_VERDICT_MORE,  /* happens more often; its duration is not known to have changed */
	TS_VERDICT_FEWER, /* happens less often */
	TS_VERDICT_COUNT
};
const char *ts_verdict_name(enum ts_verdict verdict);

/*
 * Fills `result` with the tables summary, counts and changes. *ret_differs: some name is neither
 * unchanged nor unclear. Both works must be finished, with TS_COMPARE_PARTS where host names are
 * asked for.
 */
int ts_compare(const struct ts_work *a, const struct ts_work *b,
	       const struct ts_compare_options *options, struct ts_result *result,
	       bool *ret_differs, struct ts_error *err);

/*
 * A name without what tells instances of one template apart: arguments in <> and (), a leading
 * "void ", digits of addresses. "(anonymous namespace)" stays. Writes at most `length` bytes to
 * `buffer`, returns how many.
 */
size_t ts_compare_short_name(const char *name, size_t length, char *buffer);

#endif
