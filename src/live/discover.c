/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the areas of a live directory, and finds out whether each one's process is alive: by pid
 * and start time, across pid namespaces.
 */
#include "live/discover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/process_internal.h"
#include "live/area_internal.h"

#define MAX_AREAS 65536u
/* Maximum number of areas of one process (images, explicit tracers) that are compared. */
#define MAX_COMPARED 256u
#define UNFINISHED ".new"
/* Inode of the initial pid namespace, in which all processes are visible. */
#define FIRST_NAMESPACE 0xeffffffcu

/* ---- names ---- */

/* A parsed file name. Sorting puts areas of one process next to each other. */
struct named {
	char name[AREA_NAME_BYTES];
	uint64_t start_time;
	pid_t pid;
	bool unfinished;
};

/* Parses "<pid>-<starttime>-<16 hex digits>", optionally with ".new". */
static bool parse_name(const char *name, struct named *ret_named)
{
	char *at;
	unsigned long long pid = strtoull(name, &at, 10), start;
	size_t digits;

	if (name[0] < '0' || name[0] > '9' || *at != '-' || pid == 0 || pid > INT32_MAX)
		return false;
	if (at[1] < '0' || at[1] > '9')
		return false;
	start = strtoull(at + 1, &at, 10);
	if (*at != '-' || strlen(name) >= sizeof(ret_named->name))
		return false;
	digits = strspn(at + 1, "0123456789abcdef");
	at += 1 + digits;
	if (digits != 16 || (*at && strcmp(at, UNFINISHED) != 0))
		return false;
	*ret_named = (struct named){
		.start_time = start,
		.pid = (pid_t)pid,
		.unfinished = *at != '\0',
	};
	memcpy(ret_named->name, name, strlen(name) + 1);
	return true;
}

static int compare_names(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_time != y->start_time)
		return x->start_time < y->start_time ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Reads all names of a directory, sorted. Caller frees. */
static int read_names(int directory_fd, struct named **ret_names, size_t *ret_count,
		      struct ts_error *err)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct named *names = NULL, named;
	size_t count = 0, capacity = 0;
	const struct dirent *entry;
	int result = TS_OK;

	if (!directory) {
		result = ts_error_errno(err, errno, "cannot list the live directory");
		if (fd >= 0)
			close(fd);
		return result;
	}
	while (!result && count < MAX_AREAS && (entry = readdir(directory))) {
		if (!parse_name(entry->d_name, &named))
			continue;
		result = ts_grow_array((void **)&names, &capacity, count + 1, sizeof(*names));
		if (!result)
			names[count++] = named;
	}
	closedir(directory);
	if (result) {
		free(names);
		return ts_error_set(err, result, "cannot list the live directory: no memory");
	}
	if (count)
		qsort(names, count, sizeof(*names), compare_names);
	*ret_names = names;
	*ret_count = count;
	return TS_OK;
}

/* ---- processes of other namespaces ---- */

/* (inner pid, start time) -> outer pid, for all processes that have two pids. */
struct outsiders {
	struct ts_pairmap pids;
	bool is_loaded;
};

static bool note_outsider(void *context, pid_t pid)
{
	struct outsiders *outsiders = context;
	pid_t inner = ts_process_inner_pid(pid);
	uint64_t start_time;

	if (inner <= 0 || inner == pid)
		return true;
	start_time = ts_process_start_time(pid);
	return !start_time ||
	       !ts_pairmap_put(&outsiders->pids, (uint64_t)inner, start_time, (uint64_t)pid);
}

/* Finds a process of another namespace; 0: not visible. */
static pid_t find_outsider(struct outsiders *outsiders, const struct ts_live_control *control)
{
	uint64_t pid, namespace_id;

	if (!outsiders->is_loaded)
		ts_proc_list(note_outsider, outsiders);
	outsiders->is_loaded = true;
	if (!ts_pairmap_get(&outsiders->pids, control->pid, control->start_time, &pid))
		return 0;
	/* If the namespace cannot be read, pid and start time must suffice. */
	namespace_id = ts_process_namespace((pid_t)pid);
	if (control->pid_namespace && namespace_id && namespace_id != control->pid_namespace)
		return 0;
	return (pid_t)pid;
}

/* ---- one area ---- */

struct listing {
	int directory_fd;
	pid_t namespace_pid;
	uint64_t our_namespace;
	uint8_t boot_id[16];
	struct outsiders outsiders;
	void (*found)(void *context, const struct ts_area_info *info);
	void (*refused)(void *context, const char *name, const char *why);
	void *context;
};

static bool is_of_other_boot(const struct listing *listing, const struct ts_live_control *control)
{
	static const uint8_t none[16];

	return memcmp(control->boot_id, none, 16) != 0 && memcmp(listing->boot_id, none, 16) != 0 &&
	       memcmp(control->boot_id, listing->boot_id, 16) != 0;
}

static void find_process(struct listing *listing, struct ts_area_info *info)
{
	const struct ts_live_control *control = &info->control;
	pid_t pid = (pid_t)control->pid;

	if (is_of_other_boot(listing, control))
		return;
	if (control->pid_namespace == 0 || control->pid_namespace == listing->our_namespace) {
		info->alive = ts_process_lives(pid, control->start_time);
		info->pid = info->alive ? pid : 0;
		if (info->alive || control->pid_namespace)
			return;
	}
	info->pid = find_outsider(&listing->outsiders, control);
	info->alive = info->pid != 0;
	info->unknown = !info->alive && listing->our_namespace != FIRST_NAMESPACE &&
			!(listing->namespace_pid &&
			  ts_process_namespace(listing->namespace_pid) == control->pid_namespace);
}

/* An unfinished area is known only by its name. */
static void describe_unfinished(const struct named *named, int fd, struct ts_area_info *info)
{
	struct ts_live_control control;
	bool is_complete = live_read(fd, &control, sizeof(control), 0) ==
				   (ssize_t)sizeof(control) &&
			   memcmp(control.magic, TS_LIVE_MAGIC, sizeof(control.magic)) == 0;

	info->unfinished = true;
	info->control.pid = (uint32_t)named->pid;
	info->control.start_time = named->start_time;
	info->control.pid_namespace = is_complete ? control.pid_namespace : 0;
	info->control.area_id = is_complete ? control.area_id : 0;
}

/* 0, or the reason why it is not an area. */
static int describe(struct listing *listing, const struct named *named, struct ts_area_info *info,
		    struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;
	int result = TS_OK;

	memset(info, 0, sizeof(*info));
	memcpy(info->name, named->name, sizeof(info->name));
	if (named->unfinished) {
		fd = openat(listing->directory_fd, named->name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	} else {
		result = live_read_control(listing->directory_fd, named->name, O_RDONLY, &fd,
					   &info->control, err);
	}
	if (result || fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
		return result ? result : TS_ENOTFOUND;
	if (named->unfinished)
		describe_unfinished(named, fd, info);
	if (info->control.pid != (uint32_t)named->pid ||
	    info->control.start_time != named->start_time)
		return TS_EFORMAT;
	info->modified_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	info->file_bytes = (uint64_t)status.st_size;
	find_process(listing, info);
	return TS_OK;
}

/* ---- areas of one process ---- */

static bool is_later(const struct ts_live_control *a, const struct ts_live_control *b)
{
	return a->created.monotonic_ns > b->created.monotonic_ns;
}

/* Finds the newest control block of several areas with one pid and start time. */
static bool find_newest(struct listing *listing, const struct named *names, size_t count,
			uint64_t pid_namespace, struct ts_live_control *ret_newest)
{
	bool is_found = false;

	for (size_t i = 0; i < count; i++) {
		struct ts_live_control control;
		int fd;

		if (names[i].unfinished || live_read_control(listing->directory_fd, names[i].name,
							     O_RDONLY, &fd, &control, NULL))
			continue;
		close(fd);
		if (control.pid_namespace == pid_namespace &&
		    (!is_found || is_later(&control, ret_newest))) {
			*ret_newest = control;
			is_found = true;
		}
	}
	return is_found;
}

/* exec keeps pid and start time: areas of an earlier image have ended. */
static bool is_superseded(const struct ts_area_info *info, const struct ts_live_control *newest)
{
	return newest->image != info->control.image && is_later(newest, &info->control);
}

static void list_process(struct listing *listing, const struct named *names, size_t count)
{
	struct ts_live_control newest = { .version = 0 };
	bool has_newest = false;

	for (size_t i = 0; i < count; i++) {
		struct ts_area_info info;
		struct ts_error err;
		int result = describe(listing, &names[i], &info, &err);

		if (result == TS_EVERSION && listing->refused)
			listing->refused(listing->context, names[i].name, err.message);
		if (result)
			continue;
		/* Reread only for another namespace. */
		if (count > 1 && !info.unfinished &&
		    (!has_newest || newest.pid_namespace != info.control.pid_namespace))
			has_newest = find_newest(listing, names, TS_MIN(count, MAX_COMPARED),
						 info.control.pid_namespace, &newest);
		info.superseded = has_newest && !info.unfinished && is_superseded(&info, &newest);
		listing->found(listing->context, &info);
	}
}

/* ---- listing ---- */

static void read_boot_id(uint8_t boot_id[16])
{
	TS_AUTO_FD int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t bytes = fd >= 0 ? live_read(fd, text, sizeof(text), 0) : 0;
	unsigned int digits = 0;

	memset(boot_id, 0, 16);
	for (ssize_t i = 0; i < bytes && digits < 32; i++) {
		static const char hex[] = "0123456789abcdef";
		const char *digit = text[i] ? strchr(hex, text[i]) : NULL;

		if (!digit)
			continue;
		boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | (digit - hex));
		digits++;
	}
}

int ts_areas_list(int directory_fd, pid_t namespace_pid,
		  void (*found)(void *context, const struct ts_area_info *info),
		  void (*refused)(void *context, const char *name, const char *why), void *context,
		  struct ts_error *err)
{
	struct listing listing = {
		.directory_fd = directory_fd,
		.namespace_pid = namespace_pid,
		.our_namespace = ts_process_namespace(getpid()),
		.found = found,
		.refused = refused,
		.context = context,
	};
	TS_AUTO_FREE struct named *names = NULL;
	size_t count = 0, end;
	int result = read_names(directory_fd, &names, &count, err);

	if (result)
		return result;
	read_boot_id(listing.boot_id);
	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && names[end].pid == names[i].pid &&
				  names[end].start_time == names[i].start_time;
		     end++)
			;
		list_process(&listing, names + i, end - i);
	}
	ts_pairmap_release(&listing.outsiders.pids);
	return TS_OK;
}

int ts_area_remove(int directory_fd, const char *name, uint64_t area_id)
{
	struct ts_live_control control;
	int fd, result = live_read_control(directory_fd, name, O_RDONLY, &fd, &control, NULL);

	if (result)
		return result;
	close(fd);
	if (control.area_id != area_id)
		return TS_ENOTFOUND;
	return unlinkat(directory_fd, name, 0) == 0 ? TS_OK : ts_error_errno(NULL, errno, "%s", "");
}
