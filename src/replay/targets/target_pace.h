/* SPDX-License-Identifier: Apache-2.0 */
/* When a target submits the next command: as fast as it can, or as the program did. */
#ifndef TS_REPLAY_TARGETS_TARGET_PACE_H
#define TS_REPLAY_TARGETS_TARGET_PACE_H

#include "replay/replay.h"

/*
 * With `--pace original`: when the command at a position of the plan is due, as long after
 * `begin_ns` as it was recorded after the first one. Otherwise INT64_MIN.
 */
int64_t ts_target_due_ns(const struct ts_replay *replay, uint32_t position, int64_t begin_ns);
/* By the clock of ts_clock_monotonic_ns(). */
void ts_target_sleep_until(int64_t ns);
/* Tells the caller of the replay, now and then, how many commands are done; TS_ECANCELED. */
int ts_target_progress(const struct ts_replay *replay, uint32_t done, struct ts_error *err);

#endif
