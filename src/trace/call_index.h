/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices ran, with the calls that launched it: where a command came from. Memory grows with
 * the number of calls that have a correlation.
 */
#ifndef TS_TRACE_CALL_INDEX_H
#define TS_TRACE_CALL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"

struct ts_launches;

/* A call into a driver. Ids are of the trace; 0: none. */
struct ts_launch {
	int64_t start; /* trace time; TS_ABSENT: there is no such call */
	int64_t thread, stack;
};

/* A row of gpu_op. */
struct ts_launched {
	int64_t start, duration;
	int64_t name;
	int64_t stack; /* its own: of a graph's kernel, where it was captured */
	struct ts_launch call;
};

int ts_launches_new(struct ts_launches **ret_launches, struct ts_reader *reader,
		    struct ts_error *err);
void ts_launches_free(struct ts_launches *launches);
TS_DEFINE_AUTO(ts_launches, ts_launches_free);

/* The call that caused a command, by the columns of its row. */
struct ts_launch ts_launches_find(struct ts_launches *launches, int64_t device, int64_t process,
				  int64_t correlation);

/* The same, where the source is known. */
struct ts_launch ts_launches_of(const struct ts_launches *launches, int64_t source,
				int64_t correlation);

/*
 * Gives each row of gpu_op but synchronisations, as they stand in the file; what is not 0 ends it
 * and is returned.
 */
int ts_launches_walk(struct ts_launches *launches,
		     int (*visit)(void *context, const struct ts_launched *launched,
				  struct ts_error *err),
		     void *context, struct ts_error *err);

#endif
