/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting events from outside: exact while the rings are drained or overwritten; estimated beyond
 * the limit of a pass; never writes a byte. The test acts as the target.
 */
#include <pthread.h>
#include <sched.h>

#include "live/event_count.h"
#include "unit/live/live_support.h"

#define NO_LIMIT (UINT64_C(1) << 30)

static struct ts_area_events *open_events(const struct live *live)
{
	struct ts_area_events *events;
	struct ts_error err;

	if (ts_area_events_open(&events, live->directory_fd, live->name, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return events;
}

static struct ts_event_counts look(struct ts_area_events *events, uint64_t limit)
{
	struct ts_event_counts counts;
	struct ts_error err;

	if (ts_area_events_look(events, limit, &counts, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return counts;
}

/* Flight mode: the oldest records make room. */
static void put_over(struct live *live, uint32_t ring, uint64_t number, uint16_t words)
{
	while (!live_put_event(live, ring, number, words))
		live_free_oldest(live, ring);
}

TS_TEST(counts_what_is_new)
{
	struct live live;
	struct ts_area_events *events;

	live_make(&live, 2, 4096);
	events = open_events(&live);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 0);
	live_put_thread(&live, 0, 7, 0, 0);
	live_put_event(&live, 0, 1, 2);
	live_put_event(&live, 0, 2, 5);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 2);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 2);
	live_put_thread(&live, 1, 8, 0, 0);
	live_put_event(&live, 1, 3, 64);
	live_put_event(&live, 0, 4, 3);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 4);
	TS_CHECK(!look(events, NO_LIMIT).estimated);
	ts_area_events_close(events);
	live_release(&live);
}

TS_TEST(losses_are_added_up)
{
	struct live live;
	struct ts_area_events *events;

	live_make(&live, 2, 4096);
	events = open_events(&live);
	live.rings[0].dropped = 5;
	live.rings[1].dropped = 7;
	live.control->lost_nested = 100;
	live.control->lost_no_ring = 1000;
	TS_CHECK_INT(look(events, NO_LIMIT).lost, 1112);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 0);
	ts_area_events_close(events);
	live_release(&live);
}

TS_TEST(what_flight_overwrites_was_stored)
{
	struct live live;
	struct ts_area_events *events;
	uint64_t number = 0;

	live_make(&live, 1, 4096);
	events = open_events(&live);
	for (int round = 0; round < 20; round++) {
		/* Wraps several times between two passes. */
		for (int i = 0; i < 1000; i++, number++)
			put_over(&live, 0, number, (uint16_t)(2 + number % 7));
		TS_CHECK_INT(look(events, NO_LIMIT).stored, number);
		TS_CHECK_INT(look(events, NO_LIMIT).lost, 0);
	}
	ts_area_events_close(events);
	/* A counter that opens late still knows all events. */
	events = open_events(&live);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, number);
	TS_CHECK(!look(events, NO_LIMIT).estimated);
	ts_area_events_close(events);
	live_release(&live);
}

TS_TEST(a_recorder_beside_changes_nothing)
{
	struct live live;
	struct ts_area_events *events;
	struct ts_area *recorder;
	struct sink *sink = sink_new();
	uint64_t number = 0;

	live_make(&live, 1, 4096);
	events = open_events(&live);
	recorder = live_open(&live, true);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 50; i++)
			TS_CHECK(live_put_event(&live, 0, number++, 3));
		if (round % 3)
			live_drain(recorder, 0, sink);
		if (round % 5 == 0)
			TS_CHECK_INT(look(events, NO_LIMIT).stored, number);
		live_drain(recorder, 0, sink);
	}
	TS_CHECK_INT(look(events, NO_LIMIT).stored, number);
	TS_CHECK_INT(sink->rings[0].stored, number);
	ts_area_close(recorder);
	free(sink);
	ts_area_events_close(events);
	live_release(&live);
}

TS_TEST(looking_writes_nothing)
{
	struct live live;
	struct ts_area_events *events;
	unsigned char *copy;

	live_make(&live, 2, 4096);
	for (uint64_t i = 0; i < 1000; i++)
		put_over(&live, i % 2, i, 4);
	copy = malloc(live.bytes);
	TS_CHECK(copy != NULL);
	memcpy(copy, live.map, live.bytes);
	events = open_events(&live);
	look(events, NO_LIMIT);
	look(events, 1);
	TS_CHECK_MEM(copy, live.map, live.bytes);
	ts_area_events_close(events);
	free(copy);
	live_release(&live);
}

TS_TEST(beyond_the_limit_it_estimates_and_catches_up)
{
	struct live live;
	struct ts_area_events *events;
	struct ts_event_counts counts;
	const uint64_t number = 40000;
	unsigned int looks = 1;

	live_make(&live, 1, 1 << 20);
	for (uint64_t i = 0; i < number; i++)
		TS_CHECK(live_put_event(&live, 0, i, 3));
	events = open_events(&live);
	counts = look(events, 64 << 10);
	TS_CHECK(counts.estimated);
	TS_CHECK(counts.stored > number * 98 / 100 && counts.stored < number * 102 / 100);
	while (counts.estimated) {
		uint64_t before = counts.stored;

		counts = look(events, 64 << 10);
		TS_CHECK(counts.stored >= before);
		TS_CHECK(++looks < 40);
	}
	TS_CHECK(looks >= 15);
	TS_CHECK_INT(counts.stored, number);
	ts_area_events_close(events);
	live_release(&live);
}

/* ---- damage ---- */

TS_TEST(a_damaged_ring_keeps_its_count)
{
	struct live live;
	struct ts_area_events *events;
	uint64_t nonsense = UINT64_C(0xffff);

	live_make(&live, 3, 4096);
	events = open_events(&live);
	for (uint32_t ring = 0; ring < 3; ring++)
		live_put_event(&live, ring, 1, 2);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 3);
	/* A record that is too long, and a head that is too far ahead. */
	memcpy(live.map + live.rings[0].offset + 16, &nonsense, 8);
	live.rings[0].head += 64;
	live.rings[1].head += 1 << 20;
	live_put_event(&live, 2, 2, 2);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 4);
	live_put_event(&live, 2, 3, 2);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 5);
	ts_area_events_close(events);
	live_release(&live);
}

TS_TEST(counts_that_cannot_be_are_not_believed)
{
	struct live live;
	struct ts_area_events *events;

	live_make(&live, 1, 4096);
	events = open_events(&live);
	for (uint64_t i = 0; i < 1000; i++)
		put_over(&live, 0, i, 2);
	live_slot(&live.rings[0])->events = UINT64_C(1) << 60;
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 0);
	ts_area_events_close(events);
	live_release(&live);
}

TS_TEST(an_area_that_is_cut)
{
	struct live live;
	struct ts_area_events *events;
	struct ts_event_counts counts;
	struct ts_error err;

	live_make(&live, 1, 4096);
	live_put_event(&live, 0, 1, 2);
	events = open_events(&live);
	TS_CHECK_INT(look(events, NO_LIMIT).stored, 1);
	TS_CHECK_INT(ftruncate(live.fd, 100), 0);
	TS_CHECK_INT(ts_area_events_look(events, NO_LIMIT, &counts, &err), TS_EFORMAT);
	ts_area_events_close(events);
	TS_CHECK_INT(
		ts_area_events_open(&events, live.directory_fd, "100-200-0000000000000000", &err),
		TS_ENOTFOUND);
	live_release(&live);
}

/* ---- a running target ---- */

struct producer {
	struct live *live;
	uint64_t events;
	uint64_t stored; /* for the counting side */
	bool done;
};

static void *produce(void *context)
{
	struct producer *producer = context;

	for (uint64_t i = 0; i < producer->events; i++) {
		put_over(producer->live, 0, i, (uint16_t)(2 + i % 5));
		__atomic_store_n(&producer->stored, i + 1, __ATOMIC_RELEASE);
		if (i % 512 == 0)
			sched_yield();
	}
	__atomic_store_n(&producer->done, true, __ATOMIC_RELEASE);
	return NULL;
}

TS_TEST(while_the_target_overwrites)
{
	struct live live;
	struct producer producer = { .live = &live, .events = 300000 };
	struct ts_area_events *events;
	struct ts_event_counts counts = { .stored = 0 };
	pthread_t thread;
	bool done;

	live_make(&live, 1, 16384);
	events = open_events(&live);
	TS_CHECK_INT(pthread_create(&thread, NULL, produce, &producer), 0);
	do {
		uint64_t before = counts.stored;

		done = __atomic_load_n(&producer.done, __ATOMIC_ACQUIRE);
		counts = look(events, NO_LIMIT);
		TS_CHECK(counts.stored >= before);
		/* One event may be committed but not yet in `stored`. */
		TS_CHECK(counts.estimated ||
			 counts.stored <= __atomic_load_n(&producer.stored, __ATOMIC_ACQUIRE) + 1);
	} while (!done);
	pthread_join(thread, NULL);
	TS_CHECK_INT(counts.stored, producer.events);
	TS_CHECK(!counts.estimated);
	ts_area_events_close(events);
	live_release(&live);
}
