/* SPDX-License-Identifier: Apache-2.0 */
/* Bump arena: a list of malloc()ed blocks, each twice as large as the one before, up to a limit. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ALIGNMENT ((size_t)16)
#define FIRST_BLOCK_BYTES ((size_t)4096)
#define LAST_BLOCK_BYTES ((size_t)4 << 20)

struct ts_arena_block {
	struct ts_arena_block *next;
	size_t bytes; /* header included */
} __attribute__((aligned(16)));

void ts_arena_init(struct ts_arena *arena)
{
	*arena = (struct ts_arena){ .blocks = NULL };
}

void ts_arena_release(struct ts_arena *arena)
{
	for (struct ts_arena_block *block = arena->blocks; block;) {
		struct ts_arena_block *next = block->next;

		free(block);
		block = next;
	}
	ts_arena_init(arena);
}

void ts_arena_clear(struct ts_arena *arena)
{
	struct ts_arena_block *largest = arena->blocks;

	if (!largest)
		return;
	for (struct ts_arena_block *block = largest; block; block = block->next) {
		if (block->bytes > largest->bytes)
			largest = block;
	}
	for (struct ts_arena_block *block = arena->blocks; block;) {
		struct ts_arena_block *next = block->next;

		if (block != largest)
			free(block);
		block = next;
	}
	largest->next = NULL;
	arena->blocks = largest;
	arena->bytes = largest->bytes;
	arena->next = (char *)(largest + 1);
	arena->end = (char *)largest + largest->bytes;
}

static struct ts_arena_block *new_block(struct ts_arena *arena, size_t bytes)
{
	struct ts_arena_block *block = malloc(bytes);

	if (block) {
		block->bytes = bytes;
		arena->bytes += bytes;
	}
	return block;
}

/* Slow path: `bytes` do not fit into the newest block. */
static char *alloc_from_new_block(struct ts_arena *arena, size_t bytes)
{
	size_t block_bytes = arena->block_bytes ? arena->block_bytes : FIRST_BLOCK_BYTES;
	struct ts_arena_block *block;
	size_t total;

	if (__builtin_add_overflow(bytes, sizeof(*block), &total) || total > PTRDIFF_MAX)
		return NULL;
	if (total > block_bytes / 4 && arena->blocks) {
		/*
		 * A large allocation gets its own block, so that the rest of the newest block is
		 * not wasted.
		 */
		block = new_block(arena, total);
		if (!block)
			return NULL;
		block->next = arena->blocks->next;
		arena->blocks->next = block;
		return (char *)(block + 1);
	}
	block = new_block(arena, TS_MAX(block_bytes, total));
	if (!block)
		return NULL;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->next = (char *)(block + 1) + bytes;
	arena->end = (char *)block + block->bytes;
	arena->block_bytes = TS_MIN(block_bytes * 2, LAST_BLOCK_BYTES);
	return (char *)(block + 1);
}

void *ts_arena_alloc(struct ts_arena *arena, size_t bytes)
{
	size_t padding = -(uintptr_t)arena->next & (ALIGNMENT - 1);
	size_t space = (size_t)(arena->end - arena->next);
	char *result;

	if (bytes == 0)
		bytes = 1;
	if (TS_UNLIKELY(padding > space || bytes > space - padding))
		return alloc_from_new_block(arena, bytes);
	result = arena->next + padding;
	arena->next = result + bytes;
	return result;
}

void *ts_arena_alloc_zeroed(struct ts_arena *arena, size_t count, size_t item_bytes)
{
	size_t bytes;
	void *result;

	if (__builtin_mul_overflow(count, item_bytes, &bytes))
		return NULL;
	result = ts_arena_alloc(arena, bytes);
	if (result)
		memset(result, 0, bytes);
	return result;
}

void *ts_arena_copy(struct ts_arena *arena, const void *data, size_t bytes)
{
	void *result = ts_arena_alloc(arena, bytes);

	if (result && bytes)
		memcpy(result, data, bytes);
	return result;
}

char *ts_arena_strdup_len(struct ts_arena *arena, const char *text, size_t length)
{
	char *result;

	if (length == SIZE_MAX)
		return NULL;
	if (TS_LIKELY((size_t)(arena->end - arena->next) > length)) {
		result = arena->next;
		arena->next += length + 1;
	} else {
		result = alloc_from_new_block(arena, length + 1);
		if (!result)
			return NULL;
	}
	if (length)
		memcpy(result, text, length);
	result[length] = '\0';
	return result;
}
