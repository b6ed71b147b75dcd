/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker pool: one queue, one mutex, two conditions. Jobs are large (a chunk to encode, a file to
 * read), so one lock is enough.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity() */
#endif
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/thread.h"

/* `lock` guards everything below it, and the pool's fields of queued jobs. */
struct ts_pool {
	unsigned int threads; /* started ones; belongs to the starting thread until then */
	pthread_t *handles;
	pthread_mutex_t lock;
	pthread_cond_t job_queued; /* or stopping */
	pthread_cond_t job_done;   /* some job */
	struct ts_job *first;
	struct ts_job **last; /* where the next job is linked */
	bool stopping;
};

static void *work(void *argument)
{
	struct ts_pool *pool = argument;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct ts_job *job = pool->first;

		if (!job) {
			if (pool->stopping)
				break;
			pthread_cond_wait(&pool->job_queued, &pool->lock);
			continue;
		}
		pool->first = job->next;
		if (!pool->first)
			pool->last = &pool->first;
		pthread_mutex_unlock(&pool->lock);
		job->run(job->argument);
		pthread_mutex_lock(&pool->lock);
		/* From here on the job belongs to the waiter, who may free it. */
		job->done = true;
		pthread_cond_broadcast(&pool->job_done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* pool->threads is the actual number. */
static int start_workers(struct ts_pool *pool, unsigned int threads)
{
	int errnum = 0;

	for (unsigned int i = 0; i < threads && !errnum; i++) {
		errnum = ts_thread_start(&pool->handles[i], "ts-pool", work, pool);
		if (!errnum)
			pool->threads++;
	}
	return errnum;
}

int ts_pool_start(struct ts_pool **ret_pool, unsigned int threads, struct ts_error *err)
{
	struct ts_pool *pool = calloc(1, sizeof(*pool));
	int errnum;

	if (!pool)
		return ts_error_set(err, TS_ENOMEM, "cannot start worker threads: out of memory");
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->job_queued, NULL);
	pthread_cond_init(&pool->job_done, NULL);
	pool->last = &pool->first;
	pool->handles = ts_alloc_array(threads, sizeof(*pool->handles));
	if (!pool->handles) {
		ts_pool_stop(pool);
		return ts_error_set(err, TS_ENOMEM, "cannot start worker threads: out of memory");
	}
	errnum = start_workers(pool, threads);
	if (errnum) {
		ts_pool_stop(pool);
		return ts_error_errno(err, errnum, "cannot start worker threads");
	}
	*ret_pool = pool;
	return TS_OK;
}

void ts_pool_stop(struct ts_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->job_queued);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned int i = 0; i < pool->threads; i++)
		pthread_join(pool->handles[i], NULL);
	pthread_cond_destroy(&pool->job_done);
	pthread_cond_destroy(&pool->job_queued);
	pthread_mutex_destroy(&pool->lock);
	free(pool->handles);
	free(pool);
}

void ts_pool_submit(struct ts_pool *pool, struct ts_job *job, void (*run)(void *argument),
		    void *argument)
{
	*job = (struct ts_job){ .run = run, .argument = argument };
	if (!pool->threads) {
		run(argument);
		job->done = true;
		return;
	}
	pthread_mutex_lock(&pool->lock);
	*pool->last = job;
	pool->last = &job->next;
	pthread_cond_signal(&pool->job_queued);
	pthread_mutex_unlock(&pool->lock);
}

void ts_pool_wait(struct ts_pool *pool, struct ts_job *job)
{
	pthread_mutex_lock(&pool->lock);
	while (!job->done)
		pthread_cond_wait(&pool->job_done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

bool ts_pool_is_done(struct ts_pool *pool, const struct ts_job *job)
{
	bool done;

	pthread_mutex_lock(&pool->lock);
	done = job->done;
	pthread_mutex_unlock(&pool->lock);
	return done;
}

unsigned int ts_pool_processors(void)
{
	long online;

#ifdef __linux__
	cpu_set_t allowed;

	/* Fails on machines with more processors than the set can hold. */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		return (unsigned int)TS_MAX(CPU_COUNT(&allowed), 1);
#endif
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (unsigned int)online : 1;
}
