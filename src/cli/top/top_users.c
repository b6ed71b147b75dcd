/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds accelerator users on its own thread, since vendor tools are slow. A thread that hangs is
 * abandoned, so its data is never freed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/top/top.h"
#include "sample/metrics/device_files.h"

#define NS_PER_S INT64_C(1000000000)
/* Between two queries, and time limit of an answer. */
#define PAUSE_NS (5 * NS_PER_S)
#define LIMIT_NS (7 * NS_PER_S)

struct ts_top_users {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	const struct ts_metrics_source *const *sources;
	bool with_files; /* processes that have device files open, too */
	bool stops, ended, answered;
	struct ts_device_users newest;
	char failure[256];
};

static struct ts_top_users the_users;

static struct timespec at_monotonic(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

static void keep_answer(struct ts_top_users *users, struct ts_device_users *answer,
			const char *failure)
{
	struct ts_device_users old = users->newest;

	users->newest = *answer;
	users->answered = true;
	memcpy(users->failure, failure, sizeof(users->failure));
	ts_device_users_release(&old);
	pthread_cond_broadcast(&users->changed);
}

/* There may be new device files. */
static int query(const struct ts_top_users *users, struct ts_device_users *ret_answer,
		 struct ts_error *err)
{
	struct ts_device_table files;
	int rc;

	if (!users->with_files)
		return ts_device_users_find_by(ret_answer, NULL, users->sources, LIMIT_NS, err);
	rc = ts_device_table_init(&files, err);
	if (rc)
		return rc;
	rc = ts_device_users_find_by(ret_answer, &files, users->sources, LIMIT_NS, err);
	ts_device_table_release(&files);
	return rc;
}

static void *query_repeatedly(void *context)
{
	struct ts_top_users *users = context;

	pthread_mutex_lock(&users->lock);
	while (!users->stops) {
		struct ts_device_users answer = { .count = 0 };
		struct ts_error err = { .code = 0 };
		char failure[256] = "";
		struct timespec until;

		pthread_mutex_unlock(&users->lock);
		if (query(users, &answer, &err)) {
			answer = (struct ts_device_users){ .count = 0 };
			snprintf(failure, sizeof(failure), "%.250s", err.message);
		}
		until = at_monotonic(ts_clock_monotonic_ns() + PAUSE_NS);
		pthread_mutex_lock(&users->lock);
		keep_answer(users, &answer, failure);
		while (!users->stops &&
		       !pthread_cond_timedwait(&users->changed, &users->lock, &until))
			;
	}
	users->ended = true;
	pthread_cond_broadcast(&users->changed);
	pthread_mutex_unlock(&users->lock);
	return NULL;
}

int ts_top_users_start(struct ts_top_users **ret_users,
		       const struct ts_metrics_source *const *sources, bool with_files,
		       struct ts_error *err)
{
	pthread_condattr_t attributes;
	int failed;

	the_users = (struct ts_top_users){ .lock = PTHREAD_MUTEX_INITIALIZER,
					   .sources = sources,
					   .with_files = with_files };
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&the_users.changed, &attributes);
	pthread_condattr_destroy(&attributes);
	failed = ts_thread_start(&the_users.thread, "ts-users", query_repeatedly, &the_users);
	if (failed)
		return ts_error_errno(err, failed, "cannot start a thread");
	*ret_users = &the_users;
	return TS_OK;
}

void ts_top_users_wait(struct ts_top_users *users, int64_t limit_ns)
{
	struct timespec until = at_monotonic(ts_clock_monotonic_ns() + limit_ns);

	pthread_mutex_lock(&users->lock);
	while (!users->answered && !pthread_cond_timedwait(&users->changed, &users->lock, &until))
		;
	pthread_mutex_unlock(&users->lock);
}

int ts_top_users_copy(struct ts_top_users *users, struct ts_device_user **ret_users,
		      size_t *ret_count, char *ret_message)
{
	struct ts_device_user *copy;
	const char *message;

	pthread_mutex_lock(&users->lock);
	copy = ts_alloc_array(users->newest.count, sizeof(*copy));
	if (copy && users->newest.count)
		memcpy(copy, users->newest.users, users->newest.count * sizeof(*copy));
	if (copy) {
		*ret_users = copy;
		*ret_count = users->newest.count;
		message = users->failure[0] ? users->failure : users->newest.message;
		memcpy(ret_message, message, sizeof(users->failure));
	}
	pthread_mutex_unlock(&users->lock);
	return copy ? TS_OK : TS_ENOMEM;
}

void ts_top_users_stop(struct ts_top_users *users)
{
	struct timespec until;
	bool ended;

	if (!users)
		return;
	until = at_monotonic(ts_clock_monotonic_ns() + NS_PER_S / 4);
	pthread_mutex_lock(&users->lock);
	users->stops = true;
	pthread_cond_broadcast(&users->changed);
	while (!users->ended && !pthread_cond_timedwait(&users->changed, &users->lock, &until))
		;
	ended = users->ended;
	pthread_mutex_unlock(&users->lock);
	if (!ended) {
		pthread_detach(users->thread);
		return;
	}
	pthread_join(users->thread, NULL);
	ts_device_users_release(&users->newest);
}
