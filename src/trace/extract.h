/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a part of a trace into a new one: the rows of a process in a time range, with everything
 * they refer to.
 */
#ifndef TS_TRACE_EXTRACT_H
#define TS_TRACE_EXTRACT_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

struct ts_extract_filter {
	int64_t process;         /* id of its row; 0: any */
	int64_t pid;             /* of the process; TS_ABSENT: any */
	int64_t source;          /* of the process: a rank, whose trace it becomes; 0: any */
	const char *source_name; /* the source's new name; NULL: as it was */
	int64_t from_ns, to_ns;  /* trace time, inclusive; rows that overlap it are copied */
	/*
	 * Copy command streams, too, with the objects and blobs that they need; a capture window
	 * that is open at to_ns is copied to its end.
	 */
	bool commands;
	/*
	 * Called before each row is copied: may change it (times, ids of entities), or skip it by
	 * returning false. `number`: its index among all rows of its table, in file order. NULL:
	 * rows are copied unchanged.
	 */
	bool (*change)(void *context, enum ts_table_id table, uint64_t number, void *row);
	void *context;
};

/*
 * Writes the finished trace `to` from `from`, which may still be recorded: its complete chunks are
 * read. Removes `to` on failure. TS_ENOTFOUND: no process matches.
 */
int ts_extract(const char *from, const char *to, const struct ts_extract_filter *filter,
	       struct ts_error *err);

/* The same, into a writer that the caller finishes. */
struct ts_reader;
struct ts_writer;
int ts_extract_into(struct ts_reader *from, struct ts_writer *to,
		    const struct ts_extract_filter *filter, struct ts_error *err);

#endif
