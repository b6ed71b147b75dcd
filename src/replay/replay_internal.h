/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the replay itself, and by its targets. */
#ifndef TS_REPLAY_REPLAY_INTERNAL_H
#define TS_REPLAY_REPLAY_INTERNAL_H

#include "replay/replay.h"

/* Reports progress; TS_ECANCELED: the caller of the replay wants to stop. */
int ts_replay_progress(const struct ts_replay *replay, const char *doing, uint64_t done,
		       uint64_t total, struct ts_error *err);

/* replay_verify.c: verifies the hash of every blob that a run of the plan will use. */
int ts_replay_verify_blobs(struct ts_replay *replay, struct ts_error *err);

#endif
