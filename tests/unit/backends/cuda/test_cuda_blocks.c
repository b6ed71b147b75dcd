/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free ranges and tables, by random operations that are compared with a map of units. The source
 * runs inside programs, so it is included here.
 */
#include "unit/runner.h"

#include "backends/cuda/stream/cuda_blocks.c" /* NOLINT(bugprone-suspicious-include) */

#define BASE UINT64_C(0x200000000000)
#define UNITS 512u
#define UNIT UINT64_C(256)
#define OPERATIONS 200000u

static uint32_t state = 12345;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(state >> 8) * below >> 24);
}

/* The space says what the map says: in order, nothing empty, neighbours joined. */
static void check_space(const struct block_space *space, const bool *is_free)
{
	unsigned int at = 0;

	for (size_t i = 0; i < space->count; i++) {
		unsigned int first = (unsigned int)((space->ranges[i].address - BASE) / UNIT);
		unsigned int count = (unsigned int)(space->ranges[i].bytes / UNIT);

		TS_CHECK(count && (first > at || (!i && first >= at)));
		for (; at < first; at++)
			TS_CHECK(!is_free[at]);
		for (; at < first + count; at++)
			TS_CHECK(is_free[at]);
	}
	for (; at < UNITS; at++)
		TS_CHECK(!is_free[at]);
}

/* The fewest units of a free range in which an aligned part fits; 0: none. */
static unsigned int best_fit(const bool *is_free, unsigned int units, unsigned int alignment)
{
	unsigned int best = 0;

	for (unsigned int at = 0; at < UNITS;) {
		unsigned int end = at, start;

		while (end < UNITS && is_free[end])
			end++;
		start = (at + alignment - 1) / alignment * alignment;
		if (end > at && start + units <= end && (!best || end - at < best))
			best = end - at;
		at = end + 1;
	}
	return best;
}

static unsigned int length_at(const bool *is_free, unsigned int at)
{
	unsigned int first = at, end = at;

	while (first && is_free[first - 1])
		first--;
	while (end < UNITS && is_free[end])
		end++;
	return end - first;
}

TS_TEST(random_ranges)
{
	struct block_space space = { 0 };
	bool is_free[UNITS] = { false };
	struct {
		unsigned int at, units;
	} taken[UNITS];
	unsigned int count = 0;

	TS_CHECK(blocks_take(&space, UNIT, UNIT) == 0);
	TS_CHECK(blocks_give(&space, BASE, UNITS * UNIT));
	for (unsigned int i = 0; i < UNITS; i++)
		is_free[i] = true;
	for (unsigned int i = 0; i < OPERATIONS; i++) {
		unsigned int units = 1 + draw(draw(4) ? 8 : 80), alignment = 1u << draw(4), at;
		uint64_t address;

		switch (draw(5)) {
		case 0:
		case 1:
			address = blocks_take(&space, units * UNIT, alignment * UNIT);
			TS_CHECK_INT(!address, !best_fit(is_free, units, alignment));
			if (!address)
				break;
			at = (unsigned int)((address - BASE) / UNIT);
			TS_CHECK(address % (alignment * UNIT) == 0);
			TS_CHECK_INT(length_at(is_free, at), best_fit(is_free, units, alignment));
			for (unsigned int k = at; k < at + units; k++) {
				TS_CHECK(is_free[k]);
				is_free[k] = false;
			}
			taken[count].at = at;
			taken[count++].units = units;
			break;
		case 2: {
			bool are_free = true;

			at = draw(UNITS);
			if (at + units > UNITS)
				break;
			for (unsigned int k = at; k < at + units; k++)
				are_free = are_free && is_free[k];
			TS_CHECK_INT(blocks_take_at(&space, BASE + at * UNIT, units * UNIT),
				     are_free);
			if (!are_free)
				break;
			memset(&is_free[at], 0, units);
			taken[count].at = at;
			taken[count++].units = units;
			break;
		}
		default:
			if (!count)
				break;
			at = draw(count);
			TS_CHECK(blocks_give(&space, BASE + taken[at].at * UNIT,
					     taken[at].units * UNIT));
			memset(&is_free[taken[at].at], 1, taken[at].units);
			taken[at] = taken[--count];
		}
		if (i % 16 == 0)
			check_space(&space, is_free);
	}
	while (count--)
		blocks_give(&space, BASE + taken[count].at * UNIT, taken[count].units * UNIT);
	TS_CHECK_INT(space.count, 1);
	TS_CHECK(space.ranges[0].bytes == UNITS * UNIT);
	blocks_release(&space);
}

TS_TEST(tables)
{
	static struct block_range items[UNITS];
	bool is_in[UNITS] = { false };
	struct block_table table = { 0 };

	/* Item i has half of its unit. */
	for (unsigned int i = 0; i < UNITS; i++)
		items[i] = (struct block_range){ BASE + i * UNIT, UNIT / 2 };
	for (unsigned int i = 0; i < OPERATIONS / 4; i++) {
		unsigned int k = draw(UNITS);
		void *found = table_find(&table, items[k].address + draw((uint32_t)UNIT / 2));

		TS_CHECK(found == (is_in[k] ? &items[k] : NULL));
		TS_CHECK(!table_find(&table, items[k].address + UNIT / 2));
		if (is_in[k])
			table_remove(&table, &items[k]);
		else
			TS_CHECK(table_add(&table, &items[k]));
		is_in[k] = !is_in[k];
	}
	for (size_t i = 1; i < table.count; i++)
		TS_CHECK(table.items[i - 1]->address < table.items[i]->address);
	table_release(&table);
}
