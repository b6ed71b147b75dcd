/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs. Explicit: a verb that is not listed here does not exist. */
#include <string.h>

#include "base/memory.h"
#include "cli/common/nearest.h"
#include "cli/common/report.h"
#include "cli/verbs.h"

static const struct ts_verb verbs[] = {
	{ "record", "run a program, or watch running ones, and record what they do", ts_verb_record,
	  TS_VERB_KEEPS_FILES | TS_VERB_KEEPS_SIGNALS },
	{ "sniff", "record the Python stacks of running processes as a timeline", ts_verb_sniff,
	  TS_VERB_KEEPS_FILES | TS_VERB_KEEPS_SIGNALS },
	{ "stack", "show where the threads of Python processes stand now", ts_verb_stack, 0 },
	{ "ps", "list the processes that can be recorded", ts_verb_ps, 0 },
	{ "top", "show what processes, devices and the machine do now", ts_verb_top, 0 },
	{ "window", "open or close the span that is recorded of a process", ts_verb_window, 0 },
	{ "config", "show or change the settings of a process", ts_verb_config, 0 },
	{ "import", "make a trace of files that other tools wrote", ts_verb_import,
	  TS_VERB_KEEPS_FILES },
	{ "export", "write a trace in another format", ts_verb_export, TS_VERB_KEEPS_FILES },
	{ "info", "say what a trace holds", ts_verb_info, 0 },
	{ "view", "show the rows of a trace in order of time", ts_verb_view, 0 },
	{ "analyze", "say where time goes: idle, kernels, overlap, critical path, advice",
	  ts_verb_analyze, 0 },
	{ "state", "show what each stream did or waited for at any time, and why", ts_verb_state,
	  0 },
	{ "align", "say how the clocks of ranks and devices stand to each other", ts_verb_align,
	  TS_VERB_KEEPS_FILES },
	{ "symbolize", "find the functions and source lines of native frames", ts_verb_symbolize,
	  TS_VERB_KEEPS_FILES },
	{ "diff", "compare two traces: what is new, gone, slower, faster", ts_verb_diff, 0 },
	{ "replay", "run recorded commands again, and compare; or simulate what would be if",
	  ts_verb_replay, TS_VERB_KEEPS_FILES },
	{ "verify", "check that a trace is whole", ts_verb_verify, 0 },
	{ "recover", "save what damage, a crash or a kill has left", ts_verb_recover,
	  TS_VERB_KEEPS_FILES },
	{ "doctor", "say what this machine allows, and what mends the rest", ts_verb_doctor, 0 },
	{ "help", "explain a verb", ts_verb_help, 0 },
};

/* Other names, which are not listed. */
static const struct {
	const char *name, *verb;
} aliases[] = {
	{ "backtrace", "stack" },
};

const struct ts_verb *ts_verb_list(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(verbs);
	return verbs;
}

const struct ts_verb *ts_verb_find(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(aliases); i++) {
		if (!strcmp(aliases[i].name, name))
			name = aliases[i].verb;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(verbs); i++) {
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	}
	return NULL;
}

int ts_verb_unknown(const char *name)
{
	struct ts_nearest nearest;

	if (name[0] == '-')
		return ts_report_usage("unknown option '%s'", name);
	ts_nearest_init(&nearest, name);
	for (size_t i = 0; i < TS_ARRAY_SIZE(verbs); i++)
		ts_nearest_offer(&nearest, verbs[i].name);
	if (nearest.best)
		return ts_report_usage("'%s' is not a verb; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("'%s' is not a verb", name);
}
