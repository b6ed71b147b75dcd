/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for rocprofv3 records of any of its formats: JSON, rocpd or CSV. The three readers fill a
 * struct ts_rocprof_event; docs/formats/rocprof.md is normative.
 */
#ifndef TS_IMPORT_ROCPROF_ROCPROF_ROWS_H
#define TS_IMPORT_ROCPROF_ROCPROF_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "import/common/entities.h"
#include "import/common/row_args.h"

/* Arguments that more than one reader adds. */
enum ts_rocprof_key {
	TS_ROCPROF_KEY_THREAD,
	TS_ROCPROF_KEY_QUEUE,
	TS_ROCPROF_KEY_KERNEL,
	TS_ROCPROF_KEY_DISPATCH,
	TS_ROCPROF_KEY_PRIVATE,
	TS_ROCPROF_KEY_ACCUM_VGPR,
	TS_ROCPROF_KEY_SGPR,
	TS_ROCPROF_KEY_EXTERNAL,
	TS_ROCPROF_KEY_GRID_X,
	TS_ROCPROF_KEY_GRID_Y,
	TS_ROCPROF_KEY_GRID_Z,
	TS_ROCPROF_KEY_SRC_AGENT,
	TS_ROCPROF_KEY_DST_AGENT,
	TS_ROCPROF_KEY_AGENT,
	TS_ROCPROF_KEY_OPERATION,
	TS_ROCPROF_KEY_DURATION,
	TS_ROCPROF_KEY_VALUE,
	TS_ROCPROF_KEY_FLAGS,
	TS_ROCPROF_KEY_COUNT
};

/* What the name of an operation says about it. */
enum ts_rocprof_operation {
	TS_ROCPROF_PLAIN,
	TS_ROCPROF_LAUNCH,        /* a call that submits work to the device */
	TS_ROCPROF_MARK,          /* roctxMark */
	TS_ROCPROF_RANGE,         /* roctxRangePush, of a thread */
	TS_ROCPROF_PROCESS_RANGE, /* roctxRangeStart, may end on another thread */
	TS_ROCPROF_HOST_TO_HOST,
	TS_ROCPROF_HOST_TO_DEVICE,
	TS_ROCPROF_DEVICE_TO_HOST,
	TS_ROCPROF_DEVICE_TO_DEVICE,
	TS_ROCPROF_ALLOCATE,
	TS_ROCPROF_FREE,
};

enum ts_rocprof_operation ts_rocprof_operation(const char *name, size_t length);

/* One record. Start from ts_rocprof_event_none. */
struct ts_rocprof_event {
	int64_t start, end; /* TS_ABSENT: unknown; end 0: no end */
	int64_t process;    /* ids of rows; 0: none */
	int64_t thread, device, stream;
	int64_t other_device;    /* for a copy: the source device */
	uint32_t name, category; /* strings */
	enum ts_rocprof_operation operation;
	uint64_t process_index;     /* in the file: makes correlation ids unique */
	uint64_t correlation;       /* internal; 0: none */
	uint64_t block[3], grid[3]; /* work-items */
	bool has_size;              /* block and grid were there */
	bool is_collective;
	int64_t registers, shared_bytes, bytes, result; /* TS_ABSENT: not said */
	uint64_t address;
};

extern const struct ts_rocprof_event ts_rocprof_event_none;

/* Location of an allocation, so that its free names the same device. */
struct ts_rocprof_block {
	int64_t device, bytes;
};

struct ts_rocprof_rows {
	struct ts_entities *entities; /* owned by the caller, who starts and finishes it */
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_row_args args; /* of the current event */
	uint32_t keys[TS_ROCPROF_KEY_COUNT];
	/* The shape of the last row: the next one is often the same. */
	struct ts_field *fields;
	size_t field_capacity;
	uint32_t field_count, shape;
	struct ts_pairmap streams; /* (process index and kind, handle) -> a key of a stream */
	struct ts_map addresses;   /* -> index into blocks */
	struct ts_rocprof_block *blocks;
	size_t block_count, block_capacity;
};

void ts_rocprof_rows_init(struct ts_rocprof_rows *rows, struct ts_entities *entities);
void ts_rocprof_rows_release(struct ts_rocprof_rows *rows);

static inline void ts_rocprof_arg(struct ts_rocprof_rows *rows, enum ts_rocprof_key key,
				  int64_t value)
{
	ts_row_args_add(&rows->args, rows->keys[key], TS_ARG_INT, value);
}

/* A number that may exceed int64: then its text is kept. */
void ts_rocprof_arg_unsigned(struct ts_rocprof_rows *rows, uint32_t key, uint64_t value);

/* Id of a constant text. */
static inline uint32_t ts_rocprof_text(struct ts_rocprof_rows *rows, const char *text)
{
	return ts_writer_string(rows->writer, text, strlen(text));
}

/* A stream or, if there is none, a queue of a process on a device; 0: out of memory. */
int64_t ts_rocprof_stream(struct ts_rocprof_rows *rows, int64_t device, uint64_t process_index,
			  bool is_queue, uint64_t handle);

/*
 * Each stores one event with rows->args, which it clears. What cannot be stored is counted as lost.
 * Only memory and the writer can fail, which shows at the next refill.
 */
void ts_rocprof_add_kernel(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event);
void ts_rocprof_add_copy(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event);
void ts_rocprof_add_call(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event);
void ts_rocprof_add_range(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event);
void ts_rocprof_add_allocation(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event);
/* At the event's start; drops rows->args. */
void ts_rocprof_add_counter(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event,
			    double value);

/* Does the API control a device? By the name of its section, table or kind, in any case. */
bool ts_rocprof_is_call(const char *name, size_t length);

extern const struct ts_loss_kind ts_rocprof_lost_time, ts_rocprof_lost_record,
	ts_rocprof_lost_section, ts_rocprof_lost_value;

#endif
