/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What export adds to Chrome's format, and how its ids become those of the trace. See "What export
 * adds" in docs/chrome.md.
 */
#ifndef TS_IMPORT_CHROME_OWN_H
#define TS_IMPORT_CHROME_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "import/chrome_event.h"

struct ts_chrome;

struct ts_chrome_own_source {
	int64_t id;     /* in the trace */
	int64_t offset; /* trace time - time in its clock */
	uint32_t clock;
};

struct ts_chrome_own_clock {
	int64_t generation;
	int64_t offset;
	uint64_t points;
};

/* A row of the "tracesmith" member, until all are there; its times are in trace time. */
struct ts_chrome_own_row {
	struct ts_chrome_own_row *next;
	int64_t file_id;              /* DICTIONARY tables: by which the file knows it */
	struct ts_chrome_id pid, tid; /* that the file uses for it, if has_place */
	bool has_place;
	int64_t cells[];
};

/* Where a blob's row ends: another may go on there. */
#define TS_CHROME_BLOB_ENDS 64
struct ts_chrome_own_blob {
	int64_t id; /* in the trace; 0: none */
	struct ts_hash_stream hash;
};

struct ts_chrome_own {
	bool active;
	struct ts_map ids[TS_TABLE_COUNT]; /* id in the file -> id in the trace */
	int64_t offsets[TS_TABLE_COUNT];   /* id in the trace - id in the file, unless scattered */
	int64_t last_ids[TS_TABLE_COUNT];
	bool scattered[TS_TABLE_COUNT];
	struct ts_map by_id[TS_TABLE_COUNT]; /* id in the trace -> index into ts_chrome's lists */
	struct ts_chrome_own_row *rows[TS_TABLE_COUNT], **ends[TS_TABLE_COUNT];
	struct ts_arena arena;
	int64_t blobs;                        /* rows of `blob` so far */
	struct ts_chrome_own_blob *blob_ends; /* of the newest of them; NULL: none yet */
	unsigned int next_blob_end;
	struct ts_chrome_own_source *sources;
	size_t source_count, source_capacity;
	struct ts_map clock_index; /* clock in the trace -> index into clocks */
	struct ts_chrome_own_clock *clocks;
	size_t clock_count, clock_capacity;
};

/* The id in the trace of a row that the file knows by another id; 0: none. */
int64_t ts_chrome_own_id(struct ts_chrome *c, enum ts_table_id table, int64_t id);
/* Sets the columns that an object has; times are turned from trace time to a clock by `offset`. */
void ts_chrome_set_columns(struct ts_chrome *c, const struct ts_chrome_raw *object,
			   const struct ts_table_info *info, int64_t offset, int64_t *row);
/* The same for times that are in the row already. */
void ts_chrome_convert_times(const struct ts_table_info *info, int64_t offset, int64_t *row);
/* The table that an event's own "tracesmith" member asks for, or `table`. */
enum ts_table_id ts_chrome_own_table(const struct ts_chrome_event *event, enum ts_table_id table);
/* True for an event that is there for viewers only: a row says the same. */
bool ts_chrome_own_is_drawn(const struct ts_chrome_event *event);
/* True for an event whose pid and tid are for viewers only: its row has no thread. */
bool ts_chrome_own_has_no_thread(const struct ts_chrome_event *event);
/* Sets the columns that it has. */
void ts_chrome_own_columns(struct ts_chrome *c, const struct ts_chrome_event *event,
			   enum ts_table_id table, uint32_t thread, void *row);
/* A metadata event "tracesmith_row". */
int ts_chrome_store_own_row(struct ts_chrome *c, struct ts_chrome_event *event);

/* ---- chrome_own_rows.c ---- */

void ts_chrome_own_init(struct ts_chrome *c);
void ts_chrome_own_release(struct ts_chrome *c);
/* Reads one row object of a table of the "tracesmith" member. */
int ts_chrome_read_own_row(struct ts_chrome *c, const struct ts_table_info *info);
/* All of them are there: adds them to the trace. */
int ts_chrome_add_own_rows(struct ts_chrome *c);
/* Where the times of events go, now that baseTimeNanoseconds is known. */
void ts_chrome_place_times(struct ts_chrome *c);
/* The source that a row belongs to, as far as its columns tell; NULL: none. */
const struct ts_chrome_own_source *ts_chrome_own_source(const struct ts_chrome *c, int64_t id);
int64_t ts_chrome_source_of(const struct ts_chrome *c, const struct ts_table_info *info,
			    const int64_t *row);

#endif
