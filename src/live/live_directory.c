/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locates the live directory, of a user or inside a container, and checks whether it is safe to
 * use. Knows nothing about its content.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/process_internal.h"
#include "base/text.h"
#include "live/discover.h"

#define VARIABLE "TRACESMITH_LIVE_DIR"
#define FOLDER "/dev/shm"
#define PREFIX "tracesmith-"
#define MAX_ENVIRONMENT_BYTES (1u << 20)

/* ---- the path ---- */

static int put_path(const char *given, uid_t uid, char *buffer, size_t bytes)
{
	int length;

	if (given && given[0])
		length = snprintf(buffer, bytes, "%s", given);
	else
		length = snprintf(buffer, bytes, FOLDER "/" PREFIX "%u", (unsigned int)uid);
	return length >= 0 && (size_t)length < bytes ? TS_OK : TS_EINVAL;
}

int ts_live_directory_path(uid_t uid, char *buffer, size_t bytes)
{
	return put_path(getenv(VARIABLE), uid, buffer, bytes);
}

/* The user whom a name in FOLDER is about. */
static bool is_of_user(const char *name, uid_t *ret_user)
{
	int64_t user;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
	    ts_parse_int64(name + strlen(PREFIX), strlen(name + strlen(PREFIX)), &user) ||
	    user < 0 || user > UINT32_MAX)
		return false;
	*ret_user = (uid_t)user;
	return true;
}

void ts_live_directory_users(void (*each)(void *context, uid_t user), void *context)
{
	const char *given = getenv(VARIABLE);
	const struct dirent *entry;
	DIR *folder;
	uid_t user;

	each(context, geteuid());
	folder = geteuid() == 0 && !(given && given[0]) ? opendir(FOLDER) : NULL;
	while (folder && (entry = readdir(folder)))
		if (is_of_user(entry->d_name, &user) && user != geteuid())
			each(context, user);
	if (folder)
		closedir(folder);
}

/* The path as the process sees it, from its initial environment. */
static int path_of_process(pid_t pid, uid_t uid, char *buffer, size_t bytes)
{
	TS_AUTO_FREE char *environment = malloc(MAX_ENVIRONMENT_BYTES);
	const char *given = NULL;
	size_t length;

	if (!environment)
		return TS_ENOMEM;
	length = ts_proc_read(pid, "environ", environment, MAX_ENVIRONMENT_BYTES);
	for (size_t at = 0; at < length && !given; at += strlen(environment + at) + 1) {
		if (strncmp(environment + at, VARIABLE "=", sizeof(VARIABLE)) == 0)
			given = environment + at + sizeof(VARIABLE);
	}
	return put_path(given, ts_process_inner_uid(pid, uid), buffer, bytes);
}

/* ---- opening ---- */

/* Opens one path component: down without following a link, or up. */
static int open_part(int fd, const char *part, size_t length)
{
	char name[256];

	if (length >= sizeof(name) || (length == 2 && memcmp(part, "..", 2) == 0)) {
		errno = ENOTDIR;
		return -1;
	}
	memcpy(name, part, length);
	name[length] = '\0';
	return openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Follows no link below a process's root: an absolute link would lead out of it. */
static int open_below(pid_t pid, const char *path)
{
	TS_AUTO_FD int fd = ts_proc_open(pid, "root", O_PATH | O_DIRECTORY);

	while (fd >= 0 && *path) {
		size_t length = strcspn(path, "/");

		if (length) {
			int next = open_part(fd, path, length);

			close(fd);
			fd = next;
		}
		path += length + (path[length] == '/');
	}
	return fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_same_file(const char *path, const char *other)
{
	struct stat status, other_status;

	return stat(path, &status) == 0 && stat(other, &other_status) == 0 &&
	       status.st_dev == other_status.st_dev && status.st_ino == other_status.st_ino;
}

/* True if the process sees the same files as we do, so that its paths are valid here. */
static bool shares_files(pid_t pid)
{
	char mounts[64], root[64];

	snprintf(mounts, sizeof(mounts), "/proc/%d/ns/mnt", (int)pid);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	return is_same_file(mounts, "/proc/self/ns/mnt") && is_same_file(root, "/");
}

uint64_t ts_live_directory_namespace(pid_t root_pid)
{
	return root_pid && !shares_files(root_pid) ? ts_process_namespace(root_pid) : 0;
}

static int check_directory(int fd, const char *path, uid_t uid, struct ts_error *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return ts_error_errno(err, errno, "live directory '%s'", path);
	if (status.st_uid != uid)
		return ts_error_set(err, TS_EFORMAT,
				    "live directory '%s': it belongs to user %u, not to user %u",
				    path, (unsigned int)status.st_uid, (unsigned int)uid);
	if (status.st_mode & 077)
		return ts_error_set(
			err, TS_EFORMAT,
			"live directory '%s': it is accessible to other users (run chmod 700 on it)",
			path);
	return TS_OK;
}

static int explain_open(const char *path, pid_t root_pid, struct ts_error *err)
{
	if (root_pid && (errno == EACCES || errno == EPERM))
		return ts_error_set(
			err, TS_EIO,
			"the files of process %d are not accessible: run as its user or root; in a container, with --cap-add SYS_PTRACE",
			(int)root_pid);
	if (errno == ELOOP || errno == ENOTDIR)
		return ts_error_set(err, TS_EFORMAT, "live directory '%s': not a directory", path);
	if (errno == ENOENT || errno == ESRCH)
		return ts_error_set(err, TS_ENOTFOUND, "there is no live directory '%s'", path);
	return ts_error_errno(err, errno, "cannot open live directory '%s'", path);
}

int ts_live_directory_open(uid_t uid, pid_t root_pid, int *ret_fd, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	char path[4096];
	int result;

	if (root_pid)
		result = path_of_process(root_pid, uid, path, sizeof(path));
	else
		result = ts_live_directory_path(uid, path, sizeof(path));
	if (result)
		return ts_error_set(err, result, "%s is too long for a path", VARIABLE);
	if (root_pid && !shares_files(root_pid))
		fd = open_below(root_pid, path);
	else
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return explain_open(path, root_pid, err);
	result = check_directory(fd, path, uid, err);
	if (result)
		return result;
	*ret_fd = fd;
	fd = -1;
	return TS_OK;
}

bool ts_live_directory_has_space(int directory_fd)
{
	struct statvfs status;

	/* A file system without a size limit reports 0 blocks. */
	return fstatvfs(directory_fd, &status) || !status.f_blocks ||
	       (uint64_t)status.f_bavail * status.f_frsize / TS_LIVE_BUDGET_SHARE >=
		       TS_LIVE_AREA_LEAST;
}
