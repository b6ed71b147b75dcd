/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other legal orders of a plan (docs/cuda-replay.md, section 5), and the way from one to another:
 * plan_orders.c draws orders, plan_swaps.c goes from the planned order to one of them by swapping
 * neighbours, so that the two commands whose order matters can be found. Private to src/replay.
 */
#ifndef TS_REPLAY_PLAN_PLAN_ORDERS_H
#define TS_REPLAY_PLAN_PLAN_ORDERS_H

#include "replay/replay.h"

struct ts_replay_orders;

int ts_replay_orders_new(struct ts_replay_orders **ret_orders, const struct ts_replay_plan *plan,
			 const struct ts_replay_stream *stream, struct ts_error *err);
void ts_replay_orders_free(struct ts_replay_orders *orders);
TS_DEFINE_AUTO(ts_replay_orders, ts_replay_orders_free);

/* Are there two commands that write memory and may run in either order? */
bool ts_replay_orders_has_others(const struct ts_replay_orders *orders);
/* The same number gives the same order: all positions of the plan. */
void ts_replay_orders_draw(struct ts_replay_orders *orders, unsigned int number,
			   uint32_t *ret_order);

/*
 * How many swaps of neighbours lead from the planned order (0, 1, 2 ..) to this one; UINT64_MAX: no
 * memory.
 */
uint64_t ts_replay_swaps_count(const uint32_t *order, uint32_t count);
/*
 * The order after the first `swaps` of them, at least 1. Each is legal if `order` is. `ret_pair`:
 * the positions that the last one swapped, the earlier one first.
 */
int ts_replay_swaps_make(const uint32_t *order, uint32_t count, uint64_t swaps, uint32_t *ret_order,
			 uint32_t ret_pair[2]);

#endif
