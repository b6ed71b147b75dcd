/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program with limits on time and output, and collects its output. Whatever the program does
 * (hang, ignore signals, print endlessly, leave children behind), the call returns and everything
 * it started is dead, unless it hangs in the kernel. The same holds when we die. Invisible to the
 * rest of this process: no SIGCHLD, and waitpid(-1) elsewhere does not return it.
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
	const char *const
		*arguments; /* NULL-terminated; the first is the path and contains a '/' */
	const char *const
		*environment; /* "NAME=VALUE" sets, "NAME" unsets; NULL-terminated, or NULL */
	int64_t limit_ns;     /* then it is killed, with its children */
	size_t max_bytes;     /* killed if it prints more */
};

struct ts_subprocess_result {
	struct ts_text output; /* standard output and error, in order; not NUL-terminated */
	int spawn_errno;       /* errno if it could not be started, else 0 */
	int exit_code;         /* -1: did not exit by itself */
	int signal;            /* signal that killed it; 0: none, or ours */
	bool timed_out;
	bool cut;               /* it printed more than max_bytes */
	pid_t remains;          /* killed but hangs in the kernel; 0: gone */
	uint64_t remains_start; /* together with the pid, for ts_process_lives() */
	int64_t ran_ns;         /* from start to end */
	int64_t limit_ns;
};

/*
 * Searches the absolute directories of PATH, then `folders` (NULL-terminated, or NULL). True with
 * its path.
 */
bool ts_subprocess_find(const char *name, const char *const *folders, char *ret_path, size_t bytes);

/*
 * The environment is ours, without what would load the agent; standard input is empty. The result
 * is always filled in; release it. Fails if the program could not be started.
 */
int ts_subprocess_run(const struct ts_subprocess *program, struct ts_subprocess_result *ret_result,
		      struct ts_error *err);
void ts_subprocess_result_release(struct ts_subprocess_result *result);

/* Closes this descriptor and all after it. Needs nothing of libc's state: for a child before exec.
 */
void ts_subprocess_close_from(int first);

/* Whether it exited with code 0 and its output is complete. */
bool ts_subprocess_succeeded(const struct ts_subprocess_result *result);

/*
 * Describes how it ended: "exited with code 3", "did not end within 5.000 s and was killed".
 * Returns the buffer.
 */
const char *ts_subprocess_describe_end(const struct ts_subprocess_result *result, char *buffer,
				       size_t bytes);

#endif
