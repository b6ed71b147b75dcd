/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's state and the functions that its files share. Included only by record/decode and by
 * the checkpoint files of record/recording, which save the state.
 */
#ifndef TS_RECORD_DECODE_DECODE_INTERNAL_H
#define TS_RECORD_DECODE_DECODE_INTERNAL_H

#include "base/local/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "record/decode/decoder.h"

/* docs/live.md, section 7. */
#define DECODE_THREADS 65536u
#define DECODE_TRACKS 65536u
#define DECODE_OPEN_SPANS 4096u
#define DECODE_AREA_SPANS 262144u
#define DECODE_AREA_SPAN_BYTES (16u << 20)
#define DECODE_AREA_DEVICES 1024u
#define DECODE_AREA_STREAMS 65536u
#define DECODE_AREA_FACT_BYTES 65536u
#define DECODE_CALL_PAGES 16384u      /* of calls whose commands may still come */
#define DECODE_CALL_WORDS 64u         /* a page: a bit for each call */
#define DECODE_AREA_OBJECTS 262144u   /* that live */
#define DECODE_AREA_BLOBS 65536u      /* the newest, by number; a power of two */
#define DECODE_AREA_KEPT_BLOBS 65536u /* those that objects name */
/* Limits on remembered state that has ended. */
#define DECODE_PROCESSES 65536u
#define DECODE_EXTERNAL_PROCESSES 4096u /* processes known only from counters */
#define DECODE_DEVICES 16384u
#define DECODE_ENDED_AREAS 4096u
#define DECODE_GATES 64u
#define DECODE_CLOSED_WINDOWS 256u
#define DECODE_ANCHORS 64u
#define DECODE_CLOCK_POINTS 1024u /* of devices, that wait for an anchor */
#define DECODE_SEEN_THREADS 65536u
#define DECODE_STACKS (1u << 21)      /* different ones in a file; further ones are cut */
#define DECODE_STACK_DEPTH 4096u      /* of a stack that is an entry of the dictionary */
#define DECODE_STEPS (1u << 18)       /* known in an area: a stack, and a frame that it calls */
#define DECODE_MEMO_FRAMES 256u       /* of a thread's last stack */
#define DECODE_MEMO_BYTES (64u << 20) /* of all threads */
#define DECODE_BLOB_ROWS 262144u      /* known by content, so that equal ones are stored once */
#define DECODE_BLOB_PIECE ((size_t)1 << 20)
/* Clocks of the trace: 2 is CLOCK_REALTIME. */
#define DECODE_CLOCK_OF_EVENTS 1u
#define DECODE_FIRST_DEVICE_CLOCK 3u
/* Times stay below this, so that their sums do not overflow. */
#define DECODE_LATEST_NS (INT64_MAX / 4)

/* Why events of a ring are not in the trace. */
enum decode_loss {
	LOSS_DROPPED,
	LOSS_OVERWRITTEN,
	LOSS_DISCARDED,
	LOSS_DAMAGED,
	LOSS_UNKNOWN_EVENT,
	LOSS_UNKNOWN_RECORD,
	LOSS_END_ALONE,
	LOSS_TOO_DEEP,
	LOSS_NO_TIME,
	LOSS_BAD_BLOB,
	LOSS_MISSING_BLOB,
	LOSS_BAD_DETAILS,
	LOSS_MISSING_OBJECT,
	LOSS_TOO_MANY_OBJECTS,
	LOSS_UNNAMED_FRAME,
	LOSS_TOO_MANY_STACKS,
	LOSS_MISSING_STACK,
	LOSS_COUNT
};

struct decode_lost {
	uint64_t count;
	int64_t first_ns, last_ns;
};

/* Texts are freed once it has ended and its row is written. */
struct decode_process {
	int64_t id;
	uint64_t pid, parent;
	uint64_t start_time, image; /* with pid: identify the process */
	int64_t start_ns, end_ns, exit_status;
	char *name, *command; /* command as JSON; NULL: none, or freed */
	uint32_t name_id, command_id;
	uint32_t epoch; /* of the file that has its row; 0: none */
	/*
	 * Correlations are unique within a process; this number, from 1, makes them unique in the
	 * trace. 0: the process has none.
	 */
	uint32_t correlations;
	bool ended;
	bool used;        /* by an area that has not ended */
	bool external;    /* known only from counters */
	bool of_recorder; /* as that of its area */
};

/* Texts are truncated and NUL-terminated. */
struct decode_device {
	int64_t id;
	uint64_t area;   /* that described it; 0: none yet */
	uint32_t number; /* as a user knows it */
	uint32_t epoch;  /* of the file that has its row; 0: none */
	int64_t memory_bytes;
	char vendor[64], model[128], uuid[96], bus[32];
	bool used; /* by an area that has not ended */
};

/* One instant in clock 1 and in a device's clock. */
struct decode_clock_point {
	int64_t host_ns, device_ns, uncertainty_ns;
};

/* A device's clock, as reported by the area. */
struct decode_device_clock {
	uint32_t id;    /* in the trace; 0: none yet */
	uint32_t epoch; /* of the file that has its rows */
	uint32_t count; /* of points; 0: unknown */
	bool is_guessed;
	struct decode_clock_point points[2]; /* the two newest, in order */
	char method[32];
};

/* A device by its number in an area. */
struct decode_device_number {
	uint32_t number; /* 24 bits */
	struct decode_device *device;
	struct decode_device_clock clock;
};

/* A point whose row waits for a later anchor of the host clock. */
struct decode_waiting_point {
	uint32_t clock;
	bool is_guessed;
	bool is_first; /* the file has no other point of this clock */
	struct decode_clock_point point;
	char method[32];
};

/* A queue, by its number in the area. */
struct decode_stream {
	int64_t id;
	uint32_t device, stream, context;
	uint32_t epoch;
	int64_t priority;
	bool out_of_order;
	char name[64];
};

/* Seen correlations: bit n stands for correlation `number` * bits + n. */
struct decode_call_page {
	uint64_t number;
	uint64_t called[DECODE_CALL_WORDS];
	uint64_t done[DECODE_CALL_WORDS]; /* its command arrived, or none will */
};

struct decode_calls {
	struct decode_call_page *pages; /* the newest last */
	size_t count, capacity;
	struct ts_map index; /* number to index */
	uint64_t given_up;   /* open ones of discarded pages */
};

/* ---- command streams ---- */

struct decode_object {
	uint64_t number;
	int64_t id;
	uint32_t generation; /* of its window */
	uint32_t epoch;
	bool is_gone;
	struct ts_object_row row; /* texts and blobs are of the file of that epoch */
};

struct decode_blob_number {
	uint64_t number; /* 0: free */
	uint32_t id;
};

/* A blob that is still incomplete. */
struct decode_half_blob {
	uint64_t number; /* 0: none */
	uint64_t broken; /* a rejected one: its further parts are skipped */
	uint64_t bytes, done;
	uint32_t previous; /* its last row so far, 0: none */
	struct ts_hash_stream hash;
	struct ts_text piece; /* the bytes of `done` not yet in a row */
};

struct decode_channel {
	struct decode_object *objects;
	size_t object_count, object_capacity, gone_count;
	struct ts_map numbers; /* to index in objects */
	uint32_t generation;   /* counts closed windows */
	bool in_window;
	int64_t last_ns; /* of its last command seen by this decoder */

	struct decode_blob_number *blobs; /* at number modulo blob_slots */
	size_t blob_slots;
	struct ts_map kept_blobs; /* number to id */
	struct decode_half_blob half;
};

/* A DEVICE record. Texts are borrowed. */
enum { DEVICE_VENDOR, DEVICE_MODEL, DEVICE_UUID, DEVICE_BUS, DEVICE_TEXTS };
struct decode_described {
	uint32_t number;
	int64_t memory_bytes;
	const char *texts[DEVICE_TEXTS];
	uint32_t lengths[DEVICE_TEXTS];
};

/* Open spans: their BEGIN records, unchanged. */
struct decode_stack {
	struct ts_text records;
	uint32_t *starts; /* of each in records; with STACK_OUTSIDE */
	size_t count, capacity;
};
#define STACK_OUTSIDE 0x80000000u /* began outside all windows */

/* The last stack of a thread, and the id of each prefix: the next stack usually shares one. */
struct decode_memo {
	uint64_t area; /* whose dictionary the frames refer to */
	uint32_t epoch;
	uint32_t count;
	uint64_t *total_bytes; /* of all memos */
	uint32_t stacks[DECODE_MEMO_FRAMES];
	uint64_t frames[DECODE_MEMO_FRAMES];
};

/* Who named a thread; the higher value wins. */
enum decode_namer { NAMED_BY_NOBODY, NAMED_BY_KERNEL, NAMED_BY_SAMPLER, NAMED_BY_PROGRAM };

/*
 * A thread, or a track. Its area holds a reference, and so does the decoder, under process and tid,
 * so that samples and events of a thread share one row, whichever come first.
 */
struct decode_thread {
	int64_t id;
	uint64_t key; /* serial, or track */
	uint32_t tid;
	uint32_t epoch;
	bool is_track;
	uint32_t holders;
	uint8_t named_by;
	bool is_owned;   /* by an area */
	uint64_t area;   /* that owns or owned it; 0: known only from samples */
	int64_t process; /* row id; 0: that of its area */
	int64_t last_ns; /* last time seen in a sample or a THREAD record */
	struct decode_memo *memo;
	char name[64];
	struct decode_stack stacks[2]; /* second: emitted by signal handlers inside an emit */
};

struct decode_ring {
	uint64_t position, events, dropped;
	struct decode_thread *thread; /* NULL: not known */
	int64_t last_ns;              /* time of the newest record; 0: none yet */
	bool damaged;
	bool has_losses;
	bool is_channel; /* it holds a command stream */
	struct decode_lost lost[LOSS_COUNT];
};

/* A dictionary entry. Ids are 0 until this file uses it. */
struct decode_site {
	uint32_t offset; /* of its entry in the dictionary */
	uint32_t name, category, shape;
	uint32_t row;            /* STACK: the stack; MODULE and DEVICE: the mapping */
	uint16_t depth, unnamed; /* of a STACK: frames, and those without a name */
	uint8_t fields, kind;
	bool plain;    /* every value is one word that needs no decoding */
	bool resolved; /* in this file */
};

struct decode_window {
	bool by_target;
	int64_t start_ns;
	struct ts_block_window opened;
};

/* A closed window, until it is reported and exported. */
struct decode_closed {
	uint64_t area;
	uint32_t waits; /* number of CLOCK blocks to wait for */
	bool reported;
	struct ts_block_window opened, closed;
};

/* From this time on the recorder accepted events, or not. */
struct decode_gate {
	int64_t from_ns;
	bool open;
};

struct decode_area {
	uint64_t id;
	struct ts_block_area *about; /* NULL: only positions are known */
	struct decode_process *process;
	bool native;  /* its counter is the recording's */
	bool damaged; /* dictionary */
	bool ended;
	bool of_recorder; /* measurements: its process and threads get rows only if an event refers
			     to them */
	int64_t bound_ns; /* nothing begins before */

	struct ts_text dictionary;
	uint64_t dictionary_end; /* of the bytes decoded; kept when they are freed */
	struct decode_site *sites;
	size_t site_count, site_capacity;

	struct decode_ring **rings;
	size_t ring_count, ring_capacity;

	struct decode_thread **threads;
	size_t thread_count, thread_capacity, track_count;
	struct ts_map serials, tracks; /* to index in threads */
	uint64_t open_spans, open_span_bytes;

	struct decode_device_number *devices;
	size_t device_count, device_capacity;
	struct decode_stream *streams;
	size_t stream_count, stream_capacity;
	struct ts_pairmap stream_index; /* (context << 32 | device, stream) to index */
	struct decode_calls calls;
	struct ts_text facts;           /* FACT records, unchanged */
	struct ts_pairmap steps;        /* (stack, word of a frame) to stack, in this file */
	bool has_unnamed;               /* frames whose function is not in the dictionary */
	struct decode_channel *channel; /* NULL: it has no command stream */

	struct decode_window *windows;
	size_t window_count, window_capacity;
	uint32_t target_windows; /* so far: numbers them */
	struct decode_gate gates[DECODE_GATES];
	uint32_t gate_count;
	uint64_t outside;

	/* Counts already in the trace. */
	uint64_t reported_nested, reported_no_ring, reported_cut, reported_outside;
};

struct ts_decoder {
	struct ts_decoder_options options;
	struct ts_writer *writer;
	char *name;
	struct ts_block_open open;
	bool opened;
	uint32_t epoch; /* counts files */
	bool held;

	int64_t source, host;
	int64_t next_process, next_thread, next_device, next_stream, next_object;
	uint32_t next_clock, next_correlations;
	struct decode_process **processes;
	size_t process_count, process_capacity;
	size_t external_count;
	struct ts_map pids; /* to index in processes, the newest */

	struct decode_device **devices;
	size_t device_count, device_capacity;
	struct ts_map uuids; /* hash of a uuid to id of a device */

	struct decode_area **areas;
	size_t area_count, area_capacity, ended_count;
	struct ts_map area_index; /* id to index */

	struct ts_block_clock anchors[DECODE_ANCHORS]; /* rising; the newest last */
	uint32_t anchor_count;
	int64_t now_ns; /* newest time that was seen, in clock 1 */

	struct decode_waiting_point *points;
	size_t point_count, point_capacity;

	/* Threads of all processes, by (process, tid) */
	struct decode_thread **seen;
	size_t seen_count, seen_capacity;
	struct ts_pairmap seen_index;
	uint64_t memo_bytes;
	uint64_t stack_count; /* of this file */
	uint32_t newest_stack;
	uint32_t state_names[5];    /* of samples, in this file; 0: not yet */
	struct ts_map sample_names; /* of marks and calls: (name << 1 | is a call) to name, in this
				       file */

	struct ts_pairmap
		shapes; /* (shape of a site, what is added to it) to shape, in this file */
	struct ts_pairmap
		blob_rows; /* two hashes of what a row of `blob` is to its id, in this file */
	uint64_t blob_key;
	struct ts_pairmap device_modules; /* (process, name) to mapping, in this file */
	struct ts_pairmap plain_names;    /* (hash of a kernel's name, area) to it, in this file */
	uint32_t no_demangler;            /* the epoch whose file says so */
	uint32_t *path;                   /* of entries, while a stack is resolved */
	size_t path_capacity;

	struct decode_closed *closed;
	size_t closed_count, closed_capacity;

	struct ts_decoder_counts counts;
	uint64_t damaged_blocks, damaged_bytes; /* of the journal, not yet reported */
	struct ts_text scratch;
	int failure; /* of memory */
};

/* ---- cursor over the words of a record ---- */

struct decode_cursor {
	const uint64_t *next, *end;
	bool bad;
};

static inline uint64_t decode_take_word(struct decode_cursor *cursor)
{
	if (TS_UNLIKELY(cursor->next >= cursor->end)) {
		cursor->bad = true;
		return 0;
	}
	return *cursor->next++;
}

/* A payload of live_records.h; zeros if it does not fit. */
static inline void decode_take(struct decode_cursor *cursor, void *ret_payload, size_t bytes)
{
	if (TS_UNLIKELY((size_t)(cursor->end - cursor->next) * 8 < bytes)) {
		cursor->bad = true;
		cursor->next = cursor->end;
		memset(ret_payload, 0, bytes);
		return;
	}
	memcpy(ret_payload, cursor->next, bytes);
	cursor->next += bytes / 8;
}

/* A string of a record; "" if it does not fit. */
static inline const char *decode_take_string(struct decode_cursor *cursor, uint32_t *ret_length)
{
	const char *bytes = ts_live_string_unpack(&cursor->next, cursor->end, ret_length);

	if (bytes)
		return bytes;
	cursor->bad = true;
	*ret_length = 0;
	return "";
}

/* A decoded record. */
struct decode_event {
	const uint64_t *record; /* its words */
	uint32_t words;
	uint8_t kind, flags;
	int64_t ns; /* its time in clock 1 */
	struct decode_thread *thread;
	/* By kind. */
	uint64_t duration, start, number;
	uint64_t correlation;
	int64_t result;
	struct ts_live_subject subject; /* with SUBJECT */
	const struct ts_live_gpu_op *op;
	const struct ts_live_gpu_op_more *more; /* with MORE */
	const struct ts_live_allocation *allocation;
	const uint64_t *waits;
	uint64_t stack; /* with STACK_IS */
	struct ts_live_sample sample;
	const uint64_t *frames; /* with STACK */
	uint64_t frame_count;
	/* Name and arguments. */
	uint32_t name, category, shape;
	const int64_t *values;
	int64_t storage[TS_LIVE_FIELDS];
};

/* ---- decoder.c ---- */

struct decode_area *decode_find_area(struct ts_decoder *decoder, uint64_t id);
struct decode_area *decode_add_area(struct ts_decoder *decoder, uint64_t id);
/* NULL: no memory, or limit exceeded. */
struct decode_ring *decode_get_ring(struct ts_decoder *decoder, struct decode_area *area,
				    uint32_t ring);
/* Sets what an AREA block describes. A STATE block or the first records follow. */
int decode_set_about(struct ts_decoder *decoder, struct decode_area *area,
		     const struct ts_block_area *about);
int decode_no_memory(struct ts_decoder *decoder);

/* ---- decode_entity.c ---- */

uint32_t decode_string(struct ts_decoder *decoder, const char *text, size_t length);
uint32_t decode_text(struct ts_decoder *decoder, const char *text);
/* A fixed, perhaps unterminated, text of a struct. */
uint32_t decode_fixed(struct ts_decoder *decoder, const char *text, size_t bytes);
void decode_meta(struct ts_decoder *decoder, int64_t process, const char *key, const char *json);
/* Writes source, host and facts at the start of a file. */
void decode_preamble(struct ts_decoder *decoder);

struct decode_process *decode_get_process(struct ts_decoder *decoder, uint64_t pid,
					  uint64_t start_time, uint64_t image, bool any_image);
struct decode_process *decode_add_process(struct ts_decoder *decoder, uint64_t pid);
void decode_free_process(struct decode_process *process);
void decode_set_process_texts(struct ts_decoder *decoder, struct decode_process *process,
			      const char *name, size_t name_bytes, const char *command,
			      size_t command_bytes);
void decode_write_process(struct ts_decoder *decoder, struct decode_process *process);
void decode_end_process(struct ts_decoder *decoder, struct decode_process *process);
/* A process known from counters without a start time; NULL: none. */
struct decode_process *decode_find_external(struct ts_decoder *decoder, uint64_t pid);
/* Marks it as described by an area. */
void decode_know_process(struct ts_decoder *decoder, struct decode_process *process);
/* The process that a counter refers to. Writes its row if needed. NULL: no memory, or unknown. */
struct decode_process *decode_subject_process(struct ts_decoder *decoder,
					      const struct decode_area *area, uint32_t pid,
					      uint64_t start_time, int64_t ns);

/*
 * Finds or adds a thread by serial (0: rings without a THREAD record), or a track. NULL: no memory,
 * or too many.
 */
struct decode_thread *decode_get_thread(struct ts_decoder *decoder, struct decode_area *area,
					uint64_t key, bool is_track);
/* Writes its row if needed. `area` is NULL if none owns it; then its process has a row. */
void decode_use_thread(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_thread *thread);
void decode_write_thread(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_thread *thread);
/* `name` is not NUL-terminated; at most `bytes` are used. */
void decode_name_thread(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_thread *thread, const char *name, size_t bytes,
			enum decode_namer namer);
/* Drops a reference; frees it with the last. */
void decode_release_thread(struct decode_thread *thread);
/* Its area forgets it. */
void decode_disown_thread(struct decode_thread *thread);
/* Forgets threads that own no ring and have no open spans. */
void decode_forget_threads(struct decode_area *area);

/* ---- decode_site.c ---- */

/* New entries of the dictionary. */
void decode_add_sites(struct ts_decoder *decoder, struct decode_area *area, const void *bytes,
		      size_t count);
void decode_resolve_site(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_site *site);
/* The demangled name of a kernel. */
uint32_t decode_kernel_name(struct ts_decoder *decoder, const struct decode_area *area,
			    const char *name, size_t length);

/* ---- decode_device.c ---- */

/*
 * The device with that number in the area. Writes its row if needed. NULL: no memory, or too many.
 */
struct decode_device *decode_use_device(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t number);
/* A DEVICE record. False as above. */
bool decode_describe_device(struct ts_decoder *decoder, struct decode_area *area,
			    const struct decode_described *described);
/*
 * For loading state: adds a device with an id higher than all others, and an area's number for it.
 */
struct decode_device *decode_add_device(struct ts_decoder *decoder, int64_t id);
void decode_index_device(struct ts_decoder *decoder, const struct decode_device *device);
struct decode_device_number *decode_find_number(const struct decode_area *area, uint32_t number);
struct decode_device *decode_find_device(const struct ts_decoder *decoder, int64_t id);
bool decode_call_device(struct ts_decoder *decoder, struct decode_area *area, uint32_t number,
			struct decode_device *device);

/* ---- decode_clock.c ---- */

/* Converts a counter of the recording, or CLOCK_MONOTONIC, to ns of clock 1. */
int64_t decode_scale(const struct ts_decoder *decoder, uint64_t counter);
int64_t decode_monotonic(const struct ts_decoder *decoder, int64_t monotonic_ns);
/* Converts a counter of an area. */
int64_t decode_other_time(const struct ts_decoder *decoder, const struct decode_area *area,
			  uint64_t counter);
void decode_add_anchor(struct ts_decoder *decoder, const struct ts_block_clock *clock);
/* Writes clock rows at the start of a file: the origin and the known anchors. */
void decode_clock_rows(struct ts_decoder *decoder);
void decode_area_anchor(struct ts_decoder *decoder, const struct decode_area *area);

static inline int64_t decode_time(const struct ts_decoder *decoder, const struct decode_area *area,
				  uint64_t counter)
{
	if (TS_LIKELY(area->native)) {
		unsigned __int128 ns = (unsigned __int128)counter * decoder->open.counter_mult >>
				       32;

		return TS_LIKELY(ns < DECODE_LATEST_NS) ? (int64_t)ns : DECODE_LATEST_NS;
	}
	return decode_other_time(decoder, area, counter);
}

/* Trace time of an instant of clock 1, by the anchors known so far, as a reader converts it. */
int64_t decode_trace_time(const struct ts_decoder *decoder, int64_t ns);
/* Writes the points of device clocks that precede the newest anchor; or all waiting ones. */
void decode_write_points(struct ts_decoder *decoder, bool all);
/*
 * Before the file may be read: writes a provisional row for clocks whose only point is still
 * waiting.
 */
void decode_assume_points(struct ts_decoder *decoder);
bool decode_put_point(struct ts_decoder *decoder, const struct decode_waiting_point *waiting);
/* Adds a DEVICE_CLOCK record, or an estimate if there was none. */
void decode_add_point(struct ts_decoder *decoder, struct decode_device_clock *clock,
		      const struct decode_clock_point *point, const char *method,
		      size_t method_bytes, bool is_guessed);
/* Whether its values are in range. */
bool decode_is_point(const struct decode_clock_point *point);
/* Ensures that its rows are in the file, or wait for an anchor. */
void decode_use_clock(struct ts_decoder *decoder, struct decode_device_clock *clock);
/* Converts a device time to clock 1; TS_ABSENT: unknown. */
int64_t decode_host_time(const struct decode_device_clock *clock, int64_t device_ns);

/* ---- decode_accelerator.c ---- */

/* A correlation that is unique in the recording; TS_ABSENT for 0. */
int64_t decode_correlation(struct ts_decoder *decoder, struct decode_process *process,
			   uint64_t number);
/* Decode CALL and GPU_OP. True: the row was added. */
bool decode_call(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		 const struct decode_event *event);
bool decode_gpu_op(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		   const struct decode_event *event);
/* Decodes STREAM, DEVICE_CLOCK, LOST and FACT. False: invalid. */
bool decode_accelerator_record(struct ts_decoder *decoder, struct decode_area *area,
			       const struct decode_event *event);
/* Writes all facts again, into a new file. */
void decode_facts(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_accelerator(struct decode_area *area);

/* ---- decode_allocation.c ---- */

bool decode_allocation(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, const struct decode_event *event);

/* ---- decode_calls.c ---- */

/* A call enqueued a command. False: no memory. */
bool decode_wait_for_call(struct ts_decoder *decoder, struct decode_area *area,
			  uint64_t correlation);
/* A command arrived, or a window excluded it: stop waiting. */
void decode_forget_call(struct ts_decoder *decoder, struct decode_area *area, uint64_t correlation);
/* For loading state. */
bool decode_put_calls(struct ts_decoder *decoder, struct decode_area *area,
		      const struct decode_call_page *page);
/* Reports calls whose commands never arrived. */
void decode_report_calls(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_calls(struct decode_area *area);

/* ---- decode_stream.c ---- */

/* The queue with these numbers. Writes its row if needed. NULL: no memory. */
struct decode_stream *decode_use_stream(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t device, uint32_t stream, uint32_t context);
/* A STREAM record. False: invalid. */
bool decode_stream_record(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_cursor *cursor);
bool decode_add_stream(struct ts_decoder *decoder, struct decode_area *area,
		       const struct decode_stream *stream);

/* ---- decode_channel.c ---- */

/* OBJECT, GONE, COMMAND, BLOB. False: invalid. */
bool decode_channel_record(struct ts_decoder *decoder, struct decode_area *area,
			   struct decode_ring *ring, const struct decode_event *event);
struct decode_channel *decode_get_channel(struct ts_decoder *decoder, struct decode_area *area);
void decode_free_channel(struct decode_area *area);
/* Some of its records were dropped on a full disk: the window cannot be replayed. */
void decode_channel_cut(struct ts_decoder *decoder, struct decode_area *area);
/* Forgets ids of the previous file. */
void decode_channel_moves(struct ts_decoder *decoder, struct decode_area *area);
bool decode_put_object(struct ts_decoder *decoder, struct decode_channel *channel,
		       const struct decode_object *object);

/* ---- decode_blob.c ---- */

/* A BLOB record. False: invalid. */
bool decode_blob_record(struct ts_decoder *decoder, struct decode_channel *channel,
			struct decode_ring *ring, struct decode_cursor *cursor, int64_t ns);
/*
 * The row of a complete blob; 0: unknown. `keep`: an object refers to it, so it may be needed much
 * later.
 */
uint32_t decode_blob_id(struct ts_decoder *decoder, struct decode_channel *channel, uint64_t number,
			bool keep);
bool decode_put_blob(struct ts_decoder *decoder, struct decode_channel *channel, uint64_t number,
		     uint32_t id);
void decode_drop_half(struct decode_channel *channel);

/* ---- decode_ring.c ---- */

int decode_ring_block(struct ts_decoder *decoder, struct decode_area *area,
		      const struct ts_block *block, const uint64_t *words);
/* Start and duration of a span or call. */
int64_t decode_span(const struct ts_decoder *decoder, const struct decode_area *area,
		    const struct decode_event *event, int64_t *ret_duration);
/* Writes rows for all open spans of the area. */
void decode_open_spans(struct ts_decoder *decoder, struct decode_area *area);
bool decode_push(struct decode_area *area, struct decode_stack *stack, const void *record,
		 size_t bytes, uint32_t flags);

/* ---- decode_stack.c ---- */

/* The stack of an event's frames. */
uint32_t decode_frames(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, struct decode_thread *thread,
		       const struct decode_event *event);
/* A stack by dictionary entry; 0: none. */
uint32_t decode_stack(struct ts_decoder *decoder, struct decode_area *area,
		      struct decode_ring *ring, uint64_t number, int64_t ns);
/* Either of these, by what the event has. */
uint32_t decode_any_stack(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, struct decode_thread *thread,
			  const struct decode_event *event);
/* Forgets ids of the previous file. */
void decode_stacks_move(struct ts_decoder *decoder);

/* ---- decode_sample.c ---- */

/* Adds a row of `sample`. True: it was added. */
bool decode_sample(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		   const struct decode_event *event);
/* The stack of a mark or a call. Also adds a row of `sample` if it came as frames. */
uint32_t decode_event_stack(struct ts_decoder *decoder, struct decode_area *area,
			    struct decode_ring *ring, const struct decode_event *event,
			    int64_t start_ns);
/* A THREAD_OF record. False: invalid. */
bool decode_thread_of(struct ts_decoder *decoder, const struct decode_area *area,
		      const struct decode_event *event);
/*
 * A THREAD record gives the tid of an area's thread. If samples already created that thread, merges
 * the two and returns the result.
 */
struct decode_thread *decode_join_thread(struct ts_decoder *decoder, struct decode_area *area,
					 struct decode_thread *thread, uint32_t tid, int64_t ns);
/* Registers it under (process, tid). False: no memory. */
bool decode_see_thread(struct ts_decoder *decoder, int64_t process, struct decode_thread *thread);
/* Forgets stack ids of the previous file. */
void decode_samples_move(struct ts_decoder *decoder);
void decode_free_seen(struct ts_decoder *decoder);

/* ---- decode_pc_samples.c ---- */

/* Whether a SAMPLE is of a device instruction, not of a thread. */
bool decode_is_instruction(const struct decode_event *event);
bool decode_instruction(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_ring *ring, const struct decode_event *event);

/* ---- decode_loss.c ---- */

void decode_lose(struct ts_decoder *decoder, struct decode_ring *ring, enum decode_loss why,
		 uint64_t count, int64_t from_ns, int64_t to_ns);
/* Write loss rows for a ring, an area, or all areas. */
void decode_report_ring(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_ring *ring);
void decode_report_area(struct ts_decoder *decoder, struct decode_area *area);
void decode_report_all(struct ts_decoder *decoder);
void decode_loss_row(struct ts_decoder *decoder, const struct decode_process *process,
		     int64_t thread, const char *what, const char *reason, int64_t count,
		     int64_t from_ns, int64_t to_ns);
void decode_loss_block(struct ts_decoder *decoder, const struct ts_block *block,
		       const struct ts_block_loss *loss);
void decode_end_losses(struct ts_decoder *decoder, struct decode_area *area,
		       const struct ts_block_end *end);

/* ---- decode_window.c ---- */

bool decode_search_gates(const struct decode_area *area, int64_t ns);

/* True if a WINDOW block excludes events at this time. */
static inline bool decode_is_outside(const struct decode_area *area, int64_t ns)
{
	const struct decode_gate *newest;

	if (TS_LIKELY(area->gate_count == 0))
		return false;
	newest = &area->gates[area->gate_count - 1];
	return ns >= newest->from_ns ? !newest->open : decode_search_gates(area, ns);
}

void decode_window_block(struct ts_decoder *decoder, struct decode_area *area,
			 const struct ts_block_window *window);
void decode_window_record(struct ts_decoder *decoder, struct decode_area *area,
			  const struct ts_live_window_record *record);
void decode_open_windows(struct ts_decoder *decoder, struct decode_area *area);
/* A CLOCK block, the end of an area (NULL: of all), or an EXPORT block arrived. */
void decode_closed_wait(struct ts_decoder *decoder, const struct decode_area *area, bool end);
/* A command stream ended: its windows need not wait for it. */
void decode_closed_stream(struct ts_decoder *decoder, const struct decode_area *area);
void decode_closed_exported(struct ts_decoder *decoder, const struct ts_block_export *exported);
int decode_report_closed(struct ts_decoder *decoder);

/* ---- checkpoint_channel.c ---- */

/*
 * Save calls, queues, device clocks and command streams as STATE blocks, of the recording and of an
 * area. `out` is a scratch buffer.
 */
int decode_save_numbers(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
			struct ts_text *out, struct ts_error *err);
int decode_save_points(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
		       struct ts_text *out, struct ts_error *err);
int decode_save_accelerator(const struct decode_area *area, const struct ts_block_sink *sink,
			    struct ts_text *out, struct ts_error *err);
/* Whether a payload is one of these. Loading returns false if it is damaged. */
bool decode_is_more_state(const void *payload, size_t bytes);
bool decode_load_more_state(struct ts_decoder *decoder, uint64_t area, const void *payload,
			    size_t bytes);
/* The same for threads known from samples (checkpoint_sample.c). */
int decode_save_seen(struct ts_decoder *decoder, const struct ts_block_sink *sink,
		     struct ts_text *out, struct ts_error *err);
bool decode_load_seen(struct ts_decoder *decoder, const void *payload, size_t bytes);
/* Appends a STATE block. */
int decode_put_state(const struct ts_block_sink *sink, uint64_t area, const struct ts_text *out,
		     struct ts_error *err);

/* ---- checkpoint.c ---- */

int decode_load_state(struct ts_decoder *decoder, const struct ts_block *block,
		      const void *payload);

#endif
