/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two arrays: items, which are sorted, and the words of the rows, which stay in place.
 */
#include <string.h>

#include "base/memory.h"
#include "trace/row_window.h"

/* 128 MiB of words, and rows that sort in well under a second. */
#define WORD_LIMIT ((size_t)16 << 20)
#define ITEM_LIMIT ((size_t)1 << 20)

void ts_row_window_init(struct ts_row_window *picks)
{
	*picks = (struct ts_row_window){ .item_limit = ITEM_LIMIT, .word_limit = WORD_LIMIT };
}

void ts_row_window_release(struct ts_row_window *picks)
{
	free(picks->items);
	free(picks->words);
	*picks = (struct ts_row_window){ 0 };
}

void ts_row_window_clear(struct ts_row_window *picks)
{
	picks->count = 0;
	picks->word_count = 0;
	picks->item_limit = ITEM_LIMIT;
	picks->word_limit = WORD_LIMIT;
}

int ts_row_window_add(struct ts_row_window *picks, int64_t axis, int64_t second,
		      const struct ts_cached_chunk *chunk, uint32_t row, struct ts_error *err)
{
	const struct ts_table_info *table = chunk->keys->table;
	uint32_t value_count;
	const int64_t *values = ts_cached_values(chunk, row, &value_count);
	uint32_t length = table->column_count + value_count;

	if (ts_grow_array((void **)&picks->items, &picks->capacity, picks->count + 1,
			  sizeof(*picks->items)) ||
	    ts_grow_array((void **)&picks->words, &picks->word_capacity, picks->word_count + length,
			  sizeof(*picks->words)))
		return ts_error_set(err, TS_ENOMEM, "no memory for the rows of a window");
	ts_cached_row(chunk, row, picks->words + picks->word_count);
	if (value_count)
		memcpy(picks->words + picks->word_count + table->column_count, values,
		       value_count * sizeof(*picks->words));
	picks->items[picks->count++] = (struct ts_row_window_item){
		.axis = axis,
		.second = second,
		.chunk = chunk->chunk,
		.at = picks->word_count,
		.row = row,
		.length = length,
		.table = table->id,
	};
	picks->word_count += length;
	return TS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t first, second;

	memcpy(&first, a, sizeof(first));
	memcpy(&second, b, sizeof(second));
	return first < second ? -1 : first > second;
}

/* An axis value that splits the rows about in half; the greatest value if none does. */
static int find_middle(const struct ts_row_window *picks, int64_t *ret_middle, struct ts_error *err)
{
	TS_AUTO_FREE int64_t *axis = ts_alloc_array(picks->count, sizeof(*axis));
	size_t at = picks->count / 2;

	if (!axis)
		return ts_error_set(err, TS_ENOMEM, "no memory for the rows of a window");
	for (size_t i = 0; i < picks->count; i++)
		axis[i] = picks->items[i].axis;
	qsort(axis, picks->count, sizeof(*axis), compare_numbers);
	/* Rows with equal values stay together: if the upper half is equal, split before it. */
	if (axis[at] == axis[picks->count - 1]) {
		while (at > 0 && axis[at] == axis[picks->count - 1])
			at--;
	}
	*ret_middle = axis[at];
	return TS_OK;
}

static void keep_until(struct ts_row_window *picks, int64_t end)
{
	size_t kept = 0, words = 0;

	/* Not sorted yet, so words are in the order of the items. */
	for (size_t i = 0; i < picks->count; i++) {
		struct ts_row_window_item *item = &picks->items[i];

		if (item->axis > end)
			continue;
		memmove(picks->words + words, picks->words + item->at,
			item->length * sizeof(*picks->words));
		item->at = words;
		words += item->length;
		picks->items[kept++] = *item;
	}
	picks->count = kept;
	picks->word_count = words;
}

int ts_row_window_shrink(struct ts_row_window *picks, int64_t *end, struct ts_error *err)
{
	size_t before = picks->count;
	int64_t middle = 0;
	int rc;

	if (picks->count < picks->item_limit && picks->word_count < picks->word_limit)
		return TS_OK;
	rc = find_middle(picks, &middle, err);
	if (rc)
		return rc;
	keep_until(picks, middle);
	if (picks->count < before) {
		*end = middle;
	} else {
		/* All values are equal: they must be sorted together. */
		picks->item_limit *= 2;
		picks->word_limit *= 2;
	}
	return TS_OK;
}

static int compare_picks(const void *a, const void *b)
{
	const struct ts_row_window_item *first = a, *second = b;

	if (first->axis != second->axis)
		return first->axis < second->axis ? -1 : 1;
	if (first->second != second->second)
		return first->second < second->second ? -1 : 1;
	if (first->chunk != second->chunk)
		return first->chunk < second->chunk ? -1 : 1;
	return first->row < second->row ? -1 : first->row > second->row;
}

void ts_row_window_sort(struct ts_row_window *picks)
{
	if (picks->count > 1)
		qsort(picks->items, picks->count, sizeof(*picks->items), compare_picks);
}

struct ts_row ts_row_window_row(const struct ts_row_window *picks, size_t i)
{
	const struct ts_row_window_item *item = &picks->items[i];
	const struct ts_table_info *table = ts_table_info(item->table);

	return (struct ts_row){
		.table = table,
		.columns = picks->words + item->at,
		.values = picks->words + item->at + table->column_count,
	};
}
