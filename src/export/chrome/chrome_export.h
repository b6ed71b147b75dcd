/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporter of Chrome trace-event JSON; docs/chrome.md describes the mapping.
 *
 *	chrome_export.c        the file: header members, and the walk over the chunks
 *	chrome_tracks.c        pid and tid of threads and streams
 *	chrome_export_event.c  rows as events
 *	chrome_async.c         order of async begins and ends
 *	chrome_array.c         exporter of the plain array; uses the first three
 *	stack_timeline.c       exporter of sampled stacks over time; uses all but the array
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
	struct ts_map streams;   /* stream id to index, for streams that no thread shows */
	struct ts_map sources;   /* source id to its number in the file, from 0 */
	struct ts_map twins;     /* ids of devices that share model and number with another */
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
	/* For viewers only: no stack ids, no "tracesmith" members, and open spans end at end_ns. */
	bool for_viewers;
	int64_t end_ns;
};

/* ---- chrome_export.c ---- */

/* When to write, and how much text the reader may cache. */
#define TS_CHROME_FLUSH_BYTES ((size_t)1 << 20)
#define TS_CHROME_TEXT_BYTES ((size_t)64 << 20)

/* Runs an export: put() writes it. */
int ts_chrome_write(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		    int (*put)(struct ts_chrome_export *x), struct ts_error *err);

/* Writes x->out, unless it is shorter than that. */
int ts_chrome_flush(struct ts_chrome_export *x, size_t unless_below);

/* Times are relative to the first source's clock, as most sources write them. */
int ts_chrome_choose_base(struct ts_chrome_export *x);

/* Names of processes, threads and streams, and their sort order. */
int ts_chrome_put_names(struct ts_chrome_export *x);

/* ---- chrome_tracks.c ---- */

int ts_chrome_tracks_init(struct ts_chrome_export *x);
void ts_chrome_tracks_release(struct ts_chrome_tracks *tracks);

/* NULL for an unknown id. */
const struct ts_chrome_track *ts_chrome_track_of_process(const struct ts_chrome_export *x,
							 int64_t id);
const struct ts_chrome_track *ts_chrome_track_of_thread(const struct ts_chrome_export *x,
							int64_t id);
const struct ts_chrome_track *ts_chrome_track_of_stream(const struct ts_chrome_export *x,
							int64_t id);

/* Track for counters without a thread: that process, or (0) the machine. */
struct ts_chrome_track ts_chrome_track_of_subject(const struct ts_chrome_export *x,
						  int64_t process);

/* Finds devices with the same model and number. 0 or TS_ENOMEM. */
int ts_chrome_devices_init(struct ts_chrome_export *x);

/*
 * Name of a counter as a JSON string. A device counter without a thread is prefixed with the
 * device, because viewers group counters by name: "NVIDIA H200 0 power_W".
 */
void ts_chrome_put_counter_name(struct ts_chrome_export *x, const struct ts_counter_row *counter);

/*
 * Offset for flow ids of a source: viewers match flows by id over the entire file, and ranks use
 * the same ids; 0 for the first source.
 */
int64_t ts_chrome_id_offset(const struct ts_chrome_export *x, int64_t process);

/* "pid":1,"tid":2, */
void ts_chrome_put_track(struct ts_chrome_export *x, const struct ts_chrome_track *track);

/* A pid or tid as JSON. */
void ts_chrome_put_number(struct ts_chrome_export *x, const struct ts_chrome_number *number);

/* ---- chrome_export_event.c ---- */

/* Begins the next element of traceEvents, including its opening brace. */
void ts_chrome_begin_event(struct ts_chrome_export *x);

/* One row of an EVENT table, or of another table without a member of its own. */
void ts_chrome_put_row(struct ts_chrome_export *x, const struct ts_batch *batch, uint32_t row);

/* ---- chrome_async.c ---- */

/*
 * The async slices of a batch, which put_row() skips: begins and ends in an order that viewers can
 * match. 0 or TS_ENOMEM.
 */
int ts_chrome_put_async(struct ts_chrome_export *x, const struct ts_batch *batch);

/* Single begins and ends: chrome_export_event.c. */
void ts_chrome_put_async_begin(struct ts_chrome_export *x, const struct ts_batch *batch,
			       uint32_t row);
void ts_chrome_put_async_end(struct ts_chrome_export *x, const struct ts_batch *batch,
			     uint32_t row);

#endif
