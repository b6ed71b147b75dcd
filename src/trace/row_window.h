/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one window of a query: copies of their columns and arguments, with sort keys.
 * Bounded: if there are too many, the window shrinks and the later rows are read again in the next
 * one.
 */
#ifndef TS_TRACE_ROW_WINDOW_H
#define TS_TRACE_ROW_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "trace/chunk_cache.h"
#include "trace/row.h"

struct ts_row_window_item {
	int64_t axis;   /* first key: place on the axis that windows divide */
	int64_t second; /* second key */
	uint64_t chunk; /* third key, then the row in it */
	size_t at;      /* of its columns in words */
	uint32_t row;
	uint32_t length; /* words */
	uint32_t table;
};

struct ts_row_window {
	struct ts_row_window_item *items;
	size_t count, capacity;
	int64_t *words;
	size_t word_count, word_capacity;
	size_t item_limit, word_limit;
};

void ts_row_window_init(struct ts_row_window *picks);
void ts_row_window_release(struct ts_row_window *picks);
void ts_row_window_clear(struct ts_row_window *picks);

/* Copies a row of a chunk that is completely read. */
int ts_row_window_add(struct ts_row_window *picks, int64_t axis, int64_t second,
		      const struct ts_cached_chunk *chunk, uint32_t row, struct ts_error *err);

/*
 * After an add: if there are too many rows, drops about half of them and moves *end, the end of the
 * window on the axis, so that it covers those that stay.
 */
int ts_row_window_shrink(struct ts_row_window *picks, int64_t *end, struct ts_error *err);

void ts_row_window_sort(struct ts_row_window *picks);

/* Row i, borrowed until the next add or clear. */
struct ts_row ts_row_window_row(const struct ts_row_window *picks, size_t i);

#endif
