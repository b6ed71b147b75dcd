/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side (docs/cuda.md, section 3): what its files ask of each other. Functions here are
 * called with the program's errno kept by whoever is called from outside, and never while a lock is
 * held that foreign code could want.
 */
#ifndef TS_BACKENDS_CUDA_CUPTI_CUPTI_DEVICE_H
#define TS_BACKENDS_CUDA_CUPTI_CUPTI_DEVICE_H

#include <string.h>

#include "backends/cuda/cuda_internal.h"
#include "backends/cuda/cupti/cupti_abi.h"

#define CUDA_NS_PER_SECOND 1000000000
#define CUDA_TICK_NS 50000000

static inline uint32_t cuda_word(const uint8_t *record, size_t at)
{
	uint32_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static inline uint64_t cuda_long_word(const uint8_t *record, size_t at)
{
	uint64_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

/* ---- cupti.c: the library ---- */

/* Filled by cuda_cupti_open(); functions that a version lacks are NULL. */
extern struct cupti_functions cupti;

/*
 * Finds and loads it; true when `cupti` is filled. `why`: what stands against it. One thread at a
 * time.
 */
bool cuda_cupti_open(char *why, size_t why_bytes);
const char *cuda_cupti_path(void);
/* The function of a library that the process has already; NULL: it has none. Loads nothing. */
void *cuda_cupti_mapped(const char *name);
/*
 * Another tool ends it: from here on nothing of ours calls it, nor reads what it has written, since
 * names in that are its own.
 */
void cuda_cupti_end(void);
bool cuda_cupti_is_ended(void);
/* Another tool has the device's profiler: the text says which. NULL: none. */
const char *cuda_cupti_rival(void);

/* ---- cupti_device.c: what it is doing ---- */

enum cuda_device_state {
	CUDA_DEVICE_NONE,   /* not begun */
	CUDA_DEVICE_IDLE,   /* no kinds are enabled: nothing is wanted */
	CUDA_DEVICE_ON,     /* kinds are enabled, buffers are ours */
	CUDA_DEVICE_ASIDE,  /* another tool has CUPTI's activities */
	CUDA_DEVICE_OFF,    /* refused or ended, for good */
	CUDA_DEVICE_FORKED, /* a child: nothing is touched */
};
enum cuda_device_state cuda_device_state(void);

/* Where it is wanted and possible, CUPTI is loaded and subscribed to; true where it is ours. */
bool cuda_device_reach(void);
/* For good: what `why` says goes to the trace. */
void cuda_device_refuse(const char *why);
/* Another tool begins, and has ended. */
void cuda_device_step_aside(void);
void cuda_device_come_back(void);
/* While it has the activities: CUPTI gets the clock that it wants. */
void cuda_device_lend_clock(void);
/* Another tool has switched callbacks off, of which ours stay: not where nothing is wanted. */
void cuda_device_settle(void);
/* A command was given while another tool has the activities. */
void cuda_device_missed(void);
/* By the helper: kinds are disabled where nothing is wanted any more. */
void cuda_device_rest(void);
/* By the helper, at the end: the last flush. */
void cuda_device_finish(void);

/* ---- cupti_subscriber.c: the one subscription, and which correlations count ---- */

int cuda_subscriber_start(void);
/* Callbacks of ours are on from here on. */
int cuda_subscriber_enable(void);
/* Callbacks of calls, which cost something while nothing is wanted. With the lock of the state. */
void cuda_subscriber_switch(bool on);
void *cuda_subscriber_handle(void);
bool cuda_subscriber_wants(uint32_t domain, uint32_t number);
/* Whether what this correlation caused was given inside a window. */
bool cuda_subscriber_counts(uint32_t correlation);
/* Commands were given since the last time it was asked. */
bool cuda_subscriber_was_busy(void);

/* ---- cupti_buffers.c: the pool; lock-free towards CUPTI, one reader ---- */

int cuda_buffers_init(void);
void cuda_buffers_requested(uint8_t **buffer, size_t *bytes, size_t *most_records);
void cuda_buffers_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid);
/* True where it is one of ours. */
bool cuda_buffers_has(const uint8_t *buffer);
/* By the reader alone: what has come back, and the completed begin of what has not. */
void cuda_buffers_read(void);
uint32_t cuda_buffers_held(void);
/* All that CUPTI holds, complete or not. */
void cuda_buffers_force(void);
/* By the reader alone: CUPTI holds records that were not read. */
bool cuda_buffers_pending(void);

/* ---- cupti_layouts.c: records by version ---- */

/* Takes what the version of CUPTI has; lengths of others are learned. */
void cuda_layout_begin(uint32_t version);
/* Bytes of a record; 0: not known, or not read. */
size_t cuda_layout_bytes(uint32_t kind);
/*
 * CUPTI's own walk has shown that a record is so long: its version's, or another that is
 * believable.
 */
void cuda_layout_learn(const uint8_t *record, size_t bytes);
bool cuda_layout_is_ours(uint32_t kind);

/*
 * ---- activity_records.c, cupti_names.c, cupti_contexts.c, cupti_clock.c: by the reader alone ----
 */

void cuda_ops_record(const uint8_t *record);
/* The site of a kernel, by its name as CUPTI tells it. */
struct ts_emit_site *cuda_names_kernel(const char *name);
/* A kernel was called by exactly this pointer, which is not looked behind. */
bool cuda_names_knows(const char *pointer);
bool cuda_names_is_collective(const char *name);
struct ts_emit_site *cuda_names_copy(uint8_t kind, uint8_t from, uint8_t to);
struct ts_emit_site *cuda_names_fill(uint16_t memory);
/* Ahead of an operation: its device's clock and its stream are told once. */
void cuda_contexts_tell(uint32_t device, uint32_t context, uint32_t stream);
uint64_t cuda_clock_timestamp(void);
void cuda_clock_use_callback(bool has_callback);
/* No time of a record that is complete is later. */
uint64_t cuda_clock_latest(void);
void cuda_clock_tell(uint32_t device);
/* Every second, of all devices that were seen. */
void cuda_clock_again(void);
/* Bytes of the collective that a correlation has launched; TS_UNKNOWN: not known. */
int64_t cuda_ops_collective(uint32_t correlation);

/* ---- cupti_graphs.c ---- */

void cuda_graphs_created(const struct cupti_graph *graph);
void cuda_graphs_cloned(const struct cupti_graph *graph);
uint32_t cuda_graphs_stack(uint64_t node);

/* ---- cupti_sharing.c: other users of CUPTI ---- */

/* Another tool has enabled this callback. */
bool cuda_foreign_wants(uint32_t domain, uint32_t number);
/* It gets it, if so. */
void cuda_foreign_callback(uint32_t domain, uint32_t number, const void *data);
/* Buffers of another tool; the first gives false where it has registered nothing. */
bool cuda_foreign_requested(uint8_t **buffer, size_t *bytes, size_t *most_records);
void cuda_foreign_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid);
cupti_timestamp cuda_foreign_timestamp(void);
/* By the helper, while another tool has the activities: whether it is still there. */
void cuda_foreign_look(void);

/* ---- cupti_helper.c: the thread ---- */

int cuda_helper_start(void);
void cuda_helper_wake(void);
/*
 * Until it is not inside CUPTI, 1 s at most. What it must not do any more was said ahead of this.
 */
void cuda_helper_await(void);
/* Waits for its last pass, 2 s at most; false: it did not come back. */
bool cuda_helper_stop(void);

#endif
