/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring from its owner's side (docs/live.md, 2.2 and 4.1): the oldest position still needed, space
 * for a record, and overwriting the oldest records in flight mode.
 */
#include "agent/ring_write.h"

#include <string.h>

/* ---- drained bytes ---- */

/* Reads the recorder's words; false: they are inconsistent. */
static bool read_consumed(const struct ts_live_ring *ring, struct ts_live_oldest *consumed)
{
	uint64_t check;

	consumed->position = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE);
	consumed->events = __atomic_load_n(&ring->consumed_events, __ATOMIC_RELAXED);
	consumed->tid = __atomic_load_n(&ring->consumed_tid, __ATOMIC_RELAXED);
	consumed->serial = __atomic_load_n(&ring->consumed_serial, __ATOMIC_RELAXED);
	memcpy(consumed->name, ring->consumed_name, sizeof(consumed->name));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	check = __atomic_load_n(&ring->consumed_check, __ATOMIC_RELAXED);
	return check == ts_live_consumed_check(consumed->position, consumed->events, consumed->tid,
					       consumed->serial) &&
	       consumed->position == __atomic_load_n(&ring->consumed, __ATOMIC_RELAXED) &&
	       consumed->position <= ring->head && consumed->position % 8 == 0;
}

const struct ts_live_oldest *ring_oldest(struct writer *writer)
{
	const struct ts_live_ring *ring = writer->ring;
	const struct ts_live_oldest *freed = ring->turn & 1 ? &ring->slot_1 : &ring->slot_0;
	struct ts_live_oldest consumed;

	if (read_consumed(ring, &consumed) && consumed.position > writer->consumed.position)
		writer->consumed = consumed;
	return writer->consumed.position > freed->position ? &writer->consumed : freed;
}

/* ---- space ---- */

void ring_advance(struct writer *writer, uint64_t bytes)
{
	uint64_t head = writer->ring->head + bytes;

	writer->at = writer->bytes + (head & writer->mask);
	__atomic_store_n(&writer->ring->head, head, __ATOMIC_RELEASE);
}

bool ring_extend(struct writer *writer, uint64_t oldest, uint64_t bytes, uint64_t *ret_needed)
{
	uint64_t head = writer->ring->head, size = writer->mask + 1,
		 end = (head | writer->mask) + 1;
	uint64_t start = head + bytes > end ? end : head;

	*ret_needed = start + bytes - size;
	if (start + bytes > oldest + size)
		return false;
	if (start != head) {
		struct ts_live_record pad = { .words = (uint16_t)((start - head) / 8),
					      .kind = TS_LIVE_PAD };

		memcpy(writer->at, &pad, sizeof(pad));
		ring_advance(writer, start - head);
		end += size;
	}
	/* The hot path leaves `at` after the ring's last byte; continue with the first. */
	writer->at = writer->bytes + (start & writer->mask);
	writer->until = writer->at + ((end < oldest + size ? end : oldest + size) - start);
	return true;
}

/*
 * Skips records from `at` on; only the last one may cross `until`. Most records have the size of
 * the one before: the processor speculates with that size while it loads the real one, so that
 * records do not wait for each other. The empty asm keeps the compiler from undoing this.
 */
static void pass_records(struct ts_live_oldest *oldest, const char *at, const char *until)
{
	const char *start = at;
	uint64_t bytes = 1, events = 0;

	while (at < until) {
		struct ts_live_record record;

		memcpy(&record, at, sizeof(record));
		if (AGENT_UNLIKELY(record.kind == TS_LIVE_THREAD)) {
			struct ts_live_thread_record thread;

			memcpy(&thread, at, sizeof(thread));
			oldest->tid = thread.tid;
			oldest->serial = thread.serial;
			memcpy(oldest->name, thread.name, sizeof(oldest->name));
		}
		if (AGENT_UNLIKELY(record.words * 8u != bytes)) {
			bytes = record.words * 8u;
			if (!bytes)
				break; /* impossible: only this thread writes the ring */
			__asm__("" : "+r"(bytes));
		}
		events += (uint64_t)ts_live_kind_is_event(record.kind);
		at += bytes;
	}
	oldest->events += events;
	oldest->position += (uint64_t)(at - start);
}

uint64_t ring_free_oldest(struct writer *writer, uint64_t needed)
{
	struct ts_live_ring *ring = writer->ring;
	struct ts_live_oldest oldest = *ring_oldest(writer);
	uint64_t until = oldest.position + (writer->mask + 1) / 8;

	if ((int64_t)(needed - until) > 0)
		until = needed;
	if (until > ring->head)
		until = ring->head;
	while (oldest.position < until) {
		uint64_t end = (oldest.position | writer->mask) + 1, from = oldest.position;
		const char *at = writer->bytes + (from & writer->mask);

		pass_records(&oldest, at, at + ((until < end ? until : end) - from));
		if (oldest.position == from)
			break;
	}
	if (ring->turn & 1)
		ring->slot_0 = oldest;
	else
		ring->slot_1 = oldest;
	__atomic_store_n(&ring->turn, ring->turn + 1, __ATOMIC_RELEASE);
	/* Later writes must not become visible before the turn. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return oldest.position;
}

uint64_t ring_free_bytes(const struct ts_live_ring *ring)
{
	uint64_t freed = ring->turn & 1 ? ring->slot_1.position : ring->slot_0.position;
	struct ts_live_oldest consumed;

	if (read_consumed(ring, &consumed) && consumed.position > freed)
		freed = consumed.position;
	return ring->bytes - (ring->head - freed);
}
