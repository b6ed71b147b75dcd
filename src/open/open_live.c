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

/* What is recorded of a process. */
enum found {
	FOUND_AREAS,     /* no more than its live areas */
	FOUND_RECORDING, /* a trace with a journal */
	FOUND_TRACE,     /* one that its recorder has finished, or is about to */
};

struct finding {
	pid_t pid;
	int directory_fd; /* of its areas */
	struct ts_area_info *areas;
	size_t area_count, area_capacity;
	bool failed; /* no memory */
	enum found found;
	pid_t recorder;       /* the live process that records it; 0: none */
	struct ts_text trace; /* empty: not known. Kept from attempt to attempt */
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

/* The path of what a process has open under this descriptor, as we name it, less the ending. */
static bool read_descriptor(pid_t process, const char *number, const char *ending,
			    struct ts_text *ret_path)
{
	TS_SCOPED(ts_text) link = { 0 };
	struct stat status;
	char target[4096];
	ssize_t length;

	ts_text_printf(&link, "/proc/%d/fd/%s", (int)process, number);
	length = readlink(ts_text_cstr(&link), target, sizeof(target) - 1);
	if (length <= 0 || target[0] != '/' || stat(ts_text_cstr(&link), &status) ||
	    !S_ISREG(status.st_mode))
		return false;
	target[length] = '\0';
	ts_text_clear(ret_path);
	ts_text_append_str(ret_path, target);
	if (!is_same(target, &status)) {
		ts_text_clear(ret_path);
		ts_text_printf(ret_path, "/proc/%d/root%s", (int)process, target);
		if (ts_text_status(ret_path) || !is_same(ts_text_cstr(ret_path), &status))
			return false;
	}
	return cut_ending(ret_path, ending);
}

/* A file that the recorder has open; its path less the ending. TS_EIO: nobody may look. */
static int find_descriptor(const struct finding *finding, pid_t recorder, const char *ending,
			   struct ts_text *ret_path, struct ts_error *err)
{
	struct dirent *entry;
	bool is_found = false;
	char folder[64];
	DIR *descriptors;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)recorder);
	descriptors = opendir(folder);
	if (!descriptors)
		return ts_error_set(
			err, TS_EIO,
			"process %d is recorded by process %d of another user: only "
			"that user or root can read its recording (open the trace instead)",
			(int)finding->pid, (int)recorder);
	while (!is_found && (entry = readdir(descriptors)))
		is_found = isdigit((unsigned char)entry->d_name[0]) &&
			   read_descriptor(recorder, entry->d_name, ending, ret_path);
	closedir(descriptors);
	return is_found ? TS_OK
			: ts_error_set(err, TS_ENOTFOUND,
				       "process %d, the recorder of process %d, writes no trace",
				       (int)recorder, (int)finding->pid);
}

/*
 * A trace that it writes without a journal: that is deleted at the end, and what then follows may
 * take seconds. Others may have the trace open to read it.
 */
static int find_late_trace(const struct finding *finding, pid_t recorder, struct ts_text *ret_path,
			   struct ts_error *err)
{
	struct ts_trace_writer writer = { .writing = TS_TRACE_AT_REST };
	int rc = find_descriptor(finding, recorder, ".sbt", ret_path, err);

	if (rc)
		return rc;
	ts_text_append_str(ret_path, ".sbt");
	ts_trace_look(ts_text_cstr(ret_path), &writer);
	return writer.writing == TS_TRACE_GROWING
		       ? TS_OK
		       : ts_error_set(err, TS_ENOTFOUND, "process %d writes no trace",
				      (int)recorder);
}

/* TS_ENOTFOUND: the process writes no trace, as far as can be seen. */
static int find_trace_of(struct finding *finding, pid_t recorder, struct ts_error *err)
{
	TS_SCOPED(ts_text) path = { 0 };
	enum found found = FOUND_RECORDING;
	struct ts_block_open open;
	int rc = find_descriptor(finding, recorder, ".journal", &path, err);

	if (rc == TS_ENOTFOUND || (!rc && !ts_journal_origin(ts_text_cstr(&path), &open))) {
		found = FOUND_TRACE;
		rc = find_late_trace(finding, recorder, &path, err);
	}
	if (rc)
		return rc;
	finding->found = found;
	finding->recorder = recorder;
	ts_text_clear(&finding->trace);
	ts_text_append(&finding->trace, path.data, path.length);
	return ts_text_status(&finding->trace) ? ts_error_set(err, TS_ENOMEM, "no memory") : TS_OK;
}

/* ---- the trace of a recorder that was killed ---- */

/* The trace that the area's variable names; false: none. */
static bool name_output(const struct ts_live_control *control, struct ts_text *ret_path)
{
	if (!control->output[0] || !control->session)
		return false;
	/* x.json is exported from x.json.sbt. */
	ts_text_append_str(ret_path, control->output);
	cut_ending(ret_path, ".sbt");
	ts_text_append_str(ret_path, ".sbt");
	return !ts_text_status(ret_path);
}

/* TS_EBUSY: a recorder that has not attached to the area yet is writing it. */
static int find_left_trace(struct finding *finding, const struct ts_live_control *control,
			   struct ts_error *err)
{
	TS_SCOPED(ts_text) path = { 0 };
	struct ts_trace_writer writer;
	struct ts_block_open open;

	if (!name_output(control, &path) || !ts_journal_origin(ts_text_cstr(&path), &open) ||
	    open.session != control->session)
		return TS_OK;
	ts_trace_look(ts_text_cstr(&path), &writer);
	if (writer.writing == TS_TRACE_GROWING)
		return ts_error_set(err, TS_EBUSY, "trace '%s': its recorder is just starting",
				    ts_text_cstr(&path));
	if (writer.writing == TS_TRACE_CUT_OFF) {
		finding->found = FOUND_RECORDING;
		ts_text_clear(&finding->trace);
		ts_text_append(&finding->trace, path.data, path.length);
	}
	return TS_OK;
}

/* What an earlier attempt saw being written. */
static void look_again(struct finding *finding)
{
	struct ts_trace_writer writer;

	ts_trace_look(ts_text_cstr(&finding->trace), &writer);
	finding->found = writer.writing == TS_TRACE_CUT_OFF ? FOUND_RECORDING : FOUND_TRACE;
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
				    "there is no process %d, and it left no live area "
				    "('tracesmith ps' lists what can be read)",
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

/* Without a recorder that the areas name. */
static int find_unrecorded(struct finding *finding, bool is_patient, struct ts_error *err)
{
	/* It may be a recorder itself, which measures nothing or has not found its area yet. */
	bool may_record =
		!finding->area_count ||
		(finding->areas[0].alive && finding->areas[0].control.role == TS_LIVE_RECORDER);
	int rc;

	if (may_record && !find_trace_of(finding, finding->pid, NULL))
		return TS_OK;
	for (size_t i = 0; i < finding->area_count && finding->found == FOUND_AREAS; i++) {
		rc = find_left_trace(finding, &finding->areas[i].control, err);
		if (rc && is_patient)
			return rc;
	}
	if (finding->found == FOUND_AREAS && finding->trace.length)
		look_again(finding);
	return finding->area_count || finding->found != FOUND_AREAS
		       ? TS_OK
		       : explain_missing(finding->pid, err);
}

static int find(struct finding *finding, bool is_patient, struct ts_error *err)
{
	pid_t recorder;
	int rc;

	find_areas(finding);
	if (finding->failed)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	finding->found = FOUND_AREAS;
	finding->recorder = 0;
	recorder = recorder_of(finding);
	if (!recorder)
		return find_unrecorded(finding, is_patient, err);
	rc = find_trace_of(finding, recorder, err);
	/* It is between two files, or has just released the last one. */
	if (rc == TS_ENOTFOUND && finding->trace.length && !is_patient) {
		look_again(finding);
		rc = TS_OK;
	}
	return rc == TS_ENOTFOUND ? TS_EBUSY : rc;
}

static int open_found(struct ts_reader **ret_reader, struct finding *finding,
		      const struct ts_open_options *options, bool is_patient, struct ts_error *err)
{
	struct ts_snapshot_source source = { .name = ts_text_cstr(&finding->trace),
					     .areas = finding->areas,
					     .area_count = finding->area_count,
					     .directory_fd = finding->directory_fd,
					     .recorder = finding->recorder,
					     .accept_gaps = !is_patient };
	char name[64];

	if (finding->found == FOUND_RECORDING)
		return ts_snapshot_recording(ret_reader, &source, err);
	if (finding->found == FOUND_TRACE)
		return ts_open(ret_reader, source.name, options, err);
	snprintf(name, sizeof(name), "process %d", (int)finding->pid);
	source.name = name;
	return ts_snapshot_areas(ret_reader, &source, err);
}

/* What a killed recorder has stored is in a trace that nobody can name. */
static void warn_rest(const struct finding *finding, const struct ts_open_options *options)
{
	TS_SCOPED(ts_text) text = { 0 };
	uint64_t recorder = 0;

	for (size_t i = 0; i < finding->area_count && !recorder; i++)
		if (finding->areas[i].control.mode == TS_LIVE_STREAM)
			recorder = finding->areas[i].control.recorder_pid;
	if (finding->found != FOUND_AREAS || !recorder || !options->warning)
		return;
	ts_text_printf(
		&text,
		"the recorder of process %d, process %" PRIu64
		", was killed: these are the events that it had not stored; the rest is in its trace",
		(int)finding->pid, recorder);
	options->warning(options->context, ts_text_cstr(&text));
}

int ts_open_pid(struct ts_reader **ret_reader, pid_t pid, const struct ts_open_options *options,
		struct ts_error *err)
{
	struct finding finding = { .pid = pid, .directory_fd = -1 };
	struct ts_open_options complete = { 0 };
	struct ts_error unused = { 0 };
	int rc = TS_EBUSY;

	err = err ? err : &unused;
	if (!ret_reader || pid <= 0)
		return ts_error_set(err, TS_EINVAL, "%d is not the id of a process", (int)pid);
	if (options)
		memcpy(&complete, options, TS_MIN(options->size, sizeof(complete)));
	complete.size = sizeof(complete);
	for (int attempt = 0; attempt < ATTEMPTS && rc == TS_EBUSY; attempt++) {
		const struct timespec pause = { .tv_nsec = attempt ? PAUSE_NS : 0 };
		bool is_patient = attempt < PATIENT_ATTEMPTS;

		nanosleep(&pause, NULL);
		rc = find(&finding, is_patient, err);
		if (!rc)
			rc = open_found(ret_reader, &finding, &complete, is_patient, err);
	}
	if (!rc)
		warn_rest(&finding, &complete);
	else if (rc == TS_EBUSY)
		ts_error_prefix(err,
				"process %d: its files change too often to be read at one "
				"moment (try again)",
				(int)pid);
	forget_areas(&finding);
	ts_text_release(&finding.trace);
	return rc;
}
