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

struct storing {
	struct live *live;
	bool stop;
};

static void pause_a_little(unsigned int count)
{
	for (volatile unsigned int i = 0; i < count; i++)
		;
}

/* Stores `consumed` word by word again and again, as somebody sees it who reads meanwhile. */
static void *store_consumed(void *context)
{
	struct storing *storing = context;
	struct ts_live_ring *ring = &storing->live->rings[0];
	uint64_t whole = ring->consumed, events = ring->consumed_events;

	for (uint64_t back = 0; !__atomic_load_n(&storing->stop, __ATOMIC_ACQUIRE); back ^= 1) {
		uint64_t words[3] = { whole - back * 16, events - back, 0 };

		words[2] = ts_live_consumed_check(words[0], words[1], ring->consumed_tid,
						  ring->consumed_serial);
		__atomic_store_n(&ring->consumed, words[0], __ATOMIC_RELEASE);
		pause_a_little(50);
		__atomic_store_n(&ring->consumed_events, words[1], __ATOMIC_RELEASE);
		pause_a_little(50);
		__atomic_store_n(&ring->consumed_check, words[2], __ATOMIC_RELEASE);
		pause_a_little(400);
	}
	return NULL;
}

/* Whatever a recorder is storing when somebody else looks is no damage, and hides nothing. */
TS_TEST(look_while_a_recorder_stores)
{
	struct pair pair;
	struct storing storing = { .live = &pair.live };
	unsigned int complete = 0;
	pthread_t thread;

	begin(&pair, 1, 4096);
	live_put_thread(&pair.live, 0, 1, 0, 0);
	/* The ring is used a second time: without `consumed` its content makes no sense. */
	for (uint64_t i = 1; i <= 600; i++) {
		TS_CHECK(live_put_event(&pair.live, 0, i, 2));
		if (i % 100 == 0)
			live_drain(pair.area, 0, pair.sink);
	}
	TS_CHECK(live_put_event(&pair.live, 0, 601, 2));
	storing.live = &pair.live;
	TS_CHECK_INT(pthread_create(&thread, NULL, store_consumed, &storing), 0);
	for (unsigned int looks = 0; looks < 2000 || !complete; looks++) {
		struct ts_area *looking = live_open(&pair.live, false);
		struct sink *sink = sink_new();
		struct ts_drain_result result;

		TS_CHECK_INT(ts_area_drain(looking, 0, &sink->sink, &result, NULL), 0);
		TS_CHECK_INT(sink->losses, 0);
		if (!result.unsteady) {
			TS_CHECK_INT(sink->rings[0].to, pair.live.rings[0].head);
			complete++;
		}
		ts_area_close(looking);
		free(sink);
	}
	__atomic_store_n(&storing.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	end(&pair);
}
