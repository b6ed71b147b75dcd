/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a trace as a trace of its own: the rows of one process in a span of time, with all
 * that they refer to.
 */
#ifndef TS_TRACE_EXTRACT_H
#define TS_TRACE_EXTRACT_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

struct ts_extract_filter {
	int64_t process; /* id of its row; 0: any */
	int64_t pid;     /* of the process; TS_ABSENT: any */
	int64_t from_ns,
		to_ns; /* trace time, both inside; rows that reach into it are taken whole */
	/*
	 * Command streams, too, with the objects and blobs that they need; a window of theirs that
	 * is open at to_ns up to its end.
	 */
	bool commands;
	/*
	 * Sees each row ahead of its copy, may change it (times, ids of entities), and leaves it
	 * out by returning false. `number`: its place among all rows of its table, chunk by chunk.
	 * NULL: all are taken as they are.
	 */
	bool (*change)(void *context, enum ts_table_id table, uint64_t number, void *row);
	void *context;
};

/*
 * Makes the finished trace `to` of `from`, which may still be being written: what is in its chunks
 * is taken. Nothing is left at `to` when it fails. TS_ENOTFOUND where no process fits.
 */
int ts_extract(const char *from, const char *to, const struct ts_extract_filter *filter,
	       struct ts_error *err);

/* The same into a writer that the caller finishes. */
struct ts_reader;
struct ts_writer;
int ts_extract_into(struct ts_reader *from, struct ts_writer *to,
		    const struct ts_extract_filter *filter, struct ts_error *err);

#endif
