/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of byte ranges of one memory object: sorted, disjoint, not adjacent. A zeroed struct is
 * empty.
 */
#ifndef TS_REPLAY_PLAN_RANGES_H
#define TS_REPLAY_PLAN_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_ranges {
	struct ts_ranges_item {
		uint64_t from, to; /* to is exclusive */
	} * items;
	size_t count, capacity;
};

void ts_ranges_release(struct ts_ranges *ranges);

/* Both ignore an empty range; 0 or TS_ENOMEM. */
int ts_ranges_add(struct ts_ranges *ranges, uint64_t from, uint64_t to);
int ts_ranges_cut(struct ts_ranges *ranges, uint64_t from, uint64_t to);

/* Does the set contain a byte of [from, to)? */
bool ts_ranges_touch(const struct ts_ranges *ranges, uint64_t from, uint64_t to);
/* All bytes of [from, to)? */
bool ts_ranges_contain(const struct ts_ranges *ranges, uint64_t from, uint64_t to);

#endif
