/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith diff`: what differs between two traces, name by name. */
#include <string.h>
#include <unistd.h>

#include "analyze/compare/compare.h"
#include "base/real.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/result_show.h"
#include "cli/common/work_input.h"
#include "cli/verbs.h"

#define DEFAULT_TOP 30

struct diff {
	struct ts_work_choice choice;
	const char *steps_b, *device, *threshold;
	bool short_names, python, json, csv;
	int64_t top;
	struct ts_compare_options options;
};

/* ---- options ---- */

static int parse_device(const char *text, unsigned int *ret_sides)
{
	if (!text || !strcmp(text, "all"))
		*ret_sides = TS_COMPARE_GPU | TS_COMPARE_CPU;
	else if (!strcmp(text, "gpu"))
		*ret_sides = TS_COMPARE_GPU;
	else if (!strcmp(text, "cpu"))
		*ret_sides = TS_COMPARE_CPU;
	else
		return ts_report_usage("option '--device' is gpu, cpu or all, not '%s'", text);
	return TS_EXIT_DONE;
}

/* "5", "0.5", "5%". */
static int parse_threshold(const char *text, double *ret_percent)
{
	size_t digits, length;

	if (!text)
		return TS_EXIT_DONE;
	digits = strspn(text, "0123456789.");
	length = strlen(text);
	if (digits == 0 || strspn(text, ".") == digits ||
	    digits + (text[digits] == '%') != length || strchr(text, '.') != strrchr(text, '.'))
		return ts_report_usage(
			"option '--threshold' needs a percentage such as 2.5, not '%s'", text);
	*ret_percent = ts_real_parse(text);
	return TS_EXIT_DONE;
}

static int parse(struct diff *diff)
{
	int exit_code = parse_device(diff->device, &diff->options.sides);

	if (!exit_code)
		exit_code = parse_threshold(diff->threshold, &diff->options.threshold);
	if (!exit_code && diff->json && diff->csv)
		exit_code = ts_report_usage("'--json' and '--csv' cannot be combined");
	diff->options.short_names = diff->short_names;
	diff->options.top = (size_t)diff->top;
	return exit_code;
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
		     unsigned int load_flags, char *operand)
{
	struct ts_string_list paths = { 0 };
	struct ts_error err;
	int exit_code;

	if (split_paths(operand, &paths)) {
		ts_error_set(&err, TS_ENOMEM, "no memory for the names of traces");
		exit_code = ts_report_error(&err);
	} else if (!paths.count) {
		exit_code = ts_report_usage("a trace is missing: the operand has only commas");
	} else {
		exit_code = ts_work_input_open(input, choice, load_flags, (int)paths.count,
					       paths.items);
	}
	free(paths.items);
	return exit_code;
}

static int open_both(struct diff *diff, struct ts_work_input inputs[2], char **operands)
{
	struct ts_work_choice choice_b = diff->choice;
	unsigned int load_flags = 0;
	int exit_code;

	if (diff->options.sides & TS_COMPARE_CPU)
		load_flags = TS_COMPARE_LOAD_FLAGS | (diff->python ? TS_WORK_PYTHON : 0);
	if (diff->steps_b)
		choice_b.steps = diff->steps_b;
	exit_code = open_side(&inputs[0], &diff->choice, load_flags, operands[0]);
	return exit_code ? exit_code : open_side(&inputs[1], &choice_b, load_flags, operands[1]);
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

static int compare(const struct diff *diff, const struct ts_work *a, const struct ts_work *b)
{
	struct ts_result result;
	struct ts_error err;
	bool differs;
	int rc;

	ts_result_init(&result, 0);
	ts_work_input_phase(a, "compare");
	rc = ts_compare(a, b, &diff->options, &result, &differs, &err);
	ts_progress_hide();
	if (!rc)
		rc = show(diff, &result, &err);
	/* "They differ" must not hide that the report could not be written. */
	if (!rc)
		rc = ts_stdout_flush(&err);
	ts_result_release(&result);
	if (rc)
		return ts_report_error(&err);
	return differs ? TS_EXIT_NO : TS_EXIT_DONE;
}

static int run(struct diff *diff, char **operands)
{
	struct ts_work_input inputs[2] = { 0 };
	int exit_code = parse(diff);

	if (!exit_code)
		exit_code = open_both(diff, inputs, operands);
	if (!exit_code)
		exit_code = compare(diff, inputs[0].work, inputs[1].work);
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
			"which is often incomplete"),
		TS_OPTION_TEXT("steps-b", 0, "N|A-B|all", &diff.steps_b,
			       "the steps of B, if numbered differently"),
		TS_OPTION_FLAG("all", 0, &diff.choice.all, "everything, including the last step"),
		TS_OPTION_REPEATED("rank", 0, "N", &diff.choice.ranks,
				   "only this rank; may be repeated"),
		TS_OPTION_TEXT("device", 0, "gpu|cpu|all", &diff.device,
			       "device work, host work, or both (default)"),
		TS_OPTION_TEXT("threshold", 0, "PCT", &diff.threshold,
			       "ignore changes up to this percentage (default 0)"),
		TS_OPTION_FLAG(
			"short-names", 0, &diff.short_names,
			"merge kernels and operators that differ only in template or call arguments, or in an address"),
		TS_OPTION_FLAG("python", 0, &diff.python, "include Python functions"),
		TS_OPTION_INTEGER("top", 0, "N", &diff.top, 0, INT32_MAX,
				  "rows to show in text, 0: all (default 30)"),
		TS_OPTION_TEXT("rounding", 0, "exact|hta", &diff.choice.rounding,
			       "hta: round times as HTA does, for comparison"),
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
			"tracesmith diff before.json.gz after.json.gz --device gpu --threshold 2\n"
			"tracesmith diff a0.sbt,a1.sbt b0.sbt,b1.sbt --steps 10-12 --json",
		.exits = "0  no difference\n"
			 "1  the traces differ (a name is neither unchanged nor unclear)\n"
			 "2  usage error\n"
			 "3  a file cannot be read or imported",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 2,
		.maximum_operands = 2,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code))
		exit_code = run(&diff, argv);
	ts_work_choice_release(&diff.choice);
	return exit_code;
}
