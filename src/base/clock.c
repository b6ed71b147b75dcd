/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the system's clocks. */
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
	struct timespec now = { 0 };

	/* These clocks always exist. */
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ts_clock_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t ts_clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t ts_clock_thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
