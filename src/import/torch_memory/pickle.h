/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's pickle as data: numbers, texts, lists, tuples, sets, dicts, and one thing that stands
 * at many places. What would make Python import, call or build something is refused; nothing is
 * ever run. Protocols 0 to 5.
 *
 * A value is 8 bytes; a container has 16 more and a list of its items. Nothing here recurses, and
 * a value that is used at many places is held once: memory is in proportion to the bytes read,
 * whatever they say.
 */
#ifndef TS_IMPORT_TORCH_MEMORY_PICKLE_H
#define TS_IMPORT_TORCH_MEMORY_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/text.h"
#include "import/import.h"

/* Kind in the low bits, the rest by kind: see pickle.c. */
typedef uint64_t ts_pickle_value;

enum ts_pickle_kind {
	TS_PICKLE_NONE,
	TS_PICKLE_FALSE,
	TS_PICKLE_TRUE,
	TS_PICKLE_INT,
	TS_PICKLE_WIDE, /* also an integer, of more than 60 bits */
	TS_PICKLE_BIG,  /* an integer beyond an int64: its value is not kept */
	TS_PICKLE_FLOAT,
	TS_PICKLE_TEXT,
	TS_PICKLE_BYTES,
	TS_PICKLE_LIST,
	TS_PICKLE_TUPLE,
	TS_PICKLE_SET,
	TS_PICKLE_DICT,
};

/* A container's: 0 at first, then what the caller likes. */
#define TS_PICKLE_NOTE_CUT UINT32_MAX /* a dict that the file breaks off in */

/* Items of fixed size in blocks that never move. */
struct ts_pickle_pool {
	char **blocks;
	size_t block_capacity;
	uint64_t used;
	size_t item_bytes;
};

struct ts_pickle {
	struct ts_import *import;
	uint64_t at;            /* byte of the opcode */
	struct ts_strmap texts; /* of texts and bytes, by content */
	struct ts_pickle_pool slots, containers;
	int64_t *wides;
	size_t wide_count, wide_capacity;
	ts_pickle_value *stack;
	size_t depth, stack_capacity;
	size_t *marks; /* places in the stack */
	size_t mark_count, mark_capacity;
	ts_pickle_value *memo;
	size_t memo_count, memo_capacity;
	struct ts_map far_memo; /* numbers that do not follow each other */
	struct ts_text scratch;
	bool refused; /* it wants something to be run */
	/*
	 * Of damage: where, and what; NULL with a place: the file ends there. For ts_pickle_tell().
	 */
	uint64_t damage_at;
	const char *damage;
	bool damaged;
};

/* The texts that the caller will ask for get the ids 0, 1, 2 ... */
int ts_pickle_init(struct ts_pickle *pickle, struct ts_import *import, const char *const *texts,
		   size_t count);
void ts_pickle_release(struct ts_pickle *pickle);

/*
 * Reads up to the end of the pickle. TS_EFORMAT where it is damaged, breaks off, or would run
 * something (then `refused`); TS_ECANCELED; TS_ENOMEM. After damage ts_pickle_fold() gives the part
 * of the value that was there.
 */
int ts_pickle_read(struct ts_pickle *pickle, ts_pickle_value *ret_value, struct ts_error *err);
int ts_pickle_fold(struct ts_pickle *pickle, ts_pickle_value *ret_value);

/*
 * The error of ts_pickle_read() once more, when there are rows of which it can be said that they
 * are kept.
 */
int ts_pickle_tell(const struct ts_pickle *pickle, struct ts_error *err);

static inline enum ts_pickle_kind ts_pickle_kind(ts_pickle_value value)
{
	return (enum ts_pickle_kind)(value & 15);
}

static inline bool ts_pickle_is_container(ts_pickle_value value)
{
	return ts_pickle_kind(value) >= TS_PICKLE_LIST;
}

/* False, with *ret untouched, where it is something else. bools count as integers, as in Python. */
bool ts_pickle_int(const struct ts_pickle *pickle, ts_pickle_value value, int64_t *ret);
double ts_pickle_float(const struct ts_pickle *pickle, ts_pickle_value value);

/* The id of a TEXT or BYTES, or TS_STRMAP_NONE. */
static inline uint32_t ts_pickle_text(ts_pickle_value value)
{
	enum ts_pickle_kind kind = ts_pickle_kind(value);

	return kind == TS_PICKLE_TEXT || kind == TS_PICKLE_BYTES ? (uint32_t)(value >> 4)
								 : TS_STRMAP_NONE;
}

uint32_t ts_pickle_count(const struct ts_pickle *p, ts_pickle_value value);
uint32_t *ts_pickle_note(const struct ts_pickle *p, ts_pickle_value value);

/*
 * The items of a container; of a dict keys and values in turn, the same key perhaps twice: the last
 * one counts.
 */
struct ts_pickle_items {
	const struct ts_pickle *pickle;
	uint64_t slot;
	uint32_t next, left; /* the chunk behind this one; items of this one */
};

struct ts_pickle_items ts_pickle_items(const struct ts_pickle *p, ts_pickle_value value);
bool ts_pickle_next_chunk_(struct ts_pickle_items *items);

#define TS_PICKLE_POOL_SHIFT 12
#define TS_PICKLE_POOL_MASK (((uint64_t)1 << TS_PICKLE_POOL_SHIFT) - 1)

static inline void *ts_pickle_pool_at(const struct ts_pickle_pool *pool, uint64_t index)
{
	return pool->blocks[index >> TS_PICKLE_POOL_SHIFT] +
	       (index & TS_PICKLE_POOL_MASK) * pool->item_bytes;
}

static inline bool ts_pickle_next(struct ts_pickle_items *items, ts_pickle_value *ret_value)
{
	if (!items->left && !ts_pickle_next_chunk_(items))
		return false;
	items->left--;
	*ret_value =
		*(const ts_pickle_value *)ts_pickle_pool_at(&items->pickle->slots, items->slot++);
	return true;
}

static inline bool ts_pickle_next_pair(struct ts_pickle_items *items, ts_pickle_value *ret_key,
				       ts_pickle_value *ret_value)
{
	return ts_pickle_next(items, ret_key) && ts_pickle_next(items, ret_value);
}

/*
 * Appends a value as JSON; keys that are no texts become some. *budget is how many values may still
 * be looked at, here and in later calls: one thing that stands at many places is written many
 * times. False: it was too much, or nested deeper than 64.
 */
bool ts_pickle_json(const struct ts_pickle *pickle, ts_pickle_value value, struct ts_text *out,
		    uint64_t *budget);

#endif
