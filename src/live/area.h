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
 * `writable` false: read-only (ps, recover of a file that must not change); somebody else may be
 * draining it. TS_EVERSION: the layout is newer than this program.
 */
int ts_area_open(struct ts_area **ret_area, int directory_fd, const char *name, bool writable,
		 struct ts_error *err);
void ts_area_close(struct ts_area *area);
TS_DEFINE_AUTO(ts_area, ts_area_close);

/*
 * Rereads the control block; ts_area_drain() begins with it. TS_EFORMAT: the file is truncated or
 * the control block belongs to another area. The area is then damaged, permanently.
 */
int ts_area_refresh(struct ts_area *area, struct ts_error *err);

/* Why the area is damaged; NULL: it is not. */
const char *ts_area_damage(const struct ts_area *area);

/* The control block as last read; texts are NUL-terminated here whatever the target wrote. */
const struct ts_live_control *ts_area_control(const struct ts_area *area);

/* Name of its file. */
const char *ts_area_name(const struct ts_area *area);

/*
 * Takes the drainer's lock, held until close. TS_EIO: another process holds it. ts_area_drain() of
 * a writable area takes it itself; commands that only set words need no lock.
 */
int ts_area_lock(struct ts_area *area, struct ts_error *err);

/* Writes one of the recorder's words in the control block (offsetof(...), 4 or 8 bytes). */
int ts_area_set(struct ts_area *area, size_t offset, uint64_t value, unsigned int bytes,
		struct ts_error *err);

/* Leaves a text, truncated, that the target prints on its standard error at exit. */
void ts_area_notify(struct ts_area *area, const char *text);

/*
 * Set where a predecessor stopped, according to its journal. Call before the first drain, which
 * fails if memory ran out here. Rings that no journal knows begin at `consumed`, or at the oldest
 * bytes left.
 */
void ts_area_resume_dictionary(struct ts_area *area, uint64_t position);
void ts_area_resume_ring(struct ts_area *area, uint32_t index, uint64_t position, uint64_t events,
			 uint64_t dropped);

/* Flags of RING blocks (docs/live.md, section 6). */
#define TS_RING_THREAD 1u   /* the payload begins with a THREAD record outside [from, to) */
#define TS_RING_START 2u    /* no bytes; another recording reported `events` and `dropped` */
#define TS_RING_WITHHELD 4u /* no bytes; the events may have texts that are not to be recorded */

#define TS_DRAIN_FINAL 1u    /* the target is gone: one pass must drain everything */
#define TS_DRAIN_DISCARD 2u  /* count only: RING blocks carry no bytes, nothing is published */
#define TS_DRAIN_WITHHOLD 8u /* with DISCARD: the reason, TS_RING_WITHHELD */
#define TS_DRAIN_HOLD 4u     /* skip channels, whose writers wait (docs/replay.md, section 2) */

struct ts_drain_result {
	uint64_t bytes;    /* ring bytes drained */
	uint64_t events;   /* events in them */
	uint64_t dropped;  /* newly seen in `dropped` counters and overwritten */
	uint64_t fill;     /* of the fullest ring, in 1/256 */
	uint32_t rings;    /* that had new data */
	uint32_t damaged;  /* damaged rings so far */
	uint32_t unsteady; /* that changed too fast: the next pass has the rest */
	bool held;         /* TS_DRAIN_HOLD: something was left */
};

/*
 * Drains everything new: DICTIONARY blocks first, then RING blocks in the order of section 4.2, and
 * one LOSS block when a ring or the area proves damaged. If only `dropped` or the overwritten count
 * changed, the RING block has no bytes. With TS_DRAIN_DISCARD the RING blocks have bytes 0 but
 * from, to and events as usual, so that the decoder counts the loss. An error of the sink is
 * returned, and the space of that block is not freed: drain again once the sink works. A damaged
 * area yields no more blocks and no error (ts_area_damage()). *ret_result (may be NULL) is valid
 * even on error.
 */
int ts_area_drain(struct ts_area *area, unsigned int flags, const struct ts_block_sink *sink,
		  struct ts_drain_result *ret_result, struct ts_error *err);

#endif
