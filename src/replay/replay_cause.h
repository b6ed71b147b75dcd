/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further runs that explain a difference of pages; they set replay->checker->cause. Private to
 * src/replay.
 */
#ifndef TS_REPLAY_REPLAY_CAUSE_H
#define TS_REPLAY_REPLAY_CAUSE_H

#include "replay/plan/plan_orders.h"
#include "replay/replay.h"

/*
 * Runs differ from each other: finds the command whose output varies, or two that race. `order`:
 * the end of a run in this order differed; NULL: runs in the planned order differ.
 */
int ts_replay_find_cause(struct ts_replay *replay, struct ts_replay_orders *orders,
			 const uint32_t *order, struct ts_error *err);
/* Runs differ from the recording: fetches the first differing page, if the recording has it. */
int ts_replay_fetch_different(struct ts_replay *replay, struct ts_error *err);

#endif
