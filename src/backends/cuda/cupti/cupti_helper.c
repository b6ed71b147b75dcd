/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread: flushes CUPTI every 50 ms and reads its buffers, as their only reader. Holds
 * no lock that the program could wait for.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "backends/cuda/cupti/cupti_device.h"

#define STOP_NS 2000000000
#define AWAIT_NS 1000000000
#define NAP_NS 1000000
#define EMIT_TICKS 100 /* 5 s */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held briefly; guards what follows */
static pthread_cond_t wake, done;
static bool is_running, is_requested, is_stopping, is_done;
static pthread_t self;
static bool is_inside;  /* may be inside CUPTI; atomic */
static uint32_t passes; /* atomic */

static struct timespec from_now(int64_t ns)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	ns += at.tv_nsec;
	at.tv_sec += ns / CUDA_NS_PER_SECOND;
	at.tv_nsec = ns % CUDA_NS_PER_SECOND;
	return at;
}

/* True if the program exits. */
static bool rest(void)
{
	struct timespec until = from_now(CUDA_TICK_NS);
	bool is_over;

	pthread_mutex_lock(&lock);
	while (!is_requested && !is_stopping)
		if (pthread_cond_timedwait(&wake, &lock, &until))
			break;
	is_requested = false;
	is_over = is_stopping;
	pthread_mutex_unlock(&lock);
	return is_over;
}

/* Flushes only if records may be pending, because that takes CUPTI's locks. */
static void pass(void)
{
	static uint32_t ticks;
	bool was_busy = cuda_subscriber_was_busy();

	if (cuda_is_late())
		cuda_redirect_imports();
	if (cuda_device_state() == CUDA_DEVICE_ON || cuda_device_state() == CUDA_DEVICE_IDLE) {
		if (was_busy || cuda_buffers_pending())
			cupti.ActivityFlushAll(0);
		cuda_clock_again();
	} else if (cuda_device_state() == CUDA_DEVICE_ASIDE) {
		cuda_other_tool_poll();
	}
	cuda_buffers_read();
	if (cuda_sampling_is_wanted())
		cuda_sampling_drain(false);
	cuda_device_rest();
	if (++ticks % EMIT_TICKS == 0)
		cuda_stubs_emit();
}

/*
 * Either the helper sees what was set before cuda_helper_await(), or that sees the helper inside.
 */
static void set_inside(bool is)
{
	__atomic_store_n(&is_inside, is, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void cuda_helper_await(void)
{
	struct timespec nap = { .tv_nsec = NAP_NS };
	bool is_other;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pthread_mutex_lock(&lock);
	is_other = is_running && !pthread_equal(self, pthread_self());
	pthread_mutex_unlock(&lock);
	for (int64_t waited = 0; is_other && waited < AWAIT_NS; waited += NAP_NS) {
		if (!__atomic_load_n(&is_inside, __ATOMIC_SEQ_CST))
			return;
		nanosleep(&nap, NULL);
	}
}

static void finish(void)
{
	if (cuda_sampling_is_wanted())
		cuda_sampling_drain(true);
	cuda_device_finish();
}

static void *run(void *unused)
{
	(void)unused;
	cuda_thread.is_ours = 1;
	pthread_setname_np(pthread_self(), "ts-cuda");
	ts_thread_name("tracesmith CUDA");
	while (!rest()) {
		set_inside(true);
		pass();
		set_inside(false);
		__atomic_add_fetch(&passes, 1, __ATOMIC_RELEASE);
	}
	set_inside(true);
	finish();
	set_inside(false);
	pthread_mutex_lock(&lock);
	is_done = true;
	pthread_cond_broadcast(&done);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int cuda_start_thread(pthread_t *ret_thread, void *(*function)(void *))
{
	sigset_t all, before;
	pthread_attr_t attributes;
	int result;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(ret_thread, &attributes, function, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result;
}

int cuda_helper_start(void)
{
	int result;

	init_condition(&wake);
	init_condition(&done);
	pthread_mutex_lock(&lock);
	result = cuda_start_thread(&self, run);
	is_running = !result;
	pthread_mutex_unlock(&lock);
	return result;
}

void cuda_helper_wake(void)
{
	pthread_mutex_lock(&lock);
	if (is_running) {
		is_requested = true;
		pthread_cond_signal(&wake);
	}
	pthread_mutex_unlock(&lock);
}

void cuda_helper_catch_up(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint32_t before = __atomic_load_n(&passes, __ATOMIC_ACQUIRE);
	bool is_there;

	pthread_mutex_lock(&lock);
	is_there = is_running && !pthread_equal(self, pthread_self());
	pthread_mutex_unlock(&lock);
	/* The first of two may have begun before. */
	for (int64_t waited = 0; is_there && waited < AWAIT_NS; waited += NAP_NS) {
		if (__atomic_load_n(&passes, __ATOMIC_ACQUIRE) - before >= 2)
			return;
		cuda_helper_wake();
		nanosleep(&nap, NULL);
	}
}

bool cuda_helper_stop(void)
{
	struct timespec until = from_now(STOP_NS);
	bool was_in_time = true;

	pthread_mutex_lock(&lock);
	if (is_running) {
		is_stopping = true;
		pthread_cond_signal(&wake);
		while (!is_done && was_in_time)
			was_in_time = !pthread_cond_timedwait(&done, &lock, &until);
		was_in_time = is_done;
	}
	pthread_mutex_unlock(&lock);
	return was_in_time;
}
