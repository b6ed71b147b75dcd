/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a program with the agent inside, and stands in for it: signals go to it, its exit code comes
 * back, standard streams are its own. Knows nothing of rings and traces.
 */
#ifndef TS_RECORD_LAUNCH_H
#define TS_RECORD_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/*
 * TRACESMITH_AGENT, the one variable by which a recorder speaks to the agents that it starts:
 * "session=<hex16>;mode=stream;enabled=0|1;steps=A-B;max_steps=N;redact=1;budget=BYTES;backends=a,b".
 */
struct ts_launch_options {
	char **argv;
	const char *agent; /* path of libtracesmith-agent.so; NULL: found beside the tool or in ../lib */
	uint64_t session;
	bool enabled;      /* the window is open from the start */
	bool redact;
	int64_t step_open, step_close; /* TS_ABSENT: none */
	int64_t max_steps;
	uint64_t budget;   /* 0: default */
	const char *backends; /* comma list, or NULL */
};

/* Where the agent is; TS_ECAP with what to do where it cannot be found. */
int ts_launch_find_agent(char *buffer, size_t bytes, struct ts_error *err);

/* Starts it. TS_ENOTFOUND where there is no such program. */
int ts_launch_start(const struct ts_launch_options *options, pid_t *ret_pid, struct ts_error *err);

#endif
