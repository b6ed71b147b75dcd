/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry point of the tool: looks up the verb, sets up what all verbs share (SIGPIPE, standard
 * descriptors, output) and returns the exit code.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/output.h"
#include "cli/common/cli_output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/verbs.h"
#include "tracesmith_config.h"

/*
 * If the caller closed descriptor 0, 1 or 2, the next file we open would take its number and
 * receive our output. Opens /dev/null there: read-only, so that writes fail and are reported, and
 * close-on-exec, so that programs started by a verb still find it closed.
 */
static void open_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)!ts_io_open("/dev/null", O_RDONLY, 0);
	}
}

/* A recorder that a program starts has no other way to learn this; it must not fail for it. */
static void read_mode(void)
{
	const char *text = getenv("TRACESMITH_MODE");
	struct ts_error err;
	mode_t mode;

	if (!text || !*text)
		return;
	if (ts_output_parse_mode(text, &mode, &err))
		ts_report_warning("TRACESMITH_MODE: %s; files are for their owner only",
				  err.message);
	else
		ts_output_set_mode(mode);
}

static int run_verb(int argc, char **argv)
{
	const struct ts_verb *verb = ts_verb_find(argv[0]);

	if (!verb)
		return ts_verb_unknown(argv[0]);
	ts_report_start(verb->name);
	read_mode();
	/* A closed pipe ends the tool silently: by the signal, or by an error without a message
	 * (cli_output.h). */
	if (!(verb->flags & TS_VERB_KEEPS_SIGNALS))
		signal(SIGPIPE, verb->flags & TS_VERB_KEEPS_FILES ? SIG_IGN : SIG_DFL);
	if ((verb->flags & (TS_VERB_KEEPS_FILES | TS_VERB_KEEPS_SIGNALS)) == TS_VERB_KEEPS_FILES)
		ts_progress_guard();
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
