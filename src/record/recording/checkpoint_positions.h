/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far each area is in the journal: where a drain continues after a restart. Derived from the
 * blocks alone.
 */
#ifndef TS_RECORD_RECORDING_CHECKPOINT_POSITIONS_H
#define TS_RECORD_RECORDING_CHECKPOINT_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "live/journal.h"

struct ts_ring_position {
	bool known;
	uint64_t position, events, dropped;
};

struct ts_area_positions {
	uint64_t area;
	bool announced; /* its AREA block is there */
	bool ended;
	uint64_t dictionary;
	struct ts_ring_position *rings;
	size_t ring_count, ring_capacity;
};

struct ts_positions {
	struct ts_map index; /* area to index */
	struct ts_area_positions *areas;
	size_t count, capacity, ended_count;
};

/* A zeroed struct is empty. */
void ts_positions_release(struct ts_positions *positions);

/*
 * Updates positions from a block: AREA, DICTIONARY, RING, STATE, END. Keeps only the newest few
 * thousand ended areas: nobody asks for older ones. 0 or TS_ENOMEM.
 */
int ts_positions_block(struct ts_positions *positions, const struct ts_block *block,
		       const void *payload);

/* NULL: unknown. */
const struct ts_area_positions *ts_positions_find(const struct ts_positions *positions,
						  uint64_t area);

#endif
