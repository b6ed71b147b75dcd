/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace that is still being written. Whoever writes one holds an exclusive lock on it. A recorder
 * without a running program is about to finish: it is worth waiting for, others are named.
 */
#include <errno.h>
#include <fcntl.h>
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
	fd = ts_open(trace, O_RDONLY, 0);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
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

static void describe(struct ts_text *text, const char *path, uint64_t recorder_pid,
		     const char *rest)
{
	ts_text_printf(text, "trace '%s' is still being written", path);
	if (recorder_pid)
		ts_text_printf(text, " by its recorder, process %llu",
			       (unsigned long long)recorder_pid);
	ts_text_append_str(text, rest);
}

static bool is_sbt(const char *path)
{
	size_t length = strlen(path);

	return length >= 4 && !strcmp(path + length - 4, ".sbt");
}

void ts_trace_await(const char *path, const struct ts_open_options *options)
{
	struct ts_block_open open = { .recorder_pid = 0 };
	TS_SCOPED(ts_text) beside = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	const char *trace = path;

	/* x.json is exported from x.json.sbt. */
	if (!is_sbt(path)) {
		ts_text_printf(&beside, "%s.sbt", path);
		if (!access(ts_text_cstr(&beside), F_OK))
			trace = ts_text_cstr(&beside);
	}
	if (!is_locked(trace))
		return;
	ts_journal_origin(trace, &open);
	if (!open.recorder_pid || !has_targets(open.recorder_pid)) {
		describe(&text, path, open.recorder_pid, "; waiting for it to finish");
		if (options->waiting)
			options->waiting(options->context, ts_text_cstr(&text));
		if (wait_for_end(trace, open.recorder_pid))
			return;
	}
	ts_text_clear(&text);
	describe(&text, path, open.recorder_pid, "; the rows so far are used");
	if (options->warning)
		options->warning(options->context, ts_text_cstr(&text));
}
