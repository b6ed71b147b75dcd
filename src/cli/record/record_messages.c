/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of a finished recording: a line for people, JSON for programs, and advice on losses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <tracesmith/schema.h>

#include "base/local/path_pattern.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/lost_text.h"
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

/* Of all files: those that a rotation has left, or of all ranks. */
static uint64_t total_bytes(const struct ts_recorder_summary *summary)
{
	return summary->kept_bytes + bytes_of(summary);
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

	/* Not worth a word if nobody asked for them. */
	if (!record->python.samples || (!record->names_backends && !summary->stacks))
		return "";
	snprintf(buffer, bytes, ", %s (%s rejected)",
		 plural(stacks, sizeof(stacks), summary->stacks, "Python stack", "Python stacks"),
		 ts_format_count(rejected, sizeof(rejected), (int64_t)summary->stacks_rejected));
	return buffer;
}

/* Rejected stacks are lost, too: they are rows of the loss table. */
static const char *format_lost(const struct ts_recorder_summary *summary, char *buffer,
			       size_t bytes, const char *one, const char *many)
{
	if (summary->stacks_rejected && !summary->lost && !summary->unknown_losses)
		return "nothing else lost";
	return ts_lost_text(buffer, bytes, summary->lost, summary->unknown_losses, one, many);
}

/* Of several files: how many there are, and what a rotation has deleted. */
static void print_files(const struct ts_recorder_summary *summary)
{
	char events[TS_FORMAT_BYTES], kept[TS_FORMAT_BYTES];

	if (summary->kept_files < summary->files)
		ts_report_note("  %" PRIu64 " files kept of %" PRIu64 ", with %s of the %s events",
			       summary->kept_files, summary->files,
			       ts_format_count(kept, sizeof(kept), (int64_t)summary->kept_events),
			       ts_format_count(events, sizeof(events), (int64_t)summary->events));
	else if (summary->files > 1)
		ts_report_note("  %" PRIu64 " files in all", summary->files);
}

static void print_line(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	char events[64], processes[64], threads[64], devices[64], size[TS_FORMAT_BYTES], lost[96];
	char ranks[64];
	char metrics[80] = "", stacks[128], files[32] = "", count[TS_FORMAT_BYTES];

	if (summary->kept_bytes)
		snprintf(files, sizeof(files), " in %" PRIu64 " files", summary->kept_files);
	/* They are among the events. */
	if (summary->metrics)
		snprintf(metrics, sizeof(metrics), " (%s of metrics)",
			 ts_format_count(count, sizeof(count), (int64_t)summary->metrics));
	plural(devices, sizeof(devices), summary->devices, "device", "devices");
	ts_report_note(
		"%s: %s%s of %s%s%s, %s%s%s%s, %s%s, %s", summary->path,
		plural(events, sizeof(events), summary->events, "event", "events"), metrics,
		plural(processes, sizeof(processes), summary->processes, "process", "processes"),
		summary->ranks ? " in " : "",
		summary->ranks ? plural(ranks, sizeof(ranks), summary->ranks, "rank", "ranks") : "",
		plural(threads, sizeof(threads), summary->threads, "thread", "threads"),
		summary->devices ? ", " : "", summary->devices ? devices : "",
		format_stacks(record, summary, stacks, sizeof(stacks)),
		ts_format_bytes(size, sizeof(size), total_bytes(summary)), files,
		format_lost(summary, lost, sizeof(lost), "event", "events"));
	print_files(summary);
}

/* "job/3.sbt: 12,345 events, 4.1 MB, nothing lost" */
static void append_rank_file(struct ts_text *line, const struct ts_recorder_rank *file)
{
	char events[64], size[TS_FORMAT_BYTES], lost[96];
	struct stat status;

	ts_text_printf(line, "%s: %s, %s, %s", file->path,
		       plural(events, sizeof(events), file->events, "event", "events"),
		       ts_format_bytes(size, sizeof(size),
				       stat(file->path, &status) ? 0 : (uint64_t)status.st_size),
		       ts_lost_text(lost, sizeof(lost), file->lost, file->unknown_losses, "event",
				    "events"));
}

/* A line for each rank. Its recorder may be one of many that write to the terminal. */
static void print_rank(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	struct ts_recorder_rank file = { .events = summary->events,
					 .lost = summary->lost,
					 .unknown_losses = summary->unknown_losses };
	TS_SCOPED(ts_text) line = { 0 };
	char text[TS_FORMAT_BYTES];

	memcpy(file.path, summary->path, sizeof(file.path));
	append_rank_file(&line, &file);
	if (record->wait_status)
		ts_text_printf(&line, "; %s: %s", record->command[0],
			       ts_format_exit(text, sizeof(text), record->wait_status));
	ts_report_note("%s", ts_text_cstr(&line));
}

static void print_rank_files(const struct ts_recorder_summary *summary)
{
	for (uint64_t i = 0; i < summary->ranks; i++) {
		const struct ts_recorder_rank *file = &summary->rank_files[i];
		TS_SCOPED(ts_text) line = { 0 };

		ts_text_printf(&line, "rank %" PRId64, file->rank);
		if (file->world_size != TS_ABSENT)
			ts_text_printf(&line, " of %" PRId64, file->world_size);
		ts_text_append_str(&line, ": ");
		append_rank_file(&line, file);
		ts_report_note("%s", ts_text_cstr(&line));
	}
}

/* Warns if each rank should have a trace, and has none. */
static void print_no_ranks(const struct ts_record *record,
			   const struct ts_recorder_summary *summary)
{
	char variables[TS_PATH_WHY_BYTES];

	if (record->options.rank_pattern && summary->not_split[0])
		ts_report_warning("%s; all ranks are in '%s'", summary->not_split, summary->path);
	if (!record->options.rank_pattern || summary->ranks)
		return;
	ts_rank_list_variables(variables, sizeof(variables));
	ts_report_warning("'%s': no process had a rank, so all are in '%s' (looked for %s)",
			  record->options.rank_pattern, summary->path, variables);
}

/* A program that failed is why a recording is short, or is what it was made for. */
static void print_exit(const struct ts_record *record)
{
	char text[TS_FORMAT_BYTES];

	if (record->wait_status)
		ts_report_note("  %s: %s", record->command[0],
			       ts_format_exit(text, sizeof(text), record->wait_status));
}

/* Names one process that could not be traced, and says what to do. */
static void print_untraced(const struct ts_recorder_summary *summary)
{
	const struct ts_untraced *untraced = &summary->untraced;
	char others[64], text[80] = "";

	if (!untraced->count)
		return;
	if (untraced->count > 1)
		snprintf(text, sizeof(text), " (and %s)",
			 plural(others, sizeof(others), untraced->count - 1, "other", "others"));
	ts_report_warning("process %d (%s)%s was not traced: %s; %s", (int)untraced->pid,
			  untraced->name, text, untraced->reason, untraced->advice);
}

static void print_brief(const struct ts_untraced *untraced)
{
	char others[64], text[80] = "";

	if (untraced->brief_count > 1)
		snprintf(text, sizeof(text), " and %s",
			 plural(others, sizeof(others), untraced->brief_count - 1, "other program",
				"other programs"));
	if (untraced->brief_count)
		ts_report_note("  not traced: %s%s, which ran for less than 100 ms",
			       untraced->brief_name, text);
}

static bool has_ending(const char *path, const char *ending)
{
	const char *found = strrchr(path, '.');

	return found && !strcmp(found, ending);
}

/* Of the traces of ranks, the first one that has any. */
static const char *path_of_losses(const struct ts_recorder_summary *summary)
{
	for (uint64_t i = 0; summary->rank_files && i < summary->ranks; i++)
		if (summary->rank_files[i].lost || summary->rank_files[i].unknown_losses)
			return summary->rank_files[i].path;
	return summary->path;
}

static void warn_losses(const char *path, uint64_t count, uint64_t unknown)
{
	char lost[96];

	if (count || unknown)
		ts_report_warning(
			"%s: %s", path,
			ts_lost_text(lost, sizeof(lost), count, unknown, "event", "events"));
}

static void print_losses(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	TS_SCOPED(ts_text) hint = { 0 };

	if (!summary->lost && !summary->unknown_losses)
		return;
	for (uint64_t i = 0; record->quiet && summary->rank_files && i < summary->ranks; i++)
		warn_losses(summary->rank_files[i].path, summary->rank_files[i].lost,
			    summary->rank_files[i].unknown_losses);
	if (record->quiet && !summary->rank_files)
		warn_losses(summary->path, summary->lost, summary->unknown_losses);
	print_untraced(summary);
	/* Exported text has no table of losses. */
	if (has_ending(summary->path, ".sbt"))
		ts_text_printf(&hint, "  when and why: tracesmith view %s --table loss",
			       TS_SHELL(path_of_losses(summary)));
	else
		ts_text_append_str(&hint, "  a trace says when and why: record to a name that ends "
					  "in .sbt");
	if (summary->disk_was_full)
		ts_text_append_str(&hint, "; the disk was full: free space, or record to another "
					  "one with -o");
	else if (summary->lost_by_buffers)
		ts_text_append_str(&hint, record->command
						  ? "; buffers were full: record with a larger "
						    "--budget, such as --budget 256M"
						  : "; buffers were full: set TRACESMITH_BUDGET "
						    "in the program's environment");
	ts_report_note("%s", ts_text_cstr(&hint));
}

/* Warns if nothing opened the window. */
static void print_never_open(const struct ts_record *record,
			     const struct ts_recorder_summary *summary)
{
	const struct ts_window_spec *window = &record->options.window;
	const char *why;

	if (summary->events > summary->metrics || summary->windows)
		return;
	if (window->kind == TS_WINDOW_STEPS) {
		ts_report_warning("the window never opened: the program did not announce step "
				  "%" PRId64 " with TS_STEP()",
				  window->first);
	} else if (window->kind == TS_WINDOW_TIME) {
		ts_report_warning("the window never opened: the recording ended before it");
	} else if (window->kind == TS_WINDOW_FLAG) {
		ts_report_warning("the window never opened: the file '%s' did not appear",
				  window->path);
	} else if (window->kind == TS_WINDOW_COMMAND) {
		ts_report_warning("the window never opened: open it with 'tracesmith window PID "
				  "open' while the program runs");
	} else if (window->kind == TS_WINDOW_BACKEND) {
		why = window->marked->never_opened;
		ts_report_warning("window '%s' never opened%s%s", window->path, why ? ": " : "",
				  why ? why : "");
	}
}

/* Warns if the output holds only stacks, and there are none. */
static void print_no_stacks(const struct ts_record *record,
			    const struct ts_recorder_summary *summary)
{
	if (record->options.outside || summary->samples || !has_ending(summary->path, ".folded"))
		return;
	ts_report_warning("no stack was sampled, and a .folded file has no events: '%s' is empty; "
			  "to fold spans, record to T.sbt, then: tracesmith export T.sbt -o %s",
			  summary->path, summary->path);
}

static void append_json_rank(struct ts_text *out, int64_t rank, int64_t world_size)
{
	ts_text_printf(out, ",\"rank\":%" PRId64 ",\"world_size\":", rank);
	if (world_size == TS_ABSENT)
		ts_text_append_str(out, "null");
	else
		ts_text_printf(out, "%" PRId64, world_size);
}

/* Of several: how many there are, and the traces that were made of them. */
static void append_json_ranks(struct ts_text *out, const struct ts_recorder_summary *summary)
{
	if (summary->ranks)
		ts_text_printf(out, ",\"ranks\":%" PRIu64, summary->ranks);
	if (!summary->rank_files)
		return;
	ts_text_append_str(out, ",\"rank_files\":[");
	for (uint64_t i = 0; i < summary->ranks; i++) {
		const struct ts_recorder_rank *file = &summary->rank_files[i];

		ts_text_append_str(out, i ? ",{\"file\":" : "{\"file\":");
		ts_text_append_json(out, file->path, strlen(file->path));
		append_json_rank(out, file->rank, file->world_size);
		ts_text_printf(out,
			       ",\"events\":%" PRIu64 ",\"lost\":%" PRIu64
			       ",\"unknown_losses\":%" PRIu64 "}",
			       file->events, file->lost, file->unknown_losses);
	}
	ts_text_append_char(out, ']');
}

static void append_json(struct ts_text *out, const struct ts_record *record,
			const struct ts_recorder_summary *summary, const struct ts_text *backends,
			const struct ts_text *replay)
{
	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, summary->path, strlen(summary->path));
	ts_text_printf(
		out,
		",\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"unknown_losses\":%" PRIu64
		",\"bytes\":%" PRIu64 ",\"file_bytes\":%" PRIu64 ",\"processes\":%" PRIu64
		",\"threads\":%" PRIu64 ",\"devices\":%" PRIu64 ",\"windows\":%" PRIu64
		",\"files\":%" PRIu64 ",\"files_kept\":%" PRIu64 ",\"events_kept\":%" PRIu64
		",\"metrics\":%" PRIu64 ",\"untraced\":%" PRIu64 ",\"untraced_brief\":%" PRIu64,
		summary->events, summary->lost, summary->unknown_losses, total_bytes(summary),
		bytes_of(summary), summary->processes, summary->threads, summary->devices,
		summary->windows, summary->files, summary->kept_files, summary->kept_events,
		summary->metrics, summary->untraced.count, summary->untraced.brief_count);
	if (summary->untraced.count) {
		ts_text_append_str(out, ",\"untraced_reason\":");
		ts_text_append_json(out, summary->untraced.reason,
				    strlen(summary->untraced.reason));
	}
	if (record->options.rank.launcher)
		append_json_rank(out, record->options.rank.rank,
				 record->options.rank.world_size < 0
					 ? TS_ABSENT
					 : record->options.rank.world_size);
	append_json_ranks(out, summary);
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
			       ",\"checks\":%" PRIu64 ",\"kept_checks\":%" PRIu64
			       ",\"not_replayable\":",
			       summary->commands, summary->blob_bytes, summary->replayable_windows,
			       summary->failed_windows, summary->checks, summary->kept_checks);
		ts_text_append_json(out, summary->not_replayable, strlen(summary->not_replayable));
		ts_text_append(out, replay->data, replay->length);
	}
	ts_text_append_str(out, "}\n");
}

static void print_json(struct ts_record *record, const struct ts_recorder_summary *summary,
		       const struct ts_text *backends, const struct ts_text *replay)
{
	TS_SCOPED(ts_text) json = { 0 };

	append_json(&json, record, summary, backends, replay);
	if (record->is_controlled)
		ts_record_control_finished(record, &json);
	else
		ts_text_append(ts_stdout(), json.data, json.length);
}

/* For a recording of stacks only. */
static void print_stacks_line(const struct ts_recorder_summary *summary)
{
	char stacks[64], processes[64], threads[64], size[TS_FORMAT_BYTES], lost[96];
	char rejected[TS_FORMAT_BYTES];

	ts_report_note(
		"%s: %s of %s, %s, %s rejected, %s, %s", summary->path,
		plural(stacks, sizeof(stacks), summary->stacks, "stack", "stacks"),
		plural(processes, sizeof(processes), summary->processes, "process", "processes"),
		plural(threads, sizeof(threads), summary->threads, "thread", "threads"),
		ts_format_count(rejected, sizeof(rejected), (int64_t)summary->stacks_rejected),
		ts_format_bytes(size, sizeof(size), total_bytes(summary)),
		format_lost(summary, lost, sizeof(lost), "stack", "stacks"));
}

/* True if the details of one recording would hide those of others: then there is a line a rank. */
static bool is_of_job(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	return record->options.rank.launcher || summary->rank_files;
}

static void print_summary(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	if (record->options.outside)
		print_stacks_line(summary);
	else if (summary->rank_files)
		print_rank_files(summary);
	else if (record->options.rank.launcher)
		print_rank(record, summary);
	else
		print_line(record, summary);
	if (is_of_job(record, summary) && !summary->rank_files)
		return;
	if (!summary->rank_files)
		print_brief(&summary->untraced);
	print_exit(record);
}

void ts_record_report(struct ts_record *record, const struct ts_recorder_summary *summary)
{
	struct ts_record terse = *record;
	TS_SCOPED(ts_text) backends = { 0 };
	TS_SCOPED(ts_text) replay = { 0 };

	if (!record->quiet)
		print_summary(record, summary);
	print_no_ranks(record, summary);
	terse.quiet |= is_of_job(record, summary);
	ts_record_summarize_backends(&terse, summary, &backends);
	print_never_open(record, summary);
	print_no_stacks(record, summary);
	ts_record_report_replay(&terse, summary, &replay);
	print_losses(record, summary);
	if (record->json)
		print_json(record, summary, &backends, &replay);
}
