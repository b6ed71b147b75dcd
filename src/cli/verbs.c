/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs: lookup by name, and the suggestion for a misspelt one. */
#include <string.h>

#include "base/memory.h"
#include "cli/common/nearest.h"
#include "cli/common/report.h"
#include "cli/verbs.h"

static const struct ts_verb verbs[] = {
	{ "record", "record a program and its children, or running processes", ts_verb_record,
	  TS_VERB_KEEPS_FILES | TS_VERB_KEEPS_SIGNALS },
	{ "sniff", "sample the Python stacks of running processes into a timeline", ts_verb_sniff,
	  TS_VERB_KEEPS_FILES | TS_VERB_KEEPS_SIGNALS },
	{ "stack", "show the current stacks of Python processes", ts_verb_stack, 0 },
	{ "ps", "list the processes that can be recorded", ts_verb_ps, 0 },
	{ "top", "live view of processes, devices and the machine", ts_verb_top, 0 },
	{ "window", "open or close the recording window of a process", ts_verb_window, 0 },
	{ "config", "show or change the recording settings of a process", ts_verb_config, 0 },
	{ "import", "convert files of other tools into a trace", ts_verb_import,
	  TS_VERB_KEEPS_FILES },
	{ "export", "convert a trace to another format", ts_verb_export, TS_VERB_KEEPS_FILES },
	{ "info", "summarize a trace: sources, tables, losses, counters", ts_verb_info, 0 },
	{ "view", "print the rows of a trace in time order", ts_verb_view, 0 },
	{ "analyze", "show where time goes: idle time, kernels, critical path, advice",
	  ts_verb_analyze, 0 },
	{ "state", "show what each stream ran or waited for over time, and why", ts_verb_state, 0 },
	{ "align", "measure clock offsets between ranks and devices", ts_verb_align,
	  TS_VERB_KEEPS_FILES },
	{ "symbolize", "resolve native frames to functions and source lines", ts_verb_symbolize,
	  TS_VERB_KEEPS_FILES },
	{ "diff", "compare two traces: what is new, gone, slower, faster", ts_verb_diff, 0 },
	{ "replay", "run recorded commands again and compare, or simulate changes", ts_verb_replay,
	  TS_VERB_KEEPS_FILES },
	{ "verify", "check the integrity of a trace", ts_verb_verify, 0 },
	{ "recover", "rebuild a trace after damage, a crash or a kill", ts_verb_recover,
	  TS_VERB_KEEPS_FILES },
	{ "doctor", "check what works on this machine and how to fix the rest", ts_verb_doctor, 0 },
	{ "help", "show the help of a verb", ts_verb_help, 0 },
};

/* Aliases, which --help does not list. */
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
