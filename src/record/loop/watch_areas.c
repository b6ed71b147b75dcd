/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds areas. Live directories are watched with inotify; in addition, their mtime is checked once
 * a second, and a changed directory is listed again.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/loop/record_internal.h"

#define RESCAN_NS TS_NS_PER_S
/* Processes that share an output start at most this long before the one with the recorder. */
#define EARLIER_NS (2 * TS_NS_PER_S)
/* mtimes are as coarse as kernel ticks: a listing this soon after a change may miss another. */
#define MTIME_DOUBT_NS (100 * TS_NS_PER_MS)

/* ---- live directories ---- */

static struct ts_live_directory *find_directory(struct ts_recorder *recorder, dev_t device,
						ino_t inode)
{
	for (size_t i = 0; i < recorder->directory_count; i++)
		if (recorder->directories[i].device == device &&
		    recorder->directories[i].inode == inode)
			return &recorder->directories[i];
	return NULL;
}

/* Creates our own live directory if it is missing, so that it can be watched. */
static void make_directory(uid_t uid)
{
	char path[TS_PATH_BYTES];

	if (uid == geteuid() && !ts_live_directory_path(uid, path, sizeof(path)))
		mkdir(path, 0700);
}

static int watch_directory(struct ts_recorder *recorder, int fd)
{
	char path[64];

	if (recorder->inotify < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return inotify_add_watch(recorder->inotify, path, IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR);
}

int ts_targets_add_directory(struct ts_recorder *recorder, uid_t uid, pid_t root_pid,
			     struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;
	int rc;

	if (!root_pid)
		make_directory(uid);
	rc = ts_live_directory_open(uid, root_pid, &fd, err);
	if (rc)
		return rc;
	if (fstat(fd, &status))
		return ts_error_errno(err, errno, "cannot read the live directory");
	if (find_directory(recorder, status.st_dev, status.st_ino))
		return TS_OK;
	if (ts_grow_array((void **)&recorder->directories, &recorder->directory_capacity,
			  recorder->directory_count + 1, sizeof(*recorder->directories)))
		return ts_error_set(err, TS_ENOMEM, "no memory for a live directory");
	recorder->directories[recorder->directory_count++] = (struct ts_live_directory){
		.fd = fd,
		.watch = watch_directory(recorder, fd),
		.namespace_pid = root_pid,
		.device = status.st_dev,
		.inode = status.st_ino,
		.due = true,
	};
	fd = -1;
	return TS_OK;
}

/* ---- filter ---- */

static struct ts_target *find_target(const struct ts_recorder *recorder, uint64_t area_id)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->area_id == area_id)
			return recorder->targets[i];
	return NULL;
}

/* True if the caller named the process or one of its ancestors. */
static bool is_followed(struct ts_recorder *recorder, const struct ts_area_info *info)
{
	return info->pid && info->alive && !info->superseded && !recorder->options.outside &&
	       info->control.role == TS_LIVE_PROGRAM &&
	       ts_children_find(recorder, info->pid) != NULL;
}

/*
 * True for an area of an earlier run with the same output that no recorder took: `recover` handles
 * it. The process that started the recorder tells when this run began; the recorder may be late.
 */
static bool is_left_over(const struct ts_recorder *recorder, const struct ts_area_info *info)
{
	return recorder->options.detached && !recorder->options.resume && !info->alive &&
	       !info->unknown && info->control.area_id != recorder->options.area &&
	       info->control.created.monotonic_ns < recorder->options.area_created_ns - EARLIER_NS;
}

static bool is_wanted(struct ts_recorder *recorder, const struct ts_area_info *info)
{
	uint64_t dictionary;

	if (info->unfinished || is_left_over(recorder, info))
		return false;
	if (ts_targets_of_session(recorder, &info->control) || is_followed(recorder, info))
		return true;
	return recorder->options.resume &&
	       ts_recording_positions(recorder->recording, info->control.area_id, &dictionary, NULL,
				      NULL);
}

/* ---- scanning ---- */

struct listing {
	struct ts_recorder *recorder;
	struct ts_live_directory *directory;
	struct ts_error *err;
	int rc;
	bool waiting_only; /* attach nothing, only check for wanted areas */
	bool waiting;
};

static void consider(void *context, const struct ts_area_info *info)
{
	struct listing *listing = context;
	struct ts_recorder *recorder = listing->recorder;
	struct ts_target *target;
	uint64_t pid;

	if (listing->rc)
		return;
	if (listing->waiting_only) {
		listing->waiting |= info->alive && !info->unfinished && !info->superseded &&
				    info->control.session == recorder->session &&
				    !ts_map_get(&recorder->seen, info->control.area_id, &pid);
		return;
	}
	target = find_target(recorder, info->control.area_id);
	if (target)
		target->superseded |= info->superseded;
	else if (is_wanted(recorder, info))
		listing->rc = ts_targets_attach(recorder, listing->directory, info, listing->err);
}

static void refuse(void *context, const char *name, const char *why)
{
	struct listing *listing = context;

	if (!listing->waiting_only &&
	    ts_targets_note_once(listing->recorder, ts_hash64(name, strlen(name))))
		ts_recorder_note(listing->recorder, "live area '%s' is skipped: %s", name, why);
}

static int64_t modified_ns(const struct ts_live_directory *directory)
{
	struct stat status;

	if (fstat(directory->fd, &status))
		return 0;
	return (int64_t)status.st_mtim.tv_sec * TS_NS_PER_S + status.st_mtim.tv_nsec;
}

static int list_directory(struct ts_recorder *recorder, struct ts_live_directory *directory,
			  struct ts_error *err)
{
	struct listing listing = { .recorder = recorder, .directory = directory, .err = err };
	int rc;

	directory->due = false;
	directory->modified_ns = modified_ns(directory);
	directory->settled = ts_clock_realtime_ns() - directory->modified_ns > MTIME_DOUBT_NS;
	rc = ts_areas_list(directory->fd, directory->namespace_pid, consider, refuse, &listing,
			   err);
	return listing.rc ? listing.rc : rc;
}

/*
 * Handles a name reported by inotify. A process of our own namespace, the usual case, needs no
 * listing. For others the directory is listed, if they may be ours.
 */
static int look_at_name(struct ts_recorder *recorder, struct ts_live_directory *directory,
			const char *name, struct ts_error *err)
{
	TS_AUTO(ts_area) area = NULL;
	struct ts_area_info info = { .alive = true };
	struct listing listing = { .recorder = recorder, .directory = directory, .err = err };

	if (strlen(name) >= sizeof(info.name) ||
	    ts_area_open(&area, directory->fd, name, false, NULL))
		return TS_OK;
	memcpy(info.name, name, strlen(name) + 1);
	info.control = *ts_area_control(area);
	info.pid = (pid_t)info.control.pid;
	ts_area_close(TS_STEAL(area));
	if (!recorder->self_namespace || info.control.pid_namespace != recorder->self_namespace ||
	    !ts_process_lives(info.pid, info.control.start_time)) {
		directory->due |= ts_targets_of_session(recorder, &info.control) ||
				  recorder->options.pid_count;
		return TS_OK;
	}
	consider(&listing, &info);
	return listing.rc;
}

static int handle_event(struct ts_recorder *recorder, const struct inotify_event *event,
			struct ts_error *err)
{
	if (event->wd == recorder->windows.flag_watch)
		recorder->windows.look_ns = 0;
	for (size_t i = 0; i < recorder->directory_count; i++) {
		struct ts_live_directory *directory = &recorder->directories[i];

		if (event->mask & IN_Q_OVERFLOW)
			directory->due = true;
		else if (event->wd == directory->watch && event->len)
			return look_at_name(recorder, directory, event->name, err);
	}
	return TS_OK;
}

static int read_inotify(struct ts_recorder *recorder, struct ts_error *err)
{
	_Alignas(struct inotify_event) char buffer[16384];
	int rc = TS_OK;

	if (!recorder->notified)
		return TS_OK;
	recorder->notified = false;
	for (;;) {
		ssize_t bytes = read(recorder->inotify, buffer, sizeof(buffer));

		if (bytes <= 0)
			return rc;
		for (char *at = buffer; at < buffer + bytes && !rc;) {
			const struct inotify_event *event = (const struct inotify_event *)at;

			at += sizeof(*event) + event->len;
			rc = handle_event(recorder, event, err);
		}
	}
}

int ts_targets_scan(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc = read_inotify(recorder, err);

	if (rc)
		return rc;
	if (recorder->now_ns >= recorder->rescan_ns) {
		recorder->rescan_ns = recorder->now_ns + RESCAN_NS;
		for (size_t i = 0; i < recorder->directory_count; i++) {
			struct ts_live_directory *directory = &recorder->directories[i];

			directory->due |= !directory->settled ||
					  modified_ns(directory) != directory->modified_ns;
		}
	}
	for (size_t i = 0; i < recorder->directory_count; i++) {
		rc = recorder->directories[i].due
			     ? list_directory(recorder, &recorder->directories[i], err)
			     : TS_OK;
		if (rc)
			return rc;
	}
	return TS_OK;
}

bool ts_targets_waiting(struct ts_recorder *recorder)
{
	struct listing listing = { .recorder = recorder, .waiting_only = true };

	if (!recorder->options.detached)
		return false;
	for (size_t i = 0; i < recorder->directory_count; i++)
		ts_areas_list(recorder->directories[i].fd, recorder->directories[i].namespace_pid,
			      consider, refuse, &listing, NULL);
	return listing.waiting;
}

/* ---- opening ---- */

static int add_pid(struct ts_recorder *recorder, pid_t pid, struct ts_error *err)
{
	if (pid <= 0 || !ts_process_start_time(pid))
		return ts_error_set(err, TS_ENOTFOUND, "no process %d", (int)pid);
	ts_recorder_attach(recorder, pid);
	if (!ts_children_find(recorder, pid))
		return ts_error_set(err, TS_ENOMEM, "no memory for process %d", (int)pid);
	return TS_OK;
}

/* Counts the named processes whose areas are free. */
struct candidates {
	struct ts_recorder *recorder;
	pid_t held, holder; /* a process that another recorder has, and that recorder */
	size_t free;
};

static void count_candidate(void *context, const struct ts_area_info *info)
{
	struct candidates *candidates = context;
	pid_t holder = ts_targets_other_recorder(candidates->recorder, &info->control);

	if (!is_followed(candidates->recorder, info))
		return;
	if (holder) {
		candidates->held = info->pid;
		candidates->holder = holder;
	} else {
		candidates->free++;
	}
}

/* Fails early if none of the named processes can be recorded. */
static int require_areas(struct ts_recorder *recorder, struct ts_error *err)
{
	struct candidates candidates = { .recorder = recorder };

	for (size_t i = 0; i < recorder->directory_count; i++) {
		int rc = ts_areas_list(recorder->directories[i].fd,
				       recorder->directories[i].namespace_pid, count_candidate,
				       NULL, &candidates, err);
		if (rc)
			return rc;
	}
	if (candidates.free)
		return TS_OK;
	if (candidates.held)
		return ts_error_set(err, TS_EIO,
				    "process %d is already being recorded by process %d: stop "
				    "that recorder first",
				    (int)candidates.held, (int)candidates.holder);
	if (recorder->options.sampled)
		return TS_OK;
	return ts_error_set(err, TS_ECAP,
			    "process %d has no live area: start it with 'tracesmith record -- ...' "
			    "or with TRACESMITH_LIVE=1",
			    (int)recorder->pids[0]);
}

int ts_targets_open(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc = ts_targets_add_directory(recorder, geteuid(), 0, err);

	for (size_t i = 0; i < recorder->options.pid_count && !rc; i++)
		rc = add_pid(recorder, recorder->pids[i], err);
	if (rc || !recorder->options.pid_count)
		return rc;
	ts_children_walk(recorder);
	return recorder->options.resume || recorder->options.outside ? TS_OK
								     : require_areas(recorder, err);
}
