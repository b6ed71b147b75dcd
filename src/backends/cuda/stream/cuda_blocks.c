/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses: free ones, best fit first, and tables of those in use. */
#include "backends/cuda/stream/cuda_blocks.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more item; NULL: no memory, and `items` stays. */
static void *grow(void *items, size_t count, size_t *capacity, size_t bytes)
{
	size_t wanted = *capacity ? 2 * *capacity : 64;
	void *grown;

	if (count < *capacity)
		return items;
	grown = realloc(items, wanted * bytes);
	if (grown)
		*capacity = wanted;
	return grown;
}

/* ---- free ranges ---- */

void blocks_release(struct block_space *space)
{
	free(space->ranges);
	*space = (struct block_space){ 0 };
}

/* The first range that ends behind the address. */
static size_t find(const struct block_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct block_range *range = &space->ranges[middle];

		if (range->address + range->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void remove_range(struct block_space *space, size_t at)
{
	space->count--;
	memmove(&space->ranges[at], &space->ranges[at + 1],
		(space->count - at) * sizeof(*space->ranges));
}

static bool insert_range(struct block_space *space, size_t at, uint64_t address, uint64_t bytes)
{
	struct block_range *ranges =
		grow(space->ranges, space->count, &space->capacity, sizeof(*ranges));

	if (!ranges)
		return false;
	space->ranges = ranges;
	memmove(&ranges[at + 1], &ranges[at], (space->count - at) * sizeof(*ranges));
	ranges[at] = (struct block_range){ address, bytes };
	space->count++;
	return true;
}

bool blocks_give(struct block_space *space, uint64_t address, uint64_t bytes)
{
	size_t at = find(space, address);
	struct block_range *before = at ? &space->ranges[at - 1] : NULL;
	struct block_range *behind = at < space->count ? &space->ranges[at] : NULL;

	if (before && before->address + before->bytes != address)
		before = NULL;
	if (behind && address + bytes != behind->address)
		behind = NULL;
	if (before) {
		before->bytes += bytes + (behind ? behind->bytes : 0);
		if (behind)
			remove_range(space, at);
		return true;
	}
	if (behind) {
		behind->address = address;
		behind->bytes += bytes;
		return true;
	}
	return insert_range(space, at, address, bytes);
}

/* Takes a part of a range. False: no memory to note that it becomes two. */
static bool cut(struct block_space *space, size_t at, uint64_t address, uint64_t bytes)
{
	struct block_range *range = &space->ranges[at];
	uint64_t end = address + bytes, range_end = range->address + range->bytes;

	if (address == range->address && end == range_end) {
		remove_range(space, at);
	} else if (address == range->address) {
		range->address = end;
		range->bytes -= bytes;
	} else if (end == range_end) {
		range->bytes -= bytes;
	} else {
		if (!insert_range(space, at + 1, end, range_end - end))
			return false;
		space->ranges[at].bytes = address - space->ranges[at].address;
	}
	return true;
}

uint64_t blocks_take(struct block_space *space, uint64_t bytes, uint64_t alignment)
{
	size_t best = SIZE_MAX;
	uint64_t address;

	for (size_t i = 0; i < space->count; i++) {
		const struct block_range *range = &space->ranges[i];
		uint64_t skipped = -range->address & (alignment - 1);

		if (range->bytes < skipped || range->bytes - skipped < bytes)
			continue;
		if (best == SIZE_MAX || range->bytes < space->ranges[best].bytes)
			best = i;
		if (range->bytes == bytes)
			break;
	}
	if (best == SIZE_MAX)
		return 0;
	address = space->ranges[best].address;
	address += -address & (alignment - 1);
	return cut(space, best, address, bytes) ? address : 0;
}

bool blocks_are_free(const struct block_space *space, uint64_t address, uint64_t bytes)
{
	size_t at = find(space, address);

	return at < space->count && space->ranges[at].address <= address &&
	       space->ranges[at].address + space->ranges[at].bytes - address >= bytes;
}

bool blocks_take_at(struct block_space *space, uint64_t address, uint64_t bytes)
{
	return blocks_are_free(space, address, bytes) &&
	       cut(space, find(space, address), address, bytes);
}

/* ---- tables ---- */

void table_release(struct block_table *table)
{
	free(table->items);
	*table = (struct block_table){ 0 };
}

size_t table_position(const struct block_table *table, uint64_t address)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->items[middle]->address + table->items[middle]->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *table_find(const struct block_table *table, uint64_t address)
{
	size_t at = table_position(table, address);

	return at < table->count && table->items[at]->address <= address ? table->items[at] : NULL;
}

bool table_add(struct block_table *table, struct block_range *item)
{
	struct block_range **items =
		grow(table->items, table->count, &table->capacity, sizeof(*items));
	size_t at;

	if (!items)
		return false;
	table->items = items;
	at = table_position(table, item->address);
	memmove(&items[at + 1], &items[at], (table->count - at) * sizeof(*items));
	items[at] = item;
	table->count++;
	return true;
}

void table_remove(struct block_table *table, const struct block_range *item)
{
	size_t at = table_position(table, item->address);

	if (at == table->count || table->items[at] != item)
		return;
	table->count--;
	memmove(&table->items[at], &table->items[at + 1],
		(table->count - at) * sizeof(*table->items));
}
