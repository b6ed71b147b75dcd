/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program with a limit of time and output, and collects what it prints. Whatever it does
 * (hang, ignore signals, print without end, leave children behind), the call returns, and what it
 * started has ended, unless it hangs in the kernel. So it does when we die. Nobody else in this
 * process notices: no SIGCHLD, and a waitpid(-1) elsewhere does not get it.
 */
#ifndef TS_BASE_SUBPROCESS_H
#define TS_BASE_SUBPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/text.h"

struct ts_subprocess {
	const char *const *arguments; /* ended by NULL; the first is the path, with a '/' in it */
	const char *const
		*environment; /* "NAME=VALUE" sets, "NAME" unsets; ended by NULL, or NULL */
	int64_t limit_ns;     /* killed then, with its children */
	size_t max_bytes;     /* killed when it prints more */
};

struct ts_subprocess_result {
	struct ts_text output; /* standard output and error, as they came; not ended by a NUL */
	int spawn_errno;       /* why it could not be started, 0: it was */
	int exit_code;         /* -1: it did not exit */
	int signal;            /* that ended it, 0: none, or ours */
	bool timed_out;
	bool cut;               /* it printed more than max_bytes */
	pid_t remains;          /* it was killed but hangs in the kernel, 0: it is gone */
	uint64_t remains_start; /* with it for ts_process_lives() */
	int64_t ran_ns;         /* from start to end */
	int64_t limit_ns;
};

/*
 * Looks for a program in the absolute folders of PATH, then in `places` (ended by NULL, or NULL).
 * True with its path.
 */
bool ts_subprocess_find(const char *name, const char *const *places, char *ret_path, size_t bytes);

/*
 * The environment is ours, without what would make the program a target of tracing; standard input
 * is empty. The result is always filled; release it. Fails where the program could not be started.
 */
int ts_subprocess_run(const struct ts_subprocess *program, struct ts_subprocess_result *ret_result,
		      struct ts_error *err);
void ts_subprocess_result_release(struct ts_subprocess_result *result);

/* It ended by itself with code 0, and all that it printed is there. */
bool ts_subprocess_succeeded(const struct ts_subprocess_result *result);

/*
 * How it ended: "exited with code 3", "did not end within 5.000 s and was killed". Returns the
 * buffer.
 */
const char *ts_subprocess_describe_end(const struct ts_subprocess_result *result, char *buffer,
				       size_t bytes);

#endif
