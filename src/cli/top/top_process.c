/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes `top` lists, and their details from /proc besides metrics. Any may exit at any
 * time. Names and commands are untrusted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/process.h"
#include "base/procfs_parse.h"
#include "cli/top/top.h"

/* A command line changes only by exec, or if a program sets its title. */
#define COMMAND_NS INT64_C(5000000000)

/* ---- /proc/PID/stat ---- */

struct stat_line {
	char name[64];
	struct ts_procfs_stat numbers;
};

#define KERNEL_THREAD 0x00200000u

static bool parse_stat(const char *text, struct stat_line *ret_stat)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');

	/* The name may contain anything, so parse after the last parenthesis. */
	if (!open || !close || close < open)
		return false;
	snprintf(ret_stat->name, sizeof(ret_stat->name), "%.*s", (int)(close - open - 1), open + 1);
	return ts_procfs_stat_parse(text, &ret_stat->numbers);
}

/* False: it has exited. A zombie too, unless other threads of it run. */
static bool read_stat(pid_t pid, struct stat_line *ret_stat, uid_t *ret_uid)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;
	char path[32], text[1024];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = ts_io_open(path, O_RDONLY, 0);
	if (fd < 0 || fstat(fd, &status))
		return false;
	got = ts_read_some(fd, text, sizeof(text) - 1);
	if (got <= 0)
		return false;
	text[got] = '\0';
	*ret_uid = status.st_uid;
	return parse_stat(text, ret_stat) && !ts_procfs_stat_has_exited(&ret_stat->numbers);
}

/* ---- the list ---- */

/* The index of the pid, or where it belongs. */
static size_t position_of(const struct ts_top *top, pid_t pid)
{
	size_t low = 0, high = top->process_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (top->processes[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct ts_top_process *ts_top_find_process(const struct ts_top *top, pid_t pid)
{
	size_t position = position_of(top, pid);

	if (position < top->process_count && top->processes[position].pid == pid)
		return &top->processes[position];
	return NULL;
}

static struct ts_top_process *insert_process(struct ts_top *top, pid_t pid)
{
	size_t position = position_of(top, pid);
	struct ts_top_process *process;

	if (ts_grow_array((void **)&top->processes, &top->process_capacity, top->process_count + 1,
			  sizeof(*top->processes)))
		return NULL;
	process = &top->processes[position];
	memmove(process + 1, process, (top->process_count - position) * sizeof(*process));
	top->process_count++;
	return process;
}

static void name_user(const struct ts_top *top, struct ts_top_process *process)
{
	const struct passwd *entry;

	/* Looking up a name may use the network: once per user. */
	for (size_t i = 0; i < top->process_count; i++) {
		const struct ts_top_process *other = &top->processes[i];

		if (other != process && other->uid == process->uid && other->user[0]) {
			memcpy(process->user, other->user, sizeof(process->user));
			return;
		}
	}
	entry = getpwuid(process->uid);
	if (entry)
		snprintf(process->user, sizeof(process->user), "%s", entry->pw_name);
	else
		snprintf(process->user, sizeof(process->user), "%u", (unsigned int)process->uid);
}

static void read_command(struct ts_top_process *process, int64_t now)
{
	size_t length =
		ts_process_command(process->pid, process->command, sizeof(process->command));

	while (length && !process->command[length - 1])
		length--;
	for (size_t i = 0; i < length; i++) {
		if (!process->command[i])
			process->command[i] = ' ';
	}
	if (!length)
		snprintf(process->command, sizeof(process->command), "[%s]", process->name);
	process->command_ns = now;
}

static void clear_process(struct ts_top_process *process, pid_t pid, uint64_t start_time)
{
	*process = (struct ts_top_process){
		.pid = pid,
		.start_time = start_time,
		.cpu_time_s = NAN,
		.uid = (uid_t)-1,
	};
}

static void set_identity(struct ts_top *top, struct ts_top_process *process,
			 const struct stat_line *stat, uid_t uid)
{
	bool renamed = strcmp(process->name, stat->name) != 0;

	process->parent = (pid_t)stat->numbers.parent;
	process->state = stat->numbers.state;
	process->cpu_time_s = (double)(stat->numbers.user_ticks + stat->numbers.system_ticks) /
			      (double)sysconf(_SC_CLK_TCK);
	memcpy(process->name, stat->name, sizeof(process->name));
	if (uid != process->uid) {
		process->uid = uid;
		process->user[0] = '\0';
		name_user(top, process);
	}
	if (renamed || top->looked_ns - process->command_ns >= COMMAND_NS)
		read_command(process, top->looked_ns);
}

struct ts_top_process *ts_top_note_process(struct ts_top *top, pid_t pid, unsigned int why)
{
	struct ts_top_process *process = ts_top_find_process(top, pid);
	struct stat_line stat;
	uid_t uid;

	if (process && process->seen) {
		process->why |= why;
		return process;
	}
	if (!read_stat(pid, &stat, &uid))
		return NULL;
	if (!process) {
		process = insert_process(top, pid);
		if (!process)
			return NULL;
		clear_process(process, pid, stat.numbers.start_time);
	} else if (process->start_time != stat.numbers.start_time) {
		clear_process(process, pid, stat.numbers.start_time);
	}
	process->seen = true;
	process->why = why;
	process->devices.count = 0;
	process->user_bytes = NAN;
	set_identity(top, process, &stat, uid);
	return process;
}

void ts_top_sweep_processes(struct ts_top *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->process_count; i++) {
		if (top->processes[i].seen)
			top->processes[kept++] = top->processes[i];
	}
	top->process_count = kept;
}

/* ---- selection ---- */

static void note_descendant(void *context, pid_t pid, pid_t parent)
{
	(void)parent;
	ts_top_note_process(context, pid, TS_TOP_BY_PARENT);
}

/* Descendants of all marked processes; those of a descendant came with it. */
static int note_descendants(struct ts_top *top, struct ts_error *err)
{
	TS_AUTO_FREE pid_t *roots = ts_alloc_array(top->process_count, sizeof(*roots));
	size_t count = 0;

	if (!roots)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < top->process_count; i++) {
		if (top->processes[i].seen)
			roots[count++] = top->processes[i].pid;
	}
	for (size_t i = 0; i < count; i++) {
		const struct ts_top_process *process = ts_top_find_process(top, roots[i]);

		if (process && !(process->why & TS_TOP_BY_PARENT))
			ts_process_descendants(roots[i], note_descendant, top);
	}
	return TS_OK;
}

static bool is_ours(const struct dirent *entry, int directory)
{
	struct stat status;

	return geteuid() == 0 ||
	       (!fstatat(directory, entry->d_name, &status, 0) && status.st_uid == geteuid());
}

static bool is_kernel_thread(pid_t pid)
{
	struct stat_line stat;
	uid_t uid;

	return !read_stat(pid, &stat, &uid) || (stat.numbers.flags & KERNEL_THREAD);
}

/* All our processes; for root everybody's. */
static void note_all(struct ts_top *top)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int64_t pid;

		if (ts_parse_int64(entry->d_name, strlen(entry->d_name), &pid) || pid <= 0 ||
		    pid > INT32_MAX || !is_ours(entry, dirfd(directory)))
			continue;
		/* Whether it is a kernel thread is checked once. */
		if (ts_top_find_process(top, (pid_t)pid) || !is_kernel_thread((pid_t)pid))
			ts_top_note_process(top, (pid_t)pid, 0);
	}
	if (directory)
		closedir(directory);
}

static void add_user(struct ts_top *top, const struct ts_device_user *user)
{
	/* Programs that only draw are not targets. */
	bool counts = !top->requested_count && user->evidence != TS_DEVICE_USER_BY_RENDER;
	struct ts_top_process *process =
		counts ? ts_top_note_process(top, user->pid, TS_TOP_BY_DEVICE)
		       : ts_top_find_process(top, user->pid);

	if (!process || !process->seen ||
	    (user->start_time && user->start_time != process->start_time))
		return;
	top->uses_accelerators = true;
	process->why |= TS_TOP_BY_DEVICE;
	ts_top_device_list_add(&process->devices, user->vendor, user->device);
	if (user->memory_bytes == TS_METRICS_UNKNOWN)
		return;
	if (isnan(process->user_bytes))
		process->user_bytes = 0;
	process->user_bytes += (double)user->memory_bytes;
}

static int note_users(struct ts_top *top, struct ts_error *err)
{
	TS_AUTO_FREE struct ts_device_user *users = NULL;
	size_t count = 0;

	if (!top->users)
		return TS_OK;
	if (ts_top_users_copy(top->users, &users, &count, top->note))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < count; i++)
		add_user(top, &users[i]);
	return TS_OK;
}

int ts_top_find_targets(struct ts_top *top, struct ts_error *err)
{
	int rc = TS_OK;

	for (size_t i = 0; i < top->requested_count; i++)
		ts_top_note_process(top, top->requested[i], TS_TOP_BY_NAME);
	if (!top->requested_count)
		rc = ts_top_find_areas(top, err);
	if (!rc && !top->requested_count)
		rc = note_users(top, err);
	if (!rc && top->all && !top->requested_count)
		note_all(top);
	else if (!rc)
		rc = note_descendants(top, err);
	if (!rc && top->requested_count)
		rc = ts_top_find_areas(top, err);
	if (!rc && top->requested_count)
		rc = note_users(top, err);
	return rc;
}
