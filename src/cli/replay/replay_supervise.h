/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith replay` in two processes: a child runs the trace, and its parent ends it if the user
 * or the time limit asks for that, and says what it was doing.
 */
#ifndef TS_CLI_REPLAY_REPLAY_SUPERVISE_H
#define TS_CLI_REPLAY_REPLAY_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/monitor.h"
#include "replay/replay.h"

/* --time-limit: a time, or "none". Returns an exit code. */
int ts_replay_parse_time_limit(const char *text, int64_t *ret_limit_ns);

/*
 * Forks. True: this is the child, which has a monitor and calls ts_replay_supervise_done() before
 * its verb returns. False: this is the parent, and the verb ends with this exit code.
 * *ret_is_doubtful: it failed, and a run of one command at a time would say at which.
 */
bool ts_replay_supervise(const struct ts_replay_target *target,
			 struct ts_replay_monitor **ret_monitor, int *ret_exit_code,
			 bool *ret_is_doubtful);
void ts_replay_supervise_done(struct ts_replay_monitor *monitor);

#endif
