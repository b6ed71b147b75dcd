/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith top`: shows targets, devices and the machine. Read-only, except for signals that the
 * user sends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/top/top.h"
#include "cli/verbs.h"

#define DELAY_NS INT64_C(1000000000)
#define DELAY_LEAST_NS INT64_C(50000000)

struct options {
	bool once, json, all, full_command, python, idle;
	int64_t count;
	const char *delay, *backends, *sort;
	struct ts_string_list pids;
};

/* ---- the command line ---- */

static int unknown_column(const char *name)
{
	char known[256];
	size_t length = 0;

	for (size_t i = 0; i < TS_TOP_COLUMNS; i++)
		length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
					   i ? ", " : "",
					   ts_top_column((enum ts_top_column)i)->sort_name);
	return ts_report_usage("option '--sort': '%s' is not a column; available: %s", name, known);
}

static int read_sort(const struct options *options, struct ts_top_view *view)
{
	const char *name = options->sort ? options->sort : "cpu";

	for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
		if (!strcasecmp(name, ts_top_column((enum ts_top_column)i)->sort_name)) {
			view->sort = (enum ts_top_column)i;
			return TS_EXIT_DONE;
		}
	}
	return unknown_column(name);
}

static int read_pids(const struct options *options, pid_t *pids)
{
	for (size_t i = 0; i < options->pids.count; i++) {
		const char *text = options->pids.items[i];
		int64_t pid;

		if (ts_parse_int64(text, strlen(text), &pid) || pid <= 0 || pid > INT32_MAX)
			return ts_report_usage("option '-p': '%s' is not a valid process id", text);
		pids[i] = (pid_t)pid;
	}
	return TS_EXIT_DONE;
}

static int check(const struct options *options, struct ts_top *top)
{
	int rc = ts_amount_seconds("delay", options->delay, &top->delay_ns);

	if (rc)
		return rc;
	if (top->delay_ns < DELAY_LEAST_NS)
		return ts_report_usage("option '--delay': '%s' is less than 0.05 s",
				       options->delay);
	if (options->backends && strpbrk(options->backends, "; \t\n"))
		return ts_report_usage("option '--backends': '%s' is not a list of names",
				       options->backends);
	if (options->json && !options->once && !options->count)
		return ts_report_usage("'--json' needs '--once' or '-n'");
	if (options->once && options->count > 1)
		return ts_report_usage("'--once' means '-n 1': use one of them");
	if (options->all && options->pids.count)
		return ts_report_usage("'-a' and '-p' cannot be combined");
	return TS_EXIT_DONE;
}

static int check_processes(const struct ts_top *top)
{
	for (size_t i = 0; i < top->requested_count; i++) {
		struct ts_error err;

		if (!ts_process_exists(top->requested[i], NULL)) {
			ts_error_set(&err, TS_ENOTFOUND, "there is no process %d",
				     (int)top->requested[i]);
			return ts_report_error(&err);
		}
	}
	return TS_EXIT_DONE;
}

static int check_terminal(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return ts_report_usage(
			"standard %s is not a terminal: use '--once', or '-n COUNT' for several",
			isatty(STDOUT_FILENO) ? "input" : "output");
	if (!term || !*term || !strcmp(term, "dumb"))
		return ts_report_usage(
			"the terminal (TERM='%s') cannot show a screen: use '--once'",
			term ? term : "");
	return TS_EXIT_DONE;
}

/* ---- the verb ---- */

static int run(const struct options *options, struct ts_top *top, struct ts_top_view *view)
{
	struct ts_error err;
	int rc;

	if (ts_top_open(top, &err))
		rc = ts_report_error(&err);
	else if (options->once || options->count)
		rc = ts_top_run_plain(top, view, options->json,
				      options->count ? options->count : 1);
	else
		rc = ts_top_run_screen(top, view);
	ts_top_close(top);
	ts_top_view_release(view);
	return rc;
}

static int check_and_run(const struct options *options)
{
	TS_AUTO_FREE pid_t *pids = ts_alloc_array(options->pids.count, sizeof(*pids));
	struct ts_top top = {
		.requested = pids,
		.requested_count = options->pids.count,
		.all = options->all,
		.backends = options->backends,
		.delay_ns = DELAY_NS,
		.samples_python = options->python || options->idle,
		.python_request = { .idle = options->idle },
	};
	struct ts_top_view view = { .full_command = options->full_command };
	int rc = TS_EXIT_INPUT;

	if (pids)
		rc = check(options, &top);
	if (!rc)
		rc = read_pids(options, pids);
	if (!rc)
		rc = read_sort(options, &view);
	if (!rc && !options->once && !options->count)
		rc = check_terminal();
	if (!rc)
		rc = check_processes(&top);
	return rc ? rc : run(options, &top, &view);
}

int ts_verb_top(int argc, char **argv)
{
	struct options given = { .count = 0 };
	const struct ts_option options[] = {
		TS_OPTION_FLAG("once", 0, &given.once,
			       "print one snapshot as plain text, after one interval"),
		TS_OPTION_INTEGER("count", 'n', "N", &given.count, 1, INT64_MAX,
				  "print N snapshots as plain text"),
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &given.json,
			       "with --once or -n: one JSON object per snapshot"),
		TS_OPTION_TEXT("delay", 'd', "SECONDS", &given.delay,
			       "refresh interval (default 1)"),
		TS_OPTION_LIST("pid", 'p', "PID,...", &given.pids,
			       "only these processes and their children"),
		TS_OPTION_FLAG("all", 'a', &given.all,
			       "include all your other processes (root: everybody's)"),
		TS_OPTION_TEXT("sort", 0, "COLUMN", &given.sort,
			       "cpu (default), mem, pid, time, events, lost, ..."),
		TS_OPTION_FLAG("command", 'c', &given.full_command,
			       "command lines instead of names"),
		TS_OPTION_FLAG("python", 0, &given.python,
			       "also functions and threads of Python programs"),
		TS_OPTION_FLAG("idle", 0, &given.idle,
			       "the same, including the time of idle threads"),
		TS_OPTION_TEXT(
			"backends", 0, "LIST", &given.backends,
			"metric sources: host,nvml,... (default: $TRACESMITH_BACKENDS, or all)"),
	};
	const struct ts_command command = {
		.verb = "top",
		.operands = "",
		.about = "Shows processes with a TraceSmith agent, their children, and processes "
			 "that use accelerators: CPU, memory, devices, events stored and lost; "
			 "for Python programs also functions by own and total time, threads and "
			 "the GIL. Press h for the keys, q to quit.\n",
		.examples =
			"tracesmith top\ntracesmith top -p 1234 -d 0.5\ntracesmith top --python --once -p 1234\ntracesmith top --once --json | jq '.processes[].pid'",
		.exits =
			"0  done\n2  usage error, or no terminal\n3  no such process, or the live directory cannot be used",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code))
		exit_code = check_and_run(&given);
	ts_string_list_release(&given.pids);
	return exit_code;
}
