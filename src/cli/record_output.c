/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a recording as the user sees them: where they are, what stood there before, and what
 * has become of them. Must not know how they are written.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/export.h>

#include "base/text.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/report.h"
#include "cli/trace.h"

#define HELD_LOOKS 50
#define HELD_PAUSE_NS 20000000
#define KEPT_LIMIT 10000

static bool has_ending(const char *path, const char *ending)
{
	size_t length = strlen(path), tail = strlen(ending);

	return length >= tail && !strcmp(path + length - tail, ending);
}

/* One behind the other; what is too long for a path becomes one that is not there. */
static void join(char *buffer, size_t bytes, const char *path, const char *tail)
{
	if (strlen(path) + strlen(tail) < bytes)
		stpcpy(stpcpy(buffer, path), tail);
	else
		buffer[0] = '\0';
}

void ts_record_trace_path(const char *output, char *buffer, size_t bytes)
{
	join(buffer, bytes, output, has_ending(output, ".sbt") ? "" : ".sbt");
}

static void journal_path(const char *trace, char *buffer, size_t bytes)
{
	join(buffer, bytes, trace, ".journal");
}

/* A recorder that was killed a moment ago may still hold it: it is given a second to vanish. */
bool ts_record_is_held(const char *trace)
{
	const struct timespec pause = { 0, HELD_PAUSE_NS };
	TS_AUTO_FD int fd = open(trace, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	for (int look = 0; fd >= 0 && look < HELD_LOOKS; look++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return false;
		nanosleep(&pause, NULL);
	}
	return fd >= 0;
}

bool ts_record_is_unfinished(const char *trace)
{
	char journal[PATH_MAX];

	journal_path(trace, journal, sizeof(journal));
	return !access(journal, F_OK);
}

/* "t.sbt" is kept as "t.1.sbt", or the next number that is free. */
static int choose_kept_path(const char *trace, char *buffer, size_t bytes)
{
	size_t stem = strlen(trace) - (has_ending(trace, ".sbt") ? strlen(".sbt") : 0);
	char tail[32];

	for (int number = 1; number < KEPT_LIMIT; number++) {
		snprintf(tail, sizeof(tail), ".%d.sbt", number);
		join(buffer, bytes, trace, tail);
		if (!*buffer)
			break;
		stpcpy(buffer + stem, tail);
		if (access(buffer, F_OK) && !ts_record_is_unfinished(buffer))
			return TS_OK;
	}
	return TS_EIO;
}

static int keep(const char *trace, struct ts_error *err)
{
	char kept[PATH_MAX], journal[PATH_MAX], kept_journal[PATH_MAX];

	if (choose_kept_path(trace, kept, sizeof(kept)))
		return ts_error_set(err, TS_EIO,
				    "an unfinished recording is at '%s'; give -o another name",
				    trace);
	journal_path(trace, journal, sizeof(journal));
	journal_path(kept, kept_journal, sizeof(kept_journal));
	if ((rename(trace, kept) && errno != ENOENT) || rename(journal, kept_journal))
		return ts_error_errno(err, errno,
				      "cannot put the unfinished recording '%s' out of the way",
				      trace);
	ts_report_warning(
		"a recorder was killed while it wrote '%s'; what it left is kept as '%s': finish it with 'tracesmith recover %s -o OUT'",
		trace, kept, kept);
	return TS_OK;
}

int ts_record_settle(const char *trace, struct ts_error *err)
{
	if (ts_record_is_held(trace))
		return ts_error_set(err, TS_EBUSY,
				    "another recorder is writing '%s'; give -o another name",
				    trace);
	return ts_record_is_unfinished(trace) ? keep(trace, err) : TS_OK;
}

/* ---- JSON beside the trace ---- */

static int export_to(const char *trace, int fd, struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	int rc = ts_reader_open(&reader, trace, err);

	if (!rc)
		rc = ts_exporter_find("chrome-array")->run(reader, fd, NULL, err);
	if (!rc)
		rc = ts_reader_status(reader, err);
	return rc;
}

int ts_record_export_json(const char *trace, const char *json, struct ts_error *err)
{
	int fd = open(json, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return ts_error_errno(err, errno, "cannot create '%s'", json);
	rc = export_to(trace, fd, err);
	/* Some file systems tell of a full disk only here. */
	if (close(fd) && !rc)
		rc = ts_error_errno(err, errno, "'%s': cannot write", json);
	if (rc)
		unlink(json);
	return rc;
}

/* ---- the summary ---- */

/* "1 process", "3 processes" */
static const char *plural(char *buffer, size_t bytes, uint64_t count, const char *one,
			  const char *many)
{
	char number[TS_FORMAT_BYTES];

	snprintf(buffer, bytes, "%s %s", ts_format_count(number, sizeof(number), (int64_t)count),
		 count == 1 ? one : many);
	return buffer;
}

/* Of the last file, which may be JSON. */
static uint64_t bytes_of(const struct ts_recorder_summary *summary)
{
	struct stat status;

	return stat(summary->path, &status) ? summary->trace_bytes : (uint64_t)status.st_size;
}

static void tell_line(const struct ts_recorder_summary *summary)
{
	char events[64], processes[64], threads[64], size[TS_FORMAT_BYTES], lost[64], files[80];
	char metrics[80];

	plural(lost, sizeof(lost), summary->lost, "event lost", "events lost");
	plural(files, sizeof(files), summary->files, "file", "files in all");
	plural(metrics, sizeof(metrics), summary->metrics, "row of metrics", "rows of metrics");
	ts_report_note(
		"%s: %s of %s, %s, %s%s%s%s%s, %s", summary->path,
		plural(events, sizeof(events), summary->events, "event", "events"),
		plural(processes, sizeof(processes), summary->processes, "process", "processes"),
		plural(threads, sizeof(threads), summary->threads, "thread", "threads"),
		summary->metrics ? metrics : "", summary->metrics ? ", " : "",
		ts_format_bytes(size, sizeof(size), bytes_of(summary)),
		summary->files > 1 ? ", " : "", summary->files > 1 ? files : "",
		summary->lost ? lost : "nothing lost");
}

/* Can it be run again? Only where that was asked for. */
static void tell_replay(const struct ts_record *record, const struct ts_recorder_summary *summary)
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
			"nothing can be replayed: no command was seen; 'tracesmith doctor' tells what OpenCL can be recorded here");
	if (!record->quiet && summary->replayable_windows)
		ts_report_note("  %s with %s of code and memory: tracesmith replay %s",
			       plural(commands, sizeof(commands), summary->commands, "command",
				      "commands"),
			       ts_format_bytes(size, sizeof(size), summary->blob_bytes),
			       summary->path);
}

static void tell_losses(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	char lost[64];

	if (!summary->lost)
		return;
	if (record->quiet)
		ts_report_warning(
			"%s: %s", summary->path,
			plural(lost, sizeof(lost), summary->lost, "event lost", "events lost"));
	ts_report_note(
		"  when and why: tracesmith view %s --table loss; where buffers were full: %s",
		summary->path,
		record->command
			? "record with a larger --budget, such as --budget 256M"
			: "TRACESMITH_BUDGET in the program's environment makes them larger");
}

static void tell_json(const struct ts_record *record, const struct ts_recorder_summary *summary)
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

void ts_record_tell(const struct ts_record *record, const struct ts_recorder_summary *summary)
{
	if (!record->quiet)
		tell_line(summary);
	tell_replay(record, summary);
	tell_losses(record, summary);
	if (record->json)
		tell_json(record, summary);
}
