/* SPDX-License-Identifier: Apache-2.0 */
/* Processes by their files in /proc. A process may disappear at any time, which is not an error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/io.h"
#include "base/local/rank.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/process_internal.h"

/* Limit of /proc/PID/environ; a rank beyond it is not found. */
#define ENVIRONMENT_BYTES ((size_t)256 << 10)

/* ---- files ---- */

int ts_proc_open(pid_t pid, const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, flags | O_CLOEXEC);
}

size_t ts_proc_read(pid_t pid, const char *name, char *buffer, size_t bytes)
{
	TS_AUTO_FD int fd = ts_proc_open(pid, name, O_RDONLY);
	size_t length = 0;

	while (fd >= 0 && length + 1 < bytes) {
		ssize_t got = ts_read_some(fd, buffer + length, bytes - 1 - length);

		if (got <= 0)
			break;
		length += (size_t)got;
	}
	if (bytes)
		buffer[length] = '\0';
	return length;
}

/* A field of /proc/PID/stat. The name may contain anything, so fields count from the last ')'. */
static const char *stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : NULL;
}

bool ts_proc_stat(pid_t pid, struct ts_proc_stat *ret_stat)
{
	char text[1024];
	const char *start_time, *stack;

	if (ts_proc_read(pid, "stat", text, sizeof(text)) == 0)
		return false;
	start_time = stat_field(text, 22);
	stack = stat_field(text, 28);
	if (!start_time || !stack)
		return false;
	ret_stat->state = *stat_field(text, 3);
	ret_stat->parent = (pid_t)strtol(stat_field(text, 4), NULL, 10);
	ret_stat->threads = (uint32_t)strtoul(stat_field(text, 20), NULL, 10);
	ret_stat->start_time = strtoull(start_time, NULL, 10);
	ret_stat->stack = strtoull(stack, NULL, 10);
	return true;
}

const char *ts_proc_status_line(const char *status, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return line + length + 1;
	}
	return NULL;
}

void ts_proc_list(bool (*found)(void *context, pid_t pid), void *context)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	bool go_on = directory != NULL;

	while (go_on && (entry = readdir(directory))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && pid <= INT32_MAX && !*end)
			go_on = found(context, (pid_t)pid);
	}
	if (directory)
		closedir(directory);
}

/* ---- who it is ---- */

bool ts_process_exists(pid_t pid, uint64_t *ret_start_time)
{
	struct ts_proc_stat stat;

	if (pid <= 0 || !ts_proc_stat(pid, &stat))
		return false;
	/* A thread group leader that has exited is a zombie too while its other threads run. */
	if (stat.state == 'X' || stat.state == 'x' || (stat.state == 'Z' && stat.threads <= 1))
		return false;
	if (ret_start_time)
		*ret_start_time = stat.start_time;
	return true;
}

uint64_t ts_process_start_time(pid_t pid)
{
	uint64_t start_time = 0;

	ts_process_exists(pid, &start_time);
	return start_time;
}

uint64_t ts_process_any_start_time(pid_t pid)
{
	struct ts_proc_stat stat;

	return pid > 0 && ts_proc_stat(pid, &stat) ? stat.start_time : 0;
}

bool ts_process_lives(pid_t pid, uint64_t start_time)
{
	uint64_t now;

	return ts_process_exists(pid, &now) && now == start_time;
}

bool ts_process_is_stopped(pid_t pid)
{
	struct ts_proc_stat stat;

	return pid > 0 && ts_proc_stat(pid, &stat) && (stat.state == 'T' || stat.state == 't');
}

uint64_t ts_process_stack(pid_t pid)
{
	struct ts_proc_stat stat;

	return pid > 0 && ts_proc_stat(pid, &stat) ? stat.stack : 0;
}

pid_t ts_process_parent(pid_t pid)
{
	struct ts_proc_stat stat;

	return pid > 0 && ts_proc_stat(pid, &stat) ? stat.parent : 0;
}

uint64_t ts_process_namespace(pid_t pid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

pid_t ts_process_inner_pid(pid_t pid)
{
	char status[8192];
	const char *line;
	pid_t inner = pid;

	if (ts_proc_read(pid, "status", status, sizeof(status)) == 0)
		return 0;
	line = ts_proc_status_line(status, "NSpid");
	/* One number per namespace, ours first; kernels without namespaces print one. */
	while (line && *line != '\n') {
		char *end;
		long value = strtol(line, &end, 10);

		if (end == line)
			break;
		inner = (pid_t)value;
		line = end;
	}
	return inner;
}

/* Parses lines of "inside outside count". */
uid_t ts_process_inner_uid(pid_t pid, uid_t uid)
{
	char map[4096], *at = map;

	if (ts_proc_read(pid, "uid_map", map, sizeof(map)) == 0)
		return uid;
	while (*at) {
		unsigned long inside = strtoul(at, &at, 10), outside = strtoul(at, &at, 10);
		unsigned long count = strtoul(at, &at, 10);

		if (uid >= outside && uid - outside < count)
			return (uid_t)(inside + (uid - outside));
		if (*at != '\n')
			break;
		at++;
	}
	return uid;
}

bool ts_process_user(pid_t pid, uid_t *ret_uid)
{
	struct stat status;
	char path[32];

	/* Unlike the files in it, the directory is the user's even if the process is not dumpable.
	 */
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (pid <= 0 || stat(path, &status))
		return false;
	*ret_uid = status.st_uid;
	return true;
}

bool ts_process_is_of(pid_t pid, uid_t uid)
{
	uid_t user;

	return ts_process_user(pid, &user) &&
	       (user == uid || uid == 0 || ts_process_inner_uid(pid, uid) == 0);
}

void ts_process_name(pid_t pid, char *buffer, size_t bytes)
{
	size_t length = ts_proc_read(pid, "comm", buffer, bytes);

	if (length && buffer[length - 1] == '\n')
		buffer[length - 1] = '\0';
}

size_t ts_process_command(pid_t pid, char *buffer, size_t bytes)
{
	return ts_proc_read(pid, "cmdline", buffer, bytes);
}

bool ts_process_rank(pid_t pid, struct ts_rank *ret_rank)
{
	TS_AUTO_FREE char *environment = malloc(ENVIRONMENT_BYTES);
	size_t bytes = environment ? ts_proc_read(pid, "environ", environment, ENVIRONMENT_BYTES)
				   : 0;

	return ts_rank_of_environment(ret_rank, environment, bytes);
}

/* ---- what it has mapped ---- */

/* Some file systems show other device numbers in maps than in stat(): then compare the path. */
static bool is_same_file(pid_t pid, const char *path, dev_t device, ino_t inode)
{
	char rooted_path[4096 + 32];
	struct stat status;

	if (path[0] != '/')
		return false;
	snprintf(rooted_path, sizeof(rooted_path), "/proc/%d/root%s", (int)pid, path);
	return stat(rooted_path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

/* "from-to rights offset major:minor inode   path" */
static bool is_line_of(pid_t pid, char *line, dev_t device, ino_t inode)
{
	char *at = line;
	unsigned long major_number, minor_number;

	for (int field = 0; at && field < 3; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	major_number = strtoul(at, &at, 16);
	if (*at != ':')
		return false;
	minor_number = strtoul(at + 1, &at, 16);
	if (strtoull(at, &at, 10) != (unsigned long long)inode)
		return false;
	if (makedev(major_number, minor_number) == device)
		return true;
	at += strspn(at, " ");
	at[strcspn(at, "\n")] = '\0';
	return is_same_file(pid, at, device, inode);
}

bool ts_process_maps(pid_t pid, dev_t device, ino_t inode)
{
	int fd = ts_proc_open(pid, "maps", O_RDONLY);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[4096 + 256];
	bool is_found = false;

	if (!file && fd >= 0)
		close(fd);
	while (file && !is_found && fgets(line, sizeof(line), file))
		is_found = is_line_of(pid, line, device, inode);
	if (file)
		fclose(file);
	return is_found;
}
