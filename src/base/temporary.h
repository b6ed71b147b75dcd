/* SPDX-License-Identifier: Apache-2.0 */
/* Unnamed files in $TMPDIR (or /tmp) that disappear when they are closed, and a private folder. */
#ifndef TS_BASE_TEMPORARY_H
#define TS_BASE_TEMPORARY_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

/* $TMPDIR, or /tmp. */
const char *ts_temporary_directory(void);

/* The path of a folder in it that is closed to other users; created if missing. */
int ts_temporary_folder(char *buffer, size_t bytes, struct ts_error *err);

/* Opens an unnamed file. */
int ts_temporary_open(int *ret_fd, struct ts_error *err);

/* All of the bytes, at that offset. */
int ts_temporary_write(int fd, const void *data, size_t bytes, uint64_t at, struct ts_error *err);
int ts_temporary_read(int fd, void *data, size_t bytes, uint64_t at, struct ts_error *err);

#endif
