/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory entries of rings (docs/live.md, sections 2.2, 4.2 and 7): reads them while the target
 * writes them, accepts what two reads agree on, validates every number, and computes which range of
 * a ring can be drained.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "live/area_internal.h"

/* Reads of an entry until two agree. */
#define ENTRY_READS 16

/* An event has at least two words. */
#define LEAST_EVENT_BYTES 16u

/* ---- reading ---- */

static const struct ts_live_oldest *slot_in_force(const struct ts_live_ring *entry)
{
	return entry->turn & 1 ? &entry->slot_1 : &entry->slot_0;
}

/* True if two consecutive reads are consistent. */
static bool do_agree(const struct ts_live_ring *first, const struct ts_live_ring *second)
{
	return first->turn == second->turn && first->head <= second->head &&
	       first->offset == second->offset && first->bytes == second->bytes &&
	       memcmp(slot_in_force(first), slot_in_force(second), sizeof(struct ts_live_oldest)) ==
		       0;
}

static bool is_consumed_complete(const struct ts_live_ring *entry)
{
	return entry->consumed_check ==
	       ts_live_consumed_check(entry->consumed, entry->consumed_events, entry->consumed_tid,
				      entry->consumed_serial);
}

static bool is_consumed_valid(const struct ts_live_ring *entry)
{
	return entry->consumed > 0 && entry->consumed % 8 == 0 && entry->consumed <= entry->head &&
	       is_consumed_complete(entry);
}

/*
 * True if it is certain up to where the ring is drained, by us or by somebody else: that one may
 * have been storing it, or have drained what was added after the head was read.
 */
static bool is_consumed_certain(const struct ts_area *area, const struct ts_live_ring *entry,
				uint64_t head)
{
	return area->writable || (!entry->consumed && !entry->consumed_check) ||
	       (is_consumed_complete(entry) && entry->consumed <= head);
}

static int read_entry_once(struct drain *drain, uint32_t index, struct ts_live_ring *entry)
{
	struct ts_area *area = drain->area;
	ssize_t got = live_read(area->fd, entry, sizeof(*entry),
				TS_LIVE_DIRECTORY + (uint64_t)index * TS_LIVE_ENTRY_BYTES);

	if (got < 0)
		return ts_error_errno(drain->err, errno, "area '%s': cannot read", area->name);
	if (got < (ssize_t)sizeof(*entry))
		return live_condemn_area(area, drain->err, "cut inside its ring directory");
	return TS_OK;
}

/*
 * Combines the head of the first with the rest of the second of two reads that agree: bytes below
 * that head are certainly written. *ret_steady is false if the target changes the entry too fast,
 * or is hostile.
 */
static int read_entry(struct drain *drain, uint32_t index, const struct ts_live_ring *first,
		      struct ts_live_ring *ret_entry, bool *ret_steady)
{
	struct ts_live_ring before, after;
	int result = TS_OK;

	*ret_steady = false;
	if (first)
		before = *first;
	else
		result = read_entry_once(drain, index, &before);
	for (int i = 0; i < ENTRY_READS && !result && !*ret_steady; i++) {
		/* Of a dead target, what is not certain after so many reads is left by a crash. */
		bool is_last = drain->flags & TS_DRAIN_FINAL && i == ENTRY_READS - 1;

		result = read_entry_once(drain, index, &after);
		if (result)
			break;
		if (do_agree(&before, &after) &&
		    (is_last || is_consumed_certain(drain->area, &after, before.head))) {
			*ret_entry = after;
			ret_entry->head = before.head;
			*ret_steady = true;
		}
		before = after;
	}
	return result;
}

/* Bytes below this are gone: overwritten in flight mode, or freed by the drainer. */
static struct ts_live_oldest lowest_of(const struct ts_live_ring *entry)
{
	struct ts_live_oldest lowest = *slot_in_force(entry);

	if (is_consumed_valid(entry) && entry->consumed > lowest.position) {
		lowest.position = entry->consumed;
		lowest.events = entry->consumed_events;
		lowest.tid = entry->consumed_tid;
		lowest.serial = entry->consumed_serial;
		memcpy(lowest.name, entry->consumed_name, sizeof(lowest.name));
	}
	return lowest;
}

static struct ring_thread thread_of(const struct ts_live_oldest *oldest)
{
	struct ring_thread thread = { .tid = oldest->tid, .serial = oldest->serial };

	memcpy(thread.name, oldest->name, sizeof(thread.name));
	return thread;
}

/* ---- validation: returns a fault as text; nothing has changed then ---- */

static const char *placement_fault(const struct ts_area *area, const struct ts_live_ring *entry)
{
	uint64_t pool = area->control.pool, pool_bytes;
	struct stat status;

	if (entry->bytes < TS_LIVE_RING_LEAST || entry->bytes > TS_LIVE_RING_GREATEST ||
	    (entry->bytes & (entry->bytes - 1)))
		return "it has a bad size";
	if (fstat(area->fd, &status) || (uint64_t)status.st_size < pool)
		return "the file has no pool";
	pool_bytes = (uint64_t)status.st_size - pool;
	if (entry->offset < pool || entry->offset % 8 || entry->offset - pool > pool_bytes ||
	    pool_bytes - (entry->offset - pool) < entry->bytes)
		return "it lies outside the pool";
	if (area->pool_taken + entry->bytes > pool_bytes)
		return "the rings are larger than the file";
	return NULL;
}

/* First read: sets where to begin. */
static void adopt(struct ring *ring, const struct ts_live_ring *entry)
{
	struct ts_live_oldest lowest = lowest_of(entry);
	uint64_t resumed_at = ring->position;

	ring->flags |= RING_SEEN | RING_UNTOLD;
	ring->offset = entry->offset;
	ring->bytes = entry->bytes;
	if (ring->flags & RING_RESUMED) {
		if (lowest.position > resumed_at)
			return;
		/* Walk over what the journal already has, to find the thread of the records that
		 * follow. */
		ring->silent_to = resumed_at;
		ring->position = lowest.position;
		ring->thread = thread_of(&lowest);
		if (lowest.position < resumed_at)
			ring->events = lowest.events;
	} else if (is_consumed_valid(entry)) {
		/* Another recording has everything below, and has reported its losses. */
		ring->flags |= RING_STARTS;
		ring->position = entry->consumed;
		ring->events = ring->reported_events = entry->consumed_events;
		ring->reported_dropped = entry->dropped;
		ring->thread.tid = entry->consumed_tid;
		ring->thread.serial = entry->consumed_serial;
		memcpy(ring->thread.name, entry->consumed_name, sizeof(ring->thread.name));
	}
}

/* Skips bytes that are gone. Their events are lost: E(lowest) - E(position). */
static const char *raise_position(struct ring *ring, const struct ts_live_ring *entry)
{
	struct ts_live_oldest lowest = lowest_of(entry);
	uint64_t gone = lowest.position - ring->position;

	if (lowest.position <= ring->position)
		return NULL;
	if (lowest.position % 8 || lowest.position > entry->head)
		return "its oldest position is out of range";
	if (lowest.events < ring->events || lowest.events - ring->events > gone / LEAST_EVENT_BYTES)
		return "its event count is impossible";
	ring->position = lowest.position;
	ring->events = lowest.events;
	ring->thread = thread_of(&lowest);
	ring->flags |= RING_UNTOLD;
	return NULL;
}

static const char *check_entry(struct ts_area *area, uint32_t index,
			       const struct ts_live_ring *entry)
{
	struct ring ring = area->rings[index];
	bool is_new = !(ring.flags & RING_SEEN);
	const char *fault;

	if (is_new)
		fault = placement_fault(area, entry);
	else
		fault = entry->offset != ring.offset || entry->bytes != ring.bytes ? "it has moved"
										   : NULL;
	if (fault)
		return fault;
	if (is_new)
		adopt(&ring, entry);
	fault = raise_position(&ring, entry);
	if (fault)
		return fault;
	if (entry->head % 8 || entry->head < ring.position || entry->head < ring.silent_to)
		return "its head moved backwards";
	if (entry->head - ring.position > ring.bytes)
		return "its head is too far ahead";
	ring.turn = entry->turn;
	ring.dropped = TS_MAX(ring.dropped, entry->dropped);
	if (is_new)
		area->pool_taken += ring.bytes;
	area->rings[index] = ring;
	return NULL;
}

int live_look(struct drain *drain, uint32_t index, const struct ts_live_ring *first,
	      uint64_t *ret_head, const char **ret_fault)
{
	*ret_fault = "";
	for (int reading = 0; reading < 2 && *ret_fault; reading++) {
		struct ts_live_ring entry;
		bool is_steady;
		int result = read_entry(drain, index, reading ? NULL : first, &entry, &is_steady);

		if (result)
			return result;
		if (!is_steady) {
			*ret_fault = "its entry keeps changing";
			/* Use a dead target's entry; a fast one's waits for the next pass. */
			return drain->flags & TS_DRAIN_FINAL ? TS_OK : TS_ENOTFOUND;
		}
		*ret_fault = check_entry(drain->area, index, &entry);
		*ret_head = entry.head;
	}
	return TS_OK;
}

int live_look_again(struct drain *drain, uint32_t index, uint64_t *ret_head, bool *ret_lost_sight)
{
	struct ring *ring = &drain->area->rings[index];
	struct ts_live_ring entry;
	const char *fault;
	int result = read_entry_once(drain, index, &entry);

	*ret_lost_sight = false;
	if (result)
		return result;
	if (entry.turn == ring->turn && is_consumed_certain(drain->area, &entry, entry.head) &&
	    lowest_of(&entry).position <= ring->position)
		return TS_OK;
	result = live_look(drain, index, NULL, ret_head, &fault);
	*ret_lost_sight = result == TS_ENOTFOUND || (!result && fault);
	return result == TS_ENOTFOUND ? TS_OK : result;
}
