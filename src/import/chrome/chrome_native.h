/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What export adds to Chrome's format; own_rows.h turns its ids and times into those of the trace.
 * See "What export adds" in docs/chrome.md.
 */
#ifndef TS_IMPORT_CHROME_CHROME_NATIVE_H
#define TS_IMPORT_CHROME_CHROME_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/arena.h"
#include "base/map.h"
#include "import/chrome/chrome_event.h"
#include "import/common/native_rows.h"

struct ts_chrome;

/* A row of the "tracesmith" member, until all are there; its times are in trace time. */
struct ts_chrome_native_row {
	struct ts_chrome_native_row *next;
	int64_t file_id;              /* DICTIONARY tables: by which the file knows it */
	struct ts_chrome_id pid, tid; /* that the file uses for it, if has_place */
	bool has_place;
	int64_t cells[];
};

struct ts_chrome_native {
	bool active;
	struct ts_native_rows shared;        /* with other formats of ours; once active */
	struct ts_map process_index; /* id in the trace -> index into ts_chrome's list */
	struct ts_chrome_native_row *rows[TS_TABLE_COUNT], **ends[TS_TABLE_COUNT];
	struct ts_arena arena;
	int64_t blobs; /* rows of `blob` so far */
};

/* Sets the columns that an object has; times are turned from trace time to a clock by `offset`. */
void ts_chrome_set_columns(struct ts_chrome *c, const struct ts_chrome_raw *object,
			   const struct ts_table_info *info, int64_t offset, int64_t *row);
/* The table that an event's own "tracesmith" member asks for, or `table`. */
enum ts_table_id ts_chrome_native_table(const struct ts_chrome_event *event, enum ts_table_id table);
/* True for an event that is there for viewers only: a row says the same. */
bool ts_chrome_native_is_drawn(const struct ts_chrome_event *event);
/* True for an event whose pid and tid are for viewers only: its row has no thread. */
bool ts_chrome_native_has_no_thread(const struct ts_chrome_event *event);
/* Sets the columns that it has. */
void ts_chrome_native_columns(struct ts_chrome *c, const struct ts_chrome_event *event,
			   enum ts_table_id table, uint32_t thread, void *row);
/* Adds a row whose times are trace time, in the clock of its source. */
void ts_chrome_native_add(struct ts_chrome *c, const struct ts_table_info *info, int64_t *row,
		       const int64_t *values);
/* A metadata event "tracesmith_row". */
int ts_chrome_store_native_row(struct ts_chrome *c, struct ts_chrome_event *event);

/* ---- chrome_native_rows.c ---- */

void ts_chrome_native_init(struct ts_chrome *c);
void ts_chrome_native_release(struct ts_chrome *c);
/* Reads one row object of a table of the "tracesmith" member. */
int ts_chrome_read_native_row(struct ts_chrome *c, const struct ts_table_info *info);
/* All of them are there: adds them to the trace. */
int ts_chrome_add_native_rows(struct ts_chrome *c);
/* Where the times of events go, now that baseTimeNanoseconds is known. */
void ts_chrome_place_times(struct ts_chrome *c);

#endif
