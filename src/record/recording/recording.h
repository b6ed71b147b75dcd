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

struct ts_decoder_faults;
struct ts_spools;
struct ts_recording;

/* Continue an existing journal; TS_ENOTFOUND: there is none. */
#define TS_RECORDING_RESUME 1u
/* fsync at checkpoints. */
#define TS_RECORDING_SYNC 2u
/* Drop argv, environment and string arguments. */
#define TS_RECORDING_REDACT 4u

struct ts_recording_options {
	unsigned int flags;
	uint64_t session;
	struct ts_rank rank; /* of all processes that have no other */
	/* Journal bytes that trigger a checkpoint; 0: 64 MiB, less on small disks. */
	uint64_t journal_limit;
	/*
	 * Called on the decoder thread when a WINDOW has closed and all its events are in the
	 * trace; `area` is the process's area id. May be NULL.
	 */
	void (*window_closed)(void *context, uint64_t area, const struct ts_block_window *opened,
			      const struct ts_block_window *closed);
	void *context;
	/* Where bytes are that records refer to; NULL: they are lost. Borrowed until close. */
	struct ts_spools *spools;
	/* For a recovery: what is wrong with trace and journal. May be NULL. Borrowed. */
	const struct ts_decoder_faults *faults;
};

/*
 * Creates T.sbt and T.sbt.journal, or continues them. TS_EIO: another recorder, which the message
 * names, holds the lock of T.sbt. With RESUME: TS_EFORMAT: journal and trace do not belong
 * together, or are damaged; TS_EVERSION: the journal is newer; TS_EINVAL: it is from an earlier
 * boot of the machine (use ts_recording_recover()).
 */
int ts_recording_open(struct ts_recording **ret_recording, const char *path,
		      const struct ts_recording_options *options, struct ts_error *err);

/* Appends a block to the journal. On TS_ENOSPC the journal is unchanged. */
int ts_recording_append(struct ts_recording *recording, struct ts_block *block, const void *payload,
			struct ts_error *err);

/* The same as a sink, for ts_area_drain(). */
struct ts_block_sink ts_recording_sink(struct ts_recording *recording);

/*
 * Passes a block to the decoder without the journal: losses counted on a full disk (RING blocks of
 * TS_DRAIN_DISCARD, END). Use only before finish, or if a crash may lose the block.
 */
int ts_recording_queue(struct ts_recording *recording, struct ts_block *block, const void *payload,
		       struct ts_error *err);

/*
 * The OPEN block: session, clock (measured with record/loop/counter_clock.h when the recording was
 * created), and start. Valid until close.
 */
const struct ts_block_open *ts_recording_origin(const struct ts_recording *recording);

/* Path of the trace being written: after a rotation the newest file. Borrowed. */
const char *ts_recording_path(const struct ts_recording *recording);

/*
 * Where to continue draining an area that the journal already knows (after RESUME): calls back for
 * each ring. False: unknown area.
 */
bool ts_recording_positions(struct ts_recording *recording, uint64_t area, uint64_t *ret_dictionary,
			    void (*ring)(void *context, uint32_t ring, uint64_t position,
					 uint64_t events, uint64_t dropped),
			    void *context);

/*
 * The areas that have no END block, as an array that the caller frees. After everything was drained
 * that is still there: areas that are gone, with what was not yet in the journal.
 */
int ts_recording_open_areas(struct ts_recording *recording, uint64_t **ret_areas, size_t *ret_count,
			    struct ts_error *err);
/* Why their events are lost. */
#define TS_RECORDING_AREA_GONE "its live area is gone, with what was not yet stored"

/* Converts a counter to ns of trace time, by the newest anchors. */
int64_t ts_recording_time(struct ts_recording *recording, uint64_t counter);

/*
 * Waits until all appended blocks are decoded, seals chunks, restarts the journal. With `save` the
 * file gets an index, so that it is a finished trace until the next chunk. Frees journal space even
 * on a full disk, using the reserve. TS_ENOSPC: not even the reserve is enough; nothing is lost,
 * and the caller may retry.
 */
int ts_recording_checkpoint(struct ts_recording *recording, bool save, struct ts_error *err);

/* Rotation: finishes this trace and continues in a new file with the same open state. */
int ts_recording_rotate(struct ts_recording *recording, const char *new_path, struct ts_error *err);

/* Journal and trace bytes, and events stored so far. */
struct ts_recording_status {
	uint64_t journal_limit; /* a checkpoint is due at this size */
	uint64_t journal_bytes, trace_bytes, events, lost, lost_by_buffers, measured, samples,
		decoded_bytes /* of this journal */;
	bool full; /* the last attempt found the disk full */
	/* Of command streams, as in struct ts_decoder_counts. */
	uint64_t commands, blob_bytes, replayable_windows, failed_windows, checks, kept_checks;
	char not_replayable[256];
};
void ts_recording_status(struct ts_recording *recording, struct ts_recording_status *ret_status);

/*
 * Decodes the rest of the journal, finishes the trace, deletes the journal. TS_ENOSPC: the disk is
 * full; the journal is kept. After an error, only a retry or close is allowed.
 */
int ts_recording_finish(struct ts_recording *recording, struct ts_error *err);

/* Frees it. Without finish the journal remains for a successor. Accepts NULL. */
void ts_recording_close(struct ts_recording *recording);
TS_DEFINE_AUTO(ts_recording, ts_recording_close);

/*
 * Creates a finished trace `to` from what a dead recorder left: `from` (T.sbt), its journal, and
 * the remaining live areas of its session (through `drain`, may be NULL). Does not change `from`.
 */
struct ts_recording_recovery {
	uint64_t events, lost, samples, journal_blocks, torn_bytes;
	uint64_t damaged_chunks, damaged_bytes; /* of the trace, left out: they have a loss row */
};

/*
 * Checks that a trace has a journal that ts_recording_recover() can use. TS_ENOTFOUND: it has none;
 * TS_EINVAL: what is there is not its own; TS_EFORMAT: its first block is damaged, so that only the
 * trace itself can be recovered.
 */
int ts_recording_check_journal(const char *trace, struct ts_error *err);
int ts_recording_recover(const char *from, const char *to,
			 int (*drain)(void *context, struct ts_recording *recording,
				      struct ts_error *err),
			 void *context, struct ts_recording_recovery *ret_recovery,
			 struct ts_error *err);

#endif
