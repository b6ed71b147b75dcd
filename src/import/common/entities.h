/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who and where in an imported file: its source, machine, processes, threads, devices and streams,
 * each with its row. Rows are added when first asked for, so that events refer to what is known,
 * and again at the end where more was learned.
 *
 * struct ts_places places;
 *	rc = ts_places_start(&places, import, err);
 *	...
 *	process = ts_places_process(&places, pid);
 *	slice.thread = ts_places_thread(&places, process, tid, tid);
 *	ts_places_thread_row(&places, slice.thread)->name = ts_import_string(import, "main", 4);
 *	...
 *	ts_places_lose(&places, &kind, 1);
 *	...
 *	ts_places_finish(&places);      also after an error, so that what there is stays whole
 *	ts_places_release(&places);
 */
#ifndef TS_IMPORT_COMMON_ENTITIES_H
#define TS_IMPORT_COMMON_ENTITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/writer.h>

#include "base/map.h"
#include "import/common/import_losses.h"
#include "import/import.h"

/* Rows of one table, by their ids, which follow each other: nobody else makes any meanwhile. */
struct ts_place_list {
	enum ts_table_id table;
	size_t row_bytes;
	struct ts_pairmap by_key; /* to index */
	char *rows;
	size_t rows_capacity;
	bool *changed; /* since the row was added */
	size_t changed_capacity;
	size_t count;
	int64_t first_id;
	uint64_t last_first, last_second; /* asked for last */
	int64_t last_id;
};

struct ts_places {
	struct ts_import *import;
	struct ts_writer *writer;
	int64_t source;
	uint32_t clock; /* of the source; set in the writer */
	int64_t time;   /* that the caller has read last: where losses are */
	struct ts_source_row source_row;
	bool source_changed;
	struct ts_place_list hosts, processes, threads, devices, streams;
	struct ts_losses losses;
};

/*
 * Makes the row of the source, named after the file, with a clock of its own, and sets that clock
 * in the writer.
 */
int ts_places_start(struct ts_places *places, struct ts_import *import, struct ts_error *err);
void ts_places_release(struct ts_places *places);

/* Adds what has changed since it was added, losses and their note. */
void ts_places_finish(struct ts_places *places);

static inline void ts_places_lose(struct ts_places *places, const struct ts_loss_kind *kind,
				  uint64_t count)
{
	ts_losses_add(&places->losses, kind, places->time, count);
}

/*
 * Ids, made when first asked for with this key; 0: no memory, or the writer has failed. The key is
 * the caller's: whatever tells two apart. The number goes into the row (TS_ABSENT: none).
 */
int64_t ts_places_host(struct ts_places *places, uint64_t key);
int64_t ts_places_process(struct ts_places *places, int64_t pid);
/* As above, where pids are not enough: of several machines, or used twice. */
int64_t ts_places_process_of(struct ts_places *places, int64_t host, uint64_t key, int64_t pid);
int64_t ts_places_thread(struct ts_places *places, int64_t process, uint64_t key, int64_t tid);
int64_t ts_places_device(struct ts_places *places, int64_t host, uint64_t key, int64_t number);
int64_t ts_places_stream(struct ts_places *places, int64_t device, uint64_t key, int64_t number);

/* A row to be changed, by an id from above; valid until the next one is made. Not NULL. */
struct ts_source_row *ts_places_source_row(struct ts_places *places);
struct ts_host_row *ts_places_host_row(struct ts_places *places, int64_t id);
struct ts_process_row *ts_places_process_row(struct ts_places *places, int64_t id);
struct ts_thread_row *ts_places_thread_row(struct ts_places *places, int64_t id);
struct ts_device_row *ts_places_device_row(struct ts_places *places, int64_t id);
struct ts_stream_row *ts_places_stream_row(struct ts_places *places, int64_t id);

/* A fact about the source: a row of `meta`; the value is JSON text. */
void ts_places_meta(struct ts_places *places, const char *key, const char *json, size_t length);

#endif
