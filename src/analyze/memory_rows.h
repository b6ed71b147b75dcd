/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory events of a job from all tables that have them: rows of `allocation`, PyTorch's "[memory]"
 * instants among the marks, and the sums in `torch_trace`. They are read from the traces, not from
 * the work, since only one analysis needs them.
 */
#ifndef TS_ANALYZE_MEMORY_ROWS_H
#define TS_ANALYZE_MEMORY_ROWS_H

#include "state/work/work.h"

/* Values of `kind`: PyTorch's device type number, or one of these. */
#define TS_MEMORY_HOST 0
#define TS_MEMORY_DEVICE (-1) /* a device of the trace whose type is unknown */

struct ts_memory_row {
	int64_t time;
	uint64_t order; /* read order: breaks ties between equal times */
	uint32_t rank;
	uint32_t thread;  /* TS_WORK_NONE: not a thread of the work */
	int64_t kind, id; /* of the device; id is negative if there is none */
	const char *pool; /* allocator; "": unknown */
	int64_t address;  /* TS_ABSENT: unknown; likewise below */
	int64_t bytes;    /* allocated (> 0) or freed (< 0) */
	bool frees;       /* is a free, even if its size is unknown */
	int64_t total;    /* in use afterwards */
	int64_t reserved; /* reserved by the allocator afterwards */
};

struct ts_memory_rows {
	struct ts_memory_row *rows; /* by rank, kind, id, pool, time, order */
	size_t count, capacity;
};

int ts_memory_rows_init(struct ts_memory_rows *rows, const struct ts_work *work,
			struct ts_error *err);
void ts_memory_rows_release(struct ts_memory_rows *rows);

/* Do both rows belong to the same rank, device and allocator? */
bool ts_memory_same_location(const struct ts_memory_row *a, const struct ts_memory_row *b);

#endif
