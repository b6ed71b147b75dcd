/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native rows: rows of TraceSmith tables embedded in a Chrome or Perfetto export. Converts their
 * ids to ids of this trace and their times from trace time to the clocks of their sources, and
 * recomputes the hashes of blobs.
 *
 *	ts_native_rows_init(&native, writer);
 *	row[i] = ts_native_rows_id(&native, TS_TABLE_THREAD, number);  references and entity ids
 *	...
 *	rc = ts_native_rows_add(&native, info, file_id, row, values, &is_good);
 *	...
 *	ts_native_rows_release(&native);
 *
 * An importer that adds rows itself uses the steps of ts_native_rows_add():
 * ts_native_rows_is_valid(), ts_native_rows_note(), ts_native_rows_set_clock(),
 * ts_native_rows_set_id().
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

/* Where a blob row ends: another one may continue it. */
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
	struct ts_native_rows_blob *blob_ends; /* the newest ones; NULL: none yet */
	unsigned int next_blob_end;
	uint32_t clock; /* set in the writer by ts_native_rows_add() */
};

void ts_native_rows_init(struct ts_native_rows *native, struct ts_writer *writer);
void ts_native_rows_release(struct ts_native_rows *native);

/*
 * Maps an id of the file to an id of the trace; 0: none. Entity ids may be requested before their
 * row.
 */
int64_t ts_native_rows_id(struct ts_native_rows *native, enum ts_table_id table, int64_t id);

/*
 * Is the column an id without being a reference: the id of an entity, or a clock, which has the
 * number of its source?
 */
bool ts_native_rows_is_id(const struct ts_table_info *info, int column,
			  enum ts_table_id *ret_table);

/* Records which id of the trace a dictionary row of the file has. */
int ts_native_rows_set_id(struct ts_native_rows *native, enum ts_table_id table, int64_t file_id,
			  int64_t id);

/*
 * Clock of a source and its offset from trace time; clock 0, which is trace time, if the offset is
 * not constant.
 */
uint32_t ts_native_rows_clock(const struct ts_native_rows *native, int64_t source,
			      int64_t *ret_offset);

/* Converts trace time to a clock that is `offset` behind it. */
int64_t ts_native_rows_to_clock(int64_t time, int64_t offset);

/* Source of a row, as far as its references tell; 0: none. */
int64_t ts_native_rows_source_of(const struct ts_native_rows *native,
				 const struct ts_table_info *info, const int64_t *row);

/* Records what later rows need: clocks, and the source of a process, thread, device or stream. */
int ts_native_rows_note(struct ts_native_rows *native, const struct ts_table_info *info,
			int64_t source, const int64_t *row);

/*
 * Converts a row's times to the clock of its source, which is returned; `clock` if the row has
 * none, because changing the clock closes entity chunks.
 */
uint32_t ts_native_rows_set_clock(const struct ts_native_rows *native,
				  const struct ts_table_info *info, int64_t source, int64_t *row,
				  uint32_t clock);

/* Does the row have everything its table requires? */
bool ts_native_rows_is_valid(const struct ts_table_info *info, const int64_t *row);

/*
 * Adds a row with ids of the trace and times in trace time; both are changed in place. `file_id` is
 * the file's id for a dictionary row. *ret_good false: the row is invalid and was not added. Rows
 * of `blob` go to ts_native_rows_add_blob().
 */
int ts_native_rows_add(struct ts_native_rows *native, const struct ts_table_info *info,
		       int64_t file_id, int64_t *row, const int64_t *values, bool *ret_good);

/* `previous` is an id of the file; 0: none. */
int ts_native_rows_add_blob(struct ts_native_rows *native, int64_t file_id, int64_t previous,
			    const void *data, size_t bytes, bool *ret_good);

#endif
