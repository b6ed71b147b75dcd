/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the lossless channel (docs/replay.md, section 2). Called with the channel's lock held
 * and signals blocked, but for channel_lock_briefly().
 */
#ifndef TS_AGENT_REPLAY_CHANNEL_H
#define TS_AGENT_REPLAY_CHANNEL_H

#include "agent/tracer.h"

struct channel_room;

/* The core whose channel the calling thread has locked; NULL: none, or the channel is broken. */
struct core *channel_core(void);
bool channel_is_broken(const struct channel *channel);

/* Waits until there is space. False: the channel is broken now. */
bool channel_reserve(struct core *core, const struct channel_room *room, uint64_t bytes);

/*
 * A record: waits for its space in the ring (NULL: the channel is broken now); writes its first two
 * words, and returns where the others go; after ring_advance(), wakes the recorder if need be.
 */
struct writer *channel_enter(struct core *core, uint64_t words);
uint64_t *channel_begin(const struct writer *writer, unsigned int kind, uint64_t words);
void channel_leave(struct core *core);

/*
 * Locks for so many bytes of records, with their details and our own bytes, but without a system
 * call: signals are not blocked. If a handler interrupts it and uses the channel on the same
 * thread, the channel is broken, and says so. NULL: ts_replay_lock() is needed, to wait or to set
 * up.
 */
#define CHANNEL_BRIEF_BYTES 16384u
struct core *channel_lock_briefly(uint64_t bytes);
void channel_unlock_briefly(struct core *core);
/*
 * Such a handler forks: before, and in the child, where what is left of the record goes into
 * private memory. Call the latter when the ring directory is private.
 */
void channel_keep(void);
void channel_bury(struct core *core);
/*
 * The process exits, or the calling thread. If it does in such a handler, what was interrupted does
 * not go on.
 */
void channel_abandon(void);

#endif
