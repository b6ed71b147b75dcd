/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by device_users.c and device_users_query.c: lists of users, and the answers of vendor
 * tools. Others include device_users.h.
 */
#ifndef TS_SAMPLE_METRICS_DEVICE_USERS_INTERNAL_H
#define TS_SAMPLE_METRICS_DEVICE_USERS_INTERNAL_H

#include <pthread.h>

#include "sample/metrics/device_users.h"

#define DEVICE_USERS_SOURCES 16u

struct device_user_list {
	struct ts_device_user *users;
	size_t count, capacity;
	bool failed; /* no memory */
};

/* NULL if out of memory. */
struct ts_device_user *device_user_list_add(struct device_user_list *list, pid_t pid,
					    const char *vendor, int64_t device);

/* ---- vendor tools ---- */

struct device_users_device {
	uint32_t number;
	char vendor[16];
	char bus[20];
};

/* A query of one source. The last one out, its thread or the caller, frees it. */
struct device_users_query {
	const struct ts_metrics_source *source;
	struct device_users_answers *answers;
	/* Belongs to its thread until it has ended. */
	struct device_user_list users;
	struct device_users_device *devices;
	size_t device_count, device_capacity;
	char message[256];
	bool failed;
	/* Under the lock. */
	bool started, ended;
};

struct device_users_answers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int holders; /* threads, and the caller */
	struct device_users_query queries[DEVICE_USERS_SOURCES];
	size_t count;
};

/* Queries each source (NULL-terminated) on its own thread; NULL if out of memory. */
struct device_users_answers *device_users_run_queries(
	const struct ts_metrics_source *const *sources);

/* Returns with the lock held; queries that have not ended must not be read. */
void device_users_wait(struct device_users_answers *answers, int64_t limit_ns);

/* Call without the lock. */
void device_users_answers_unref(struct device_users_answers *answers);

#endif
