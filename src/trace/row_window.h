/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one window of a query: copies of their columns and arguments, with sort keys.
 * Bounded: if there are too many, the window shrinks and the later rows are read again in the next
 * one. No two rows have equal keys, so a window may also end among rows of one instant.
 */
#ifndef TS_TRACE_ROW_WINDOW_H
#define TS_TRACE_ROW_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "trace/chunk_cache.h"
#include "trace/row.h"

/* The position of a row in the order; members count in this sequence. */
struct ts_row_key {
	int64_t axis; /* that windows divide */
	int64_t second;
	uint64_t chunk;
	uint32_t row; /* of the chunk */
};

struct ts_row_window_item {
	struct ts_row_key key;
	size_t at;       /* of its columns in words */
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

static inline int ts_row_key_compare(const struct ts_row_key *a, const struct ts_row_key *b)
{
	if (a->axis != b->axis)
		return TS_COMPARE(a->axis, b->axis);
	if (a->second != b->second)
		return TS_COMPARE(a->second, b->second);
	return a->chunk != b->chunk ? TS_COMPARE(a->chunk, b->chunk) : TS_COMPARE(a->row, b->row);
}

void ts_row_window_init(struct ts_row_window *picks);
void ts_row_window_release(struct ts_row_window *picks);
void ts_row_window_clear(struct ts_row_window *picks);

/* Copies the row `key` of a chunk that is completely read. */
int ts_row_window_add(struct ts_row_window *picks, const struct ts_row_key *key,
		      const struct ts_cached_chunk *chunk, struct ts_error *err);

/*
 * After an add: if there are too many rows, drops the later half of them and sets *end to the key
 * of the last one that stays.
 */
int ts_row_window_shrink(struct ts_row_window *picks, struct ts_row_key *end, struct ts_error *err);

void ts_row_window_sort(struct ts_row_window *picks);

/* Row i, borrowed until the next add or clear. */
struct ts_row ts_row_window_row(const struct ts_row_window *picks, size_t i);

#endif
