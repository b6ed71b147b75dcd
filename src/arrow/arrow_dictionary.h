/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a dictionary column, each once, and what ids stand for: their index in such a
 * dictionary, or a number. Both are shared by all threads of a stream and all its batches: a
 * dictionary only grows, so that one batch's is the beginning of a later one's.
 */
#ifndef TS_ARROW_ARROW_DICTIONARY_H
#define TS_ARROW_ARROW_DICTIONARY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "arrow/arrow_memory.h"
#include "base/map.h"
#include "base/text.h"

/* ---- texts ---- */

struct ts_arrow_dictionary {
	pthread_mutex_t lock;
	struct ts_strmap indices;
	struct ts_arrow_block *offsets, *data; /* NULL before the first text */
	uint32_t count;
	uint32_t bytes;
	struct ts_text scratch;
};

void ts_arrow_dictionary_init(struct ts_arrow_dictionary *dictionary);
void ts_arrow_dictionary_release(struct ts_arrow_dictionary *dictionary);

/*
 * The index of a text, which is added if it is new, with bytes that are not UTF-8 replaced.
 * TS_ENOMEM, or TS_ENOSPC if all texts have more bytes than a dictionary can hold. Thread-safe.
 */
int ts_arrow_dictionary_add(struct ts_arrow_dictionary *dictionary, const char *text, size_t length,
			    int64_t *ret_index);

/* All texts so far: two buffers, which `kept` then keeps. Thread-safe. 0 or TS_ENOMEM. */
int ts_arrow_dictionary_get(struct ts_arrow_dictionary *dictionary, struct ts_arrow_kept *kept,
			    uint32_t *ret_count, const void **ret_offsets, const void **ret_data);

/* ---- ids ---- */

#define TS_ARROW_NOT_LOOKED_UP (INT64_MIN + 1)

/* Values by id, in pages that are made when an id of theirs is first looked up. */
struct ts_arrow_ids {
	_Atomic(_Atomic int64_t *) *pages;
	uint64_t end; /* larger ids are not kept */
	_Atomic int64_t pages_left;
};

/*
 * Of ids below `end`, on at most so many pages: a few bytes of a hostile file can name an id of
 * each page. 0 or TS_ENOMEM.
 */
int ts_arrow_ids_init(struct ts_arrow_ids *ids, uint64_t end, uint64_t pages);
void ts_arrow_ids_release(struct ts_arrow_ids *ids);

#define TS_ARROW_PAGE_BITS 10

/* TS_ARROW_NOT_LOOKED_UP, or what was put. */
static inline int64_t ts_arrow_ids_get(const struct ts_arrow_ids *ids, int64_t id)
{
	_Atomic int64_t *page;

	if ((uint64_t)id >= ids->end)
		return TS_ARROW_NOT_LOOKED_UP;
	page = atomic_load_explicit(&ids->pages[id >> TS_ARROW_PAGE_BITS], memory_order_acquire);
	return page ? atomic_load_explicit(&page[id & ((1 << TS_ARROW_PAGE_BITS) - 1)],
					   memory_order_relaxed)
		    : TS_ARROW_NOT_LOOKED_UP;
}

/* Thread-safe. Does nothing for large ids and without a page: they are looked up again. */
void ts_arrow_ids_put(struct ts_arrow_ids *ids, int64_t id, int64_t value);

#endif
