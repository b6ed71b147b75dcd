/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes on file descriptors that handle signals, short counts and non-blocking
 * descriptors.
 */
#ifndef TS_BASE_IO_H
#define TS_BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/*
 * Writes all bytes. The message holds the system's error ("cannot write: No space left on device");
 * the caller adds the file name with ts_error_prefix().
 */
int ts_write_all(int fd, const void *data, size_t bytes, struct ts_error *err);

/* One blocking read(2): the number of bytes, 0 at the end, -1 with errno. */
ssize_t ts_read_some(int fd, void *buffer, size_t bytes);

#endif
