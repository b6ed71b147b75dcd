/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith state`: states of each command, stream and device over time, with reasons
 * (docs/state.md). Builds the request; state_lanes.c, state_timeline.c and state_rows.c print the
 * states, state_why.c the dependencies.
 */
#include <string.h>

#include "analyze/analyze.h"
#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/result_show.h"
#include "cli/common/terminal.h"
#include "cli/common/work_input.h"
#include "cli/state/state_show.h"
#include "cli/state/state_why.h"
#include "cli/verbs.h"

struct state {
	struct ts_work_choice choice;
	struct ts_quantity_range range;
	const char *why;
	bool json, csv, intervals, commands, edges;
	struct ts_string_list devices, streams;
	struct ts_state_view view;
};

/* ---- what is asked ---- */

static int check_options(const struct state *state)
{
	if (state->json && state->csv)
		return ts_report_usage("'--json' and '--csv' cannot be combined");
	if (state->intervals + state->commands + state->edges + (state->why != NULL) > 1)
		return ts_report_usage(
			"'--intervals', '--commands', '--edges' and '--why' cannot be combined");
	if (state->why && state->csv)
		return ts_report_usage("'--why' does not support '--csv'; use '--json'");
	return ts_amount_range_check(&state->range);
}

static int parse_numbers(const char *option, const struct ts_string_list *list,
			 const int64_t **ret_numbers, size_t *ret_count)
{
	int64_t *numbers = ts_alloc_array(list->count, sizeof(*numbers));

	if (!numbers)
		return ts_report_exit_code(TS_ENOMEM);
	*ret_numbers = numbers;
	*ret_count = list->count;
	for (size_t i = 0; i < list->count; i++) {
		if (ts_parse_int64(list->items[i], strlen(list->items[i]), &numbers[i]))
			return ts_report_usage("option '--%s': '%s' is not a valid number", option,
					       list->items[i]);
	}
	return TS_EXIT_DONE;
}

static int resolve(struct state *state, int64_t start)
{
	struct ts_state_view *view = &state->view;
	int exit_code;

	view->start = start;
	view->filter.from = INT64_MIN;
	view->filter.to = INT64_MAX;
	view->format = state->json ? TS_STATE_JSON : state->csv ? TS_STATE_CSV : TS_STATE_TEXT;
	exit_code = ts_amount_range(&state->range, start, &view->filter.from, &view->filter.to);
	if (!exit_code)
		exit_code = parse_numbers("device", &state->devices, &view->filter.devices,
					  &view->filter.device_count);
	if (!exit_code)
		exit_code = parse_numbers("stream", &state->streams, &view->filter.streams,
					  &view->filter.stream_count);
	return exit_code;
}

/* ---- the answer ---- */

static int show_result(const struct ts_state_view *view, const struct ts_result *result,
		       struct ts_error *err)
{
	int rc = ts_result_status(result, err);

	if (rc)
		return rc;
	if (view->format == TS_STATE_CSV)
		return ts_result_show_csv(result->tables, err);
	if (view->format == TS_STATE_TEXT)
		return ts_result_show_text(result, 0, err);
	rc = ts_result_show_json(result, err);
	ts_text_append_char(ts_stdout(), '\n');
	return rc;
}

static bool has_lanes(const struct ts_state_view *view)
{
	for (uint32_t i = 0; i < view->states->lane_count; i++) {
		if (ts_state_view_lane(view, &view->states->lanes[i]))
			return true;
	}
	return false;
}

static int show_lanes(const struct ts_state_view *view, const struct ts_graph *graph,
		      struct ts_error *err)
{
	TS_SCOPED(ts_result) result = { 0 };
	int rc = TS_OK;

	ts_result_init(&result, view->start);
	ts_state_fill_lanes(view, &result);
	if (view->format != TS_STATE_CSV)
		ts_state_fill_counts(view, graph, &result);
	if (view->format == TS_STATE_TEXT && !has_lanes(view))
		return TS_OK;
	if (view->format == TS_STATE_TEXT)
		rc = ts_state_show_timeline(view, err);
	return rc ? rc : show_result(view, &result, err);
}

static int show_edges(const struct ts_state_view *view, const struct ts_graph *graph,
		      struct ts_error *err)
{
	TS_SCOPED(ts_result) result = { 0 };

	ts_result_init(&result, view->start);
	ts_state_fill_edges(view, graph, &result);
	return show_result(view, &result, err);
}

static int show(const struct state *state, const struct ts_graph *graph)
{
	struct ts_error err;
	int rc;

	if (state->intervals)
		rc = ts_state_show_rows(&state->view, TS_STATE_LANES, &err);
	else if (state->commands)
		rc = ts_state_show_rows(&state->view, TS_STATE_COMMANDS, &err);
	else if (state->edges)
		rc = show_edges(&state->view, graph, &err);
	else
		rc = show_lanes(&state->view, graph, &err);
	if (rc && err.message[0])
		return ts_report_error(&err);
	return ts_report_exit_code(rc);
}

static int answer(struct state *state, struct ts_analyze_request *request)
{
	const struct ts_states *states;
	const struct ts_graph *graph;
	struct ts_error err;

	ts_work_input_phase(request->work, "dependencies and states");
	states = ts_analyze_states(request, &err);
	ts_progress_hide();
	if (!states)
		return ts_report_error(&err);
	if (request->work->command_count == 0)
		ts_report_note("no device activity in this range");
	state->view.states = states;
	if (states->lane_count && !has_lanes(&state->view))
		ts_report_note("no such device or stream; omit --device and --stream to see all");
	if (!state->why && !state->edges)
		return show(state, states->graph);
	ts_work_input_phase(request->work, "dependencies of the host");
	graph = ts_analyze_host_graph(request, &err);
	ts_progress_hide();
	if (!graph)
		return ts_report_error(&err);
	if (state->edges)
		return show(state, graph);
	return ts_state_why(request->work, graph, states, state->why, state->json);
}

static int run(struct state *state, int path_count, char **paths)
{
	struct ts_work_input input = { 0 };
	struct ts_analyze_request request;
	unsigned int load_flags = state->why || state->edges
					  ? TS_WORK_SLICES | TS_WORK_FLOWS | TS_WORK_DETAILS
					  : TS_WORK_DETAILS;
	int exit_code = ts_work_input_open(&input, &state->choice, load_flags, path_count, paths);

	if (!exit_code)
		exit_code = resolve(state, ts_job_start(input.job));
	if (!exit_code) {
		ts_analyze_request_init(&request, input.work);
		exit_code = ts_work_input_align(&request, &state->choice);
		if (!exit_code)
			exit_code = answer(state, &request);
		ts_analyze_request_release(&request);
	}
	ts_work_input_release(&input);
	return exit_code;
}

static void release(struct state *state)
{
	ts_work_choice_release(&state->choice);
	ts_string_list_release(&state->devices);
	ts_string_list_release(&state->streams);
	free((void *)state->view.filter.devices);
	free((void *)state->view.filter.streams);
}

int ts_verb_state(int argc, char **argv)
{
	struct state state = { .view.top = TS_STATE_SHOWN_LANES };
	const struct ts_option options[] = {
		TS_WORK_PROCESS_OPTION(state.choice),
		TS_OPTION_FLAG("intervals", 'i', &state.intervals,
			       "list the intervals of each lane"),
		TS_OPTION_FLAG("commands", 0, &state.commands,
			       "list the states of each command (derived table 'state')"),
		TS_OPTION_FLAG("edges", 0, &state.edges,
			       "list the dependencies (derived table 'edge')"),
		TS_OPTION_TEXT("why", 0, "EVENT", &state.why,
			       "show what EVENT waited for and what waited for it: a correlation, "
			       "gpu_op:ROW, api_call:ROW, or a name or glob"),
		TS_OPTION_TEXT("from", 0, "TIME", &state.range.from,
			       "only after this time: 1.5ms after the start of the trace, or "
			       "@NANOSECONDS of trace time"),
		TS_OPTION_TEXT("to", 0, "TIME", &state.range.to, "only before this time"),
		TS_OPTION_REPEATED("device", 'd', "N", &state.devices,
				   "only this device number; may be repeated"),
		TS_OPTION_REPEATED("stream", 's', "N", &state.streams,
				   "only this stream number; may be repeated"),
		TS_OPTION_REPEATED("rank", 0, "N", &state.choice.ranks,
				   "only this rank; may be repeated"),
		TS_OPTION_TEXT("steps", 0, "N|A-B|all", &state.choice.steps,
			       "only work issued in these steps; default: all"),
		TS_OPTION_FLAG("no-align", 0, &state.choice.no_align,
			       "do not align the clocks of several ranks"),
		TS_WORK_SHORT_NAMES_OPTION(state.choice),
		TS_OPTION_INTEGER("top", 0, "N", &state.view.top, 1, INT32_MAX,
				  "number of lanes shown in text output; default 100"),
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &state.json, "JSON, with exact numbers"),
		TS_OPTION_FLAG("csv", 0, &state.csv, "comma-separated values"),
	};
	const struct ts_command command = {
		.verb = "state",
		.operands = "TRACE... | -p PID",
		.about =
			"Shows the state of each stream and device over time: running, waiting (for what), work "
			"pending, or idle (why), as totals and as a timeline. A TRACE may be any file that can be "
			"imported; several traces are the ranks of one job. docs/state.md defines each state.\n",
		.examples =
			"tracesmith state run.sbt\n"
			"tracesmith state run.sbt --from 10ms --to 12ms --stream 7 --intervals\n"
			"tracesmith state run.sbt --commands --csv >states.csv\n"
			"tracesmith state run.sbt --why 4711\n"
			"tracesmith state rank*.json.gz --json\n"
			"tracesmith state -p 4711",
		.exits =
			"0  success, also without any device activity\n2  usage error\n3  bad input\n"
			"4  this build cannot decompress a file",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = -1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		exit_code = check_options(&state);
		if (!exit_code && !argc && !state.choice.processes.count)
			exit_code = ts_report_usage("TRACE or -p PID is missing");
		/*
		 * Work dropped by a selection still ran on the device: it would show up as waits
		 * and idle time.
		 */
		state.choice.all = !state.choice.steps;
		if (!exit_code)
			exit_code = run(&state, argc, argv);
	}
	release(&state);
	return exit_code;
}
