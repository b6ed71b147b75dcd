/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files that somebody named, and reads and writes descriptors: handles signals, short counts
 * and non-blocking descriptors.
 */
#ifndef TS_BASE_IO_H
#define TS_BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/*
 * Like open(2), for any path that a user, a trace or another program chose: never waits for the
 * other end of a FIFO. Reading one that nobody writes gives its end, writing one that nobody reads
 * fails with ENXIO. Close-on-exec.
 */
int ts_io_open(const char *path, int flags, mode_t mode);

/*
 * The function says whether the user has asked to stop. Reads and writes below that a signal then
 * interrupts fail with ECANCELED (TS_ECANCELED). Without one they continue after signals.
 */
void ts_io_set_stop(int (*is_asked)(void));

/*
 * Writes all bytes. The message holds the system's error ("cannot write: No space left on device");
 * the caller adds the file name with ts_error_prefix().
 */
int ts_write_all(int fd, const void *data, size_t bytes, struct ts_error *err);

/* One blocking read(2): the number of bytes, 0 at the end, -1 with errno. */
ssize_t ts_read_some(int fd, void *buffer, size_t bytes);

#endif
