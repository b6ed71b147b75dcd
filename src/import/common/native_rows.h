/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a trace that another file holds, on their way into this one: ids become those of this
 * trace, times go from the trace time of that file to the clocks of its sources, blobs are hashed
 * anew.
 *
 * ts_native_rows_init(&own, writer);
 *	row[i] = ts_native_rows_id(&own, TS_TABLE_THREAD, number); references, and the column `id` of
 *	entities
 *	...
 *	rc = ts_native_rows_add(&own, info, file_id, row, values, &is_good);
 *	...
 *	ts_native_rows_release(&own);
 *
 * An importer that adds rows in its own way uses the parts of ts_native_rows_add(): ts_native_rows_is_valid(),
 * ts_native_rows_note(), ts_native_rows_set_clock(), ts_native_rows_set_id().
 */
#ifndef TS_IMPORT_COMMON_NATIVE_ROWS_H
#define TS_IMPORT_COMMON_NATIVE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/writer.h>

#include "base/local/hash.h"
#include "base/map.h"

struct ts_native_rows_clock {
	int64_t generation;
	int64_t offset; /* trace time - time of the clock */
	uint64_t points;
};

/* Where a blob's row ends: another may go on there. */
#define TS_NATIVE_ROWS_BLOB_ENDS 64
struct ts_native_rows_blob {
	int64_t id; /* in the trace; 0: none */
	struct ts_hash_stream hash;
};

struct ts_native_rows {
	struct ts_writer *writer;
	struct ts_map ids[TS_TABLE_COUNT];     /* id in the file -> id in the trace */
	struct ts_map sources[TS_TABLE_COUNT]; /* id in the trace -> source of that row */
	struct ts_map clock_of;                /* source -> its clock */
	int64_t offsets[TS_TABLE_COUNT]; /* id in the trace - id in the file, unless scattered */
	int64_t last_ids[TS_TABLE_COUNT];
	bool scattered[TS_TABLE_COUNT];
	struct ts_map clock_index; /* clock -> index into clocks */
	struct ts_native_rows_clock *clocks;
	size_t clock_count, clock_capacity;
	struct ts_native_rows_blob *blob_ends; /* of the newest ones; NULL: none yet */
	unsigned int next_blob_end;
	uint32_t clock; /* that ts_native_rows_add() has set in the writer */
};

void ts_native_rows_init(struct ts_native_rows *native, struct ts_writer *writer);
void ts_native_rows_release(struct ts_native_rows *native);

/*
 * The id in the trace of a row that the file knows by another id; 0: none. Entities may be asked
 * for ahead of their row.
 */
int64_t ts_native_rows_id(struct ts_native_rows *native, enum ts_table_id table, int64_t id);

/*
 * A column whose value is an id without being a reference: that of an entity, or a clock, which has
 * the number of its source.
 */
bool ts_native_rows_is_id(const struct ts_table_info *info, int column, enum ts_table_id *ret_table);

/* Where the file knows a row of a dictionary by an id, and the trace by another. */
int ts_native_rows_set_id(struct ts_native_rows *native, enum ts_table_id table, int64_t file_id, int64_t id);

/*
 * The clock of a source and how far it is behind trace time; clock 0, which is trace time, where
 * that is not one distance.
 */
uint32_t ts_native_rows_clock(const struct ts_native_rows *native, int64_t source, int64_t *ret_offset);

/* A time of trace time in a clock that is `offset` behind it. */
int64_t ts_native_rows_to_clock(int64_t time, int64_t offset);

/* The source of a row, as far as its references tell; 0: none. */
int64_t ts_native_rows_source_of(const struct ts_native_rows *native, const struct ts_table_info *info,
			 const int64_t *row);

/*
 * Remembers what later rows are placed by: clocks, and whose a process, thread, device or stream
 * is.
 */
int ts_native_rows_note(struct ts_native_rows *native, const struct ts_table_info *info, int64_t source,
		const int64_t *row);

/*
 * Puts a row's times into the clock of its source, which it returns; `clock` where the row has
 * none: to change it closes chunks of entities.
 */
uint32_t ts_native_rows_set_clock(const struct ts_native_rows *native, const struct ts_table_info *info, int64_t source,
		      int64_t *row, uint32_t clock);

/* Has it what a row of its table must have? */
bool ts_native_rows_is_valid(const struct ts_table_info *info, const int64_t *row);

/*
 * Adds a row whose ids are those of the trace and whose times are trace time; both are changed in
 * place. `file_id` is by what the file knows a row of a dictionary. *ret_good: it makes sense; else
 * nothing was added. Rows of `blob` go to ts_native_rows_add_blob().
 */
int ts_native_rows_add(struct ts_native_rows *native, const struct ts_table_info *info, int64_t file_id, int64_t *row,
	       const int64_t *values, bool *ret_good);

/* `previous` is an id of the file; 0: none. */
int ts_native_rows_add_blob(struct ts_native_rows *native, int64_t file_id, int64_t previous, const void *data,
		    size_t bytes, bool *ret_good);

#endif
