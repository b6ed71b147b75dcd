/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter of Chrome trace-event JSON, shared by its files; docs/chrome.md says what becomes of
 * what.
 *
 *	chrome_export.c the file: what stands ahead of the events, and the walk over the chunks
 *	chrome_tracks.c  which pid and tid stand for a thread or a stream
 *	chrome_export_event.c   rows as events
 *	chrome_async.c   the order of async begins and ends
 *	chrome_array.c   the plain array, an exporter of its own that shares the first two
 *	stack_timeline.c       sampled stacks over time, one more, which shares all but the array
 */
#ifndef TS_EXPORT_CHROME_CHROME_EXPORT_H
#define TS_EXPORT_CHROME_CHROME_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/export.h>

#include "base/map.h"
#include "base/text.h"
#include "trace/json_row.h"

/* A pid or tid in the file: a number, or (text not 0) a string of the trace. */
struct ts_chrome_number {
	int64_t number;
	int64_t text;
};

/* Where viewers show a row. */
struct ts_chrome_track {
	struct ts_chrome_number pid, tid;
};

struct ts_chrome_tracks {
	struct ts_chrome_track *tracks;
	size_t count, capacity;
	struct ts_map processes; /* process id to index: its pid */
	struct ts_map threads;   /* thread id to index */
	struct ts_map streams;   /* stream id to index, of those that no thread shows */
	struct ts_map sources;   /* source id to its number here, from 0 on */
	struct ts_map twins;     /* ids of devices that model and number do not tell from another */
	struct ts_chrome_track machine;
};

struct ts_chrome_export {
	struct ts_reader *reader;
	int fd;
	const struct ts_export_options *options;
	struct ts_error *err;
	struct ts_text out;
	int64_t base_ns; /* subtracted from every time */
	struct ts_chrome_tracks tracks;
	bool first_event;
	bool machine_is_named;
	/*
	 * For viewers only: no stacks by number, no "tracesmith" members, and what is open ends at
	 * end_ns.
	 */
	bool for_viewers;
	int64_t end_ns;
};

/* ---- chrome_export.c ---- */

/* When to write, and how much text the reader may hold on to. */
#define TS_CHROME_FLUSH_BYTES ((size_t)1 << 20)
#define TS_CHROME_TEXT_BYTES ((size_t)64 << 20)

/* An export from beginning to end: put() writes it. */
int ts_chrome_write(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		    int (*put)(struct ts_chrome_export *x), struct ts_error *err);

/* Writes x->out, unless it is shorter than that. */
int ts_chrome_flush(struct ts_chrome_export *x, size_t unless_below);

/* Times are written relative to the first source's clock, as most sources write them themselves. */
int ts_chrome_choose_base(struct ts_chrome_export *x);

/* Names of processes, threads and streams, and where viewers put them. */
int ts_chrome_put_names(struct ts_chrome_export *x);

/* ---- chrome_tracks.c ---- */

int ts_chrome_tracks_init(struct ts_chrome_export *x);
void ts_chrome_tracks_release(struct ts_chrome_tracks *tracks);

/* NULL for an id that is not there. */
const struct ts_chrome_track *ts_chrome_track_of_process(const struct ts_chrome_export *x,
							 int64_t id);
const struct ts_chrome_track *ts_chrome_track_of_thread(const struct ts_chrome_export *x,
							int64_t id);
const struct ts_chrome_track *ts_chrome_track_of_stream(const struct ts_chrome_export *x,
							int64_t id);

/* Where counters of no thread are shown: with that process, or (0) with the machine. */
struct ts_chrome_track ts_chrome_track_of_subject(const struct ts_chrome_export *x,
						  int64_t process);

/* Notes which devices have twins. 0 or TS_ENOMEM. */
int ts_chrome_devices_init(struct ts_chrome_export *x);

/*
 * The name of a counter as a JSON string. One of no thread that belongs to a device names it first,
 * so that viewers, which know counters by their names, put those of a device together: "NVIDIA H200
 * 0 power_W".
 */
void ts_chrome_put_counter_name(struct ts_chrome_export *x, const struct ts_counter_row *counter);

/*
 * What is added to the ids of a source's arrows. Viewers know arrows by id over the whole file, and
 * ranks use the same ids; 0 for the first source.
 */
int64_t ts_chrome_id_offset(const struct ts_chrome_export *x, int64_t process);

/* "pid":1,"tid":2, */
void ts_chrome_put_track(struct ts_chrome_export *x, const struct ts_chrome_track *track);

/* A pid or tid as JSON. */
void ts_chrome_put_number(struct ts_chrome_export *x, const struct ts_chrome_number *number);

/* ---- chrome_export_event.c ---- */

/* Begins the next element of traceEvents, up to and with its opening brace. */
void ts_chrome_begin_event(struct ts_chrome_export *x);

/* One row of an EVENT table, or of another one that has no place of its own in the file. */
void ts_chrome_put_row(struct ts_chrome_export *x, const struct ts_batch *batch, uint32_t row);

/* ---- chrome_async.c ---- */

/*
 * The async slices of a batch of slices, which put_row() passes over: begins and ends in an order
 * in which viewers can match them. 0 or TS_ENOMEM.
 */
int ts_chrome_put_async(struct ts_chrome_export *x, const struct ts_batch *batch);

/* Their begins and ends, one by one: chrome_export_event.c. */
void ts_chrome_put_async_begin(struct ts_chrome_export *x, const struct ts_batch *batch,
			       uint32_t row);
void ts_chrome_put_async_end(struct ts_chrome_export *x, const struct ts_batch *batch,
			     uint32_t row);

#endif
