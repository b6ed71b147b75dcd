/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith view`: prints the rows of a trace in time order, filtered, as a table or JSON lines.
 * Builds the query from the options; trace/row_query.c finds the rows, view_print.c prints them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/trace_input.h"
#include "cli/verbs.h"
#include "cli/view/view.h"
#include "trace/trace_totals.h"

/* ---- options ---- */

static int choose_tables(struct ts_view *view)
{
	for (size_t i = 0; i < view->table_names.count; i++) {
		const char *name = view->table_names.items[i];
		int id = ts_table_by_name(name);
		const struct ts_table_info *table = id < 0 ? NULL : ts_table_info((uint32_t)id);

		if (!table)
			return ts_report_unknown_table(name);
		if (table->kind == TS_KIND_DERIVED)
			return ts_report_usage(
				"table '%s' is computed, not stored: tracesmith state "
				"TRACE %s",
				name, id == TS_TABLE_EDGE ? "--edges" : "--commands");
		if (id == TS_TABLE_INDEX)
			return ts_report_usage("table '%s' cannot be viewed", name);
		view->tables |= TS_TABLE_BIT(id);
	}
	if (view->table_names.count == 0)
		view->tables = ts_trace_event_tables(view->reader);
	return TS_EXIT_DONE;
}

static int choose_order(struct ts_view *view)
{
	if (!strcmp(view->sort_text, "start"))
		view->order = TS_ROW_ORDER_START;
	else if (!strcmp(view->sort_text, "duration"))
		view->order = TS_ROW_ORDER_DURATION;
	else
		return ts_report_usage("option '--sort' is start or duration, not '%s'",
				       view->sort_text);
	return TS_EXIT_DONE;
}

static int resolve(struct ts_view *view)
{
	int exit_code = choose_order(view);

	if (!exit_code && view->commands)
		exit_code = ts_view_check_commands(view);
	if (!exit_code)
		exit_code = choose_tables(view);
	if (!exit_code)
		exit_code = ts_view_choose_columns(view);
	view->from = INT64_MIN;
	view->to = INT64_MAX;
	if (!exit_code)
		exit_code = ts_amount_range(&view->range, view->show.start, &view->from, &view->to);
	return exit_code;
}

/* ---- rows ---- */

static int on_row(void *context, const struct ts_row *row, struct ts_error *err)
{
	return ts_view_print_row(context, row, err);
}

static int show_events(struct ts_view *view, struct ts_error *err)
{
	struct ts_row_query query = {
		.from = view->from,
		.to = view->to,
		.filter = view->filter,
		.order = view->order,
		.limit = view->limit < 0 ? UINT64_MAX : (uint64_t)view->limit - view->rows,
		.emit = on_row,
		.context = view,
		.progress = ts_progress_step,
		.progress_context = &view->progress,
	};

	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *table = ts_table_info(id);

		if (!table || !(view->tables & TS_TABLE_BIT(id)) || table->kind != TS_KIND_EVENT)
			continue;
		query.tables |= TS_TABLE_BIT(id);
		query.masks[id] = ts_view_mask(view, table);
	}
	return ts_row_query_run(view->reader, &query, err);
}

/* Loaded only if device work is printed: it takes memory for every call. */
static int load_launches(struct ts_view *view, struct ts_error *err)
{
	uint64_t wanted = TS_TABLE_BIT(TS_TABLE_GPU_OP) | TS_TABLE_BIT(TS_TABLE_API_CALL);

	if (!view->stacks || !(view->tables & wanted) ||
	    ts_reader_rows(view->reader, TS_TABLE_API_CALL) == 0)
		return TS_OK;
	return ts_view_launches_new(&view->launches, view->reader, err);
}

static int show_rows(struct ts_view *view, struct ts_error *err)
{
	/* Nothing is printed yet: Ctrl-C may end the program at once. */
	int finished, rc = load_launches(view, err);

	ts_progress_start(&view->progress, "view", TS_PROGRESS_ROWS);
	ts_view_print_start(view);
	if (!rc)
		rc = ts_view_list_tables(view, err);
	if (!rc)
		rc = show_events(view, err);
	ts_progress_stop(&view->progress);
	/* Print the rows found before an error. */
	finished = ts_view_print_finish(view, rc ? NULL : err);
	if (!rc)
		rc = finished;
	return rc ? rc : ts_reader_status(view->reader, err);
}

static void show_stats(const struct ts_view *view)
{
	ts_report_note("bytes read: %" PRIu64 " of %" PRIu64 ", chunks read: %" PRIu64
		       " of %zu, rows: %" PRIu64,
		       ts_reader_bytes_read(view->reader),
		       ts_reader_state(view->reader)->file_bytes,
		       ts_reader_chunks_read(view->reader), ts_reader_chunk_count(view->reader),
		       view->rows);
}

static bool has_filters(const struct ts_view *view)
{
	const struct ts_filter_options *filters = &view->filters;

	return filters->names.count || filters->categories.count || filters->devices.count ||
	       filters->streams.count || filters->processes.count || filters->threads.count ||
	       view->range.from || view->range.to;
}

static int run(struct ts_view *view)
{
	TS_AUTO(ts_reader) reader = NULL;
	TS_AUTO(ts_filter) filter = NULL;
	struct ts_error err;
	int exit_code = ts_amount_range_check(&view->range), rc;

	if (!exit_code && view->pid)
		exit_code =
			ts_trace_input_open_filtered(&reader, view->pid, &view->filters.processes);
	else if (!exit_code)
		exit_code = ts_trace_input_open(&reader, view->path);
	if (exit_code)
		return exit_code;
	view->reader = reader;
	ts_show_init(&view->show, reader);
	view->show.short_names = view->short_names && !view->json;
	exit_code = resolve(view);
	if (exit_code)
		return exit_code;
	rc = ts_filter_options_compile(&filter, reader, &view->filters, &err);
	view->filter = filter;
	if (!rc)
		rc = view->hot        ? ts_view_hot(view, &err)
		     : view->commands ? ts_view_commands(view, &err)
				      : show_rows(view, &err);
	/* Rows come before the error. */
	if (!ts_stdout_flush(NULL) && view->stats)
		show_stats(view);
	if (rc && err.message[0])
		return ts_report_error(&err);
	if (!rc && !view->rows && view->limit && has_filters(view))
		ts_report_note("no row of '%s' matches", view->path);
	return ts_report_exit_code(rc);
}

int ts_verb_view(int argc, char **argv)
{
	struct ts_view view = { .limit = -1, .sort_text = "start", .range.may_be_instant = true };
	const struct ts_option options[] = {
		TS_OPTION_LIST("table", 't', "NAME,...", &view.table_names,
			       "only these tables; default: all events, merged by time"),
		TS_OPTION_REPEATED("name", 'n', "GLOB", &view.filters.names,
				   "only rows with this name; may be repeated"),
		TS_OPTION_REPEATED("category", 'c', "GLOB", &view.filters.categories,
				   "only rows with this category"),
		TS_OPTION_TEXT("from", 0, "TIME", &view.range.from,
			       "only rows that end after this time: 1.5ms after the start of the "
			       "trace, or @NANOSECONDS of trace time"),
		TS_OPTION_TEXT("to", 0, "TIME", &view.range.to,
			       "only rows that start at or before this time"),
		TS_OPTION_REPEATED("device", 'd', "N", &view.filters.devices,
				   "only rows of this device"),
		TS_OPTION_REPEATED("stream", 's', "N", &view.filters.streams,
				   "only rows of this stream"),
		TS_OPTION_REPEATED("process", 'p', "PID|NAME", &view.filters.processes,
				   "only rows of this process; without TRACE: what has been "
				   "recorded of it so far"),
		TS_OPTION_REPEATED("thread", 0, "TID|NAME", &view.filters.threads,
				   "only rows of this thread"),
		TS_OPTION_LIST("columns", 0, "NAME,...", &view.column_names,
			       "print these columns: of the tables, or time, where, args, ..."),
		TS_OPTION_FLAG("args", 'a', &view.args, "print arguments, too"),
		TS_OPTION_FLAG(
			"stacks", 0, &view.stacks,
			"print call stacks below their rows, innermost frame first; for device work, "
			"the stacks of its launch"),
		TS_OPTION_INTEGER("limit", 'l', "N", &view.limit, 0, INT64_MAX,
				  "print at most N rows"),
		TS_OPTION_TEXT("sort", 0, "ORDER", &view.sort_text,
			       "start (default) or duration, longest first"),
		TS_OPTION_FLAG("commands", 0, &view.commands,
			       "the commands submitted to devices, by stream, with operands"),
		TS_OPTION_TEXT("hot", 0, "KERNEL", &view.hot,
			       "where this kernel spends its time: sampled instructions, source "
			       "lines, launches"),
		TS_OPTION_FLAG("short-names", 0, &view.short_names,
			       "text: names of kernels without template and call arguments"),
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &view.json,
			       "one JSON object per line, with all columns and arguments"),
		TS_OPTION_FLAG("stats", 0, &view.stats, "print on stderr how much was read"),
	};
	const struct ts_command command = {
		.verb = "view",
		.operands = "TRACE | -p PID",
		.about =
			"Prints the rows of a trace in time order. Memory does not grow with the trace, and only the "
			"chunks needed are read. Globs: * ? [a-z].\n"
			"With -p PID and no TRACE, prints what has been recorded of a process so far, without "
			"disturbing it or its recorder. The process may have ended. If PID is a recorder, prints "
			"everything that it has recorded.\n",
		.examples = "tracesmith view run.sbt --limit 20\n"
			    "tracesmith view run.sbt --table gpu_op --sort duration --limit 10\n"
			    "tracesmith view run.sbt --name 'aten::*' --from 1.5s --to 1.6s\n"
			    "tracesmith view run.sbt --device 0 --stream 7 --json\n"
			    "tracesmith view run.sbt --commands --stream 7\n"
			    "tracesmith view run.sbt --table sample --stacks\n"
			    "tracesmith view run.sbt --table gpu_op --name '*gemm*' --stacks\n"
			    "tracesmith view run.sbt --hot gemm\n"
			    "tracesmith view run.sbt --table process,thread\n"
			    "tracesmith view -p 4711 --sort duration --limit 10",
		.exits = "0  done\n2  usage error\n3  bad input",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = 1,
	};
	char name[TS_TRACE_INPUT_NAME_BYTES];
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		view.pid = ts_trace_input_live_pid(argc, &view.filters.processes);
		view.path = argc ? argv[0] : ts_trace_input_live_name(view.pid, name);
		exit_code = argc || view.pid ? run(&view)
					     : ts_report_usage("TRACE or -p PID is missing");
	}
	ts_string_list_release(&view.table_names);
	ts_string_list_release(&view.column_names);
	ts_filter_options_release(&view.filters);
	return exit_code;
}
