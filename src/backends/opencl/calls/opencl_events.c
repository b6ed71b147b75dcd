/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command events that the program holds: the command of each, how many references the program has
 * as far as we saw, and whether we hold one more.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl_internal.h"

#define SHARDS 64u
#define SHARD_BUCKETS 256u
#define ENTRIES_AT_ONCE 64

struct entry {
	struct entry *next;
	cl_event event;
	uint64_t correlation;
	struct ocl_object *queue; /* never freed, but may be reused for another queue */
	uint32_t references;      /* the program's */
	bool we_hold;
};

static struct shard {
	pthread_mutex_t lock;
	struct entry *spare;
	struct entry *buckets[SHARD_BUCKETS];
} shards[SHARDS] = { [0 ... SHARDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

static uint32_t known; /* number of entries; if 0, lookups return at once */

static uint64_t hash_of(cl_event event)
{
	return ((uint64_t)(uintptr_t)event >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct shard *lock_shard(cl_event event)
{
	struct shard *shard = &shards[hash_of(event) >> 58];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

/* The link to the entry, or to where it would be. */
static struct entry **link_of(struct shard *shard, cl_event event)
{
	struct entry **at = &shard->buckets[(hash_of(event) >> 40) % SHARD_BUCKETS];

	while (*at && (*at)->event != event)
		at = &(*at)->next;
	return at;
}

static struct entry *take(struct shard *shard)
{
	struct entry *entries, *taken;

	if (!shard->spare) {
		entries = calloc(ENTRIES_AT_ONCE, sizeof(*entries));
		for (int i = 0; entries && i < ENTRIES_AT_ONCE; i++) {
			entries[i].next = shard->spare;
			shard->spare = &entries[i];
		}
	}
	taken = shard->spare;
	if (taken)
		shard->spare = taken->next;
	return taken;
}

void ocl_event_add(cl_event event, uint64_t correlation, struct ocl_object *queue, bool we_hold)
{
	struct shard *shard = lock_shard(event);
	struct entry **at = link_of(shard, event), *entry = *at;

	if (!entry) {
		entry = take(shard);
		if (entry) {
			entry->next = NULL;
			*at = entry;
			__atomic_fetch_add(&known, 1, __ATOMIC_RELAXED);
		}
	}
	if (entry) {
		entry->event = event;
		entry->correlation = correlation;
		entry->queue = queue;
		entry->references = 1;
		entry->we_hold = we_hold;
	}
	pthread_mutex_unlock(&shard->lock);
}

void ocl_event_retain(cl_event event)
{
	struct shard *shard;
	struct entry *entry;

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED))
		return;
	shard = lock_shard(event);
	entry = *link_of(shard, event);
	if (entry)
		entry->references++;
	pthread_mutex_unlock(&shard->lock);
}

bool ocl_event_release(cl_event event)
{
	struct shard *shard;
	struct entry **at, *entry;
	bool last;

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED))
		return false;
	shard = lock_shard(event);
	at = link_of(shard, event);
	entry = *at;
	last = entry && --entry->references == 0;
	if (last) {
		*at = entry->next;
		entry->next = shard->spare;
		shard->spare = entry;
		__atomic_fetch_sub(&known, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&shard->lock);
	return last;
}

void ocl_event_unhold(cl_event event)
{
	struct shard *shard;
	struct entry *entry;

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED))
		return;
	shard = lock_shard(event);
	entry = *link_of(shard, event);
	if (entry)
		entry->we_hold = false;
	pthread_mutex_unlock(&shard->lock);
}

uint64_t ocl_event_find(cl_event event, struct ocl_object **ret_queue)
{
	uint64_t correlation = 0;
	struct shard *shard;
	const struct entry *entry;

	if (ret_queue)
		*ret_queue = NULL;
	if (!__atomic_load_n(&known, __ATOMIC_RELAXED))
		return 0;
	shard = lock_shard(event);
	entry = *link_of(shard, event);
	if (entry) {
		correlation = entry->correlation;
		if (ret_queue)
			*ret_queue = entry->queue;
	}
	pthread_mutex_unlock(&shard->lock);
	return correlation;
}

cl_uint ocl_event_holds(cl_event event)
{
	struct shard *shard = lock_shard(event);
	const struct entry *entry = *link_of(shard, event);
	cl_uint holds = entry && entry->we_hold;

	pthread_mutex_unlock(&shard->lock);
	return holds;
}

/* Events of the parent are not ours. */
void ocl_events_forked(void)
{
	for (unsigned int i = 0; i < SHARDS; i++) {
		memset(&shards[i], 0, sizeof(shards[i]));
		pthread_mutex_init(&shards[i].lock, NULL);
	}
	known = 0;
}
