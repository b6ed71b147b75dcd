/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of live events: the processor's counter if it runs at one rate on all processors,
 * otherwise CLOCK_MONOTONIC in ns. Target and recorder make the same choice. Includes libc only.
 */
#ifndef TS_LIVE_LOCAL_COUNTER_H
#define TS_LIVE_LOCAL_COUNTER_H

#include <stdint.h>
#include <time.h>

#include "live/local/live_layout.h"

/* The clock to use: the same for every caller on this machine and boot. */
enum ts_live_clock ts_counter_kind(void);

/* Ticks per second, 0: unknown (measure it). 10^9 for CLOCK_MONOTONIC. */
uint64_t ts_counter_hz(enum ts_live_clock kind);

/* One instant in three clocks: the shortest of a few attempts. */
struct ts_live_anchor ts_counter_anchor(enum ts_live_clock kind, int64_t *ret_uncertainty_ticks);

static inline uint64_t ts_counter_monotonic_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The raw counter. Not ordered with the surrounding code: an event's time may be off by the cost of
 * the event itself.
 */
static inline uint64_t ts_counter_raw(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	return ts_counter_monotonic_ns();
#endif
}

static inline uint64_t ts_counter_read(enum ts_live_clock kind)
{
	return __builtin_expect(kind == TS_LIVE_CLOCK_COUNTER, 1) ? ts_counter_raw()
								  : ts_counter_monotonic_ns();
}

#endif
