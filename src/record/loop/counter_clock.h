/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's clocks: anchors that tie the counter of events (live/local/counter.h) to the
 * system's clocks, and how many nanoseconds a count is.
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
 * Decides on the clock and measures it against CLOCK_MONOTONIC_RAW for about 10 ms; not at all
 * where the counter is CLOCK_MONOTONIC: mult is 2^32 then.
 */
void ts_clocks_calibrate(struct ts_clocks *ret_clocks);

/* The counter now. */
static inline uint64_t ts_clocks_now(const struct ts_clocks *clocks)
{
	return ts_counter_read(clocks->kind);
}

/* An anchor, with its uncertainty in ns. */
void ts_clocks_anchor(const struct ts_clocks *clocks, struct ts_block_clock *ret_clock);

/* Counts to nanoseconds and back; both saturate. */
int64_t ts_clocks_ns(const struct ts_clocks *clocks, uint64_t counts);
uint64_t ts_clocks_counts(const struct ts_clocks *clocks, int64_t ns);

#endif
