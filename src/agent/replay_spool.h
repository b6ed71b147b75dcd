/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool from its writer's side (docs/live.md, sections 2.5 and 4.5). Called with the channel's
 * lock held and signals blocked.
 */
#ifndef TS_AGENT_REPLAY_SPOOL_H
#define TS_AGENT_REPLAY_SPOOL_H

#include "agent/tracer.h"

/* Creates it on first use. False: there is none, and there will be none. */
bool spool_open(struct core *core);

/* False: the writer must wait for the recorder. */
bool spool_has_space(struct spool *spool, uint64_t bytes);

/* Changes when the recorder gets on. */
uint64_t spool_progress(const struct spool *spool);

/*
 * Memory for a part, and its position. The caller has ensured that there is space. NULL: shared
 * memory is full.
 */
char *spool_place(struct core *core, uint64_t bytes, uint64_t *ret_position);

/* Creates the files for bulk on first use. False: there are none, and there will be none. */
bool spool_has_lanes(struct core *core);

/*
 * For bulk, without waiting: a part in one of the lanes, which counts as used from then on. The
 * word has lane and position. False: there is no space. Then, without the lock, its bytes; false:
 * shared memory is full.
 */
bool spool_reserve(struct core *core, uint64_t bytes, uint64_t *ret_word);
bool spool_write(const struct core *core, uint64_t word, uint64_t offset, const void *data,
		 uint64_t bytes);

/* No record will refer to the part: gives its memory back. */
void spool_discard(const struct core *core, uint64_t word, uint64_t bytes);
/*
 * Nor to anything behind this position, where a part ends or bulk began: what nobody refers to is
 * never released by the recorder.
 */
void spool_retreat(struct spool *spool, uint64_t position);

/* The part is complete: what follows may refer to it; then, that its record is in the ring. */
void spool_advance(struct spool *spool, uint64_t position, uint64_t bytes);
void spool_referred(struct spool *spool);
void spool_referred_to(struct spool *spool, uint64_t position);

#endif
