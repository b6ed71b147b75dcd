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
	rc = ts_spools_add_directory(recorder->spools, fd, err);
	if (rc)
		return rc;
	recorder->directories[recorder->directory_count++] = (struct ts_live_directory){
		.fd = fd,
		.watch = watch_directory(recorder, fd),
		.pid_namespace = ts_live_directory_namespace(root_pid),
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

/* True for a recorder's measurements that another user claims to have. */
static bool is_false_recorder(const struct ts_area_info *info)
{
	return info->control.role != TS_LIVE_PROGRAM && info->owner != geteuid();
}

/*
 * True if the caller named the process or one of its ancestors. What a recorder among them has
 * started is that recorder's.
 */
static bool is_followed(struct ts_recorder *recorder, const struct ts_area_info *info)
{
	const struct ts_child *child;

	if (!info->pid || !info->alive || info->superseded || recorder->options.outside ||
	    info->control.role != TS_LIVE_PROGRAM)
		return false;
	child = ts_children_find(recorder, info->pid);
	return child && !(child->is_others && info->control.session);
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

	if (info->unfinished || is_left_over(recorder, info) || is_false_recorder(info))
		return false;
	if (recorder->options.resume &&
	    ts_recording_positions(recorder->recording, info->control.area_id, &dictionary, NULL,
				   NULL))
		return true;
	/* Another user could leave an area of this session in the name of any dead process. */
	if (recorder->options.resume && info->owner != geteuid() && !info->alive)
		return false;
	return ts_targets_of_session(recorder, &info->control) || is_followed(recorder, info);
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

/* Identifies a refused area. Its id is what its owner says, maybe that of somebody else's area. */
static uint64_t refused_key(const struct listing *listing, const char *name)
{
	return ts_hash64(name, strlen(name)) ^ (uint64_t)listing->directory->inode;
}

/* An area once refused stays refused: when its process has exited, nobody can tell any more. */
static bool was_refused(const struct listing *listing, const struct ts_area_info *info)
{
	uint64_t unused;

	return ts_map_get(&listing->recorder->refused, refused_key(listing, info->name), &unused);
}

static void refuse(void *context, const char *name, const char *why)
{
	struct listing *listing = context;

	if (!listing->waiting_only &&
	    ts_targets_note_once(listing->recorder, refused_key(listing, name)))
		ts_recorder_note(listing->recorder, "live area '%s' is skipped: %s", name, why);
}

/*
 * Refuses the area of a process that cannot be found, but was last seen as another user's. (Root's
 * may have become the owner's since then.)
 */
static bool refuse_stolen(struct listing *listing, const struct ts_area_info *info)
{
	char why[128];
	uid_t user;

	if (info->pid || info->owner == 0 ||
	    !ts_children_user(listing->recorder, (pid_t)info->control.pid, info->control.start_time,
			      &user) ||
	    user == info->owner || user == 0)
		return false;
	snprintf(why, sizeof(why), "it names process %d, which belonged to user %u, not to user %u",
		 (int)info->control.pid, (unsigned int)user, (unsigned int)info->owner);
	refuse(listing, info->name, why);
	return true;
}

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
	/* The same id in another directory is a copy, which says nothing about the target. */
	if (target)
		target->superseded |= info->superseded &&
				      target->directory == listing->directory->fd;
	else if (!was_refused(listing, info) && is_wanted(recorder, info) &&
		 !refuse_stolen(listing, info))
		listing->rc = ts_targets_attach(recorder, listing->directory, info, listing->err);
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
	rc = ts_areas_list(directory->fd, directory->pid_namespace, consider, refuse, &listing,
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
	struct ts_area_info info;
	struct listing listing = { .recorder = recorder, .directory = directory, .err = err };
	int rc = ts_area_look(directory->fd, directory->pid_namespace, name, &info, NULL);

	if (rc == TS_ENOTFOUND)
		directory->due |= ts_targets_of_session(recorder, &info.control) ||
				  recorder->options.pid_count;
	if (rc)
		return TS_OK;
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
		ts_areas_list(recorder->directories[i].fd, recorder->directories[i].pid_namespace,
			      consider, refuse, &listing, NULL);
	return listing.waiting;
}

/* ---- opening ---- */

static int add_pid(struct ts_recorder *recorder, pid_t pid, struct ts_error *err)
{
	if (!ts_process_exists(pid, NULL))
		return ts_error_set(err, TS_ENOTFOUND, "no process %d", (int)pid);
	ts_recorder_attach(recorder, pid);
	if (!ts_children_find(recorder, pid))
		return ts_error_set(err, TS_ENOMEM, "no memory for process %d", (int)pid);
	return TS_OK;
}

/* Counts the named processes whose areas are free. */
struct candidates {
	struct ts_recorder *recorder;
	int directory_fd;
	pid_t held, holder; /* a process that another recorder has, and that recorder */
	size_t free;
};

/* The lock decides; the area only says whose it is. */
static bool is_held(int directory_fd, const struct ts_area_info *info)
{
	TS_AUTO(ts_area) area = NULL;

	return !ts_area_open(&area, directory_fd, info->name, true, NULL) &&
	       ts_area_lock(area, NULL);
}

static void count_candidate(void *context, const struct ts_area_info *info)
{
	struct candidates *candidates = context;

	if (!is_followed(candidates->recorder, info))
		return;
	if (is_held(candidates->directory_fd, info)) {
		candidates->held = info->pid;
		candidates->holder = ts_targets_other_recorder(candidates->recorder, info);
	} else {
		candidates->free++;
	}
}

/* Fails early if none of the named processes can be recorded. */
static int require_areas(struct ts_recorder *recorder, struct ts_error *err)
{
	struct candidates candidates = { .recorder = recorder };
	char holder[32] = "another process";

	for (size_t i = 0; i < recorder->directory_count; i++) {
		int rc;

		candidates.directory_fd = recorder->directories[i].fd;
		rc = ts_areas_list(recorder->directories[i].fd,
				   recorder->directories[i].pid_namespace, count_candidate, NULL,
				   &candidates, err);
		if (rc)
			return rc;
	}
	if (candidates.free)
		return TS_OK;
	if (candidates.held) {
		if (candidates.holder)
			snprintf(holder, sizeof(holder), "process %d", (int)candidates.holder);
		return ts_error_set(err, TS_EIO,
				    "process %d is already being recorded by %s: stop that "
				    "recorder first",
				    (int)candidates.held, holder);
	}
	if (recorder->options.sampled)
		return TS_OK;
	return ts_error_set(err, TS_ECAP,
			    "process %d has no live area: start it with 'tracesmith record -- ...' "
			    "or with TRACESMITH_LIVE=1",
			    (int)recorder->pids[0]);
}

static void add_users_directory(void *context, uid_t user)
{
	if (user != geteuid())
		ts_targets_add_directory(context, user, 0, NULL);
}

int ts_targets_open(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc = ts_targets_add_directory(recorder, geteuid(), 0, err);

	/* Where the predecessor found areas: it followed the program, which may be gone. */
	if (recorder->options.resume)
		ts_live_directory_users(add_users_directory, recorder);
	for (size_t i = 0; i < recorder->options.pid_count && !rc; i++)
		rc = add_pid(recorder, recorder->pids[i], err);
	if (rc || !recorder->options.pid_count)
		return rc;
	ts_children_walk(recorder);
	return recorder->options.resume || recorder->options.outside ? TS_OK
								     : require_areas(recorder, err);
}
