/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps from integers and pairs of integers to integers. A free slot has key 0, and the entry of key
 * 0 is stored beside the table, so that a probe reads one or two words and nothing else.
 */
#include "base/map.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define FIRST_SLOTS 16

uint64_t ts_map_seed_;

static void draw_seed(void)
{
	if (getrandom(&ts_map_seed_, sizeof(ts_map_seed_), GRND_NONBLOCK) !=
	    (ssize_t)sizeof(ts_map_seed_))
		ts_map_seed_ = ts_hash_mix64((uint64_t)ts_clock_monotonic_ns());
}

void ts_map_draw_seed_(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, draw_seed);
}

/* Twice the slots (mask is 0 for none), zeroed; NULL if out of memory. */
static void *new_slots(size_t mask, size_t slot_bytes, size_t *ret_mask)
{
	size_t count = mask ? mask + 1 : FIRST_SLOTS / 2;
	void *slots;

	if (count > SIZE_MAX / 2)
		return NULL;
	ts_map_draw_seed_();
	slots = calloc(count * 2, slot_bytes);
	if (slots)
		*ret_mask = count * 2 - 1;
	return slots;
}

/* Two thirds full: probe sequences stay short up to there. */
static bool is_full(size_t used, size_t mask)
{
	return used >= mask - mask / 3;
}

/* ---- one key ---- */

void ts_map_init(struct ts_map *map)
{
	*map = (struct ts_map){ .slots = NULL };
}

void ts_map_release(struct ts_map *map)
{
	free(map->slots);
	ts_map_init(map);
}

void ts_map_clear(struct ts_map *map)
{
	if (map->used)
		memset(map->slots, 0, (map->mask + 1) * sizeof(*map->slots));
	map->used = 0;
	map->has_zero = false;
}

/* The slot of the key, or the free one where it belongs. */
static struct ts_map_slot *find(struct ts_map_slot *slots, size_t mask, uint64_t key)
{
	size_t i = ts_hash_mix64(key ^ ts_map_seed_) & mask;

	while (slots[i].key != 0 && slots[i].key != key)
		i = (i + 1) & mask;
	return &slots[i];
}

static int grow(struct ts_map *map)
{
	size_t mask;
	struct ts_map_slot *slots = new_slots(map->mask, sizeof(*slots), &mask);

	if (!slots)
		return TS_ENOMEM;
	for (size_t i = 0; map->slots && i <= map->mask; i++) {
		if (map->slots[i].key)
			*find(slots, mask, map->slots[i].key) = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->mask = mask;
	return TS_OK;
}

uint64_t *ts_map_insert(struct ts_map *map, uint64_t key, bool *ret_new)
{
	struct ts_map_slot *slot;
	bool is_new;

	if (key == 0) {
		is_new = !map->has_zero;
		if (is_new)
			map->zero_value = 0;
		map->has_zero = true;
		if (ret_new)
			*ret_new = is_new;
		return &map->zero_value;
	}
	if (!map->slots && grow(map))
		return NULL;
	slot = find(map->slots, map->mask, key);
	is_new = slot->key == 0;
	if (is_new) {
		if (is_full(map->used, map->mask)) {
			if (grow(map))
				return NULL;
			slot = find(map->slots, map->mask, key);
		}
		*slot = (struct ts_map_slot){ .key = key };
		map->used++;
	}
	if (ret_new)
		*ret_new = is_new;
	return &slot->value;
}

bool ts_map_next(const struct ts_map *map, size_t *cursor, uint64_t *ret_key, uint64_t *ret_value)
{
	/* Cursor 0 is the entry of key 0, cursor i + 1 slot i. */
	if (*cursor == 0) {
		*cursor = 1;
		if (map->has_zero) {
			*ret_key = 0;
			*ret_value = map->zero_value;
			return true;
		}
	}
	while (map->slots && *cursor - 1 <= map->mask) {
		const struct ts_map_slot *slot = &map->slots[(*cursor)++ - 1];

		if (slot->key) {
			*ret_key = slot->key;
			*ret_value = slot->value;
			return true;
		}
	}
	return false;
}

/* ---- two keys ---- */

void ts_pairmap_init(struct ts_pairmap *map)
{
	*map = (struct ts_pairmap){ .slots = NULL };
}

void ts_pairmap_release(struct ts_pairmap *map)
{
	free(map->slots);
	ts_pairmap_init(map);
}

void ts_pairmap_clear(struct ts_pairmap *map)
{
	if (map->used)
		memset(map->slots, 0, (map->mask + 1) * sizeof(*map->slots));
	map->used = 0;
	map->has_zero = false;
}

static bool is_free(const struct ts_pairmap_slot *slot)
{
	return (slot->first | slot->second) == 0;
}

static struct ts_pairmap_slot *find_pair(struct ts_pairmap_slot *slots, size_t mask, uint64_t first,
					 uint64_t second)
{
	size_t i = ts_pairmap_hash_(first, second) & mask;

	while (!is_free(&slots[i]) && (slots[i].first != first || slots[i].second != second))
		i = (i + 1) & mask;
	return &slots[i];
}

static int grow_pairs(struct ts_pairmap *map)
{
	size_t mask;
	struct ts_pairmap_slot *slots = new_slots(map->mask, sizeof(*slots), &mask);

	if (!slots)
		return TS_ENOMEM;
	for (size_t i = 0; map->slots && i <= map->mask; i++) {
		const struct ts_pairmap_slot *slot = &map->slots[i];

		if (!is_free(slot))
			*find_pair(slots, mask, slot->first, slot->second) = *slot;
	}
	free(map->slots);
	map->slots = slots;
	map->mask = mask;
	return TS_OK;
}

uint64_t *ts_pairmap_insert(struct ts_pairmap *map, uint64_t first, uint64_t second, bool *ret_new)
{
	struct ts_pairmap_slot *slot;
	bool is_new;

	if ((first | second) == 0) {
		is_new = !map->has_zero;
		if (is_new)
			map->zero_value = 0;
		map->has_zero = true;
		if (ret_new)
			*ret_new = is_new;
		return &map->zero_value;
	}
	if (!map->slots && grow_pairs(map))
		return NULL;
	slot = find_pair(map->slots, map->mask, first, second);
	is_new = is_free(slot);
	if (is_new) {
		if (is_full(map->used, map->mask)) {
			if (grow_pairs(map))
				return NULL;
			slot = find_pair(map->slots, map->mask, first, second);
		}
		*slot = (struct ts_pairmap_slot){ .first = first, .second = second };
		map->used++;
	}
	if (ret_new)
		*ret_new = is_new;
	return &slot->value;
}
