/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith symbolize`: names for the native frames of traces that were recorded before, or
 * elsewhere.
 */
#include "base/memory.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/symbolize_trace.h"
#include "cli/verbs.h"

static int run(const char *path, const struct ts_symbolize_choice *choice, bool quiet)
{
	struct ts_symbolize_summary summary;
	struct ts_error err;
	int rc = ts_cli_symbolize(path, choice, &summary, &err);

	if (!rc && !quiet)
		ts_symbolize_tell(&summary, path, true);
	ts_symbolize_summary_release(&summary);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_verb_symbolize(int argc, char **argv)
{
	struct ts_symbolize_choice choice = { 0 };
	struct ts_word_list folders = { 0 };
	bool quiet = false;
	const struct ts_option options[] = {
		TS_OPTION_WORD(
			"debug-path", 'd', "DIR", &folders,
			"look here, too, for binaries and debug files; repeat, or separate with colons"),
		TS_OPTION_FLAG("force", 'f', &choice.force,
			       "frames that have names already as well: later ones count"),
		TS_OPTION_FLAG("quiet", 'q', &quiet, "only warnings and errors"),
	};
	const struct ts_command command = {
		.verb = "symbolize",
		.operands = "TRACE...",
		.about =
			"Finds the functions, source lines and inlined callers of native frames and appends them to\n"
			"the trace as rows of symbol. 'record' does so at its end; this is for traces that were recorded\n"
			"with --no-symbols, saved by 'recover', or come from another machine. A file counts only if\n"
			"its build id is the recorded one. Looked for at the recorded path, in --debug-path, in the\n"
			"folders of TRACESMITH_DEBUG_PATH, and in /usr/lib/debug. No row changes.\n",
		.examples = "tracesmith symbolize run.sbt\n"
			    "tracesmith symbolize run.sbt --debug-path ~/sysroot --force",
		.exits = "0  done, also where nothing was found\n2  usage\n"
			 "3  a file cannot be read or written, is no trace or was not finished",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = -1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		choice.folders = folders.words;
		choice.folder_count = folders.count;
		exit_code = TS_EXIT_DONE;
		for (int i = 0; i < argc && !exit_code; i++)
			exit_code = run(argv[i], &choice, quiet);
	}
	ts_word_list_release(&folders);
	return exit_code;
}
