/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drains one ring (docs/live.md, section 4.2): copies a piece of its bytes, cuts it after the last
 * complete record, appends a block, frees the space. A ring that a thread moved away from is
 * drained first; a stack of frames replaces recursion.
 *
 * A hostile target can only get its own ring declared damaged, or corrupt the order and number of
 * its own events. Every loop is bounded by a position that only grows, or by a count.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "live/area_internal.h"
#include "live/records.h"

/* Attempts to catch up with a target that overwrites. */
#define MAX_ATTEMPTS 8u

/* Copied bytes, and what the walk over them found. */
struct piece {
	unsigned char *data;
	size_t bytes;
	uint64_t events;
	struct ring_thread thread; /* after them */
	bool begins_with_thread;
	const char *fault;
	/* The ring to drain first (plus 1; 0: none), up to a position. */
	uint32_t waits_for;
	uint64_t waits_until;
};

/* ---- emitting blocks ---- */

static bool is_published(const struct ts_live_ring *entry, const struct ring *ring)
{
	if (ring->position == 0)
		return true;
	return entry->consumed == ring->position &&
	       entry->consumed_check == ts_live_consumed_check(ring->position, ring->events,
							       ring->thread.tid,
							       ring->thread.serial);
}

static bool may_publish(const struct drain *drain, const struct ring *ring)
{
	return drain->area->writable && !(drain->flags & TS_DRAIN_DISCARD) &&
	       ring->position >= ring->silent_to;
}

/* Frees ring space: everything below the position is in the journal. */
static int publish(struct drain *drain, uint32_t index)
{
	struct ts_area *area = drain->area;
	const struct ring *ring = &area->rings[index];
	struct ts_live_ring *entry = &area->directory[index];
	const size_t from = offsetof(struct ts_live_ring, consumed);
	char words[offsetof(struct ts_live_ring, reserved_1) -
		   offsetof(struct ts_live_ring, consumed)];
	ssize_t done;

	if (!may_publish(drain, ring) || is_published(entry, ring))
		return TS_OK;
	entry->consumed = ring->position;
	entry->consumed_events = ring->events;
	entry->consumed_tid = ring->thread.tid;
	entry->consumed_serial = ring->thread.serial;
	memcpy(entry->consumed_name, ring->thread.name, sizeof(entry->consumed_name));
	entry->consumed_check = ts_live_consumed_check(ring->position, ring->events,
						       ring->thread.tid, ring->thread.serial);
	memcpy(words, (const char *)entry + from, sizeof(words));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	do {
		done = pwrite(
			area->fd, words, sizeof(words),
			(off_t)(TS_LIVE_DIRECTORY + (uint64_t)index * TS_LIVE_ENTRY_BYTES + from));
	} while (done < 0 && errno == EINTR);
	if (done < 0)
		return ts_error_errno(drain->err, errno, "area '%s': cannot write", area->name);
	return TS_OK;
}

/* Puts a THREAD record in front of the bytes, in the space that the buffer reserves for it. */
static const unsigned char *put_thread(const struct ring *ring, unsigned char *data)
{
	struct ts_live_thread_record record = {
		.head = { .words = sizeof(record) / 8, .kind = TS_LIVE_THREAD },
		.tid = ring->thread.tid,
		.serial = ring->thread.serial,
		.dropped = ring->reported_dropped,
	};

	memcpy(record.name, ring->thread.name, sizeof(record.name));
	memcpy(data - sizeof(record), &record, sizeof(record));
	return data - sizeof(record);
}

static void count_given(struct drain *drain, struct ring *ring, const struct piece *piece)
{
	struct ts_drain_result *result = drain->result;

	result->bytes += piece->bytes;
	result->events += piece->events;
	result->dropped += ring->events - ring->reported_events;
	result->dropped += ring->dropped - ring->reported_dropped;
	result->rings += ring->pass != drain->area->pass;
	ring->pass = drain->area->pass;
}

/* Moves the position to the end of the piece. */
static void move_on(struct drain *drain, struct ring *ring, const struct piece *piece)
{
	ring->position += piece->bytes;
	ring->events += piece->events;
	ring->reported_events = ring->events;
	ring->reported_dropped = ring->dropped;
	if (piece->bytes == 0)
		return;
	ring->thread = piece->thread;
	if (drain->flags & TS_DRAIN_DISCARD)
		ring->flags |= RING_UNTOLD;
	else
		ring->flags &= ~(uint32_t)RING_UNTOLD;
}

/* Emits a RING block for the piece, which may have no bytes. */
static int give(struct drain *drain, uint32_t index, const struct piece *piece)
{
	struct ring *ring = &drain->area->rings[index];
	const unsigned char *payload = piece->data;
	struct ts_block block = {
		.type = TS_BLOCK_RING,
		.ring = index,
		.area = drain->area->control.area_id,
		.from = ring->position,
		.to = ring->position + piece->bytes,
		.events = ring->events + piece->events,
		.dropped = ring->dropped,
	};
	int result;

	if (drain->flags & TS_DRAIN_WITHHOLD)
		block.flags = TS_RING_WITHHELD;
	if (piece->bytes && !(drain->flags & TS_DRAIN_DISCARD)) {
		block.bytes = (uint32_t)piece->bytes;
		if ((ring->flags & RING_UNTOLD) && ring->thread.tid && !piece->begins_with_thread) {
			payload = put_thread(ring, piece->data);
			block.bytes += sizeof(struct ts_live_thread_record);
			block.flags = TS_RING_THREAD;
		}
	}
	result = drain->sink->append(drain->sink->context, &block, payload, drain->err);
	if (result)
		return result;
	ts_crash_point("R2");
	count_given(drain, ring, piece);
	move_on(drain, ring, piece);
	result = publish(drain, index);
	ts_crash_point("R3");
	return result;
}

/* Emits a TS_RING_START block: where another recording stopped. */
static int give_start(struct drain *drain, uint32_t index)
{
	struct ring *ring = &drain->area->rings[index];
	struct ts_block block = {
		.type = TS_BLOCK_RING,
		.flags = TS_RING_START,
		.ring = index,
		.area = drain->area->control.area_id,
		.from = ring->position,
		.to = ring->position,
		.events = ring->reported_events,
		.dropped = ring->reported_dropped,
	};
	int result = drain->sink->append(drain->sink->context, &block, NULL, drain->err);

	if (result == 0)
		ring->flags &= ~(uint32_t)RING_STARTS;
	return result;
}

/* Moves over a piece that the journal already has. */
static int pass_silently(struct drain *drain, uint32_t index, const struct piece *piece)
{
	struct ring *ring = &drain->area->rings[index];

	ring->position += piece->bytes;
	ring->events += piece->events;
	ring->thread = piece->thread;
	if (ring->position < ring->silent_to)
		return TS_OK;
	/* The journal's count is authoritative. */
	ring->events = ring->reported_events;
	return publish(drain, index);
}

/* ---- copying ---- */

/* Copies the ring's bytes from its position on; *ret_got is less if the file ends. */
static int copy_bytes(struct drain *drain, const struct ring *ring, size_t bytes, size_t *ret_got)
{
	struct ts_area *area = drain->area;
	unsigned char *to = area->buffer + sizeof(struct ts_live_thread_record);
	uint64_t at = ring->position & (ring->bytes - 1);
	size_t first = TS_MIN(bytes, (size_t)(ring->bytes - at));
	ssize_t got = live_read(area->fd, to, first, ring->offset + at), more = 0;

	if (got == (ssize_t)first && first < bytes)
		more = live_read(area->fd, to + first, bytes - first, ring->offset);
	if (got < 0 || more < 0)
		return ts_error_errno(drain->err, errno, "area '%s': cannot read", area->name);
	*ret_got = (size_t)(got + more);
	return TS_OK;
}

/* The target overwrote the entire copy: retry with its current bytes, a limited number of times. */
static int catch_up(struct drain *drain, struct ring_frame *frame, uint64_t head)
{
	const struct ring *ring = &drain->area->rings[frame->ring];

	if (++frame->attempts > MAX_ATTEMPTS) {
		drain->result->unsteady++;
		frame->limit = TS_MIN(frame->limit, ring->position);
		return TS_OK;
	}
	if (!frame->complete)
		return TS_OK;
	frame->limit = head;
	/* This head is newer than the dictionary emitted so far. */
	return live_drain_dictionary(drain);
}

/* Fills in piece->data and bytes; no bytes if they were overwritten meanwhile. */
static int copy_piece(struct drain *drain, struct ring_frame *frame, struct piece *piece)
{
	struct ts_area *area = drain->area;
	struct ring *ring = &area->rings[frame->ring];
	uint64_t from = ring->position, head = frame->limit, skip;
	uint64_t limit = from < ring->silent_to ? TS_MIN(frame->limit, ring->silent_to)
						: frame->limit;
	size_t bytes = (size_t)TS_MIN(limit - from, (uint64_t)ring->piece), got = 0;
	bool lost_sight = false;
	int result = live_grow_buffer(area, bytes, drain->err);

	if (!result)
		result = copy_bytes(drain, ring, bytes, &got);
	if (!result)
		result = live_look_again(drain, frame->ring, &head, &lost_sight);
	if (result)
		return result;
	skip = ring->position - from;
	if (lost_sight || skip >= bytes)
		return catch_up(drain, frame, head);
	if (got < bytes)
		piece->fault = "its bytes are cut off";
	piece->data = area->buffer + sizeof(struct ts_live_thread_record) + skip;
	piece->bytes = got > skip ? got - (size_t)skip : 0;
	return TS_OK;
}

/* ---- walking ---- */

/* Rings may have been added since the control block was read. */
static bool is_ring_known(struct drain *drain, uint32_t index)
{
	struct ts_area *area = drain->area;
	uint32_t rings = 0;

	if (index < area->ring_count)
		return true;
	drain->waits_left--;
	return live_read(area->fd, &rings, sizeof(rings),
			 offsetof(struct ts_live_control, rings)) == sizeof(rings) &&
	       rings <= area->control.ring_limit && index < rings &&
	       live_grow_rings(area, rings, drain->err) == 0;
}

/*
 * True if the thread came from another ring that is not yet drained up to where the thread left it.
 * Each record waits only once, so nothing waits forever.
 */
static bool must_wait(struct drain *drain, uint32_t index, uint64_t position,
		      const struct ts_live_thread_record *record)
{
	struct ts_area *area = drain->area;
	const struct ring *other;
	uint32_t previous = record->previous_ring - 1;

	if (record->previous_ring == 0 || previous == index || drain->waits_left == 0 ||
	    position < area->rings[index].silent_to || position == area->rings[index].passed_over ||
	    !is_ring_known(drain, previous))
		return false;
	other = &area->rings[previous];
	if (other->flags & (RING_DAMAGED | RING_WAITING))
		return false;
	if ((other->flags & RING_SEEN) && other->position >= record->previous_position)
		return false;
	drain->waits_left--;
	return true;
}

static void take_thread(struct piece *piece, const struct ts_live_thread_record *record)
{
	piece->thread.tid = record->tid;
	piece->thread.serial = record->serial;
	memcpy(piece->thread.name, record->name, sizeof(piece->thread.name));
}

/* Cuts the piece after its last complete record, or before a record that must wait. */
static void walk_piece(struct drain *drain, uint32_t index, struct piece *piece)
{
	struct ts_area *area = drain->area;
	struct ts_records records = { .data = piece->data, .bytes = piece->bytes };
	enum ts_records_stop stop;

	piece->thread = area->rings[index].thread;
	while ((stop = ts_records_walk(&records)) == TS_RECORDS_THREAD) {
		struct ts_live_thread_record record;
		uint64_t position = area->rings[index].position + records.at;

		ts_records_thread(&records, &record);
		if (must_wait(drain, index, position, &record)) {
			area->rings[index].passed_over = position;
			piece->waits_for = record.previous_ring;
			piece->waits_until = record.previous_position;
			break;
		}
		piece->begins_with_thread |= records.at == 0;
		take_thread(piece, &record);
		ts_records_skip(&records);
	}
	if (stop == TS_RECORDS_BAD)
		piece->fault = "not a valid record";
	else if (stop == TS_RECORDS_END && records.at < records.bytes && !piece->fault)
		piece->fault = "a record is cut off";
	piece->bytes = records.at;
	piece->events = records.events;
}

/*
 * Makes copies small after a hop to another ring, so that many hops do not copy the same bytes
 * repeatedly.
 */
static void adapt_piece(struct ring *ring, const struct piece *piece)
{
	if (piece->waits_for)
		ring->piece = RING_PIECE_LEAST;
	else
		ring->piece = TS_MIN(ring->piece * 4, RING_PIECE_BYTES);
}

/* ---- frames ---- */

static bool is_done(const struct drain *drain, const struct ring_frame *frame)
{
	const struct ring *ring = &drain->area->rings[frame->ring];

	return ring->position >= frame->limit || (ring->flags & RING_DAMAGED);
}

/* The bytes are invalid. The first time, everything is read again; the second time, damaged. */
static int suspect(struct drain *drain, struct ring_frame *frame, const char *fault)
{
	struct ring *ring = &drain->area->rings[frame->ring];
	const char *entry_fault;
	uint64_t head;
	int result;

	/* The limit came from another ring and may be wrong. */
	if (!frame->complete) {
		frame->limit = ring->position;
		return TS_OK;
	}
	if (ring->flags & RING_SUSPECT)
		return live_condemn_ring(drain, frame->ring, fault);
	ring->flags |= RING_SUSPECT;
	result = live_look(drain, frame->ring, NULL, &head, &entry_fault);
	if (!result && entry_fault)
		return live_condemn_ring(drain, frame->ring, entry_fault);
	if (result == TS_ENOTFOUND)
		head = ring->position;
	else if (result)
		return result;
	frame->limit = TS_MIN(frame->limit, head);
	return TS_OK;
}

/* Drains a piece of the topmost ring, or finds that another goes first (ret_piece->waits_for). */
static int step(struct drain *drain, uint32_t depth, struct piece *ret_piece)
{
	struct ts_area *area = drain->area;
	uint32_t index = area->stack[depth - 1].ring;
	struct piece piece = { .data = NULL };
	struct ring *ring;
	int result = copy_piece(drain, &area->stack[depth - 1], &piece);

	if (!result && piece.fault && piece.bytes == 0)
		return suspect(drain, &area->stack[depth - 1], piece.fault);
	if (result || piece.bytes == 0)
		return result;
	walk_piece(drain, index, &piece);
	/* Only now: the walk may have reallocated area->rings. */
	ring = &area->rings[index];
	adapt_piece(ring, &piece);
	*ret_piece = piece;
	if (piece.bytes == 0)
		return piece.waits_for ? TS_OK
				       : suspect(drain, &area->stack[depth - 1], piece.fault);
	ring->flags &= ~(uint32_t)RING_SUSPECT;
	if (ring->position < ring->silent_to)
		return pass_silently(drain, index, &piece);
	return give(drain, index, &piece);
}

/* Checks a ring and pushes it on the stack if there is something to drain. */
static int open_frame(struct drain *drain, uint32_t index, const struct ts_live_ring *first,
		      uint64_t until, uint32_t *depth)
{
	struct ts_area *area = drain->area;
	bool is_complete = until == UINT64_MAX;
	const char *fault;
	uint64_t head;
	int result = live_look(drain, index, first, &head, &fault);

	drain->result->unsteady += result == TS_ENOTFOUND;
	if (result)
		return result == TS_ENOTFOUND ? TS_OK : result;
	/* A ring that another one waits for is condemned only in its own turn. */
	if (fault)
		return is_complete ? live_condemn_ring(drain, index, fault) : TS_OK;
	if (area->rings[index].flags & RING_STARTS)
		result = give_start(drain, index);
	if (result)
		return result;
	area->rings[index].flags |= RING_WAITING;
	area->stack[(*depth)++] = (struct ring_frame){
		.ring = index,
		.limit = TS_MIN(head, until),
		.complete = is_complete,
	};
	return TS_OK;
}

static int close_frame(struct drain *drain, const struct ring_frame *frame)
{
	struct ring *ring = &drain->area->rings[frame->ring];
	const struct piece nothing = { .data = NULL };

	ring->flags &= ~(uint32_t)RING_WAITING;
	if (!frame->complete || (ring->flags & RING_DAMAGED) || ring->position < ring->silent_to)
		return TS_OK;
	if (ring->events != ring->reported_events || ring->dropped != ring->reported_dropped)
		return give(drain, frame->ring, &nothing);
	return publish(drain, frame->ring);
}

static void note_fill(struct drain *drain, uint32_t index)
{
	const struct ring *ring = &drain->area->rings[index];
	const struct ring_frame *frame = &drain->area->stack[0];

	if (frame->limit > ring->position)
		drain->result->fill = TS_MAX(drain->result->fill,
					     (frame->limit - ring->position) * 256 / ring->bytes);
}

bool live_ring_has_news(const struct drain *drain, uint32_t index)
{
	const struct ring *ring = &drain->area->rings[index];
	const struct ts_live_ring *entry = &drain->area->directory[index];

	if (!(ring->flags & RING_SEEN))
		return entry->bytes != 0 && !(ring->flags & RING_DAMAGED);
	if (ring->flags & RING_DAMAGED)
		return false;
	return entry->head != ring->position || entry->dropped != ring->reported_dropped ||
	       entry->turn != ring->turn || ring->events != ring->reported_events ||
	       (may_publish(drain, ring) && !is_published(entry, ring));
}

/* A channel belongs to no thread: its THREAD record has a serial and no tid. */
static bool is_channel(const struct ring *ring)
{
	return (ring->flags & RING_SEEN) && ring->position && !ring->thread.tid &&
	       ring->thread.serial;
}

bool live_ring_is_held(const struct drain *drain, uint32_t index)
{
	return (drain->flags & TS_DRAIN_HOLD) && is_channel(&drain->area->rings[index]);
}

int live_drain_ring(struct drain *drain, uint32_t index)
{
	struct ts_area *area = drain->area;
	uint32_t depth = 0;
	int result = open_frame(drain, index, &area->directory[index], UINT64_MAX, &depth);

	if (!result && depth)
		note_fill(drain, index);
	while (depth && !result) {
		struct piece piece = { .data = NULL };

		if (is_done(drain, &area->stack[depth - 1])) {
			result = close_frame(drain, &area->stack[--depth]);
			continue;
		}
		result = step(drain, depth, &piece);
		if (!result && piece.waits_for)
			result = open_frame(drain, piece.waits_for - 1, NULL, piece.waits_until,
					    &depth);
	}
	while (depth)
		area->rings[area->stack[--depth].ring].flags &= ~(uint32_t)RING_WAITING;
	return result;
}
