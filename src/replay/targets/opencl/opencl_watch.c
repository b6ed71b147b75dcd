/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the monitor which command the device works on. A thread does this, since the one that
 * submits commands may be blocked in the driver. It looks a few times a second: the device does not
 * notice. A thread that crashes, on a processor in a kernel, waits until it has looked again.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "replay/targets/opencl/opencl_session.h"

#define LOOK_NS 100000000
#define NS_PER_SECOND 1000000000

struct ts_opencl_watch {
	struct ts_replay_session *session;
	pthread_t thread;
	pthread_mutex_t lock; /* events of steps are not released while it is held */
	pthread_cond_t wake;
	bool must_end;
	/* As last seen. */
	uint32_t first;     /* all steps before it are complete */
	uint32_t submitted; /* session->submitted */
	uint32_t looks;     /* how often; atomic */
	uint32_t complete;  /* number of complete steps; UINT32_MAX: not counted */
};

/* ---- looking at events ---- */

/*
 * Counts the complete steps, and returns one that is not: one that runs, otherwise the oldest. A
 * step that waits for a user event which is set later does not count.
 */
static uint32_t find_incomplete(const struct ts_opencl_watch *watch, uint32_t *ret_complete)
{
	const struct ts_replay_session *session = watch->session;
	uint32_t found = TS_REPLAY_NONE;
	bool is_running = false;

	*ret_complete = watch->first;
	for (uint32_t i = watch->first; i < watch->submitted; i++) {
		cl_int status = ts_opencl_status(session, i);

		*ret_complete += status <= CL_COMPLETE;
		if (status <= CL_COMPLETE || is_running ||
		    session->steps[i].gate > watch->submitted)
			continue;
		is_running = status == CL_RUNNING;
		if (is_running || found == TS_REPLAY_NONE)
			found = i;
	}
	return found;
}

static void look(struct ts_opencl_watch *watch)
{
	const struct ts_replay_session *session = watch->session;
	uint32_t submitted = __atomic_load_n(&session->submitted, __ATOMIC_ACQUIRE);
	uint32_t first = watch->first, complete = UINT32_MAX, incomplete, launching;
	bool advanced;

	while (watch->first < submitted && ts_opencl_status(session, watch->first) <= CL_COMPLETE)
		watch->first++;
	advanced = watch->first != first || submitted != watch->submitted;
	watch->submitted = submitted;
	/* There may be thousands: they are only looked at if nothing else shows progress. */
	if (advanced && watch->first < submitted)
		incomplete = watch->first;
	else
		incomplete = find_incomplete(watch, &complete);
	advanced |= complete != watch->complete;
	watch->complete = complete;
	launching = __atomic_load_n(&session->launching, __ATOMIC_ACQUIRE);
	if (incomplete == TS_REPLAY_NONE && launching)
		incomplete = launching - 1;
	ts_replay_monitor_command(session->replay, incomplete, advanced);
	__atomic_fetch_add(&watch->looks, 1, __ATOMIC_RELEASE);
}

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

static void catch_crashes(const struct ts_opencl_watch *watch)
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

static struct timespec next_look(void)
{
	int64_t ns = ts_clock_monotonic_ns() + LOOK_NS;

	return (struct timespec){ .tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND };
}

static void *watch_device(void *context)
{
	struct ts_opencl_watch *watch = context;

	pthread_mutex_lock(&watch->lock);
	while (!watch->must_end) {
		struct timespec until = next_look();

		if (pthread_cond_timedwait(&watch->wake, &watch->lock, &until) == ETIMEDOUT)
			look(watch);
	}
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

static int init(struct ts_opencl_watch *watch)
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

int ts_opencl_watch_start(struct ts_replay_session *session, struct ts_error *err)
{
	struct ts_opencl_watch *watch;
	int error;

	if (!session->replay->options.monitor)
		return TS_OK;
	ts_replay_monitor_enter(session->replay, TS_REPLAY_RUNNING, NULL);
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return ts_error_set(err, TS_ENOMEM, "no memory to watch the device");
	watch->session = session;
	error = init(watch);
	if (!error)
		error = ts_thread_start(&watch->thread, "ts-watch", watch_device, watch);
	if (error) {
		free(watch);
		return ts_error_errno(err, error, "cannot watch the device");
	}
	session->watch = watch;
	catch_crashes(watch);
	return TS_OK;
}

void ts_opencl_watch_stop(struct ts_replay_session *session)
{
	struct ts_opencl_watch *watch = session->watch;

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
	session->watch = NULL;
}

void ts_opencl_watch_pause(struct ts_replay_session *session)
{
	if (session->watch)
		pthread_mutex_lock(&session->watch->lock);
}

void ts_opencl_watch_resume(struct ts_replay_session *session)
{
	if (session->watch)
		pthread_mutex_unlock(&session->watch->lock);
}
