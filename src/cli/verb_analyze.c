/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith analyze`: loads the work of a job once, puts it to the analyses that were named, and
 * shows what they found.
 */
#include <string.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/result_show.h"
#include "cli/common/text_table.h"
#include "cli/common/work_input.h"
#include "cli/verbs.h"

struct analyze {
	/* as asked */
	struct ts_work_choice choice;
	bool list, json, csv;
	struct ts_analyze_options options;
	const char *table;
	const char *short_text, *wait_text, *delay_text;
	int path_count;
	char **paths;

	/* as found */
	const struct ts_analysis **chosen; /* in the order in which they are shown */
	size_t chosen_count;
	bool several;              /* an object or headings, even if only one was found */
	struct ts_result *results; /* one a chosen analysis */
	size_t result_count;
};

/* ---- --list ---- */

static int show_list_json(void)
{
	struct ts_text *out = ts_stdout();
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_list(&count);

	ts_text_append_char(out, '[');
	for (size_t i = 0; i < count; i++) {
		ts_text_append_str(out, i ? ",\n{\"name\": " : "{\"name\": ");
		ts_text_append_json(out, list[i]->name, strlen(list[i]->name));
		ts_text_append_str(out, ", \"summary\": ");
		ts_text_append_json(out, list[i]->summary, strlen(list[i]->summary));
		ts_text_append_char(out, '}');
	}
	ts_text_append_str(out, "]\n");
	return TS_EXIT_DONE;
}

static int show_list_text(void)
{
	TS_SCOPED(ts_text_table) grid;
	struct ts_error err;
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_list(&count);

	ts_text_table_init(&grid);
	grid.bare = true;
	ts_text_table_add_column(&grid, "", false);
	ts_text_table_add_column(&grid, "", false);
	for (size_t i = 0; i < count; i++) {
		ts_text_table_str(&grid, list[i]->name);
		ts_text_table_str(&grid, list[i]->summary);
		ts_text_table_end_row(&grid);
	}
	return ts_text_table_finish(&grid, &err) ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* ---- which analyses ---- */

static bool is_one(const char *name, size_t length, const char *other)
{
	return !strncmp(name, other, length) && !other[length];
}

/* The analysis of a word in a list; NULL: there is none. */
static const struct ts_analysis *find(const char *name, size_t length)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_list(&count);

	for (size_t i = 0; i < count; i++) {
		if (is_one(name, length, list[i]->name))
			return list[i];
	}
	return NULL;
}

/* Are all words of "a,b" analyses, or all? The first that is none is *ret_word. */
static bool are_names(const char *words, const char **ret_word, size_t *ret_length)
{
	for (;; words++) {
		size_t length = strcspn(words, ",");

		if (!is_one(words, length, "all") && !find(words, length)) {
			*ret_word = words;
			*ret_length = length;
			return false;
		}
		words += length;
		if (!*words)
			return true;
	}
}

static void choose(struct analyze *analyze, const struct ts_analysis *analysis)
{
	for (size_t i = 0; i < analyze->chosen_count; i++) {
		if (analyze->chosen[i] == analysis)
			return;
	}
	analyze->chosen[analyze->chosen_count++] = analysis;
}

static void choose_words(struct analyze *analyze, const char *words)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_list(&count);

	for (;; words++) {
		size_t length = strcspn(words, ",");

		if (is_one(words, length, "all")) {
			analyze->several = true;
			for (size_t i = 0; i < count; i++)
				choose(analyze, list[i]);
		} else {
			choose(analyze, find(words, length));
		}
		words += length;
		if (!*words)
			break;
	}
	analyze->several |= analyze->chosen_count > 1;
}

/* ", ".join(names): for messages. */
static void append_names(struct ts_text *out)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_list(&count);

	for (size_t i = 0; i < count; i++)
		ts_text_printf(out, "%s%s", i ? ", " : "", list[i]->name);
}

static const char *nearest_name(const char *word)
{
	struct ts_nearest nearest;
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_list(&count);

	ts_nearest_init(&nearest, word);
	for (size_t i = 0; i < count; i++)
		ts_nearest_offer(&nearest, list[i]->name);
	return nearest.best;
}

static int unknown_name(const char *word, size_t length)
{
	TS_AUTO_FREE char *name = strndup(word, length);
	TS_SCOPED(ts_text) names;
	const char *best = name ? nearest_name(name) : NULL;

	ts_text_init(&names);
	append_names(&names);
	if (best)
		return ts_report_usage("there is no analysis '%s'; did you mean '%s'?", name, best);
	return ts_report_usage("there is no analysis '%.*s'; there are %s, or all", (int)length,
			       word, ts_text_cstr(&names));
}

/* No operand at the end names an analysis. What was meant? */
static int no_name(int count, char **operands)
{
	const char *last = operands[count - 1], *word;
	TS_SCOPED(ts_text) names;
	size_t length;

	ts_text_init(&names);
	append_names(&names);
	if (count > 1 && are_names(operands[0], &word, &length))
		return ts_report_usage(
			"the analysis stands behind the traces: tracesmith analyze %s %s",
			operands[1], operands[0]);
	if (!are_names(last, &word, &length) && access(last, F_OK) && strcmp(last, "-") != 0 &&
	    (count > 1 || nearest_name(last)))
		return unknown_name(word, length);
	return ts_report_usage(
		"say which analysis: tracesmith analyze %s NAME, where NAME is all or %s",
		operands[0], ts_text_cstr(&names));
}

/* A trace that is not there, but an analysis of nearly that name is. */
static int check_paths(const struct analyze *analyze)
{
	for (int i = 0; i < analyze->path_count; i++) {
		const char *path = analyze->paths[i];

		if (strcmp(path, "-") != 0 && access(path, F_OK) && !strchr(path, '/') &&
		    nearest_name(path))
			return unknown_name(path, strlen(path));
	}
	return TS_EXIT_DONE;
}

/* Traces first, then names: those operands at the end that all are analyses. */
static int choose_operands(struct analyze *analyze, int count, char **operands)
{
	struct ts_error err;
	const char *word;
	size_t all, length;
	int first = count;

	if (count == 0)
		return ts_report_usage("TRACE is missing");
	while (first > 0 && are_names(operands[first - 1], &word, &length))
		first--;
	if (first == count)
		return no_name(count, operands);
	if (first == 0)
		return ts_report_usage("TRACE is missing: tracesmith analyze TRACE %s",
				       operands[0]);
	analyze->paths = operands;
	analyze->path_count = first;
	ts_analysis_list(&all);
	analyze->chosen = calloc(all, sizeof(*analyze->chosen));
	analyze->results = calloc(all, sizeof(*analyze->results));
	if (!analyze->chosen || !analyze->results) {
		ts_error_set(&err, TS_ENOMEM, "no memory for the analyses");
		return ts_report_error(&err);
	}
	for (int i = first; i < count; i++)
		choose_words(analyze, operands[i]);
	return check_paths(analyze);
}

static int check_options(struct analyze *analyze)
{
	int exit_code = ts_amount_time("short", analyze->short_text, &analyze->options.short_ns);

	if (!exit_code)
		exit_code = ts_amount_time("wait", analyze->wait_text, &analyze->options.wait_ns);
	if (!exit_code)
		exit_code =
			ts_amount_time("delay", analyze->delay_text, &analyze->options.delay_ns);
	if (!exit_code && analyze->json && analyze->csv)
		exit_code = ts_report_usage("'--json' and '--csv' exclude each other");
	if (!exit_code && analyze->csv && analyze->several)
		exit_code = ts_report_usage("'--csv' shows one analysis at a time");
	if (!exit_code && analyze->table && !analyze->csv)
		exit_code = ts_report_usage("'--table' belongs to '--csv'");
	return exit_code;
}

/* ---- the work ---- */

static int run_one(struct analyze *analyze, size_t i, struct ts_analyze_request *request)
{
	struct ts_error err;
	int rc;

	ts_work_input_say(request->work, analyze->chosen[i]->name);
	rc = analyze->chosen[i]->run(request, &analyze->results[i], &err);
	ts_progress_hide();
	if (!rc)
		rc = ts_result_status(&analyze->results[i], &err);
	if (rc)
		ts_error_prefix(&err, "%s", analyze->chosen[i]->name);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/*
 * Those that look at each rank by itself first, at times as they are in the trace; then clocks are
 * aligned for the others. So an analysis gives the same numbers alone and among others.
 */
static int run_all(struct analyze *analyze, struct ts_analyze_request *request)
{
	int exit_code = TS_EXIT_DONE;
	bool aligned = false;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; !exit_code && i < analyze->chosen_count; i++) {
			bool wants = analyze->chosen[i]->flags & TS_ANALYSIS_ALIGNED;

			if (wants != (pass == 1))
				continue;
			if (wants && !aligned)
				exit_code = ts_work_input_align(request, &analyze->choice);
			aligned |= wants;
			if (!exit_code)
				exit_code = run_one(analyze, i, request);
		}
	}
	return exit_code;
}

static int show_text(const struct analyze *analyze, struct ts_error *err)
{
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < analyze->chosen_count; i++) {
		if (analyze->several)
			ts_result_show_heading(analyze->chosen[i]->name,
					       analyze->chosen[i]->summary);
		rc = ts_result_show_text(&analyze->results[i], analyze->options.top, err);
		if (i + 1 < analyze->chosen_count)
			ts_text_append_char(ts_stdout(), '\n');
	}
	return rc;
}

static int show_json(const struct analyze *analyze, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	int rc = TS_OK;

	if (analyze->several)
		ts_text_append_char(out, '{');
	for (size_t i = 0; !rc && i < analyze->chosen_count; i++) {
		if (analyze->several)
			ts_text_printf(out, "%s\"%s\": ", i ? ",\n" : "", analyze->chosen[i]->name);
		rc = ts_result_show_json(&analyze->results[i], err);
		ts_result_tell_notes(&analyze->results[i]);
	}
	ts_text_append_str(out, analyze->several ? "}\n" : "\n");
	return rc;
}

static int show(const struct analyze *analyze)
{
	const struct ts_result_table *table;
	struct ts_error err;
	int rc;

	if (analyze->csv) {
		table = ts_result_choose_table(&analyze->results[0], analyze->table);
		if (!table)
			return analyze->table ? TS_EXIT_USAGE : TS_EXIT_DONE;
		rc = ts_result_show_csv(table, &err);
		ts_result_tell_notes(&analyze->results[0]);
	} else if (analyze->json) {
		rc = show_json(analyze, &err);
	} else {
		rc = show_text(analyze, &err);
	}
	if (rc && err.message[0])
		return ts_report_error(&err);
	return ts_report_exit_code(rc);
}

static int analyze_work(struct analyze *analyze, struct ts_work_input *input)
{
	struct ts_analyze_request request;
	int exit_code;

	ts_analyze_request_init(&request, input->work);
	analyze->options.rounding = request.options.rounding;
	request.options = analyze->options;
	request.options.brief = !analyze->json && !analyze->csv;
	for (; analyze->result_count < analyze->chosen_count; analyze->result_count++)
		ts_result_init(&analyze->results[analyze->result_count], input->start);
	exit_code = run_all(analyze, &request);
	ts_analyze_request_release(&request);
	return exit_code ? exit_code : show(analyze);
}

static int run(struct analyze *analyze)
{
	struct ts_work_input input = { 0 };
	TS_SCOPED(ts_text) words;
	unsigned int parts = 0;
	int exit_code;

	ts_text_init(&words);
	ts_work_choice_words(&analyze->choice, analyze->path_count, analyze->paths, &words);
	analyze->options.traces = ts_text_cstr(&words);
	for (size_t i = 0; i < analyze->chosen_count; i++)
		parts |= analyze->chosen[i]->parts;
	exit_code = ts_work_input_open(&input, &analyze->choice, parts, analyze->path_count,
				       analyze->paths);
	if (!exit_code)
		exit_code = analyze_work(analyze, &input);
	ts_work_input_release(&input);
	return exit_code;
}

static void release(struct analyze *analyze)
{
	for (size_t i = 0; i < analyze->result_count; i++)
		ts_result_release(&analyze->results[i]);
	free(analyze->results);
	free(analyze->chosen);
	ts_work_choice_release(&analyze->choice);
}

int ts_verb_analyze(int argc, char **argv)
{
	struct analyze analyze = { .options = TS_ANALYZE_OPTIONS_DEFAULT };
	const struct ts_option options[] = {
		TS_OPTION_FLAG("list", 0, &analyze.list, "list the analyses"),
		TS_WORK_CHOICE_OPTIONS(analyze.choice),
		TS_OPTION_INTEGER("top", 0, "N", &analyze.options.top, 1, INT64_MAX,
				  "rows of lists in text; JSON and CSV have all"),
		TS_OPTION_TEXT("short", 0, "TIME", &analyze.short_text,
			       "launch: a kernel below this is short; default 10us"),
		TS_OPTION_TEXT("delay", 0, "TIME", &analyze.delay_text,
			       "launch: a delay above this is long; default 100us"),
		TS_OPTION_INTEGER("depth", 0, "N", &analyze.options.depth, 1, 1000,
				  "launches: frames of a stack, the innermost; default 6"),
		TS_OPTION_INTEGER("full", 0, "N", &analyze.options.full, 1, INT64_MAX,
				  "queue: it is full with so many commands; default 1024"),
		TS_OPTION_TEXT("wait", 0, "TIME", &analyze.wait_text,
			       "idle: a gap below this is the device's own; default 30us"),
		TS_OPTION_TEXT("annotation", 0, "NAME", &analyze.options.annotation,
			       "critical-path: only within this annotation"),
		TS_OPTION_INTEGER("instance", 0, "N", &analyze.options.instance, 0, INT64_MAX,
				  "critical-path: within its Nth instance, from 0; default 0"),
		TS_OPTION_TEXT("what-if", 0, "NAME=HOW", &analyze.options.what_if,
			       "critical-path: how long would it be if NAME were free, or 2 times "
			       "as fast: 'gemm*=2'"),
		TS_OPTION_FLAG("json", 0, &analyze.json,
			       "a list of objects, or an object of lists; exact"),
		TS_OPTION_FLAG("csv", 0, &analyze.csv, "comma-separated values of one table"),
		TS_OPTION_TEXT("table", 0, "NAME", &analyze.table,
			       "with --csv: this table; default: the first"),
	};
	const struct ts_command command = {
		.verb = "analyze",
		.operands = "TRACE... NAME[,NAME...]|all",
		.about =
			"Answers questions about what the devices of a job did and what they waited for. A TRACE\n"
			"may be any file that can be imported; several are the ranks of one job. NAME is an\n"
			"analysis, 'all' runs every one; --list lists them. docs/analyze.md says what each number\n"
			"means.\n",
		.examples = "tracesmith analyze run.sbt breakdown\n"
			    "tracesmith analyze trace.json.gz kernels,idle --top 20\n"
			    "tracesmith analyze rank*.json.gz stragglers\n"
			    "tracesmith analyze run.sbt all --steps 3-5 --json\n"
			    "tracesmith analyze run.sbt launches --depth 8\n"
			    "tracesmith analyze run.sbt advice",
		.exits = "0  done, also where there is nothing to tell\n2  usage\n3  bad input\n"
			 "4  this build cannot unpack a file",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 0,
		.maximum_operands = -1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		if (analyze.list)
			exit_code = analyze.json ? show_list_json() : show_list_text();
		else
			exit_code = choose_operands(&analyze, argc, argv);
		if (!exit_code && !analyze.list)
			exit_code = check_options(&analyze);
		if (!exit_code && !analyze.list)
			exit_code = run(&analyze);
	}
	release(&analyze);
	return exit_code;
}
