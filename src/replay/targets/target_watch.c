/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that looks at a device during a run. It is not the one that submits commands, which
 * may be blocked in the driver. It looks a few times a second: the device does not notice.
 */
#include "replay/targets/target_watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

#define LOOK_NS 100000000
#define NS_PER_SECOND 1000000000

struct ts_target_watch {
	struct ts_replay_session *session;
	void (*look)(struct ts_replay_session *session, void *state);
	pthread_t thread;
	pthread_mutex_t lock; /* held while it looks */
	pthread_cond_t wake;
	bool must_end;
	uint32_t looks; /* how often; atomic */
	max_align_t state[];
};

/* ---- crashes ---- */

/* For the handler, which runs in any thread. */
static const uint32_t *looks_of_watch;

static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT };
static struct sigaction actions_before[TS_ARRAY_SIZE(crash_signals)];

/*
 * Returns to the crash, with the action that it would have had without us. A fault then happens
 * again, and drivers that handle it (PoCL lets kernels divide by zero) learn where it was. What was
 * sent, or is a breakpoint, does not.
 */
static void crash_again(int number, const siginfo_t *info)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(crash_signals); i++)
		if (crash_signals[i] == number)
			sigaction(number, &actions_before[i], NULL);
	if (info->si_code <= 0 || number == SIGTRAP)
		raise(number);
}

/* Only this thread has crashed: the one that looks at events still runs, or is itself lost. */
static void on_crash(int number, siginfo_t *info, void *context)
{
	const struct timespec moment = { .tv_nsec = LOOK_NS / 10 };
	const uint32_t *looks = __atomic_load_n(&looks_of_watch, __ATOMIC_ACQUIRE);
	uint32_t before = looks ? __atomic_load_n(looks, __ATOMIC_ACQUIRE) : 0;

	/* A look may have begun before the crash: the one after it counts. */
	for (int i = 0; i < 50 && looks; i++) {
		if (__atomic_load_n(looks, __ATOMIC_ACQUIRE) - before >= 2)
			break;
		nanosleep(&moment, NULL);
	}
	(void)context;
	crash_again(number, info);
}

static void catch_crashes(const struct ts_target_watch *watch)
{
	struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	__atomic_store_n(&looks_of_watch, &watch->looks, __ATOMIC_RELEASE);
	for (size_t i = 0; i < TS_ARRAY_SIZE(crash_signals); i++)
		sigaction(crash_signals[i], &action, &actions_before[i]);
}

static void release_crashes(void)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(crash_signals); i++)
		sigaction(crash_signals[i], &actions_before[i], NULL);
	__atomic_store_n(&looks_of_watch, NULL, __ATOMIC_RELEASE);
}

/* ---- the thread ---- */

static void look(struct ts_target_watch *watch)
{
	watch->look(watch->session, watch->state);
	__atomic_fetch_add(&watch->looks, 1, __ATOMIC_RELEASE);
}

static struct timespec next_look(void)
{
	int64_t ns = ts_clock_monotonic_ns() + LOOK_NS;

	return (struct timespec){ .tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND };
}

static void *watch_device(void *context)
{
	struct ts_target_watch *watch = context;

	pthread_mutex_lock(&watch->lock);
	while (!watch->must_end) {
		struct timespec until = next_look();

		if (pthread_cond_timedwait(&watch->wake, &watch->lock, &until) == ETIMEDOUT)
			look(watch);
	}
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

static int init(struct ts_target_watch *watch)
{
	pthread_condattr_t monotonic;
	int error = pthread_condattr_init(&monotonic);

	if (error)
		return error;
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	error = pthread_cond_init(&watch->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!error)
		error = pthread_mutex_init(&watch->lock, NULL);
	return error;
}

int ts_target_watch_start(struct ts_target_watch **ret_watch, struct ts_replay_session *session,
			  const struct ts_replay *replay,
			  void (*look_at)(struct ts_replay_session *session, void *state),
			  size_t state_bytes, struct ts_error *err)
{
	struct ts_target_watch *watch;
	int error;

	*ret_watch = NULL;
	if (!replay->options.monitor)
		return TS_OK;
	ts_replay_monitor_enter(replay, TS_REPLAY_RUNNING, NULL);
	watch = calloc(1, sizeof(*watch) + state_bytes);
	if (!watch)
		return ts_error_set(err, TS_ENOMEM, "no memory to watch the device");
	watch->session = session;
	watch->look = look_at;
	error = init(watch);
	if (!error)
		error = ts_thread_start(&watch->thread, "ts-watch", watch_device, watch);
	if (error) {
		free(watch);
		return ts_error_errno(err, error, "cannot watch the device");
	}
	*ret_watch = watch;
	catch_crashes(watch);
	return TS_OK;
}

void ts_target_watch_stop(struct ts_target_watch *watch)
{
	if (!watch)
		return;
	release_crashes();
	pthread_mutex_lock(&watch->lock);
	watch->must_end = true;
	pthread_cond_signal(&watch->wake);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	pthread_cond_destroy(&watch->wake);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

void ts_target_watch_pause(struct ts_target_watch *watch)
{
	if (watch)
		pthread_mutex_lock(&watch->lock);
}

void ts_target_watch_resume(struct ts_target_watch *watch)
{
	if (watch)
		pthread_mutex_unlock(&watch->lock);
}
