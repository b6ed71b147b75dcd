/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a recording for replay: says what of it can be replayed, before the user tries. */
#include <inttypes.h>
#include <stdio.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "replay/summary/replay_facts.h"
#include "trace/trace_totals.h"

static void print_fact(void *context, enum ts_replay_fact kind, const char *text)
{
	const struct ts_record *record = context;

	if (kind == TS_REPLAY_FACT_WARNING)
		ts_report_warning("%s", text);
	else if (kind == TS_REPLAY_FACT_DETAIL)
		ts_report_note("    %s", text);
	else if (!record->quiet)
		ts_report_note("  %s", text);
}

/* NULL: there is none. */
static const struct ts_replay_window_facts *first_replayable(const struct ts_replay_facts *facts)
{
	for (size_t i = 0; i < facts->window_count; i++)
		if (facts->windows[i].has_open && !facts->windows[i].failed &&
		    facts->windows[i].commands)
			return &facts->windows[i];
	return NULL;
}

/* Of several files, or a text, only the sums are known. */
static void print_sums(const struct ts_recorder_summary *summary)
{
	if (summary->failed_windows)
		ts_report_warning("%" PRIu64 " of %" PRIu64 " windows cannot be replayed: %s",
				  summary->failed_windows,
				  summary->failed_windows + summary->replayable_windows,
				  summary->not_replayable);
	else if (!summary->commands)
		ts_report_warning(
			"nothing to replay: no command was recorded; 'tracesmith doctor' shows "
			"what can be recorded on this machine");
}

/* `process`: "", or the option that selects one of several; NULL: nothing can be replayed. */
static void print_counts(const struct ts_record *record, const struct ts_recorder_summary *summary,
			 const char *process)
{
	char commands[TS_FORMAT_BYTES], checks[TS_FORMAT_BYTES], size[TS_FORMAT_BYTES];

	if (record->quiet)
		return;
	if (process)
		ts_report_note(
			"  %s command%s with %s of code and memory: tracesmith replay %s%s",
			ts_format_count(commands, sizeof(commands), (int64_t)summary->commands),
			summary->commands == 1 ? "" : "s",
			ts_format_bytes(size, sizeof(size), summary->blob_bytes),
			TS_SHELL(summary->path), process);
	if (process && record->launch.replayable == TS_REPLAY_CHECKED)
		ts_report_note("  checked: commands that may use the same memory ran one at a "
			       "time, in one of the orders that the program allows");
	if (record->launch.keep_contents)
		ts_report_note("  %" PRIu64 " of %s check%s with contents", summary->kept_checks,
			       ts_format_count(checks, sizeof(checks), (int64_t)summary->checks),
			       summary->checks == 1 ? "" : "s");
}

void ts_record_report_replay(const struct ts_record *record,
			     const struct ts_recorder_summary *summary, struct ts_text *ret_json)
{
	TS_AUTO(ts_replay_facts) facts = NULL;
	TS_AUTO(ts_reader) reader = NULL;
	const struct ts_replay_window_facts *first;
	char process[48] = "";

	if (!record->launch.replayable)
		return;
	if (summary->files > 1 || ts_reader_open(&reader, summary->path, NULL) ||
	    ts_replay_facts_load(&facts, reader, NULL)) {
		print_sums(summary);
		print_counts(record, summary,
			     summary->commands && summary->replayable_windows ? "" : NULL);
		return;
	}
	first = first_replayable(facts);
	if (first && facts->several_processes && first->pid != TS_ABSENT)
		snprintf(process, sizeof(process), " --process %" PRId64, first->pid);
	print_counts(record, summary, first ? process : NULL);
	ts_replay_facts_say(facts, facts->window_count > 1, print_fact, (void *)record);
	ts_text_append_str(ret_json, ",\"replay\":");
	ts_replay_facts_json(facts, ret_json);
}
