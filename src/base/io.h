/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes on file descriptors that take signals, short counts and non-blocking
 * descriptors in their stride.
 */
#ifndef TS_BASE_IO_H
#define TS_BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/*
 * Writes all bytes. The message says what the system said ("cannot write: No space left on
 * device"); the caller puts the file's name before it with ts_error_prefix().
 */
int ts_write_all(int fd, const void *data, size_t bytes, struct ts_error *err);

/* One read(2) that waits for bytes: their number, 0 at the end, -1 with errno. */
ssize_t ts_read_some(int fd, void *buffer, size_t bytes);

#endif
