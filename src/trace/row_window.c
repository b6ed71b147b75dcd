/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two arrays: items, which are sorted, and the words of the rows, which stay in place.
 */
#include <string.h>

#include "base/memory.h"
#include "trace/row_window.h"

/* 64 MiB of words, and rows that sort in well under a second. */
#define WORD_LIMIT ((size_t)8 << 20)
#define ITEM_LIMIT ((size_t)512 << 10)

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
}

int ts_row_window_add(struct ts_row_window *picks, const struct ts_row_key *key,
		      const struct ts_cached_chunk *chunk, struct ts_error *err)
{
	const struct ts_table_info *table = chunk->keys->table;
	uint32_t value_count;
	const int64_t *values = ts_cached_values(chunk, key->row, &value_count);
	uint32_t length = table->column_count + value_count;

	if (ts_grow_array((void **)&picks->items, &picks->capacity, picks->count + 1,
			  sizeof(*picks->items)) ||
	    ts_grow_array((void **)&picks->words, &picks->word_capacity, picks->word_count + length,
			  sizeof(*picks->words)))
		return ts_error_set(err, TS_ENOMEM, "no memory for the rows of a window");
	ts_cached_row(chunk, key->row, picks->words + picks->word_count);
	if (value_count)
		memcpy(picks->words + picks->word_count + table->column_count, values,
		       value_count * sizeof(*picks->words));
	picks->items[picks->count++] = (struct ts_row_window_item){
		.key = *key,
		.at = picks->word_count,
		.length = length,
		.table = table->id,
	};
	picks->word_count += length;
	return TS_OK;
}

static int compare_keys(const void *a, const void *b)
{
	return ts_row_key_compare(a, b);
}

/* The greatest key of the earlier half. */
static int find_middle(const struct ts_row_window *picks, struct ts_row_key *ret_middle,
		       struct ts_error *err)
{
	TS_AUTO_FREE struct ts_row_key *keys = ts_alloc_array(picks->count, sizeof(*keys));

	if (!keys)
		return ts_error_set(err, TS_ENOMEM, "no memory for the rows of a window");
	for (size_t i = 0; i < picks->count; i++)
		keys[i] = picks->items[i].key;
	qsort(keys, picks->count, sizeof(*keys), compare_keys);
	*ret_middle = keys[(picks->count - 1) / 2];
	return TS_OK;
}

static void keep_until(struct ts_row_window *picks, const struct ts_row_key *end)
{
	size_t kept = 0, words = 0;

	/* Not sorted yet, so words are in the order of the items. */
	for (size_t i = 0; i < picks->count; i++) {
		struct ts_row_window_item *item = &picks->items[i];

		if (ts_row_key_compare(&item->key, end) > 0)
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

int ts_row_window_shrink(struct ts_row_window *picks, struct ts_row_key *end, struct ts_error *err)
{
	struct ts_row_key middle = { 0 };
	int rc;

	if (picks->count < 2 ||
	    (picks->count < picks->item_limit && picks->word_count < picks->word_limit))
		return TS_OK;
	rc = find_middle(picks, &middle, err);
	if (rc)
		return rc;
	keep_until(picks, &middle);
	*end = middle;
	return TS_OK;
}

static int compare_items(const void *a, const void *b)
{
	const struct ts_row_window_item *first = a, *second = b;

	return ts_row_key_compare(&first->key, &second->key);
}

void ts_row_window_sort(struct ts_row_window *picks)
{
	if (picks->count > 1)
		qsort(picks->items, picks->count, sizeof(*picks->items), compare_items);
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
