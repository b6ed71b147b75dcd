/* SPDX-License-Identifier: Apache-2.0 */
/* Draining an area: new data comes once, complete and in order; losses are counted exactly. */
#include <malloc.h>

#include "live/area_internal.h"
#include "unit/live/drain_support.h"

/* ---- draining ---- */

/* A channel's first record; it belongs to no thread. */
static void put_channel(struct live *live, uint32_t index)
{
	struct ts_live_thread_record thread = {
		.head = { .words = sizeof(thread) / 8, .kind = TS_LIVE_THREAD },
		.counter = 1,
		.serial = 5,
		.name = "commands",
	};

	TS_CHECK(live_put(live, index, &thread, sizeof(thread)));
}

static void put_gone(struct live *live, uint32_t index)
{
	uint64_t record[3] = { 3 | (uint64_t)TS_LIVE_GONE << 16, 1, 1 };

	TS_CHECK(live_put(live, index, record, sizeof(record)));
}

TS_TEST(channels_are_left_alone_where_they_are_to_wait)
{
	struct ts_drain_result result;
	struct pair pair;

	begin(&pair, 2, 4096);
	live_put_thread(&pair.live, 0, 7, 0, 0);
	put_channel(&pair.live, 1);
	result = live_drain(pair.area, TS_DRAIN_HOLD, pair.sink);
	/* Not known to be a channel yet. */
	TS_CHECK_INT(result.rings, 2);
	TS_CHECK(!result.held);
	result = live_drain(pair.area, TS_DRAIN_HOLD, pair.sink);
	TS_CHECK(!result.held);
	live_put_event(&pair.live, 0, 1, 2);
	put_gone(&pair.live, 1);
	result = live_drain(pair.area, TS_DRAIN_HOLD, pair.sink);
	TS_CHECK_INT(result.bytes, 16);
	TS_CHECK_INT(result.rings, 1);
	TS_CHECK(result.held);
	TS_CHECK_INT(pair.live.rings[1].consumed, 64);
	result = live_drain(pair.area, 0, pair.sink);
	/* No event, and no loss. */
	TS_CHECK_INT(result.bytes, 24);
	TS_CHECK_INT(result.events + result.dropped, 0);
	TS_CHECK(!result.held);
	/* A later recorder knows it, too. */
	begin_anew(&pair);
	TS_CHECK(!live_drain(pair.area, TS_DRAIN_HOLD, pair.sink).held);
	put_gone(&pair.live, 1);
	TS_CHECK(live_drain(pair.area, TS_DRAIN_HOLD, pair.sink).held);
	TS_CHECK_INT(live_drain(pair.area, TS_DRAIN_FINAL, pair.sink).bytes, 24);
	end(&pair);
}

TS_TEST(takes_what_is_new_once)
{
	struct pair pair;
	struct ts_drain_result result;
	struct ts_live_ring *ring;

	begin(&pair, 1, 4096);
	ring = &pair.live.rings[0];
	live_put_thread(&pair.live, 0, 7, 0, 0);
	live_put_event(&pair.live, 0, 1, 2);
	live_put_event(&pair.live, 0, 2, 5);
	result = live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(result.bytes, 64 + 16 + 40);
	TS_CHECK_INT(result.events, 2);
	TS_CHECK_INT(result.rings, 1);
	TS_CHECK_INT(result.dropped, 0);
	TS_CHECK_INT(result.fill, (64 + 56) * 256 / 4096);
	TS_CHECK_INT(pair.sink->rings[0].stored, 2);
	TS_CHECK_INT(pair.sink->rings[0].tid, 7);
	TS_CHECK_INT(pair.sink->last.flags, 0);

	TS_CHECK_INT(ring->consumed, 120);
	TS_CHECK_INT(ring->consumed_events, 2);
	TS_CHECK_INT(ring->consumed_tid, 7);
	TS_CHECK_INT(ring->consumed_serial, 70);
	TS_CHECK_STR(ring->consumed_name, "thread 7");
	TS_CHECK_INT(ring->consumed_check, ts_live_consumed_check(120, 2, 7, 70));

	result = live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(result.bytes + result.rings, 0);
	TS_CHECK_INT(pair.sink->blocks, 1);
	live_put_event(&pair.live, 0, 3, 3);
	result = live_drain(pair.area, TS_DRAIN_FINAL, pair.sink);
	TS_CHECK_INT(result.events, 1);
	TS_CHECK_INT(pair.sink->rings[0].events, 3);
	end(&pair);
}

TS_TEST(goes_round_the_end)
{
	struct pair pair;
	uint64_t number = 0;

	begin(&pair, 1, 4096);
	pair.sink->numbers_rise = true;
	for (int round = 0; round < 50; round++) {
		while (live_put_event(&pair.live, 0, number + 1, (uint16_t)(2 + number % 61)))
			number++;
		live_drain(pair.area, 0, pair.sink);
	}
	TS_CHECK(pair.live.rings[0].head > 40 * 4096);
	TS_CHECK_INT(pair.sink->rings[0].stored, number);
	TS_CHECK_INT(pair.sink->rings[0].lost, 0);
	end(&pair);
}

TS_TEST(large_rings_come_in_pieces)
{
	struct pair pair;
	uint64_t number = 0;

	begin(&pair, 1, 16 << 20);
	pair.sink->numbers_rise = true;
	while (live_put_event(&pair.live, 0, number + 1, (uint16_t)(2 + number % 50)))
		number++;
	TS_CHECK(live_drain(pair.area, 0, pair.sink).fill >= 255);
	TS_CHECK(pair.sink->ring_blocks >= 16);
	TS_CHECK(pair.sink->largest <= 1 << 20);
	TS_CHECK_INT(pair.sink->rings[0].stored, number);
	TS_CHECK_INT(pair.live.rings[0].consumed, pair.live.rings[0].head);
	end(&pair);
}

TS_TEST(dictionary_comes_before_records)
{
	struct pair pair;

	begin(&pair, 1, 4096);
	live_put_site(&pair.live, "one");
	live_put_site(&pair.live, "a name that is longer than the others");
	live_put_event(&pair.live, 0, 1, 2);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->blocks, 2);
	TS_CHECK_INT(pair.sink->last.type, TS_BLOCK_RING);
	TS_CHECK_INT(pair.sink->dictionary_to, pair.live.control->dictionary_used);
	/* Also without ring data. */
	live_put_site(&pair.live, "late");
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->last.type, TS_BLOCK_DICTIONARY);
	TS_CHECK_INT(pair.sink->dictionary_to, pair.live.control->dictionary_used);
	end(&pair);
}

TS_TEST(rings_that_come_later_are_seen)
{
	struct pair pair;

	begin(&pair, 40, 4096);
	pair.live.control->rings = 1;
	begin_anew(&pair);
	live_put_event(&pair.live, 0, 1, 2);
	live_drain(pair.area, 0, pair.sink);
	pair.live.control->rings = 40;
	live_put_event(&pair.live, 39, 1, 2);
	TS_CHECK_INT(live_drain(pair.area, 0, pair.sink).rings, 1);
	TS_CHECK_INT(pair.sink->rings[39].stored, 1);
	end(&pair);
}

TS_TEST(looking_changes_nothing)
{
	struct pair pair;
	struct ts_area *area;

	begin(&pair, 1, 4096);
	live_put_event(&pair.live, 0, 1, 2);
	area = live_open(&pair.live, false);
	live_drain(area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored, 1);
	TS_CHECK_INT(pair.live.rings[0].consumed, 0);
	ts_area_close(area);
	end(&pair);
}

/* ---- losses ---- */

TS_TEST(drops_are_told_without_bytes)
{
	struct pair pair;
	struct ts_drain_result result;

	begin(&pair, 1, 4096);
	live_put_event(&pair.live, 0, 1, 2);
	live_drain(pair.area, 0, pair.sink);
	pair.live.rings[0].dropped = 5;
	result = live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(result.dropped, 5);
	TS_CHECK_INT(pair.sink->last.bytes, 0);
	TS_CHECK_INT(pair.sink->last.from, 16);
	TS_CHECK_INT(pair.sink->last.to, 16);
	TS_CHECK_INT(pair.sink->rings[0].lost, 5);
	TS_CHECK_INT(live_drain(pair.area, 0, pair.sink).dropped, 0);
	end(&pair);
}

/*
 * Flight mode without a recorder: overwritten events are counted, and the owner of the remaining
 * ones is known.
 */
TS_TEST(overwritten_events_are_counted)
{
	struct pair pair;
	uint64_t number = 0;

	begin(&pair, 1, 4096);
	pair.sink->numbers_rise = true;
	live_put_thread(&pair.live, 0, 5, 0, 0);
	while (number < 1000) {
		if (live_put_event(&pair.live, 0, number + 1, 3))
			number++;
		else
			live_free_oldest(&pair.live, 0);
	}
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK(pair.sink->rings[0].stored > 140);
	TS_CHECK_INT(pair.sink->rings[0].stored + pair.sink->rings[0].lost, 1000);
	TS_CHECK_INT(pair.sink->thread_blocks, 1);
	TS_CHECK_INT(pair.sink->rings[0].tid, 5);
	TS_CHECK_INT(pair.sink->rings[0].last_number, 1000);
	TS_CHECK_INT(pair.live.rings[0].consumed_tid, 5);
	/* From now on the owner is known. */
	live_put_event(&pair.live, 0, 1001, 3);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->thread_blocks, 1);
	end(&pair);
}

/* Everything was overwritten and nothing is left: still counted. */
TS_TEST(overwritten_without_a_rest)
{
	struct pair pair;
	struct ts_live_ring *ring;
	struct ts_drain_result result;

	begin(&pair, 1, 4096);
	ring = &pair.live.rings[0];
	for (int i = 1; i <= 10; i++)
		live_put_event(&pair.live, 0, (uint64_t)i, 2);
	ring->slot_1 = (struct ts_live_oldest){ .position = 160, .events = 10 };
	ring->turn = 1;
	result = live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(result.dropped, 10);
	TS_CHECK_INT(result.events, 0);
	TS_CHECK_INT(pair.sink->rings[0].lost, 10);
	TS_CHECK_INT(ring->consumed, 160);
	end(&pair);
}

/* ---- resuming ---- */

TS_TEST(successor_goes_on_where_the_journal_ends)
{
	struct pair pair;

	begin(&pair, 1, 4096);
	live_put_thread(&pair.live, 0, 3, 0, 0);
	for (uint64_t i = 1; i <= 20; i++)
		live_put_event(&pair.live, 0, i, 2);
	live_drain(pair.area, 0, pair.sink);
	/*
	 * Killed between writing the block and updating `consumed`; the first half was an earlier
	 * block.
	 */
	pair.live.rings[0].consumed = 64 + 160;
	pair.live.rings[0].consumed_events = 10;
	pair.live.rings[0].consumed_check = ts_live_consumed_check(64 + 160, 10, 3, 30);
	begin_anew(&pair);
	ts_area_resume_dictionary(pair.area, 0);
	ts_area_resume_ring(pair.area, 0, 64 + 320, 20, 0);
	pair.sink->rings[0] = (struct reported){ .to = 64 + 320, .events = 20 };
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->blocks, 0);
	/* The space is freed all the same; otherwise a full ring would stay full. */
	TS_CHECK_INT(pair.live.rings[0].consumed, 64 + 320);
	TS_CHECK_INT(pair.live.rings[0].consumed_events, 20);
	TS_CHECK_INT(pair.live.rings[0].consumed_tid, 3);
	live_put_event(&pair.live, 0, 21, 2);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored, 1);
	TS_CHECK_INT(pair.sink->rings[0].lost, 0);
	TS_CHECK_INT(pair.sink->rings[0].tid, 3);
	end(&pair);
}

/* Learns of a thread that began in data already in the journal. */
TS_TEST(successor_learns_whose_records_follow)
{
	struct pair pair;

	begin(&pair, 1, 4096);
	live_put_thread(&pair.live, 0, 3, 0, 0);
	live_put_event(&pair.live, 0, 1, 2);
	live_put_thread(&pair.live, 0, 4, 0, 0);
	live_put_event(&pair.live, 0, 2, 2);
	ts_area_resume_ring(pair.area, 0, 160, 2, 0);
	pair.sink->rings[0] = (struct reported){ .to = 160, .events = 2 };
	live_put_event(&pair.live, 0, 3, 2);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored, 1);
	TS_CHECK_INT(pair.sink->rings[0].tid, 4);
	TS_CHECK_INT(pair.live.rings[0].consumed_tid, 4);
	end(&pair);
}

TS_TEST(successor_counts_what_was_overwritten_meanwhile)
{
	struct pair pair;
	uint64_t number = 0;

	begin(&pair, 1, 4096);
	pair.sink->numbers_rise = true;
	for (; number < 10; number++)
		live_put_event(&pair.live, 0, number + 1, 2);
	live_drain(pair.area, 0, pair.sink);
	while (number < 1000) {
		if (live_put_event(&pair.live, 0, number + 1, 2))
			number++;
		else
			live_free_oldest(&pair.live, 0);
	}
	ts_area_close(pair.area);
	pair.area = live_open(&pair.live, true);
	ts_area_resume_ring(pair.area, 0, pair.sink->rings[0].to, pair.sink->rings[0].events, 0);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored + pair.sink->rings[0].lost, 1000);
	TS_CHECK(pair.sink->rings[0].lost > 500);
	TS_CHECK_INT(pair.sink->rings[0].last_number, 1000);
	end(&pair);
}

/* Another recording has reported its losses; ours begins where it stopped. */
TS_TEST(second_recording_begins_at_consumed)
{
	struct pair pair;

	begin(&pair, 1, 4096);
	live_put_thread(&pair.live, 0, 3, 0, 0);
	live_put_event(&pair.live, 0, 1, 2);
	live_put_event(&pair.live, 0, 2, 2);
	pair.live.rings[0].dropped = 9;
	live_drain(pair.area, 0, pair.sink);
	begin_anew(&pair);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->start_blocks, 1);
	TS_CHECK_INT(pair.sink->blocks, 1);
	live_put_event(&pair.live, 0, 3, 2);
	pair.live.rings[0].dropped = 11;
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored, 1);
	TS_CHECK_INT(pair.sink->rings[0].lost, 2);
	TS_CHECK_INT(pair.sink->rings[0].tid, 3);
	TS_CHECK_INT(pair.sink->rings[0].events, 3);
	end(&pair);
}

/* An inconsistent pair is ignored. */
TS_TEST(consumed_that_does_not_match_is_ignored)
{
	struct pair pair;

	begin(&pair, 1, 4096);
	live_put_event(&pair.live, 0, 1, 2);
	live_put_event(&pair.live, 0, 2, 2);
	pair.live.rings[0].consumed = 16;
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored, 2);
	TS_CHECK_INT(pair.sink->start_blocks, 0);
	end(&pair);
}

/* ---- sinks ---- */

TS_TEST(discarded_bytes_are_counted_and_not_freed)
{
	struct pair pair;
	struct ts_drain_result result;

	begin(&pair, 1, 4096);
	live_put_thread(&pair.live, 0, 3, 0, 0);
	for (uint64_t i = 1; i <= 10; i++)
		live_put_event(&pair.live, 0, i, 2);
	result = live_drain(pair.area, TS_DRAIN_FINAL | TS_DRAIN_DISCARD, pair.sink);
	TS_CHECK_INT(result.events, 10);
	TS_CHECK_INT(pair.sink->last.bytes, 0);
	TS_CHECK_INT(pair.sink->last.to - pair.sink->last.from, 64 + 160);
	TS_CHECK_INT(pair.sink->rings[0].lost, 10);
	TS_CHECK_INT(pair.live.rings[0].consumed, 0);
	/* When storing resumes, the journal gets the owner of the records. */
	live_put_event(&pair.live, 0, 11, 2);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->thread_blocks, 1);
	TS_CHECK_INT(pair.sink->rings[0].tid, 3);
	TS_CHECK_INT(pair.sink->rings[0].stored, 1);
	end(&pair);
}

static void fill_four_rings(struct live *live)
{
	live_put_site(live, "a site");
	for (uint32_t ring = 0; ring < 4; ring++) {
		for (uint64_t number = 1; number <= 300;) {
			if (live_put_event(live, ring, number, 2))
				number++;
			else
				live_free_oldest(live, ring);
		}
		live->rings[ring].dropped = 1;
	}
	live_free_oldest(live, 0);
	live_put_thread(live, 0, 3, 3 + 1, live->rings[3].head);
	live->rings[2].offset = 1;
}

/* Drains with one failure; returns whether it occurred. */
static bool drain_with_failure(unsigned int fail_after)
{
	struct pair pair;
	struct ts_error err = { 0 };
	uint64_t sum = 0;
	int result;

	begin(&pair, 4, 4096);
	fill_four_rings(&pair.live);
	pair.sink->fail_after = fail_after;
	result = ts_area_drain(pair.area, 0, &pair.sink->sink, NULL, &err);
	TS_CHECK(result == TS_OK || result == TS_ENOSPC);
	for (uint32_t ring = 0; ring < 4; ring++)
		TS_CHECK(pair.live.rings[ring].consumed <= pair.sink->rings[ring].to);
	pair.sink->fail_after = 0;
	live_drain(pair.area, 0, pair.sink);
	for (uint32_t ring = 0; ring < 4; ring++)
		sum += pair.sink->rings[ring].stored + pair.sink->rings[ring].lost;
	TS_CHECK_INT(sum, 3 * 301);
	TS_CHECK_INT(pair.sink->losses, 1);
	end(&pair);
	return result != TS_OK;
}

/* Whichever block fails: only stored data is freed, and nothing comes twice. */
TS_TEST(failing_sink_loses_nothing)
{
	unsigned int blocks = 1;

	while (drain_with_failure(blocks))
		blocks++;
	/* Dictionary, ring 0, 3, 0, 1, the loss of 2. */
	TS_CHECK_INT(blocks, 7);
}

/* ---- threads that changed rings ---- */

TS_TEST(ring_that_was_left_goes_first)
{
	struct pair pair;
	uint64_t left[3];

	/* Ring 2 continues ring 1, and ring 0 continues ring 2; ring 1 has a second owner. */
	begin(&pair, 3, 4096);
	live_put_thread(&pair.live, 1, 5, 0, 0);
	live_put_event(&pair.live, 1, 1, 2);
	left[1] = pair.live.rings[1].head;
	live_put_thread(&pair.live, 2, 5, 1 + 1, left[1]);
	live_put_event(&pair.live, 2, 2, 2);
	left[2] = pair.live.rings[2].head;
	live_put_event(&pair.live, 0, 1, 2);
	live_put_thread(&pair.live, 0, 5, 2 + 1, left[2]);
	live_put_event(&pair.live, 0, 3, 2);
	live_put_thread(&pair.live, 1, 6, 0, 0);
	live_put_event(&pair.live, 1, 9, 2);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->ring_blocks, 5);
	TS_CHECK_INT(pair.sink->order[0], 0);
	TS_CHECK_INT(pair.sink->order[1], 1);
	TS_CHECK_INT(pair.sink->order[2], 2);
	TS_CHECK_INT(pair.sink->order[3], 0);
	TS_CHECK_INT(pair.sink->order[4], 1);
	TS_CHECK_INT(pair.sink->rings[0].stored + pair.sink->rings[1].stored +
			     pair.sink->rings[2].stored,
		     5);
	TS_CHECK_INT(live_drain(pair.area, 0, pair.sink).rings, 0);
	end(&pair);
}

/* Only up to the point where it was left: rings 0 and 1 refer to each other, at different times. */
TS_TEST(rings_that_were_left_for_each_other)
{
	struct pair pair;
	uint64_t left_0, left_1;

	begin(&pair, 2, 4096);
	live_put_thread(&pair.live, 0, 1, 0, 0);
	live_put_event(&pair.live, 0, 1, 2);
	left_0 = pair.live.rings[0].head;
	live_put_thread(&pair.live, 1, 1, 1, left_0);
	live_put_event(&pair.live, 1, 2, 2);
	left_1 = pair.live.rings[1].head;
	live_put_thread(&pair.live, 0, 1, 2, left_1);
	live_put_event(&pair.live, 0, 3, 2);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->order[0], 0);
	TS_CHECK_INT(pair.sink->order[1], 1);
	TS_CHECK_INT(pair.sink->order[2], 0);
	TS_CHECK_INT(pair.sink->ring_blocks, 3);
	end(&pair);
}

/* A ring created after the control block was read. */
TS_TEST(ring_that_was_left_may_be_new)
{
	struct pair pair;

	begin(&pair, 200, 4096);
	pair.live.control->rings = 200;
	live_put_event(&pair.live, 199, 1, 2);
	live_put_thread(&pair.live, 0, 5, 200, 16);
	live_put_event(&pair.live, 0, 2, 2);
	/* As if it had been: the drain rereads the control block first. */
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->order[0], 199);
	TS_CHECK_INT(pair.sink->order[1], 0);
	end(&pair);
}

TS_TEST(hostile_references_are_passed_over)
{
	struct pair pair;

	begin(&pair, 4, 4096);
	/* A cycle, at unreachable positions. */
	live_put_thread(&pair.live, 0, 1, 2, 128);
	live_put_event(&pair.live, 0, 1, 2);
	live_put_thread(&pair.live, 1, 1, 1, 128);
	live_put_event(&pair.live, 1, 1, 2);
	/* Itself, a missing ring, an invalid position, the middle of a record. */
	live_put_thread(&pair.live, 2, 1, 3, UINT64_MAX);
	live_put_thread(&pair.live, 2, 1, UINT32_MAX, 8);
	live_put_thread(&pair.live, 2, 1, 4096, 8);
	live_put_thread(&pair.live, 2, 1, 4, UINT64_MAX);
	live_put_thread(&pair.live, 2, 1, 4, 12);
	live_put_event(&pair.live, 2, 1, 2);
	live_put_event(&pair.live, 3, 1, 2);
	live_drain(pair.area, 0, pair.sink);
	for (int ring = 0; ring < 4; ring++)
		TS_CHECK_INT(pair.sink->rings[ring].stored, 1);
	TS_CHECK_INT(pair.sink->losses, 0);
	end(&pair);
}

/* Two large rings that only refer to each other: bounded work, nothing missing. */
TS_TEST(many_hops)
{
	struct pair pair;
	uint64_t hops = 0;

	begin(&pair, 2, 4 << 20);
	while (live_put_thread(&pair.live, 0, 1, 2, pair.live.rings[1].head) &&
	       live_put_thread(&pair.live, 1, 1, 1, pair.live.rings[0].head))
		hops++;
	TS_CHECK(hops > 60000);
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].to, pair.live.rings[0].head);
	TS_CHECK_INT(pair.sink->rings[1].to, pair.live.rings[1].head);
	TS_CHECK(pair.sink->ring_blocks <= 2 * 16384 + 100);
	TS_CHECK(pair.sink->ring_blocks > 1000);
	end(&pair);
}

/* A chain through all rings, from the first to the last: maximum depth. */
TS_TEST(long_chain)
{
	struct pair pair;

	begin(&pair, TS_LIVE_RING_LIMIT, 4096);
	for (uint32_t i = 0; i < TS_LIVE_RING_LIMIT; i++) {
		if (i + 1 < TS_LIVE_RING_LIMIT)
			live_put_thread(&pair.live, i, 1, i + 2, 80);
		else
			live_put_thread(&pair.live, i, 1, 0, 0);
		live_put_event(&pair.live, i, 1, 2);
	}
	TS_CHECK_INT(live_drain(pair.area, 0, pair.sink).rings, TS_LIVE_RING_LIMIT);
	TS_CHECK_INT(pair.sink->ring_blocks, TS_LIVE_RING_LIMIT);
	TS_CHECK_INT(pair.sink->order[0], TS_LIVE_RING_LIMIT - 1);
	end(&pair);
}

/* ---- cost of a pass ---- */

static long read_calls(void)
{
	char text[512];
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	const char *line;

	if (fd >= 0)
		close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	line = strstr(text, "syscr:");
	return line ? strtol(line + 6, NULL, 10) : -1;
}

TS_TEST(idle_pass_makes_two_reads_and_no_memory)
{
	struct pair pair;
	long before, after, alone;
	size_t memory;

	begin(&pair, 1000, 4096);
	for (uint32_t i = 0; i < 1000; i++)
		live_put_event(&pair.live, i, 1, 2);
	live_drain(pair.area, 0, pair.sink);
	alone = -read_calls();
	alone += read_calls();
	memory = mallinfo2().uordblks;
	before = read_calls();
	live_drain(pair.area, 0, pair.sink);
	after = read_calls();
	TS_CHECK_INT(mallinfo2().uordblks, memory);
	if (before < 0)
		ts_test_skip("this kernel does not count reads");
	TS_CHECK_INT(after - before - alone, 2);
	end(&pair);
}
