/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the planned order to another one by swaps of neighbours: each position of the other order,
 * in turn, moves forward to its place. It only passes what comes before it in one order and after
 * it in the other, which nothing orders, so all orders on the way are legal.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "replay/plan/plan_orders.h"

/* Counts positions that have not moved yet: a Fenwick tree over all of them. */
static uint32_t *new_tree(uint32_t count)
{
	uint32_t *tree = ts_alloc_array(count + 1u, sizeof(*tree));

	for (uint32_t i = 1; tree && i <= count; i++)
		tree[i] = i & -i;
	return tree;
}

static uint32_t count_before(const uint32_t *tree, uint32_t position)
{
	uint32_t count = 0;

	for (uint32_t i = position; i; i -= i & -i)
		count += tree[i];
	return count;
}

static void take_out(uint32_t *tree, uint32_t count, uint32_t position)
{
	for (uint32_t i = position + 1; i <= count; i += i & -i)
		tree[i]--;
}

uint64_t ts_replay_swaps_count(const uint32_t *order, uint32_t count)
{
	TS_AUTO_FREE uint32_t *tree = new_tree(count);
	uint64_t swaps = 0;

	if (!tree)
		return UINT64_MAX;
	for (uint32_t i = 0; i < count; i++) {
		swaps += count_before(tree, order[i]);
		take_out(tree, count, order[i]);
	}
	return swaps;
}

/*
 * All that has not moved yet follows by position, except that order[done] has passed `passed` of
 * them.
 */
static void list_rest(const uint32_t *order, uint32_t count, uint32_t done, uint32_t place,
		      const bool *has_moved, uint32_t *ret_order)
{
	uint32_t at = done, moving = order[done];

	for (uint32_t i = 0; i < count; i++) {
		if (has_moved[i] || i == moving)
			continue;
		if (at == done + place)
			ret_order[at++] = moving;
		ret_order[at++] = i;
	}
	if (at == done + place)
		ret_order[at] = moving;
}

int ts_replay_swaps_make(const uint32_t *order, uint32_t count, uint64_t swaps, uint32_t *ret_order,
			 uint32_t ret_pair[2])
{
	TS_AUTO_FREE uint32_t *tree = new_tree(count);
	TS_AUTO_FREE bool *has_moved = calloc(count + 1u, sizeof(*has_moved));
	uint64_t made = 0;

	if (!tree || !has_moved)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t before = count_before(tree, order[i]);

		if (made + before >= swaps) {
			uint32_t place = before - (uint32_t)(swaps - made);

			list_rest(order, count, i, place, has_moved, ret_order);
			ret_pair[0] = ret_order[i + place + 1];
			ret_pair[1] = order[i];
			return TS_OK;
		}
		made += before;
		ret_order[i] = order[i];
		has_moved[order[i]] = true;
		take_out(tree, count, order[i]);
	}
	return TS_EINVAL;
}
