/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts times of a source clock to trace time: piecewise linear over clock_sync points, exact in
 * integers, order-preserving (docs/format.md, section 6).
 */
#ifndef TS_MODEL_CLOCKMAP_H
#define TS_MODEL_CLOCKMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/map.h"

struct ts_clock_point {
	int64_t time, reference;
	size_t order; /* for equal times the later row counts */
};

struct ts_clock {
	int64_t id;
	int64_t generation;
	struct ts_clock_point *points; /* increasing in time and reference */
	size_t count, capacity;
};

struct ts_clockmap {
	struct ts_clock *clocks;
	size_t count, capacity;
	struct ts_map indices; /* clock id to index in clocks */
};

void ts_clockmap_init(struct ts_clockmap *map);
void ts_clockmap_release(struct ts_clockmap *map);

/* Add rows in file order, then seal once. 0 or TS_ENOMEM. */
int ts_clockmap_add(struct ts_clockmap *map, const struct ts_clock_sync_row *row);
void ts_clockmap_seal(struct ts_clockmap *map);

/* NULL: the clock is trace time. */
const struct ts_clock *ts_clockmap_find(const struct ts_clockmap *map, uint32_t clock);

/* clock may be NULL. TS_ABSENT and INT64_MAX are returned unchanged. */
int64_t ts_clock_convert(const struct ts_clock *clock, int64_t time);

/* True if conversion adds the same offset to every time; *ret_offset is that offset. */
bool ts_clock_is_offset(const struct ts_clock *clock, int64_t *ret_offset);

#endif
