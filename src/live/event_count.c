/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events by walking the records stored since the last look. Continues from positions whose
 * event count the recorder or the target has published (docs/live.md, section 2.2).
 */
#include "live/event_count.h"

#include <errno.h>
#include <stdlib.h>

#include "live/area_internal.h"
#include "live/records.h"

/* Attempts to catch up with a target that overwrites. */
#define MAX_ATTEMPTS 4u

struct ts_area_events {
	struct ts_area *area;
	uint64_t stored; /* at the last look */
};

/* One look at all rings. */
struct look {
	struct drain drain;
	uint64_t share; /* maximum bytes to walk per ring */
	struct ts_event_counts counts;
};

int ts_area_events_open(struct ts_area_events **ret_events, int directory_fd, const char *name,
			struct ts_error *err)
{
	TS_AUTO(ts_area_events) events = calloc(1, sizeof(*events));
	int result;

	if (!events)
		return ts_error_set(err, TS_ENOMEM, "area '%s': no memory", name);
	result = ts_area_open(&events->area, directory_fd, name, false, err);
	if (result)
		return result;
	*ret_events = TS_STEAL(events);
	return TS_OK;
}

void ts_area_events_close(struct ts_area_events *events)
{
	if (!events)
		return;
	ts_area_close(events->area);
	free(events);
}

/* ---- one ring ---- */

static bool has_news(const struct ts_area *area, uint32_t index)
{
	const struct ring *ring = &area->rings[index];
	const struct ts_live_ring *entry = &area->directory[index];

	if (entry->bytes == 0 || (ring->flags & RING_DAMAGED))
		return false;
	return !(ring->flags & RING_SEEN) || entry->head != ring->position;
}

/* Copies the ring's bytes from its position on; false: the file ends too early. */
static bool copy_bytes(struct ts_area *area, const struct ring *ring, size_t bytes)
{
	uint64_t at = ring->position & (ring->bytes - 1);
	size_t first = TS_MIN(bytes, (size_t)(ring->bytes - at));

	if (live_read(area->fd, area->buffer, first, ring->offset + at) != (ssize_t)first)
		return false;
	return first == bytes || live_read(area->fd, area->buffer + first, bytes - first,
					   ring->offset) == (ssize_t)(bytes - first);
}

/*
 * Moves the ring's position after the last complete copied record. False: the bytes are not valid
 * records.
 */
static bool walk(struct ts_area *area, struct ring *ring, size_t bytes)
{
	struct ts_records records = { .data = area->buffer, .bytes = bytes };
	enum ts_records_stop stop;

	while ((stop = ts_records_walk(&records)) == TS_RECORDS_THREAD)
		ts_records_skip(&records);
	ring->position += records.at;
	ring->events += records.events;
	return stop != TS_RECORDS_BAD && records.at;
}

/* Walks up to the share. The target's own count covers what it overwrites meanwhile. */
static int walk_ring(struct look *look, uint32_t index, uint64_t *head)
{
	struct ts_area *area = look->drain.area;
	struct ring *ring = &area->rings[index];
	unsigned int attempts = 0;
	uint64_t left = look->share;

	while (ring->position < *head && left >= RING_PIECE_LEAST && attempts < MAX_ATTEMPTS) {
		uint64_t from = ring->position;
		size_t bytes = (size_t)TS_MIN(TS_MIN(*head - from, left), RING_PIECE_BYTES);
		bool lost_sight, complete;
		int result = live_grow_buffer(area, bytes, look->drain.err);

		if (result)
			return result;
		complete = copy_bytes(area, ring, bytes);
		result = live_look_again(&look->drain, index, head, &lost_sight);
		if (result || lost_sight)
			return result;
		if (ring->position != from) {
			attempts++;
			continue;
		}
		if (!complete || !walk(area, ring, bytes)) {
			ring->flags |= RING_DAMAGED;
			return TS_OK;
		}
		left -= TS_MIN(left, (uint64_t)bytes);
	}
	return TS_OK;
}

/* Estimates the events between position and head from the size of those before. */
static uint64_t estimate(const struct ring *ring, uint64_t head)
{
	uint64_t rest = head > ring->position ? TS_MIN(head - ring->position, ring->bytes) : 0;

	if (ring->position == 0)
		return 0;
	return (uint64_t)((double)rest * (double)ring->events / (double)ring->position);
}

static int look_at_ring(struct look *look, uint32_t index)
{
	struct ts_area *area = look->drain.area;
	struct ring *ring = &area->rings[index];
	uint64_t head = area->directory[index].head;
	const char *fault = NULL;
	int result = live_look(&look->drain, index, &area->directory[index], &head, &fault);

	if (result == TS_ENOTFOUND)
		result = TS_OK;
	else if (!result && fault)
		ring->flags |= RING_DAMAGED;
	else if (!result)
		result = walk_ring(look, index, &head);
	if (result || (ring->flags & RING_DAMAGED) || ring->position >= head)
		return result;
	look->counts.stored += estimate(ring, head);
	/* If no record so far was an event, expect none: a channel has many such records. */
	look->counts.estimated |= ring->events || !ring->position;
	return TS_OK;
}

/* ---- the area ---- */

static int read_directory(struct look *look)
{
	struct ts_area *area = look->drain.area;
	size_t bytes = (size_t)area->control.rings * TS_LIVE_ENTRY_BYTES;
	int result = live_grow_rings(area, area->control.rings, look->drain.err);

	if (result || bytes == 0)
		return result;
	if (live_read(area->fd, area->directory, bytes, TS_LIVE_DIRECTORY) != (ssize_t)bytes)
		return live_condemn_area(area, look->drain.err, "cut inside its ring directory");
	return TS_OK;
}

static void divide(struct look *look, uint64_t limit_bytes)
{
	const struct ts_area *area = look->drain.area;
	uint64_t rings = 0;

	for (uint32_t i = 0; i < area->control.rings; i++)
		rings += has_news(area, i);
	look->share = TS_MAX(limit_bytes / TS_MAX(rings, 1u), (uint64_t)RING_PIECE_LEAST);
}

static int look_at_rings(struct look *look)
{
	struct ts_area *area = look->drain.area;
	int result = TS_OK;

	for (uint32_t i = 0; i < area->control.rings && !result; i++) {
		if (has_news(area, i))
			result = look_at_ring(look, i);
		look->counts.stored += area->rings[i].events;
		look->counts.lost += area->directory[i].dropped;
	}
	return result;
}

int ts_area_events_look(struct ts_area_events *events, uint64_t limit_bytes,
			struct ts_event_counts *ret_counts, struct ts_error *err)
{
	struct ts_area *area = events->area;
	struct look look = { .drain = { .area = area, .err = err } };
	int result = ts_area_refresh(area, err);

	if (!result)
		result = read_directory(&look);
	if (result)
		return result;
	divide(&look, limit_bytes);
	result = look_at_rings(&look);
	if (result)
		return result;
	look.counts.lost += area->control.lost_nested + area->control.lost_no_ring;
	/* An earlier estimate was too high. */
	look.counts.stored = TS_MAX(look.counts.stored, events->stored);
	events->stored = look.counts.stored;
	*ret_counts = look.counts;
	return TS_OK;
}
