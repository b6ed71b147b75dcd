/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device recording (docs/cuda.md, section 3): what its files ask of each other. Functions that
 * other code calls preserve errno. None is called while holding a lock that other code could
 * need.
 */
#ifndef TS_BACKENDS_CUDA_CUPTI_CUPTI_DEVICE_H
#define TS_BACKENDS_CUDA_CUPTI_CUPTI_DEVICE_H

#include <string.h>

#include "backends/cuda/cuda_internal.h"
#include "code/cuda/local/cupti_abi.h"

#define CUDA_NS_PER_SECOND 1000000000
#define CUDA_TICK_NS 50000000

static inline uint32_t cuda_read_u32(const uint8_t *record, size_t at)
{
	uint32_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static inline uint64_t cuda_read_u64(const uint8_t *record, size_t at)
{
	uint64_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

/* ---- cupti.c: the library ---- */

/* Filled by cuda_cupti_open(); functions that a version lacks are NULL. */
extern struct cupti_functions cupti;

/*
 * Finds and loads CUPTI; true when `cupti` is filled. `why`: why it cannot be used. One thread at a
 * time.
 */
bool cuda_cupti_open(char *why, size_t why_bytes);
const char *cuda_cupti_path(void);
/* A function of a CUPTI that the process has already loaded; NULL: none. Loads nothing. */
void *cuda_cupti_mapped(const char *name);
/*
 * Another tool finalizes CUPTI: from now on we neither call it nor read its records, which point to
 * names in its memory.
 */
void cuda_cupti_end(void);
bool cuda_cupti_is_ended(void);
/* The other tool that uses the device's profiler; NULL: none. */
const char *cuda_cupti_rival(void);

/* ---- cupti_device.c: states ---- */

enum cuda_device_state {
	CUDA_DEVICE_NONE,   /* not started */
	CUDA_DEVICE_IDLE,   /* no kinds are enabled: nothing is recorded */
	CUDA_DEVICE_ON,     /* kinds are enabled, buffers are ours */
	CUDA_DEVICE_ASIDE,  /* another tool uses CUPTI's activities */
	CUDA_DEVICE_OFF,    /* refused or stopped, for good */
	CUDA_DEVICE_FORKED, /* a forked child: nothing is touched */
};
enum cuda_device_state cuda_device_state(void);

/* Loads CUPTI and subscribes, if requested and possible; true if the subscription is ours. */
bool cuda_device_reach(void);
/* Stops for good; `why` goes to the trace. */
void cuda_device_refuse(const char *why);
/* Another tool starts using activities, and has stopped. */
void cuda_device_step_aside(void);
void cuda_device_come_back(void);
/* While another tool uses the activities: makes CUPTI use its clock. */
void cuda_device_lend_clock(void);
/*
 * Another tool has disabled callbacks that we keep enabled: disables ours, too, if nothing is
 * recorded.
 */
void cuda_device_settle(void);
/* A command was submitted while another tool uses the activities. */
void cuda_device_missed(void);
/* Called by the helper: disables kinds if nothing is recorded any more. */
void cuda_device_rest(void);
/* Called by the helper at the end: the last flush. */
void cuda_device_finish(void);

/* ---- cupti_subscriber.c: the subscription, and which correlation ids count ---- */

int cuda_subscriber_start(void);
/* Enables our callbacks. */
int cuda_subscriber_enable(void);
/*
 * Enables or disables call callbacks, which have a cost while nothing is recorded. Under the state
 * lock.
 */
void cuda_subscriber_switch(bool on);
/*
 * NULL: this library came late, and the only subscription is another tool's. Then there are no
 * callbacks, but activities.
 */
void *cuda_subscriber_handle(void);
bool cuda_subscriber_wants(uint32_t domain, uint32_t number);
/* Whether the work of this correlation id was submitted inside a window. */
bool cuda_subscriber_counts(uint32_t correlation);
/* Whether it is one of our own calls: its work is none of the program's. */
bool cuda_subscriber_is_ours(uint32_t correlation);
/* Whether commands were submitted since the last call. */
bool cuda_subscriber_was_busy(void);

/* ---- cupti_buffers.c: the pool; lock-free for CUPTI, one reader ---- */

int cuda_buffers_init(void);
void cuda_buffers_requested(uint8_t **buffer, size_t *bytes, size_t *most_records);
void cuda_buffers_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid);
/* True if it is one of ours. */
bool cuda_buffers_has(const uint8_t *buffer);
/* Only for the reader: parses returned buffers, and the complete records at the start of others. */
void cuda_buffers_read(void);
uint32_t cuda_buffers_held(void);
/* Flushes everything that CUPTI holds, complete or not. */
void cuda_buffers_force(void);
/* Only for the reader: CUPTI holds records that were not read. */
bool cuda_buffers_pending(void);

/* ---- cupti_layouts.c: records by version ---- */

/* Selects the lengths of this CUPTI version; lengths of unknown versions are learned. */
void cuda_layout_begin(uint32_t version);
/* Bytes of a record; 0: not known, or not read. */
size_t cuda_layout_bytes(uint32_t kind);
/*
 * CUPTI's own iteration shows that a record has this length: that of its version, or another
 * plausible one.
 */
void cuda_layout_learn(const uint8_t *record, size_t bytes);
bool cuda_layout_is_ours(uint32_t kind);

/*
 * ---- activity_records.c, cupti_names.c, cupti_contexts.c, cupti_clock.c: only for the reader ----
 */

void cuda_ops_record(const uint8_t *record);
/* The call site of a kernel, by CUPTI's name of it. */
struct ts_emit_site *cuda_names_kernel(const char *name);
/* A kernel name had exactly this address, which is not dereferenced. */
bool cuda_names_knows(const char *pointer);
bool cuda_names_is_collective(const char *name);
struct ts_emit_site *cuda_names_copy(uint8_t kind, uint8_t from, uint8_t to);
struct ts_emit_site *cuda_names_fill(uint16_t memory);
/* Before an operation: emits the clock of its device and its stream, once. */
void cuda_contexts_emit(uint32_t device, uint32_t context, uint32_t stream);
uint64_t cuda_clock_timestamp(void);
void cuda_clock_use_callback(bool has_callback);
/* An upper bound of the times in complete records. */
uint64_t cuda_clock_latest(void);
void cuda_clock_emit(uint32_t device);
/* Every second, for all devices seen. */
void cuda_clock_again(void);
/* Bytes of the collective that this correlation id launched; TS_UNKNOWN: not known. */
int64_t cuda_ops_collective(uint32_t correlation);

/* ---- cupti_graphs.c ---- */

void cuda_graphs_created(const struct cupti_graph *graph);
void cuda_graphs_cloned(const struct cupti_graph *graph);
uint32_t cuda_graphs_stack(uint64_t node);

/* ---- cupti_sharing.c: other users of CUPTI ---- */

/* Another tool has enabled this callback. */
bool cuda_other_tool_wants(uint32_t domain, uint32_t number);
/* Forwards the callback to it, if so. */
void cuda_other_tool_callback(uint32_t domain, uint32_t number, const void *data);
/* Buffers of another tool. The first returns false if it has registered no callbacks. */
bool cuda_other_tool_requested(uint8_t **buffer, size_t *bytes, size_t *most_records);
void cuda_other_tool_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			       size_t valid);
cupti_timestamp cuda_other_tool_timestamp(void);
/* Called by the helper while another tool uses the activities: checks whether it still does. */
void cuda_other_tool_poll(void);

/* ---- cupti_imports.c ---- */

/* True if a library that is linked with CUPTI calls our functions. */
bool cuda_imports_were_redirected(void);

/* ---- cupti_helper.c: the thread ---- */

int cuda_helper_start(void);
void cuda_helper_wake(void);
/*
 * Waits until the thread is not inside CUPTI, at most 1 s. The caller has already forbidden further
 * calls.
 */
void cuda_helper_await(void);
/* Waits until the helper has read all that CUPTI had returned before the call; bounded. */
void cuda_helper_catch_up(void);
/* Waits for the last pass, at most 2 s; false: it did not return. */
bool cuda_helper_stop(void);

#endif
