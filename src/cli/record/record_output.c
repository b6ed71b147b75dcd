/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a recording as the user sees them: paths, what an earlier recording left there, and
 * text exports.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/export.h>

#include "base/io.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "live/discover.h"
#include "live/journal.h"
#include "trace/trace_totals.h"

#define LOOK_NS 20000000
/* A recorder that was just killed may still hold the lock. */
#define SHORT_LOOKS 50
/* A tool that writes the trace, such as one that adds names, ends soon. */
#define LONG_LOOKS 500
#define KEPT_LIMIT 10000
/* Processes that a message names. */
#define NAMED_LIMIT 8

static bool has_ending(const char *path, const char *ending)
{
	size_t length = strlen(path), tail = strlen(ending);

	return length >= tail && !strcmp(path + length - tail, ending);
}

/* Concatenates; a result that is too long becomes "", which does not exist. */
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

static enum ts_record_holder look_at_lock(int fd, const char *trace, uint64_t session)
{
	struct ts_block_open open;

	if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return TS_HOLDER_NONE;
	if (!flock(fd, LOCK_SH | LOCK_NB))
		return TS_HOLDER_READER;
	return session && ts_journal_origin(trace, &open) && open.session == session
		       ? TS_HOLDER_SESSION
		       : TS_HOLDER_WRITER;
}

enum ts_record_holder ts_record_wait_for(const char *trace, uint64_t session)
{
	const struct timespec pause = { 0, LOOK_NS };

	for (int look = 1;; look++) {
		/* Opened each time: our own shared lock must not be the one that is found. */
		TS_AUTO_FD int fd = ts_io_open(trace, O_RDONLY, 0);
		enum ts_record_holder holder = fd < 0 ? TS_HOLDER_NONE
						      : look_at_lock(fd, trace, session);
		int most = session && holder == TS_HOLDER_WRITER ? LONG_LOOKS : SHORT_LOOKS;

		if (holder == TS_HOLDER_NONE || holder == TS_HOLDER_SESSION || look >= most)
			return holder;
		nanosleep(&pause, NULL);
	}
}

bool ts_record_is_unfinished(const char *trace)
{
	char journal[PATH_MAX];

	journal_path(trace, journal, sizeof(journal));
	return !access(journal, F_OK);
}

/* ---- recorders killed before they stored anything ---- */

struct orphans {
	pid_t pids[NAMED_LIMIT];
	size_t count; /* may be greater */
};

/* Without a journal nobody knows the session: any area that a recorder should drain may be its. */
static void note_orphan(void *context, const struct ts_area_info *info)
{
	struct orphans *orphans = context;
	pid_t pid = info->alive ? info->pid : (pid_t)info->control.pid;
	size_t named = TS_MIN(orphans->count, NAMED_LIMIT);

	if (info->unfinished || !info->control.session || info->control.role != TS_LIVE_PROGRAM ||
	    ts_area_recorder(&info->control, info->owner))
		return;
	for (size_t i = 0; i < named; i++)
		if (orphans->pids[i] == pid)
			return;
	if (named < NAMED_LIMIT)
		orphans->pids[named] = pid;
	orphans->count++;
}

static void append_orphans(struct ts_text *text)
{
	struct orphans orphans = { 0 };
	TS_AUTO_FD int fd = -1;

	if (!ts_live_directory_open(geteuid(), 0, &fd, NULL))
		ts_areas_list(fd, 0, note_orphan, NULL, &orphans, NULL);
	if (!orphans.count)
		return;
	ts_text_append_str(text, "; if its recorder was killed, its events may be in process");
	for (size_t i = 0; i < TS_MIN(orphans.count, NAMED_LIMIT); i++)
		ts_text_printf(text, "%s %d", i ? "," : "", (int)orphans.pids[i]);
	ts_text_printf(text, "%s: save them with 'tracesmith recover PID -o OUT'",
		       orphans.count > NAMED_LIMIT ? " ..." : "");
}

int ts_record_check_begun(const char *trace, struct ts_error *err)
{
	TS_SCOPED(ts_text) text = { 0 };
	struct stat status;

	if (stat(trace, &status) || !S_ISREG(status.st_mode) || status.st_size > 0)
		return TS_OK;
	append_orphans(&text);
	return ts_error_set(err, TS_ENOTFOUND, "trace '%s': the file is empty%s", trace,
			    ts_text_status(&text) ? "" : ts_text_cstr(&text));
}

/* ---- leftovers ---- */

/* "t.sbt" is kept as "t.1.sbt", or with the next free number. */
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
	int rc;

	journal_path(trace, journal, sizeof(journal));
	rc = ts_output_check(trace, err);
	if (!rc)
		rc = ts_output_check(journal, err);
	if (rc)
		return rc;
	if (choose_kept_path(trace, kept, sizeof(kept)))
		return ts_error_set(err, TS_EIO,
				    "an unfinished recording is at '%s'; give -o another name",
				    trace);
	journal_path(kept, kept_journal, sizeof(kept_journal));
	if ((rename(trace, kept) && errno != ENOENT) || rename(journal, kept_journal))
		return ts_error_errno(err, errno, "cannot rename the unfinished recording '%s'",
				      trace);
	ts_report_warning(
		"an earlier recorder of '%s' was killed; its recording was renamed to '%s': "
		"recover it with: tracesmith recover %s -o OUT",
		trace, kept, TS_SHELL(kept));
	return TS_OK;
}

int ts_record_settle(const char *trace, struct ts_error *err)
{
	enum ts_record_holder holder = ts_record_wait_for(trace, 0);

	if (holder == TS_HOLDER_READER)
		return ts_error_set(err, TS_EBUSY, "another process has locked '%s'", trace);
	if (holder)
		return ts_error_set(err, TS_EBUSY,
				    "another recorder is writing '%s'; give -o another name",
				    trace);
	return ts_record_is_unfinished(trace) ? keep(trace, err) : TS_OK;
}

/* ---- text export ---- */

static int export_to(const struct ts_exporter *exporter, const char *trace, int fd,
		     struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	int rc = ts_reader_open(&reader, trace, err);

	if (!rc)
		rc = exporter->run(reader, fd, NULL, err);
	if (!rc)
		rc = ts_reader_status(reader, err);
	return rc;
}

int ts_record_export_text(const char *exporter, const char *trace, const char *path,
			  struct ts_error *err)
{
	int fd, rc = ts_output_create(path, 0, &fd, err);

	if (rc)
		return rc;
	rc = export_to(ts_exporter_find(exporter), trace, fd, err);
	/* Some file systems report a full disk only on close. */
	if (close(fd) && !rc)
		rc = ts_error_errno(err, errno, "'%s': cannot write", path);
	if (rc)
		unlink(path);
	return rc;
}
