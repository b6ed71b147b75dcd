/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes blocks of a journal into rows of a trace (docs/live.md, sections 3 and 6). Ring bytes are
 * untrusted, and damage in one area affects no row of another. Single-threaded.
 */
#ifndef TS_RECORD_DECODE_DECODER_H
#define TS_RECORD_DECODE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/writer.h>

#include "base/memory.h"
#include "live/area_spool.h"
#include "live/journal.h"

struct ts_decoder;

/* What is known to be wrong with a journal, and with the trace that it continues. */
struct ts_decoder_faults {
	bool is_torn;              /* the end of the journal is damaged or incomplete */
	uint64_t lost_state_bytes; /* of a checkpoint's state, cut off at the end of the journal */
	bool lost_rows; /* the trace lacks some, perhaps of entities, which are written again */
	/* The highest id that the trace uses, by table; used if the journal lost the state. */
	int64_t used_ids[TS_TABLE_COUNT];
};

struct ts_decoder_options {
	const char *name; /* of the recording, for its source row */
	/* As in struct ts_recording_options. */
	void (*window_closed)(void *context, uint64_t area, const struct ts_block_window *opened,
			      const struct ts_block_window *closed);
	void *context;
	const struct ts_decoder_faults *faults; /* NULL: none is known. Borrowed */
	bool is_snapshot;         /* processes go on: what is under way in them is not lost */
	struct ts_spools *spools; /* bytes that records refer to; NULL: they are lost. Borrowed */
};

/* `options` may be NULL. */
int ts_decoder_new(struct ts_decoder **ret_decoder, const struct ts_decoder_options *options,
		   struct ts_error *err);
void ts_decoder_free(struct ts_decoder *decoder);
TS_DEFINE_AUTO(ts_decoder, ts_decoder_free);

/*
 * Sends rows to this writer (borrowed) from now on. `fresh`: the file is new, as after a rotation,
 * and lacks all entities known so far; `name` is then the name of its source.
 */
int ts_decoder_set_writer(struct ts_decoder *decoder, struct ts_writer *writer, bool fresh,
			  const char *name);

/*
 * Decodes one block; the first one must be OPEN. Fails with the writer's error, TS_ENOMEM, or
 * TS_EFORMAT and TS_EVERSION for an unusable OPEN. Damage in other blocks is counted and reported
 * in the trace.
 */
int ts_decoder_block(struct ts_decoder *decoder, const struct ts_block *block, const void *payload,
		     struct ts_error *err);

/* Counts an unreadable part of the journal. */
void ts_decoder_damage(struct ts_decoder *decoder, uint64_t bytes);

/* While held, defers reports of closed windows: their EXPORT blocks may follow. */
void ts_decoder_hold(struct ts_decoder *decoder, bool held);

/* Adds rows for everything counted so far; call before a flush of the writer. */
int ts_decoder_seal(struct ts_decoder *decoder);

/* Adds rows for spans and windows that are still open. No blocks may follow. */
int ts_decoder_finish(struct ts_decoder *decoder);

/*
 * Appends the blocks that, after an OPEN block, bring a new decoder into this one's state. Call
 * after a seal and a flush; later blocks belong after these.
 */
int ts_decoder_save_state(struct ts_decoder *decoder, const struct ts_block_sink *sink,
			  struct ts_error *err);

struct ts_decoder_counts {
	uint64_t events;          /* in the trace */
	uint64_t lost;            /* known to be missing from it */
	uint64_t lost_by_buffers; /* of them, found by this decoder: rings were too small or few */
	uint64_t outside;         /* of windows, hence not in the trace */
	uint64_t measured; /* rows of metrics written by this decoder; not included in events */
	uint64_t samples;  /* rows of `sample`; included in events only for marks and calls, which
			      have  rows of their own */
	/* Of command streams; not included in events. */
	uint64_t commands;
	uint64_t blob_bytes; /* before compression and deduplication */
	uint64_t replayable_windows, failed_windows;
	uint64_t checks, kept_checks; /* kept: with contents */
	char not_replayable[256];     /* why the last failed window failed; empty: none did */
};
void ts_decoder_counts(const struct ts_decoder *decoder, struct ts_decoder_counts *ret_counts);

/* ---- for ts_recording_positions(): positions in STATE blocks ---- */

struct ts_state_positions {
	uint64_t dictionary;
	uint32_t rings;
	bool ended;
};

/* Calls `ring` (may be NULL) for each ring. False: the payload is not the state of an area. */
bool ts_state_read_positions(const void *payload, size_t bytes,
			     struct ts_state_positions *ret_positions,
			     void (*ring)(void *context, uint32_t ring, uint64_t position,
					  uint64_t events, uint64_t dropped),
			     void *context);

#endif
