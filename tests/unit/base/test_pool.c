/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool and the clocks. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "unit/runner.h"

struct work {
	struct ts_job job;
	int input, output;
};

static void square(void *argument)
{
	struct work *work = argument;

	work->output = work->input * work->input;
}

static void run_many(unsigned int threads)
{
	enum { COUNT = 2000 };
	TS_AUTO_FREE struct work *work = calloc(COUNT, sizeof(*work));
	TS_AUTO(ts_pool) pool = NULL;
	struct ts_error err;

	TS_CHECK_INT(ts_pool_start(&pool, threads, &err), TS_OK);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < COUNT; i++) {
			work[i].input = i + round;
			ts_pool_submit(pool, &work[i].job, square, &work[i]);
		}
		/* Not in the order of submission. */
		for (int i = 0; i < COUNT; i++) {
			int k = i * 7 % COUNT;

			ts_pool_wait(pool, &work[k].job);
			TS_CHECK(ts_pool_is_done(pool, &work[k].job));
			TS_CHECK_INT(work[k].output, (k + round) * (k + round));
		}
	}
}

TS_TEST(jobs_run_and_are_waited_for)
{
	run_many(0);
	run_many(1);
	run_many(8);
}

static atomic_int finished;

static void count_slowly(void *argument)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	(void)argument;
	nanosleep(&pause, NULL);
	finished++;
}

TS_TEST(stop_runs_what_is_queued)
{
	struct ts_job jobs[50];
	struct ts_pool *pool;

	TS_CHECK_INT(ts_pool_start(&pool, 3, NULL), TS_OK);
	for (size_t i = 0; i < TS_ARRAY_SIZE(jobs); i++)
		ts_pool_submit(pool, &jobs[i], count_slowly, NULL);
	ts_pool_stop(pool);
	TS_CHECK_INT(finished, TS_ARRAY_SIZE(jobs));
	ts_pool_stop(NULL);
}

static pthread_t runner;

static void note_thread(void *argument)
{
	(void)argument;
	runner = pthread_self();
}

TS_TEST(no_threads_means_inline)
{
	TS_AUTO(ts_pool) pool = NULL;
	struct ts_job job;

	TS_CHECK_INT(ts_pool_start(&pool, 0, NULL), TS_OK);
	ts_pool_submit(pool, &job, note_thread, NULL);
	TS_CHECK(pthread_equal(runner, pthread_self()));
	TS_CHECK(ts_pool_is_done(pool, &job));
	ts_pool_wait(pool, &job);
}

static void look_at_signals(void *argument)
{
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	*(int *)argument = sigismember(&blocked, SIGINT) + sigismember(&blocked, SIGTERM);
}

TS_TEST(workers_leave_signals_to_others)
{
	TS_AUTO(ts_pool) pool = NULL;
	struct ts_job job;
	int blocked = 0, in_caller = 0;

	TS_CHECK_INT(ts_pool_start(&pool, 1, NULL), TS_OK);
	ts_pool_submit(pool, &job, look_at_signals, &blocked);
	ts_pool_wait(pool, &job);
	TS_CHECK_INT(blocked, 2);
	look_at_signals(&in_caller);
	TS_CHECK_INT(in_caller, 0);
}

TS_TEST(processors)
{
	TS_CHECK(ts_pool_processors() >= 1);
}

TS_TEST(clocks)
{
	int64_t before = ts_clock_monotonic_ns(), after;
	struct timespec pause = { .tv_nsec = 2000000 };

	nanosleep(&pause, NULL);
	after = ts_clock_monotonic_ns();
	TS_CHECK(after - before >= 2000000);
	/* After 2020: seconds and nanoseconds are not mixed up. */
	TS_CHECK(ts_clock_realtime_ns() > INT64_C(1577836800000000000));
	TS_CHECK(llabs(ts_clock_realtime_ns() / 1000000000 - (int64_t)time(NULL)) <= 2);
}
