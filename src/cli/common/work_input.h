/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by verbs that analyse the work of a job (analyze, state, align, diff): options that select
 * a part of it, and opening and loading the traces.
 *
 *	struct ts_work_choice choice = { 0 };
 *	const struct ts_option options[] = {
 *		TS_WORK_CHOICE_OPTIONS(choice),
 *		...
 *	};
 *	struct ts_work_input input = { 0 };
 *	...
 *	exit_code = ts_work_input_open(&input, &choice, TS_WORK_SLICES, path_count, paths);
 *	if (!exit_code)
 *		... input.work ...
 *	ts_work_input_release(&input);
 *	ts_work_choice_release(&choice);
 */
#ifndef TS_CLI_COMMON_WORK_INPUT_H
#define TS_CLI_COMMON_WORK_INPUT_H

#include <tracesmith/open.h>
#include <tracesmith/selection.h>

#include "analyze/analyze.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "state/work/work.h"

/* The selection as given on the command line. */
struct ts_work_choice {
	const char *steps, *step_span, *from, *to, *rounding;
	bool all, no_align, short_names;
	struct ts_string_list ranks;
	struct ts_string_list processes; /* instead of traces */
};

void ts_work_choice_release(struct ts_work_choice *choice);

#define TS_WORK_SHORT_NAMES_OPTION(choice)                                                    \
	TS_OPTION_FLAG("short-names", 0, &(choice).short_names,                               \
		       "names of kernels and operators without template and call arguments, " \
		       "which merges those that differ in nothing else")

#define TS_WORK_PROCESS_OPTION(choice)                                                 \
	TS_OPTION_REPEATED("process", 'p', "PID", &(choice).processes,                 \
			   "instead of TRACE: what has been recorded of this process " \
			   "so far; repeat it for the ranks of a job")

#define TS_WORK_CHOICE_OPTIONS(choice)                                                          \
	TS_OPTION_TEXT("steps", 0, "N|A-B|all", &(choice).steps,                                \
		       "work issued in these steps, by number; default: all but the last one, " \
		       "which is often incomplete"),                                            \
		TS_OPTION_TEXT("step-span", 0, "NAME", &(choice).step_span,                     \
			       "spans of this name are the steps, such as an NVTX range; "      \
			       "default: ProfilerStep#N, else TS_STEP()"),                      \
		TS_OPTION_FLAG("all", 0, &(choice).all, "all steps, including the last one"),   \
		TS_OPTION_TEXT("from", 0, "TIME", &(choice).from,                               \
			       "work issued from this time on: 1.5ms after the start of the "   \
			       "trace, or @NANOSECONDS of trace time"),                         \
		TS_OPTION_TEXT("to", 0, "TIME", &(choice).to, "work issued until this time"),   \
		TS_OPTION_REPEATED("rank", 0, "N", &(choice).ranks,                             \
				   "only this rank; may be repeated"),                          \
		TS_OPTION_FLAG("no-align", 0, &(choice).no_align,                               \
			       "do not align the clocks of the ranks"),                         \
		TS_WORK_SHORT_NAMES_OPTION(choice),                                             \
		TS_OPTION_TEXT("rounding", 0, "exact|hta", &(choice).rounding,                  \
			       "hta: round and classify like HTA, to compare with it")

/* The opened traces. A zeroed struct may be released. */
struct ts_work_input {
	struct ts_job *job; /* times on the command line count from its start */
	struct ts_work *work;
	/* private */
	struct ts_selection selection;
	int64_t *ranks;
};

/*
 * Opens and loads the traces of one job, or with --process, snapshots of processes. Returns an exit
 * code; errors have been reported.
 */
int ts_work_input_open(struct ts_work_input *input, const struct ts_work_choice *choice,
		       unsigned int load_flags, int path_count, char **paths);
void ts_work_input_release(struct ts_work_input *input);

/* Loads the work again, with the last steps that the default selection left out, if it did. */
int ts_work_input_include_last_steps(struct ts_work_input *input);

/*
 * The operands and options that select the same work again, quoted for a shell: "'my run.sbt'
 * --steps 3". If there are many traces only the first ones are named, then "...".
 */
void ts_work_choice_append_arguments(const struct ts_work_choice *choice, int path_count,
				     char **paths, struct ts_text *out);

/*
 * Aligns the clocks of several ranks by their collectives, unless --no-align is given, and reports
 * offsets and uncertainty on stderr. Drops the results that `request` computed from the old times.
 * Returns an exit code.
 */
int ts_work_input_align(struct ts_analyze_request *request, const struct ts_work_choice *choice);

/*
 * On a terminal, shows the current activity if the work is large enough to take a second or more.
 */
void ts_work_input_phase(const struct ts_work *work, const char *what);

#endif
