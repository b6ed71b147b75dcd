/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixed number of worker threads and a queue of jobs that can be waited for. Jobs start in
 * submission order. With 0 threads a job runs inside submit, so that one code path serves both. Not
 * for the agent.
 */
#ifndef TS_BASE_POOL_H
#define TS_BASE_POOL_H

#include <stdbool.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_pool;

/* Caller's storage; must not move from submit until wait returns. Needs no initialisation. */
struct ts_job {
	void (*run)(void *argument);
	void *argument;
	struct ts_job *next; /* the pool's */
	bool done;           /* the pool's; read it through ts_pool_is_done() */
};

/* Workers block all signals, so that Ctrl-C goes to the main thread. */
int ts_pool_start(struct ts_pool **ret_pool, unsigned int threads, struct ts_error *err);

/* Runs all submitted jobs, then ends the threads and frees the pool. Accepts NULL. */
void ts_pool_stop(struct ts_pool *pool);
TS_DEFINE_AUTO(ts_pool, ts_pool_stop);

/*
 * Queues run(argument). Never fails and never waits (except with 0 threads, where it runs the job).
 * Callable from any thread, including jobs. A job may be reused once it has been waited for.
 */
void ts_pool_submit(struct ts_pool *pool, struct ts_job *job, void (*run)(void *argument),
		    void *argument);

/*
 * Returns when the job has run; its writes are then visible. Not callable from a job of the
 * same pool (all workers might wait for one another).
 */
void ts_pool_wait(struct ts_pool *pool, struct ts_job *job);

/* The same without waiting. */
bool ts_pool_is_done(struct ts_pool *pool, const struct ts_job *job);

/* Processors that this process may use, at least 1. */
unsigned int ts_pool_processors(void);

#endif
