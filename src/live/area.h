/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live area seen from outside: read with pread, never mapped, never trusted (docs/live.md, sections
 * 2, 4.2 and 7). Gives what is new as journal blocks and frees ring space once these are stored.
 * Knows nothing of traces, windows or policies.
 */
#ifndef TS_LIVE_AREA_H
#define TS_LIVE_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "live/journal.h"
#include "live/layout.h"

struct ts_area;

/* `writable` 0: for looking only (ps, recover of a file that is not ours to change). */
int ts_area_open(struct ts_area **ret_area, int directory_fd, const char *name, bool writable,
		 struct ts_error *err);
void ts_area_close(struct ts_area *area);
TS_DEFINE_AUTO(ts_area, ts_area_close);

/* Reads the control block anew. A truncated file or a control block that changed its identity: damaged. */
int ts_area_refresh(struct ts_area *area, struct ts_error *err);

/* The control block as last read; texts are NUL-terminated here whatever the target wrote. */
const struct ts_live_control *ts_area_control(const struct ts_area *area);

/* Name of its file; the file's id, to notice an unlinked or replaced one. */
const char *ts_area_name(const struct ts_area *area);

/* Writes one word of the control block's recorder part (offsetof(...), 4 or 8 bytes). */
int ts_area_set(struct ts_area *area, size_t offset, uint64_t value, unsigned int bytes,
		struct ts_error *err);

/* Where a predecessor stopped, before the first drain. */
void ts_area_resume_dictionary(struct ts_area *area, uint64_t position);
void ts_area_resume_ring(struct ts_area *area, uint32_t ring, uint64_t position, uint64_t events,
			 uint64_t dropped);

#define TS_DRAIN_FINAL 1u   /* the target is gone: one pass must take all there is */
#define TS_DRAIN_DISCARD 2u /* free the space without storing: RING blocks carry no bytes */

struct ts_drain_result {
	uint64_t bytes;   /* ring bytes taken */
	uint64_t events;  /* events in them */
	uint64_t dropped; /* newly seen in `dropped` counters and overwritten */
	uint64_t fill;    /* the fullest ring was so many 1/256ths full */
	uint32_t rings;   /* that gave something */
	uint32_t damaged; /* rings that are damaged by now */
};

/*
 * Takes all that is new: DICTIONARY blocks first, then RING blocks in the order that section 4.2
 * asks for, one LOSS block when a ring turns out damaged. A RING block without bytes is also given
 * where only `dropped` or the overwritten count has changed. With TS_DRAIN_DISCARD the RING blocks have
 * bytes 0 but from, to and events as usual, so that the encoder counts the loss.
 * An error of the sink is returned and the space of that block is not freed.
 */
int ts_area_drain(struct ts_area *area, unsigned int flags, const struct ts_block_sink *sink,
		  struct ts_drain_result *ret_result, struct ts_error *err);

#endif
