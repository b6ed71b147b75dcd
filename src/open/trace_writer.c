/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who writes a trace. Whoever does holds an exclusive lock on it. A recorder without a running
 * program is about to finish: it is worth waiting for, others are named. One that was killed has
 * left a journal, and no lock.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "live/discover.h"
#include "live/journal.h"
#include "open/trace_open.h"
#include "record/recording/recording.h"

#define LOOK_NS 20000000
/* Most of it is for names of functions in large programs. */
#define PATIENCE_NS INT64_C(10000000000)

/* ---- who writes it ---- */

static bool is_locked(const char *trace)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;

	/* Opening a FIFO would be noticed at its other end. */
	if (stat(trace, &status) || !S_ISREG(status.st_mode))
		return false;
	fd = ts_io_open(trace, O_RDONLY, 0);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

static bool may_write(int fd, const struct stat *file)
{
	struct stat status;

	return !fstat(fd, &status) && status.st_dev == file->st_dev &&
	       status.st_ino == file->st_ino && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* True if this process writes the trace itself: waiting for that could not end. */
static bool is_written_here(const char *trace)
{
	const struct dirent *entry;
	bool is_found = false;
	struct stat status;
	DIR *descriptors;

	if (stat(trace, &status) || !(descriptors = opendir("/proc/self/fd")))
		return false;
	while (!is_found && (entry = readdir(descriptors)))
		is_found = entry->d_name[0] != '.' &&
			   may_write((int)strtol(entry->d_name, NULL, 10), &status);
	closedir(descriptors);
	return is_found;
}

struct search {
	uint64_t recorder_pid;
	bool is_found;
};

static void find_target(void *context, const struct ts_area_info *info)
{
	struct search *search = context;

	search->is_found |= info->alive && !info->superseded && !info->unfinished &&
			    info->control.recorder_pid == search->recorder_pid &&
			    info->control.target_state == TS_LIVE_RUNNING;
}

/* True if programs still emit into the recording, so that its end is not in sight. */
static bool has_targets(uint64_t recorder_pid)
{
	struct search search = { .recorder_pid = recorder_pid };
	TS_AUTO_FD int directory = -1;

	if (!ts_live_directory_open(geteuid(), 0, &directory, NULL))
		ts_areas_list(directory, 0, find_target, NULL, &search, NULL);
	return search.is_found;
}

/* ---- what was left of it ---- */

/* True if there is a journal, and it is the trace's own. */
static bool has_journal(const char *trace)
{
	int rc = ts_recording_check_journal(trace, NULL);

	/* Of a damaged one, `recover` says so. */
	return !rc || rc == TS_EFORMAT;
}

/* x.json is exported from x.json.sbt. */
static const char *trace_of(const char *path, struct ts_text *buffer)
{
	if (ts_ends_with_len(path, strlen(path), ".sbt"))
		return path;
	ts_text_printf(buffer, "%s.sbt", path);
	return access(ts_text_cstr(buffer), F_OK) ? path : ts_text_cstr(buffer);
}

static void look(const char *trace, struct ts_trace_writer *ret_writer)
{
	struct ts_block_open open;

	*ret_writer = (struct ts_trace_writer){ .writing = TS_TRACE_AT_REST };
	if (is_locked(trace)) {
		ret_writer->writing = TS_TRACE_GROWING;
		if (ts_journal_origin(trace, &open))
			ret_writer->recorder_pid = open.recorder_pid;
	} else if (has_journal(trace)) {
		ret_writer->writing = TS_TRACE_CUT_OFF;
	}
}

void ts_trace_look(const char *path, struct ts_trace_writer *ret_writer)
{
	TS_SCOPED(ts_text) buffer = { 0 };

	look(trace_of(path, &buffer), ret_writer);
}

void ts_trace_describe_writer(struct ts_text *text, const char *path,
			      const struct ts_trace_writer *writer)
{
	if (writer->writing == TS_TRACE_CUT_OFF) {
		ts_text_printf(text, "trace '%s': the recording was cut off", path);
		return;
	}
	ts_text_printf(text, "trace '%s' is still being written", path);
	if (writer->recorder_pid)
		ts_text_printf(text, " by its recorder, process %llu",
			       (unsigned long long)writer->recorder_pid);
}

void ts_trace_append_recover(struct ts_text *text, const char *path)
{
	ts_text_append_str(text, "tracesmith recover ");
	ts_text_append_shell(text, path);
	ts_text_append_str(text, " -o good.sbt");
}

/* ---- waiting ---- */

/* False: it is still being written. */
static bool wait_for_end(const char *trace, uint64_t recorder_pid)
{
	const struct timespec pause = { 0, LOOK_NS };
	int64_t end = ts_clock_monotonic_ns() + PATIENCE_NS;

	while (ts_clock_monotonic_ns() < end && !(recorder_pid && has_targets(recorder_pid))) {
		nanosleep(&pause, NULL);
		if (!is_locked(trace))
			return true;
	}
	return false;
}

void ts_trace_await(const char *path, const struct ts_open_options *options,
		    struct ts_trace_writer *ret_writer)
{
	TS_SCOPED(ts_text) buffer = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	const char *trace = trace_of(path, &buffer);

	look(trace, ret_writer);
	if (ret_writer->writing != TS_TRACE_GROWING ||
	    (ret_writer->recorder_pid && has_targets(ret_writer->recorder_pid)) ||
	    is_written_here(trace))
		return;
	ts_trace_describe_writer(&text, path, ret_writer);
	ts_text_append_str(&text, "; waiting for it to finish");
	if (options && options->waiting)
		options->waiting(options->context, ts_text_cstr(&text));
	if (wait_for_end(trace, ret_writer->recorder_pid))
		look(trace, ret_writer);
}
