/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of Perfetto protobuf, packet by packet; docs/formats/perfetto.md, section 3, describes
 * the mapping. Field numbers are those of Perfetto's published schema.
 *
 *	perfetto_import.c         the file: packets, compressed packets, dispatch
 *	perfetto_sequence.c       state of a packet sequence: interned data, defaults
 *	perfetto_clock.c          clocks and the trace's time
 *	perfetto_track.c          tracks, threads, processes
 *	perfetto_import_event.c   track events
 *	perfetto_slice.c          open spans
 *	perfetto_import_args.c    arguments of events
 *	perfetto_stack.c          call stacks and samples
 *	perfetto_import_gpu.c     devices
 *	perfetto_import_native.c  native rows of TraceSmith exports
 */
#ifndef TS_IMPORT_PERFETTO_PERFETTO_IMPORT_H
#define TS_IMPORT_PERFETTO_PERFETTO_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/proto.h"
#include "base/text.h"
#include "import/common/entities.h"
#include "import/common/row_args.h"
#include "import/import.h"

/* Limit on the size of a packet. */
#define TS_PERFETTO_MAX_PACKET TS_INPUT_STREAM_MAX_VALUE
/* Limit on nested dictionaries and lists, and on nested tracks. */
#define TS_PERFETTO_MAX_DEPTH 64
/* TraceSmith extension fields: in TracePacket and in TrackEvent. */
#define TS_PERFETTO_NATIVE_FIELD 9901

struct ts_perfetto_native;

/* Fields of InternedData that are used. */
enum ts_perfetto_interned {
	TS_PERFETTO_CATEGORY = 1,
	TS_PERFETTO_NAME = 2,
	TS_PERFETTO_ARG_NAME = 3,
	TS_PERFETTO_LOCATION = 4, /* index into locations */
	TS_PERFETTO_FUNCTION = 5,
	TS_PERFETTO_FRAME = 6, /* frame */
	TS_PERFETTO_STACK = 7, /* stack */
	TS_PERFETTO_BUILD_ID = 16,
	TS_PERFETTO_MAPPING_PATH = 17,
	TS_PERFETTO_SOURCE_PATH = 18,
	TS_PERFETTO_MAPPING = 19, /* mapping */
	TS_PERFETTO_LOG_BODY = 20,
	TS_PERFETTO_GPU_CONTEXT = 23, /* pid */
	TS_PERFETTO_GPU_SPEC = 24,    /* string, with the category in the upper bits */
	TS_PERFETTO_KERNEL_SYMBOL = 26,
	TS_PERFETTO_ARG_STRING = 29,
	TS_PERFETTO_CORRELATION = 43,
	TS_PERFETTO_GPU_COUNTERS = 47, /* a number that identifies the descriptor */
};

/* A packet, taken apart. */
struct ts_perfetto_packet {
	uint64_t timestamp;
	uint32_t clock, sequence_id, flags, machine;
	bool has_timestamp, has_clock, dropped, cleared, first;
	struct ts_proto_field interned, defaults, native; /* length 0 if absent */
	bool has_interned, has_defaults, has_native;
	struct ts_proto_field data; /* number 0: none */
};

/* State shared by the packets of one writer. Small: a crafted file may have millions. */
struct ts_perfetto_sequence {
	uint64_t key;                 /* machine and id */
	struct ts_pairmap *interned;  /* (kind, iid) to a number; NULL: none yet */
	struct ts_text *extra_tracks; /* uint64s: default counter tracks, integer ones first, then
					 double ones */
	uint64_t extra_integer;       /* number of integer ones */
	uint64_t track;               /* default uuid */
	uint32_t clock;               /* default */
	uint32_t perf_name;           /* string: what its samples count */
	int64_t pid, tid;             /* of a legacy thread descriptor; TS_ABSENT: none */
	int64_t time_ns;              /* running time, for events with deltas */
	int64_t thread_time_ns, instructions;
	uint32_t generation; /* of its incremental state */
	bool is_valid;       /* nothing was lost since it was cleared */
	bool has_track, has_time;
};

struct ts_perfetto_point {
	int64_t clock_ns, trace_ns;
};

struct ts_perfetto_clock {
	struct ts_perfetto_point *points; /* upwards */
	size_t count, capacity;
	size_t last;        /* point used last */
	int64_t running_ns; /* of incremental ones */
	uint64_t unit_ns;
	bool is_incremental;
};

/* A span that has begun. */
struct ts_perfetto_span {
	int64_t start;
	uint32_t name, category, stack, shape;
	uint32_t values; /* number of its arguments, from the track's list */
	int64_t thread;
	int64_t thread_time, instructions; /* TS_ABSENT: not said */
	uint32_t id;                       /* string; of async ones */
	bool is_closed;                    /* nested in a span that is still open */
};

/* Open spans of a track, created on first use. */
struct ts_perfetto_open {
	struct ts_perfetto_span *spans;
	size_t count, capacity;
	int64_t *values;
	size_t value_count, value_capacity;
	int64_t *ends; /* ends that came before their begins */
	size_t end_count, end_capacity;
};

enum ts_perfetto_track_kind {
	TS_PERFETTO_TRACK_UNKNOWN, /* not described (yet) */
	TS_PERFETTO_TRACK_PLAIN,
	TS_PERFETTO_TRACK_PROCESS,
	TS_PERFETTO_TRACK_THREAD,
};

struct ts_perfetto_track {
	uint64_t uuid, parent;
	int64_t process; /* of kinds PROCESS and THREAD, or of an async one */
	int64_t thread;  /* thread row that shows it; 0: none yet */
	uint32_t name, category;
	uint8_t kind;
	bool is_counter, is_incremental, is_thread_time, is_instructions;
	int8_t order_set;
	int32_t order;
	int64_t multiplier; /* of a counter */
	int64_t integer;    /* running values of an incremental counter */
	double real;
	uint32_t generation; /* state of the sequence that these belong to */
	struct ts_perfetto_open *open;
};

struct ts_perfetto_location {
	uint32_t file, function;
	int64_t line;
};

struct ts_perfetto {
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_error *err;
	struct ts_entities entities;
	bool started;
	uint64_t events;
	struct ts_perfetto_native *native; /* NULL: not a TraceSmith export */
	struct ts_text unpacked;

	struct ts_map sequence_index;
	struct ts_perfetto_sequence *sequences;
	size_t sequence_count, sequence_capacity;
	uint32_t generations;

	struct ts_pairmap clock_index; /* (sequence or 0, id) */
	struct ts_perfetto_clock *clocks;
	size_t clock_count, clock_capacity;
	struct ts_text waiting; /* snapshots not linked to the trace's time yet */
	uint32_t primary;       /* clock of the trace's time; 0: unknown */
	unsigned int waiting_rounds;
	bool has_day;
	bool any_clock; /* may be that */
	int64_t last_time;

	struct ts_map track_index;
	struct ts_pairmap async_index;
	struct ts_perfetto_track *tracks;
	size_t track_count, track_capacity;
	uint64_t last_uuid;
	size_t last_track; /* index + 1; 0: none */

	struct ts_map flows; /* id to: 1 open, 0 ended */
	struct ts_row_args args;
	struct ts_text json, text;
	struct ts_perfetto_location *locations;
	size_t location_count, location_capacity;
	struct ts_pairmap gpu_counters; /* (descriptor, counter) to string */
	struct ts_pairmap gpu_specs;    /* legacy: (sequence and kind, number) to string */
	uint32_t descriptors;
	uint32_t *frames; /* of the stack being read */
	size_t frame_capacity;
	uint32_t key_value; /* string "value" */
	uint32_t key_thread_dur, key_instruction_delta;
};

/* ---- perfetto_import.c ---- */

/* Adds an event's row and counts it. */
void ts_perfetto_add(struct ts_perfetto *p, enum ts_table_id table, const void *row,
		     const int64_t *values);
static inline void ts_perfetto_lose(struct ts_perfetto *p, const struct ts_loss_kind *kind,
				    uint64_t count)
{
	ts_entities_add_loss(&p->entities, kind, count);
}
static inline uint32_t ts_perfetto_string(struct ts_perfetto *p, const struct ts_proto_field *field)
{
	return field->length ? ts_import_string(p->import, field->bytes, field->length) : 0;
}
static inline uint32_t ts_perfetto_text(struct ts_perfetto *p, const char *text)
{
	return ts_writer_string(p->writer, text, strlen(text));
}

/* ---- perfetto_sequence.c ---- */

/*
 * The packet's sequence, updated with its state flags; NULL: out of memory. *ret_usable: nothing it
 * needs is missing.
 */
struct ts_perfetto_sequence *ts_perfetto_sequence(struct ts_perfetto *p,
						  const struct ts_perfetto_packet *packet,
						  bool *ret_usable);
int ts_perfetto_read_interned(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			      const struct ts_proto_field *field);
void ts_perfetto_read_defaults(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			       const struct ts_proto_field *field);
int ts_perfetto_intern(struct ts_perfetto_sequence *sequence, enum ts_perfetto_interned kind,
		       uint64_t iid, uint64_t value);
/* False if the iid was never defined: counted. */
bool ts_perfetto_interned(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			  enum ts_perfetto_interned kind, uint64_t iid, uint64_t *ret_value);
/* The same for strings; 0 if it was not defined. */
uint32_t ts_perfetto_interned_string(struct ts_perfetto *p,
				     const struct ts_perfetto_sequence *sequence,
				     enum ts_perfetto_interned kind, uint64_t iid);
void ts_perfetto_sequences_release(struct ts_perfetto *p);

/* ---- perfetto_clock.c ---- */

#define TS_PERFETTO_REALTIME 1
#define TS_PERFETTO_MONOTONIC 3
#define TS_PERFETTO_BOOTTIME 6

int ts_perfetto_read_snapshot(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			      const struct ts_proto_field *field);
/* Converts a clock's time to the trace's time; false: the clocks are not linked (counted). */
bool ts_perfetto_time(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		      uint32_t clock, uint64_t time, int64_t *ret_ns);
/* The packet's time; TS_ABSENT if it has none. */
bool ts_perfetto_packet_time(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			     const struct ts_perfetto_packet *packet, int64_t *ret_ns);
void ts_perfetto_clocks_release(struct ts_perfetto *p);

/* ---- perfetto_track.c ---- */

/* Index + 1 of a track, added if new; 0: out of memory. */
size_t ts_perfetto_track(struct ts_perfetto *p, uint64_t uuid);
/* For things that are not tracks in the file, identified by (what, id). */
size_t ts_perfetto_async_track(struct ts_perfetto *p, uint64_t what, uint64_t id);
/* The thread row that shows a track, added on first use. */
int64_t ts_perfetto_track_thread(struct ts_perfetto *p, size_t index);
/* Its enclosing process; 0: none. */
int64_t ts_perfetto_track_process(struct ts_perfetto *p, size_t index);
int64_t ts_perfetto_process(struct ts_perfetto *p, uint32_t machine, int64_t pid);
int64_t ts_perfetto_thread(struct ts_perfetto *p, uint32_t machine, int64_t pid, int64_t tid);
void ts_perfetto_read_track(struct ts_perfetto *p, const struct ts_perfetto_packet *packet);
void ts_perfetto_read_old_thread(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
				 const struct ts_perfetto_packet *packet);
void ts_perfetto_read_old_process(struct ts_perfetto *p, const struct ts_perfetto_packet *packet);
void ts_perfetto_read_process_tree(struct ts_perfetto *p, const struct ts_perfetto_packet *packet);
void ts_perfetto_read_process_stats(struct ts_perfetto *p, const struct ts_perfetto_packet *packet,
				    int64_t time);
/* Applies names and parents that came after their use. */
void ts_perfetto_finish_tracks(struct ts_perfetto *p);
void ts_perfetto_tracks_release(struct ts_perfetto *p);

/* ---- perfetto_import_event.c ---- */

int ts_perfetto_read_event(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			   const struct ts_perfetto_packet *packet);

/* ---- perfetto_slice.c ---- */

/* Begins a span, with the arguments in p->args. */
int ts_perfetto_begin(struct ts_perfetto *p, size_t track, const struct ts_perfetto_span *span);
/* Ends the newest open span (with this name, if given); arguments of the end are in p->args. */
int ts_perfetto_end(struct ts_perfetto *p, size_t track, const struct ts_perfetto_span *end);
/* A complete span. */
void ts_perfetto_slice(struct ts_perfetto *p, const struct ts_perfetto_span *span,
		       int64_t duration);
/* Spans that are open at the end of the file. */
void ts_perfetto_finish_slices(struct ts_perfetto *p);

/* ---- perfetto_import_args.c ---- */

/* A debug annotation. */
void ts_perfetto_read_annotation(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
				 const struct ts_proto_field *field);
/* A TrackEvent field with arguments of a type known from the schema. */
void ts_perfetto_read_typed(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			    const struct ts_proto_field *field);
void ts_perfetto_arg_text(struct ts_perfetto *p, const char *key,
			  const struct ts_proto_field *text);

/* ---- perfetto_stack.c ---- */

int ts_perfetto_read_mapping(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			     const struct ts_proto_field *from);
int ts_perfetto_read_frame(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			   const struct ts_proto_field *from);
int ts_perfetto_read_stack(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			   const struct ts_proto_field *from);
/* A stack stored in the event. */
uint32_t ts_perfetto_inline_stack(struct ts_perfetto *p, const struct ts_proto_field *from);
void ts_perfetto_read_perf_sample(struct ts_perfetto *p,
				  const struct ts_perfetto_sequence *sequence,
				  const struct ts_perfetto_packet *packet, int64_t time);
void ts_perfetto_read_samples(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			      const struct ts_perfetto_packet *packet, int64_t time);

/* ---- perfetto_import_gpu.c ---- */

void ts_perfetto_read_gpu_stage(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
				const struct ts_perfetto_packet *packet, int64_t time);
void ts_perfetto_read_gpu_counters(struct ts_perfetto *p,
				   const struct ts_perfetto_sequence *sequence,
				   const struct ts_perfetto_packet *packet, int64_t time);
int ts_perfetto_read_gpu_descriptor(struct ts_perfetto *p, uint64_t number,
				    const struct ts_proto_field *from);
void ts_perfetto_read_gpu_info(struct ts_perfetto *p, const struct ts_perfetto_packet *packet);

/* ---- perfetto_import_native.c ---- */

/*
 * Is the file a TraceSmith export, according to this packet? Then everything is read as one.
 * TS_EVERSION for a newer version.
 */
int ts_perfetto_native_start(struct ts_perfetto *p, const struct ts_perfetto_packet *packet);
int ts_perfetto_native_packet(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			      const struct ts_perfetto_packet *packet);
/* `rest`: NULL, or that the file was not read to its end. */
void ts_perfetto_native_finish(struct ts_perfetto *p, const struct ts_loss_kind *rest);
void ts_perfetto_native_free(struct ts_perfetto_native *native);

#endif
