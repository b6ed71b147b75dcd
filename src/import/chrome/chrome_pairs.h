/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end events that become slices: pending events waiting to be sorted, and open slices. */
#ifndef TS_IMPORT_CHROME_CHROME_PAIRS_H
#define TS_IMPORT_CHROME_CHROME_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct ts_chrome;

/* A begin or end event waiting to be sorted, or a begin waiting for its end. */
struct ts_chrome_half {
	int64_t time;
	uint64_t lane;     /* thread, or hash of what an async slice is matched by */
	uint64_t values;   /* index of the first into ts_chrome_pairs.values */
	uint32_t sequence; /* keeps the order of equal times */
	uint32_t thread;   /* index */
	uint32_t name, category, id, stack, shape;
	uint16_t value_count;
	uint8_t is_end;
	uint8_t is_async;
};

struct ts_chrome_open {
	struct ts_chrome_half half;
	uint32_t outer, inner; /* neighbours in the lane; index plus 1 */
	uint32_t outer_same;   /* next outer one of the same name */
	bool used;
};

struct ts_chrome_pairs {
	struct ts_chrome_half *waiting;
	size_t waiting_count, waiting_capacity;
	size_t waiting_values; /* of all pending events */
	bool unsorted;
	uint32_t sequence;
	struct ts_chrome_open *open;
	size_t open_count, open_capacity; /* slots, some free */
	size_t live;                      /* slots in use */
	uint32_t free;                    /* list of free slots through `outer` */
	struct ts_map lanes;              /* lane -> innermost open, index plus 1 */
	struct ts_pairmap names;          /* (lane, name) -> innermost open, index plus 1 */
	int64_t *values;
	size_t value_count, value_capacity, value_live;
	int64_t *spare; /* for compaction */
	size_t spare_capacity;
};

void ts_chrome_pairs_release(struct ts_chrome *c);
int ts_chrome_add_half(struct ts_chrome *c, const struct ts_chrome_half *half,
		       const int64_t *values);
/* Flushes all pending events; slices that are still open have no end. */
int ts_chrome_finish_pairs(struct ts_chrome *c);

#endif
