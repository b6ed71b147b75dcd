/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses what is written to a descriptor, in a thread of its own. */
#ifndef TS_BASE_GZIP_H
#define TS_BASE_GZIP_H

#include <tracesmith/error.h>

struct ts_gzip;

/*
 * Whatever is written to *ret_input arrives at `fd`, compressed; `fd` stays the caller's. If it
 * cannot be written, writes to *ret_input fail with EPIPE. TS_ECAP: a build without zlib.
 */
int ts_gzip_start(struct ts_gzip **ret_gzip, int fd, int *ret_input, struct ts_error *err);

/* Ends the stream, closes the input and frees all. The error is why `fd` was not written. */
int ts_gzip_finish(struct ts_gzip *gzip, struct ts_error *err);

#endif
