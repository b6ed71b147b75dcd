/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording on disk: journal, decoder and trace (docs/live.md, section 6). Blocks go in at one
 * end; a thread decodes them into the trace. Survives kill -9 at any instant: open it again with
 * RESUME and continue.
 *
 * One thread appends; the decoder thread is internal.
 */
#ifndef TS_RECORD_RECORDING_RECORDING_H
#define TS_RECORD_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "live/journal.h"

struct ts_recording;

/* Go on with an existing journal; TS_ENOTFOUND where there is none. */
#define TS_RECORDING_RESUME 1u
/* fsync at checkpoints. */
#define TS_RECORDING_SYNC 2u
/* Drop argv, environment and string arguments. */
#define TS_RECORDING_REDACT 4u

struct ts_recording_options {
	unsigned int flags;
	uint64_t session;
	/* Bytes at which a checkpoint is made; 0: 64 MiB, less on small disks. */
	uint64_t journal_limit;
	/*
	 * Told from the decoder's thread when a WINDOW has closed and all its events are in the
	 * trace; block_area is the process's area id. May be NULL.
	 */
	void (*window_closed)(void *context, uint64_t area, const struct ts_block_window *opened,
			      const struct ts_block_window *closed);
	void *context;
};

/*
 * Makes T.sbt and T.sbt.journal, or goes on with them. TS_EIO where another recorder holds the lock
 * of T.sbt: the message names it. TS_EFORMAT with RESUME where journal and trace do not belong
 * together, TS_EVERSION where the journal is newer, TS_EINVAL where it is of an earlier boot of the
 * machine (use ts_recording_recover()).
 */
int ts_recording_open(struct ts_recording **ret_recording, const char *path,
		      const struct ts_recording_options *options, struct ts_error *err);

/* Appends a block to the journal. TS_ENOSPC leaves the journal whole; the block was not taken. */
int ts_recording_append(struct ts_recording *recording, struct ts_block *block, const void *payload,
			struct ts_error *err);

/* The same as a sink, for ts_area_drain(). */
struct ts_block_sink ts_recording_sink(struct ts_recording *recording);

/*
 * Gives a block to the decoder without the journal: what is counted as lost on a full disk (RING
 * blocks of TS_DRAIN_DISCARD, END). Only ahead of finish, or where losing it again in a crash is
 * right.
 */
int ts_recording_queue(struct ts_recording *recording, struct ts_block *block, const void *payload,
		       struct ts_error *err);

/*
 * The OPEN block in force: session, clock (measured with record/loop/counter_clock.h when the
 * recording was made), and when it began. Valid until close.
 */
const struct ts_block_open *ts_recording_origin(const struct ts_recording *recording);

/*
 * The trace that is being written: after RESUME behind a rotation it is the newest file. Borrowed.
 */
const char *ts_recording_path(const struct ts_recording *recording);

/*
 * Where a drain must go on for an area that the journal already knows (after RESUME): calls back
 * for each ring. False: not known.
 */
bool ts_recording_positions(struct ts_recording *recording, uint64_t area, uint64_t *ret_dictionary,
			    void (*ring)(void *context, uint32_t ring, uint64_t position,
					 uint64_t events, uint64_t dropped),
			    void *context);

/* The clock calibration in force: counter to ns of trace time, by the newest anchors. */
int64_t ts_recording_time(struct ts_recording *recording, uint64_t counter);

/*
 * Waits until all appended blocks are decoded, seals chunks, restarts the journal. TS_ENOSPC: there
 * is no room even so; nothing is lost, and it may be tried again. With `save` the file gets an
 * index, so that it is a finished trace until the next chunk. Frees journal space even on a full
 * disk, using the reserve.
 */
int ts_recording_checkpoint(struct ts_recording *recording, bool save, struct ts_error *err);

/* Finishes this trace, and goes on into a new file with the same open state (rotation). */
int ts_recording_rotate(struct ts_recording *recording, const char *new_path, struct ts_error *err);

/* Journal and trace bytes, and events stored so far. */
struct ts_recording_status {
	uint64_t journal_limit; /* a checkpoint is due after so much */
	uint64_t journal_bytes, trace_bytes, events, lost, measured, samples,
		decoded_bytes /* of this journal */;
	bool full; /* the disk was full at the last attempt */
	/* Of command streams, as in struct ts_decoder_counts. */
	uint64_t commands, blob_bytes, replayable_windows, failed_windows;
	char not_replayable[256];
};
void ts_recording_status(struct ts_recording *recording, struct ts_recording_status *ret_status);

/*
 * Decodes what is left, finishes the trace, deletes the journal. TS_ENOSPC: no room; the journal is
 * kept. May be tried again; else only close.
 */
int ts_recording_finish(struct ts_recording *recording, struct ts_error *err);

/* Frees it; without finish the journal stays, for a successor. Accepts NULL. */
void ts_recording_close(struct ts_recording *recording);
TS_DEFINE_AUTO(ts_recording, ts_recording_close);

/*
 * Makes a finished trace `to` of what a dead recorder left: `from` (T.sbt) with its journal and the
 * live areas of its session that are still there (through `drain`, may be NULL). Nothing of `from`
 * is changed.
 */
struct ts_recording_recovery {
	uint64_t events, lost, samples, journal_blocks, torn_bytes;
};
int ts_recording_recover(const char *from, const char *to,
			 int (*drain)(void *context, struct ts_recording *recording,
				      struct ts_error *err),
			 void *context, struct ts_recording_recovery *ret_recovery,
			 struct ts_error *err);

#endif
