/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context switches of whole processes. The kernel tells them exactly, ended threads included, to
 * those with CAP_NET_ADMIN; others add up what it says of each thread.
 */
#ifndef TS_SAMPLE_METRICS_HOST_TASKSTATS_H
#define TS_SAMPLE_METRICS_HOST_TASKSTATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs_parse.h"
#include "base/text.h"

/* Of whoever has the pid now: 0, or the negative errno. -EPERM: not permitted here. */
int ts_taskstats_read(pid_t pid, struct ts_switches *ret_switches);

#define TS_THREAD_SWITCHES_MAX 64u /* with more, a sweep would cost too much */

struct ts_thread_switches_thread {
	pid_t tid;
	struct ts_switches switches;
};

struct ts_thread_switches {
	struct ts_thread_switches_thread threads[TS_THREAD_SWITCHES_MAX]; /* of the last sweep */
	size_t count;
	bool is_complete;
	struct ts_switches sum; /* since the first sweep */
};

/*
 * Adds what its threads switched since the last sweep. False where that is not known: in the first
 * sweep, when there are too many threads, and when one ended with what it had done.
 */
bool ts_thread_switches_next(struct ts_thread_switches *sweep, pid_t pid, struct ts_text *text);

#endif
