/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporter of Perfetto protobuf; docs/formats/perfetto.md describes the mapping.
 *
 *	perfetto_export.c         the file: header packets, then all rows in time order
 *	perfetto_merge.c          merges rows of overlapping chunks
 *	perfetto_threads.c        reads the next chunk and writes output in the background
 *	perfetto_tracks.c         tracks, and lanes for spans that do not nest
 *	perfetto_export_event.c   rows as packets
 *	perfetto_export_args.c    arguments and columns as debug annotations
 *	perfetto_export_native.c  native rows, so that an import restores the same trace
 *	perfetto_intern.c         interned texts
 *	perfetto_flow.c           flows
 *	perfetto_stacks.c         interned call stacks
 *	perfetto_export_gpu.c     device work as GPU stages
 *
 * A packet is built in x->event and written at once, after the texts that it uses first.
 */
#ifndef TS_EXPORT_PERFETTO_PERFETTO_EXPORT_H
#define TS_EXPORT_PERFETTO_PERFETTO_EXPORT_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "base/pool.h"
#include "base/proto.h"
#include "base/text.h"
#include "export/chrome/chrome_export.h"
#include "trace/row_merge.h"
#include "trace/stack_lists.h"

/* ---- numbers of Perfetto's schema ---- */

enum ts_pf_packet {
	TS_PF_CLOCK_SNAPSHOT = 6,
	TS_PF_TIMESTAMP = 8,
	TS_PF_SEQUENCE = 10,
	TS_PF_TRACK_EVENT = 11,
	TS_PF_INTERNED = 12,
	TS_PF_FLAGS = 13,
	TS_PF_GPU_STAGE = 53,
	TS_PF_DEFAULTS = 59,
	TS_PF_TRACK_DESCRIPTOR = 60,
	TS_PF_PERF_SAMPLE = 66,
	TS_PF_FIRST_ON_SEQUENCE = 87,
	TS_PF_GPU_INFO = 128,
	TS_PF_NATIVE = 9901,
};

/* Of TrackEvent; perfetto_export_event.c has the others. */
enum ts_pf_event_field { TS_PF_EVENT_TYPE = 9, TS_PF_EVENT_TRACK = 11 };
enum ts_pf_event_type { TS_PF_BEGIN = 1, TS_PF_END = 2, TS_PF_INSTANT = 3, TS_PF_COUNTER = 4 };

/* Kinds of interned texts, and their fields in InternedData. */
enum ts_pf_text {
	TS_PF_CATEGORY,
	TS_PF_EVENT_NAME,
	TS_PF_KEY,
	TS_PF_VALUE,
	TS_PF_FUNCTION,
	TS_PF_SOURCE_PATH,
	TS_PF_MAPPING_PATH,
	TS_PF_TEXT_COUNT
};

/* What the importer takes from the event: field 5 of a row. */
enum ts_pf_taken { TS_PF_START = 1, TS_PF_NAME = 2, TS_PF_ROW_CATEGORY = 4, TS_PF_ARGS = 8 };

/* ---- tracks ---- */

/* A track for spans: open ones, innermost last. */
struct ts_pf_lane {
	uint64_t uuid;
	int64_t last; /* earlier spans do not fit any more */
	int64_t *ends;
	size_t depth, capacity;
};

struct ts_pf_flow {
	uint64_t id;
	bool is_last;
};

/* Flow points of a thread that wait for the span that begins there. */
struct ts_pf_flows {
	struct ts_pf_flow *flows;
	size_t count, capacity;
	struct ts_text rows; /* of the points, for the same packet */
	int64_t time, name;
	bool wait; /* for the next span, whenever it begins */
};

/* Tracks of one name over which spans are spread, so that each track nests. */
struct ts_pf_group {
	int64_t name;            /* string id of lanes; 0: text, below */
	char *text;              /* or NULL */
	uint64_t parent;         /* uuid of the parent track; 0: none */
	uint64_t uuid;           /* of the first lane */
	int64_t rank;            /* sort rank among its neighbours */
	bool is_apart;           /* spans never nest: each needs its own extras */
	bool lanes_are_siblings; /* viewers show all of them as one row */
	struct ts_pf_lane *lanes;
	size_t lane_count, lane_capacity;
	int64_t process;           /* its process, if known */
	struct ts_pf_flows *flows; /* NULL: none so far */
};

/* ---- shapes ---- */

/*
 * An annotation up to its value: tag, a length byte, name_iid and, if all values have one type, the
 * value's tag.
 */
struct ts_pf_note {
	unsigned char data[15];
	uint8_t bytes; /* 0: unknown */
};

struct ts_pf_field {
	uint8_t type, beside;
	uint8_t native_bytes; /* of `own` */
	uint16_t column;
	int8_t position; /* TS_ARG_COLUMN: of the schema, or -1 */
	struct ts_pf_note note;
	unsigned char native[16]; /* key, type, beside, column, as an extension argument */
};

struct ts_pf_shape {
	struct ts_pf_field *fields;
	uint32_t count;
	bool is_plain;  /* fully expressed by annotations */
	uint64_t shown; /* columns that the arguments show */
};

/* ---- rows ---- */

/* A column of a chunk. */
struct ts_pf_column {
	const int64_t *values;
	int64_t none;
	uint8_t position;
	uint8_t id;
	bool is_text;
};

/* A chunk being read. */
struct ts_pf_cursor {
	struct ts_merge_cursor merge;
	struct ts_pf_column active[TS_MAX_COLUMNS]; /* columns with a value in any row */
	uint8_t active_count;
	uint8_t shown[TS_MAX_COLUMNS]; /* active ones that viewers show */
	uint8_t shown_count;
};

/* The chunk read ahead. A job owns what it uses until it was waited for. */
struct ts_pf_reading {
	struct ts_job job;
	bool is_busy;
	struct ts_reader *reader;
	size_t chunk;
	struct ts_pf_cursor *cursor; /* NULL before the first chunk */
	struct ts_error err;
	int result;
};

/* The bytes being written. */
struct ts_pf_writing {
	struct ts_job job;
	bool is_busy;
	int fd;
	struct ts_text bytes;
	struct ts_error err;
	int result;
};

struct ts_pf_export {
	struct ts_chrome_export chrome; /* reader, options, error, and pids and tids */
	struct ts_reader *reader;
	struct ts_error *err;
	int fd;
	unsigned int flags;
	int64_t base_ns; /* trace time of the file's time 0 */
	struct ts_text out, event, interned, text, beside;
	struct ts_pool *pool;
	struct ts_pf_reading reading;
	struct ts_pf_writing writing;
	uint64_t uuids; /* given out */
	/* texts */
	uint32_t string_end;
	uint64_t *seen[TS_PF_TEXT_COUNT]; /* bit per string */
	struct ts_map synthetic;          /* iids of texts that are not strings of the trace */
	uint64_t few_seen[TS_PF_TEXT_COUNT][2]; /* the first 128 of them */
	struct ts_strmap texts;                 /* of functions and files, to their numbers */
	uint64_t columns_seen[TS_TABLE_COUNT];
	struct ts_pf_note notes[TS_TABLE_COUNT][TS_MAX_COLUMNS]; /* of columns that are shown */
	uint64_t enums_seen[TS_TABLE_COUNT][TS_MAX_COLUMNS];
	/* stacks */
	struct ts_map stacks, frames, mappings; /* iids already written */
	struct ts_stack_list path;
	/* GPU stages */
	struct ts_map specifications; /* iids already written */
	uint64_t *stages;             /* bit per string */
	uint64_t stage_count, last_queue;
	/* numbers of devices and streams: usually those of the previous row */
	int64_t last_device, last_device_number;
	int64_t last_stream, last_stream_number;
	/* arrows */
	bool has_arrow_process;
	int64_t arrow_process;
	uint64_t arrow_source;
	/* tracks */
	struct ts_pf_group *groups;
	size_t group_count, group_capacity;
	struct ts_map processes, threads, devices, streams; /* id to group */
	struct ts_map device_processes;                     /* that only show a device */
	struct ts_pairmap async;                            /* thread and name to group */
	struct ts_strmap counters; /* identity of a counter, to its number */
	/* shapes */
	struct ts_map shape_index; /* shape id to index */
	struct ts_pf_shape *shapes;
	size_t shape_count, shape_capacity;
	int64_t last_shape[TS_TABLE_COUNT];      /* per table: the shape used last */
	size_t last_shape_index[TS_TABLE_COUNT]; /* and its index, plus 1 */
};

/* ---- bytes ---- */

/*
 * Like ts_proto_open() and ts_proto_close(), without bounds checks and loops: numbers are mostly
 * constants.
 */
static inline unsigned char *ts_pf_tag(unsigned char *to, uint32_t number, enum ts_proto_type type)
{
	uint32_t tag = number << 3 | (uint32_t)type;

	if (tag >= 0x4000)
		return ts_proto_encode_varint(to, tag);
	if (tag < 0x80) {
		*to++ = (unsigned char)tag;
		return to;
	}
	*to++ = (unsigned char)(tag | 0x80);
	*to++ = (unsigned char)(tag >> 7);
	return to;
}

static inline unsigned char *ts_pf_fixed64(unsigned char *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

/*
 * Like ts_proto_encode_varint(), without a branch per byte. Most values have one byte. For others
 * the 7-bit groups are spread at once; always writes 8 bytes.
 */
static inline unsigned char *ts_pf_varint(unsigned char *to, uint64_t value)
{
	unsigned int bytes;

	if (value < 0x80) {
		*to++ = (unsigned char)value;
		return to;
	}
	if (value >> 56)
		return ts_proto_encode_varint(to, value);
	bytes = ts_proto_varint_bytes(value);
	value = (value & 0x000000000fffffff) | (value & 0x00fffffff0000000) << 4;
	value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
	value = (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
	/* Continuation bits on all but the last byte. */
	value |= UINT64_C(0x8080808080808080) >> (72 - 8 * bytes);
	ts_pf_fixed64(to, value);
	return to + bytes;
}

static inline unsigned char *ts_pf_uint(unsigned char *to, uint32_t number, uint64_t value)
{
	return ts_pf_varint(ts_pf_tag(to, number, TS_PROTO_VARINT), value);
}

static inline unsigned char *ts_pf_zigzag(unsigned char *to, int64_t value)
{
	return ts_pf_varint(to, ts_proto_from_signed(value));
}

/*
 * `open` is the first byte of the message, preceded by one free byte; there must be space for 4
 * more.
 */
static inline unsigned char *ts_pf_close(unsigned char *open, unsigned char *end)
{
	size_t bytes = (size_t)(end - open);
	unsigned int prefix;

	if (TS_LIKELY(bytes < 0x80)) {
		open[-1] = (unsigned char)bytes;
		return end;
	}
	prefix = ts_proto_varint_bytes(bytes);
	memmove(open - 1 + prefix, open, bytes);
	ts_proto_encode_varint(open - 1, bytes);
	return end + prefix - 1;
}

/* Type and track, the start of a TrackEvent. */
static inline unsigned char *ts_pf_put_head(unsigned char *to, enum ts_pf_event_type type,
					    uint64_t track)
{
	return ts_pf_uint(ts_pf_uint(to, TS_PF_EVENT_TYPE, type), TS_PF_EVENT_TRACK, track);
}

/* ---- perfetto_export.c ---- */

#define TS_PF_FLUSH_BYTES ((size_t)1 << 20)
#define TS_PF_TEXT_BYTES ((size_t)64 << 20)

/* Passes the output to the writer thread; write errors show up one flush later. */
int ts_pf_flush(struct ts_pf_export *x, size_t unless_below);

/* Time in the file. */
static inline uint64_t ts_pf_time(const struct ts_pf_export *x, int64_t time)
{
	return time > x->base_ns ? (uint64_t)time - (uint64_t)x->base_ns : 0;
}

/* Writes what was interned, as a packet. */
void ts_pf_put_interned(struct ts_pf_export *x);

/* Writes a packet with one field, x->event, after what it interned. `time` may be TS_ABSENT. */
void ts_pf_put_packet(struct ts_pf_export *x, int64_t time, enum ts_pf_packet field,
		      const void *native, size_t native_bytes);

/* The end of a span. */
void ts_pf_put_end(struct ts_pf_export *x, int64_t time, uint64_t track);

/* ---- perfetto_threads.c ---- */

int ts_pf_threads_start(struct ts_pf_export *x);
/* Waits for running jobs; accepts threads that were not started. */
void ts_pf_threads_stop(struct ts_pf_export *x);

/* Starts writing x->out, which is then empty. Returns the result of the previous write. */
int ts_pf_write(struct ts_pf_export *x);
int ts_pf_write_wait(struct ts_pf_export *x);

/*
 * Starts to read a chunk. ts_pf_read_wait() waits for it, or reads it if nothing was started, and
 * exchanges *cursor (to use again, or NULL) for the cursor with it.
 */
void ts_pf_read(struct ts_pf_export *x, size_t chunk);
int ts_pf_read_wait(struct ts_pf_export *x, size_t chunk, struct ts_pf_cursor **cursor);

/* ---- perfetto_intern.c ---- */

int ts_pf_intern_init(struct ts_pf_export *x);
void ts_pf_intern_release(struct ts_pf_export *x);

uint64_t ts_pf_intern_new_(struct ts_pf_export *x, enum ts_pf_text kind, int64_t string);

/* The iid of a string of the trace. */
static inline uint64_t ts_pf_intern(struct ts_pf_export *x, enum ts_pf_text kind, int64_t string)
{
	if (TS_LIKELY((uint64_t)string < x->string_end &&
		      x->seen[kind][(uint64_t)string / 64] >> ((uint64_t)string % 64) & 1))
		return (uint64_t)string;
	return ts_pf_intern_new_(x, kind, string);
}

/*
 * Numbers of texts that are not strings of the trace: 0 is a missing one, table names are their
 * ids, from 64 on.
 */
enum ts_pf_synthetic {
	TS_PF_LOST,
	TS_PF_NULL,
	TS_PF_GRID,
	TS_PF_BLOCK,
	TS_PF_TABLE_NAME = 64,
	TS_PF_FIRST_COLUMN = 128
};

/* The iid of a generated text. `number` identifies texts of a kind. */
uint64_t ts_pf_intern_synthetic(struct ts_pf_export *x, enum ts_pf_text kind, uint64_t number,
				const char *text, size_t length);

/* The iid of a text, by content. */
uint64_t ts_pf_intern_text(struct ts_pf_export *x, enum ts_pf_text kind, const char *text,
			   size_t length);

/* "ts.registers" */
uint64_t ts_pf_intern_column(struct ts_pf_export *x, const struct ts_table_info *table,
			     int position);

/* The name of an enum's value, or 0. */
uint64_t ts_pf_intern_enum(struct ts_pf_export *x, const struct ts_table_info *table, int position,
			   int64_t value);

/* ---- perfetto_export_args.c ---- */

/*
 * NULL: out of memory. A shape shared by two tables is stored twice, because it may show columns.
 */
const struct ts_pf_shape *ts_pf_shape(struct ts_pf_export *x, const struct ts_table_info *table,
				      int64_t id);
void ts_pf_shapes_release(struct ts_pf_export *x);

/* Columns of a table shown to viewers under our names, unless an argument shows them. */
uint64_t ts_pf_columns_wanted(uint32_t table);

/* Arguments and columns of a row as annotations. */
unsigned char *ts_pf_put_args(struct ts_pf_export *x, unsigned char *to,
			      const struct ts_pf_cursor *cursor, const struct ts_pf_shape *shape);

/* ---- perfetto_export_native.c ---- */

/* Maximum size of a row with its annotations. */
size_t ts_pf_row_max_bytes(const struct ts_pf_cursor *cursor, const struct ts_pf_shape *shape);

/*
 * Field 3 of the extension: the cursor's row. `skip` are columns, `taken` bits of enum ts_pf_taken.
 */
unsigned char *ts_pf_put_native_row(struct ts_pf_export *x, unsigned char *to,
				    const struct ts_pf_cursor *cursor,
				    const struct ts_pf_shape *shape, uint64_t skip,
				    unsigned int taken);

/* Field 9901 with that row, and further ones. */
unsigned char *ts_pf_put_native(struct ts_pf_export *x, unsigned char *to,
				const struct ts_pf_cursor *cursor, const struct ts_pf_shape *shape,
				uint64_t skip, unsigned int taken, const struct ts_text *more);

/* Rows of non-EVENT tables, in an order without forward references. */
int ts_pf_put_tables(struct ts_pf_export *x);

/* ---- perfetto_tracks.c ---- */

int ts_pf_tracks_init(struct ts_pf_export *x);
void ts_pf_tracks_release(struct ts_pf_export *x);

/* NULL only if out of memory: unknown threads share a track. */
struct ts_pf_group *ts_pf_thread_group(struct ts_pf_export *x, int64_t thread);
struct ts_pf_group *ts_pf_stream_group(struct ts_pf_export *x, int64_t device, int64_t id);
struct ts_pf_group *ts_pf_async_group(struct ts_pf_export *x, int64_t thread, int64_t name);
struct ts_pf_group *ts_pf_process_group(struct ts_pf_export *x, int64_t process);

/* The track of a group on which a span nests; 0: out of memory. */
uint64_t ts_pf_lane_for(struct ts_pf_export *x, struct ts_pf_group *group, int64_t start,
			int64_t end);

/* The track of a counter series. */
uint64_t ts_pf_counter_track(struct ts_pf_export *x, const struct ts_counter_row *counter,
			     int64_t key, uint32_t series);

/* Number of a process or thread for 32-bit fields. */
uint32_t ts_pf_pid(const struct ts_pf_export *x, int64_t process);
uint32_t ts_pf_tid(const struct ts_pf_export *x, int64_t thread);

/* ---- perfetto_flow.c ---- */

/* More points of one thread and time are spread over several instants. */
#define TS_PF_MAX_FLOWS 256

/* Id of the flow from a call to what it caused. */
uint64_t ts_pf_arrow(struct ts_pf_export *x, int64_t process, int64_t correlation);
unsigned char *ts_pf_put_arrow(unsigned char *to, uint64_t id);

/* Queues a row of `flow` in its group; 0 or TS_ENOMEM. */
int ts_pf_put_flow(struct ts_pf_export *x, const struct ts_pf_cursor *cursor);

/* The queued points of a group; NULL: none. */
static inline struct ts_pf_flows *ts_pf_flows_of(const struct ts_pf_group *group)
{
	return group->flows && group->flows->count ? group->flows : NULL;
}

/* Do the queued points belong to a span that begins then? */
bool ts_pf_flows_fit(const struct ts_pf_flows *flows, int64_t start);
size_t ts_pf_flow_max_bytes(const struct ts_pf_flows *flows);
unsigned char *ts_pf_put_flow_ids(unsigned char *to, const struct ts_pf_flows *flows);
void ts_pf_flows_done(struct ts_pf_flows *flows);
/* Accepts NULL. */
void ts_pf_flows_free(struct ts_pf_flows *flows);

/* ---- perfetto_stacks.c ---- */

/* The iid of a stack; 0: none, or out of memory. */
uint64_t ts_pf_intern_stack(struct ts_pf_export *x, int64_t stack);

/* ---- perfetto_export_gpu.c ---- */

void ts_pf_put_gpus(struct ts_pf_export *x);
/* Driver's number of a device or stream; TS_ABSENT: unknown. */
int64_t ts_pf_device_number(struct ts_pf_export *x, int64_t id);
int64_t ts_pf_stream_number(struct ts_pf_export *x, int64_t id);

int ts_pf_put_stage(struct ts_pf_export *x, const struct ts_pf_cursor *cursor,
		    const struct ts_pf_group *group, uint64_t track);

/* ---- perfetto_export_event.c ---- */

/* Writes the queued points of a group, which has some, as an instant; 0 or TS_ENOMEM. */
int ts_pf_put_flows(struct ts_pf_export *x, struct ts_pf_group *group);

int ts_pf_put_event(struct ts_pf_export *x, const struct ts_pf_cursor *cursor);

/* ---- perfetto_merge.c ---- */

/* Reads a chunk. Any thread may call it, with a cursor of its own. */
int ts_pf_cursor_read(struct ts_pf_cursor *cursor, struct ts_reader *reader, size_t chunk,
		      struct ts_error *err);

/* Encodes all EVENT rows, in the order of trace/row_merge.h. */
int ts_pf_walk(struct ts_pf_export *x);

#endif
