/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of ids, ready for a CSV file. Rows repeat the same few ids: recent texts are cached in
 * bounded memory.
 */
#ifndef TS_EXPORT_CSV_CSV_CELLS_H
#define TS_EXPORT_CSV_CSV_CELLS_H

#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/text.h"

enum ts_csv_kind {
	TS_CSV_STRING,       /* a text, quoted if needed */
	TS_CSV_JSON,         /* JSON text, likewise */
	TS_CSV_INNER_STRING, /* a text as a JSON string inside a quoted cell */
	TS_CSV_INNER_JSON,   /* JSON text inside such a cell */
	/* Cells next to the id of a row, each preceded by a comma. */
	TS_CSV_SOURCE,  /* name */
	TS_CSV_PROCESS, /* pid, name */
	TS_CSV_THREAD,  /* pid, tid, name */
	TS_CSV_DEVICE,  /* number, name */
	TS_CSV_STREAM,  /* number */
	TS_CSV_MAPPING, /* path */
	TS_CSV_FRAME,   /* function */
	TS_CSV_STACK,   /* function of the innermost frame */
	TS_CSV_KINDS
};

struct ts_csv_cells {
	struct ts_reader *reader;
	struct ts_csv_slot *slots; /* TS_CSV_KINDS tables in sequence */
	struct ts_text texts;
	struct ts_text scratch;
};

int ts_csv_cells_init(struct ts_csv_cells *cells, struct ts_reader *reader, struct ts_error *err);
void ts_csv_cells_release(struct ts_csv_cells *cells);

/* Appends the text of an id. */
void ts_csv_put(struct ts_csv_cells *cells, struct ts_text *out, enum ts_csv_kind kind, int64_t id);

/* Names of the cells next to an id, separated by spaces, such as "pid tid name"; "" if none. */
const char *ts_csv_beside(const char *table, enum ts_csv_kind *ret_kind);

/* A text as a cell: quoted as RFC 4180 requires, invalid UTF-8 and NUL as U+FFFD. */
void ts_csv_put_text(struct ts_text *out, const char *text, size_t length);

/* The text with its quotes doubled, for the inside of a cell. */
void ts_csv_put_inner(struct ts_text *out, const char *text, size_t length);

#endif
