/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash maps with open addressing: integers to integers (ts_map), pairs of integers to integers
 * (ts_pairmap), byte strings to dense ids (ts_strmap). Power-of-two tables, linear probing, no
 * removal. Slots depend on a seed drawn once per process, so that a hostile file cannot make its
 * keys collide. Not thread-safe. Implemented in map.c and strmap.c.
 */
#ifndef TS_BASE_MAP_H
#define TS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/arena.h"
#include "base/local/hash.h"
#include "base/memory.h"

/* Drawn before the first table is allocated; never changes. */
extern uint64_t ts_map_seed_;
void ts_map_draw_seed_(void);

/* ---- uint64 -> uint64; every key is allowed ---- */

struct ts_map_slot {
	uint64_t key; /* 0: free; the entry of key 0 is in struct ts_map */
	uint64_t value;
};

struct ts_map {
	struct ts_map_slot *slots;
	size_t mask; /* slots - 1, or 0 without a table */
	size_t used; /* entries in slots */
	bool has_zero;
	uint64_t zero_value;
};

/* Allocates nothing before the first entry; a zeroed struct works as well. */
void ts_map_init(struct ts_map *map);
void ts_map_release(struct ts_map *map);

/* Drops all entries but keeps the memory. */
void ts_map_clear(struct ts_map *map);

static inline size_t ts_map_count(const struct ts_map *map)
{
	return map->used + map->has_zero;
}

/* False, with *ret_value untouched, if the key is missing. */
static inline bool ts_map_get(const struct ts_map *map, uint64_t key, uint64_t *ret_value)
{
	if (TS_UNLIKELY(key == 0)) {
		if (map->has_zero)
			*ret_value = map->zero_value;
		return map->has_zero;
	}
	if (TS_UNLIKELY(!map->slots))
		return false;
	for (size_t i = ts_hash_mix64(key ^ ts_map_seed_) & map->mask;; i = (i + 1) & map->mask) {
		const struct ts_map_slot *slot = &map->slots[i];

		if (slot->key == key) {
			*ret_value = slot->value;
			return true;
		}
		if (slot->key == 0)
			return false;
	}
}

/*
 * The address of the key's value, inserted as 0 if it was missing; NULL if out of memory. Valid
 * until the next put or insert. ret_new may be NULL.
 */
uint64_t *ts_map_insert(struct ts_map *map, uint64_t key, bool *ret_new);

/* Inserts or replaces; 0 or TS_ENOMEM. */
static inline int ts_map_put(struct ts_map *map, uint64_t key, uint64_t value)
{
	uint64_t *slot = ts_map_insert(map, key, NULL);

	if (!slot)
		return TS_ENOMEM;
	*slot = value;
	return TS_OK;
}

/*
 * Iterates over all entries in arbitrary order (sort before anything that must be reproducible).
 * *cursor starts at 0; false at the end. Do not insert while iterating.
 */
bool ts_map_next(const struct ts_map *map, size_t *cursor, uint64_t *ret_key, uint64_t *ret_value);

/* ---- (uint64, uint64) -> uint64; every key is allowed ---- */

struct ts_pairmap_slot {
	uint64_t first, second; /* both 0: free; the entry of (0, 0) is in struct ts_pairmap */
	uint64_t value;
};

struct ts_pairmap {
	struct ts_pairmap_slot *slots;
	size_t mask;
	size_t used;
	bool has_zero;
	uint64_t zero_value;
};

/* Each like its ts_map namesake. */
void ts_pairmap_init(struct ts_pairmap *map);
void ts_pairmap_release(struct ts_pairmap *map);
void ts_pairmap_clear(struct ts_pairmap *map);

static inline size_t ts_pairmap_count(const struct ts_pairmap *map)
{
	return map->used + map->has_zero;
}

static inline uint64_t ts_pairmap_hash_(uint64_t first, uint64_t second)
{
	return ts_hash_mix64(first ^ (ts_hash_mix64(second ^ ts_map_seed_) * 0x9e3779b97f4a7c15u));
}

static inline bool ts_pairmap_get(const struct ts_pairmap *map, uint64_t first, uint64_t second,
				  uint64_t *ret_value)
{
	if (TS_UNLIKELY((first | second) == 0)) {
		if (map->has_zero)
			*ret_value = map->zero_value;
		return map->has_zero;
	}
	if (TS_UNLIKELY(!map->slots))
		return false;
	for (size_t i = ts_pairmap_hash_(first, second) & map->mask;; i = (i + 1) & map->mask) {
		const struct ts_pairmap_slot *slot = &map->slots[i];

		if (slot->first == first && slot->second == second) {
			*ret_value = slot->value;
			return true;
		}
		if ((slot->first | slot->second) == 0)
			return false;
	}
}

uint64_t *ts_pairmap_insert(struct ts_pairmap *map, uint64_t first, uint64_t second, bool *ret_new);

static inline int ts_pairmap_put(struct ts_pairmap *map, uint64_t first, uint64_t second,
				 uint64_t value)
{
	uint64_t *slot = ts_pairmap_insert(map, first, second, NULL);

	if (!slot)
		return TS_ENOMEM;
	*slot = value;
	return TS_OK;
}

/* ---- byte strings -> dense ids ---- */

/* Never an id: returned when out of memory or out of ids. */
#define TS_STRMAP_NONE UINT32_MAX

struct ts_strmap_slot {
	uint32_t tag;   /* low half of the hash; also determines the slot */
	uint32_t index; /* into entries, plus 1; 0: free */
};

struct ts_strmap_entry {
	const char *text; /* in the arena, NUL-terminated */
	uint32_t length;
};

/* Ids are assigned upwards from first_id; those below held_from have been dropped. */
struct ts_strmap {
	struct ts_strmap_slot *slots;
	size_t mask;
	struct ts_strmap_entry *entries; /* ids held_from ... next_id - 1 */
	size_t entry_capacity;
	uint32_t held_from;
	uint32_t next_id;
	struct ts_arena texts;
};

void ts_strmap_init(struct ts_strmap *map, uint32_t first_id);
void ts_strmap_release(struct ts_strmap *map);

/*
 * The id of a string, added (copied) if it is new. TS_STRMAP_NONE when out of memory or ids, or for
 * a string of 4 GiB or more. ret_new may be NULL; it is written on success only.
 */
uint32_t ts_strmap_intern(struct ts_strmap *map, const char *text, size_t length, bool *ret_new);

/* The same for a caller who already has ts_hash64(text, length). */
uint32_t ts_strmap_intern_hashed(struct ts_strmap *map, const char *text, size_t length,
				 uint64_t hash, bool *ret_new);

/* The id of a string in the map, or TS_STRMAP_NONE; never adds. */
uint32_t ts_strmap_find(const struct ts_strmap *map, const char *text, size_t length);

/*
 * The text of an id, NUL-terminated, valid until forget or release; NULL for an unknown or dropped
 * id. ret_length may be NULL.
 */
const char *ts_strmap_text(const struct ts_strmap *map, uint32_t id, size_t *ret_length);

/*
 * Drops all texts and slots and continues with new ids, so that an endless stream of names needs
 * bounded memory. A string seen again gets another id.
 */
void ts_strmap_forget(struct ts_strmap *map);

/* Strings in the map. */
static inline uint32_t ts_strmap_count(const struct ts_strmap *map)
{
	return map->next_id - map->held_from;
}

/* Bytes of memory used: texts, entries and table. */
size_t ts_strmap_bytes(const struct ts_strmap *map);

#endif
