/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's state and its limits. Included only by record/decode and by the checkpoint files of
 * record/recording, which save it.
 */
#ifndef TS_RECORD_DECODE_DECODE_STATE_H
#define TS_RECORD_DECODE_DECODE_STATE_H

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
#define DECODE_SOURCES 65536u /* ranks of one recording; further ones have none */
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
/* Ids of sources: this, then one for each other rank. */
#define DECODE_SOURCE_OF_RECORDING 1
/* Times stay below this, so that their sums do not overflow. */
#define DECODE_LATEST_NS (INT64_MAX / 4)

/* Why events of a ring are not in the trace. */
enum decode_loss {
	LOSS_DROPPED,
	LOSS_OVERWRITTEN,
	LOSS_DISCARDED,
	LOSS_WITHHELD,
	LOSS_JOURNAL,
	LOSS_DAMAGED,
	LOSS_UNKNOWN_EVENT,
	LOSS_UNKNOWN_RECORD,
	LOSS_END_ALONE,
	LOSS_TOO_DEEP,
	LOSS_NO_TIME,
	LOSS_BAD_BLOB,
	LOSS_MISSING_BLOB,
	LOSS_GONE_BLOB,
	LOSS_BAD_DETAILS,
	LOSS_MISSING_OBJECT,
	LOSS_TOO_MANY_OBJECTS,
	LOSS_UNNAMED_FRAME,
	LOSS_TOO_MANY_STACKS,
	LOSS_MISSING_STACK,
	LOSS_LATE_TORCH_TIME,
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
	uint32_t
		source; /* index of its rank in the decoder's sources, plus 1; 0: the recording's */
};

/* A rank other than the recording's own. */
struct decode_source {
	struct ts_rank rank;
	uint32_t epoch; /* of the file that has its row; 0: none */
};

/* Texts are truncated and NUL-terminated. */
struct decode_device {
	int64_t id;
	uint64_t area;   /* that described it; 0: none yet */
	uint32_t number; /* as a user knows it */
	uint32_t epoch;  /* of the file that has its row; 0: none */
	int64_t memory_bytes;
	char vendor[64], model[128], uuid[96], bus[32];
	bool used;       /* by an area that has not ended */
	uint32_t source; /* as in struct decode_process */
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
	uint64_t gone_blob; /* lost since the last window: the next one lacks it; 0: none */
	int64_t last_ns;    /* of its last command seen by this decoder */

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
	bool is_known;                /* position and counts are those of a block */
	bool damaged;
	bool has_losses;
	bool is_channel;            /* it holds a command stream */
	struct decode_torch *torch; /* rows that are held back; NULL: none so far */
	struct decode_lost lost[LOSS_COUNT];
};

/* A dictionary entry. Ids are 0 until this file uses it. */
struct decode_site {
	uint32_t offset; /* of its entry in the dictionary */
	uint32_t name, category, shape;
	uint32_t row;            /* STACK: the stack; MODULE and DEVICE: the mapping */
	uint16_t depth, unnamed; /* of a STACK: frames, and those without a name */
	uint8_t fields, kind;
	bool plain;     /* every value is one word that needs no decoding */
	bool resolved;  /* in this file */
	bool is_hidden; /* no value is stored */
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
	bool has_state; /* of its rings: those that it does not list are new */
	bool has_unknown_loss;
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
	uint64_t held_torch;  /* rows of all its rings */
	uint64_t early_torch; /* times that wait for theirs */

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

	int64_t host;
	struct decode_source *sources;
	size_t source_count, source_capacity;
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
	struct ts_hash_key blob_key;
	struct ts_pairmap device_modules; /* (process, name) to mapping, in this file */
	struct ts_pairmap plain_names;    /* (hash of a kernel's name, area) to it, in this file */
	uint32_t no_demangler;            /* the epoch whose file says so */
	uint32_t *path;                   /* of entries, while a stack is resolved */
	size_t path_capacity;

	struct decode_closed *closed;
	size_t closed_count, closed_capacity;

	struct ts_decoder_counts counts;
	uint64_t damaged_blocks, damaged_bytes; /* of the journal, not yet reported */
	bool is_damaged;                        /* the journal is, before this block */
	bool in_state;   /* only blocks came that a checkpoint writes first */
	bool lost_state; /* of a checkpoint, or perhaps: counts do not begin at 0 */
	struct ts_text scratch;
	int failure; /* of memory */
};

#endif
