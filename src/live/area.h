/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live area from outside: read with pread, never mapped, never trusted (docs/live.md, sections 2,
 * 4.2 and 7). Returns new data as journal blocks, and frees ring space once these are stored.
 */
#ifndef TS_LIVE_AREA_H
#define TS_LIVE_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "live/journal.h"
#include "live/local/live_records.h"

struct ts_area;

/*
 * `writable` false: for looking only (ps, recover of a file that is not ours to change).
 * TS_EVERSION for a layout that is newer than this program.
 */
int ts_area_open(struct ts_area **ret_area, int directory_fd, const char *name, bool writable,
		 struct ts_error *err);
void ts_area_close(struct ts_area *area);
TS_DEFINE_AUTO(ts_area, ts_area_close);

/*
 * Reads the control block anew; ts_area_drain() begins with it. TS_EFORMAT where the file is cut or
 * the control block has become another: the area is damaged, and stays so.
 */
int ts_area_refresh(struct ts_area *area, struct ts_error *err);

/* Why the area is damaged, NULL while it is not. */
const char *ts_area_damage(const struct ts_area *area);

/* The control block as last read; texts are NUL-terminated here whatever the target wrote. */
const struct ts_live_control *ts_area_control(const struct ts_area *area);

/* Name of its file. */
const char *ts_area_name(const struct ts_area *area);

/*
 * The lock of the one who drains, kept until close. TS_EIO where another has it. Drains of a
 * writable area take it themselves; verbs that only set words need none.
 */
int ts_area_lock(struct ts_area *area, struct ts_error *err);

/* Writes one word of the control block's recorder part (offsetof(...), 4 or 8 bytes). */
int ts_area_set(struct ts_area *area, size_t offset, uint64_t value, unsigned int bytes,
		struct ts_error *err);

/*
 * Where a predecessor stopped, by its journal; before the first drain, which fails if there was no
 * memory for it. Rings that no journal knows begin at `consumed`, or at the oldest bytes that are
 * left.
 */
void ts_area_resume_dictionary(struct ts_area *area, uint64_t position);
void ts_area_resume_ring(struct ts_area *area, uint32_t index, uint64_t position, uint64_t events,
			 uint64_t dropped);

/* Flags of RING blocks (docs/live.md, section 6). */
#define TS_RING_THREAD 1u /* the payload begins with a THREAD record that is not of [from, to) */
#define TS_RING_START 2u  /* no bytes; `events` and `dropped` were told by another recording */

#define TS_DRAIN_FINAL 1u   /* the target is gone: one pass must take all there is */
#define TS_DRAIN_DISCARD 2u /* count only: RING blocks carry no bytes, nothing is published */
#define TS_DRAIN_HOLD                                                               \
	4u /* leaves channels alone, whose writers wait (docs/replay.md, section 2) \
	    */

struct ts_drain_result {
	uint64_t bytes;   /* ring bytes taken */
	uint64_t events;  /* events in them */
	uint64_t dropped; /* newly seen in `dropped` counters and overwritten */
	uint64_t fill;    /* the fullest ring was so many 1/256ths full */
	uint32_t rings;   /* that gave something */
	uint32_t damaged; /* rings that are damaged by now */
	bool held;        /* TS_DRAIN_HOLD: something was left */
};

/*
 * Takes all that is new: DICTIONARY blocks first, then RING blocks in the order that section 4.2
 * asks for, one LOSS block when a ring, or the area, turns out damaged. A RING block without bytes
 * is also given where only `dropped` or the overwritten count has changed. With TS_DRAIN_DISCARD
 * the RING blocks have bytes 0 but from, to and events as usual, so that the decoder counts the
 * loss. An error of the sink is returned and the space of that block is not freed: drain again when
 * the sink is well. Of a damaged area nothing more is taken, without an error (ts_area_damage()).
 * *ret_result (may be NULL) says what was taken, also before an error.
 */
int ts_area_drain(struct ts_area *area, unsigned int flags, const struct ts_block_sink *sink,
		  struct ts_drain_result *ret_result, struct ts_error *err);

#endif
