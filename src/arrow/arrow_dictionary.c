/* SPDX-License-Identifier: Apache-2.0 */
/* See arrow_dictionary.h. */
#include "arrow/arrow_dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_TEXTS 256u
#define FIRST_BYTES 4096u
#define PAGE_IDS ((uint64_t)1 << TS_ARROW_PAGE_BITS)

void ts_arrow_dictionary_init(struct ts_arrow_dictionary *dictionary)
{
	*dictionary = (struct ts_arrow_dictionary){ 0 };
	pthread_mutex_init(&dictionary->lock, NULL);
	ts_strmap_init(&dictionary->indices, 0);
}

void ts_arrow_dictionary_release(struct ts_arrow_dictionary *dictionary)
{
	ts_strmap_release(&dictionary->indices);
	ts_arrow_block_drop(dictionary->offsets);
	ts_arrow_block_drop(dictionary->data);
	ts_text_release(&dictionary->scratch);
	pthread_mutex_destroy(&dictionary->lock);
}

/* Batches may still use the old block, which therefore is copied instead of resized. */
static int reserve(struct ts_arrow_block **block, size_t used, size_t need, size_t first)
{
	size_t capacity = *block ? (*block)->capacity : first;
	struct ts_arrow_block *larger;

	if (*block && need <= capacity)
		return TS_OK;
	while (capacity < need)
		capacity *= 2;
	larger = ts_arrow_block_new(capacity);
	if (!larger)
		return TS_ENOMEM;
	if (*block && used)
		memcpy(larger->data, (*block)->data, used);
	ts_arrow_block_drop(*block);
	*block = larger;
	return TS_OK;
}

/* Lock held. */
static int append(struct ts_arrow_dictionary *dictionary, const char *text, size_t length)
{
	size_t offsets = ((size_t)dictionary->count + 1) * sizeof(int32_t);
	int32_t *end;

	if (length > (size_t)INT32_MAX - dictionary->bytes || dictionary->count == INT32_MAX)
		return TS_ENOSPC;
	if (reserve(&dictionary->offsets, dictionary->count ? offsets : 0,
		    offsets + sizeof(int32_t), FIRST_TEXTS * sizeof(int32_t)) ||
	    reserve(&dictionary->data, dictionary->bytes, dictionary->bytes + length, FIRST_BYTES))
		return TS_ENOMEM;
	if (length)
		memcpy(dictionary->data->data + dictionary->bytes, text, length);
	end = (int32_t *)(void *)dictionary->offsets->data + dictionary->count;
	if (!dictionary->count)
		end[0] = 0;
	dictionary->bytes += (uint32_t)length;
	end[1] = (int32_t)dictionary->bytes;
	dictionary->count++;
	return TS_OK;
}

static int add_valid(struct ts_arrow_dictionary *dictionary, const char *text, size_t length,
		     int64_t *ret_index)
{
	bool is_new;
	uint32_t index;
	int result;

	if (length > INT32_MAX)
		return TS_ENOSPC;
	index = ts_strmap_intern(&dictionary->indices, text, length, &is_new);
	if (index == TS_STRMAP_NONE)
		return TS_ENOMEM;
	/* After a failure the two differ: the map also has the text that was not stored. */
	if (is_new ? index != dictionary->count : index >= dictionary->count)
		return TS_ENOMEM;
	result = is_new ? append(dictionary, text, length) : TS_OK;
	if (!result)
		*ret_index = index;
	return result;
}

int ts_arrow_dictionary_add(struct ts_arrow_dictionary *dictionary, const char *text, size_t length,
			    int64_t *ret_index)
{
	int result;

	pthread_mutex_lock(&dictionary->lock);
	if (ts_utf8_valid(text, length)) {
		result = add_valid(dictionary, text, length, ret_index);
	} else {
		ts_text_clear(&dictionary->scratch);
		ts_utf8_sanitize(&dictionary->scratch, text, length);
		result = ts_text_status(&dictionary->scratch);
		if (!result)
			result = add_valid(dictionary, dictionary->scratch.data,
					   dictionary->scratch.length, ret_index);
	}
	pthread_mutex_unlock(&dictionary->lock);
	return result;
}

int ts_arrow_dictionary_get(struct ts_arrow_dictionary *dictionary, struct ts_arrow_kept *kept,
			    uint32_t *ret_count, const void **ret_offsets, const void **ret_data)
{
	struct ts_arrow_block *offsets = NULL, *data = NULL;

	pthread_mutex_lock(&dictionary->lock);
	*ret_count = dictionary->count;
	if (dictionary->count) {
		offsets = ts_arrow_block_hold(dictionary->offsets);
		data = ts_arrow_block_hold(dictionary->data);
	}
	pthread_mutex_unlock(&dictionary->lock);
	*ret_offsets = offsets ? offsets->data : ts_arrow_zeros();
	*ret_data = data ? data->data : ts_arrow_zeros();
	if (!offsets)
		return TS_OK;
	if (ts_arrow_keep_block(kept, offsets)) {
		ts_arrow_block_drop(data);
		return TS_ENOMEM;
	}
	return ts_arrow_keep_block(kept, data);
}

/* ---- ids ---- */

int ts_arrow_ids_init(struct ts_arrow_ids *ids, uint64_t end, uint64_t pages)
{
	uint64_t most = (uint64_t)UINT32_MAX + 1;

	end = end > most ? most : end;
	ids->end = 0;
	ids->pages = calloc((size_t)(end / PAGE_IDS + 1), sizeof(*ids->pages));
	if (!ids->pages)
		return TS_ENOMEM;
	ids->end = end;
	atomic_init(&ids->pages_left, (int64_t)TS_MIN(pages, end / PAGE_IDS + 1));
	return TS_OK;
}

void ts_arrow_ids_release(struct ts_arrow_ids *ids)
{
	for (uint64_t i = 0; ids->pages && i <= ids->end / PAGE_IDS; i++)
		free((void *)atomic_load_explicit(&ids->pages[i], memory_order_relaxed));
	free((void *)ids->pages);
	ids->pages = NULL;
	ids->end = 0;
}

static _Atomic int64_t *make_page(struct ts_arrow_ids *ids, size_t number)
{
	_Atomic int64_t *page, *expected = NULL;

	if (atomic_load_explicit(&ids->pages_left, memory_order_relaxed) <= 0 ||
	    !(page = malloc(PAGE_IDS * sizeof(*page))))
		return NULL;
	for (size_t i = 0; i < PAGE_IDS; i++)
		atomic_init(&page[i], TS_ARROW_NOT_LOOKED_UP);
	if (atomic_compare_exchange_strong(&ids->pages[number], &expected, page)) {
		atomic_fetch_sub_explicit(&ids->pages_left, 1, memory_order_relaxed);
		return page;
	}
	/* Another thread was faster. */
	free((void *)page);
	return expected;
}

void ts_arrow_ids_put(struct ts_arrow_ids *ids, int64_t id, int64_t value)
{
	_Atomic int64_t *page;

	if ((uint64_t)id >= ids->end)
		return;
	page = atomic_load_explicit(&ids->pages[id >> TS_ARROW_PAGE_BITS], memory_order_acquire);
	if (!page)
		page = make_page(ids, (size_t)(id >> TS_ARROW_PAGE_BITS));
	if (page)
		atomic_store_explicit(&page[id & (int64_t)(PAGE_IDS - 1)], value,
				      memory_order_relaxed);
}
