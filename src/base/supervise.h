/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in a child process that its parent can end at any time, for work that may hang or crash in
 * code that is not ours: drivers, compilers, kernels.
 *
 *	rc = ts_supervise(heartbeat, &end, &err);
 *	if (!rc && end.is_child)
 *		return work();
 *
 * The child inherits everything and does the work; the parent only waits. SIGINT, SIGTERM and
 * SIGHUP are passed on to the child, which is killed if it does not end soon. A child that is
 * killed or exits leaves no incomplete output (base/output.h). It is also killed when its parent
 * dies. If a terminal stops it, the parent stops, too.
 */
#ifndef TS_BASE_SUPERVISE_H
#define TS_BASE_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/* Written by the child, in memory of ts_supervise_alloc(). */
struct ts_heartbeat {
	uint64_t beats;   /* changes whenever the work advances */
	int64_t limit_ns; /* the longest time without a change; 0: any time */
};

/* Any thread of the child. */
static inline void ts_heartbeat_beat(struct ts_heartbeat *heartbeat)
{
	__atomic_fetch_add(&heartbeat->beats, 1, __ATOMIC_RELEASE);
}

/* The work advances, and what follows has another limit. */
static inline void ts_heartbeat_set_limit(struct ts_heartbeat *heartbeat, int64_t limit_ns)
{
	ts_heartbeat_beat(heartbeat);
	__atomic_store_n(&heartbeat->limit_ns, limit_ns, __ATOMIC_RELEASE);
}

/* How the child ended. */
struct ts_supervised {
	bool is_child;   /* this is the child; nothing else is set */
	int exit_code;   /* -1: it was killed */
	int signal;      /* that killed it; 0: none */
	int stop_signal; /* that asked this process to stop; 0: none */
	bool timed_out;  /* killed because its heart did not beat for limit_ns */
	int64_t limit_ns;
	pid_t remains; /* was killed, but still exists after seconds; 0: gone */
};

/* Zeroed memory that parent and child share; never freed. NULL: no memory. */
void *ts_supervise_alloc(size_t bytes);

/*
 * Forks. Returns in the child at once, and in the parent when the child has ended. Time in which
 * either is stopped (Ctrl-Z) does not count against the limit. Call it from the main thread, before
 * others start: they do not exist in the child.
 */
int ts_supervise(const struct ts_heartbeat *heartbeat, struct ts_supervised *ret_end,
		 struct ts_error *err);

#endif
