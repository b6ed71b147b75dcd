/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates a trace from live areas without a recorder: from what a dead process left, or from the
 * flight buffer of a running one. Areas are read-only.
 */
#ifndef TS_RECORD_RECORDING_SALVAGE_H
#define TS_RECORD_RECORDING_SALVAGE_H

#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "live/area.h"
#include "live/area_spool.h"
#include "live/discover.h"
#include "record/recording/recording.h"

struct ts_salvage {
	uint64_t events;  /* in the trace */
	uint64_t lost;    /* known to be missing */
	uint64_t damaged; /* rings not read to the end */
};

/*
 * Creates a finished trace at `path` from areas of one live directory. On failure leaves no file at
 * `path`.
 */
int ts_salvage_areas(int directory_fd, const struct ts_area_info *areas, size_t count,
		     const char *path, struct ts_salvage *ret_salvage, struct ts_error *err);

/*
 * For ts_recording_recover(): drains the areas in the user's live directory that the journal knows
 * or that belong to its session. `context` is a struct ts_salvage_session.
 */
struct ts_salvage_session {
	uint64_t areas; /* found */
	struct ts_salvage salvage;
};
int ts_salvage_session(void *context, struct ts_recording *recording, struct ts_error *err);

/* Reads the spools in the live directories of all users that can be read; releases nothing. */
int ts_salvage_spools(struct ts_spools **ret_spools, struct ts_error *err);

/* Appends the AREA block of an area, whose process is `pid`; 0: it has ended. */
int ts_salvage_area(const struct ts_block_sink *sink, const struct ts_live_control *control,
		    pid_t pid, struct ts_error *err);
/* Appends its END block. If the process lives, only its recording ends. */
int ts_salvage_end(const struct ts_block_sink *sink, const struct ts_live_control *control,
		   pid_t pid, struct ts_error *err);

/*
 * Appends what a damaged journal may lack to decode the other blocks of an area, if the area is
 * still in the user's live directory: its AREA block, unless that is there, and its dictionary from
 * this byte on.
 */
int ts_salvage_preamble(uint64_t area_id, bool is_announced, uint64_t dictionary,
			const struct ts_block_sink *sink, struct ts_error *err);

#endif
