/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of PyTorch memory snapshots; docs/formats/torch-memory.md describes the mapping.
 *
 * A snapshot has recent allocator actions (device_traces) and the allocator's state at the time of
 * the snapshot (segments). Rows are created in three rounds: over the entries, to find what existed
 * before the first one; over the blocks, for the same reason; and over the entries again, once the
 * sums are known. Each dict and list is visited once per round, however often it is referenced.
 */
#ifndef TS_IMPORT_TORCH_MEMORY_TORCH_MEMORY_H
#define TS_IMPORT_TORCH_MEMORY_TORCH_MEMORY_H

#include "base/map.h"
#include "import/common/entities.h"
#include "import/common/row_args.h"
#include "import/torch_memory/pickle.h"

/* Known strings; their ids in the pickle. In the order of `texts` in torch_memory.c. */
enum torch_text {
	TEXT_SEGMENTS,
	TEXT_DEVICE_TRACES,
	TEXT_EXTERNAL_ANNOTATIONS,
	TEXT_ACTION,
	TEXT_ADDR,
	TEXT_SIZE,
	TEXT_STREAM,
	TEXT_TIME_US,
	TEXT_FRAMES,
	TEXT_FILENAME,
	TEXT_LINE,
	TEXT_NAME,
	TEXT_DEVICE,
	TEXT_ADDRESS,
	TEXT_TOTAL_SIZE,
	TEXT_BLOCKS,
	TEXT_REQUESTED_SIZE,
	TEXT_STATE,
	TEXT_HISTORY,
	TEXT_REAL_SIZE,
	TEXT_IS_EXPANDABLE,
	TEXT_STAGE,
	TEXT_USER_METADATA,
	TEXT_COMPILE_CONTEXT,
	TEXT_POOL_ID,
	TEXT_EMPTY,
	TEXT_NOT_COMPILED,
	TEXT_START,
	TEXT_END,
	TEXT_ACTIVE_ALLOCATED,
	TEXT_ACTIVE_PENDING_FREE,
	TEXT_ACTIVE_AWAITING_FREE,
	/* Actions */
	TEXT_ALLOC,
	TEXT_FREE_REQUESTED,
	TEXT_FREE_COMPLETED,
	TEXT_SEGMENT_ALLOC,
	TEXT_SEGMENT_FREE,
	TEXT_SEGMENT_MAP,
	TEXT_SEGMENT_UNMAP,
	TEXTS
};

/* Notes of containers: how often they were visited, or an id plus 1. */
#define NOTE_FREES (TS_PICKLE_NOTE_CUT - 1) /* visited to find the kinds of entries */
#define NOTE_SEEN (TS_PICKLE_NOTE_CUT - 2)  /* visited in the first round */
#define NOTE_DONE (TS_PICKLE_NOTE_CUT - 3)  /* in the last */
#define NOTE_MAX_ID (TS_PICKLE_NOTE_CUT - 4)

/* One entry of device_traces. Missing numbers are TS_ABSENT. */
struct torch_entry {
	ts_pickle_value value; /* the dict */
	uint32_t action;       /* text; TS_STRMAP_NONE: none */
	int64_t address, bytes, stream, time;
	ts_pickle_value frames;
	unsigned int extras; /* further members that become arguments */
};

/* The memory of one device. */
struct torch_device {
	int64_t number, id, thread;         /* thread 0: none yet */
	bool has_requests, has_completions; /* entries of these kinds */
	bool has_time;
	int64_t first_time;
	int64_t total, reserved;              /* bytes, following the rows */
	int64_t taken, given;                 /* by segment entries */
	int64_t held_at_end, before_segments; /* by segments; by rows of earlier segments */
};

struct torch_memory {
	struct ts_import *import;
	struct ts_entities entities;
	struct ts_pickle pickle;
	struct ts_row_args args;
	struct ts_text json;
	uint64_t json_budget;
	uint32_t *strings; /* of the trace, by text of the pickle; 0: not added yet */
	struct ts_map device_numbers;
	struct torch_device *devices;
	size_t device_count, device_capacity;
	struct ts_pairmap blocks, segments; /* (device, address): enum torch_life */
	struct ts_map requests;             /* of the device at work: address to dict */
	uint32_t pool, segment_pool, category;
	bool has_time;
	int64_t first_time, last_time; /* of all entries; of the previous entry */
	uint64_t steps;
	int rc; /* TS_ENOMEM or TS_ECANCELED: everything stops */
	struct ts_error *err;
};

/* There are only free_requested entries, no free_completed: then the request is the free. */
static inline bool torch_requests_free(const struct torch_device *device)
{
	return device->has_requests && !device->has_completions;
}

enum torch_life { LIFE_NONE, LIFE_TAKEN, LIFE_GIVEN };

extern const struct ts_loss_kind torch_loss_value, torch_loss_twice, torch_loss_entry,
	torch_loss_time, torch_loss_back, torch_loss_block, torch_loss_frame;

/* torch_memory.c */
struct torch_device *torch_device(struct torch_memory *m, int64_t number);
int64_t torch_thread(struct torch_memory *m, struct torch_device *device);
int64_t torch_stream(struct torch_memory *m, const struct torch_device *device, int64_t stream);
/* Checks periodically for cancellation; false: see m->rc. */
bool torch_step(struct torch_memory *m);
void torch_no_memory(struct torch_memory *m);

/* torch_memory_values.c */
uint32_t torch_string(struct torch_memory *m, uint32_t text);
uint32_t torch_key(struct torch_memory *m, const char *key);
void torch_arg(struct torch_memory *m, uint32_t key, ts_pickle_value value);
/* JSON of a value as a string of the trace; 0: too large. */
uint32_t torch_json(struct torch_memory *m, ts_pickle_value value);
uint32_t torch_stack(struct torch_memory *m, ts_pickle_value list);
/* From us; false: exceeds int64 ns. */
bool torch_time(struct torch_memory *m, ts_pickle_value value, int64_t *ret_ns);

/* torch_memory_entries.c */
void torch_first_round(struct torch_memory *m, ts_pickle_value traces);
void torch_last_round(struct torch_memory *m, ts_pickle_value traces);

/* torch_memory_rows.c */
/* Are two entries equal apart from action, address and time? */
bool torch_same_extras(const struct torch_memory *m, const struct torch_entry *a,
		       const struct torch_entry *b);
void torch_add_allocation(struct torch_memory *m, struct torch_device *device,
			  const struct torch_entry *entry, enum ts_allocation_kind kind,
			  bool is_before);
void torch_add_segment(struct torch_memory *m, struct torch_device *device,
		       const struct torch_entry *entry, enum ts_allocation_kind kind,
		       bool is_before);
void torch_add_mark(struct torch_memory *m, struct torch_device *device,
		    const struct torch_entry *entry);

/* torch_memory_state.c */
void torch_read_segments(struct torch_memory *m, ts_pickle_value segments);

/* torch_memory_notes.c */
void torch_read_annotations(struct torch_memory *m, ts_pickle_value list);

#endif
