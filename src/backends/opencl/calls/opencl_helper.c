/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that collects completed commands while the program does something else, every 100 ms.
 * Created with the first queue; sleeps while nothing is pending; does not call the driver after the
 * program has begun to exit.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "backends/opencl/opencl_internal.h"

#define INTERVAL_NS 100000000
/* How long program exit waits for a pass in progress. */
#define STOP_NS 500000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static struct ocl_object *queues; /* held; under the lock */
static bool is_running;           /* the thread exists; under the lock */
static bool is_stopped;           /* atomic: the program exits */
static bool is_asleep;            /* atomic: nothing was pending on the last pass */

/* One pass at a time. Held while the driver is called; hooks never wait for it. */
static pthread_mutex_t passing = PTHREAD_MUTEX_INITIALIZER;

static struct timespec from_now(clockid_t clock, long ns)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_nsec += ns;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

/* ---- a pass over all queues ---- */

static bool is_done_with(struct ocl_object *queue)
{
	return __atomic_load_n(&queue->is_gone, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&queue->pending_count, __ATOMIC_ACQUIRE);
}

/*
 * The first queue, or the one after `queue`. Only passes remove queues, so `queue` is still in the
 * list.
 */
static struct ocl_object *behind(const struct ocl_object *queue)
{
	struct ocl_object *next;

	pthread_mutex_lock(&lock);
	next = queue ? queue->next_profiled : queues;
	pthread_mutex_unlock(&lock);
	return next;
}

static void take_out(struct ocl_object *queue)
{
	struct ocl_object **at = &queues;

	pthread_mutex_lock(&lock);
	while (*at && *at != queue)
		at = &(*at)->next_profiled;
	if (*at)
		*at = queue->next_profiled;
	queue->is_profiled = false;
	pthread_mutex_unlock(&lock);
	ocl_drop(queue);
}

/* True if something is still pending. */
static bool pass(void)
{
	struct ocl_object *queue = behind(NULL), *next;
	bool is_pending = false;

	while (queue) {
		ocl_profile_look(queue);
		is_pending |= __atomic_load_n(&queue->pending_count, __ATOMIC_ACQUIRE) != 0;
		next = behind(queue);
		if (is_done_with(queue))
			take_out(queue);
		queue = next;
	}
	return is_pending;
}

void ocl_helper_look(void)
{
	if (!pthread_mutex_trylock(&passing)) {
		pass();
		pthread_mutex_unlock(&passing);
	}
}

/* ---- the thread ---- */

static uint64_t count_pending(void)
{
	uint64_t count = 0;

	for (const struct ocl_object *queue = behind(NULL); queue; queue = behind(queue))
		count += __atomic_load_n(&queue->pending_count, __ATOMIC_SEQ_CST);
	return count;
}

/* Sleeps for an interval, or until something is pending. */
static void rest(bool is_pending)
{
	struct timespec until = from_now(CLOCK_MONOTONIC, INTERVAL_NS);

	/*
	 * An enqueuing thread counts its command, then checks whether we sleep: one of us sees the
	 * other.
	 */
	__atomic_store_n(&is_asleep, !is_pending, __ATOMIC_SEQ_CST);
	if (!is_pending && !__atomic_load_n(&is_stopped, __ATOMIC_ACQUIRE) && count_pending()) {
		__atomic_store_n(&is_asleep, false, __ATOMIC_RELAXED);
		is_pending = true;
	}
	pthread_mutex_lock(&lock);
	if (is_pending)
		pthread_cond_timedwait(&wake, &lock, &until);
	while (!is_pending && __atomic_load_n(&is_asleep, __ATOMIC_RELAXED))
		pthread_cond_wait(&wake, &lock);
	pthread_mutex_unlock(&lock);
}

static void *run(void *unused)
{
	bool is_pending = true;

	(void)unused;
	pthread_setname_np(pthread_self(), "tracesmith-cl");
	ts_thread_name("tracesmith OpenCL");
	for (;;) {
		rest(is_pending);
		pthread_mutex_lock(&passing);
		/* From here on, program exit waits for us, or we see is_stopped. */
		is_pending = !__atomic_load_n(&is_stopped, __ATOMIC_ACQUIRE) && pass();
		pthread_mutex_unlock(&passing);
	}
	return NULL;
}

/* Under the lock. The thread must not receive the program's signals. */
static void start(void)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_condattr_t monotonic;
	pthread_t thread;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	is_running = !pthread_create(&thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

void ocl_helper_add(struct ocl_object *queue)
{
	bool is_new;

	pthread_mutex_lock(&lock);
	is_new = !queue->is_profiled;
	if (is_new) {
		queue->is_profiled = true;
		queue->next_profiled = queues;
		queues = queue;
	}
	if (!is_running && !__atomic_load_n(&is_stopped, __ATOMIC_RELAXED))
		start();
	pthread_mutex_unlock(&lock);
	if (is_new)
		ocl_hold(queue);
}

void ocl_helper_wake(void)
{
	if (!__atomic_load_n(&is_asleep, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&is_asleep, false, __ATOMIC_RELAXED);
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/* ---- exit ---- */

void ocl_helper_stop(void)
{
	struct timespec until = from_now(CLOCK_REALTIME, STOP_NS);

	if (__atomic_exchange_n(&is_stopped, true, __ATOMIC_ACQ_REL))
		return;
	/* A pass that hangs in the driver is abandoned: it must not delay exit. */
	if (pthread_mutex_timedlock(&passing, &until))
		return;
	/* The recorder has the calls of incomplete commands and counts them as lost. */
	pass();
	pthread_mutex_unlock(&passing);
}

void ocl_helper_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&passing, NULL);
	for (struct ocl_object *queue = queues, *next; queue; queue = next) {
		next = queue->next_profiled;
		ocl_profile_forked(queue);
	}
	queues = NULL;
	is_running = is_stopped = is_asleep = false;
}
