/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of the channel's writer for its recorder (docs/replay.md, section 2). */
#ifndef TS_AGENT_REPLAY_WAIT_H
#define TS_AGENT_REPLAY_WAIT_H

#include "agent/tracer.h"

/* Of the ring: for the last record, and for a PAD if it meets the ring's end. */
#define CHANNEL_RESERVE_BYTES 1024u

/* What a writer may wait for. */
struct channel_room {
	bool (*has_space)(struct core *core, uint64_t bytes);
	uint64_t (*progress)(struct core *core); /* changes when the recorder frees some */
};
extern const struct channel_room channel_ring, channel_spool;

/* Waits until there is space. Returns why there will be none, or NULL. */
const char *channel_wait(struct core *core, const struct channel_room *room, uint64_t bytes);

/* True while a recorder drains the area, or is about to. */
bool channel_has_recorder(const struct core *core);

/* Wakes it. */
void channel_nudge(struct core *core);

#endif
