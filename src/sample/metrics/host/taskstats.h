/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context switches of processes. The kernel reports exact totals, including exited threads, to
 * callers with CAP_NET_ADMIN; others add up the counts of each thread.
 */
#ifndef TS_SAMPLE_METRICS_HOST_TASKSTATS_H
#define TS_SAMPLE_METRICS_HOST_TASKSTATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs_parse.h"
#include "base/text.h"

/* Whichever process has the pid now: 0, or a negative errno. -EPERM: not permitted. */
int ts_taskstats_read(pid_t pid, struct ts_switches *ret_switches);

#define TS_THREAD_SWITCHES_MAX 64u /* with more threads this would cost too much */

struct ts_thread_switches_thread {
	pid_t tid;
	struct ts_switches switches;
};

struct ts_thread_switches {
	struct ts_thread_switches_thread threads[TS_THREAD_SWITCHES_MAX]; /* of the last call */
	size_t count;
	bool is_complete;
	struct ts_switches sum; /* since the first call */
};

/*
 * Adds the switches of its threads since the last call. False if unknown: in the first call, with
 * too many threads, and when a thread exited with its count.
 */
bool ts_thread_switches_next(struct ts_thread_switches *sweep, pid_t pid, struct ts_text *text);

#endif
