/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replay is doing, for someone who watches it from another process or thread, and can end it
 * there (base/supervise.h). The replay writes it if ts_replay_options.monitor is set.
 */
#ifndef TS_REPLAY_MONITOR_H
#define TS_REPLAY_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/supervise.h"

enum ts_replay_activity {
	TS_REPLAY_LOADING,
	TS_REPLAY_OPENING,  /* loads drivers, creates objects */
	TS_REPLAY_BUILDING, /* the driver compiles a module */
	TS_REPLAY_RUNNING,
	TS_REPLAY_FINISHING, /* reports, writes the output */
};

/*
 * The heartbeat has a limit while a module is built, and while a command runs: then a beat is a
 * command that completes. Other activities may take any time.
 */
struct ts_replay_monitor {
	struct ts_heartbeat heartbeat;
	int64_t run_limit_ns, build_limit_ns; /* 0: none */
	enum ts_replay_activity activity;
	uint64_t command;    /* sequence of a command that is not complete; 0: none */
	int64_t recorded_ns; /* its duration in the recording; TS_ABSENT: unknown */
	bool is_doubtful;    /* it failed, at a command that may be another one (see below) */
	char subject[256]; /* "kernel 'saxpy', command 17", "module 5, kernel 'saxpy'"; may be "" */
};

/* ts_replay_options.time_limit_ns */
#define TS_REPLAY_LIMIT_DEFAULT INT64_C(0)
#define TS_REPLAY_LIMIT_NONE INT64_MAX

struct ts_replay;

/* All accept a replay without a monitor. */

/* After the plan is made: the limits, and the recorded durations of commands. */
int ts_replay_monitor_prepare(struct ts_replay *replay, struct ts_error *err);
/* A new activity; `subject` may be NULL. */
void ts_replay_monitor_enter(const struct ts_replay *replay, enum ts_replay_activity activity,
			     const char *subject);
/*
 * RUNNING: a command (position in the plan) that is not complete; TS_REPLAY_NONE: none, the device
 * is idle. `advanced`: a command has completed since the last call.
 */
void ts_replay_monitor_command(const struct ts_replay *replay, uint32_t position, bool advanced);
/*
 * A command failed among others, and the device does not say which: a run of one command at a time,
 * in another process, does. False: there is no monitor that would start it.
 */
bool ts_replay_monitor_doubt(const struct ts_replay *replay);

#endif
