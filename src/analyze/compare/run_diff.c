/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two jobs for callers of the library. */
#include <string.h>

#include <tracesmith/diff.h>

#include "analyze/compare/compare_choice.h"
#include "analyze/job_work.h"
#include "analyze/selection.h"
#include "open/job.h"

struct diff {
	struct ts_job *jobs[2];
	struct ts_selection selections[2];
	struct ts_compare_choice choice;
	struct ts_compare_options compare;
	struct ts_diff_options options;
	struct ts_job_work *works[2];
};

static void release(struct diff *diff)
{
	ts_job_work_put(diff->works[0]);
	ts_job_work_put(diff->works[1]);
}

static int store_options(struct diff *diff, struct ts_error *err)
{
	size_t count;
	const struct ts_option_spec *specs = ts_compare_choice_specs(&count), *spec;
	int rc = TS_OK;

	for (size_t i = 0; i < diff->options.option_count && !rc; i++) {
		const struct ts_option_value *option = &diff->options.options[i];

		spec = ts_option_spec_find(specs, count, option->name);
		rc = spec ? ts_option_spec_store(spec, option->value, &diff->choice, err)
			  : ts_error_set(err, TS_EINVAL,
					 "there is no option '%s'; options are steps-b, device, "
					 "threshold, min-change and python",
					 option->name);
	}
	return rc ? rc : ts_compare_choice_parse(&diff->choice, &diff->compare, err);
}

static int get_work(struct diff *diff, int side, struct ts_error *err)
{
	const struct ts_job_work_options options = {
		.selection = &diff->selections[side],
		.load_flags = ts_compare_choice_load_flags(&diff->choice, &diff->compare),
		.exactly = true, /* Python functions are compared if they are loaded */
		.progress = diff->options.progress,
		.context = diff->options.context,
	};
	struct ts_job_work *work;
	int rc = ts_job_work_get(&work, diff->jobs[side], &options, err);

	if (rc) {
		ts_error_prefix(err, "%s", side ? "B" : "A");
		return rc;
	}
	ts_job_work_put(diff->works[side]);
	diff->works[side] = work;
	return TS_OK;
}

static bool leaves_out_last_step(const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->rank_count; i++)
		if (ts_work_leaves_out_last_step(work, i))
			return true;
	return false;
}

/* As the default of the verb: without the last steps only if that leaves enough to compare. */
static int get_works(struct diff *diff, struct ts_error *err)
{
	int rc = get_work(diff, 0, err);

	if (!rc)
		rc = get_work(diff, 1, err);
	if (rc || diff->choice.steps_b ||
	    ts_compare_may_leave_out(diff->works[0]->request.work, diff->works[1]->request.work))
		return rc;
	for (int side = 0; side < 2 && !rc; side++) {
		if (!leaves_out_last_step(diff->works[side]->request.work))
			continue;
		diff->selections[side].flags |= TS_SELECT_ALL;
		rc = get_work(diff, side, err);
	}
	return rc;
}

static enum ts_diff_outcome outcome_of(enum ts_compare_outcome outcome)
{
	switch (outcome) {
	case TS_COMPARE_IDENTICAL:
		return TS_DIFF_IDENTICAL;
	case TS_COMPARE_ALIKE:
		return TS_DIFF_ALIKE;
	default:
		return TS_DIFF_DIFFERENT;
	}
}

static int compare(struct diff *diff, enum ts_diff_outcome *ret_outcome,
		   struct ts_result **ret_result, struct ts_error *err)
{
	enum ts_compare_outcome outcome = TS_COMPARE_NOTHING;
	TS_AUTO(ts_result) result = NULL;
	int rc = ts_result_new(&result, 0, err);

	if (!rc)
		rc = ts_compare(diff->works[0]->request.work, diff->works[1]->request.work,
				&diff->compare, result, &outcome, err);
	if (!rc)
		rc = ts_result_status(result, err);
	if (!rc && outcome == TS_COMPARE_NOTHING)
		rc = ts_compare_nothing(&diff->compare, err);
	if (rc)
		return rc;
	if (ret_outcome)
		*ret_outcome = outcome_of(outcome);
	*ret_result = TS_STEAL(result);
	return TS_OK;
}

int ts_diff(struct ts_job *a, struct ts_job *b, const struct ts_diff_options *options,
	    enum ts_diff_outcome *ret_outcome, struct ts_result **ret_result, struct ts_error *err)
{
	struct diff diff = { .jobs = { a, b } };
	int rc;

	if (!a || !b || !ret_result)
		return ts_error_set(err, TS_EINVAL, "a comparison needs two jobs");
	if (options)
		memcpy(&diff.options, options, TS_MIN(options->size, sizeof(diff.options)));
	rc = store_options(&diff, err);
	if (rc)
		return rc;
	for (int side = 0; side < 2; side++) {
		diff.selections[side] = ts_selection_complete(diff.options.selection);
		diff.selections[side].from = diff.selections[side].to = NULL;
		diff.compare.files[side] = (char *const *)diff.jobs[side]->names;
	}
	if (diff.choice.steps_b)
		diff.selections[1].steps = diff.choice.steps_b;
	rc = get_works(&diff, err);
	if (!rc)
		rc = compare(&diff, ret_outcome, ret_result, err);
	release(&diff);
	return rc;
}
