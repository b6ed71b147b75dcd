/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded positions by area and ring. */
#include "record/recording/checkpoint_positions.h"

#include <stdlib.h>

#include "record/decode/decoder.h"

#define ENDED_AREAS 8192u

void ts_positions_release(struct ts_positions *positions)
{
	for (size_t i = 0; i < positions->count; i++)
		free(positions->areas[i].rings);
	free(positions->areas);
	ts_map_release(&positions->index);
	memset(positions, 0, sizeof(*positions));
}

const struct ts_area_positions *ts_positions_find(const struct ts_positions *positions,
						  uint64_t area)
{
	uint64_t index;

	return ts_map_get(&positions->index, area, &index) ? &positions->areas[index] : NULL;
}

static struct ts_area_positions *get_area(struct ts_positions *positions, uint64_t area)
{
	uint64_t index;

	if (ts_map_get(&positions->index, area, &index))
		return &positions->areas[index];
	if (ts_grow_array((void **)&positions->areas, &positions->capacity, positions->count + 1,
			  sizeof(*positions->areas)) ||
	    ts_map_put(&positions->index, area, positions->count))
		return NULL;
	positions->areas[positions->count] = (struct ts_area_positions){ .area = area };
	return &positions->areas[positions->count++];
}

static int set_ring(struct ts_area_positions *area, uint32_t ring,
		    const struct ts_ring_position *position)
{
	if (ring >= TS_LIVE_RING_LIMIT)
		return TS_OK;
	if (ts_grow_array((void **)&area->rings, &area->ring_capacity, (size_t)ring + 1,
			  sizeof(*area->rings)))
		return TS_ENOMEM;
	for (; area->ring_count <= ring; area->ring_count++)
		area->rings[area->ring_count] = (struct ts_ring_position){ 0 };
	area->rings[ring] = *position;
	return TS_OK;
}

struct state_reading {
	struct ts_area_positions *area;
	int result;
};

static void take_ring(void *context, uint32_t ring, uint64_t position, uint64_t events,
		      uint64_t dropped)
{
	struct state_reading *reading = context;
	struct ts_ring_position at = {
		.known = true, .position = position, .events = events, .dropped = dropped
	};

	if (!reading->result)
		reading->result = set_ring(reading->area, ring, &at);
}

/* Drops the older half of the ended areas. */
static int forget_ended(struct ts_positions *positions)
{
	size_t kept = 0, drop = positions->ended_count / 2;

	ts_map_clear(&positions->index);
	for (size_t i = 0; i < positions->count; i++) {
		struct ts_area_positions area = positions->areas[i];

		if (area.ended && drop) {
			free(area.rings);
			positions->ended_count--;
			drop--;
			continue;
		}
		positions->areas[kept] = area;
		if (ts_map_put(&positions->index, area.area, kept++))
			return TS_ENOMEM;
	}
	positions->count = kept;
	return TS_OK;
}

static int set_ended(struct ts_positions *positions, struct ts_area_positions *area, bool ended)
{
	if (ended && !area->ended)
		positions->ended_count++;
	else if (!ended && area->ended)
		positions->ended_count--;
	area->ended = ended;
	return positions->ended_count > ENDED_AREAS ? forget_ended(positions) : TS_OK;
}

static int take_state(struct ts_positions *positions, struct ts_area_positions *area,
		      const struct ts_block *block, const void *payload)
{
	struct state_reading reading = { .area = area };
	struct ts_state_positions state;

	if (!ts_state_read_positions(payload, block->bytes, &state, take_ring, &reading) ||
	    reading.result)
		return reading.result;
	area->dictionary = TS_MAX(area->dictionary, state.dictionary);
	return set_ended(positions, area, state.ended);
}

static bool is_about_positions(unsigned int type)
{
	return type == TS_BLOCK_AREA || type == TS_BLOCK_DICTIONARY || type == TS_BLOCK_RING ||
	       type == TS_BLOCK_STATE || type == TS_BLOCK_END;
}

int ts_positions_block(struct ts_positions *positions, const struct ts_block *block,
		       const void *payload)
{
	struct ts_area_positions *area;

	if (!block->area || !is_about_positions(block->type))
		return TS_OK;
	area = get_area(positions, block->area);
	if (!area)
		return TS_ENOMEM;
	area->announced |= block->type == TS_BLOCK_AREA;
	if (block->type == TS_BLOCK_AREA || block->type == TS_BLOCK_END)
		return set_ended(positions, area, block->type == TS_BLOCK_END);
	if (block->type == TS_BLOCK_STATE)
		return take_state(positions, area, block, payload);
	if (block->type == TS_BLOCK_DICTIONARY)
		area->dictionary = TS_MAX(area->dictionary, block->to);
	if (block->type == TS_BLOCK_RING)
		return set_ring(area, block->ring,
				&(struct ts_ring_position){ .known = true,
							    .position = block->to,
							    .events = block->events,
							    .dropped = block->dropped });
	return TS_OK;
}
