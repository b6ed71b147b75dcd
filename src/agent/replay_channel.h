/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the lossless channel (docs/replay.md, section 2). Called with the channel's lock held
 * and signals blocked.
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

#endif
