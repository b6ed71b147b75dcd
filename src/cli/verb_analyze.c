/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith analyze`: loads the work of a job once, runs analyses on it and shows the results. */
#include <string.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/component_options.h"
#include "cli/common/nearest.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/result_show.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/common/work_input.h"
#include "cli/verbs.h"

struct analyze {
	/* as asked */
	struct ts_work_choice choice;
	bool list, json, csv;
	struct ts_analysis_options options;
	const char *table;
	struct ts_component_options all_options;
	int path_count;
	char **paths;

	/* as found */
	const struct ts_analysis **chosen; /* in the order in which they are shown */
	size_t chosen_count;
	bool several;              /* shown as an object or with headings */
	bool only_filled;          /* text leaves out empty tables */
	struct ts_result *results; /* one for each chosen analysis */
	size_t result_count;
};

/* ---- --list ---- */

static int show_list_json(void)
{
	struct ts_text *out = ts_stdout();
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	ts_text_append_char(out, '[');
	for (size_t i = 0; i < count; i++) {
		ts_text_append_str(out, i ? ",\n{\"name\": " : "{\"name\": ");
		ts_text_append_json(out, list[i]->name, strlen(list[i]->name));
		ts_text_append_str(out, ", \"summary\": ");
		ts_text_append_json(out, list[i]->summary, strlen(list[i]->summary));
		if (list[i]->alias) {
			ts_text_append_str(out, ", \"alias\": ");
			ts_text_append_json(out, list[i]->alias, strlen(list[i]->alias));
		}
		ts_text_append_char(out, '}');
	}
	ts_text_append_str(out, "]\n");
	return TS_EXIT_DONE;
}

static int show_list_text(void)
{
	TS_SCOPED(ts_text_table) grid = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_error err;
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	ts_text_table_init(&grid);
	grid.bare = true;
	ts_text_table_add_column(&grid, "", false);
	ts_text_table_add_column(&grid, "", false);
	for (size_t i = 0; i < count; i++) {
		ts_text_table_str(&grid, list[i]->name);
		ts_text_clear(&text);
		ts_text_append_str(&text, list[i]->summary);
		if (list[i]->alias)
			ts_text_printf(&text, " (alias: %s)", list[i]->alias);
		ts_text_table_str(&grid, ts_text_cstr(&text));
		ts_text_table_end_row(&grid);
	}
	return ts_text_table_finish(&grid, &err) ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* ---- which analyses ---- */

static bool is_one(const char *name, size_t length, const char *other)
{
	return !strncmp(name, other, length) && !other[length];
}

/* Is each name of "a,b" an analysis or "all"? If not, *ret_name is the first that is neither. */
static bool are_names(const char *names_text, const char **ret_name, size_t *ret_length)
{
	for (;; names_text++) {
		size_t length = strcspn(names_text, ",");

		if (!is_one(names_text, length, "all") && !ts_analysis_lookup(names_text, length)) {
			*ret_name = names_text;
			*ret_length = length;
			return false;
		}
		names_text += length;
		if (!*names_text)
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

static void choose_names(struct analyze *analyze, const char *names_text)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	for (;; names_text++) {
		size_t length = strcspn(names_text, ",");

		if (is_one(names_text, length, "all")) {
			analyze->several = analyze->only_filled = true;
			for (size_t i = 0; i < count; i++)
				choose(analyze, list[i]);
		} else {
			choose(analyze, ts_analysis_lookup(names_text, length));
		}
		names_text += length;
		if (!*names_text)
			break;
	}
	analyze->several |= analyze->chosen_count > 1;
}

/* The names of all analyses, for messages. */
static void append_names(struct ts_text *out)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	for (size_t i = 0; i < count; i++)
		ts_text_printf(out, "%s%s", i ? ", " : "", list[i]->name);
}

static const char *nearest_name(const char *given)
{
	struct ts_nearest nearest;
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	ts_nearest_init(&nearest, given);
	for (size_t i = 0; i < count; i++)
		ts_nearest_offer(&nearest, list[i]->name);
	return nearest.best;
}

static int unknown_name(const char *given, size_t length)
{
	TS_AUTO_FREE char *name = strndup(given, length);
	TS_SCOPED(ts_text) names = { 0 };
	const char *best = name ? nearest_name(name) : NULL;

	append_names(&names);
	if (best)
		return ts_report_usage("there is no analysis '%s'; did you mean '%s'?", name, best);
	return ts_report_usage("there is no analysis '%.*s'; analyses are %s, or all", (int)length,
			       given, ts_text_cstr(&names));
}

/* Is the operand, which is neither an analysis nor a file, a misspelt analysis? */
static bool is_misspelt(const char *operand, const char **ret_name, size_t *ret_length)
{
	return strcmp(operand, "-") != 0 && access(operand, F_OK) &&
	       !are_names(operand, ret_name, ret_length) && nearest_name(operand);
}

/* No operand names an analysis: guesses what was meant. */
static int no_name(int count, char **operands)
{
	const char *last = operands[count - 1], *given;
	TS_SCOPED(ts_text) names = { 0 };
	size_t length;

	append_names(&names);
	if (count > 1 && are_names(operands[0], &given, &length))
		return ts_report_usage("'%s' is a file; to analyze '%s', write tracesmith analyze "
				       "%s %s",
				       operands[0], operands[1], TS_SHELL(operands[1]),
				       operands[0]);
	if (is_misspelt(operands[0], &given, &length))
		return unknown_name(given, length);
	if (count > 1 && access(last, F_OK) && strcmp(last, "-") != 0 &&
	    !are_names(last, &given, &length))
		return unknown_name(given, length);
	return ts_report_usage(
		"which analysis? tracesmith analyze %s NAME, where NAME is all or %s",
		TS_SHELL(operands[0]), ts_text_cstr(&names));
}

/* A trace that does not exist may be a misspelt analysis. */
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

/*
 * Traces come first, then the names. Names may also come first, unless files are called like them.
 * False: there are no names.
 */
static bool split_operands(struct analyze *analyze, int count, char **operands, int *ret_before,
			   int *ret_after)
{
	const char *given;
	size_t length;
	int before = 0, after = 0;

	while (after < count && are_names(operands[count - after - 1], &given, &length))
		after++;
	while (before < count - after - 1 && are_names(operands[before], &given, &length) &&
	       access(operands[before], F_OK))
		before++;
	analyze->paths = operands + before;
	analyze->path_count = count - before - after;
	*ret_before = before;
	*ret_after = after;
	return before + after > 0;
}

static int choose_operands(struct analyze *analyze, int count, char **operands)
{
	struct ts_error err;
	size_t all;
	int before, after;

	bool is_live = analyze->choice.processes.count > 0;

	if (count == 0)
		return is_live ? ts_report_usage(
					 "which analysis? NAME is missing; --list lists them")
			       : ts_report_usage("TRACE or -p PID is missing");
	if (!split_operands(analyze, count, operands, &before, &after))
		return no_name(count, operands);
	if (analyze->path_count == 0 && !is_live)
		return ts_report_usage("TRACE is missing: tracesmith analyze TRACE %s",
				       operands[0]);
	ts_analysis_table(&all);
	analyze->chosen = calloc(all, sizeof(*analyze->chosen));
	analyze->results = calloc(all, sizeof(*analyze->results));
	if (!analyze->chosen || !analyze->results) {
		ts_error_set(&err, TS_ENOMEM, "no memory for the analyses");
		return ts_report_error(&err);
	}
	for (int i = 0; i < before; i++)
		choose_names(analyze, operands[i]);
	for (int i = count - after; i < count; i++)
		choose_names(analyze, operands[i]);
	return check_paths(analyze);
}

static bool is_chosen(const void *context, const char *name)
{
	const struct analyze *analyze = context;

	for (size_t i = 0; i < analyze->chosen_count; i++) {
		if (!strcmp(analyze->chosen[i]->name, name))
			return true;
	}
	return false;
}

static int check_options(struct analyze *analyze)
{
	int exit_code = ts_component_options_check(&analyze->all_options, is_chosen, analyze);

	for (size_t i = 0; i < analyze->chosen_count && !exit_code; i++)
		exit_code = ts_component_options_store(
			&analyze->all_options, analyze->chosen[i]->options,
			analyze->chosen[i]->option_count, &analyze->options);
	if (!exit_code && analyze->json && analyze->csv)
		exit_code = ts_report_usage("'--json' and '--csv' cannot be combined");
	if (!exit_code && analyze->csv && analyze->several)
		exit_code = ts_report_usage("'--csv' shows one analysis at a time");
	if (!exit_code && analyze->table && !analyze->csv)
		exit_code = ts_report_usage("'--table' needs '--csv'");
	return exit_code;
}

/* ---- run and show ---- */

static int run_one(struct analyze *analyze, size_t i, struct ts_analyze_request *request)
{
	struct ts_error err;
	int rc;

	ts_work_input_phase(request->work, analyze->chosen[i]->name);
	rc = analyze->chosen[i]->run(request, &analyze->results[i], &err);
	ts_progress_hide();
	if (!rc)
		rc = ts_result_status(&analyze->results[i], &err);
	if (rc)
		ts_error_prefix(&err, "%s", analyze->chosen[i]->name);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/*
 * First those that look at each rank alone, with times as in the trace; then clocks are aligned for
 * the others. So an analysis gives the same numbers alone and with others.
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

static bool is_shown_in_text(const struct ts_result_table *table)
{
	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].title)
			return true;
	return false;
}

/* What `all` leaves out, in lines of at most 80 columns. */
struct left_out {
	struct ts_text names;
	size_t column;
};

static void add_left_out(struct left_out *left_out, const char *name)
{
	size_t length = strlen(name);

	if (!left_out->column || left_out->column + length > 76) {
		ts_text_append_str(&left_out->names, left_out->column ? ",\n  " : "  ");
		left_out->column = 2;
	} else {
		ts_text_append_str(&left_out->names, ", ");
		left_out->column += 2;
	}
	ts_text_append_str(&left_out->names, name);
	left_out->column += length;
}

/*
 * Drops the empty tables of a result, and notes them. False: there is nothing else, and its notes
 * say no more than that.
 */
static bool drop_empty(const struct ts_analysis *analysis, struct ts_result *result,
		       struct left_out *left_out)
{
	TS_SCOPED(ts_text) name = { 0 };
	size_t filled = 0, empty = 0;

	ts_text_append_str(&name, analysis->name);
	for (const struct ts_result_table *table = result->tables; table; table = table->next) {
		if (!is_shown_in_text(table))
			continue;
		filled += !ts_result_is_empty(table);
		if (ts_result_is_empty(table))
			ts_text_printf(&name, "%s%s", empty++ ? ", " : " (", table->name);
	}
	if (empty && filled) {
		ts_text_append_char(&name, ')');
		add_left_out(left_out, ts_text_cstr(&name));
	} else if (!filled && !(analysis->flags & TS_ANALYSIS_NOTES_ANSWER)) {
		add_left_out(left_out, analysis->name);
		return false;
	}
	ts_result_drop_empty(result);
	return true;
}

static int show_text(struct analyze *analyze, struct ts_error *err)
{
	struct left_out left_out = { 0 };
	bool is_first = true;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < analyze->chosen_count; i++) {
		const struct ts_analysis *analysis = analyze->chosen[i];

		if (analyze->only_filled && !drop_empty(analysis, &analyze->results[i], &left_out))
			continue;
		ts_text_append_str(ts_stdout(), is_first ? "" : "\n");
		if (analyze->several)
			ts_result_show_heading(analysis->name, analysis->summary);
		rc = ts_result_show_text(&analyze->results[i], analyze->options.top, err);
		is_first = false;
	}
	if (!rc && left_out.names.length)
		ts_text_printf(ts_stdout(), "\nleft out, since empty (name one to see why):\n%s\n",
			       ts_text_cstr(&left_out.names));
	ts_text_release(&left_out.names);
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
		ts_result_print_notes(&analyze->results[i]);
	}
	ts_text_append_str(out, analyze->several ? "}\n" : "\n");
	return rc;
}

static int show(struct analyze *analyze)
{
	const struct ts_result_table *table;
	struct ts_error err;
	int rc;

	if (analyze->csv) {
		table = ts_result_choose_table(&analyze->results[0], analyze->table);
		if (!table)
			return analyze->table ? TS_EXIT_USAGE : TS_EXIT_DONE;
		rc = ts_result_show_csv(table, &err);
		ts_result_print_notes(&analyze->results[0]);
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
		ts_result_init(&analyze->results[analyze->result_count], ts_job_start(input->job));
	exit_code = run_all(analyze, &request);
	ts_analyze_request_release(&request);
	return exit_code ? exit_code : show(analyze);
}

static int run(struct analyze *analyze)
{
	struct ts_work_input input = { 0 };
	TS_SCOPED(ts_text) names_text = { 0 };
	unsigned int load_flags = 0;
	int exit_code;

	ts_work_choice_append_arguments(&analyze->choice, analyze->path_count, analyze->paths,
					&names_text);
	analyze->options.traces = ts_text_cstr(&names_text);
	for (size_t i = 0; i < analyze->chosen_count; i++)
		load_flags |= analyze->chosen[i]->load_flags;
	exit_code = ts_work_input_open(&input, &analyze->choice, load_flags, analyze->path_count,
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
	ts_component_options_release(&analyze->all_options);
}

static int add_analysis_options(struct analyze *analyze)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);
	int exit_code = TS_EXIT_DONE;

	for (size_t i = 0; i < count && !exit_code; i++)
		exit_code = ts_component_options_add(&analyze->all_options, list[i]->name,
						     list[i]->options, list[i]->option_count);
	return exit_code;
}

static int add_options(struct analyze *analyze)
{
	const struct ts_option first[] = {
		TS_OPTION_FLAG("list", 0, &analyze->list, "list the analyses"),
		TS_WORK_PROCESS_OPTION(analyze->choice),
		TS_WORK_CHOICE_OPTIONS(analyze->choice),
		TS_OPTION_INTEGER("top", 0, "N", &analyze->options.top, 1, INT64_MAX,
				  "show N rows of each table in text; JSON and CSV have all"),
	};
	const struct ts_option last[] = {
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &analyze->json,
			       "JSON: a list of objects, or an object of lists; exact numbers"),
		TS_OPTION_FLAG("csv", 0, &analyze->csv, "comma-separated values of one table"),
		TS_OPTION_TEXT("table", 0, "NAME", &analyze->table,
			       "with --csv: this table; default: the first"),
	};
	struct ts_component_options *all = &analyze->all_options;
	int exit_code = ts_component_options_add_verb(all, first, TS_ARRAY_SIZE(first));

	if (!exit_code)
		exit_code = add_analysis_options(analyze);
	if (!exit_code)
		exit_code = ts_component_options_add_verb(all, last, TS_ARRAY_SIZE(last));
	return exit_code;
}

/* The paragraph of --help, with the table of analyses. */
static void append_about(struct ts_text *out)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	ts_text_append_str(
		out,
		"Answers questions about what the devices of a job did and what they waited for. A TRACE "
		"may be any file that can be imported; several are the ranks of one job. NAME is an "
		"analysis, or 'all'. docs/analyze.md defines each number.\n\nanalyses:\n");
	for (size_t i = 0; i < count; i++)
		ts_text_printf(out, "  %-16s%s\n", list[i]->name, list[i]->summary);
}

static void append_examples(struct ts_text *out)
{
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	for (size_t i = 0; i < count; i++) {
		if (list[i]->example)
			ts_text_printf(out, "tracesmith analyze %s\n", list[i]->example);
	}
	ts_text_append_str(out, "tracesmith analyze run.sbt all --steps 3-5 --json\n"
				"tracesmith analyze -p 4711 breakdown");
}

static int run_command(struct analyze *analyze, int argc, char **argv)
{
	int exit_code;

	if (analyze->list)
		return analyze->json ? show_list_json() : show_list_text();
	exit_code = choose_operands(analyze, argc, argv);
	if (!exit_code)
		exit_code = check_options(analyze);
	return exit_code ? exit_code : run(analyze);
}

int ts_verb_analyze(int argc, char **argv)
{
	struct analyze analyze = {
		.options = TS_ANALYSIS_OPTIONS_DEFAULT,
		.all_options = { .kind = "analysis" },
	};
	TS_SCOPED(ts_text) about = { 0 };
	TS_SCOPED(ts_text) examples = { 0 };
	int exit_code = add_options(&analyze);

	append_about(&about);
	append_examples(&examples);
	if (!exit_code) {
		const struct ts_command command = {
			.verb = "analyze",
			.operands = "TRACE...|-p PID NAME[,NAME...]|all",
			.about = ts_text_cstr(&about),
			.examples = ts_text_cstr(&examples),
			.exits = "0  done, even if there is nothing to report\n2  usage error\n"
				 "3  bad input\n4  this build cannot decompress a file",
			.options = analyze.all_options.options,
			.option_count = analyze.all_options.count,
			.minimum_operands = 0,
			.maximum_operands = -1,
		};

		if (ts_command_parse(&command, &argc, argv, &exit_code))
			exit_code = run_command(&analyze, argc, argv);
	}
	release(&analyze);
	return exit_code;
}
