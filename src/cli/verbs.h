/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of the command line: `tracesmith VERB ...`.
 *
 * How to add a verb `count`:
 *
 *  1. Write src/cli/verb_count.c with `int ts_verb_count(int argc, char **argv)`; argv[0] is the
 *     verb. Describe it in a struct ts_command (options.h) and call ts_command_parse() first: it
 *     handles --help and usage errors. Results go to ts_stdout() (cli_output.h), everything else
 *     to stderr through report.h. Return one of enum ts_exit.
 *  2. Declare it below and add one line to the table in verbs.c.
 *  3. Write docs/man/tracesmith-count.1 and tests/cli/count/.
 *
 * Verbs do not parse trace bytes; the library does. The build picks up new files by itself.
 */
#ifndef TS_CLI_VERBS_H
#define TS_CLI_VERBS_H

#include <stddef.h>

/* Writes files that must be finished: a closed pipe on stdout must not kill the verb. */
#define TS_VERB_KEEPS_FILES 1u
/* Starts programs, which inherit the caller's signal dispositions; sets its own handlers. */
#define TS_VERB_KEEPS_SIGNALS 2u

struct ts_verb {
	const char *name;
	const char *summary; /* one line for `tracesmith --help` */
	int (*run)(int argc, char **argv);
	unsigned int flags;
};

/* All verbs, in the order in which --help lists them. */
const struct ts_verb *ts_verb_list(size_t *ret_count);

/* Finds a verb by name or alias (`backtrace` is `stack`); NULL if there is none. */
const struct ts_verb *ts_verb_find(const char *name);

/* Reports an unknown verb and suggests the closest name. Returns TS_EXIT_USAGE. */
int ts_verb_unknown(const char *name);

/* Prints the text of `tracesmith --help` to standard output. */
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
