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
int ts_live_directory_open(uid_t uid, pid_t root_pid, int *ret_fd, struct ts_error *err);

/* ---- areas ---- */

struct ts_area_info {
	char name[64];
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
 * NULL) for newer layouts. `namespace_pid` not 0: the directory was opened through /proc/PID/root
 * of that process, and the areas belong to its pid namespace.
 */
int ts_areas_list(int directory_fd, pid_t namespace_pid,
		  void (*found)(void *context, const struct ts_area_info *info),
		  void (*refused)(void *context, const char *name, const char *why), void *context,
		  struct ts_error *err);

/* Unlinks an area, if it is still the same file (area_id). */
int ts_area_remove(int directory_fd, const char *name, uint64_t area_id);

/*
 * Removes garbage: `.new` files of dead processes, dead areas that are fully drained, and, beyond
 * the newest `keep`, dead areas that are not. Never removes an area whose recorder is alive or
 * whose process may be. ret_removed may be NULL.
 */
int ts_areas_clean(int directory_fd, unsigned int keep, unsigned int *ret_removed,
		   struct ts_error *err);

#endif
