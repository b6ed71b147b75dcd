/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TraceSmith's extension of Chrome's format; native_rows.h converts its ids and times to those of
 * the trace. See "What export adds" in docs/chrome.md.
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

/* A row of the "tracesmith" member, kept until all are read; its times are in trace time. */
struct ts_chrome_native_row {
	struct ts_chrome_native_row *next;
	int64_t file_id;              /* DICTIONARY tables: the file's id */
	struct ts_chrome_id pid, tid; /* used by the file for it, if has_entity */
	bool has_entity;
	int64_t cells[];
};

struct ts_chrome_native {
	bool active;
	struct ts_native_rows shared; /* shared with other formats; valid once active */
	struct ts_map process_index;  /* id in the trace -> index into ts_chrome's list */
	struct ts_chrome_native_row *rows[TS_TABLE_COUNT], **ends[TS_TABLE_COUNT];
	struct ts_arena arena;
	int64_t blobs; /* rows of `blob` so far */
};

/* Sets the columns that an object has; times are converted from trace time by `offset`. */
void ts_chrome_set_columns(struct ts_chrome *c, const struct ts_chrome_raw *object,
			   const struct ts_table_info *info, int64_t offset, int64_t *row);
/* The table that an event's "tracesmith" member names, or `table`. */
enum ts_table_id ts_chrome_native_table(const struct ts_chrome_event *event,
					enum ts_table_id table);
/* True for an event that only serves viewers: a row says the same. */
bool ts_chrome_native_is_drawn(const struct ts_chrome_event *event);
/* True for an event whose pid and tid only serve viewers: its row has no thread. */
bool ts_chrome_native_has_no_thread(const struct ts_chrome_event *event);
/* Sets the columns that it has. */
void ts_chrome_native_columns(struct ts_chrome *c, const struct ts_chrome_event *event,
			      enum ts_table_id table, uint32_t thread, void *row);
/* Adds a row with times in trace time, in the clock of its source. */
void ts_chrome_native_add(struct ts_chrome *c, const struct ts_table_info *info, int64_t *row,
			  const int64_t *values);
/* A metadata event "tracesmith_row". */
int ts_chrome_store_native_row(struct ts_chrome *c, struct ts_chrome_event *event);

/* ---- chrome_native_rows.c ---- */

void ts_chrome_native_init(struct ts_chrome *c);
void ts_chrome_native_release(struct ts_chrome *c);
/* Reads one row object of a table of the "tracesmith" member. */
int ts_chrome_read_native_row(struct ts_chrome *c, const struct ts_table_info *info);
/* Adds all rows that were read to the trace. */
int ts_chrome_add_native_rows(struct ts_chrome *c);
/* Sets the clock offsets of events, once baseTimeNanoseconds is known. */
void ts_chrome_shift_times(struct ts_chrome *c);

#endif
