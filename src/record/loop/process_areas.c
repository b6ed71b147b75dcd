/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the live areas of a process. Areas of other processes are read, never mapped, and never
 * trusted.
 */
#include "record/loop/process_areas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

/* Directory entries read at once. */
#define ENTRIES 64

struct search {
	struct ts_process_areas *process;
	int rc;
};

static void on_area(void *context, const struct ts_area_info *info)
{
	struct search *search = context;
	struct ts_process_areas *process = search->process;

	if (search->rc || !info->alive || info->superseded || info->unfinished ||
	    info->pid != process->pid)
		return;
	search->rc = ts_grow_array((void **)&process->areas, &process->area_capacity,
				   process->area_count + 1, sizeof(*process->areas));
	if (!search->rc)
		process->areas[process->area_count++] = *info;
}

/*
 * Adds areas from the live directory of a user as `root_pid` sees it; keeps the directory open if
 * there are any.
 */
static int look_in(struct ts_process_areas *process, uid_t uid, pid_t root_pid,
		   struct ts_error *err)
{
	struct search search = { .process = process };
	int fd, rc = ts_live_directory_open(uid, root_pid, &fd, err);

	if (rc)
		return rc;
	rc = ts_areas_list(fd, ts_live_directory_namespace(root_pid), on_area, NULL, &search, err);
	if (!rc && search.rc)
		rc = ts_error_set(err, search.rc, "no memory");
	if (rc || !process->area_count)
		close(fd);
	else
		process->directory_fd = fd;
	return rc;
}

/* ---- processes without an area ---- */

struct recorders {
	pid_t pid; /* the last one found */
	unsigned int count;
};

static void on_recorder(void *context, const struct ts_area_info *info)
{
	struct recorders *recorders = context;

	if (info->control.role != TS_LIVE_RECORDER || !info->alive || info->superseded ||
	    info->unfinished || info->pid <= 0)
		return;
	recorders->pid = info->pid;
	recorders->count++;
}

/*
 * The only recorder of this user, which may sample a process without an area; 0: none, or several.
 */
static pid_t only_recorder(void)
{
	struct recorders recorders = { 0 };
	TS_AUTO_FD int fd = -1;

	if (ts_live_directory_open(geteuid(), 0, &fd, NULL) ||
	    ts_areas_list(fd, 0, on_recorder, NULL, &recorders, NULL))
		return 0;
	return recorders.count == 1 ? recorders.pid : 0;
}

static int not_a_target(pid_t pid, struct ts_error *err)
{
	enum ts_preload preload = ts_process_preload(pid);
	pid_t recorder = only_recorder();
	char name[64], hint[160] = "";

	ts_process_name(pid, name, sizeof(name));
	if (recorder)
		snprintf(hint, sizeof(hint),
			 "; process %d can record its metrics: 'tracesmith config %d "
			 "sample_rate=...'",
			 (int)recorder, (int)recorder);
	if (preload == TS_PRELOAD_STATIC || preload == TS_PRELOAD_SECURE ||
	    preload == TS_PRELOAD_OTHER_ARCH)
		return ts_error_set(err, TS_ECAP, "process %d ('%s') cannot be recorded: %s%s",
				    (int)pid, name, ts_preload_reason(preload), hint);
	return ts_error_set(
		err, TS_ECAP,
		"process %d ('%s') has no active agent; start it with 'tracesmith record -- %s "
		"...', or with TRACESMITH_OUT=trace.sbt or TRACESMITH_LIVE=1 in its environment%s",
		(int)pid, name, name, hint);
}

/* Metrics of the process can still be recorded, so this is not fatal. `err` has the cause. */
static int not_ours(pid_t pid, struct ts_error *err)
{
	char name[64];

	if (geteuid() == 0)
		return ts_error_set(err, TS_ECAP, "cannot read the events of process %d: %s",
				    (int)pid, err ? err->message : "");
	ts_process_name(pid, name, sizeof(name));
	return ts_error_set(
		err, TS_ECAP,
		"process %d ('%s') belongs to another user: only that user or root can read its "
		"events",
		(int)pid, name);
}

static int find_areas(struct ts_process_areas *process, struct ts_error *err)
{
	uid_t user;
	bool is_ours;
	int rc;

	if (!ts_process_exists(process->pid, NULL) || !ts_process_user(process->pid, &user))
		return ts_error_set(err, TS_ENOTFOUND, "there is no process %d", (int)process->pid);
	is_ours = user == geteuid();
	rc = look_in(process, user, 0, err);
	/* Our environment may point to the live directory of another user as well. */
	if (!process->area_count && (!rc || rc == TS_ENOTFOUND || (!is_ours && rc != TS_ENOMEM)))
		rc = look_in(process, user, process->pid, err);
	/* Made before the process dropped its privileges. */
	if (!process->area_count && !is_ours && rc != TS_ENOMEM)
		look_in(process, geteuid(), 0, NULL);
	if (process->area_count)
		return TS_OK;
	if (!is_ours && rc && rc != TS_ENOTFOUND && rc != TS_ENOMEM)
		return not_ours(process->pid, err);
	/* Report a directory that exists but must not be used; any other result means "none". */
	return rc && rc != TS_ENOTFOUND ? rc : not_a_target(process->pid, err);
}

int ts_process_areas_open(struct ts_process_areas **ret_process, pid_t pid, struct ts_error *err)
{
	TS_AUTO(ts_process_areas) process = calloc(1, sizeof(*process));
	int rc;

	if (!process)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	process->pid = pid;
	process->directory_fd = -1;
	rc = find_areas(process, err);
	if (rc)
		return rc;
	*ret_process = TS_STEAL(process);
	return TS_OK;
}

void ts_process_areas_close(struct ts_process_areas *process)
{
	if (!process)
		return;
	if (process->directory_fd >= 0)
		close(process->directory_fd);
	free(process->areas);
	free(process);
}

/* ---- census ---- */

/* Bytes that a recorder has taken, or 0 if the words of the ring disagree. */
static uint64_t consumed_of(const struct ts_live_ring *ring)
{
	return ring->consumed_check == ts_live_consumed_check(ring->consumed, ring->consumed_events,
							      ring->consumed_tid,
							      ring->consumed_serial)
		       ? ring->consumed
		       : 0;
}

static int count_ring(const struct ts_live_ring *ring, struct ts_map *threads,
		      struct ts_area_census *census)
{
	uint64_t taken = consumed_of(ring);
	uint64_t oldest = (ring->turn & 1 ? &ring->slot_1 : &ring->slot_0)->position;

	if (!ring->bytes)
		return TS_OK;
	census->rings++;
	census->emitted_bytes += ring->head;
	taken = TS_MAX(taken, oldest);
	if (taken < ring->head)
		census->waiting_bytes += TS_MIN(ring->head - taken, ring->bytes);
	census->lost += ring->dropped;
	if (ring->state != TS_LIVE_RING_OWNED || !ring->tid)
		return TS_OK;
	return ts_map_put(threads, ring->tid, 1);
}

static int count_rings(int fd, uint32_t rings, struct ts_area_census *census,
		       struct ts_map *threads)
{
	struct ts_live_ring entries[ENTRIES];

	for (uint32_t at = 0; at < rings; at += ENTRIES) {
		size_t count = TS_MIN(rings - at, (uint32_t)ENTRIES);
		ssize_t got = pread(fd, entries, count * sizeof(entries[0]),
				    (off_t)(TS_LIVE_DIRECTORY + at * TS_LIVE_ENTRY_BYTES));

		for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(entries[0]); i++) {
			if (count_ring(&entries[i], threads, census))
				return TS_ENOMEM;
		}
	}
	return TS_OK;
}

int ts_area_census(int directory_fd, const struct ts_area_info *info,
		   struct ts_area_census *ret_census, struct ts_error *err)
{
	struct ts_area_census census = { .lost = info->control.lost_nested +
						 info->control.lost_no_ring };
	TS_AUTO_FD int fd =
		openat(directory_fd, info->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct ts_map threads;
	int rc;

	if (fd < 0)
		return ts_error_errno(err, errno, "cannot open the live area '%s'", info->name);
	ts_map_init(&threads);
	rc = count_rings(fd, TS_MIN(info->control.rings, TS_LIVE_RING_LIMIT), &census, &threads);
	census.threads = (uint32_t)ts_map_count(&threads);
	ts_map_release(&threads);
	if (rc)
		return ts_error_set(err, rc, "no memory");
	*ret_census = census;
	return TS_OK;
}
