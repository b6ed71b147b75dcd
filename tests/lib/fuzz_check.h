/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fuzz targets: a check that stops the fuzzer, and in-memory files with a path. */
#ifndef TS_TEST_FUZZ_CHECK_H
#define TS_TEST_FUZZ_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void check(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	abort();
}

struct memory_file {
	int fd;
	char path[32];
};

static inline void memory_file_open(struct memory_file *file, const char *name)
{
	file->fd = memfd_create(name, MFD_CLOEXEC);
	check(file->fd >= 0, "cannot make a file in memory");
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

static inline void memory_file_set(const struct memory_file *file, const void *data, size_t size)
{
	check(ftruncate(file->fd, 0) == 0, "cannot empty a file in memory");
	for (size_t at = 0; at < size;) {
		ssize_t written = pwrite(file->fd, (const char *)data + at, size - at, (off_t)at);

		check(written > 0, "cannot fill a file in memory");
		at += (size_t)written;
	}
}

#endif
