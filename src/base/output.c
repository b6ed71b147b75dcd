/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens output files. A file is first created exclusively, so that it is ours; only if that fails,
 * the existing one is opened, and checked by its descriptor before anything in it is changed.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

/* How often a file may vanish or appear between two system calls. */
#define ATTEMPTS 100

static mode_t output_mode = TS_OUTPUT_MODE;

/* ---- permissions ---- */

int ts_output_parse_mode(const char *text, mode_t *ret_mode, struct ts_error *err)
{
	size_t digits = strspn(text, "01234567");
	unsigned long mode = digits && digits <= 4 ? strtoul(text, NULL, 8) : 0;

	if (!strcmp(text, "umask")) {
		*ret_mode = TS_OUTPUT_UMASK;
		return TS_OK;
	}
	if (text[digits] || (mode & TS_OUTPUT_MODE) != TS_OUTPUT_MODE || mode & ~0666ul)
		return ts_error_set(err, TS_EINVAL,
				    "'%s' is neither a mode from 0600 to 0666, such as 0640, nor "
				    "umask",
				    text);
	*ret_mode = (mode_t)mode;
	return TS_OK;
}

void ts_output_set_mode(mode_t mode)
{
	output_mode = mode;
}

/* For open(2), which applies the umask; set_mode() adds what was explicitly asked for. */
static mode_t initial_mode(void)
{
	return output_mode == TS_OUTPUT_UMASK ? 0666 : TS_OUTPUT_MODE;
}

/* Some file systems have no permissions; there is nothing to be done about that. */
static void set_mode(int fd)
{
	if (output_mode != TS_OUTPUT_UMASK)
		(void)!fchmod(fd, output_mode);
}

/* ---- checks ---- */

static int refuse_link(const char *path, struct ts_error *err)
{
	return ts_error_set(err, TS_EIO,
			    "'%s' is a symbolic link, and output does not follow it (name the file "
			    "itself, or remove the link)",
			    path);
}

static int refuse_owner(const char *path, uid_t owner, struct ts_error *err)
{
	return ts_error_set(err, TS_EIO,
			    "'%s' belongs to user %u, not to user %u (remove it, or choose another "
			    "name)",
			    path, (unsigned int)owner, (unsigned int)geteuid());
}

static int refuse_names(const char *path, struct ts_error *err)
{
	return ts_error_set(err, TS_EIO,
			    "'%s' has another name, a hard link, under which it would change, too "
			    "(remove it, or choose another name)",
			    path);
}

/* Whether only this user and root can have put something into the folder of a file. */
static bool is_private(const char *path)
{
	const char *slash = strrchr(path, '/');
	TS_AUTO_FREE char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct stat status;

	return folder && !stat(folder, &status) && !(status.st_mode & 022) &&
	       (status.st_uid == geteuid() || status.st_uid == 0);
}

/* The owner of a device says nothing about who reads what is written to it. */
static bool is_ours(const struct stat *status)
{
	return S_ISCHR(status->st_mode) || status->st_uid == geteuid();
}

/* Whoever started us has chosen what our descriptors are. */
static bool is_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(folders); i++) {
		size_t length = strlen(folders[i]);

		if (!strncmp(path, folders[i], length) && path[length] &&
		    !path[length + strspn(path + length, "0123456789")])
			return true;
	}
	return !strcmp(path, "/dev/stdout") || !strcmp(path, "/dev/stderr");
}

int ts_output_check(const char *path, struct ts_error *err)
{
	struct stat status;

	if (lstat(path, &status))
		return TS_OK; /* creating it says what is wrong */
	if (S_ISLNK(status.st_mode))
		return refuse_link(path, err);
	if (!S_ISREG(status.st_mode))
		return ts_error_set(err, TS_EIO, "'%s' is not a regular file", path);
	return is_ours(&status) ? TS_OK : refuse_owner(path, status.st_uid, err);
}

/* ---- opening ---- */

static int access_of(unsigned int flags)
{
	return (flags & TS_OUTPUT_READ ? O_RDWR : O_WRONLY) |
	       (flags & TS_OUTPUT_APPEND ? O_APPEND : 0);
}

/* Opens a descriptor of ours a second time; others may write there as well. */
static int open_descriptor(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err)
{
	int fd = ts_io_open(path, access_of(flags | TS_OUTPUT_APPEND), 0);

	if (fd < 0)
		return ts_error_errno(err, errno, "cannot write '%s'", path);
	*ret_fd = fd;
	return TS_OK;
}

/* -1, with errno EEXIST: there is something of that name. */
static int create_new(const char *path, unsigned int flags)
{
	int fd = ts_io_open(path, access_of(flags) | O_CREAT | O_EXCL, initial_mode());

	if (fd >= 0)
		set_mode(fd);
	return fd;
}

static int cannot_create(const char *path, struct ts_error *err)
{
	return ts_error_errno(err, errno, "cannot create '%s'", path);
}

static int check_existing(int fd, const char *path, unsigned int flags, struct ts_error *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return ts_error_errno(err, errno, "'%s'", path);
	if (!(flags & TS_OUTPUT_LOCKED) && !is_ours(&status))
		return refuse_owner(path, status.st_uid, err);
	if (!S_ISREG(status.st_mode))
		return TS_OK;
	if (!(flags & TS_OUTPUT_LOCKED) && status.st_nlink > 1 &&
	    !(flags & TS_OUTPUT_EXISTING && is_private(path)))
		return refuse_names(path, err);
	if (!(flags & TS_OUTPUT_EXISTING))
		set_mode(fd);
	if (flags & TS_OUTPUT_EMPTY && ftruncate(fd, 0))
		return ts_error_errno(err, errno, "cannot empty '%s'", path);
	return TS_OK;
}

/* TS_ENOTFOUND: there is no such file (any more). */
static int open_existing(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err)
{
	TS_AUTO_FD int fd = ts_io_open(path, access_of(flags) | O_NOFOLLOW, 0);
	int rc;

	if (fd < 0 && errno == ELOOP)
		return refuse_link(path, err);
	if (fd < 0 && errno == ENXIO)
		return ts_error_set(err, TS_EIO,
				    "'%s' is a FIFO that nothing reads (start its reader first)",
				    path);
	if (fd < 0)
		return ts_error_errno(err, errno, "cannot write '%s'", path);
	rc = check_existing(fd, path, flags, err);
	if (rc)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return TS_OK;
}

int ts_output_open(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err)
{
	int rc = TS_ENOTFOUND;

	if (is_descriptor(path))
		return open_descriptor(path, flags, ret_fd, err);
	if (flags & TS_OUTPUT_EXISTING)
		return open_existing(path, flags, ret_fd, err);
	for (int i = 0; i < ATTEMPTS && rc == TS_ENOTFOUND; i++) {
		int fd = create_new(path, flags);

		if (fd >= 0) {
			*ret_fd = fd;
			return TS_OK;
		}
		if (errno != EEXIST)
			return cannot_create(path, err);
		rc = open_existing(path, flags, ret_fd, err);
	}
	return rc;
}

int ts_output_create(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		int fd = create_new(path, flags), rc;

		if (fd >= 0) {
			*ret_fd = fd;
			return TS_OK;
		}
		if (errno != EEXIST)
			return cannot_create(path, err);
		rc = ts_output_check(path, err);
		if (rc)
			return rc;
		if (unlink(path) && errno != ENOENT)
			return ts_error_errno(err, errno, "cannot remove '%s'", path);
	}
	return ts_error_set(err, TS_EBUSY, "another process creates '%s' again and again", path);
}

int ts_output_rename(const char *from, const char *to, struct ts_error *err)
{
	int rc = ts_output_check(to, err);

	if (!rc && rename(from, to))
		rc = ts_error_errno(err, errno, "cannot rename '%s' to '%s'", from, to);
	return rc;
}

/* ---- replacing a file ---- */

/* Something other than a file is at this path, and no file can replace it. */
static bool is_special(const char *path)
{
	struct stat status;

	return is_descriptor(path) ||
	       (!lstat(path, &status) && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode));
}

/* Fails if another process holds the exclusive lock of a file. */
static int check_unlocked(const char *path, struct ts_error *err)
{
	TS_AUTO_FD int fd = ts_io_open(path, O_RDONLY | O_NOFOLLOW, 0);

	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
		return ts_error_set(err, TS_EBUSY, "another process is writing '%s'", path);
	return TS_OK;
}

/* Parts that are not committed, for handlers of signals. */
#define PARTS 8
struct part {
	char path[PATH_MAX];
	pid_t owner; /* 0: free. Written after the path, and cleared first */
};
static struct part own_parts[PARTS], *parts = own_parts;

int ts_output_share_parts(struct ts_error *err)
{
	void *shared;

	if (parts != own_parts)
		return TS_OK;
	shared = mmap(NULL, sizeof(own_parts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of outputs");
	memcpy(shared, own_parts, sizeof(own_parts));
	parts = shared;
	return TS_OK;
}

void ts_output_remove_parts_of(pid_t process)
{
	static const char *const endings[] = { "", ".journal", ".journal.new", ".reserve" };
	char path[PATH_MAX + 16];

	for (size_t i = 0; i < PARTS; i++) {
		if (__atomic_load_n(&parts[i].owner, __ATOMIC_ACQUIRE) != process)
			continue;
		for (size_t k = 0; k < TS_ARRAY_SIZE(endings); k++) {
			/* Not printf, which may not be called here. */
			stpcpy(stpcpy(path, parts[i].path), endings[k]);
			unlink(path);
		}
	}
}

void ts_output_remove_parts(void)
{
	ts_output_remove_parts_of(getpid());
}

/* What does not fit into the list is only removed in an orderly end. */
static void list_part(struct ts_output_part *part)
{
	for (int i = 0; i < PARTS && strlen(part->path) < PATH_MAX; i++) {
		if (parts[i].owner)
			continue;
		memcpy(parts[i].path, part->path, strlen(part->path) + 1);
		__atomic_store_n(&parts[i].owner, getpid(), __ATOMIC_RELEASE);
		part->slot = i + 1;
		return;
	}
}

static void unlist_part(struct ts_output_part *part)
{
	if (part->slot)
		__atomic_store_n(&parts[part->slot - 1].owner, 0, __ATOMIC_RELEASE);
	part->slot = 0;
}

/* No signal ends the process between the creation and the entry in the list. */
static int create_listed(struct ts_output_part *part, int *ret_fd, struct ts_error *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = ts_output_create(part->path, 0, ret_fd, err);
	if (!rc)
		list_part(part);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int create_part(struct ts_output_part *part, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	int rc = ts_output_check(part->output, err);

	if (!rc)
		rc = check_unlocked(part->output, err);
	if (!rc)
		rc = check_unlocked(part->path, err);
	if (!rc)
		rc = create_listed(part, &fd, err);
	if (rc == TS_ENOTFOUND)
		rc = ts_error_errno(err, ENOENT, "cannot create '%s'", part->output);
	return rc;
}

int ts_output_part_init(struct ts_output_part *part, const char *output, struct ts_error *err)
{
	int rc;

	*part = (struct ts_output_part){ .output = output, .is_direct = is_special(output) };
	if (asprintf(&part->path, "%s%s", output, part->is_direct ? "" : ".part") < 0) {
		part->path = NULL;
		return ts_error_set(err, TS_ENOMEM, "no memory");
	}
	rc = part->is_direct ? TS_OK : create_part(part, err);
	if (rc) {
		/* It is not ours to remove. */
		free(part->path);
		part->path = NULL;
	}
	return rc;
}

int ts_output_part_open(const struct ts_output_part *part, int *ret_fd, struct ts_error *err)
{
	int rc = ts_output_open(part->path, TS_OUTPUT_EMPTY, ret_fd, err);

	if (!rc && !part->is_direct)
		(void)flock(*ret_fd, LOCK_EX | LOCK_NB);
	return rc;
}

int ts_output_part_commit(struct ts_output_part *part, struct ts_error *err)
{
	int rc = part->is_direct ? TS_OK : ts_output_rename(part->path, part->output, err);

	if (!rc) {
		unlist_part(part);
		free(part->path);
		part->path = NULL;
	}
	return rc;
}

void ts_output_part_release(struct ts_output_part *part)
{
	if (part->path && !part->is_direct)
		unlink(part->path);
	unlist_part(part);
	free(part->path);
	part->path = NULL;
}

/* ---- folders ---- */

int ts_output_make_folder(const char *path, struct ts_error *err)
{
	/* Search permission goes with the permission to read. */
	mode_t mode = output_mode | (output_mode & 0444) >> 2;
	TS_AUTO_FD int fd = -1;

	if (mkdir(path, output_mode == TS_OUTPUT_UMASK ? 0777 : 0700))
		return errno == EEXIST ? TS_OK : cannot_create(path, err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && output_mode != TS_OUTPUT_UMASK)
		(void)!fchmod(fd, mode);
	return TS_OK;
}

int ts_output_make_parents(const char *path, struct ts_error *err)
{
	char folder[PATH_MAX];
	struct stat status;
	size_t length;
	int rc = TS_OK;

	for (const char *slash = strchr(path, '/'); slash && !rc; slash = strchr(slash + 1, '/')) {
		length = (size_t)(slash - path);
		if (!length)
			continue;
		if (length >= sizeof(folder))
			return ts_error_set(err, TS_EINVAL, "'%.60s...': path too long", path);
		memcpy(folder, path, length);
		folder[length] = '\0';
		if (stat(folder, &status))
			rc = ts_output_make_folder(folder, err);
	}
	return rc;
}
