/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analyses: each answers one question about the work of a job (docs/analyze.md).
 *
 *	const struct ts_option_value wait = { "wait", "20us" };
 *	const struct ts_selection selection = { .size = sizeof(selection), .steps = "3-5" };
 *	const struct ts_analyze_options options = {
 *		.size = sizeof(options),
 *		.selection = &selection,
 *		.options = &wait,
 *		.option_count = 1,
 *	};
 *
 *	if (ts_analyze(job, "idle", &options, &result, &err))
 *		return fail(err.message);
 *	... result.h ...
 *	ts_result_free(result);
 *
 * Threads: a job is used by one thread at a time; analyses of different jobs may run at once.
 * Callbacks run on the calling thread.
 */
#ifndef TRACESMITH_ANALYZE_H
#define TRACESMITH_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/open.h>
#include <tracesmith/result.h>
#include <tracesmith/selection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero in any member means its default. `size` is sizeof(struct ts_analyze_options). */
struct ts_analyze_options {
	size_t size;
	const struct ts_selection *selection; /* NULL: the default */
	/* Options of the analysis: see ts_analysis_option(). */
	const struct ts_option_value *options;
	size_t option_count;
	/*
	 * Called from time to time while rows are loaded, with rows done and in total; return
	 * nonzero to cancel with TS_ECANCELED.
	 */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/*
 * Runs an analysis (its name or alias) on a job. Times of several ranks are aligned first if the
 * analysis compares them. The job keeps the loaded work for the next analysis of the same
 * selection, until it is closed or another trace is added. `options` may be NULL.
 *
 * An unknown analysis or option, or a bad value, is TS_EINVAL; a step, span or rank that is not in
 * the traces TS_ENOTFOUND. Finding no rows is not an error: a note says what is missing.
 */
int ts_analyze(struct ts_job *job, const char *analysis, const struct ts_analyze_options *options,
	       struct ts_result **ret_result, struct ts_error *err);

/* Frees the work that the job keeps in memory. */
void ts_job_forget(struct ts_job *job);

/* ---- the list of analyses ---- */

struct ts_analysis;

/* In the order of `tracesmith analyze --list`; NULL at the end. */
const struct ts_analysis *ts_analysis_at(size_t index);

/* By name or alias; NULL: none. */
const struct ts_analysis *ts_analysis_find(const char *name);

const char *ts_analysis_name(const struct ts_analysis *analysis);
const char *ts_analysis_summary(const struct ts_analysis *analysis); /* one line */
const char *ts_analysis_alias(const struct ts_analysis *analysis);   /* NULL: none */

struct ts_option_info {
	const char *name;  /* without dashes */
	const char *value; /* what the value is ("TIME"); NULL: a flag */
	const char *doc;   /* one line, with the default */
};

/* The option at this index; false: there are no more. */
bool ts_analysis_option(const struct ts_analysis *analysis, size_t index,
			struct ts_option_info *ret_option);

#ifdef __cplusplus
}
#endif

#endif
