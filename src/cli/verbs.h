/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of the command line: `tracesmith VERB ...`.
 *
 * How to add a verb `count`:
 *
 *  1. Write src/cli/verb_count.c with `int ts_verb_count(int argc, char **argv)`. argv[0] is the
 *     verb. Describe it in a struct ts_command (options.h) and begin with ts_command_parse(), which
 *     serves --help and usage errors. What is asked for goes to ts_stdout() (cli_output.h), all
 *     else
 *     to stderr through report.h. Return one of enum ts_exit.
 *  2. Declare it below and add one line to the table in verbs.c.
 *  3. Write docs/man/tracesmith-count.1 and tests/cli/count/.
 *
 * A verb holds no knowledge of trace bytes: that is the library's. The build finds new files alone.
 */
#ifndef TS_CLI_VERBS_H
#define TS_CLI_VERBS_H

#include <stddef.h>

/* It writes files or must finish them: a reader that closes our output must not kill it. */
#define TS_VERB_KEEPS_FILES 1u
/* It starts programs, which must find signals as our caller left them; it sees to them itself. */
#define TS_VERB_KEEPS_SIGNALS 2u

struct ts_verb {
	const char *name;
	const char *summary; /* a line for `tracesmith --help` */
	int (*run)(int argc, char **argv);
	unsigned int flags;
};

/* In the order in which they are listed. */
const struct ts_verb *ts_verb_list(size_t *ret_count);

/* By its name or another one (`backtrace` is `stack`); NULL where there is none. */
const struct ts_verb *ts_verb_find(const char *name);

/* Tells that there is no such verb, and which one was probably meant. Returns TS_EXIT_USAGE. */
int ts_verb_unknown(const char *name);

/* What `tracesmith --help` shows, to standard output. */
void ts_verb_usage(void);

int ts_verb_align(int argc, char **argv);
int ts_verb_analyze(int argc, char **argv);
int ts_verb_config(int argc, char **argv);
int ts_verb_diff(int argc, char **argv);
int ts_verb_doctor(int argc, char **argv);
int ts_verb_export(int argc, char **argv);
int ts_verb_help(int argc, char **argv);
int ts_verb_import(int argc, char **argv);
int ts_verb_info(int argc, char **argv);
int ts_verb_ps(int argc, char **argv);
int ts_verb_record(int argc, char **argv);
int ts_verb_recover(int argc, char **argv);
int ts_verb_replay(int argc, char **argv);
int ts_verb_sniff(int argc, char **argv);
int ts_verb_stack(int argc, char **argv);
int ts_verb_state(int argc, char **argv);
int ts_verb_symbolize(int argc, char **argv);
int ts_verb_top(int argc, char **argv);
int ts_verb_verify(int argc, char **argv);
int ts_verb_view(int argc, char **argv);
int ts_verb_window(int argc, char **argv);

#endif
