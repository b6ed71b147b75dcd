/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by cuda_host_memory.c and cuda_host_changes.c: host memory that the device can read. */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_HOST_MEMORY_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_HOST_MEMORY_H

#include "backends/cuda/stream/cuda_capture.h"

struct host_entry {
	uint64_t address, bytes;
	unsigned int flags;
	bool is_registered;
	uint64_t mapped_bytes; /* of our own mapping */
	/* Of each page, as commands know it; 0: not known. NULL: it is not visible. */
	uint64_t *known;
};

/* A copy of the device to host memory that may not be complete. */
struct pending {
	uint64_t address, bytes;
	struct capture_stream *stream;
};

/*
 * Of memory that the program has pinned or registered. `lock` comes after capture_lock; the driver
 * is called under it only to query streams.
 */
extern struct host_registry {
	pthread_mutex_t lock;
	struct host_entry *ranges; /* by address */
	size_t count, capacity;
	uint64_t lowest, highest; /* of all ranges, so that most words need no search */
	size_t visible;
	uint64_t next; /* address of the next mapping */
	struct pending *pending;
	size_t pending_count, pending_capacity;
	uint64_t number; /* of the object in this window; 0: not described */
} host_registry;

/* The lock is held. NULL: the address is in none. */
struct host_entry *host_entry_at(uint64_t address);
/* Nothing is known of it any more. The lock is held. */
void host_entry_hide(struct host_entry *range);

#endif
