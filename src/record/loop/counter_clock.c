/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibrates the event counter: reads the system clock between two reads of the counter. The closer
 * the two reads, the better the pair.
 */
#include "record/loop/counter_clock.h"

#include <time.h>

#define PAIR_TRIES 8
#define CALIBRATION_NS 10000000

/* Counter and CLOCK_MONOTONIC_RAW at one instant. */
struct pair {
	uint64_t counter;
	int64_t ns;
};

static struct pair read_pair(enum ts_live_clock kind)
{
	struct pair pair = { 0 };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < PAIR_TRIES; i++) {
		struct timespec now = { 0 };
		uint64_t before = ts_counter_read(kind);
		uint64_t after;

		clock_gettime(CLOCK_MONOTONIC_RAW, &now);
		after = ts_counter_read(kind);
		if (after - before >= best)
			continue;
		best = after - before;
		pair.counter = before + (after - before) / 2;
		pair.ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	}
	return pair;
}

void ts_clocks_calibrate(struct ts_clocks *ret_clocks)
{
	struct timespec pause = { .tv_nsec = CALIBRATION_NS };
	struct pair from, to;

	*ret_clocks = (struct ts_clocks){ .kind = ts_counter_kind(), .mult = UINT64_C(1) << 32 };
	if (ret_clocks->kind != TS_LIVE_CLOCK_COUNTER)
		return;
	from = read_pair(ret_clocks->kind);
	nanosleep(&pause, NULL);
	to = read_pair(ret_clocks->kind);
	if (to.counter > from.counter && to.ns > from.ns)
		ret_clocks->mult = (uint64_t)(((unsigned __int128)(to.ns - from.ns) << 32) /
					      (to.counter - from.counter));
}

void ts_clocks_anchor(const struct ts_clocks *clocks, struct ts_block_clock *ret_clock)
{
	int64_t ticks = 0;

	*ret_clock = (struct ts_block_clock){ .anchor = ts_counter_anchor(clocks->kind, &ticks) };
	ret_clock->uncertainty_ns = ts_clocks_ns(clocks, ticks > 0 ? (uint64_t)ticks : 0) + 1;
}

int64_t ts_clocks_ns(const struct ts_clocks *clocks, uint64_t counts)
{
	unsigned __int128 ns = (unsigned __int128)counts * clocks->mult >> 32;

	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

uint64_t ts_clocks_counts(const struct ts_clocks *clocks, int64_t ns)
{
	unsigned __int128 counts;

	if (ns <= 0 || !clocks->mult)
		return 0;
	counts = ((unsigned __int128)ns << 32) / clocks->mult;
	return counts > UINT64_MAX ? UINT64_MAX : (uint64_t)counts;
}
