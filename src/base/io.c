/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full writes and blocking reads. A descriptor may be non-blocking without our doing (standard
 * output shared with another program), so EAGAIN is waited out.
 */
#include "base/io.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/memory.h"

/* Some systems reject more than 2 GiB at once. */
#define LARGEST_CALL ((size_t)1 << 30)

/* After a failed call: true to retry, after waiting for `events` if necessary. */
static bool shall_retry(int fd, short events)
{
	struct pollfd wait_for = { .fd = fd, .events = events };

	if (errno == EINTR)
		return true;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return false;
	return poll(&wait_for, 1, -1) >= 0 || errno == EINTR;
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
