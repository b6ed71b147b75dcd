/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds live areas and the processes behind them: the live directory and its checks, liveness by
 * pid and start time, pid namespaces, containers through /proc/PID/root. Removes areas that nobody
 * will read.
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

/* $TRACESMITH_LIVE_DIR or /dev/shm/tracesmith-<uid>. TS_EINVAL where the buffer is too small. */
int ts_live_directory_path(uid_t uid, char *buffer, size_t bytes);

/*
 * Opens and checks it (owner, mode, no symbolic link). `root_pid` not 0: as that process sees it,
 * by its environment, below /proc/PID/root; `uid` is as seen from here. TS_ENOTFOUND where there is
 * none, TS_EFORMAT where it is not to be used.
 */
int ts_live_directory_open(uid_t uid, pid_t root_pid, int *ret_fd, struct ts_error *err);

/* ---- areas ---- */

struct ts_area_info {
	char name[64];
	struct ts_live_control control; /* as ts_area_control() gives it */
	pid_t pid; /* seen from here; 0: gone, or of a namespace that cannot be seen */
	bool alive;
	bool unknown;    /* not alive as far as can be seen, but not all namespaces can be */
	bool superseded; /* an exec made a newer area for the same process */
	bool unfinished; /* ends in .new */
	int64_t modified_ns;
	uint64_t file_bytes;
};

/*
 * Lists areas of an opened live directory. Files that are no areas are skipped; newer layouts are
 * given to `refused` (may be NULL) by name. `namespace_pid` not 0: the directory was reached
 * through /proc/PID/root of that process, whose pid namespace the areas are of.
 */
int ts_areas_list(int directory_fd, pid_t namespace_pid,
		  void (*found)(void *context, const struct ts_area_info *info),
		  void (*refused)(void *context, const char *name, const char *why), void *context,
		  struct ts_error *err);

/* Unlinks an area, if it is still the same file (area_id). */
int ts_area_remove(int directory_fd, const char *name, uint64_t area_id);

/*
 * Removes garbage: `.new` files of dead processes, dead areas that hold nothing that was not taken,
 * and, beyond the newest `keep`, dead areas nobody took. Never one whose recorder is alive, nor one
 * of which it is not known whether its process lives. ret_removed may be NULL.
 */
int ts_areas_clean(int directory_fd, unsigned int keep, unsigned int *ret_removed,
		   struct ts_error *err);

#endif
