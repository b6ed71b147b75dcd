/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's clocks in nanoseconds, for progress, timeouts and timestamps. The clock of traces
 * (raw counter, synchronisation) is elsewhere.
 */
#ifndef TS_BASE_CLOCK_H
#define TS_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic, since some fixed point. */
int64_t ts_clock_monotonic_ns(void);

/* Since 1970-01-01 UTC. */
int64_t ts_clock_realtime_ns(void);

/* Processor time of the calling thread. */
int64_t ts_clock_thread_cpu_ns(void);

#endif
