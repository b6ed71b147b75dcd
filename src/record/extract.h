/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a trace as a trace of its own: the rows of one process in a span of time, with all that they
 * refer to. Knows nothing of recording.
 */
#ifndef TS_RECORD_EXTRACT_H
#define TS_RECORD_EXTRACT_H

#include <stdint.h>

#include <tracesmith/error.h>

struct ts_extract_filter {
	int64_t process; /* id of its row; 0: any */
	int64_t pid;     /* of the process; TS_ABSENT: any */
	int64_t from_ns,
		to_ns; /* trace time, both inside; rows that reach into it are taken whole */
};

/*
 * Makes the finished trace `to` of `from`, which may still be being written: what is in its chunks is
 * taken. Command streams and blobs stay behind. Nothing is left at `to` when it fails. TS_ENOTFOUND where no
 * process fits.
 */
int ts_extract(const char *from, const char *to, const struct ts_extract_filter *filter,
	       struct ts_error *err);

#endif
