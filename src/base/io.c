/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, full writes and blocking reads. A descriptor may be non-blocking without our doing
 * (standard output shared with another program), so EAGAIN is waited out.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/memory.h"

/* Some systems reject more than 2 GiB at once. */
#define LARGEST_CALL ((size_t)1 << 30)

static int (*stop_is_asked)(void);

void ts_io_set_stop(int (*is_asked)(void))
{
	stop_is_asked = is_asked;
}

/* ---- opening ---- */

int ts_io_open(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);

	/* Reads and writes wait as usual. */
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

/* ---- reading and writing ---- */

/* After a signal. */
static bool shall_continue(void)
{
	if (!stop_is_asked || !stop_is_asked())
		return true;
	errno = ECANCELED;
	return false;
}

/* After a failed call: true to retry, after waiting for `events` if necessary. */
static bool shall_retry(int fd, short events)
{
	struct pollfd wait_for = { .fd = fd, .events = events };

	if (errno == EINTR)
		return shall_continue();
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return false;
	return poll(&wait_for, 1, -1) >= 0 || (errno == EINTR && shall_continue());
}

int ts_write_all(int fd, const void *data, size_t bytes, struct ts_error *err)
{
	const char *p = data;

	while (bytes) {
		ssize_t written = write(fd, p, TS_MIN(bytes, LARGEST_CALL));

		if (written < 0) {
			if (shall_retry(fd, POLLOUT))
				continue;
			return ts_error_errno(err, errno, "cannot write");
		}
		if (written == 0)
			return ts_error_set(err, TS_EIO, "cannot write: write() returned 0");
		p += written;
		bytes -= (size_t)written;
	}
	return TS_OK;
}

ssize_t ts_read_some(int fd, void *buffer, size_t bytes)
{
	for (;;) {
		ssize_t got = read(fd, buffer, TS_MIN(bytes, LARGEST_CALL));

		if (got >= 0 || !shall_retry(fd, POLLIN))
			return got;
	}
}
