/* SPDX-License-Identifier: Apache-2.0 */
/* The ring under a writer. Only its owner calls these, with the writer closed. */
#ifndef TS_AGENT_RING_WRITE_H
#define TS_AGENT_RING_WRITE_H

#include "agent/tracer.h"

/* Where the bytes begin that are still wanted: behind all that was taken or freed. Borrowed. */
const struct ts_live_oldest *ring_oldest(struct writer *writer);

/* Commits a record or a pad that the caller has written at writer->at. */
void ring_advance(struct writer *writer, uint64_t bytes);

/*
 * Sets the limit anew for a record of `bytes`, which never crosses the ring's end. False where
 * there is no room; *ret_needed is then the position up to which the ring must be free.
 */
bool ring_extend(struct writer *writer, uint64_t oldest, uint64_t bytes, uint64_t *ret_needed);

/*
 * Flight mode: forgets the oldest records up to `needed` and a little more, counting them; the new
 * oldest position.
 */
uint64_t ring_free_oldest(struct writer *writer, uint64_t needed);

/* Free bytes of a ring, which need not be the caller's. */
uint64_t ring_free_bytes(const struct ts_live_ring *ring);

#endif
