/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith symbolize`: resolves the native frames of existing traces, including those recorded
 * on other machines.
 */
#include "base/memory.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/symbolize_report.h"
#include "cli/common/trace_input.h"
#include "cli/verbs.h"

static int run(const char *path, const struct ts_symbolize_choice *choice, bool quiet)
{
	struct ts_symbolize_summary summary;
	struct ts_error err;
	int rc, exit_code = ts_trace_input_check_end(path);

	if (exit_code)
		return exit_code;
	rc = ts_cli_symbolize(path, choice, &summary, &err);
	if (!rc && !quiet)
		ts_symbolize_report(&summary, path, true);
	ts_symbolize_summary_release(&summary);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_verb_symbolize(int argc, char **argv)
{
	struct ts_symbolize_choice choice = { 0 };
	struct ts_string_list folders = { 0 };
	bool quiet = false;
	const struct ts_option options[] = {
		TS_OPTION_REPEATED(
			"debug-path", 'd', "DIR", &folders,
			"also search DIR for binaries and debug files; repeatable, or a list with colons"),
		TS_OPTION_FLAG("force", 'f', &choice.force,
			       "resolve frames again that already have names"),
		TS_OPTION_FLAG("quiet", 'q', &quiet, "print only warnings and errors"),
	};
	const struct ts_command command = {
		.verb = "symbolize",
		.operands = "TRACE...",
		.about =
			"Resolves native frames to functions, source lines and inlined functions, and appends them "
			"to the trace as rows of table 'symbol'; existing rows do not change. 'record' does this when "
			"it ends; use this verb for traces recorded with --no-symbols, written by 'recover' or from "
			"another machine. Searches the recorded path, --debug-path, the directories in "
			"TRACESMITH_DEBUG_PATH and /usr/lib/debug for files with the recorded build id.\n",
		.examples = "tracesmith symbolize run.sbt\n"
			    "tracesmith symbolize run.sbt --debug-path ~/sysroot --force",
		.exits = "0  done, even if nothing was found\n"
			 "2  usage error\n"
			 "3  a file cannot be read or written, is not a trace or is unfinished",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = -1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		choice.folders = folders.items;
		choice.folder_count = folders.count;
		exit_code = TS_EXIT_DONE;
		for (int i = 0; i < argc && !exit_code; i++)
			exit_code = run(argv[i], &choice, quiet);
	}
	ts_string_list_release(&folders);
	return exit_code;
}
