/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a program with the agent preloaded. The program keeps its process group, streams, signals
 * and environment, except for LD_PRELOAD, PYTHONPATH, TRACESMITH_AGENT, TRACESMITH_PYTHON_STACKS
 * and the variables of its backends (backends/recorder/backend_table.h).
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
 * TRACESMITH_AGENT is the one variable by which a recorder configures the agents that it starts:
 * "session=<hex16>;mode=stream;enabled=0|1;steps=A-B;max_steps=N;redact=1;budget=BYTES;backends=a,b",
 * for a replay
 * "replayable=1|2;from_start=0|1;snapshot_limit=BYTES;window_timeout=NS;keep_contents=BYTES",
 * "window=KIND" for a window of a backend, and the settings of backend options.
 */
struct ts_launch_options {
	char **argv;
	const char *agent; /* path of libtracesmith-agent.so; NULL: ts_agent_library_find() */
	uint64_t session;
	bool enabled; /* the window is open from the start */
	bool redact;
	int64_t step_open, step_close; /* TS_ABSENT: none */
	int64_t max_steps;
	uint64_t budget;      /* 0: default */
	const char *backends; /* comma list, or NULL */
	/*
	 * Events to which the agent adds the Python stack: "marks", "calls", "marks,calls"; NULL:
	 * from this process's environment.
	 */
	const char *python_stacks;
	const char *settings; /* backend settings "key=value;key=value", or NULL */
	enum ts_replay_mode replayable;
	bool from_start; /* replayable: no window was requested */
	uint64_t snapshot_limit;
	int64_t window_timeout_ns;
	uint64_t keep_contents; /* of checks, bytes per window; 0: hashes only */
	/*
	 * Signal state of the program, if the caller has changed its own; NULL: the current state.
	 */
	const sigset_t *signal_mask;
	const sigset_t *signals_ignored;
};

/* Checks beforehand whether the program can be started. Errors as for ts_launch_start(). */
int ts_launch_check(const char *program, struct ts_error *err);

/*
 * Starts the program. On success, exec has happened; the caller waits for the process.
 * TS_ENOTFOUND: no such program; TS_ECAP: no agent; others: it cannot be executed.
 */
int ts_launch_start(const struct ts_launch_options *options, pid_t *ret_pid, struct ts_error *err);

/* Formats the value of TRACESMITH_AGENT, truncated to `bytes`. */
void ts_launch_format(const struct ts_launch_options *options, char *buffer, size_t bytes);

#endif
