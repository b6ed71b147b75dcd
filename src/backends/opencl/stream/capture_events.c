/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of events, by handle: of user events while they live; of command events while the program
 * holds them, if they were enqueued inside a window.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

struct entry {
	struct entry *next;
	cl_event event;
	uint64_t number;
	uint64_t window;         /* of its command; for a user event, that of its object */
	struct ocl_stream *user; /* held by the program's object, or NULL */
	bool was_seen;
};

/* Buckets are chained, and grow when there are more entries than buckets. */
static struct {
	pthread_mutex_t lock;
	struct entry **buckets;
	size_t bucket_count, count;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic uint32_t blocking, unset;

static size_t bucket_of(cl_event event, size_t bucket_count)
{
	return (size_t)(((uint64_t)(uintptr_t)event * 0x9e3779b97f4a7c15u) >> 20) &
	       (bucket_count - 1);
}

static void grow(void)
{
	size_t bigger = table.bucket_count ? 2 * table.bucket_count : 64;
	struct entry **buckets = calloc(bigger, sizeof(struct entry *));

	if (!buckets)
		return; /* keep the longer chains */
	for (size_t i = 0; i < table.bucket_count; i++) {
		while (table.buckets[i]) {
			struct entry *entry = table.buckets[i];

			table.buckets[i] = entry->next;
			entry->next = buckets[bucket_of(entry->event, bigger)];
			buckets[bucket_of(entry->event, bigger)] = entry;
		}
	}
	free(table.buckets);
	table.buckets = buckets;
	table.bucket_count = bigger;
}

/* The link to its entry, or to where it would be; NULL: no table. */
static struct entry **find_link(cl_event event)
{
	struct entry **link;

	if (!table.buckets)
		return NULL;
	link = &table.buckets[bucket_of(event, table.bucket_count)];
	while (*link && (*link)->event != event)
		link = &(*link)->next;
	return link;
}

static struct entry *find(cl_event event)
{
	struct entry **link = find_link(event);

	return link ? *link : NULL;
}

/* If the handle has an entry, we missed its release: it is another event now. */
static struct entry *find_or_add(cl_event event)
{
	struct entry *entry = find(event);

	if (entry)
		return entry;
	if (table.count >= table.bucket_count)
		grow();
	entry = table.buckets ? calloc(1, sizeof(*entry)) : NULL;
	if (entry) {
		entry->event = event;
		entry->next = table.buckets[bucket_of(event, table.bucket_count)];
		table.buckets[bucket_of(event, table.bucket_count)] = entry;
		table.count++;
	}
	return entry;
}

uint64_t stream_event_add(cl_event event, struct ocl_stream *user)
{
	uint64_t number = user ? user->number : ts_replay_new_object();
	struct entry *entry;

	pthread_mutex_lock(&table.lock);
	entry = find_or_add(event);
	if (entry) {
		entry->number = number;
		entry->window = ts_replay_window();
		entry->user = user;
		entry->was_seen = false;
	}
	if (user)
		atomic_fetch_add(&unset, 1);
	pthread_mutex_unlock(&table.lock);
	/* What waits for it would be replayed too early. */
	if (!entry)
		ts_replay_fail_window("no memory for an event");
	return entry ? number : 0;
}

/* 0 for an earlier window: complete, because the next one began when all queues were empty. */
static uint64_t number_now(const struct entry *entry)
{
	uint64_t window = entry->user ? entry->user->window : entry->window;

	return window == ts_replay_window() ? entry->number : 0;
}

uint64_t stream_event_number(cl_event event)
{
	const struct entry *entry;
	uint64_t number = 0;

	pthread_mutex_lock(&table.lock);
	entry = find(event);
	if (entry)
		number = number_now(entry);
	pthread_mutex_unlock(&table.lock);
	return number;
}

bool stream_event_wait(cl_event event)
{
	const struct entry *entry;
	bool is_good = true;

	pthread_mutex_lock(&table.lock);
	entry = find(event);
	if (entry && entry->user) {
		struct stream_user_event *user = &entry->user->as.event;
		cl_int status = atomic_load(&user->status);

		if (status > CL_COMPLETE && !atomic_exchange(&user->is_waited_for, true))
			atomic_fetch_add(&blocking, 1);
		is_good = status >= CL_COMPLETE || number_now(entry);
	}
	pthread_mutex_unlock(&table.lock);
	return is_good;
}

bool stream_event_see(cl_event event, uint64_t *ret_number)
{
	struct entry *entry;
	bool is_first = false;

	pthread_mutex_lock(&table.lock);
	entry = find(event);
	if (entry && !entry->was_seen && number_now(entry)) {
		entry->was_seen = true;
		*ret_number = entry->number;
		is_first = true;
	}
	pthread_mutex_unlock(&table.lock);
	return is_first;
}

uint32_t stream_events_blocking(void)
{
	return atomic_load_explicit(&blocking, memory_order_relaxed);
}

uint32_t stream_events_unset(void)
{
	return atomic_load_explicit(&unset, memory_order_relaxed);
}

void stream_event_set(struct ocl_stream *user, cl_int status)
{
	pthread_mutex_lock(&table.lock);
	if (atomic_exchange(&user->as.event.is_waited_for, false))
		atomic_fetch_sub(&blocking, 1);
	if (atomic_exchange(&user->as.event.status, status) > CL_COMPLETE)
		atomic_fetch_sub(&unset, 1);
	pthread_mutex_unlock(&table.lock);
}

void stream_event_gone(cl_event event)
{
	struct entry **link, *entry = NULL;

	pthread_mutex_lock(&table.lock);
	link = find_link(event);
	if (link && *link) {
		entry = *link;
		*link = entry->next;
		table.count--;
	}
	pthread_mutex_unlock(&table.lock);
	free(entry);
}

void stream_events_forked(void)
{
	pthread_mutex_init(&table.lock, NULL);
	/* Entries stay: their events are the parent's, and no call here refers to them. */
}
