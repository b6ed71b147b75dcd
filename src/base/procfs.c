/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of /proc and /sys and the numbers in them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process.h"
#include "base/procfs.h"

/*
 * The kernel returns seq_files in pieces of nearly a page. A shorter read is complete and needs no
 * second call to see the end.
 */
#define INITIAL_BYTES 2048u
#define FIRST_BYTES 4096u
#define MAX_BYTES (16u << 20)
/* Inode of the initial pid namespace, fixed since Linux 3.8. */
#define OUTERMOST_NAMESPACE 4026531836u

/* ---- files that are kept open ---- */

/* The kernel assigns the lowest free number, so this is how many descriptors are in use. */
static bool may_keep(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd < limit.rlim_cur / 4;
}

static int read_all(int fd, struct ts_text *text)
{
	ts_text_clear(text);
	for (;;) {
		ssize_t got;

		if (text->length >= MAX_BYTES)
			return -EFBIG;
		if (!ts_text_reserve(text, TS_MAX(text->length, FIRST_BYTES)))
			return -ENOMEM;
		got = pread(fd, text->data + text->length, text->capacity - text->length - 1,
			    (off_t)text->length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		text->length += (size_t)got;
		text->data[text->length] = '\0';
		if (got == 0 || text->length < INITIAL_BYTES)
			return 0;
	}
}

int ts_procfs_file_read(struct ts_procfs_file *file, int directory, struct ts_text *text)
{
	int fd = file->fd >= 0 ? file->fd : openat(directory, file->path, O_RDONLY | O_CLOEXEC);
	int error;

	if (fd < 0)
		return -errno;
	error = read_all(fd, text);
	if (file->fd >= 0)
		return error;
	if (!error && may_keep(fd))
		file->fd = fd;
	else
		close(fd);
	return error;
}

void ts_procfs_file_close(struct ts_procfs_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* ---- files that are read once ---- */

int ts_procfs_read_line(int directory, const char *path, char *buffer, size_t bytes)
{
	TS_AUTO_FD int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, buffer, bytes - 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	while (got > 0 && buffer[got - 1] == '\n')
		got--;
	buffer[got] = '\0';
	return (int)got;
}

bool ts_procfs_read_number(int directory, const char *path, int64_t *ret_number)
{
	char line[32];
	int length = ts_procfs_read_line(directory, path, line, sizeof(line));

	return length > 0 && ts_parse_int64(line, (size_t)length, ret_number) == 0;
}

/* ---- where we are ---- */

bool ts_is_outermost_pid_namespace(void)
{
	return ts_process_namespace(getpid()) == OUTERMOST_NAMESPACE;
}

/* ---- numbers in texts ---- */

const char *ts_procfs_scan_number(const char *at, uint64_t *ret_number)
{
	uint64_t number = 0;
	bool is_good = true;

	while (*at == ' ' || *at == '\t')
		at++;
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			is_good = false;
	}
	/* These texts end with a newline: a number at the very end may be truncated. */
	*ret_number = is_good && *at ? number : TS_NO_VALUE;
	return at;
}

void ts_procfs_scan_numbers(const char *at, uint64_t *ret_numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ret_numbers[i] = TS_NO_VALUE;
		if (at)
			at = ts_procfs_scan_number(at, &ret_numbers[i]);
	}
}

const char *ts_procfs_next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end && end[1] ? end + 1 : NULL;
}

/* The text after the key, if the line has it. */
static const char *behind_key(const char *line, const char *key)
{
	size_t length = strlen(key);

	if (strncmp(line, key, length) != 0 || (line[length] != ' ' && line[length] != '\t'))
		return NULL;
	return line + length;
}

void ts_procfs_scan_keys(const char *text, const char *const *keys, uint64_t *ret_numbers,
			 size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		ret_numbers[i] = TS_NO_VALUE;
	for (const char *line = text; line && found < count; line = ts_procfs_next_line(line)) {
		for (size_t i = 0; i < count; i++) {
			const char *at = ret_numbers[i] == TS_NO_VALUE ? behind_key(line, keys[i])
								       : NULL;

			if (at && ts_procfs_scan_number(at, &ret_numbers[i]))
				found += ret_numbers[i] != TS_NO_VALUE;
		}
	}
}

/* ---- counters that only grow ---- */

bool ts_rate_next(struct ts_rate *rate, uint64_t value, int64_t now_ns, double *ret_per_second)
{
	struct ts_rate before = *rate;

	if (value == TS_NO_VALUE)
		return false;
	*rate = (struct ts_rate){ .value = value, .at_ns = now_ns, .is_known = true };
	if (!before.is_known || value < before.value || now_ns <= before.at_ns)
		return false;
	*ret_per_second = (double)(value - before.value) * 1e9 / (double)(now_ns - before.at_ns);
	return true;
}
