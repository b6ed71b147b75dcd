/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an analysis for callers of the library, and says which there are. */
#include <string.h>

#include <tracesmith/analyze.h>

#include "analyze/analyze.h"
#include "analyze/job_work.h"
#include "analyze/selection.h"
#include "open/job.h"

/* ---- what there is ---- */

const struct ts_analysis *ts_analysis_at(size_t index)
{
	size_t count;
	const struct ts_analysis *const *analyses = ts_analysis_table(&count);

	return index < count ? analyses[index] : NULL;
}

const struct ts_analysis *ts_analysis_find(const char *name)
{
	return ts_analysis_lookup(name, strlen(name));
}

const char *ts_analysis_name(const struct ts_analysis *analysis)
{
	return analysis->name;
}

const char *ts_analysis_summary(const struct ts_analysis *analysis)
{
	return analysis->summary;
}

const char *ts_analysis_alias(const struct ts_analysis *analysis)
{
	return analysis->alias;
}

/* Of all analyses; `tracesmith analyze` has it, too. */
static const struct ts_option_spec common[] = {
	{
		.name = "top",
		.type = TS_OPTION_SPEC_INTEGER,
		.value = "N",
		.doc = "at most this many rows, where an analysis computes only the first ones",
		.offset = offsetof(struct ts_analysis_options, top),
		.minimum = 1,
		.maximum = INT32_MAX,
	},
};

bool ts_analysis_option(const struct ts_analysis *analysis, size_t index,
			struct ts_option_info *ret_option)
{
	const struct ts_option_spec *spec;

	if (index >= analysis->option_count + TS_ARRAY_SIZE(common))
		return false;
	spec = index < analysis->option_count ? &analysis->options[index]
					      : &common[index - analysis->option_count];
	*ret_option = (struct ts_option_info){
		.name = spec->name,
		.value = spec->type == TS_OPTION_SPEC_FLAG ? NULL : spec->value,
		.doc = spec->doc,
	};
	return true;
}

/* ---- options ---- */

static int unknown_option(const struct ts_analysis *analysis, const char *name,
			  struct ts_error *err)
{
	TS_SCOPED(ts_text) names = { 0 };
	struct ts_option_info option;

	for (size_t i = 0; ts_analysis_option(analysis, i, &option); i++)
		ts_text_printf(&names, "%s%s", i ? ", " : "", option.name);
	return ts_error_set(err, TS_EINVAL, "analysis '%s' has no option '%s'; it has %s",
			    analysis->name, name, ts_text_cstr(&names));
}

static int store_options(const struct ts_analysis *analysis,
			 const struct ts_analyze_options *options,
			 struct ts_analysis_options *stored, struct ts_error *err)
{
	int rc = TS_OK;

	for (size_t i = 0; i < options->option_count && !rc; i++) {
		const struct ts_option_value *option = &options->options[i];
		const struct ts_option_spec *spec = ts_option_spec_find(
			analysis->options, analysis->option_count, option->name);

		if (!spec)
			spec = ts_option_spec_find(common, TS_ARRAY_SIZE(common), option->name);
		rc = spec ? ts_option_spec_store(spec, option->value, stored, err)
			  : unknown_option(analysis, option->name, err);
	}
	return rc;
}

static int unknown_analysis(const char *name, struct ts_error *err)
{
	TS_SCOPED(ts_text) names = { 0 };

	for (size_t i = 0; ts_analysis_at(i); i++)
		ts_text_printf(&names, "%s%s", i ? ", " : "", ts_analysis_at(i)->name);
	return ts_error_set(err, TS_EINVAL, "there is no analysis '%s'; analyses are %s", name,
			    ts_text_cstr(&names));
}

/* ---- run ---- */

static void note_clocks(const struct ts_job_work *work, struct ts_result *result)
{
	TS_SCOPED(ts_text) aligned = { 0 };
	TS_SCOPED(ts_text) not_aligned = { 0 };

	if (!work->clocks)
		return;
	ts_selection_describe_clocks(work->request.work, work->clocks, &aligned, &not_aligned);
	ts_result_note(result, "%s", ts_text_cstr(&aligned));
	if (not_aligned.length)
		ts_result_note(result, "%s", ts_text_cstr(&not_aligned));
}

static int run(struct ts_job_work *work, struct ts_job *job, const struct ts_analysis *analysis,
	       const struct ts_analysis_options *options, struct ts_result *result,
	       struct ts_error *err)
{
	struct ts_analyze_request *request = &work->request;
	TS_SCOPED(ts_text) arguments = { 0 };
	int rc;

	ts_selection_append_arguments(&work->selection, job->names, job->count, &arguments);
	request->options = *options;
	request->options.rounding = request->work->options.rounding;
	request->options.traces = ts_text_cstr(&arguments);
	/* It depends on the options. */
	request->best_kernel.known = false;
	rc = analysis->run(request, result, err);
	request->options = (struct ts_analysis_options)TS_ANALYSIS_OPTIONS_DEFAULT;
	if (!rc && analysis->flags & TS_ANALYSIS_ALIGNED)
		note_clocks(work, result);
	return rc ? rc : ts_result_status(result, err);
}

int ts_analyze(struct ts_job *job, const char *analysis, const struct ts_analyze_options *options,
	       struct ts_result **ret_result, struct ts_error *err)
{
	const struct ts_analysis *found;
	struct ts_analysis_options stored = TS_ANALYSIS_OPTIONS_DEFAULT;
	struct ts_analyze_options complete = { 0 };
	struct ts_selection selection;
	struct ts_job_work_options work_options;
	TS_AUTO(ts_job_work) work = NULL;
	TS_AUTO(ts_result) result = NULL;
	int rc;

	if (!job || !analysis || !ret_result)
		return ts_error_set(err, TS_EINVAL, "an analysis needs a job and its name");
	found = ts_analysis_find(analysis);
	if (!found)
		return unknown_analysis(analysis, err);
	if (options)
		memcpy(&complete, options, TS_MIN(options->size, sizeof(complete)));
	selection = ts_selection_complete(complete.selection);
	rc = store_options(found, &complete, &stored, err);
	if (rc)
		return rc;
	work_options = (struct ts_job_work_options){
		.selection = &selection,
		.load_flags = found->load_flags,
		.aligned = found->flags & TS_ANALYSIS_ALIGNED,
		.progress = complete.progress,
		.context = complete.context,
	};
	rc = ts_job_work_get(&work, job, &work_options, err);
	if (!rc)
		rc = ts_result_new(&result, job->start, err);
	if (!rc)
		rc = run(work, job, found, &stored, result, err);
	if (!rc)
		*ret_result = TS_STEAL(result);
	return rc;
}
