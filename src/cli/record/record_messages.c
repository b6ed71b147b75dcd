/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of a finished recording: a line for people, JSON for programs, and advice on losses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/record/record.h"

/* "1 process", "3 processes" */
static const char *plural(char *buffer, size_t bytes, uint64_t count, const char *one,
			  const char *many)
{
	char number[TS_FORMAT_BYTES];

	snprintf(buffer, bytes, "%s %s", ts_format_count(number, sizeof(number), (int64_t)count),
		 count == 1 ? one : many);
	return buffer;
}

/* Size of the last file, which may be JSON. */
static uint64_t bytes_of(const struct ts_recorder_summary *summary)
{
	struct stat status;

	return stat(summary->path, &status) ? summary->trace_bytes : (uint64_t)status.st_size;
}

/*
 * Stacks are counted when handed over; those that did not fit into a ring are also among the lost
 * events.
 */
static const char *format_stacks(const struct ts_record *record,
				 const struct ts_recorder_summary *summary, char *buffer,
				 size_t bytes)
{
	char stacks[64], rejected[TS_FORMAT_BYTES];

	if (!record->python.samples)
		return "";
	snprintf(buffer, bytes, ", %s (%s rejected)",
		 plural(stacks, sizeof(stacks), summary->stacks, "Python stack", "Python stacks"),
		 ts_format_count(rejected, sizeof(rejected), (int64_t)summary->stacks_rejected));
	return buffer;
}

static void print_line(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	char events[64], processes[64], threads[64], size[TS_FORMAT_BYTES], lost[64], files[80];
	char metrics[80], stacks[128];

	plural(lost, sizeof(lost), summary->lost, "event lost", "events lost");
	plural(files, sizeof(files), summary->files, "file", "files in all");
	plural(metrics, sizeof(metrics), summary->metrics, "row of metrics", "rows of metrics");
	ts_report_note(
		"%s: %s of %s, %s%s, %s%s%s%s%s, %s", summary->path,
		plural(events, sizeof(events), summary->events, "event", "events"),
		plural(processes, sizeof(processes), summary->processes, "process", "processes"),
		plural(threads, sizeof(threads), summary->threads, "thread", "threads"),
		format_stacks(record, summary, stacks, sizeof(stacks)),
		summary->metrics ? metrics : "", summary->metrics ? ", " : "",
		ts_format_bytes(size, sizeof(size), bytes_of(summary)),
		summary->files > 1 ? ", " : "", summary->files > 1 ? files : "",
		summary->lost ? lost : "nothing lost");
}

/* Says whether the recording can be replayed, if that was requested. */
static void print_replay(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	char commands[64], size[TS_FORMAT_BYTES];

	if (!record->launch.replayable)
		return;
	if (summary->failed_windows)
		ts_report_warning("%" PRIu64 " of %" PRIu64 " windows cannot be replayed: %s",
				  summary->failed_windows,
				  summary->failed_windows + summary->replayable_windows,
				  summary->not_replayable);
	else if (!summary->commands)
		ts_report_warning(
			"nothing to replay: no command was recorded; 'tracesmith doctor' shows "
			"what can be recorded on this machine");
	if (!record->quiet && summary->replayable_windows)
		ts_report_note("  %s with %s of code and memory: tracesmith replay %s",
			       plural(commands, sizeof(commands), summary->commands, "command",
				      "commands"),
			       ts_format_bytes(size, sizeof(size), summary->blob_bytes),
			       summary->path);
}

static void print_losses(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	char lost[64];

	if (!summary->lost)
		return;
	if (record->quiet)
		ts_report_warning(
			"%s: %s", summary->path,
			plural(lost, sizeof(lost), summary->lost, "event lost", "events lost"));
	ts_report_note("  when and why: tracesmith view %s --table loss; if buffers were full, %s",
		       summary->path,
		       record->command ? "record with a larger --budget, such as --budget 256M"
				       : "set TRACESMITH_BUDGET in the program's environment");
}

/* Warns if the program never opened the window of a backend. */
static void print_never_open(const struct ts_record *record,
			     const struct ts_recorder_summary *summary)
{
	const struct ts_window_spec *window = &record->options.window;
	const char *why;

	if (summary->events || summary->windows || window->kind != TS_WINDOW_BACKEND)
		return;
	why = window->marked->never_opened;
	ts_report_warning("window '%s' never opened%s%s", window->path, why ? ": " : "",
			  why ? why : "");
}

static void print_json(const struct ts_record *record, const struct ts_recorder_summary *summary,
		       const struct ts_text *backends)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, summary->path, strlen(summary->path));
	ts_text_printf(out,
		       ",\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"bytes\":%" PRIu64
		       ",\"processes\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"windows\":%" PRIu64
		       ",\"files\":%" PRIu64 ",\"metrics\":%" PRIu64,
		       summary->events, summary->lost, bytes_of(summary), summary->processes,
		       summary->threads, summary->windows, summary->files, summary->metrics);
	if (record->python.samples)
		ts_text_printf(out,
			       ",\"stacks\":%" PRIu64 ",\"stacks_rejected\":%" PRIu64
			       ",\"sweeps_left_out\":%" PRIu64,
			       summary->stacks, summary->stacks_rejected, summary->stacks_left_out);
	ts_text_append(out, backends->data, backends->length);
	if (record->launch.replayable) {
		ts_text_printf(out,
			       ",\"commands\":%" PRIu64 ",\"blob_bytes\":%" PRIu64
			       ",\"replayable_windows\":%" PRIu64 ",\"failed_windows\":%" PRIu64
			       ",\"not_replayable\":",
			       summary->commands, summary->blob_bytes, summary->replayable_windows,
			       summary->failed_windows);
		ts_text_append_json(out, summary->not_replayable, strlen(summary->not_replayable));
	}
	ts_text_append_str(out, "}\n");
}

/* For a recording of stacks only. */
static void print_stacks_line(const struct ts_recorder_summary *summary)
{
	char stacks[64], processes[64], threads[64], size[TS_FORMAT_BYTES], lost[64];
	char rejected[TS_FORMAT_BYTES];

	plural(lost, sizeof(lost), summary->lost, "stack lost", "stacks lost");
	ts_report_note(
		"%s: %s of %s, %s, %s rejected, %s, %s", summary->path,
		plural(stacks, sizeof(stacks), summary->stacks, "stack", "stacks"),
		plural(processes, sizeof(processes), summary->processes, "process", "processes"),
		plural(threads, sizeof(threads), summary->threads, "thread", "threads"),
		ts_format_count(rejected, sizeof(rejected), (int64_t)summary->stacks_rejected),
		ts_format_bytes(size, sizeof(size), bytes_of(summary)),
		summary->lost ? lost : "nothing lost");
}

void ts_record_report(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	TS_SCOPED(ts_text) backends = { 0 };

	if (!record->quiet && record->options.outside)
		print_stacks_line(summary);
	else if (!record->quiet)
		print_line(record, summary);
	ts_record_summarize_backends(record, summary, &backends);
	print_never_open(record, summary);
	print_replay(record, summary);
	print_losses(record, summary);
	if (record->json)
		print_json(record, summary, &backends);
}
