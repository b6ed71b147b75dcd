/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a glibc does not have yet for which a wheel is built. Included in front of every
 * file (scripts/wheel).
 */
#ifndef TRACESMITH_OLDER_GLIBC_H
#define TRACESMITH_OLDER_GLIBC_H

#include <errno.h>
#include <features.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
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

static inline ssize_t copy_file_range(int from, __off64_t *from_at, int to, __off64_t *to_at,
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

#if !__GLIBC_PREREQ(2, 32)
#define strerrordesc_np(error) strerror(error)
#define strerrorname_np(error) older_error_name(error)
#define sigabbrev_np(number) older_signal_name(number)

/* Those that system calls of ours return; others are shown by their number. */
static inline const char *older_error_name(int error)
{
#define NAME(error) \
	case error: \
		return #error
	switch (error) {
		NAME(EPERM);
		NAME(ENOENT);
		NAME(ESRCH);
		NAME(EINTR);
		NAME(EIO);
		NAME(ENXIO);
		NAME(E2BIG);
		NAME(ENOEXEC);
		NAME(EBADF);
		NAME(ECHILD);
		NAME(EAGAIN);
		NAME(ENOMEM);
		NAME(EACCES);
		NAME(EFAULT);
		NAME(EBUSY);
		NAME(EEXIST);
		NAME(EXDEV);
		NAME(ENODEV);
		NAME(ENOTDIR);
		NAME(EISDIR);
		NAME(EINVAL);
		NAME(ENFILE);
		NAME(EMFILE);
		NAME(ENOTTY);
		NAME(ETXTBSY);
		NAME(EFBIG);
		NAME(ENOSPC);
		NAME(ESPIPE);
		NAME(EROFS);
		NAME(EMLINK);
		NAME(EPIPE);
		NAME(ERANGE);
		NAME(EDEADLK);
		NAME(ENAMETOOLONG);
		NAME(ENOSYS);
		NAME(ENOTEMPTY);
		NAME(ELOOP);
		NAME(EOVERFLOW);
		NAME(EOPNOTSUPP);
		NAME(EADDRINUSE);
		NAME(ECONNRESET);
		NAME(ETIMEDOUT);
		NAME(ECONNREFUSED);
		NAME(EDQUOT);
	default:
		return NULL;
	}
#undef NAME
}

static inline const char *older_signal_name(int number)
{
#define NAME(name)      \
	case SIG##name: \
		return #name
	switch (number) {
		NAME(HUP);
		NAME(INT);
		NAME(QUIT);
		NAME(ILL);
		NAME(TRAP);
		NAME(ABRT);
		NAME(BUS);
		NAME(FPE);
		NAME(KILL);
		NAME(USR1);
		NAME(SEGV);
		NAME(USR2);
		NAME(PIPE);
		NAME(ALRM);
		NAME(TERM);
		NAME(STKFLT);
		NAME(CHLD);
		NAME(CONT);
		NAME(STOP);
		NAME(TSTP);
		NAME(TTIN);
		NAME(TTOU);
		NAME(URG);
		NAME(XCPU);
		NAME(XFSZ);
		NAME(VTALRM);
		NAME(PROF);
		NAME(WINCH);
		NAME(POLL);
		NAME(PWR);
		NAME(SYS);
	default:
		return NULL;
	}
#undef NAME
}
#endif

#endif
