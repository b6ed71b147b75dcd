/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live areas of listed processes: who records them, how many events they store and lose. Read-only.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/top/top.h"
#include "live/discover.h"
#include "record/loop/process_areas.h"

/* Half of this is enough for a first rate. */
#define FIRST_NS INT64_C(100000000)

struct search {
	struct ts_top *top;
	int directory_fd;
	struct stat directory;
	bool notes; /* processes are listed because of them */
};

/* ---- finding ---- */

static struct ts_top_area *find_area(const struct search *search, const struct ts_area_info *info)
{
	const struct ts_top *top = search->top;

	for (size_t i = 0; i < top->area_count; i++) {
		struct ts_top_area *area = &top->areas[i];

		if (area->id == info->control.area_id && !strcmp(area->name, info->name) &&
		    area->device == search->directory.st_dev &&
		    area->inode == search->directory.st_ino)
			return area;
	}
	return NULL;
}

static struct ts_top_area *add_area(const struct search *search, const struct ts_area_info *info)
{
	struct ts_top *top = search->top;
	struct ts_top_area area = {
		.id = info->control.area_id,
		.device = search->directory.st_dev,
		.inode = search->directory.st_ino,
		.per_second = NAN,
	};

	memcpy(area.name, info->name, sizeof(area.name));
	if (ts_grow_array((void **)&top->areas, &top->area_capacity, top->area_count + 1,
			  sizeof(*top->areas)) ||
	    ts_area_events_open(&area.events, search->directory_fd, info->name, NULL))
		return NULL;
	top->areas[top->area_count] = area;
	return &top->areas[top->area_count++];
}

static void set_recorder(struct ts_top_area *area, const struct ts_area_info *info)
{
	const struct ts_live_control *control = &info->control;
	pid_t recorder = ts_area_recorder(control, info->owner);

	area->recorder = 0;
	area->window_closed = !(control->enabled & TS_LIVE_ENABLED);
	if (control->target_state == TS_LIVE_DISABLED) {
		area->recorded = TS_TOP_DISABLED;
	} else if (recorder) {
		area->recorded = TS_TOP_RECORDED;
		area->recorder = recorder;
	} else {
		area->recorded = control->recorder_pid ? TS_TOP_RECORDER_DEAD : TS_TOP_FLIGHT;
	}
}

/* A recorder's own area, for its measurements. */
static bool is_of_recorder(const struct ts_live_control *control)
{
	return control->recorder_pid == control->pid &&
	       control->recorder_start == control->start_time;
}

static void on_area(void *context, const struct ts_area_info *info)
{
	struct search *search = context;
	const struct ts_top_process *process;
	struct ts_top_area *area;

	if (!info->alive || info->superseded || info->unfinished || is_of_recorder(&info->control))
		return;
	process = search->notes ? ts_top_note_process(search->top, info->pid, TS_TOP_BY_AREA)
				: ts_top_find_process(search->top, info->pid);
	if (!process || !process->seen)
		return;
	area = find_area(search, info);
	if (!area)
		area = add_area(search, info);
	if (!area)
		return;
	area->seen = true;
	area->pid = info->pid;
	set_recorder(area, info);
}

static int list_directory(struct search *search, uid_t uid, pid_t root_pid, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	int rc = ts_live_directory_open(uid, root_pid, &fd, err);

	if (rc)
		return rc == TS_ENOTFOUND ? TS_OK : rc;
	if (fstat(fd, &search->directory))
		return TS_OK;
	search->directory_fd = fd;
	return ts_areas_list(fd, ts_live_directory_namespace(root_pid), on_area, NULL, search, err);
}

int ts_top_find_areas(struct ts_top *top, struct ts_error *err)
{
	struct search search = { .top = top, .notes = top->requested_count == 0 };

	return list_directory(&search, geteuid(), 0, err);
}

/* True for the first process of a mount namespace and user other than ours. */
static bool is_new_directory(struct ts_pairmap *directories, pid_t pid, uid_t uid)
{
	char path[64];
	struct stat status;
	bool is_new = false;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	return !stat(path, &status) &&
	       ts_pairmap_insert(directories, status.st_ino, uid, &is_new) && is_new;
}

void ts_top_find_container_areas(struct ts_top *top)
{
	struct search search = { .top = top };
	struct ts_pairmap directories;

	ts_pairmap_init(&directories);
	is_new_directory(&directories, getpid(), geteuid());
	for (size_t i = 0; i < top->process_count; i++) {
		const struct ts_top_process *process = &top->processes[i];

		/* Not readable, and not there: both mean that it has none. */
		if (process->seen && is_new_directory(&directories, process->pid, process->uid))
			list_directory(&search, process->uid, process->pid, NULL);
	}
	ts_pairmap_release(&directories);
}

/* ---- reading ---- */

/* Rates over much less than the interval mean little: keep the previous one, if any. */
static void look_into(struct ts_top_area *area, int64_t delay_ns)
{
	struct ts_event_counts counts;
	int64_t now;

	if (ts_area_events_look(area->events, TS_EVENTS_LOOK_BYTES, &counts, NULL))
		return;
	now = ts_clock_monotonic_ns();
	if (!area->looked_ns) {
		area->counts = counts;
		area->looked_ns = now;
	}
	area->loses = counts.lost > area->counts.lost;
	if (now - area->looked_ns < (isnan(area->per_second) ? FIRST_NS : delay_ns) / 2)
		return;
	area->per_second = (double)(counts.stored - area->counts.stored) * 1e9 /
			   (double)(now - area->looked_ns);
	area->estimated = counts.estimated || area->counts.estimated;
	area->counts = counts;
	area->looked_ns = now;
}

static void add_up(double *sum, double value)
{
	if (!isnan(value))
		*sum = isnan(*sum) ? value : *sum + value;
}

/* A process has its own area, and one per explicit tracer. */
static void add_to_process(struct ts_top_process *process, const struct ts_top_area *area)
{
	if (area->looked_ns) {
		add_up(&process->events, (double)area->counts.stored);
		add_up(&process->lost, (double)area->counts.lost);
	}
	add_up(&process->events_per_s, area->per_second);
	process->estimated |= area->estimated;
	process->loses |= area->loses;
	if (process->recorded == TS_TOP_RECORDED)
		return;
	process->recorded = area->recorded;
	process->recorder = area->recorder;
	process->window_closed = area->window_closed;
}

static void clear_sums(struct ts_top *top)
{
	for (size_t i = 0; i < top->process_count; i++) {
		struct ts_top_process *process = &top->processes[i];

		process->recorded = TS_TOP_NO_AGENT;
		process->recorder = 0;
		process->window_closed = process->estimated = process->loses = false;
		process->events = process->events_per_s = process->lost = NAN;
	}
}

void ts_top_read_areas(struct ts_top *top)
{
	size_t kept = 0;

	clear_sums(top);
	for (size_t i = 0; i < top->area_count; i++) {
		struct ts_top_area area = top->areas[i];
		struct ts_top_process *process = ts_top_find_process(top, area.pid);

		if (!area.seen || !process) {
			ts_area_events_close(area.events);
			continue;
		}
		look_into(&area, top->delay_ns);
		add_to_process(process, &area);
		top->areas[kept++] = area;
	}
	top->area_count = kept;
}
