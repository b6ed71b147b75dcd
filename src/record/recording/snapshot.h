/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens what has been recorded so far as a trace, without changing, locking or stopping anything:
 * chunks, journal and unread ring bytes, cut at one set of positions (docs/live.md, section 6.1).
 */
#ifndef TS_RECORD_RECORDING_SNAPSHOT_H
#define TS_RECORD_RECORDING_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>

#include "live/discover.h"

struct ts_snapshot_source {
	const char *name; /* of the recording: the path of its trace, or what messages call it */
	/* Live areas; of a recording these are added to those that its journal knows. */
	const struct ts_area_info *areas;
	size_t area_count;
	int directory_fd; /* in which they are */
	/* The process that writes the trace; 0: it was killed. */
	pid_t recorder;
	/*
	 * Accept a cut with a gap between journal and rings. A recorder leaves none, so the caller
	 * tries again first; but an area may contain false values.
	 */
	bool accept_gaps;
};

/*
 * The recording whose trace is source->name. TS_EBUSY: the recorder finished or rotated it
 * meanwhile; find out where it is now, and try again. TS_EFORMAT: it is damaged, and `recover` can
 * do more.
 */
int ts_snapshot_recording(struct ts_reader **ret_reader, const struct ts_snapshot_source *source,
			  struct ts_error *err);

/* Only areas: of a process without a recorder, dead or alive. The same as ts_salvage_areas(). */
int ts_snapshot_areas(struct ts_reader **ret_reader, const struct ts_snapshot_source *source,
		      struct ts_error *err);

#endif
