/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the work of a job, and keeps it for the next question. */
#include "analyze/job_work.h"

#include <stdlib.h>
#include <string.h>

#include <tracesmith/analyze.h>

#include "analyze/selection.h"
#include "open/job.h"

/* ---- loading ---- */

int ts_job_work_add(struct ts_work **ret_work, const struct ts_job *job,
		    const struct ts_work_options *options, struct ts_error *err)
{
	TS_AUTO(ts_work) work = NULL;
	int rc = ts_work_new(&work, options, err);

	for (size_t i = 0; !rc && i < ts_job_count(job); i++)
		rc = ts_work_add(work, ts_job_reader(job, i), err);
	if (rc)
		return rc;
	/* Finishing does not report progress, and neither do those who load more later. */
	work->options.progress = NULL;
	work->options.context = NULL;
	*ret_work = TS_STEAL(work);
	return TS_OK;
}

int ts_job_work_finish(struct ts_work *work, const struct ts_job *job, struct ts_error *err)
{
	int rc = ts_work_finish(work, err);

	for (size_t i = 0; !rc && i < ts_job_count(job); i++)
		rc = ts_reader_status(ts_job_reader(job, i), err);
	return rc;
}

/* ---- kept work ---- */

void ts_job_work_put(struct ts_job_work *work)
{
	struct ts_work *loaded;

	if (!work || --work->references)
		return;
	loaded = work->request.work;
	ts_analyze_request_release(&work->request);
	ts_work_free(loaded);
	ts_text_release(&work->key);
	ts_arena_release(&work->arena);
	free(work);
}

static void put_kept(void *kept)
{
	ts_job_work_put(kept);
}

void ts_job_forget(struct ts_job *job)
{
	ts_job_keep(job, NULL, NULL);
}

static bool copy_text(struct ts_job_work *work, const char **text)
{
	if (*text)
		*text = ts_arena_strdup_len(&work->arena, *text, strlen(*text));
	return *text;
}

/* The caller's texts and ranks may be gone when the work is used again. */
static int copy_selection(struct ts_job_work *work, const struct ts_selection *selection)
{
	const char **texts[] = { &work->selection.steps, &work->selection.step_span,
				 &work->selection.from, &work->selection.to,
				 &work->selection.rounding };
	int64_t *ranks = NULL;

	work->selection = *selection;
	for (size_t i = 0; i < TS_ARRAY_SIZE(texts); i++)
		if (*texts[i] && !copy_text(work, texts[i]))
			return TS_ENOMEM;
	if (!selection->rank_count)
		return TS_OK;
	ranks = ts_arena_alloc(&work->arena, selection->rank_count * sizeof(*ranks));
	if (!ranks)
		return TS_ENOMEM;
	memcpy(ranks, selection->ranks, selection->rank_count * sizeof(*ranks));
	work->selection.ranks = ranks;
	return TS_OK;
}

static int load(struct ts_job_work *work, const struct ts_job *job,
		const struct ts_job_work_options *options, struct ts_error *err)
{
	const char *name = job->count ? job->names[0] : "";
	struct ts_work_options work_options;
	struct ts_work *loaded;
	int rc = ts_selection_options(&work->selection, job->start, &work_options, err);

	if (rc)
		return rc;
	work_options.load_flags = work->load_flags;
	work_options.progress = options->progress;
	work_options.context = options->context;
	rc = ts_job_work_add(&loaded, job, &work_options, err);
	if (rc)
		return rc;
	ts_analyze_request_init(&work->request, loaded);
	rc = ts_job_work_finish(loaded, job, err);
	return rc ? rc : ts_selection_check_found(&work->selection, loaded, name, err);
}

/* One reference, the caller's. */
static int load_new(struct ts_job_work **ret_work, struct ts_job *job, struct ts_text *key,
		    unsigned int load_flags, const struct ts_job_work_options *options,
		    struct ts_error *err)
{
	TS_AUTO(ts_job_work) work = calloc(1, sizeof(*work));
	int rc;

	if (!work)
		return ts_error_set(err, TS_ENOMEM, "no memory for the work of the job");
	work->references = 1;
	work->load_flags = load_flags;
	ts_arena_init(&work->arena);
	work->key = *key;
	*key = (struct ts_text){ 0 };
	if (copy_selection(work, options->selection))
		return ts_error_set(err, TS_ENOMEM, "no memory for the work of the job");
	rc = load(work, job, options, err);
	if (!rc)
		*ret_work = TS_STEAL(work);
	return rc;
}

static bool is_same(const struct ts_job_work *work, const struct ts_text *key)
{
	return work->key.length == key->length &&
	       (!key->length || !memcmp(work->key.data, key->data, key->length));
}

static int align(struct ts_job_work *work, const struct ts_job_work_options *options,
		 struct ts_error *err)
{
	if (!options->aligned || work->request.aligned)
		return TS_OK;
	return ts_selection_align(&work->selection, &work->request, &work->clocks, err);
}

int ts_job_work_get(struct ts_job_work **ret_work, struct ts_job *job,
		    const struct ts_job_work_options *options, struct ts_error *err)
{
	struct ts_job_work *kept = job->kept;
	TS_AUTO(ts_job_work) work = NULL;
	TS_SCOPED(ts_text) key = { 0 };
	unsigned int load_flags = options->load_flags;
	int rc = ts_selection_check(options->selection, err);

	if (rc)
		return rc;
	ts_selection_append_arguments(options->selection, NULL, 0, &key);
	if (ts_text_status(&key))
		return ts_error_set(err, TS_ENOMEM, "no memory for the work of the job");
	if (kept && is_same(kept, &key)) {
		load_flags |= options->exactly ? 0 : kept->load_flags;
		/* Times that were moved cannot be moved back. */
		if (load_flags == kept->load_flags && (options->aligned || !kept->request.aligned))
			work = kept;
	}
	if (work) {
		work->references++;
	} else {
		ts_job_forget(job);
		rc = load_new(&work, job, &key, load_flags, options, err);
		if (!work)
			return rc;
		work->references++;
		ts_job_keep(job, work, put_kept);
	}
	rc = align(work, options, err);
	if (!rc)
		*ret_work = TS_STEAL(work);
	return rc;
}
