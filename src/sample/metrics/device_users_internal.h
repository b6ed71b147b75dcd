/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What device_users.c and device_users_query.c share: lists of users, and what makers' tools have
 * answered. Others include device_users.h.
 */
#ifndef TS_SAMPLE_METRICS_DEVICE_USERS_INTERNAL_H
#define TS_SAMPLE_METRICS_DEVICE_USERS_INTERNAL_H

#include <pthread.h>

#include "sample/metrics/device_users.h"

#define USERS_SOURCES 16u

struct users_list {
	struct ts_accelerator_user *users;
	size_t count, capacity;
	bool failed; /* no memory */
};

/* NULL without memory. */
struct ts_accelerator_user *users_list_add(struct users_list *list, pid_t pid, const char *vendor,
					   int64_t device);

/* ---- makers' tools ---- */

struct users_device {
	uint32_t number;
	char vendor[16];
	char bus[20];
};

/* One source being asked. Whoever comes last, its thread or the asker, frees it. */
struct users_asked {
	const struct ts_metrics_source *source;
	struct users_answers *answers;
	/* Of its thread, until it has ended. */
	struct users_list users;
	struct users_device *devices;
	size_t device_count, device_capacity;
	char message[256];
	bool failed;
	/* Under the lock. */
	bool started, ended;
};

struct users_answers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int holders; /* threads, and the asker */
	struct users_asked asked[USERS_SOURCES];
	size_t count;
};

/* Asks each source (NULL-ended) on a thread of its own; NULL without memory. */
struct users_answers *users_ask(const struct ts_metrics_source *const *sources);

/* Returns with the lock held: what has not ended by then is not to be looked at. */
void users_await(struct users_answers *answers, int64_t limit_ns);

/* Not with the lock held. */
void users_let_go(struct users_answers *answers);

#endif
