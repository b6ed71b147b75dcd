/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a job for verbs: parses the options that select a part of it, and opens the traces. */
#include "cli/common/work_input.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/trace_input.h"
#include "open/job.h"

void ts_work_choice_release(struct ts_work_choice *choice)
{
	ts_string_list_release(&choice->ranks);
}

/* ---- options ---- */

/* "3", "3-5" or "all". */
static int parse_steps(const char *text, struct ts_work_options *options)
{
	const char *dash;
	size_t length;

	if (!text)
		return TS_EXIT_DONE;
	if (!strcmp(text, "all")) {
		options->all = true;
		return TS_EXIT_DONE;
	}
	/* The first character may be a sign. */
	dash = *text ? strchr(text + 1, '-') : NULL;
	length = dash ? (size_t)(dash - text) : strlen(text);
	if (ts_parse_int64(text, length, &options->from_step) ||
	    (dash && ts_parse_int64(dash + 1, strlen(dash + 1), &options->to_step)))
		return ts_report_usage("option '--steps': '%s' is neither a step, nor steps such "
				       "as 3-5, nor all",
				       text);
	if (!dash)
		options->to_step = options->from_step;
	if (options->to_step < options->from_step)
		return ts_report_usage("option '--steps': '%s' ends before it begins", text);
	return TS_EXIT_DONE;
}

static int parse_rounding(const char *text, struct ts_work_options *options)
{
	if (!text || !strcmp(text, "exact"))
		return TS_EXIT_DONE;
	if (strcmp(text, "hta") != 0)
		return ts_report_usage("option '--rounding' is exact or hta, not '%s'", text);
	options->rounding = TS_ROUNDING_HTA;
	return TS_EXIT_DONE;
}

static int parse_ranks(struct ts_work_input *input, const struct ts_string_list *list,
		       struct ts_work_options *options)
{
	if (list->count == 0)
		return TS_EXIT_DONE;
	input->ranks = ts_alloc_array(list->count, sizeof(*input->ranks));
	if (!input->ranks) {
		struct ts_error err;

		ts_error_set(&err, TS_ENOMEM, "no memory for the ranks");
		return ts_report_error(&err);
	}
	for (size_t i = 0; i < list->count; i++) {
		if (ts_parse_int64(list->items[i], strlen(list->items[i]), &input->ranks[i]))
			return ts_report_usage("option '--rank' needs a number, not '%s'",
					       list->items[i]);
	}
	options->ranks = input->ranks;
	options->rank_count = list->count;
	return TS_EXIT_DONE;
}

static int parse_choice(struct ts_work_input *input, const struct ts_work_choice *choice,
			struct ts_work_options *options)
{
	int exit_code = parse_steps(choice->steps, options);

	if (!exit_code && choice->steps && choice->all && !options->all)
		exit_code = ts_report_usage("'--all' and '--steps %s' cannot be combined",
					    choice->steps);
	if (!exit_code && choice->step_span && !*choice->step_span)
		exit_code = ts_report_usage("option '--step-span' needs the name of a span");
	options->all |= choice->all;
	options->step_span = choice->step_span;
	options->short_names = choice->short_names;
	if (!exit_code)
		exit_code = parse_rounding(choice->rounding, options);
	if (!exit_code)
		exit_code = parse_ranks(input, &choice->ranks, options);
	return exit_code;
}

/* ---- options as text ---- */

/* After this many bytes of trace names, the rest is omitted. */
#define ARGUMENTS_BYTES 2000

static void append_option(struct ts_text *out, const char *option, const char *value)
{
	if (!value)
		return;
	ts_text_printf(out, " --%s ", option);
	ts_text_append_shell(out, value);
}

void ts_work_choice_append_arguments(const struct ts_work_choice *choice, int path_count,
				     char **paths, struct ts_text *out)
{
	for (int i = 0; i < path_count; i++) {
		if (i > 0)
			ts_text_append_char(out, ' ');
		if (i > 0 && out->length > ARGUMENTS_BYTES) {
			ts_text_append_str(out, "...");
			break;
		}
		ts_text_append_shell(out, paths[i]);
	}
	append_option(out, "steps", choice->steps);
	append_option(out, "step-span", choice->step_span);
	if (choice->all)
		ts_text_append_str(out, " --all");
	append_option(out, "from", choice->from);
	append_option(out, "to", choice->to);
	for (size_t i = 0; i < choice->ranks.count; i++)
		append_option(out, "rank", choice->ranks.items[i]);
	if (choice->no_align)
		ts_text_append_str(out, " --no-align");
	if (choice->short_names)
		ts_text_append_str(out, " --short-names");
	append_option(out, "rounding", choice->rounding);
}

/* ---- loading ---- */

/* A trace given twice would count as two ranks of the job. */
static int check_twice(int path_count, char **paths)
{
	int duplicate = ts_job_find_duplicate((const char *const *)paths, (size_t)path_count);

	if (duplicate < 0)
		return TS_EXIT_DONE;
	return ts_report_usage("'%s' is given twice", paths[duplicate]);
}

static int load_rows(struct ts_work_input *input, const struct ts_work_options *options,
		     struct ts_error *err)
{
	int rc = ts_work_new(&input->work, options, err);

	for (size_t i = 0; !rc && i < ts_job_count(input->job); i++)
		rc = ts_work_add(input->work, ts_job_reader(input->job, i), err);
	return rc;
}

static int finish(struct ts_work_input *input, struct ts_error *err)
{
	int rc = ts_work_finish(input->work, err);

	for (size_t i = 0; !rc && i < ts_job_count(input->job); i++)
		rc = ts_reader_status(ts_job_reader(input->job, i), err);
	return rc;
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
	rc = load_rows(input, &options, &err);
	ts_progress_stop(&progress);
	if (input->work) {
		input->work->options.progress = NULL;
		input->work->options.context = NULL;
	}
	/* No output file is open: Ctrl-C may end the program at once. */
	ts_progress_guard();
	if (!rc && ts_stop_signal())
		rc = ts_error_set(&err, TS_ECANCELED, "stopped");
	if (!rc)
		rc = finish(input, &err);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static uint64_t count_steps(const struct ts_work *work)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < work->rank_count; i++)
		count += work->ranks[i].steps_in_trace;
	return count;
}

/* A missing rank or step is most likely a typo: an empty result would hide it. */
static int check_found(const struct ts_work_input *input, const struct ts_work_choice *choice,
		       const char *path)
{
	const struct ts_work *work = input->work;
	struct ts_error err = { 0 };

	if (choice->ranks.count && work->rank_count == 0)
		ts_error_set(&err, TS_ENOTFOUND, "no trace has rank %s", choice->ranks.items[0]);
	else if (choice->step_span && !count_steps(work))
		ts_error_set(&err, TS_ENOTFOUND,
			     "no span '%s' in '%s'; 'tracesmith analyze %s annotations' lists the "
			     "names of spans",
			     choice->step_span, path, TS_SHELL(path));
	else if (work->options.from_step != TS_ABSENT && work->step_count == 0)
		ts_error_set(&err, TS_ENOTFOUND,
			     "no step %s in '%s'; 'tracesmith analyze --all %s steps' lists the "
			     "steps",
			     choice->steps, path, TS_SHELL(path));
	return err.code ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_work_input_open(struct ts_work_input *input, const struct ts_work_choice *choice,
		       unsigned int load_flags, int path_count, char **paths)
{
	const struct ts_quantity_range range = { .from = choice->from, .to = choice->to };
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int exit_code = parse_choice(input, choice, &options);

	if (!exit_code)
		exit_code = ts_amount_range_check(&range);
	if (!exit_code)
		exit_code = check_twice(path_count, paths);
	if (!exit_code)
		exit_code = ts_trace_input_open_job(&input->job, (const char *const *)paths,
						    (size_t)path_count);
	if (!exit_code)
		exit_code = ts_amount_range(&range, ts_job_start(input->job), &options.from,
					    &options.to);
	options.load_flags = load_flags;
	if (!exit_code)
		exit_code = load_with_progress(input, &options);
	return exit_code ? exit_code : check_found(input, choice, paths[0]);
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

static void report_clocks(const struct ts_work *work, const struct ts_clock_alignment *clocks)
{
	char moved[TS_FORMAT_BYTES], uncertain[TS_FORMAT_BYTES];
	uint64_t most = 0;
	int64_t worst = 0;
	uint32_t known = 0;

	for (uint32_t i = 0; i < work->rank_count; i++) {
		const struct ts_clock_estimate *rank = &clocks->ranks[i];
		uint64_t offset = rank->offset_ns < 0 ? -(uint64_t)rank->offset_ns
						      : (uint64_t)rank->offset_ns;

		if (!rank->known)
			continue;
		known++;
		most = TS_MAX(most, offset);
		worst = TS_MAX(worst, rank->uncertainty_ns);
	}
	most = TS_MIN(most, (uint64_t)INT64_MAX);
	ts_report_note("aligned the clocks of %" PRIu32
		       " ranks by their collectives: shifted by up "
		       "to %s, uncertainty %s ('tracesmith align' lists them)",
		       known, ts_format_duration_ns(moved, sizeof(moved), (int64_t)most),
		       ts_format_duration_ns(uncertain, sizeof(uncertain), worst));
	if (known < work->rank_count)
		ts_report_warning("cannot align the clocks of %s: no collective shared with the "
				  "other ranks",
				  TS_COUNTED(work->rank_count - known, "rank"));
}

int ts_work_input_align(struct ts_analyze_request *request, const struct ts_work_choice *choice)
{
	const struct ts_collectives *collectives;
	const struct ts_clock_alignment *clocks;
	struct ts_error err;

	/* HTA does not align clocks. */
	if (request->work->rank_count < 2 || choice->no_align ||
	    request->work->options.rounding == TS_ROUNDING_HTA)
		return TS_EXIT_DONE;
	collectives = ts_analyze_collectives(request, &err);
	if (!collectives)
		return ts_report_error(&err);
	if (collectives->match_count == 0)
		return TS_EXIT_DONE;
	clocks = ts_analyze_align(request, &err);
	if (!clocks)
		return ts_report_error(&err);
	report_clocks(request->work, clocks);
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
