/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes live areas that nobody will read, since shared memory is limited. When in doubt, keeps an
 * area.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "live/area_internal.h"
#include "live/discover.h"
#include "live/spool_file.h"

/* A recorder whose process is not visible counts as alive for this long after its heartbeat. */
#define HEARTBEAT_NS INT64_C(10000000000)
/* Age at which an unfinished file counts as abandoned. */
#define UNFINISHED_NS INT64_C(60000000000)

/* A candidate for removal. */
struct waste {
	char name[AREA_NAME_BYTES];
	uint64_t area_id;
	int64_t modified_ns;
	bool is_unfinished;
	bool is_wanted; /* holds data that nobody drained */
};

struct cleaning {
	int directory_fd;
	pid_t pid; /* only of this process, as its area says; 0: of all */
	struct waste *waste;
	size_t count, capacity;
	bool has_failed;
};

static bool has_live_recorder(const struct ts_area_info *info)
{
	const struct ts_live_control *control = &info->control;
	int64_t beat = control->heartbeat, now = ts_clock_monotonic_ns();

	if (control->recorder_pid == 0)
		return false;
	if (ts_area_recorder(control, info->owner))
		return true;
	/* The recorder may be in another namespace. */
	return control->pid_namespace != ts_process_namespace(getpid()) && beat > 0 &&
	       now - beat < HEARTBEAT_NS;
}

static bool is_taken(const struct ts_live_ring *entry)
{
	if (entry->bytes == 0 || entry->head == 0)
		return true;
	return entry->consumed == entry->head &&
	       entry->consumed_check ==
		       ts_live_consumed_check(entry->consumed, entry->consumed_events,
					      entry->consumed_tid, entry->consumed_serial);
}

/* True if a recorder drained everything, or the area never had data. */
static bool is_all_taken(int directory_fd, const struct ts_area_info *info)
{
	TS_AUTO_FD int fd = -1;
	struct ts_live_ring entries[16];
	struct ts_live_control control;

	/*
	 * No recorder attached yet, or it was killed: one of its session may still come for the
	 * process's row, or for how it ended and what it lost.
	 */
	if (info->control.session && (!info->control.heartbeat || info->control.recorder_pid))
		return false;
	if (live_read_control(directory_fd, info->name, O_RDONLY, &fd, &control, NULL) ||
	    ts_spool_file_is_wanted(directory_fd, info->name))
		return false;
	for (uint32_t i = 0; i < control.rings; i += TS_ARRAY_SIZE(entries)) {
		uint32_t count = TS_MIN(control.rings - i, (uint32_t)TS_ARRAY_SIZE(entries));
		size_t bytes = count * sizeof(entries[0]);

		if (live_read(fd, entries, bytes,
			      TS_LIVE_DIRECTORY + (uint64_t)i * TS_LIVE_ENTRY_BYTES) !=
		    (ssize_t)bytes)
			return false;
		for (uint32_t k = 0; k < count; k++) {
			if (!is_taken(&entries[k]))
				return false;
		}
	}
	return true;
}

static bool is_given_up(const struct ts_area_info *info)
{
	bool is_old = ts_clock_realtime_ns() - info->modified_ns > UNFINISHED_NS;

	if (info->unfinished)
		return !info->alive && (!info->unknown || is_old);
	return (!info->alive || info->superseded) && !info->unknown && !has_live_recorder(info);
}

static void consider(void *context, const struct ts_area_info *info)
{
	struct cleaning *cleaning = context;
	struct waste *waste;

	if (!is_given_up(info) || (cleaning->pid && (pid_t)info->control.pid != cleaning->pid))
		return;
	if (ts_grow_array((void **)&cleaning->waste, &cleaning->capacity, cleaning->count + 1,
			  sizeof(*cleaning->waste))) {
		cleaning->has_failed = true;
		return;
	}
	waste = &cleaning->waste[cleaning->count++];
	*waste = (struct waste){
		.area_id = info->control.area_id,
		.modified_ns = info->modified_ns,
		.is_unfinished = info->unfinished,
		.is_wanted = !info->unfinished && !is_all_taken(cleaning->directory_fd, info),
	};
	memcpy(waste->name, info->name, sizeof(waste->name));
}

/* Wanted areas first, newest first. */
static int compare_waste(const void *a, const void *b)
{
	const struct waste *x = a, *y = b;

	if (x->is_wanted != y->is_wanted)
		return x->is_wanted ? -1 : 1;
	if (x->modified_ns != y->modified_ns)
		return x->modified_ns > y->modified_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool remove_waste(int directory_fd, const struct waste *waste)
{
	if (waste->is_unfinished)
		return unlinkat(directory_fd, waste->name, 0) == 0;
	return ts_area_remove(directory_fd, waste->name, waste->area_id) == 0;
}

/* True for the spool of an area that is gone. It may be about to be found out: give it a minute. */
static bool is_orphan(int directory_fd, const char *name)
{
	size_t length = strlen(name), ending = strlen(TS_SPOOL_ENDING);
	char area[AREA_NAME_BYTES];
	struct stat status;

	if (length <= ending || length - ending >= sizeof(area) ||
	    strcmp(name + length - ending, TS_SPOOL_ENDING) != 0)
		return false;
	memcpy(area, name, length - ending);
	area[length - ending] = '\0';
	area[strcspn(area, ".")] = '\0'; /* of a lane */
	return faccessat(directory_fd, area, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT &&
	       !fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(status.st_mode) &&
	       ts_clock_realtime_ns() - status.st_mtim.tv_sec * INT64_C(1000000000) > UNFINISHED_NS;
}

static void remove_orphans(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(directory)))
		if (is_orphan(directory_fd, entry->d_name))
			unlinkat(directory_fd, entry->d_name, 0);
	closedir(directory);
}

static int clean(int directory_fd, pid_t pid, unsigned int keep, unsigned int *ret_removed,
		 struct ts_error *err)
{
	struct cleaning cleaning = { .directory_fd = directory_fd, .pid = pid };
	unsigned int removed = 0;
	int result = ts_areas_list(directory_fd, 0, consider, NULL, &cleaning, err);

	if (!result && cleaning.has_failed)
		result = ts_error_set(err, TS_ENOMEM, "cannot clean the live directory: no memory");
	if (!result && cleaning.count)
		qsort(cleaning.waste, cleaning.count, sizeof(*cleaning.waste), compare_waste);
	for (size_t i = 0; !result && i < cleaning.count; i++) {
		const struct waste *waste = &cleaning.waste[i];

		if (!waste->is_wanted || i >= keep)
			removed += remove_waste(directory_fd, waste);
	}
	free(cleaning.waste);
	remove_orphans(directory_fd);
	if (!result && ret_removed)
		*ret_removed = removed;
	return result;
}

int ts_areas_clean(int directory_fd, unsigned int keep, unsigned int *ret_removed,
		   struct ts_error *err)
{
	return clean(directory_fd, 0, keep, ret_removed, err);
}

int ts_areas_clean_process(int directory_fd, pid_t pid, unsigned int *ret_removed,
			   struct ts_error *err)
{
	return clean(directory_fd, pid, 0, ret_removed, err);
}
