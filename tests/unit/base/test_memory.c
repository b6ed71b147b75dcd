/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays, scope exit and the arena. */
#include "base/memory.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "unit/runner.h"

TS_TEST(array_grows)
{
	TS_AUTO_FREE int *items = NULL;
	size_t capacity = 0, times = 0;

	for (size_t i = 0; i < 100000; i++) {
		size_t before = capacity;

		TS_CHECK_INT(ts_grow_array((void **)&items, &capacity, i + 1, sizeof(*items)), 0);
		TS_CHECK(capacity >= i + 1);
		times += capacity != before;
		items[i] = (int)i;
	}
	TS_CHECK(times < 30);
	for (size_t i = 0; i < 100000; i++)
		TS_CHECK_INT(items[i], i);
}

TS_TEST(array_refuses_what_cannot_be)
{
	TS_AUTO_FREE char *bytes = NULL;
	size_t capacity = 0;
	char *before;

	TS_CHECK_INT(ts_grow_array((void **)&bytes, &capacity, 10, 1), 0);
	before = bytes;
	TS_CHECK_INT(ts_grow_array((void **)&bytes, &capacity, SIZE_MAX, 1), TS_ENOMEM);
	TS_CHECK_INT(ts_grow_array((void **)&bytes, &capacity, SIZE_MAX / 2 + 2, 1), TS_ENOMEM);
	TS_CHECK_INT(ts_grow_array((void **)&bytes, &capacity, SIZE_MAX / 8 + 2, 8), TS_ENOMEM);
	TS_CHECK_INT(ts_grow_array((void **)&bytes, &capacity, SIZE_MAX, SIZE_MAX), TS_ENOMEM);
	TS_CHECK(bytes == before);
	TS_CHECK_INT(capacity, 64);
	TS_CHECK(ts_alloc_array(SIZE_MAX / 2, 3) == NULL);
}

struct thing {
	int *closed;
};

static void thing_close(struct thing *thing)
{
	++*thing->closed;
}

TS_DEFINE_AUTO(thing, thing_close);

static struct thing *pass_on(struct thing *given)
{
	TS_AUTO(thing) thing = given;

	return TS_STEAL(thing);
}

TS_TEST(scope_exit)
{
	int closed = 0;
	struct thing storage = { &closed };
	int fd_number;

	{
		TS_AUTO(thing) thing = NULL;
		TS_AUTO(thing) other = &storage;

		(void)thing;
		(void)other;
	}
	TS_CHECK_INT(closed, 1);
	TS_CHECK(pass_on(&storage) == &storage);
	TS_CHECK_INT(closed, 1);
	{
		TS_AUTO_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		TS_AUTO_FD int none = -1;

		(void)none;
		TS_CHECK(fd >= 0);
		fd_number = fd;
	}
	TS_CHECK_INT(fcntl(fd_number, F_GETFD), -1);
}

TS_TEST(small_macros)
{
	int array[7];

	TS_CHECK_INT(TS_ARRAY_SIZE(array), 7);
	TS_CHECK_INT(TS_MIN(3, 2), 2);
	TS_CHECK_INT(TS_MAX(3, TS_MIN(9, 4)), 4);
}

TS_TEST(arena_alignment_and_contents)
{
	static const char *const parts[] = { "", "x", "xy", "xyz" };
	TS_SCOPED(ts_arena) arena = { 0 };
	char *allocated[2000];

	ts_arena_init(&arena);
	TS_CHECK_INT(ts_arena_bytes(&arena), 0);
	for (size_t i = 0; i < TS_ARRAY_SIZE(allocated); i++) {
		allocated[i] = ts_arena_alloc(&arena, i % 97);
		TS_CHECK(allocated[i] != NULL);
		TS_CHECK_INT((uintptr_t)allocated[i] % 16, 0);
		memset(allocated[i], (int)(i & 0xff), i % 97);
		/* Strings in between are packed and do not affect alignment. */
		TS_CHECK_STR(ts_arena_strdup_len(&arena, "xyz", i % 4), parts[i % 4]);
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(allocated); i++) {
		for (size_t k = 0; k < i % 97; k++)
			TS_CHECK_INT((unsigned char)allocated[i][k], i & 0xff);
	}
}

TS_TEST(arena_large_pieces_keep_the_current_block)
{
	TS_SCOPED(ts_arena) arena = { 0 };
	char *first, *second;
	size_t bytes;

	ts_arena_init(&arena);
	first = ts_arena_alloc(&arena, 16);
	memset(ts_arena_alloc(&arena, 10 << 20), 1, 10 << 20);
	bytes = ts_arena_bytes(&arena);
	TS_CHECK(bytes >= 10 << 20);
	second = ts_arena_alloc(&arena, 16);
	TS_CHECK_INT(second - first, 16);
	TS_CHECK_INT(ts_arena_bytes(&arena), bytes);
}

TS_TEST(arena_clear_and_release)
{
	struct ts_arena arena;
	size_t bytes;

	ts_arena_init(&arena);
	ts_arena_clear(&arena);
	for (int i = 0; i < 10000; i++)
		TS_CHECK(ts_arena_alloc(&arena, 100) != NULL);
	bytes = ts_arena_bytes(&arena);
	TS_CHECK(bytes >= 1000000 && bytes < 4000000);
	ts_arena_clear(&arena);
	TS_CHECK(ts_arena_bytes(&arena) < bytes);
	bytes = ts_arena_bytes(&arena);
	memset(ts_arena_alloc(&arena, 1000), 7, 1000);
	TS_CHECK_INT(ts_arena_bytes(&arena), bytes);
	ts_arena_release(&arena);
	TS_CHECK_INT(ts_arena_bytes(&arena), 0);
	ts_arena_release(&arena);
}

TS_TEST(arena_copies_and_limits)
{
	TS_SCOPED(ts_arena) arena = { 0 };
	static const char data[5] = "ab\0cd";
	const unsigned char *zeroed;
	const char *copy;

	ts_arena_init(&arena);
	copy = ts_arena_strdup_len(&arena, data, 5);
	TS_CHECK_MEM(copy, data, 5);
	TS_CHECK_INT(copy[5], 0);
	TS_CHECK_STR(ts_arena_strdup_len(&arena, NULL, 0), "");
	TS_CHECK_MEM(ts_arena_copy(&arena, data, 5), data, 5);
	TS_CHECK(ts_arena_copy(&arena, NULL, 0) != NULL);
	memset(ts_arena_alloc(&arena, 3000), 0xff, 3000);
	ts_arena_clear(&arena);
	zeroed = ts_arena_alloc_zeroed(&arena, 100, 3);
	for (int i = 0; i < 300; i++)
		TS_CHECK_INT(zeroed[i], 0);

	TS_CHECK(ts_arena_alloc(&arena, SIZE_MAX) == NULL);
	TS_CHECK(ts_arena_alloc(&arena, SIZE_MAX - 15) == NULL);
	TS_CHECK(ts_arena_alloc_zeroed(&arena, SIZE_MAX / 2, 3) == NULL);
	TS_CHECK(ts_arena_strdup_len(&arena, "", SIZE_MAX) == NULL);
	/* The arena still works after a failure. */
	TS_CHECK(ts_arena_alloc(&arena, 8) != NULL);
}
