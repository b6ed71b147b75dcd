/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job's traces tell of memory, whatever table it stands in: rows of `allocation`, PyTorch's
 * "[memory]" instants among the marks, and the sums in `torch_trace`. Read from the traces
 * themselves: only one analysis wants them.
 */
#ifndef TS_ANALYZE_MEMORY_ROWS_H
#define TS_ANALYZE_MEMORY_ROWS_H

#include "state/work/work.h"

/* Whose memory: PyTorch's number of a kind of device and its ordinal, or one of ours. */
#define TS_MEMORY_HOST 0
#define TS_MEMORY_DEVICE (-1) /* a device of the trace; its kind is unknown */

struct ts_memory_row {
	int64_t time;
	uint64_t order; /* as it was read: of equal times the earlier one comes first */
	uint32_t rank;
	uint32_t thread;  /* TS_WORK_NONE: not one of the work's */
	int64_t kind, id; /* of the device; id is negative where there is none */
	const char *pool; /* allocator; "" where the trace does not say */
	int64_t address;  /* TS_ABSENT: unknown, as those below */
	int64_t bytes;    /* taken (> 0) or given back (< 0) */
	bool frees;       /* gives something back, whether it says how much or not */
	int64_t total;    /* in use afterwards */
	int64_t reserved; /* held by the allocator afterwards */
};

struct ts_memory_rows {
	struct ts_memory_row *rows; /* by rank, kind, id, pool, time, order */
	size_t count, capacity;
};

int ts_memory_rows_init(struct ts_memory_rows *rows, const struct ts_work *work,
			struct ts_error *err);
void ts_memory_rows_release(struct ts_memory_rows *rows);

/* Are two of the same memory? */
bool ts_memory_same_location(const struct ts_memory_row *a, const struct ts_memory_row *b);

#endif
