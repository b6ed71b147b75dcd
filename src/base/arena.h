/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump arena: many small allocations that are all freed at once. One for each open trace, query
 * and analysis. Not thread-safe.
 */
#ifndef TS_BASE_ARENA_H
#define TS_BASE_ARENA_H

#include <stddef.h>

struct ts_arena_block;

struct ts_arena {
	char *next; /* first free byte of the newest block */
	char *end;  /* one past that block */
	struct ts_arena_block *blocks;
	size_t block_bytes; /* size of the next block */
	size_t bytes;       /* held from malloc() in all */
};

/* No allocation is made before the first ts_arena_alloc(); a zeroed struct is as good. */
void ts_arena_init(struct ts_arena *arena);

/* Frees everything and leaves an arena as after init. */
void ts_arena_release(struct ts_arena *arena);

/* Frees all allocations but keeps the largest block, so that a refill needs no malloc(). */
void ts_arena_clear(struct ts_arena *arena);

/* 16-aligned, not zeroed; NULL when there is no memory. Size 0 gives a valid pointer. */
void *ts_arena_alloc(struct ts_arena *arena, size_t bytes);

/* As ts_arena_alloc() for an array, zeroed; NULL also where count * item_bytes overflows. */
void *ts_arena_alloc_zeroed(struct ts_arena *arena, size_t count, size_t item_bytes);

/* A 16-aligned copy of `bytes` bytes; NULL when there is no memory. */
void *ts_arena_copy(struct ts_arena *arena, const void *data, size_t bytes);

/*
 * A copy of `length` bytes with a NUL after them, not aligned (strings are packed); the bytes may
 * hold NULs themselves. NULL when there is no memory.
 */
char *ts_arena_strdup_len(struct ts_arena *arena, const char *text, size_t length);

/* Bytes held from malloc(), used or not. */
static inline size_t ts_arena_bytes(const struct ts_arena *arena)
{
	return arena->bytes;
}

#endif
