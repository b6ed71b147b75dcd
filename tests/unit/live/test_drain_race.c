/* SPDX-License-Identifier: Apache-2.0 */
/* Draining while the target writes: emitted = stored + lost, whichever side is faster. */
#include <pthread.h>
#include <sched.h>

#include "unit/live/drain_support.h"

struct producer {
	struct live *live;
	uint32_t ring;
	uint64_t events;
	bool flight;
	bool done;
};

static void produce_one(struct producer *producer, uint64_t number)
{
	struct ts_live_ring *ring = &producer->live->rings[producer->ring];

	while (!live_put_event(producer->live, producer->ring, number,
			       (uint16_t)(2 + number % 13))) {
		if (!producer->flight) {
			__atomic_store_n(&ring->dropped, ring->dropped + 1, __ATOMIC_RELEASE);
			return;
		}
		live_free_oldest(producer->live, producer->ring);
	}
}

static void *produce(void *context)
{
	struct producer *producer = context;

	live_put_thread(producer->live, producer->ring, 1, 0, 0);
	for (uint64_t i = 1; i <= producer->events; i++) {
		produce_one(producer, i);
		/* Occasionally lets the recorder be faster. */
		if (i % 1000 == 0 && i / 1000 % 3 == 0)
			sched_yield();
	}
	__atomic_store_n(&producer->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* emitted = stored + lost, exactly, whichever side is faster. */
static void race(uint64_t ring_bytes, bool flight, bool writable)
{
	struct pair pair;
	struct producer producer = { .live = &pair.live, .events = 300000, .flight = flight };
	const struct reported *reported;
	pthread_t thread;
	bool done;

	begin(&pair, 1, ring_bytes);
	ts_area_close(pair.area);
	pair.area = live_open(&pair.live, writable);
	pair.sink->numbers_rise = true;
	TS_CHECK_INT(pthread_create(&thread, NULL, produce, &producer), 0);
	do {
		done = __atomic_load_n(&producer.done, __ATOMIC_ACQUIRE);
		live_drain(pair.area, done ? TS_DRAIN_FINAL : 0, pair.sink);
	} while (!done);
	pthread_join(thread, NULL);
	reported = &pair.sink->rings[0];
	TS_CHECK_INT(pair.sink->losses, 0);
	TS_CHECK_INT(reported->stored + reported->lost, producer.events);
	TS_CHECK_INT(reported->to, pair.live.rings[0].head);
	TS_CHECK(reported->stored > 0);
	TS_CHECK_INT(reported->tid, 1);
	end(&pair);
}

TS_TEST(target_that_streams)
{
	race(4096, false, true);
	race(65536, false, true);
}

TS_TEST(target_in_flight_mode)
{
	race(4096, true, true);
	race(65536, true, true);
}

TS_TEST(target_in_flight_mode_only_looked_at)
{
	race(4096, true, false);
	race(65536, true, false);
}

/* A peek beside a running recorder: what the recorder frees counts as lost here. */
TS_TEST(look_beside_a_recorder)
{
	struct pair pair;
	struct producer producer = { .live = &pair.live, .events = 200000 };
	struct sink *second = sink_new();
	struct ts_area *looking;
	const struct reported *reported = &second->rings[0];
	pthread_t thread;
	bool done;

	begin(&pair, 1, 16384);
	looking = live_open(&pair.live, false);
	second->numbers_rise = pair.sink->numbers_rise = true;
	TS_CHECK_INT(pthread_create(&thread, NULL, produce, &producer), 0);
	do {
		done = __atomic_load_n(&producer.done, __ATOMIC_ACQUIRE);
		live_drain(looking, done ? TS_DRAIN_FINAL : 0, second);
		live_drain(pair.area, done ? TS_DRAIN_FINAL : 0, pair.sink);
	} while (!done);
	pthread_join(thread, NULL);
	TS_CHECK_INT(pair.sink->rings[0].stored + pair.sink->rings[0].lost, producer.events);
	TS_CHECK_INT(reported->stored + reported->lost, producer.events);
	TS_CHECK_INT(second->losses, 0);
	ts_area_close(looking);
	free(second);
	end(&pair);
}
