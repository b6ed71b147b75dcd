/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of rocprofv3 CSV files: rocprof_csv.c splits lines, rocprof_csv_rows.c interprets
 * columns; see docs/formats/rocprof.md for the mapping.
 */
#ifndef TS_IMPORT_ROCPROF_ROCPROF_CSV_H
#define TS_IMPORT_ROCPROF_ROCPROF_CSV_H

#include "base/text.h"
#include "import/rocprof/rocprof_rows.h"

#define TS_ROCPROF_CSV_MAX_COLUMNS 128

/* Known columns, under whatever name a version uses. */
enum ts_rocprof_csv_column {
	TS_CSV_OTHER, /* becomes an argument */
	TS_CSV_KIND,
	TS_CSV_DOMAIN,
	TS_CSV_FUNCTION,
	TS_CSV_OPERATION,
	TS_CSV_DIRECTION,
	TS_CSV_AGENT,
	TS_CSV_SRC_AGENT,
	TS_CSV_DST_AGENT,
	TS_CSV_QUEUE,
	TS_CSV_STREAM,
	TS_CSV_PROCESS,
	TS_CSV_THREAD,
	TS_CSV_DISPATCH,
	TS_CSV_KERNEL,
	TS_CSV_KERNEL_NAME,
	TS_CSV_CORRELATION,
	TS_CSV_START,
	TS_CSV_END,
	TS_CSV_LDS,
	TS_CSV_SCRATCH,
	TS_CSV_VGPRS,
	TS_CSV_ACCUM_VGPRS,
	TS_CSV_SGPRS,
	TS_CSV_BLOCK_X,
	TS_CSV_BLOCK_Y,
	TS_CSV_BLOCK_Z,
	TS_CSV_GRID_X,
	TS_CSV_GRID_Y,
	TS_CSV_GRID_Z,
	TS_CSV_COUNTER_NAME,
	TS_CSV_COUNTER_VALUE,
	TS_CSV_SIZE,
	TS_CSV_ADDRESS,
	TS_CSV_TIMESTAMP,
	TS_CSV_INSTRUCTION,
	TS_CSV_COMMENT,
	TS_CSV_COUNT
};

/* A field of the current line, without its quotes. */
struct ts_rocprof_field {
	const char *text;
	size_t length;
	bool has_quotes; /* doubled ones inside */
};

/* A name seen before: names are long and few. */
struct ts_rocprof_cached {
	char *text;
	size_t length, capacity;
	uint32_t string;
	enum ts_rocprof_operation operation;
	bool is_call, is_marker, is_collective;
};

struct ts_rocprof_csv {
	struct ts_import *import;
	struct ts_error *err;
	struct ts_entities entities;
	struct ts_rocprof_rows rows;
	struct ts_text scratch;
	struct ts_rocprof_field fields[TS_ROCPROF_CSV_MAX_COLUMNS];
	size_t field_count; /* of the current line */
	size_t column_count;
	enum ts_rocprof_csv_column columns[TS_ROCPROF_CSV_MAX_COLUMNS]; /* what each is */
	uint32_t keys[TS_ROCPROF_CSV_MAX_COLUMNS];                      /* names, as strings */
	int column_indices[TS_CSV_COUNT];        /* index of each column, or -1 */
	void (*add)(struct ts_rocprof_csv *csv); /* adds a line of this file */
	struct ts_map processes;                 /* pid -> index */
	struct ts_rocprof_cached cache[256];
	uint64_t last_dispatch; /* of counters */
	bool has_dispatch;
};

/* Parses the header line; TS_EFORMAT with a message if the file has no events. */
int ts_rocprof_csv_header(struct ts_rocprof_csv *csv);

/* Is this the header line of a rocprof file? */
bool ts_rocprof_csv_is_header(const struct ts_rocprof_field *fields, size_t count);

#endif
