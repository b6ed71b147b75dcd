/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the device side: every 50 ms it asks CUPTI for what is complete and reads it; it is the one reader of buffers. Holds nothing that the program
 * could wait for.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "capture/cuda/device.h"

#define STOP_NS 2000000000
#define TELL_TICKS 100 /* 5 s */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* short: of what follows */
static pthread_cond_t wake, done;
static bool is_running, is_asked, is_stopping, is_done;

static struct timespec from_now(int64_t ns)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	ns += at.tv_nsec;
	at.tv_sec += ns / CUDA_NS_PER_SECOND;
	at.tv_nsec = ns % CUDA_NS_PER_SECOND;
	return at;
}

/* True when the program ends. */
static bool rest(void)
{
	struct timespec until = from_now(CUDA_TICK_NS);
	bool is_over;

	pthread_mutex_lock(&lock);
	while (!is_asked && !is_stopping)
		if (pthread_cond_timedwait(&wake, &lock, &until))
			break;
	is_asked = false;
	is_over = is_stopping;
	pthread_mutex_unlock(&lock);
	return is_over;
}

/* Asked for only when there may be something: it takes locks of CUPTI's. */
static void pass(void)
{
	static uint32_t ticks;
	bool was_busy = cuda_subscriber_was_busy();

	if (cuda_device_state() == CUDA_DEVICE_ON || cuda_device_state() == CUDA_DEVICE_IDLE) {
		if (was_busy || cuda_buffers_pending())
			cupti.ActivityFlushAll(0);
		cuda_clock_again();
	} else if (cuda_device_state() == CUDA_DEVICE_ASIDE) {
		cuda_foreign_look();
	}
	cuda_buffers_read();
	if (cuda_sampling_is_wanted())
		cuda_sampling_drain(false);
	cuda_device_rest();
	if (++ticks % TELL_TICKS == 0)
		cuda_stubs_tell();
}

static void *run(void *unused)
{
	(void)unused;
	cuda_thread.is_ours = 1;
	pthread_setname_np(pthread_self(), "ts-cuda");
	ts_thread_name("tracesmith CUDA");
	while (!rest())
		pass();
	if (cuda_sampling_is_wanted())
		cuda_sampling_drain(true);
	cuda_device_finish();
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

/* The program's signals are not for this thread. */
int cuda_helper_start(void)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int result;

	init_condition(&wake);
	init_condition(&done);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	pthread_mutex_lock(&lock);
	is_running = !result;
	pthread_mutex_unlock(&lock);
	return result;
}

void cuda_helper_wake(void)
{
	pthread_mutex_lock(&lock);
	if (is_running) {
		is_asked = true;
		pthread_cond_signal(&wake);
	}
	pthread_mutex_unlock(&lock);
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
