/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins device work to the calls that launched it, by correlation. Memory grows with the number of
 * calls that have a correlation.
 */
#ifndef TS_TRACE_CALL_INDEX_H
#define TS_TRACE_CALL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"

struct ts_call_index;

/* A call into a driver. Ids are of the trace; 0: none. */
struct ts_launch {
	int64_t start; /* trace time; TS_ABSENT: there is no such call */
	int64_t thread, stack;
};

/* A row of gpu_op. */
struct ts_launched_op {
	int64_t start, duration;
	int64_t name;
	int64_t stack; /* its own: of a graph's kernel, where it was captured */
	struct ts_launch call;
};

int ts_call_index_new(struct ts_call_index **ret_launches, struct ts_reader *reader,
		      struct ts_error *err);
void ts_call_index_free(struct ts_call_index *launches);
TS_DEFINE_AUTO(ts_call_index, ts_call_index_free);

/* The call that launched a command, by the columns of its row. */
struct ts_launch ts_call_index_find(struct ts_call_index *launches, int64_t device, int64_t process,
				    int64_t correlation);

/* The same, if the source is known. */
struct ts_launch ts_call_index_find_in(const struct ts_call_index *launches, int64_t source,
				       int64_t correlation);

/*
 * Visits each row of gpu_op except synchronisations, in file order; a visitor's non-zero result
 * ends the walk and is returned.
 */
int ts_call_index_walk(struct ts_call_index *launches,
		       int (*visit)(void *context, const struct ts_launched_op *launched,
				    struct ts_error *err),
		       void *context, struct ts_error *err);

#endif
