/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bump arena: many small allocations, all freed at once. Each open trace, query and analysis has
 * one. Not thread-safe.
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
	size_t bytes;       /* total bytes obtained from malloc() */
};

/* Allocates nothing before the first ts_arena_alloc(); a zeroed struct works as well. */
void ts_arena_init(struct ts_arena *arena);

/* Frees everything; the arena is then as after init. */
void ts_arena_release(struct ts_arena *arena);

/* Drops all allocations but keeps the largest block, so that a refill needs no malloc(). */
void ts_arena_clear(struct ts_arena *arena);

/* 16-byte aligned, not zeroed; NULL if out of memory. Size 0 returns a valid pointer. */
void *ts_arena_alloc(struct ts_arena *arena, size_t bytes);

/* Like ts_arena_alloc() for an array, zeroed; also NULL if count * item_bytes overflows. */
void *ts_arena_alloc_zeroed(struct ts_arena *arena, size_t count, size_t item_bytes);

/* A 16-byte aligned copy of `bytes` bytes; NULL if out of memory. */
void *ts_arena_copy(struct ts_arena *arena, const void *data, size_t bytes);

/*
 * A NUL-terminated copy of `length` bytes, unaligned (strings are packed). The bytes may contain
 * NULs. NULL if out of memory.
 */
char *ts_arena_strdup_len(struct ts_arena *arena, const char *text, size_t length);

/* Bytes obtained from malloc(), used or not. */
static inline size_t ts_arena_bytes(const struct ts_arena *arena)
{
	return arena->bytes;
}

#endif
