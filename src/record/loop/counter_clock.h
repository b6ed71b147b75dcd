/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's clocks: anchors that tie the event counter (live/local/counter.h) to the system
 * clocks, and the length of a tick in nanoseconds.
 */
#ifndef TS_RECORD_LOOP_COUNTER_CLOCK_H
#define TS_RECORD_LOOP_COUNTER_CLOCK_H

#include <stdint.h>

#include "live/journal.h"
#include "live/local/counter.h"

struct ts_clocks {
	enum ts_live_clock kind;
	uint64_t mult; /* ns = counts * mult >> 32 */
};

/*
 * Selects the clock and calibrates it against CLOCK_MONOTONIC_RAW for about 10 ms. If the counter
 * is CLOCK_MONOTONIC, no calibration is needed and mult is 2^32.
 */
void ts_clocks_calibrate(struct ts_clocks *ret_clocks);

static inline uint64_t ts_clocks_now(const struct ts_clocks *clocks)
{
	return ts_counter_read(clocks->kind);
}

/* An anchor, with its uncertainty in ns. */
void ts_clocks_anchor(const struct ts_clocks *clocks, struct ts_block_clock *ret_clock);

/* Ticks to nanoseconds and back; both saturate. */
int64_t ts_clocks_ns(const struct ts_clocks *clocks, uint64_t counts);
uint64_t ts_clocks_counts(const struct ts_clocks *clocks, int64_t ns);

#endif
