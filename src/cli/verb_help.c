/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith help [VERB]`: the same text as `tracesmith VERB --help`, or the list of verbs. */
#include "base/memory.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/verbs.h"

static const struct ts_command command = {
	.verb = "help",
	.operands = "[VERB]",
	.about = "Shows the usage, options, examples and exit codes of a verb. Without a verb, "
		 "lists all verbs.\n",
	.examples = "tracesmith help view",
	.exits = "0  done\n2  no such verb",
	.maximum_operands = 1,
};

void ts_verb_usage(void)
{
	struct ts_text *out = ts_stdout();
	const struct ts_verb *verbs;
	size_t count;

	ts_text_append_str(out, "usage: tracesmith VERB [arguments]\n"
				"       tracesmith --help | --version\n\n"
				"Records, analyzes and replays the GPU work of programs.\n\n"
				"verbs:\n");
	verbs = ts_verb_list(&count);
	for (size_t i = 0; i < count; i++)
		ts_text_printf(out, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
	ts_text_append_str(out, "\n'tracesmith VERB --help' shows the help of a verb.\n");
}

int ts_verb_help(int argc, char **argv)
{
	char option[] = "--help";
	const struct ts_verb *verb;
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (argc == 0) {
		ts_verb_usage();
		return TS_EXIT_DONE;
	}
	verb = ts_verb_find(argv[0]);
	if (!verb)
		return ts_verb_unknown(argv[0]);
	return verb->run(2, (char *[]){ argv[0], option, NULL });
}
