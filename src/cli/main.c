/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool's entry: finds the verb, sets up what all verbs share (pipes, descriptors, output) and
 * turns the result into an exit code.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/verbs.h"
#include "tracesmith_config.h"

/*
 * A caller may have closed 0, 1 or 2; the next file opened would then be written to as if it were
 * standard output. Read-only, so that writing fails and is reported; closed again for programs that
 * a verb starts.
 */
static void open_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

static int run_verb(int argc, char **argv)
{
	const struct ts_verb *verb = ts_verb_find(argv[0]);

	if (!verb)
		return ts_verb_unknown(argv[0]);
	ts_report_start(verb->name);
	/* Quiet either way: by the signal, or by an error without a message (cli_output.h). */
	if (!(verb->flags & TS_VERB_KEEPS_SIGNALS))
		signal(SIGPIPE, verb->flags & TS_VERB_KEEPS_FILES ? SIG_IGN : SIG_DFL);
	return verb->run(argc, argv);
}

static int run(int argc, char **argv)
{
	if (argc < 2)
		return ts_report_usage("no verb given");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		ts_verb_usage();
		return TS_EXIT_DONE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		ts_text_append_str(ts_stdout(), "tracesmith " TS_VERSION_STRING "\n");
		return TS_EXIT_DONE;
	}
	return run_verb(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	struct ts_error err;
	int exit_code;

	open_standard_descriptors();
	exit_code = run(argc, argv);
	if (ts_stdout_flush(&err) && err.message[0]) {
		int code = ts_report_error(&err);

		exit_code = exit_code ? exit_code : code;
	}
	ts_text_release(ts_stdout());
	return exit_code;
}
