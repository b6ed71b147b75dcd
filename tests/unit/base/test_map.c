/* SPDX-License-Identifier: Apache-2.0 */
/* The hash maps, compared with plain arrays, and interning with removal. */
#include "base/map.h"

#include <stdio.h>
#include <string.h>

#include "unit/runner.h"

TS_TEST(map_empty)
{
	TS_SCOPED(ts_map) map = { 0 };
	uint64_t key, value = 5;
	size_t cursor = 0;

	ts_map_init(&map);
	TS_CHECK(!ts_map_get(&map, 0, &value));
	TS_CHECK(!ts_map_get(&map, 1, &value));
	TS_CHECK_INT(value, 5);
	TS_CHECK_INT(ts_map_count(&map), 0);
	TS_CHECK(!ts_map_next(&map, &cursor, &key, &value));
	ts_map_clear(&map);
}

/* Keys that are close, distant, aligned and extreme. */
static uint64_t key_of(uint64_t i)
{
	switch (i & 3) {
	case 0:
		return i >> 2;
	case 1:
		return (i >> 2) << 40 | 1 << 20;
	case 2:
		return UINT64_MAX - (i >> 2) * 4096;
	default:
		return i * 0x9e3779b97f4a7c15u;
	}
}

TS_TEST(map_holds_what_was_put)
{
	TS_SCOPED(ts_map) map = { 0 };
	uint64_t key, value, sum = 0;
	size_t cursor = 0, count = 0;
	bool is_new;

	ts_map_init(&map);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 20000; i++) {
			TS_CHECK(!ts_map_get(&map, key_of(i), &value));
			TS_CHECK_INT(ts_map_put(&map, key_of(i), i), TS_OK);
			TS_CHECK_INT(ts_map_count(&map), i + 1);
		}
		for (uint64_t i = 0; i < 20000; i++) {
			TS_CHECK(ts_map_get(&map, key_of(i), &value));
			TS_CHECK_INT(value, i);
			TS_CHECK_INT(ts_map_put(&map, key_of(i), i + 1), TS_OK);
			TS_CHECK_INT(*ts_map_insert(&map, key_of(i), &is_new), i + 1);
			TS_CHECK(!is_new);
		}
		TS_CHECK_INT(ts_map_count(&map), 20000);
		if (round == 0)
			ts_map_clear(&map);
	}
	while (ts_map_next(&map, &cursor, &key, &value)) {
		TS_CHECK_INT(key, key_of(value - 1));
		sum += value;
		count++;
	}
	TS_CHECK_INT(count, 20000);
	TS_CHECK_INT(sum, (uint64_t)20000 * 20001 / 2);
	TS_CHECK(!ts_map_next(&map, &cursor, &key, &value));
}

TS_TEST(map_zero_key_starts_at_zero_again)
{
	TS_SCOPED(ts_map) map = { 0 };
	bool is_new;

	ts_map_init(&map);
	*ts_map_insert(&map, 0, &is_new) = 9;
	TS_CHECK(is_new);
	TS_CHECK_INT(*ts_map_insert(&map, 0, &is_new), 9);
	TS_CHECK(!is_new);
	ts_map_clear(&map);
	TS_CHECK_INT(*ts_map_insert(&map, 0, &is_new), 0);
	TS_CHECK(is_new);
	TS_CHECK_INT(*ts_map_insert(&map, 3, &is_new), 0);
	TS_CHECK(is_new);
}

TS_TEST(pairmap_holds_what_was_put)
{
	TS_SCOPED(ts_pairmap) map = { 0 };
	uint64_t value = 5;
	bool is_new;

	ts_pairmap_init(&map);
	TS_CHECK(!ts_pairmap_get(&map, 0, 0, &value));
	TS_CHECK(!ts_pairmap_get(&map, 0, 1, &value));
	TS_CHECK_INT(value, 5);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 150 * 150; i++) {
			TS_CHECK(!ts_pairmap_get(&map, i % 150, i / 150 << 33, &value));
			TS_CHECK_INT(ts_pairmap_put(&map, i % 150, i / 150 << 33, i), TS_OK);
		}
		TS_CHECK_INT(ts_pairmap_count(&map), 150 * 150);
		for (uint64_t i = 0; i < 150 * 150; i++) {
			TS_CHECK(ts_pairmap_get(&map, i % 150, i / 150 << 33, &value));
			TS_CHECK_INT(value, i);
			ts_pairmap_insert(&map, i % 150, i / 150 << 33, &is_new);
			TS_CHECK(!is_new);
		}
		TS_CHECK(!ts_pairmap_get(&map, 150, 0, &value));
		ts_pairmap_clear(&map);
		TS_CHECK_INT(ts_pairmap_count(&map), 0);
	}
}

TS_TEST(pairmap_order_matters)
{
	TS_SCOPED(ts_pairmap) map = { 0 };
	uint64_t value;

	ts_pairmap_init(&map);
	for (uint64_t i = 1; i < 100; i++)
		ts_pairmap_put(&map, i, i + 1, i);
	for (uint64_t i = 1; i < 100; i++)
		TS_CHECK(!ts_pairmap_get(&map, i + 1, i, &value));
}

static size_t name_of(char name[64], unsigned int i)
{
	/* Lengths from 0 to 40, so that every comparison path is used. */
	size_t length = (size_t)snprintf(name, 64, "%u", i);

	if (i == 0)
		return 0;
	while (length < i % 41)
		name[length++] = 'x';
	return length;
}

TS_TEST(strmap_gives_dense_ids)
{
	TS_SCOPED(ts_strmap) map = { 0 };
	bool is_new;
	char name[64];
	size_t length;

	ts_strmap_init(&map, 7);
	TS_CHECK_INT(ts_strmap_find(&map, "", 0), TS_STRMAP_NONE);
	for (unsigned int i = 0; i < 30000; i++) {
		length = name_of(name, i);
		TS_CHECK_INT(ts_strmap_intern(&map, name, length, &is_new), 7 + i);
		TS_CHECK(is_new);
	}
	for (unsigned int i = 0; i < 30000; i++) {
		const char *text;
		size_t held;

		length = name_of(name, i);
		TS_CHECK_INT(ts_strmap_intern(&map, name, length, &is_new), 7 + i);
		TS_CHECK(!is_new);
		TS_CHECK_INT(
			ts_strmap_intern_hashed(&map, name, length, ts_hash64(name, length), NULL),
			7 + i);
		TS_CHECK_INT(ts_strmap_find(&map, name, length), 7 + i);
		text = ts_strmap_text(&map, 7 + i, &held);
		TS_CHECK_INT(held, length);
		TS_CHECK_MEM(text, name, length);
		TS_CHECK_INT(text[length], 0);
	}
	TS_CHECK_INT(ts_strmap_count(&map), 30000);
	TS_CHECK(ts_strmap_text(&map, 6, NULL) == NULL);
	TS_CHECK(ts_strmap_text(&map, 30007, NULL) == NULL);
	TS_CHECK_INT(ts_strmap_find(&map, "nobody", 6), TS_STRMAP_NONE);
}

TS_TEST(strmap_tells_likely_strings_apart)
{
	TS_SCOPED(ts_strmap) map = { 0 };
	char one[200], other[200];

	ts_strmap_init(&map, 0);
	for (size_t length = 1; length < sizeof(one); length++) {
		memset(one, 'q', length);
		ts_strmap_intern(&map, one, length, NULL);
		/* Forced equal hashes: the bytes must decide. */
		for (size_t at = 0; at < length; at++) {
			bool is_new;
			uint32_t id;

			memcpy(other, one, length);
			other[at] = 'r';
			id = ts_strmap_intern_hashed(&map, other, length, ts_hash64(one, length),
						     &is_new);
			TS_CHECK(is_new);
			TS_CHECK(id != ts_strmap_find(&map, one, length));
			if (at == 3)
				break;
			at += at % 13;
		}
	}
	/* NULs are ordinary bytes. */
	TS_CHECK(ts_strmap_intern(&map, "a\0b", 3, NULL) !=
		 ts_strmap_intern(&map, "a\0c", 3, NULL));
}

TS_TEST(strmap_forgets_and_goes_on)
{
	TS_SCOPED(ts_strmap) map = { 0 };
	size_t bytes = 0, length;
	const char *text;
	bool is_new;
	char name[64];

	ts_strmap_init(&map, 1);
	TS_CHECK_INT(ts_strmap_bytes(&map), 0);
	ts_strmap_forget(&map);
	for (unsigned int round = 0; round < 50; round++) {
		for (unsigned int i = 1; i <= 1000; i++) {
			length = name_of(name, i);
			TS_CHECK_INT(ts_strmap_intern(&map, name, length, &is_new),
				     round * 1000 + i);
			TS_CHECK(is_new);
		}
		TS_CHECK(ts_strmap_text(&map, round * 1000, NULL) == NULL);
		text = ts_strmap_text(&map, round * 1000 + 1000, &length);
		TS_CHECK_INT(length, name_of(name, 1000));
		TS_CHECK_MEM(text, name, length);
		if (round == 0)
			bytes = ts_strmap_bytes(&map);
		TS_CHECK(ts_strmap_bytes(&map) <= 2 * bytes);
		ts_strmap_forget(&map);
		TS_CHECK_INT(ts_strmap_count(&map), 0);
		TS_CHECK_INT(ts_strmap_find(&map, name, length), TS_STRMAP_NONE);
	}
}

TS_TEST(strmap_ends_with_its_ids)
{
	TS_SCOPED(ts_strmap) map = { 0 };
	bool is_new = false;

	ts_strmap_init(&map, UINT32_MAX - 2);
	TS_CHECK_INT(ts_strmap_intern(&map, "a", 1, NULL), UINT32_MAX - 2);
	TS_CHECK_INT(ts_strmap_intern(&map, "b", 1, NULL), UINT32_MAX - 1);
	TS_CHECK_INT(ts_strmap_intern(&map, "c", 1, &is_new), TS_STRMAP_NONE);
	TS_CHECK(!is_new);
	TS_CHECK_INT(ts_strmap_intern(&map, "a", 1, NULL), UINT32_MAX - 2);
}
