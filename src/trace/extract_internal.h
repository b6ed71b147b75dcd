/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by extract.c (selects rows), extract_code.c (device code) and extract_ids.c (maps ids to
 * those of the new file).
 */
#ifndef TS_TRACE_EXTRACT_INTERNAL_H
#define TS_TRACE_EXTRACT_INTERNAL_H

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/map.h"
#include "trace/extract.h"

struct extract {
	const struct ts_extract_filter *filter;
	struct ts_reader *reader;
	struct ts_writer *writer;
	struct ts_batch *batch;
	struct ts_map processes, threads;                               /* ids that are taken */
	struct ts_map strings, shapes, frames, stacks, mappings, blobs; /* old id to new */
	struct ts_map objects;                                          /* ids that are taken */
	struct ts_map given;       /* correlations of calls that are taken */
	struct ts_map opens, ends; /* of a process: when its command stream goes on behind to_ns */
	char *piece;
	size_t piece_capacity;
	int64_t *values;
	size_t value_capacity;
	uint64_t numbers[TS_TABLE_COUNT]; /* rows of each table so far */
	struct ts_error *err;
	int failure;
	bool is_code; /* the row at hand: its content is taken, whatever is asked for */
};

static inline bool extract_has(const struct ts_map *map, int64_t key)
{
	uint64_t value;

	return ts_map_get(map, (uint64_t)key, &value);
}

/* Sets the failure, and returns it. */
int extract_no_memory(struct extract *extract);
void extract_remember(struct extract *extract, struct ts_map *map, int64_t key, uint64_t value);
/* Gives a row the ids of the new file. */
void extract_row(struct extract *extract, const struct ts_table_info *table, int64_t *row);
/*
 * The values of a row's arguments, with new ids of texts; they last until the next row's. NULL: it
 * has none.
 */
const int64_t *extract_values(struct extract *extract, const struct ts_batch *batch, uint32_t row,
			      int64_t old_shape);
/* Modules whose instructions the part has, behind all of its frames. */
void extract_code(struct extract *extract);

#endif
