/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a glibc does not have yet for which a wheel is built, as system calls. Included in
 * front of every file (scripts/wheel).
 */
#ifndef TRACESMITH_OLDER_GLIBC_H
#define TRACESMITH_OLDER_GLIBC_H

#include <features.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 25)
static inline ssize_t getrandom(void *buffer, size_t bytes, unsigned int flags)
{
	return syscall(SYS_getrandom, buffer, bytes, flags);
}
#endif

#if !__GLIBC_PREREQ(2, 27)
static inline int memfd_create(const char *name, unsigned int flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}

static inline ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at,
				      size_t bytes, unsigned int flags)
{
	return syscall(SYS_copy_file_range, from, from_at, to, to_at, bytes, flags);
}
#endif

#if !__GLIBC_PREREQ(2, 28)
struct statx;

static inline int statx(int directory, const char *path, int flags, unsigned int mask,
			struct statx *status)
{
	return (int)syscall(SYS_statx, directory, path, flags, mask, status);
}
#endif

#endif
