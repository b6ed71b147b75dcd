/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entities of an imported file: its source, host, processes, threads, devices and streams, each
 * with its row. Rows are added on first use, so that events refer to known ids, and written again
 * at the end if they changed.
 *
 *	struct ts_entities entities;
 *	rc = ts_entities_start(&entities, import, err);
 *	...
 *	process = ts_entities_process(&entities, pid);
 *	slice.thread = ts_entities_thread(&entities, process, tid, tid);
 *	ts_entities_thread_row(&entities, slice.thread)->name = ts_import_string(import, "main", 4);
 *	...
 *	ts_entities_add_loss(&entities, &kind, 1);
 *	...
 *	ts_entities_finish(&entities);      also after an error, so that the rows are complete
 *	ts_entities_release(&entities);
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

/*
 * Rows of one table by id. Ids are consecutive: nothing else adds rows to these tables during an
 * import.
 */
struct ts_entity_list {
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

struct ts_entities {
	struct ts_import *import;
	struct ts_writer *writer;
	int64_t source;
	uint32_t clock; /* of the source; set in the writer */
	int64_t time;   /* last time read by the caller, used to locate losses */
	struct ts_source_row source_row;
	bool source_changed;
	struct ts_entity_list hosts, processes, threads, devices, streams;
	struct ts_import_losses losses;
};

/*
 * Adds the source row, named after the file and with its own clock, and sets that clock in the
 * writer.
 */
int ts_entities_start(struct ts_entities *entities, struct ts_import *import, struct ts_error *err);
void ts_entities_release(struct ts_entities *entities);

/* Writes rows that changed since they were added, losses, and the loss note. */
void ts_entities_finish(struct ts_entities *entities);

static inline void ts_entities_add_loss(struct ts_entities *entities,
					const struct ts_loss_kind *kind, uint64_t count)
{
	ts_import_losses_add(&entities->losses, kind, entities->time, count);
}

/*
 * Ids, added on first use of a key; 0: out of memory, or the writer has failed. The caller chooses
 * the key. The number goes into the row (TS_ABSENT: none).
 */
int64_t ts_entities_host(struct ts_entities *entities, uint64_t key);
int64_t ts_entities_process(struct ts_entities *entities, int64_t pid);
/* Like ts_entities_process(), where pids are ambiguous: several machines, or reused pids. */
int64_t ts_entities_process_of(struct ts_entities *entities, int64_t host, uint64_t key,
			       int64_t pid);
int64_t ts_entities_thread(struct ts_entities *entities, int64_t process, uint64_t key,
			   int64_t tid);
int64_t ts_entities_device(struct ts_entities *entities, int64_t host, uint64_t key,
			   int64_t number);
int64_t ts_entities_stream(struct ts_entities *entities, int64_t device, uint64_t key,
			   int64_t number);

/*
 * Returns a row for modification, by an id from above; valid until the next row is added. Not NULL.
 */
struct ts_source_row *ts_entities_source_row(struct ts_entities *entities);
struct ts_host_row *ts_entities_host_row(struct ts_entities *entities, int64_t id);
struct ts_process_row *ts_entities_process_row(struct ts_entities *entities, int64_t id);
struct ts_thread_row *ts_entities_thread_row(struct ts_entities *entities, int64_t id);
struct ts_device_row *ts_entities_device_row(struct ts_entities *entities, int64_t id);
struct ts_stream_row *ts_entities_stream_row(struct ts_entities *entities, int64_t id);

/* Adds a fact about the source as a row of `meta`; the value is JSON text. */
void ts_entities_meta(struct ts_entities *entities, const char *key, const char *json,
		      size_t length);

#endif
