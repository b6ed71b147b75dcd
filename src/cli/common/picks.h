/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows picked for one window of a timeline: copies of their columns and arguments, with what they
 * are sorted by. Bounded: when there are too many, those beyond a point are given up and picked
 * again in the next window.
 */
#ifndef TS_CLI_COMMON_PICKS_H
#define TS_CLI_COMMON_PICKS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/common/chunk_cache.h"
#include "cli/common/show.h"

struct ts_pick {
	int64_t axis;   /* first key: place on the axis that windows divide */
	int64_t second; /* second key */
	uint64_t chunk; /* third key, then the row in it */
	size_t at;      /* of its columns in words */
	uint32_t row;
	uint32_t length; /* words */
	uint32_t table;
};

struct ts_picks {
	struct ts_pick *items;
	size_t count, capacity;
	int64_t *words;
	size_t word_count, word_capacity;
	size_t item_limit, word_limit;
};

void ts_picks_init(struct ts_picks *picks);
void ts_picks_release(struct ts_picks *picks);
void ts_picks_clear(struct ts_picks *picks);

/* Copies a row of a chunk that is wholly read. */
int ts_picks_add(struct ts_picks *picks, int64_t axis, int64_t second,
		 const struct ts_cached_chunk *chunk, uint32_t row, struct ts_error *err);

/*
 * After an add: if there are too many rows, gives up about half of them. *end, the last place of
 * the window on the axis, moves so that it covers just those that stay.
 */
int ts_picks_shrink(struct ts_picks *picks, int64_t *end, struct ts_error *err);

void ts_picks_sort(struct ts_picks *picks);

/* Row i, borrowed until the next add or clear. */
struct ts_shown_row ts_picks_row(const struct ts_picks *picks, size_t i);

#endif
