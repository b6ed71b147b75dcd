/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a job, loaded for a selection, and what questions about it have computed. A job keeps
 * the last one, since the next question is most likely about the same work.
 */
#ifndef TS_ANALYZE_JOB_WORK_H
#define TS_ANALYZE_JOB_WORK_H

#include <tracesmith/open.h>
#include <tracesmith/selection.h>

#include "analyze/analyze.h"
#include "base/text.h"

/* ---- loading ---- */

/* Adds the rows of all traces, with the progress of `options`. ts_job_work_finish() is next. */
int ts_job_work_add(struct ts_work **ret_work, const struct ts_job *job,
		    const struct ts_work_options *options, struct ts_error *err);

/* Joins and sorts; also reports what went wrong in the readers. */
int ts_job_work_finish(struct ts_work *work, const struct ts_job *job, struct ts_error *err);

/* ---- kept work ---- */

struct ts_job_work {
	unsigned int references; /* the job's and those of cursors */
	struct ts_selection selection;
	struct ts_text key; /* the selection as text, which decides what is equal */
	unsigned int load_flags;
	struct ts_analyze_request request;
	/* NULL: not aligned. */
	const struct ts_clock_alignment *clocks;
	struct ts_arena arena; /* of the selection's texts and ranks */
};

struct ts_job_work_options {
	const struct ts_selection *selection; /* complete */
	unsigned int load_flags;
	/* Nothing else may be loaded: whoever asks cannot leave it out. */
	bool exactly;
	/* With aligned clocks, or with times as in the traces. */
	bool aligned;
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/*
 * The work of the job as asked; loads it if the job does not have it. The caller puts it back, at
 * the latest before the job is closed.
 */
int ts_job_work_get(struct ts_job_work **ret_work, struct ts_job *job,
		    const struct ts_job_work_options *options, struct ts_error *err);
void ts_job_work_put(struct ts_job_work *work); /* accepts NULL */
TS_DEFINE_AUTO(ts_job_work, ts_job_work_put);

#endif
