/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel sources of --replace-kernel. */
#ifndef TS_CLI_REPLAY_REPLAY_SOURCES_H
#define TS_CLI_REPLAY_REPLAY_SOURCES_H

#include "cli/common/options.h"
#include "replay/replay.h"

/*
 * Reads the files of `replaced`, a list of NAME=FILE that is taken apart in place. Returns an exit
 * code.
 */
int ts_replay_sources_read(const struct ts_string_list *replaced,
			   struct ts_replay_options *options);
void ts_replay_sources_release(struct ts_replay_options *options);
/* ts_replay_options.build_log: prints it. */
void ts_replay_sources_log(void *context, const char *text);

#endif
