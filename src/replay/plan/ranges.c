/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of byte ranges as sorted arrays. */
#include "replay/plan/ranges.h"

#include "base/memory.h"

void ts_ranges_release(struct ts_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct ts_ranges){ 0 };
}

/* The first item that ends at or after `at`. */
static size_t find(const struct ts_ranges *ranges, uint64_t at)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].to < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Replaces the items [first, last) with `count` items. */
static int replace(struct ts_ranges *ranges, size_t first, size_t last,
		   const struct ts_ranges_item *items, size_t count)
{
	size_t rest = ranges->count - last, total = first + count + rest;

	if (ts_grow_array((void **)&ranges->items, &ranges->capacity, total,
			  sizeof(*ranges->items)))
		return TS_ENOMEM;
	if (rest)
		memmove(ranges->items + first + count, ranges->items + last,
			rest * sizeof(*ranges->items));
	if (count)
		memcpy(ranges->items + first, items, count * sizeof(*items));
	ranges->count = total;
	return TS_OK;
}

int ts_ranges_add(struct ts_ranges *ranges, uint64_t from, uint64_t to)
{
	struct ts_ranges_item item = { from, to };
	size_t first, last;

	if (from >= to)
		return TS_OK;
	first = last = find(ranges, from);
	while (last < ranges->count && ranges->items[last].from <= to) {
		item.from = TS_MIN(item.from, ranges->items[last].from);
		item.to = TS_MAX(item.to, ranges->items[last].to);
		last++;
	}
	return replace(ranges, first, last, &item, 1);
}

int ts_ranges_cut(struct ts_ranges *ranges, uint64_t from, uint64_t to)
{
	struct ts_ranges_item left[2];
	size_t first, last, count = 0;

	if (from >= to)
		return TS_OK;
	first = last = find(ranges, from);
	while (last < ranges->count && ranges->items[last].from < to) {
		struct ts_ranges_item item = ranges->items[last++];

		/* Only the first item can begin before `from`, only the last can end after `to`. */
		if (item.from < from)
			left[count++] = (struct ts_ranges_item){ item.from, TS_MIN(item.to, from) };
		if (item.to > to)
			left[count++] = (struct ts_ranges_item){ to, item.to };
	}
	return first == last ? TS_OK : replace(ranges, first, last, left, count);
}

bool ts_ranges_touch(const struct ts_ranges *ranges, uint64_t from, uint64_t to)
{
	size_t position = find(ranges, from);

	/* An item that ends exactly at `from` does not overlap. */
	if (position < ranges->count && ranges->items[position].to == from)
		position++;
	return from < to && position < ranges->count && ranges->items[position].from < to;
}

bool ts_ranges_contain(const struct ts_ranges *ranges, uint64_t from, uint64_t to)
{
	size_t position = find(ranges, to);

	return from >= to || (position < ranges->count && ranges->items[position].from <= from);
}
