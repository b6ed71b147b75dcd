/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Python pickles as data: numbers, strings, lists, tuples, sets, dicts, and shared
 * references. Rejects everything that would make Python import, call or build something; nothing is
 * ever executed. Protocols 0 to 5.
 *
 * A value has 8 bytes; a container has 16 more and a list of its items. Nothing recurses, and a
 * shared value is stored once: memory is proportional to the bytes read, whatever they contain.
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
	TS_PICKLE_WIDE, /* also an integer, with more than 60 bits */
	TS_PICKLE_BIG,  /* an integer outside int64: its value is not kept */
	TS_PICKLE_FLOAT,
	TS_PICKLE_TEXT,
	TS_PICKLE_BYTES,
	TS_PICKLE_LIST,
	TS_PICKLE_TUPLE,
	TS_PICKLE_SET,
	TS_PICKLE_DICT,
};

/* Note of a container: 0 at first, then for the caller's use. */
#define TS_PICKLE_NOTE_CUT UINT32_MAX /* a dict in which the file is truncated */

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
	size_t *marks; /* indices in the stack */
	size_t mark_count, mark_capacity;
	ts_pickle_value *memo;
	size_t memo_count, memo_capacity;
	struct ts_map far_memo; /* for numbers that are not consecutive */
	struct ts_text scratch;
	bool refused; /* it asks to run code */
	/* Damage: position and reason; reason NULL: truncated there. For ts_pickle_error(). */
	uint64_t damage_at;
	const char *damage;
	bool damaged;
};

/* The texts that the caller will look up get the ids 0, 1, 2 ... */
int ts_pickle_init(struct ts_pickle *pickle, struct ts_import *import, const char *const *texts,
		   size_t count);
void ts_pickle_release(struct ts_pickle *pickle);

/*
 * Reads up to the end of the pickle. TS_EFORMAT if it is damaged, truncated, or would run code
 * (then `refused`); TS_ECANCELED; TS_ENOMEM. After damage ts_pickle_fold() returns the part of the
 * value that was read.
 */
int ts_pickle_read(struct ts_pickle *pickle, ts_pickle_value *ret_value, struct ts_error *err);
int ts_pickle_fold(struct ts_pickle *pickle, ts_pickle_value *ret_value);

/* Repeats the error of ts_pickle_read(), once it is known whether rows were kept. */
int ts_pickle_error(const struct ts_pickle *pickle, struct ts_error *err);

static inline enum ts_pickle_kind ts_pickle_kind(ts_pickle_value value)
{
	return (enum ts_pickle_kind)(value & 15);
}

static inline bool ts_pickle_is_container(ts_pickle_value value)
{
	return ts_pickle_kind(value) >= TS_PICKLE_LIST;
}

/* False, with *ret unchanged, for other types. bools count as integers, as in Python. */
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
 * The items of a container; for a dict alternating keys and values. Of duplicate keys the last
 * counts.
 */
struct ts_pickle_items {
	const struct ts_pickle *pickle;
	uint64_t slot;
	uint32_t next, left; /* the next chunk; items left in this one */
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
 * Appends a value as JSON; keys that are not text are converted. *budget limits the values visited
 * in all calls, because one value may be referenced many times. False: budget exceeded, or nested
 * deeper than 64.
 */
bool ts_pickle_json(const struct ts_pickle *pickle, ts_pickle_value value, struct ts_text *out,
		    uint64_t *budget);

#endif
