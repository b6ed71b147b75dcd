/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses: which of a space are free, and tables of those in use, by address. Makes no
 * calls into the driver. The caller locks.
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_BLOCKS_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_range {
	uint64_t address, bytes;
};

/* Free ranges, by address, none next to another. Zeros: nothing is free. */
struct block_space {
	struct block_range *ranges;
	size_t count, capacity;
};

void blocks_release(struct block_space *space);
/* Adds what is free now. False: no memory to note it; it is lost. */
bool blocks_give(struct block_space *space, uint64_t address, uint64_t bytes);
/* Takes from the smallest range that suffices, and of these the first; 0: there is none. */
uint64_t blocks_take(struct block_space *space, uint64_t bytes, uint64_t alignment);
/* False: not all of it is free. */
bool blocks_take_at(struct block_space *space, uint64_t address, uint64_t bytes);
bool blocks_are_free(const struct block_space *space, uint64_t address, uint64_t bytes);

/* What a table has begins with its range. Ranges in a table do not overlap. */
struct block_table {
	struct block_range **items;
	size_t count, capacity;
};

void table_release(struct block_table *table); /* not the items */
bool table_add(struct block_table *table, struct block_range *item);
void table_remove(struct block_table *table, const struct block_range *item);
/* The item that contains the address; NULL. */
void *table_find(const struct block_table *table, uint64_t address);
/* The position of the first item that ends behind the address. */
size_t table_position(const struct block_table *table, uint64_t address);

#endif
