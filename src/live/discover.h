/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds live areas and their processes: the live directory and its checks, liveness by pid and
 * start time, pid namespaces, containers through /proc/PID/root. Removes areas that nobody will
 * read.
 */
#ifndef TS_LIVE_DISCOVER_H
#define TS_LIVE_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/process.h"
#include "live/local/live_layout.h"

/* ---- the live directory ---- */

/* $TRACESMITH_LIVE_DIR or /dev/shm/tracesmith-<uid>. TS_EINVAL: the buffer is too small. */
int ts_live_directory_path(uid_t uid, char *buffer, size_t bytes);

/*
 * Opens the directory and checks owner, mode and that it is not a symbolic link. `root_pid` not 0:
 * the directory of that process, by its environment, below /proc/PID/root; `uid` is in the caller's
 * user namespace. TS_ENOTFOUND: there is none; TS_EFORMAT: it is unsafe to use.
 */
/* True if a process can make an area there, with a default budget. */
bool ts_live_directory_has_space(int directory_fd);
int ts_live_directory_open(uid_t uid, pid_t root_pid, int *ret_fd, struct ts_error *err);

/*
 * The users whose live directories the caller may read: himself and, for root, all who have one.
 * $TRACESMITH_LIVE_DIR is one for all.
 */
void ts_live_directory_users(void (*each)(void *context, uid_t user), void *context);

/*
 * The pid namespace of a directory opened with `root_pid`, for ts_areas_list(). 0: it is among our
 * own files, so that its areas may be of any namespace.
 */
uint64_t ts_live_directory_namespace(pid_t root_pid);

/* ---- areas ---- */

struct ts_area_info {
	char name[64];
	uid_t owner; /* of the file */
	dev_t device;
	ino_t inode;
	struct ts_live_control control; /* as ts_area_control() gives it */
	pid_t pid; /* in our namespace; 0: gone, or in a namespace that is not visible */
	bool alive;
	bool unknown;    /* not found, but may be in a namespace that is not visible */
	bool superseded; /* the same process has a newer area since an exec */
	bool unfinished; /* ends in .new */
	int64_t modified_ns;
	uint64_t file_bytes;
};

/*
 * Lists areas of an opened live directory. Skips files that are not areas; calls `refused` (may be
 * NULL) for newer layouts, for areas that name a process of another user (docs/live.md, section
 * 1.1), and for those from the future. `pid_namespace`: ts_live_directory_namespace().
 */
int ts_areas_list(int directory_fd, uint64_t pid_namespace,
		  void (*found)(void *context, const struct ts_area_info *info),
		  void (*refused)(void *context, const char *name, const char *why), void *context,
		  struct ts_error *err);

/*
 * One of them, by name, without looking for its process in other pid namespaces and without
 * comparing it with others (`superseded` is false). TS_ENOTFOUND: a listing may know more;
 * *ret_info is valid, too, if the file still exists.
 */
int ts_area_look(int directory_fd, uint64_t pid_namespace, const char *name,
		 struct ts_area_info *ret_info, struct ts_error *err);

/*
 * The live process that drains the area, 0: none. As with areas, it must be of the area's owner, or
 * of root.
 */
pid_t ts_area_recorder(const struct ts_live_control *control, uid_t owner);

/* Unlinks an area, if it is still the same file (area_id). */
int ts_area_remove(int directory_fd, const char *name, uint64_t area_id);

/*
 * Removes garbage: `.new` files of dead processes, dead areas that are fully drained, and, beyond
 * the newest `keep`, dead areas that are not. Never removes an area whose recorder is alive or
 * whose process may be. ret_removed may be NULL.
 */
int ts_areas_clean(int directory_fd, unsigned int keep, unsigned int *ret_removed,
		   struct ts_error *err);
/* The same for the areas of one dead process, with all that is in them. */
int ts_areas_clean_process(int directory_fd, pid_t pid, unsigned int *ret_removed,
			   struct ts_error *err);

#endif
