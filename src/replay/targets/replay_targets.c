/* SPDX-License-Identifier: Apache-2.0 */
/* The table of replay targets. Explicit: one that is not listed here does not exist. */
#include "replay/replay.h"

const struct ts_replay_target *const ts_replay_targets[] = {
	&ts_replay_target_opencl,
	&ts_replay_target_emulator,
	NULL,
};
