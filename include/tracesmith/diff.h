/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two jobs by name: which kernels, copies, operators, annotations and calls are new, gone,
 * slower or faster (docs/analyze.md, "diff").
 *
 *	enum ts_diff_outcome outcome;
 *	if (ts_diff(before, after, NULL, &outcome, &result, &err))
 *		return fail(err.message);
 *	if (outcome == TS_DIFF_DIFFERENT)
 *		... the tables "summary", "counts" and "changes" of `result` ...
 *	ts_result_free(result);
 *
 * Threads: as in analyze.h; both jobs are used by the call.
 */
#ifndef TRACESMITH_DIFF_H
#define TRACESMITH_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/open.h>
#include <tracesmith/result.h>
#include <tracesmith/selection.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ts_diff_outcome {
	TS_DIFF_IDENTICAL, /* the same instances of the same names, with the same durations */
	TS_DIFF_ALIKE,     /* every name is unchanged or unclear */
	TS_DIFF_DIFFERENT,
};

/* Zero in any member means its default. `size` is sizeof(struct ts_diff_options). */
struct ts_diff_options {
	size_t size;
	const struct ts_selection *selection; /* of both jobs; from and to are ignored */
	/*
	 * Options of `tracesmith diff` by name: "steps-b" (the steps of B, if numbered
	 * differently), "device" (gpu, cpu or all), "threshold" (percent), "min-change" (a time),
	 * "python" (a flag: compare Python functions, too).
	 */
	const struct ts_option_value *options;
	size_t option_count;
	/* As in struct ts_analyze_options; once for each job. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/*
 * Compares job A with job B. TS_ENOTFOUND: neither has a name to compare. `options` may be NULL; on
 * failure both outputs are untouched.
 */
int ts_diff(struct ts_job *a, struct ts_job *b, const struct ts_diff_options *options,
	    enum ts_diff_outcome *ret_outcome, struct ts_result **ret_result, struct ts_error *err);

#ifdef __cplusplus
}
#endif

#endif
