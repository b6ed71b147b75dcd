/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith diff`: what differs between two traces, name by name. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/compare/compare_choice.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/result_show.h"
#include "cli/common/terminal.h"
#include "cli/common/work_input.h"
#include "cli/verbs.h"

#define DEFAULT_TOP 30

struct diff {
	struct ts_work_choice choice;
	struct ts_compare_choice compared;
	bool json, csv;
	int64_t top;
	struct ts_compare_options options;
	struct ts_string_list paths[2]; /* pieces of the operands */
};

/* ---- options ---- */

static int parse(struct diff *diff)
{
	struct ts_error err;

	if (ts_compare_choice_parse(&diff->compared, &diff->options, &err))
		return ts_report_usage("%s", err.message);
	if (diff->json && diff->csv)
		return ts_report_usage("'--json' and '--csv' cannot be combined");
	diff->options.top = (size_t)diff->top;
	diff->options.brief = !diff->json && !diff->csv;
	return TS_EXIT_DONE;
}

/* ---- the two sides ---- */

/*
 * A file, or the ranks of a job separated by commas. `text` is cut into pieces, which stay inside
 * it.
 */
static int split_paths(char *text, struct ts_string_list *paths)
{
	bool is_one = !access(text, F_OK);

	while (text) {
		char *comma = is_one ? NULL : strchr(text, ',');

		if (ts_grow_array((void **)&paths->items, &paths->capacity, paths->count + 1,
				  sizeof(*paths->items)))
			return TS_ENOMEM;
		if (comma)
			*comma = '\0';
		if (*text)
			paths->items[paths->count++] = text;
		text = comma ? comma + 1 : NULL;
	}
	return TS_OK;
}

static int open_side(struct ts_work_input *input, const struct ts_work_choice *choice,
		     unsigned int load_flags, char *operand, struct ts_string_list *paths)
{
	struct ts_error err;

	if (split_paths(operand, paths)) {
		ts_error_set(&err, TS_ENOMEM, "no memory for the names of traces");
		return ts_report_error(&err);
	}
	if (!paths->count)
		return ts_report_usage("a trace is missing: the operand has only commas");
	return ts_work_input_open(input, choice, load_flags, (int)paths->count, paths->items);
}

static int include_last_steps(struct ts_work_input inputs[2])
{
	int exit_code = ts_work_input_include_last_steps(&inputs[0]);

	return exit_code ? exit_code : ts_work_input_include_last_steps(&inputs[1]);
}

static int open_both(struct diff *diff, struct ts_work_input inputs[2], char **operands)
{
	struct ts_work_choice choice_b = diff->choice;
	unsigned int load_flags = ts_compare_choice_load_flags(&diff->compared, &diff->options);
	int exit_code;

	if (diff->compared.steps_b)
		choice_b.steps = diff->compared.steps_b;
	exit_code = open_side(&inputs[0], &diff->choice, load_flags, operands[0], &diff->paths[0]);
	if (!exit_code)
		exit_code =
			open_side(&inputs[1], &choice_b, load_flags, operands[1], &diff->paths[1]);
	for (int i = 0; i < 2; i++)
		diff->options.files[i] = diff->paths[i].items;
	if (!exit_code && !diff->compared.steps_b &&
	    !ts_compare_may_leave_out(inputs[0].work, inputs[1].work))
		exit_code = include_last_steps(inputs);
	return exit_code;
}

/* ---- the answer ---- */

static int show(const struct diff *diff, const struct ts_result *result, struct ts_error *err)
{
	int rc;

	if (!diff->json && !diff->csv)
		return ts_result_show_text(result, 0, err);
	ts_result_print_notes(result);
	if (diff->csv)
		return ts_result_show_csv(ts_result_choose_table(result, "changes"), err);
	rc = ts_result_show_json(result, err);
	ts_text_append_char(ts_stdout(), '\n');
	return rc;
}

static int compare_works(const struct diff *diff, struct ts_work_input inputs[2],
			 struct ts_result *result, enum ts_compare_outcome *ret_outcome,
			 struct ts_error *err)
{
	int rc;

	ts_work_input_phase(inputs[0].work, "compare");
	rc = ts_compare(inputs[0].work, inputs[1].work, &diff->options, result, ret_outcome, err);
	ts_progress_hide();
	return rc;
}

/*
 * Traces that are identical before their last steps may be identical altogether: then there is
 * nothing to say about these steps. A brief result has only notes, and outlives the works.
 */
static void try_all_steps(const struct diff *diff, struct ts_work_input inputs[2],
			  struct ts_result *result)
{
	enum ts_compare_outcome outcome;
	struct ts_result all;

	if (include_last_steps(inputs))
		return;
	ts_result_init(&all, 0);
	if (!compare_works(diff, inputs, &all, &outcome, NULL) && outcome == TS_COMPARE_IDENTICAL) {
		struct ts_result shorter = *result;

		*result = all;
		all = shorter;
	}
	ts_result_release(&all);
}

static int compare(const struct diff *diff, struct ts_work_input inputs[2])
{
	enum ts_compare_outcome outcome;
	struct ts_result result;
	struct ts_error err;
	int rc;

	ts_result_init(&result, 0);
	rc = compare_works(diff, inputs, &result, &outcome, &err);
	if (!rc && outcome == TS_COMPARE_IDENTICAL && diff->options.brief)
		try_all_steps(diff, inputs, &result);
	if (!rc && outcome == TS_COMPARE_NOTHING)
		rc = ts_compare_nothing(&diff->options, &err);
	if (!rc)
		rc = show(diff, &result, &err);
	/* "They differ" must not hide that the report could not be written. */
	if (!rc)
		rc = ts_stdout_flush(&err);
	ts_result_release(&result);
	if (rc)
		return ts_report_error(&err);
	return outcome == TS_COMPARE_DIFFERENT ? TS_EXIT_NO : TS_EXIT_DONE;
}

static int run(struct diff *diff, char **operands)
{
	struct ts_work_input inputs[2] = { 0 };
	int exit_code = parse(diff);

	if (!exit_code)
		exit_code = open_both(diff, inputs, operands);
	if (!exit_code)
		exit_code = compare(diff, inputs);
	ts_work_input_release(&inputs[0]);
	ts_work_input_release(&inputs[1]);
	return exit_code;
}

int ts_verb_diff(int argc, char **argv)
{
	struct diff diff = { .top = DEFAULT_TOP };
	const struct ts_option options[] = {
		TS_OPTION_TEXT(
			"steps", 0, "N|A-B|all", &diff.choice.steps,
			"work issued in these steps, by number; default: all but the last one, "
			"which is often incomplete, if that leaves two or more in both traces"),
		TS_OPTION_TEXT("steps-b", 0, "N|A-B|all", &diff.compared.steps_b,
			       "the steps of B, if numbered differently"),
		TS_OPTION_TEXT("step-span", 0, "NAME", &diff.choice.step_span,
			       "spans of this name are the steps; default: ProfilerStep#N, else "
			       "TS_STEP()"),
		TS_OPTION_FLAG("all", 0, &diff.choice.all, "everything, including the last step"),
		TS_OPTION_REPEATED("rank", 0, "N", &diff.choice.ranks,
				   "only this rank; may be repeated"),
		TS_OPTION_TEXT("device", 0, "gpu|cpu|all", &diff.compared.device,
			       "device work, host work, or both (default)"),
		TS_OPTION_TEXT("threshold", 0, "PCT", &diff.compared.threshold,
			       "ignore changes up to this percentage (default 1)"),
		TS_OPTION_TEXT("min-change", 0, "TIME", &diff.compared.min_change,
			       "ignore changes of a name's time up to this, per step (default "
			       "1us)"),
		TS_WORK_SHORT_NAMES_OPTION(diff.choice),
		TS_OPTION_FLAG("python", 0, &diff.compared.python, "include Python functions"),
		TS_OPTION_INTEGER("top", 0, "N", &diff.top, 0, INT32_MAX,
				  "rows to show in text, 0: all (default 30)"),
		TS_OPTION_TEXT("rounding", 0, "exact|hta", &diff.choice.rounding,
			       "hta: round times as HTA does, for comparison"),
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &diff.json, "one JSON object of three lists"),
		TS_OPTION_FLAG("csv", 0, &diff.csv, "the list of changes as CSV"),
	};
	const struct ts_command command = {
		.verb = "diff",
		.operands = "A B",
		.about = "Compares two traces by name: which kernels, copies, operators, "
			 "annotations and calls are new, gone, slower or faster. Tests changes "
			 "for statistical significance if steps or instances repeat; otherwise "
			 "reports \"one sample\". A and B are each a trace or a file that can be "
			 "imported, or several separated by commas: the ranks of a job.\n",
		.examples =
			"tracesmith diff before.sbt after.sbt\n"
			"tracesmith diff before.json.gz after.json.gz --device gpu --threshold 5\n"
			"tracesmith diff a0.sbt,a1.sbt b0.sbt,b1.sbt --steps 10-12 --json",
		.exits = "0  no difference\n"
			 "1  the traces differ (a name is neither unchanged nor unclear)\n"
			 "2  usage error\n"
			 "3  a file cannot be read or imported, or there is nothing to compare",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 2,
		.maximum_operands = 2,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code))
		exit_code = run(&diff, argv);
	ts_work_choice_release(&diff.choice);
	for (int i = 0; i < 2; i++)
		free(diff.paths[i].items);
	return exit_code;
}
