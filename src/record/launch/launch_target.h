/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a program with the agent inside: the same process group, streams, signals and environment
 * as without, except for LD_PRELOAD, TRACESMITH_AGENT, TRACESMITH_PYTHON_STACKS and the variables
 * of its backends (backends/recorder/backend_table.h).
 */
#ifndef TS_RECORD_LAUNCH_LAUNCH_TARGET_H
#define TS_RECORD_LAUNCH_LAUNCH_TARGET_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/replay.h>

/*
 * TRACESMITH_AGENT, the one variable by which a recorder configures the agents that it starts:
 * "session=<hex16>;mode=stream;enabled=0|1;steps=A-B;max_steps=N;redact=1;budget=BYTES;backends=a,b",
 * for a replay "replayable=1|2;from_start=0|1;snapshot_limit=BYTES;window_timeout=NS",
 * "window=KIND" for a window of a backend, and the settings of backends' options.
 */
struct ts_launch_options {
	char **argv;
	const char *agent; /* path of libtracesmith-agent.so; NULL: found as below */
	uint64_t session;
	bool enabled; /* the window is open from the start */
	bool redact;
	int64_t step_open, step_close; /* TS_ABSENT: none */
	int64_t max_steps;
	uint64_t budget;      /* 0: default */
	const char *backends; /* comma list, or NULL */
	/*
	 * Events at which the agent adds the Python stack: "marks", "calls", "marks,calls"; NULL:
	 * as our environment says.
	 */
	const char *python_stacks;
	const char *settings; /* of backends: "key=value;key=value", or NULL */
	enum ts_replay_mode replayable;
	bool from_start; /* replayable: no window was asked for */
	uint64_t snapshot_limit;
	int64_t window_timeout_ns;
	/*
	 * What the program inherits where the caller has changed its own; NULL: what is in force.
	 */
	const sigset_t *signal_mask;
	const sigset_t *signals_ignored;
};

#define TS_LAUNCH_PATH_BYTES 4096

/*
 * Where the agent is: $TRACESMITH_AGENT_PATH, else beside the tool, else in ../lib of it. TS_ECAP
 * with what to do where it cannot be found or cannot be named in LD_PRELOAD.
 */
int ts_launch_find_agent(char *buffer, size_t bytes, struct ts_error *err);

/* Can it be started at all, as far as that can be told beforehand? Errors as below. */
int ts_launch_check(const char *program, struct ts_error *err);

/*
 * Starts it; when this returns 0, exec has happened. TS_ENOTFOUND where there is no such program,
 * TS_ECAP without an agent, others where it cannot be executed. The caller waits for it.
 */
int ts_launch_start(const struct ts_launch_options *options, pid_t *ret_pid, struct ts_error *err);

/* The value of TRACESMITH_AGENT, cut to fit. */
void ts_launch_format(const struct ts_launch_options *options, char *buffer, size_t bytes);

#endif
