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

#include "cli/common/report.h"
#include "cli/record/record.h"
#include "trace/trace_totals.h"

#define HELD_LOOKS 50
#define HELD_PAUSE_NS 20000000
#define KEPT_LIMIT 10000

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

/* A recorder that was just killed may still hold the lock: give it a second to exit. */
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

	if (choose_kept_path(trace, kept, sizeof(kept)))
		return ts_error_set(err, TS_EIO,
				    "an unfinished recording is at '%s'; give -o another name",
				    trace);
	journal_path(trace, journal, sizeof(journal));
	journal_path(kept, kept_journal, sizeof(kept_journal));
	if ((rename(trace, kept) && errno != ENOENT) || rename(journal, kept_journal))
		return ts_error_errno(err, errno, "cannot rename the unfinished recording '%s'",
				      trace);
	ts_report_warning(
		"an earlier recorder of '%s' was killed; its recording was renamed to '%s': "
		"recover it with 'tracesmith recover %s -o OUT'",
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
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return ts_error_errno(err, errno, "cannot create '%s'", path);
	rc = export_to(ts_exporter_find(exporter), trace, fd, err);
	/* Some file systems report a full disk only on close. */
	if (close(fd) && !rc)
		rc = ts_error_errno(err, errno, "'%s': cannot write", path);
	if (rc)
		unlink(path);
	return rc;
}
