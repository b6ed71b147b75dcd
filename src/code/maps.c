/* SPDX-License-Identifier: Apache-2.0 */
/* Parses /proc/PID/maps and opens the mapped files. */
#include "code/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"

#define MAX_BYTES (64u << 20)
#define READ_BYTES 65536u

/* ---- lines ---- */

static bool scan_hex(const char **at, const char *end, uint64_t *ret_number)
{
	const char *start = *at;
	uint64_t number = 0;

	for (; *at < end && *at - start <= 16; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			number = number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	*ret_number = number;
	return *at > start && *at - start <= 16;
}

static bool scan_decimal(const char **at, const char *end, uint64_t *ret_number)
{
	const char *start = *at;
	uint64_t number = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
			return false;
	}
	*ret_number = number;
	return *at > start;
}

static bool scan_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	(*at)++;
	return true;
}

static bool scan_rights(const char **at, const char *end, struct ts_map_range *range)
{
	if (end - *at < 4)
		return false;
	range->is_readable = (*at)[0] == 'r';
	range->is_writable = (*at)[1] == 'w';
	range->is_executable = (*at)[2] == 'x';
	*at += 4;
	return true;
}

/* The rest of the line after blanks, terminated in place: drops the newline or " (deleted)". */
static void take_path(char *path, char *end, struct ts_map_range *range)
{
	static const char deleted[] = " (deleted)";
	size_t length = sizeof(deleted) - 1;

	while (path < end && *path == ' ')
		path++;
	range->is_deleted = (size_t)(end - path) > length &&
			    memcmp(end - length, deleted, length) == 0;
	if (range->is_deleted)
		end -= length;
	*end = '\0';
	range->path = path;
}

/* "55d0-55d1 r-xp 00001000 fd:01 1234    /path" */
static bool parse_line(char *line, char *end, struct ts_map_range *ret_range)
{
	struct ts_map_range range = { 0 };
	const char *at = line;
	uint64_t major_number, minor_number;

	if (!scan_hex(&at, end, &range.start) || !scan_char(&at, end, '-') ||
	    !scan_hex(&at, end, &range.end) || !scan_char(&at, end, ' ') ||
	    !scan_rights(&at, end, &range) || !scan_char(&at, end, ' ') ||
	    !scan_hex(&at, end, &range.file_offset) || !scan_char(&at, end, ' ') ||
	    !scan_hex(&at, end, &major_number) || !scan_char(&at, end, ':') ||
	    !scan_hex(&at, end, &minor_number) || !scan_char(&at, end, ' ') ||
	    !scan_decimal(&at, end, &range.inode) || range.end <= range.start)
		return false;
	range.device = makedev((unsigned int)major_number, (unsigned int)minor_number);
	take_path(line + (at - line), end, &range);
	*ret_range = range;
	return true;
}

static int add_line(struct ts_maps *maps, char *line, char *end, struct ts_error *err)
{
	struct ts_map_range range;

	if (!parse_line(line, end, &range) ||
	    (maps->count > 0 && range.start < maps->ranges[maps->count - 1].end))
		return ts_error_set(err, TS_EFORMAT, "line %zu is not a valid mapping",
				    maps->count + 1);
	if (ts_grow_array((void **)&maps->ranges, &maps->capacity, maps->count + 1,
			  sizeof(*maps->ranges)))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	maps->ranges[maps->count++] = range;
	return TS_OK;
}

/* A last line without a newline may be truncated: ignore it. */
static int parse_lines(struct ts_maps *maps, struct ts_error *err)
{
	char *line = maps->texts, *end = maps->texts + maps->text_bytes;
	int error = TS_OK;

	while (!error && line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline)
			break;
		error = add_line(maps, line, newline, err);
		line = newline + 1;
	}
	return error;
}

int ts_maps_parse(struct ts_maps *ret_maps, const char *text, size_t bytes, struct ts_error *err)
{
	struct ts_maps maps = { .texts = ts_alloc_array(bytes, 1), .text_bytes = bytes };
	int error;

	if (!maps.texts)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (bytes)
		memcpy(maps.texts, text, bytes);
	error = parse_lines(&maps, err);
	if (error)
		ts_maps_release(&maps);
	else
		*ret_maps = maps;
	return error;
}

void ts_maps_release(struct ts_maps *maps)
{
	free(maps->ranges);
	free(maps->texts);
	*maps = (struct ts_maps){ 0 };
}

const struct ts_map_range *ts_maps_find(const struct ts_maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == maps->count || address < maps->ranges[low].start)
		return NULL;
	return &maps->ranges[low];
}

/* ---- of a process ---- */

static int refused(pid_t pid, int errnum, struct ts_error *err)
{
	if (errnum == ENOENT || errnum == ESRCH)
		return ts_error_set(err, TS_ENOTFOUND, "no such process: %d", (int)pid);
	if (errnum == EACCES || errnum == EPERM)
		return ts_error_set(
			err, TS_ECAP,
			"process %d: access denied: it belongs to another user or to a container; run as its owner or root, or with CAP_SYS_PTRACE",
			(int)pid);
	return ts_error_errno(err, errnum, "process %d: cannot read its maps", (int)pid);
}

static int read_text(int fd, struct ts_text *text)
{
	for (;;) {
		ssize_t got;

		if (text->length > MAX_BYTES)
			return EFBIG;
		if (!ts_text_reserve(text, READ_BYTES))
			return ENOMEM;
		got = ts_read_some(fd, text->data + text->length, text->capacity - text->length);
		if (got < 0)
			return errno;
		if (got == 0)
			return 0;
		text->length += (size_t)got;
	}
}

int ts_maps_read(struct ts_maps *ret_maps, pid_t pid, struct ts_error *err)
{
	TS_SCOPED(ts_text) text = { 0 };
	TS_AUTO_FD int fd = -1;
	char path[64];
	int error;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refused(pid, errno, err);
	error = read_text(fd, &text);
	if (error)
		return refused(pid, error, err);
	if (text.length == 0)
		return ts_error_set(
			err, TS_ENOTFOUND,
			"process %d has no mappings: it has exited, or is a kernel thread",
			(int)pid);
	error = ts_maps_parse(ret_maps, text.data, text.length, err);
	if (error)
		ts_error_prefix(err, "'%s'", path);
	return error;
}

/* ---- files ---- */

/*
 * Opened in two steps: opening a device can have side effects. The file must match the mapping's
 * inode; if the devices differ, inodes say nothing (overlay file systems).
 */
static int open_regular(const char *path, const struct ts_map_range *range, bool is_certain)
{
	TS_AUTO_FD int path_fd = open(path, O_PATH | O_CLOEXEC);
	struct stat about;
	char again[64];
	int fd;

	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &about) != 0)
		return -errno;
	if (!S_ISREG(about.st_mode))
		return -ENOEXEC;
	if (!is_certain && about.st_dev == range->device && about.st_ino != range->inode)
		return -ESTALE;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* The kernel escapes newlines as \012, and nothing else. */
static void unescape(char *path)
{
	char *at = path;

	while ((at = strstr(at, "\\012")) != NULL) {
		*at++ = '\n';
		memmove(at, at + 3, strlen(at + 3) + 1);
	}
}

/* A container's path is below its own root; one from a chroot is below ours. */
static int open_path(pid_t pid, const struct ts_map_range *range)
{
	char path[PATH_MAX + 32];
	int length = snprintf(path, sizeof(path), "/proc/%d/root", (int)pid), fd;

	if (range->is_deleted || range->path[0] != '/')
		return -ENOENT;
	if (strlen(range->path) >= sizeof(path) - (size_t)length)
		return -ENAMETOOLONG;
	memcpy(path + length, range->path, strlen(range->path) + 1);
	unescape(path + length);
	fd = open_regular(path, range, false);
	return fd >= 0 ? fd : open_regular(path + length, range, false);
}

int ts_maps_open_file(pid_t pid, const struct ts_map_range *range)
{
	char path[96];
	int fd;

	if (range->inode == 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)range->start, (unsigned long long)range->end);
	fd = open_regular(path, range, true);
	return fd >= 0 || fd == -ENOEXEC ? fd : open_path(pid, range);
}
