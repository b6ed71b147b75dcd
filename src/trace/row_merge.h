/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An iterator over the rows of chosen tables in time order. Chunks may overlap in time: they are
 * opened in the order of their first row, and the earliest row of the open ones comes next.
 *
 *	struct ts_row_merge merge;
 *	struct ts_merge_cursor *cursor;
 *	const struct ts_row_merge_options options = { .tables = TS_TABLE_BIT(TS_TABLE_SLICE) };
 *
 *	rc = ts_row_merge_open(&merge, reader, &options, err);
 *	while (!rc && !(rc = ts_row_merge_next(&merge, &cursor, err)) && cursor)
 *		... cursor->batch->columns[i][cursor->row] ...
 *	ts_row_merge_close(&merge);
 *
 * At most max_open chunks are decoded at once. Where more than that overlap in time, rows come as
 * early as they can, but no longer in perfect order. For a strict order, or another one than time,
 * see row_query.h.
 */
#ifndef TS_TRACE_ROW_MERGE_H
#define TS_TRACE_ROW_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"
#include "base/ns.h"
#include "trace/filter.h"

#define TS_ROW_MERGE_MAX_OPEN 32

/* An open chunk and the row it is at. May be the first member of a larger struct: see `read`. */
struct ts_merge_cursor {
	struct ts_batch *batch;
	uint32_t row;       /* of the batch */
	int64_t start, end; /* sort keys of the row; end is 0 unless longest_first */
	/* private */
	uint32_t passed; /* rows before this one */
	uint32_t order;  /* chunks that were opened before this one */
	const int64_t *starts, *durations;
	int64_t fixed_end;  /* without durations; TS_ABSENT: the start */
	uint32_t *sequence; /* rows in order, where the batch is in another one */
	size_t sequence_capacity;
	bool is_sequenced;
};

struct ts_row_merge_options {
	uint64_t tables;                /* TS_TABLE_BIT() of EVENT tables */
	const uint64_t *masks;          /* columns to read, by table id; NULL: all */
	int64_t from, to;               /* only rows that touch this, in trace time; both 0: all */
	const struct ts_filter *filter; /* NULL: all rows */
	/* Of rows with equal starts the one with the latest end comes first: parents lead. */
	bool longest_first;
	uint64_t ahead_tables; /* with longest_first: tables that precede others at equal starts */
	unsigned int max_open; /* 0: TS_ROW_MERGE_MAX_OPEN, which is also the maximum */
	/* Called before each chunk with the bytes of those before; not 0: TS_ECANCELED. Optional.
	 */
	int (*progress)(void *context, uint64_t bytes_done);
	/*
	 * Replaces the reading of a chunk, to read ahead or to add to the cursor. *cursor is one to
	 * use again or NULL; the function leaves there a cursor (malloc'ed, or the first member of
	 * what is) that ts_merge_cursor_read() has filled. `next` is the chunk that will be asked
	 * for after this one, or SIZE_MAX. Optional.
	 */
	int (*read)(void *context, size_t chunk, size_t next, struct ts_merge_cursor **cursor,
		    struct ts_error *err);
	void *context;
};

/* All members are private. */
struct ts_row_merge {
	struct ts_reader *reader;
	struct ts_row_merge_options options;
	struct ts_merge_chunk *chunks; /* by time */
	size_t chunk_count, next;
	struct ts_merge_cursor *open[TS_ROW_MERGE_MAX_OPEN]; /* beyond open_count: to use again */
	size_t open_count;
	struct ts_merge_cursor *first, *second; /* the current cursor, and the runner-up */
	int64_t due; /* first must start before this, or the next chunk has to be opened */
	bool is_filtered;
	uint64_t bytes_done;
};

/* `filter` and `masks` must outlive the merge. Close it also after failure. */
int ts_row_merge_open(struct ts_row_merge *merge, struct ts_reader *reader,
		      const struct ts_row_merge_options *options, struct ts_error *err);
void ts_row_merge_close(struct ts_row_merge *merge);

/* Reads a chunk as the options ask for. Any thread may call it, with a cursor of its own. */
int ts_merge_cursor_read(struct ts_merge_cursor *cursor, struct ts_reader *reader, size_t chunk,
			 const struct ts_row_merge_options *options, struct ts_error *err);
void ts_merge_cursor_free(struct ts_merge_cursor *cursor);

int ts_row_merge_advance_(struct ts_row_merge *merge, struct ts_merge_cursor **ret_cursor,
			  struct ts_error *err);
bool ts_row_merge_passes_(const struct ts_row_merge *merge, const struct ts_merge_cursor *cursor);

static inline void ts_merge_cursor_look_(struct ts_merge_cursor *cursor)
{
	uint32_t row = cursor->is_sequenced ? cursor->sequence[cursor->passed] : cursor->passed;

	cursor->row = row;
	cursor->start = cursor->starts[row];
	if (cursor->durations)
		cursor->end = cursor->durations[row] < 0
				      ? INT64_MAX
				      : ts_ns_add(cursor->start, cursor->durations[row]);
	else
		cursor->end = cursor->fixed_end == TS_ABSENT ? cursor->start : cursor->fixed_end;
}

static inline bool ts_merge_cursor_precedes_(const struct ts_merge_cursor *a,
					     const struct ts_merge_cursor *b)
{
	if (a->start != b->start)
		return a->start < b->start;
	return a->end != b->end ? a->end > b->end : a->order < b->order;
}

/*
 * The next row; NULL after the last. The cursor is valid until the next call, and so are texts of
 * the reader: they are trimmed when a chunk is opened.
 */
static inline int ts_row_merge_next(struct ts_row_merge *merge, struct ts_merge_cursor **ret_cursor,
				    struct ts_error *err)
{
	do {
		struct ts_merge_cursor *first = merge->first;

		if (TS_LIKELY(first && ++first->passed < first->batch->rows)) {
			ts_merge_cursor_look_(first);
			*ret_cursor = first;
			if (TS_LIKELY(first->start < merge->due &&
				      (!merge->second ||
				       ts_merge_cursor_precedes_(first, merge->second))))
				continue;
		}
		int rc = ts_row_merge_advance_(merge, ret_cursor, err);

		if (rc || !*ret_cursor)
			return rc;
	} while (merge->is_filtered && !ts_row_merge_passes_(merge, *ret_cursor));
	return TS_OK;
}

#endif
