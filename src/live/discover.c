/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the areas of a live directory, and finds out whether each one's process is alive: by pid
 * and start time, across pid namespaces. An area is what its owner says: it may not name a process
 * of somebody else.
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

#include "base/clock.h"
#include "base/memory.h"
#include "base/process_internal.h"
#include "live/area_internal.h"
#include "live/spool_file.h"

#define MAX_AREAS 65536u
/* Maximum number of areas of one process (images, explicit tracers) that are compared. */
#define MAX_COMPARED 256u
#define UNFINISHED ".new"
/* An area made so much later than now was made up. */
#define FUTURE_NS INT64_C(1000000000)
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

/* ---- one area ---- */

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

/* Describes the file, not its process. 0, or the reason why it is not an area. */
static int describe(int directory_fd, const struct named *named, struct ts_area_info *info,
		    struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;
	int result = TS_OK;

	memset(info, 0, sizeof(*info));
	memcpy(info->name, named->name, sizeof(info->name));
	if (named->unfinished) {
		fd = openat(directory_fd, named->name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	} else {
		result = live_read_control(directory_fd, named->name, O_RDONLY, &fd, &info->control,
					   err);
	}
	if (result || fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
		return result ? result : TS_ENOTFOUND;
	if (named->unfinished)
		describe_unfinished(named, fd, info);
	if (info->control.pid != (uint32_t)named->pid ||
	    info->control.start_time != named->start_time)
		return TS_EFORMAT;
	info->owner = status.st_uid;
	info->device = status.st_dev;
	info->inode = status.st_ino;
	info->modified_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	info->file_bytes = (uint64_t)status.st_size;
	return TS_OK;
}

/* ---- its process ---- */

/* A process that has another pid in a namespace of its own. */
struct outsider {
	pid_t inner, pid;
	uint64_t start_time;
};

struct listing {
	int directory_fd;
	uint64_t pid_namespace; /* of the directory; 0: any */
	uint64_t our_namespace;
	uint8_t boot_id[16];
	struct outsider *outsiders;
	size_t outsider_count, outsider_capacity;
	bool has_outsiders; /* they are loaded */
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

/* Clocks of another boot are not comparable. */
static bool is_from_future(const struct listing *listing, const struct ts_live_control *control)
{
	return control->created.monotonic_ns > ts_clock_monotonic_ns() + FUTURE_NS &&
	       !is_of_other_boot(listing, control);
}

/* True if this is the live directory of the process, by its environment and root. */
static bool uses_directory(const struct listing *listing, pid_t pid, uid_t owner)
{
	TS_AUTO_FD int fd = -1;
	struct stat ours, its;

	return !ts_live_directory_open(owner, pid, &fd, NULL) && !fstat(fd, &its) &&
	       !fstat(listing->directory_fd, &ours) && its.st_dev == ours.st_dev &&
	       its.st_ino == ours.st_ino;
}

/*
 * True if the area may name the process: it is of the area's owner, and a directory of another pid
 * namespace names only processes that can have written it.
 */
static bool may_name(const struct listing *listing, const struct ts_area_info *info, pid_t pid)
{
	return ts_process_is_of(pid, info->owner) &&
	       (!listing->pid_namespace || listing->pid_namespace == ts_process_namespace(pid) ||
		uses_directory(listing, pid, info->owner));
}

static bool note_outsider(void *context, pid_t pid)
{
	struct listing *listing = context;
	struct outsider outsider = { .inner = ts_process_inner_pid(pid), .pid = pid };

	if (outsider.inner <= 0 || outsider.inner == pid)
		return true;
	if (!ts_process_exists(pid, &outsider.start_time))
		return true;
	if (ts_grow_array((void **)&listing->outsiders, &listing->outsider_capacity,
			  listing->outsider_count + 1, sizeof(outsider)))
		return false;
	listing->outsiders[listing->outsider_count++] = outsider;
	return true;
}

/* Finds a process of another namespace; 0: not visible. */
static pid_t find_outsider(struct listing *listing, const struct ts_area_info *info)
{
	const struct ts_live_control *control = &info->control;

	if (!listing->has_outsiders)
		ts_proc_list(note_outsider, listing);
	listing->has_outsiders = true;
	for (size_t i = 0; i < listing->outsider_count; i++) {
		const struct outsider *outsider = &listing->outsiders[i];
		uint64_t namespace_id;

		if (outsider->inner != (pid_t)control->pid ||
		    outsider->start_time != control->start_time)
			continue;
		/* If the namespace cannot be read, pid and start time must suffice. */
		namespace_id = ts_process_namespace(outsider->pid);
		if ((!control->pid_namespace || !namespace_id ||
		     namespace_id == control->pid_namespace) &&
		    may_name(listing, info, outsider->pid))
			return outsider->pid;
	}
	return 0;
}

/* False: it names a live process that is not its owner's. */
static bool find_process(struct listing *listing, struct ts_area_info *info)
{
	const struct ts_live_control *control = &info->control;
	pid_t pid = (pid_t)control->pid;
	bool is_foreign = false;

	if (is_of_other_boot(listing, control))
		return true;
	if (control->pid_namespace == 0 || control->pid_namespace == listing->our_namespace) {
		bool is_alive = ts_process_lives(pid, control->start_time);

		info->alive = is_alive && may_name(listing, info, pid);
		info->pid = info->alive ? pid : 0;
		is_foreign = is_alive && !info->alive;
		if (info->alive || control->pid_namespace)
			return !is_foreign;
	}
	info->pid = find_outsider(listing, info);
	info->alive = info->pid != 0;
	info->unknown =
		!info->alive && listing->our_namespace != FIRST_NAMESPACE &&
		!(listing->pid_namespace && listing->pid_namespace == control->pid_namespace);
	return info->alive || !is_foreign;
}

static void refuse(const struct listing *listing, const char *name, const char *why)
{
	if (listing->refused)
		listing->refused(listing->context, name, why);
}

static void refuse_foreign(const struct listing *listing, const struct ts_area_info *info)
{
	char why[128];

	snprintf(why, sizeof(why), "it names process %d, which does not belong to user %u",
		 (int)info->control.pid, (unsigned int)info->owner);
	refuse(listing, info->name, why);
}

int ts_area_look(int directory_fd, uint64_t pid_namespace, const char *name,
		 struct ts_area_info *ret_info, struct ts_error *err)
{
	const struct listing listing = { .directory_fd = directory_fd,
					 .pid_namespace = pid_namespace };
	uint64_t our_namespace = ts_process_namespace(getpid());
	struct named named;
	int result;

	if (!parse_name(name, &named) || named.unfinished)
		return ts_error_set(err, TS_EINVAL, "area '%s': not the name of a live area", name);
	result = describe(directory_fd, &named, ret_info, err);
	if (result)
		return result;
	if (!our_namespace || ret_info->control.pid_namespace != our_namespace ||
	    is_from_future(&listing, &ret_info->control) ||
	    !ts_process_lives(named.pid, named.start_time) ||
	    !may_name(&listing, ret_info, named.pid))
		return ts_error_set(err, TS_ENOTFOUND, "area '%s': its process is not alive", name);
	ret_info->pid = named.pid;
	ret_info->alive = true;
	return TS_OK;
}

pid_t ts_area_recorder(const struct ts_live_control *control, uid_t owner)
{
	pid_t pid = (pid_t)control->recorder_pid;
	uid_t user;

	if (control->recorder_pid > INT32_MAX || !ts_process_user(pid, &user) ||
	    (user != 0 && !ts_process_is_of(pid, owner)))
		return 0;
	return ts_process_lives(pid, control->recorder_start) ? pid : 0;
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
		if (control.pid_namespace == pid_namespace && !is_from_future(listing, &control) &&
		    (!is_found || is_later(&control, ret_newest))) {
			*ret_newest = control;
			is_found = true;
		}
	}
	return is_found;
}

/*
 * exec keeps pid and start time: areas of an earlier image have ended. The new image maps none of
 * them.
 */
static bool is_superseded(const struct ts_area_info *info, const struct ts_live_control *newest)
{
	return newest->image != info->control.image && is_later(newest, &info->control) &&
	       !(info->alive && ts_process_maps(info->pid, info->device, info->inode));
}

static void list_process(struct listing *listing, const struct named *names, size_t count)
{
	struct ts_live_control newest = { .version = 0 };
	bool has_newest = false;

	for (size_t i = 0; i < count; i++) {
		struct ts_area_info info;
		struct ts_error err;
		int result = describe(listing->directory_fd, &names[i], &info, &err);

		if (result == TS_EVERSION)
			refuse(listing, names[i].name, err.message);
		if (result)
			continue;
		if (is_from_future(listing, &info.control)) {
			refuse(listing, info.name, "it says that it was created in the future");
			continue;
		}
		if (!find_process(listing, &info)) {
			refuse_foreign(listing, &info);
			continue;
		}
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

int ts_areas_list(int directory_fd, uint64_t pid_namespace,
		  void (*found)(void *context, const struct ts_area_info *info),
		  void (*refused)(void *context, const char *name, const char *why), void *context,
		  struct ts_error *err)
{
	struct listing listing = {
		.directory_fd = directory_fd,
		.pid_namespace = pid_namespace,
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
	free(listing.outsiders);
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
	/* First, so that no spool is left without an area. */
	ts_spool_file_remove(directory_fd, name);
	return unlinkat(directory_fd, name, 0) == 0 ? TS_OK : ts_error_errno(NULL, errno, "%s", "");
}
