/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a writer. Only its owner calls these, with the writer closed. */
#ifndef TS_AGENT_RING_WRITE_H
#define TS_AGENT_RING_WRITE_H

#include "agent/tracer.h"

/* Start of the bytes still in use: after everything drained or freed. Borrowed. */
const struct ts_live_oldest *ring_oldest(struct writer *writer);

/* Commits a record or a pad that the caller has written at writer->at. */
void ring_advance(struct writer *writer, uint64_t bytes);

/*
 * Extends the writer's limit for a record of `bytes`, which never crosses the ring's end. False: no
 * space; the ring must then be freed up to position *ret_needed.
 */
bool ring_extend(struct writer *writer, uint64_t oldest, uint64_t bytes, uint64_t *ret_needed);

/*
 * Flight mode: frees and counts the oldest records up to `needed` and a little more. Returns the
 * new oldest position.
 */
uint64_t ring_free_oldest(struct writer *writer, uint64_t needed);

/* Free bytes of any ring, not only the caller's. */
uint64_t ring_free_bytes(const struct ts_live_ring *ring);

#endif
