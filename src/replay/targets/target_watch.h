/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the time of a run, a thread that looks at a device several times a second and tells the
 * monitor which command is not complete (replay/monitor.h). A thread that crashes meanwhile, for
 * example in a kernel on a processor, waits until it has looked again.
 */
#ifndef TS_REPLAY_TARGETS_TARGET_WATCH_H
#define TS_REPLAY_TARGETS_TARGET_WATCH_H

#include "replay/replay.h"

struct ts_target_watch;

/*
 * `look` runs in the thread; `state` is what it has seen so far: `state_bytes`, zeros at first.
 * Without a monitor nothing starts, and *ret_watch is NULL.
 */
int ts_target_watch_start(struct ts_target_watch **ret_watch, struct ts_replay_session *session,
			  const struct ts_replay *replay,
			  void (*look)(struct ts_replay_session *session, void *state),
			  size_t state_bytes, struct ts_error *err);
/* All accept NULL. */
void ts_target_watch_stop(struct ts_target_watch *watch);
/* `look` does not run between these two. */
void ts_target_watch_pause(struct ts_target_watch *watch);
void ts_target_watch_resume(struct ts_target_watch *watch);

#endif
