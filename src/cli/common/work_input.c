/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a job for verbs: parses the options that select a part of it, and opens the traces. */
#include "cli/common/work_input.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/job_work.h"
#include "analyze/selection.h"
#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/trace_input.h"
#include "open/job.h"

void ts_work_choice_release(struct ts_work_choice *choice)
{
	ts_string_list_release(&choice->ranks);
	ts_string_list_release(&choice->processes);
}

/* ---- what is selected ---- */

static int report_bad(int rc, const struct ts_error *err)
{
	if (!rc)
		return TS_EXIT_DONE;
	return rc == TS_EINVAL ? ts_report_usage("%s", err->message) : ts_report_error(err);
}

/* *ret_ranks is borrowed by the selection. Its numbers that are none are 0, and reported later. */
static struct ts_selection selection_of(const struct ts_work_choice *choice, int64_t **ret_ranks)
{
	const struct ts_string_list *list = &choice->ranks;
	int64_t *ranks = list->count ? calloc(list->count, sizeof(*ranks)) : NULL;

	for (size_t i = 0; ranks && i < list->count; i++)
		(void)ts_parse_int64(list->items[i], strlen(list->items[i]), &ranks[i]);
	*ret_ranks = ranks;
	return (struct ts_selection){
		.size = sizeof(struct ts_selection),
		.flags = (choice->all ? TS_SELECT_ALL : 0) |
			 (choice->no_align ? TS_SELECT_NO_ALIGN : 0) |
			 (choice->short_names ? TS_SELECT_SHORT_NAMES : 0),
		.steps = choice->steps,
		.step_span = choice->step_span,
		.from = choice->from,
		.to = choice->to,
		.rounding = choice->rounding,
		.ranks = ranks,
		.rank_count = ranks ? list->count : 0,
	};
}

static int check_ranks(const struct ts_string_list *list, const int64_t *ranks)
{
	struct ts_error err;
	int64_t rank;

	if (list->count && !ranks) {
		ts_error_set(&err, TS_ENOMEM, "no memory for the ranks");
		return ts_report_error(&err);
	}
	for (size_t i = 0; i < list->count; i++) {
		if (ts_parse_int64(list->items[i], strlen(list->items[i]), &rank))
			return ts_report_usage("option '--rank' needs a number, not '%s'",
					       list->items[i]);
	}
	return TS_EXIT_DONE;
}

static int select_work(struct ts_work_input *input, const struct ts_work_choice *choice)
{
	struct ts_error err;
	int exit_code;

	input->selection = selection_of(choice, &input->ranks);
	exit_code = check_ranks(&choice->ranks, input->ranks);
	if (exit_code)
		return exit_code;
	return report_bad(ts_selection_check(&input->selection, &err), &err);
}

void ts_work_choice_append_arguments(const struct ts_work_choice *choice, int path_count,
				     char **paths, struct ts_text *out)
{
	TS_AUTO_FREE int64_t *ranks = NULL;
	struct ts_selection selection = selection_of(choice, &ranks);

	for (size_t i = 0; i < choice->processes.count; i++) {
		ts_text_append_str(out, i ? " -p " : "-p ");
		ts_text_append_shell(out, choice->processes.items[i]);
	}
	ts_selection_append_arguments(&selection, (const char *const *)paths, (size_t)path_count,
				      out);
}

/* ---- loading ---- */

static int check_processes(const struct ts_string_list *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = ts_trace_input_pid(processes->items[i]);

		if (!pid)
			return ts_report_usage("option '--process' needs a pid, not '%s'",
					       processes->items[i]);
		for (size_t k = 0; k < i; k++) {
			if (ts_trace_input_pid(processes->items[k]) == pid)
				return ts_report_usage("process %d is given twice", (int)pid);
		}
	}
	return TS_EXIT_DONE;
}

static int open_processes(struct ts_job **ret_job, const struct ts_string_list *processes)
{
	int exit_code = check_processes(processes);

	if (!exit_code)
		exit_code = ts_trace_input_open_job(ret_job, NULL, 0);
	for (size_t i = 0; i < processes->count && !exit_code; i++)
		exit_code =
			ts_trace_input_add_live(*ret_job, ts_trace_input_pid(processes->items[i]));
	return exit_code;
}

/* A trace given twice would count as two ranks of the job. */
static int check_twice(int path_count, char **paths)
{
	int duplicate = ts_job_find_duplicate((const char *const *)paths, (size_t)path_count);

	if (duplicate < 0)
		return TS_EXIT_DONE;
	return ts_report_usage("'%s' is given twice", paths[duplicate]);
}

static int load_with_progress(struct ts_work_input *input, const struct ts_work_options *chosen)
{
	struct ts_work_options options = *chosen;
	struct ts_progress progress;
	struct ts_error err;
	int rc;

	ts_progress_start(&progress, "load", TS_PROGRESS_ROWS);
	options.progress = ts_progress_step;
	options.context = &progress;
	rc = ts_job_work_add(&input->work, input->job, &options, &err);
	ts_progress_stop(&progress);
	/* No output file is open: Ctrl-C may end the program at once. */
	ts_progress_guard();
	if (!rc && ts_stop_signal())
		rc = ts_error_set(&err, TS_ECANCELED, "stopped");
	if (!rc)
		rc = ts_job_work_finish(input->work, input->job, &err);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static int load(struct ts_work_input *input, unsigned int load_flags, const char *path)
{
	struct ts_work_options options;
	struct ts_error err;
	int rc = ts_selection_options(&input->selection, ts_job_start(input->job), &options, &err);
	int exit_code;

	if (rc)
		return report_bad(rc, &err);
	options.load_flags = load_flags;
	exit_code = load_with_progress(input, &options);
	if (exit_code)
		return exit_code;
	rc = ts_selection_check_found(&input->selection, input->work, path, &err);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_work_input_open(struct ts_work_input *input, const struct ts_work_choice *choice,
		       unsigned int load_flags, int path_count, char **paths)
{
	const struct ts_string_list *processes = &choice->processes;
	char name[TS_TRACE_INPUT_NAME_BYTES];
	int exit_code = select_work(input, choice);

	if (!exit_code)
		exit_code = check_twice(path_count, paths);
	if (exit_code)
		return exit_code;
	if (processes->count && path_count)
		return ts_report_usage("'--process' replaces TRACE: omit '%s'", paths[0]);
	if (processes->count)
		exit_code = open_processes(&input->job, processes);
	else
		exit_code = ts_trace_input_open_job(&input->job, (const char *const *)paths,
						    (size_t)path_count);
	if (exit_code)
		return exit_code;
	return load(input, load_flags,
		    path_count ? paths[0]
			       : ts_trace_input_live_name(ts_trace_input_pid(processes->items[0]),
							  name));
}

int ts_work_input_include_last_steps(struct ts_work_input *input)
{
	struct ts_work_options options = input->work->options;
	bool left_out = false;

	for (uint32_t i = 0; i < input->work->rank_count; i++)
		left_out |= ts_work_leaves_out_last_step(input->work, i);
	if (!left_out)
		return TS_EXIT_DONE;
	ts_work_free(input->work);
	input->work = NULL;
	options.all = true;
	return load_with_progress(input, &options);
}

void ts_work_input_release(struct ts_work_input *input)
{
	ts_work_free(input->work);
	ts_job_close(input->job);
	free(input->ranks);
	*input = (struct ts_work_input){ 0 };
}

/* ---- clocks ---- */

int ts_work_input_align(struct ts_analyze_request *request, const struct ts_work_choice *choice)
{
	const struct ts_selection selection = {
		.size = sizeof(selection),
		.flags = choice->no_align ? TS_SELECT_NO_ALIGN : 0,
	};
	const struct ts_clock_alignment *clocks;
	TS_SCOPED(ts_text) aligned = { 0 };
	TS_SCOPED(ts_text) not_aligned = { 0 };
	struct ts_error err;

	if (ts_selection_align(&selection, request, &clocks, &err))
		return ts_report_error(&err);
	if (!clocks)
		return TS_EXIT_DONE;
	ts_selection_describe_clocks(request->work, clocks, &aligned, &not_aligned);
	ts_report_note("%s", ts_text_cstr(&aligned));
	if (not_aligned.length)
		ts_report_warning("%s", ts_text_cstr(&not_aligned));
	return TS_EXIT_DONE;
}

/* ---- progress ---- */

/* Rows for which the slowest analysis takes about half a second. */
#define LARGE_WORK 300000u

void ts_work_input_phase(const struct ts_work *work, const char *what)
{
	uint64_t rows = (uint64_t)work->command_count + work->call_count + work->slice_count;

	if (rows >= LARGE_WORK)
		ts_progress_phase(what);
}
