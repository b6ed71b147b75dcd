/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interns byte strings. Importers do this several times per event, so a hit touches one slot (hash
 * tag and index), one entry (length and offset) and the text.
 */
#include "base/map.h"

#include <string.h>

#define FIRST_SLOTS ((size_t)64)

void ts_strmap_init(struct ts_strmap *map, uint32_t first_id)
{
	*map = (struct ts_strmap){ .held_from = first_id, .next_id = first_id };
	ts_arena_init(&map->texts);
}

void ts_strmap_release(struct ts_strmap *map)
{
	free(map->slots);
	free(map->entries);
	ts_arena_release(&map->texts);
	ts_strmap_init(map, map->next_id);
}

void ts_strmap_forget(struct ts_strmap *map)
{
	uint32_t next_id = map->next_id;

	/*
	 * Frees the memory too: a caller who forgets because of a budget must be below it
	 * afterwards.
	 */
	ts_strmap_release(map);
	ts_strmap_init(map, next_id);
}

size_t ts_strmap_bytes(const struct ts_strmap *map)
{
	return ts_arena_bytes(&map->texts) + map->entry_capacity * sizeof(*map->entries) +
	       (map->slots ? (map->mask + 1) * sizeof(*map->slots) : 0);
}

/* memcmp() == 0 without the call, for names of typical length. */
static inline bool same_bytes(const char *a, const char *b, size_t n)
{
	uint64_t wide_a, wide_b;
	uint32_t a4, b4;

	if (n > 64)
		return memcmp(a, b, n) == 0;
	if (n >= 8) {
		for (size_t i = 0; i < n - 8; i += 8) {
			memcpy(&wide_a, a + i, 8);
			memcpy(&wide_b, b + i, 8);
			if (wide_a != wide_b)
				return false;
		}
		memcpy(&wide_a, a + n - 8, 8);
		memcpy(&wide_b, b + n - 8, 8);
		return wide_a == wide_b;
	}
	if (n >= 4) {
		memcpy(&a4, a, 4);
		memcpy(&b4, b, 4);
		if (a4 != b4)
			return false;
		memcpy(&a4, a + n - 4, 4);
		memcpy(&b4, b + n - 4, 4);
		return a4 == b4;
	}
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

/* The slot of the string, or the free one where it belongs. The table exists. */
static inline struct ts_strmap_slot *find(const struct ts_strmap *map, const char *text,
					  size_t length, uint32_t tag)
{
	for (size_t i = tag & map->mask;; i = (i + 1) & map->mask) {
		struct ts_strmap_slot *slot = &map->slots[i];
		const struct ts_strmap_entry *entry;

		if (slot->index == 0)
			return slot;
		if (slot->tag != tag)
			continue;
		entry = &map->entries[slot->index - 1];
		if (TS_LIKELY(entry->length == length && same_bytes(entry->text, text, length)))
			return slot;
	}
}

static int grow_table(struct ts_strmap *map)
{
	size_t count = map->slots ? (map->mask + 1) * 2 : FIRST_SLOTS;
	struct ts_strmap_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return TS_ENOMEM;
	ts_map_draw_seed_();
	for (size_t i = 0; map->slots && i <= map->mask; i++) {
		size_t at = map->slots[i].tag & (count - 1);

		if (map->slots[i].index == 0)
			continue;
		while (slots[at].index)
			at = (at + 1) & (count - 1);
		slots[at] = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->mask = count - 1;
	return TS_OK;
}

static inline uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)ts_hash_mix64(hash ^ ts_map_seed_);
}

/* Not inlined, to keep the hit path small. */
static __attribute__((noinline)) uint32_t add(struct ts_strmap *map, const char *text,
					      size_t length, uint64_t hash, bool *ret_new)
{
	size_t count = ts_strmap_count(map);
	const char *copy;

	if (length > UINT32_MAX - 1 || map->next_id == TS_STRMAP_NONE)
		return TS_STRMAP_NONE;
	if ((!map->slots || count * 2 > map->mask) && grow_table(map))
		return TS_STRMAP_NONE;
	if (ts_grow_array((void **)&map->entries, &map->entry_capacity, count + 1,
			  sizeof(*map->entries)))
		return TS_STRMAP_NONE;
	copy = ts_arena_strdup_len(&map->texts, text, length);
	if (!copy)
		return TS_STRMAP_NONE;
	map->entries[count] = (struct ts_strmap_entry){ .text = copy, .length = (uint32_t)length };
	*find(map, text, length, tag_of(hash)) =
		(struct ts_strmap_slot){ tag_of(hash), (uint32_t)count + 1 };
	if (ret_new)
		*ret_new = true;
	return map->next_id++;
}

uint32_t ts_strmap_intern_hashed(struct ts_strmap *map, const char *text, size_t length,
				 uint64_t hash, bool *ret_new)
{
	if (TS_LIKELY(map->slots)) {
		const struct ts_strmap_slot *slot = find(map, text, length, tag_of(hash));

		if (TS_LIKELY(slot->index)) {
			if (ret_new)
				*ret_new = false;
			return map->held_from + slot->index - 1;
		}
	}
	return add(map, text, length, hash, ret_new);
}

uint32_t ts_strmap_intern(struct ts_strmap *map, const char *text, size_t length, bool *ret_new)
{
	return ts_strmap_intern_hashed(map, text, length, ts_hash64(text, length), ret_new);
}

uint32_t ts_strmap_find(const struct ts_strmap *map, const char *text, size_t length)
{
	const struct ts_strmap_slot *slot;

	if (!map->slots)
		return TS_STRMAP_NONE;
	slot = find(map, text, length, tag_of(ts_hash64(text, length)));
	return slot->index ? map->held_from + slot->index - 1 : TS_STRMAP_NONE;
}

const char *ts_strmap_text(const struct ts_strmap *map, uint32_t id, size_t *ret_length)
{
	const struct ts_strmap_entry *entry;

	if (id < map->held_from || id >= map->next_id)
		return NULL;
	entry = &map->entries[id - map->held_from];
	if (ret_length)
		*ret_length = entry->length;
	return entry->text;
}
