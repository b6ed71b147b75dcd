/* SPDX-License-Identifier: Apache-2.0 */
/* The table of replay targets, made from targets.def. */
#include "replay/replay.h"

const struct ts_replay_target *const ts_replay_targets[] = {
#define TARGET(name) &ts_replay_target_##name,
#include "replay/targets/targets.def"
#undef TARGET
	NULL,
};
