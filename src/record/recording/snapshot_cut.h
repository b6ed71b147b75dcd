/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One set of positions in a recording that goes on: what of the trace, of the journal and of the
 * rings belongs to a snapshot (docs/live.md, section 6.1). For snapshot.c.
 */
#ifndef TS_RECORD_RECORDING_SNAPSHOT_CUT_H
#define TS_RECORD_RECORDING_SNAPSHOT_CUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "live/journal.h"
#include "live/local/live_layout.h"
#include "record/decode/decoder.h"
#include "record/recording/checkpoint_positions.h"
#include "record/recording/snapshot.h"

/* An area whose rings were read. */
struct ts_snapshot_area {
	struct ts_live_control control; /* read after the rings */
	pid_t pid;                      /* 0: it has ended */
};

struct ts_snapshot_cut {
	char *journal_path;
	int journal_fd; /* -1: there is none. Keeps what it has when it is replaced */
	uint64_t journal_end;
	struct ts_block_open open;
	struct ts_positions positions; /* of the journal */
	struct ts_decoder_faults faults;
	int trace_fd; /* the first open.trace_bytes bytes of it do not change. -1: there are none */
	/*
	 * What was in the areas, in blocks: those that others refer to, and rings. Part of it may
	 * be in the journal, too.
	 */
	struct ts_journal *preambles, *rings;
	struct ts_snapshot_area *areas;
	size_t area_count, area_capacity;
	uint64_t spooled_bytes; /* that blocks of journal and rings refer to, or more */
};

/* Each leaves a cut that can be released, also if it fails. */
int ts_snapshot_cut_recording(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
			      struct ts_error *err);
int ts_snapshot_cut_areas(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
			  struct ts_error *err);
void ts_snapshot_cut_release(struct ts_snapshot_cut *cut);

/* True if the rings of that area were read. */
bool ts_snapshot_cut_has(const struct ts_snapshot_cut *cut, uint64_t area);

/* True if its journal is still the one of the recording. */
bool ts_snapshot_cut_is_current(const struct ts_snapshot_cut *cut);

#endif
