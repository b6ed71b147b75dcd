/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a trace of live areas without a recorder: what a dead process left, or a copy of the flight
 * buffer of a running one. Areas are only read.
 */
#ifndef TS_RECORD_RECORDING_SALVAGE_H
#define TS_RECORD_RECORDING_SALVAGE_H

#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "live/area.h"
#include "live/discover.h"
#include "record/recording/recording.h"

struct ts_salvage {
	uint64_t events;  /* in the trace */
	uint64_t lost;    /* known to be missing */
	uint64_t damaged; /* rings that could not be read to their end */
};

/*
 * Makes a finished trace at `path` of areas of one live directory. Nothing is left at `path` when
 * it fails.
 */
int ts_salvage_areas(int directory_fd, const struct ts_area_info *areas, size_t count,
		     const char *path, struct ts_salvage *ret_salvage, struct ts_error *err);

/*
 * The blocks of one area into a recording that is open: AREA where it does not know it, then what
 * is new, then END.
 */
int ts_salvage_blocks(struct ts_recording *recording, struct ts_area *area, pid_t pid,
		      struct ts_salvage *salvage, struct ts_error *err);

/*
 * For ts_recording_recover(): the areas that the journal knows, and the others of its session, of
 * the user's live directory. `context` is a struct ts_salvage_session.
 */
struct ts_salvage_session {
	uint64_t session; /* 0: only those that the journal knows */
	uint64_t areas;   /* that were found */
	struct ts_salvage salvage;
};
int ts_salvage_session(void *context, struct ts_recording *recording, struct ts_error *err);

/* The session of a recording, by its journal; TS_ENOTFOUND where there is none. */
int ts_salvage_read_session(const char *trace, uint64_t *ret_session, struct ts_error *err);

#endif
