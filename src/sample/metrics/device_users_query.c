/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks vendor tools which processes use their devices, each on its own thread. The last one out, a
 * thread or the caller, frees the answers, so that a tool that hangs blocks nobody. Knows no
 * vendor.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "sample/metrics/device_users_internal.h"

#define NS_PER_S INT64_C(1000000000)

static void take_device(void *context, const struct ts_metrics_device *device)
{
	struct device_users_query *query = context;
	struct device_users_device *described;

	if (ts_grow_array((void **)&query->devices, &query->device_capacity,
			  query->device_count + 1, sizeof(*query->devices))) {
		query->failed = true;
		return;
	}
	described = &query->devices[query->device_count++];
	*described = (struct device_users_device){ .number = device->number };
	snprintf(described->vendor, sizeof(described->vendor), "%s",
		 device->vendor ? device->vendor : "");
	snprintf(described->bus, sizeof(described->bus), "%s", device->bus ? device->bus : "");
}

static const char *vendor_of(const struct device_users_query *query, uint32_t number)
{
	/* Its last message. */
	for (size_t i = query->device_count; i-- > 0;)
		if (query->devices[i].number == number && query->devices[i].vendor[0])
			return query->devices[i].vendor;
	return query->source->name;
}

static void take_row(struct device_users_query *query, const struct ts_metrics_subject *subject,
		     const char *name, const char *series, int64_t value)
{
	struct ts_device_user *user = NULL;
	const char *vendor;

	if (subject->kind != TS_METRICS_PROCESS_ON_DEVICE || subject->pid <= 0)
		return;
	vendor = vendor_of(query, subject->device);
	for (size_t i = 0; i < query->users.count && !user; i++)
		if (query->users.users[i].pid == subject->pid &&
		    query->users.users[i].device == subject->device)
			user = &query->users.users[i];
	if (!user)
		user = device_user_list_add(&query->users, subject->pid, vendor, subject->device);
	if (!user)
		return;
	user->start_time = subject->start_time;
	user->evidence = TS_DEVICE_USER_BY_VENDOR;
	if (strcmp(name, "memory_bytes") == 0 && strcmp(series, "used") == 0)
		user->memory_bytes = value;
}

static void take_integer(void *context, const struct ts_metrics_subject *subject, const char *name,
			 const char *series, int64_t value)
{
	take_row(context, subject, name, series, value);
}

static void take_real(void *context, const struct ts_metrics_subject *subject, const char *name,
		      const char *series, double value)
{
	take_row(context, subject, name, series, TS_METRICS_UNKNOWN);
}

static void take_message(void *context, const char *text)
{
	struct device_users_query *query = context;

	if (!query->message[0])
		snprintf(query->message, sizeof(query->message), "%s", text);
}

void device_users_answers_unref(struct device_users_answers *answers)
{
	unsigned int left;

	pthread_mutex_lock(&answers->lock);
	left = --answers->holders;
	pthread_mutex_unlock(&answers->lock);
	if (left)
		return;
	for (size_t i = 0; i < answers->count; i++) {
		free(answers->queries[i].users.users);
		free(answers->queries[i].devices);
	}
	pthread_cond_destroy(&answers->changed);
	pthread_mutex_destroy(&answers->lock);
	free(answers);
}

static void *run_query(void *context)
{
	struct device_users_query *query = context;
	struct device_users_answers *answers = query->answers;
	const struct ts_metrics_source *source = query->source;
	const struct ts_metrics_sink sink = { sizeof(sink), query,        take_device,
					      take_real,    take_integer, take_message };
	void *state = NULL;
	char why[256] = "";
	enum ts_metrics_state found = source->open(&state, why, sizeof(why));

	if (found == TS_METRICS_BROKEN)
		take_message(query, why);
	if (found == TS_METRICS_READY) {
		source->sample(state, &sink);
		source->close(state);
	}
	pthread_mutex_lock(&answers->lock);
	query->ended = true;
	pthread_cond_broadcast(&answers->changed);
	pthread_mutex_unlock(&answers->lock);
	device_users_answers_unref(answers);
	return NULL;
}

static struct device_users_answers *new_answers(const struct ts_metrics_source *const *sources)
{
	struct device_users_answers *answers = calloc(1, sizeof(*answers));
	pthread_condattr_t by_monotonic;

	if (!answers)
		return NULL;
	pthread_mutex_init(&answers->lock, NULL);
	pthread_condattr_init(&by_monotonic);
	pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&answers->changed, &by_monotonic);
	pthread_condattr_destroy(&by_monotonic);
	answers->holders = 1;
	while (sources && sources[answers->count] && answers->count < DEVICE_USERS_SOURCES) {
		answers->queries[answers->count].source = sources[answers->count];
		answers->queries[answers->count].answers = answers;
		answers->count++;
	}
	return answers;
}

static void start_queries(struct device_users_answers *answers)
{
	pthread_mutex_lock(&answers->lock);
	for (size_t i = 0; i < answers->count; i++) {
		struct device_users_query *query = &answers->queries[i];
		pthread_t thread;

		query->started = !ts_thread_start(&thread, "ts-ask", run_query, query);
		if (!query->started)
			continue;
		answers->holders++;
		pthread_detach(thread);
	}
	pthread_mutex_unlock(&answers->lock);
}

static bool are_all_done(const struct device_users_answers *answers)
{
	for (size_t i = 0; i < answers->count; i++)
		if (answers->queries[i].started && !answers->queries[i].ended)
			return false;
	return true;
}

void device_users_wait(struct device_users_answers *answers, int64_t limit_ns)
{
	int64_t until_ns;
	struct timespec until;

	if (__builtin_add_overflow(ts_clock_monotonic_ns(), limit_ns, &until_ns))
		until_ns = INT64_MAX;
	until.tv_sec = until_ns / NS_PER_S;
	until.tv_nsec = until_ns % NS_PER_S;
	pthread_mutex_lock(&answers->lock);
	while (!are_all_done(answers) &&
	       pthread_cond_timedwait(&answers->changed, &answers->lock, &until) != ETIMEDOUT)
		;
}

struct device_users_answers *device_users_run_queries(
	const struct ts_metrics_source *const *sources)
{
	struct device_users_answers *answers = new_answers(sources);

	if (answers)
		start_queries(answers);
	return answers;
}
