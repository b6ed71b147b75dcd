/* SPDX-License-Identifier: Apache-2.0 */
/* One instant in three clocks, though the thread is suspended between two readings. */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "live/local/counter.h"
#include "unit/runner.h"

#define LONG_NS 50000000
#define SHORT_NS 1000000
#define CLOSE_NS INT64_C(20000000)

static bool delays;
static int real_readings;

/*
 * Replaces libc's. With `delays`, the first reading of the time of day comes late by much, and then
 * each of CLOCK_MONOTONIC by little.
 */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	struct timespec pause = { 0 };

	if (delays && clock == CLOCK_REALTIME && real_readings++ == 0)
		pause.tv_nsec = LONG_NS;
	else if (delays && clock == CLOCK_MONOTONIC && real_readings > 0)
		pause.tv_nsec = SHORT_NS;
	if (pause.tv_nsec)
		nanosleep(&pause, NULL);
	return (int)syscall(SYS_clock_gettime, clock, ret_time);
}

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The time of day less the time since boot. */
static int64_t real_offset_ns(void)
{
	int64_t shortest_ns = INT64_MAX, offset_ns = 0;

	for (int i = 0; i < 100; i++) {
		int64_t before_ns = read_ns(CLOCK_MONOTONIC), real_ns = read_ns(CLOCK_REALTIME);
		int64_t after_ns = read_ns(CLOCK_MONOTONIC);

		if (after_ns - before_ns < shortest_ns) {
			shortest_ns = after_ns - before_ns;
			offset_ns = real_ns - before_ns;
		}
	}
	return offset_ns;
}

TS_TEST(an_anchor_is_one_instant)
{
	int64_t expected_ns = real_offset_ns(), uncertainty;
	enum ts_live_clock kind = ts_counter_kind();
	struct ts_live_anchor anchor;

	delays = true;
	anchor = ts_counter_anchor(kind, &uncertainty);
	delays = false;
	TS_CHECK(real_readings > 1);
	TS_CHECK(uncertainty > 0);
	TS_CHECK(llabs(anchor.realtime_ns - anchor.monotonic_ns - expected_ns) < CLOSE_NS);
}
