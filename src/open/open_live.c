/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what has been recorded of a process: the trace of its recorder, or only its live area; then
 * opens a snapshot of it. Files that the recorder replaces meanwhile are found again.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/open.h>

#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "live/discover.h"
#include "live/journal.h"
#include "open/trace_open.h"
#include "record/loop/process_areas.h"
#include "record/recording/snapshot.h"

/* A recorder replaces its files in milliseconds, and hardly more often than every few. */
#define ATTEMPTS 20
#define PAUSE_NS 5000000
/* From this attempt on, a gap is taken for what a target says. */
#define PATIENT_ATTEMPTS 4

/* What is known of a process. */
struct finding {
	pid_t pid;
	int directory_fd; /* of its areas */
	struct ts_area_info *areas;
	size_t area_count, area_capacity;
	pid_t recorder;       /* the live process that records it; 0: none */
	struct ts_text trace; /* that this recorder, or one that was killed, writes; may be empty */
	bool has_journal;     /* and it is not complete */
	bool failed;          /* no memory */
};

static void forget_areas(struct finding *finding)
{
	if (finding->directory_fd >= 0)
		close(finding->directory_fd);
	finding->directory_fd = -1;
	free(TS_STEAL(finding->areas));
	finding->area_count = finding->area_capacity = 0;
}

/* ---- its areas ---- */

static bool is_of_process(const struct finding *finding, const struct ts_area_info *info)
{
	return !info->unfinished &&
	       finding->pid == (info->alive ? info->pid : (pid_t)info->control.pid);
}

/* Those of dead processes count only if none is of a live one. */
static void on_area(void *context, const struct ts_area_info *info)
{
	struct finding *finding = context;
	bool has_living = finding->area_count && finding->areas[0].alive;

	if (!is_of_process(finding, info) || (has_living && !info->alive))
		return;
	if (info->alive && !has_living)
		finding->area_count = 0;
	if (ts_grow_array((void **)&finding->areas, &finding->area_capacity,
			  finding->area_count + 1, sizeof(*finding->areas)))
		finding->failed = true;
	else
		finding->areas[finding->area_count++] = *info;
}

static void look_in(struct finding *finding, uid_t user, pid_t root_pid)
{
	if (finding->area_count ||
	    ts_live_directory_open(user, root_pid, &finding->directory_fd, NULL))
		return;
	ts_areas_list(finding->directory_fd, ts_live_directory_namespace(root_pid), on_area, NULL,
		      finding, NULL);
	if (!finding->area_count)
		forget_areas(finding);
}

static void look_in_directory(void *context, uid_t user)
{
	look_in(context, user, 0);
}

static void find_areas(struct finding *finding)
{
	uid_t user;

	forget_areas(finding);
	ts_live_directory_users(look_in_directory, finding);
	/* In a container, or where its own environment says. */
	if (ts_process_user(finding->pid, &user))
		look_in(finding, user, finding->pid);
}

/* ---- the trace of a recorder ---- */

/* Removes the ending; false: it is not there. */
static bool cut_ending(struct ts_text *path, const char *ending)
{
	size_t length = strlen(ending);

	if (path->length <= length ||
	    strcmp(ts_text_cstr(path) + path->length - length, ending) != 0)
		return false;
	path->length -= length;
	path->data[path->length] = '\0';
	return true;
}

/* True if the path names that descriptor's file here. A recorder may have another root. */
static bool is_same(const char *path, const struct stat *status)
{
	struct stat named;

	return !stat(path, &named) && named.st_dev == status->st_dev &&
	       named.st_ino == status->st_ino;
}

/* The trace whose journal a process has open under this descriptor. */
static bool take_descriptor(struct finding *finding, pid_t recorder, const char *number)
{
	TS_SCOPED(ts_text) link = { 0 };
	TS_SCOPED(ts_text) path = { 0 };
	struct ts_block_open open;
	char target[4096];
	struct stat status;
	ssize_t length;

	ts_text_printf(&link, "/proc/%d/fd/%s", (int)recorder, number);
	length = readlink(ts_text_cstr(&link), target, sizeof(target) - 1);
	if (length <= 0 || target[0] != '/')
		return false;
	ts_text_append(&path, target, (size_t)length);
	if (!cut_ending(&path, ".journal") || stat(ts_text_cstr(&link), &status) ||
	    !S_ISREG(status.st_mode))
		return false;
	target[length] = '\0';
	if (!is_same(target, &status)) {
		ts_text_clear(&link);
		ts_text_printf(&link, "/proc/%d/root%s", (int)recorder, target);
		if (!is_same(ts_text_cstr(&link), &status) || !cut_ending(&link, ".journal"))
			return false;
		ts_text_clear(&path);
		ts_text_append(&path, link.data, link.length);
	}
	if (!ts_journal_origin(ts_text_cstr(&path), &open))
		return false;
	ts_text_clear(&finding->trace);
	ts_text_append(&finding->trace, path.data, path.length);
	return true;
}

/* TS_ENOTFOUND: it has no journal; another code: nobody may look. */
static int find_trace_of(struct finding *finding, pid_t recorder, struct ts_error *err)
{
	struct dirent *entry;
	char folder[64];
	DIR *descriptors;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)recorder);
	descriptors = opendir(folder);
	if (!descriptors)
		return ts_error_set(
			err, TS_EIO,
			"process %d is recorded by process %d of another user: only that user or "
			"root can find out where to (open the trace itself)",
			(int)finding->pid, (int)recorder);
	finding->has_journal = false;
	while (!finding->has_journal && (entry = readdir(descriptors)))
		finding->has_journal = isdigit((unsigned char)entry->d_name[0]) &&
				       take_descriptor(finding, recorder, entry->d_name);
	closedir(descriptors);
	return finding->has_journal
		       ? TS_OK
		       : ts_error_set(err, TS_ENOTFOUND,
				      "process %d, the recorder of process %d, has no journal",
				      (int)recorder, (int)finding->pid);
}

/* True if the recording that the area belongs to was cut off: its recorder was killed. */
static bool is_cut_off(struct finding *finding, const struct ts_live_control *control)
{
	TS_SCOPED(ts_text) path = { 0 };
	struct ts_trace_writer writer;
	struct ts_block_open open;

	if (!control->output[0] || !control->session)
		return false;
	/* x.json is exported from x.json.sbt. */
	ts_text_append_str(&path, control->output);
	cut_ending(&path, ".sbt");
	ts_text_append_str(&path, ".sbt");
	if (ts_text_status(&path))
		return false;
	ts_trace_look(ts_text_cstr(&path), &writer);
	if (writer.writing != TS_TRACE_CUT_OFF || !ts_journal_origin(ts_text_cstr(&path), &open) ||
	    open.session != control->session)
		return false;
	ts_text_clear(&finding->trace);
	ts_text_append(&finding->trace, path.data, path.length);
	return true;
}

/* ---- what there is to open ---- */

static int explain_missing(pid_t pid, struct ts_error *err)
{
	TS_AUTO(ts_process_areas) areas = NULL;
	int rc = ts_process_areas_open(&areas, pid, err);
	uid_t user;

	if (!rc)
		return ts_error_set(err, TS_EBUSY, "process %d has just become a target", (int)pid);
	if (rc == TS_ENOTFOUND)
		return ts_error_set(err, rc,
				    "there is no process %d, and it has left no live area "
				    "('tracesmith ps' lists what there is)",
				    (int)pid);
	if (rc != TS_ECAP)
		return rc;
	/* The message says what to do. */
	err->code = ts_process_user(pid, &user) && user != geteuid() && geteuid() ? TS_EIO
										  : TS_ENOTFOUND;
	return err->code;
}

static pid_t recorder_of(const struct finding *finding)
{
	pid_t recorder = 0;

	for (size_t i = 0; i < finding->area_count && !recorder; i++)
		recorder = ts_area_recorder(&finding->areas[i].control, finding->areas[i].owner);
	return recorder;
}

/* Finds recorder and trace. An earlier attempt may have found the trace. */
static int find(struct finding *finding, struct ts_error *err)
{
	int rc;

	find_areas(finding);
	if (finding->failed)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	finding->recorder = recorder_of(finding);
	finding->has_journal = false;
	if (finding->recorder)
		return find_trace_of(finding, finding->recorder, err);
	for (size_t i = 0; i < finding->area_count; i++) {
		/* A recorder's own area, before it has found that itself. */
		if (finding->areas[i].alive && finding->areas[i].control.role == TS_LIVE_RECORDER)
			finding->recorder = finding->pid;
		finding->has_journal |= !finding->recorder && !finding->has_journal &&
					is_cut_off(finding, &finding->areas[i].control);
	}
	if (finding->recorder || !finding->area_count) {
		/* It may be a recorder that measures nothing itself. */
		rc = find_trace_of(finding, finding->pid, NULL);
		if (!rc)
			finding->recorder = finding->pid;
		if (rc && !finding->area_count && !finding->trace.length)
			return explain_missing(finding->pid, err);
	}
	return TS_OK;
}

static int open_found(struct ts_reader **ret_reader, struct finding *finding,
		      const struct ts_open_options *options, bool accept_gaps, struct ts_error *err)
{
	struct ts_snapshot_source source = { .name = ts_text_cstr(&finding->trace),
					     .areas = finding->areas,
					     .area_count = finding->area_count,
					     .directory_fd = finding->directory_fd,
					     .recorder = finding->recorder,
					     .accept_gaps = accept_gaps };
	char name[64];

	if (finding->has_journal)
		return ts_snapshot_recording(ret_reader, &source, err);
	/* An earlier attempt saw it being written. */
	if (finding->trace.length)
		return ts_open(ret_reader, source.name, options, err);
	snprintf(name, sizeof(name), "process %d", (int)finding->pid);
	source.name = name;
	return ts_snapshot_areas(ret_reader, &source, err);
}

static void warn_cut_off(const struct finding *finding, const struct ts_open_options *options)
{
	TS_SCOPED(ts_text) text = { 0 };

	if (finding->recorder || !options || !options->warning)
		return;
	for (size_t i = 0; i < finding->area_count; i++)
		if (finding->areas[i].control.mode == TS_LIVE_STREAM &&
		    finding->areas[i].control.recorder_pid && !finding->has_journal &&
		    !finding->trace.length) {
			ts_text_printf(&text,
				       "the recorder of process %d, process %" PRIu64
				       ", was killed: what it has stored is in its trace, and the "
				       "rest is shown",
				       (int)finding->pid, finding->areas[i].control.recorder_pid);
			options->warning(options->context, ts_text_cstr(&text));
			return;
		}
}

int ts_open_pid(struct ts_reader **ret_reader, pid_t pid, const struct ts_open_options *options,
		struct ts_error *err)
{
	struct finding finding = { .pid = pid, .directory_fd = -1 };
	struct ts_error unused = { 0 };
	int rc = TS_EBUSY;

	err = err ? err : &unused;
	if (!ret_reader || pid <= 0)
		return ts_error_set(err, TS_EINVAL, "%d is not the id of a process", (int)pid);
	for (int attempt = 0; attempt < ATTEMPTS && rc == TS_EBUSY; attempt++) {
		const struct timespec pause = { .tv_nsec = attempt ? PAUSE_NS : 0 };

		nanosleep(&pause, NULL);
		rc = find(&finding, err);
		/* It has not created the journal yet, or just deleted it, or is at a rotation. */
		if (rc == TS_ENOTFOUND && finding.recorder && attempt < ATTEMPTS - 1)
			rc = TS_EBUSY;
		else if (!rc || (rc == TS_ENOTFOUND && finding.recorder && finding.trace.length))
			rc = open_found(ret_reader, &finding, options, attempt >= PATIENT_ATTEMPTS,
					err);
	}
	if (!rc)
		warn_cut_off(&finding, options);
	else if (rc == TS_EBUSY)
		ts_error_prefix(err,
				"process %d: its files change too often to be read at one "
				"moment (try again)",
				(int)pid);
	forget_areas(&finding);
	ts_text_release(&finding.trace);
	return rc;
}
