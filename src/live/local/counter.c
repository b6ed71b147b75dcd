/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the counter that stamps events, and relates it to the system's clocks. Part of the agent:
 * libc only, no allocation, no output.
 */
#include "live/local/counter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* The kernel drops "tsc" from this list if the processors' counters diverge. */
static int kernel_trusts_tsc(void)
{
	char list[256];
	int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t bytes;

	if (fd < 0)
		return 1; /* no /sys in this container: trust the processor's flag */
	bytes = read(fd, list, sizeof(list) - 1);
	close(fd);
	if (bytes <= 0)
		return 1;
	list[bytes] = 0;
	return strstr(list, "tsc") != NULL;
}

static int has_invariant_counter(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1) && kernel_trusts_tsc();
}

uint64_t ts_counter_hz(enum ts_live_clock kind)
{
	unsigned int denominator, numerator, crystal, d;

	if (kind == TS_LIVE_CLOCK_MONOTONIC)
		return 1000000000;
	if (!__get_cpuid(0x15, &denominator, &numerator, &crystal, &d) || !denominator || !crystal)
		return 0;
	return (uint64_t)crystal * numerator / denominator;
}
#elif defined(__aarch64__)
static int has_invariant_counter(void)
{
	return 1; /* the architecture guarantees it for the system counter */
}

uint64_t ts_counter_hz(enum ts_live_clock kind)
{
	uint64_t hz;

	if (kind == TS_LIVE_CLOCK_MONOTONIC)
		return 1000000000;
	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}
#else
static int has_invariant_counter(void)
{
	return 0;
}

uint64_t ts_counter_hz(enum ts_live_clock kind)
{
	(void)kind;
	return 1000000000;
}
#endif

enum ts_live_clock ts_counter_kind(void)
{
	static int kind; /* every thread computes the same value */
	int known = __atomic_load_n(&kind, __ATOMIC_RELAXED);

	if (!known) {
		int saved_errno = errno;

		known = has_invariant_counter() ? TS_LIVE_CLOCK_COUNTER : TS_LIVE_CLOCK_MONOTONIC;
		__atomic_store_n(&kind, known, __ATOMIC_RELAXED);
		errno = saved_errno;
	}
	return (enum ts_live_clock)known;
}

/*
 * The thread may be suspended between any two readings, so an attempt counts by the time of all of
 * them.
 */
struct ts_live_anchor ts_counter_anchor(enum ts_live_clock kind, int64_t *ret_uncertainty_ticks)
{
	struct ts_live_anchor best = { 0, 0, 0 };
	uint64_t shortest = UINT64_MAX;

	*ret_uncertainty_ticks = 0;
	for (int attempt = 0; attempt < 5; attempt++) {
		uint64_t before = ts_counter_read(kind);
		uint64_t monotonic = ts_counter_monotonic_ns();
		uint64_t between = ts_counter_read(kind);
		struct timespec real = { 0 };
		uint64_t after;

		clock_gettime(CLOCK_REALTIME, &real);
		after = ts_counter_read(kind);
		if (after - before >= shortest)
			continue;
		shortest = after - before;
		best.counter = before + (between - before) / 2;
		best.monotonic_ns = (int64_t)monotonic;
		best.realtime_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
		*ret_uncertainty_ticks = (int64_t)((between - before) / 2 + 1);
	}
	return best;
}
