/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the encoder share: encoder.c (blocks), encode_ring.c (records), encode_entity.c (processes,
 * threads, call sites), encode_device.c, encode_clock.c, encode_window.c, encode_loss.c, checkpoint.c (state).
 * Nobody else includes this.
 */
#ifndef TS_RECORD_ENCODE_PARTS_H
#define TS_RECORD_ENCODE_PARTS_H

#include "base/map.h"
#include "base/text.h"
#include "record/encoder.h"

/* docs/live.md, section 7. */
#define ENCODE_THREADS 65536u
#define ENCODE_TRACKS 65536u
#define ENCODE_OPEN_SPANS 4096u
#define ENCODE_AREA_SPANS 262144u
#define ENCODE_AREA_SPAN_BYTES (16u << 20)
#define ENCODE_AREA_DEVICES 1024u
/* What is remembered of what is over. */
#define ENCODE_PROCESSES 65536u
#define ENCODE_STRANGERS 4096u /* processes that only counters name */
#define ENCODE_DEVICES 16384u
#define ENCODE_ENDED_AREAS 4096u
#define ENCODE_GATES 64u
#define ENCODE_CLOSED_WINDOWS 256u
#define ENCODE_ANCHORS 64u
/* Times stay below this, so that sums of them do not overflow. */
#define ENCODE_LATEST_NS (INT64_MAX / 4)

/* Why events of a ring are not in the trace. */
enum encode_loss {
	LOSS_DROPPED,
	LOSS_OVERWRITTEN,
	LOSS_DISCARDED,
	LOSS_DAMAGED,
	LOSS_UNKNOWN_EVENT,
	LOSS_UNKNOWN_RECORD,
	LOSS_END_ALONE,
	LOSS_TOO_DEEP,
	LOSS_COUNT
};

struct encode_lost {
	uint64_t count;
	int64_t first_ns, last_ns;
};

/* Texts are freed when it has ended and its row is written. */
struct encode_process {
	int64_t id;
	uint64_t pid, parent;
	uint64_t start_time, image; /* with pid: which process it is */
	int64_t start_ns, end_ns, exit_status;
	char *name, *command; /* command as JSON; NULL: none, or freed */
	uint32_t name_id, command_id;
	uint32_t epoch; /* of the file that has its row; 0: none */
	bool ended;
	bool used;        /* by an area that has not ended */
	bool stranger;    /* only counters name it */
	bool of_recorder; /* as that of its area */
};

/* Texts are cut to what fits, and end with NUL. */
struct encode_device {
	int64_t id;
	uint64_t area;   /* whose description it is; 0: not described yet */
	uint32_t number; /* as a user knows it */
	uint32_t epoch;  /* of the file that has its row; 0: none */
	int64_t memory_bytes;
	char vendor[64], model[128], uuid[96], bus[32];
	bool used; /* by an area that has not ended */
};

/* What an area calls a device. */
struct encode_device_number {
	uint32_t number; /* 24 bits */
	struct encode_device *device;
};

/* A DEVICE record: texts are borrowed, in the order of those above. */
enum { DEVICE_VENDOR, DEVICE_MODEL, DEVICE_UUID, DEVICE_BUS, DEVICE_TEXTS };
struct encode_described {
	uint32_t number;
	int64_t memory_bytes;
	const char *texts[DEVICE_TEXTS];
	uint32_t lengths[DEVICE_TEXTS];
};

/* Spans that have begun and not ended: their BEGIN records, as they were. */
struct encode_stack {
	struct ts_text records;
	uint32_t *starts; /* of each in records; with STACK_OUTSIDE */
	size_t count, capacity;
};
#define STACK_OUTSIDE 0x80000000u /* began outside of all windows */

/* A thread, or a track. */
struct encode_thread {
	int64_t id;
	uint64_t key; /* serial, or track */
	uint32_t tid;
	uint32_t epoch;
	bool is_track;
	char name[64];
	struct encode_stack stacks[2]; /* second: of signal handlers inside an emit */
};

struct encode_ring {
	uint64_t position, events, dropped;
	struct encode_thread *thread; /* NULL: not known */
	int64_t last_ns;              /* time of the newest record, 0: none yet */
	bool damaged;
	bool has_losses;
	struct encode_lost lost[LOSS_COUNT];
};

/* A call site of the dictionary. Ids are 0 until it is used in this file. */
struct encode_site {
	uint32_t offset; /* of its entry in the dictionary */
	uint32_t name, category, shape;
	uint8_t fields;
	bool plain;    /* every value is one word and needs no look */
	bool resolved; /* in this file */
};

struct encode_window {
	bool by_target;
	int64_t start_ns;
	struct ts_block_window opened;
};

/* A window that is over, until it is told and exported. */
struct encode_closed {
	uint64_t area;
	uint32_t waits; /* for so many CLOCK blocks */
	bool told;
	struct ts_block_window opened, closed;
};

/* From this time on the recorder let events through, or not. */
struct encode_gate {
	int64_t from_ns;
	bool open;
};

struct encode_area {
	uint64_t id;
	struct ts_block_area *about; /* NULL: nothing is known but positions */
	struct encode_process *process;
	bool native;  /* its counter is the recording's */
	bool damaged; /* dictionary */
	bool ended;
	bool of_recorder; /* what it measured: its process and threads have rows only where an event stands there */
	int64_t bound_ns; /* nothing begins before */

	struct ts_text dictionary;
	uint64_t dictionary_end; /* of what was taken; stays when it is freed */
	struct encode_site *sites;
	size_t site_count, site_capacity;

	struct encode_ring **rings;
	size_t ring_count, ring_capacity;

	struct encode_thread **threads;
	size_t thread_count, thread_capacity, track_count;
	struct ts_map serials, tracks; /* to index in threads */
	uint64_t open_spans, open_span_bytes;

	struct encode_device_number *devices;
	size_t device_count, device_capacity;

	struct encode_window *windows;
	size_t window_count, window_capacity;
	uint32_t target_windows; /* so far: numbers them */
	struct encode_gate gates[ENCODE_GATES];
	uint32_t gate_count;
	uint64_t outside;

	/* Already in the trace. */
	uint64_t told_nested, told_no_ring, told_cut, told_outside;
};

struct ts_encoder {
	struct ts_encoder_options options;
	struct ts_writer *writer;
	char *name;
	struct ts_block_open open;
	bool opened;
	uint32_t epoch; /* counts files */
	bool held;

	int64_t source, host;
	int64_t next_process, next_thread, next_device;
	struct encode_process **processes;
	size_t process_count, process_capacity;
	size_t stranger_count;
	struct ts_map pids; /* to index in processes, the newest */

	struct encode_device **devices;
	size_t device_count, device_capacity;
	struct ts_map uuids; /* hash of a uuid to id of a device */

	struct encode_area **areas;
	size_t area_count, area_capacity, ended_count;
	struct ts_map area_places; /* id to index */

	struct ts_block_clock anchors[ENCODE_ANCHORS]; /* rising; the newest last */
	uint32_t anchor_count;
	int64_t now_ns; /* newest time that was seen, in clock 1 */

	struct encode_closed *closed;
	size_t closed_count, closed_capacity;

	struct ts_encoder_counts counts;
	uint64_t damaged_blocks, damaged_bytes; /* of the journal, not yet told */
	struct ts_text scratch;
	int failure; /* of memory */
};

/* ---- encoder.c ---- */

struct encode_area *encode_find_area(struct ts_encoder *encoder, uint64_t id);
struct encode_area *encode_add_area(struct ts_encoder *encoder, uint64_t id);
/* NULL: no memory, or beyond the limit. */
struct encode_ring *encode_get_ring(struct ts_encoder *encoder, struct encode_area *area,
				    uint32_t ring);
/* What the first block of an area says; a state follows it, or its first records. */
int encode_set_about(struct ts_encoder *encoder, struct encode_area *area,
		     const struct ts_block_area *about);
int encode_no_memory(struct ts_encoder *encoder);

/* ---- encode_entity.c ---- */

uint32_t encode_string(struct ts_encoder *encoder, const char *text, size_t length);
uint32_t encode_text(struct ts_encoder *encoder, const char *text);
/* A fixed, perhaps unterminated, text of a struct. */
uint32_t encode_fixed(struct ts_encoder *encoder, const char *text, size_t bytes);
void encode_meta(struct ts_encoder *encoder, int64_t process, const char *key, const char *json);
/* Source, host and facts, at the begin of a file. */
void encode_preamble(struct ts_encoder *encoder);

struct encode_process *encode_get_process(struct ts_encoder *encoder, uint64_t pid,
					  uint64_t start_time, uint64_t image, bool any_image);
struct encode_process *encode_add_process(struct ts_encoder *encoder, uint64_t pid);
void encode_free_process(struct encode_process *process);
void encode_set_process_texts(struct ts_encoder *encoder, struct encode_process *process,
			      const char *name, size_t name_bytes, const char *command,
			      size_t command_bytes);
void encode_write_process(struct ts_encoder *encoder, struct encode_process *process);
void encode_end_process(struct ts_encoder *encoder, struct encode_process *process);
/* One that counters named without saying when it started. NULL: there is none. */
struct encode_process *encode_find_stranger(struct ts_encoder *encoder, uint64_t pid);
/* It is described from now on. */
void encode_know_process(struct ts_encoder *encoder, struct encode_process *process);
/* Whom a counter of an area is about that was emitted then; its row is in the file after this. NULL: no memory, or nobody. */
struct encode_process *encode_subject_process(struct ts_encoder *encoder,
					      const struct encode_area *area, uint32_t pid,
					      uint64_t start_time, int64_t ns);

/*
 * By serial (0: of rings that do not say whose they are), or by track; made where it is not there. NULL: no
 * memory, or too many.
 */
struct encode_thread *encode_get_thread(struct ts_encoder *encoder, struct encode_area *area,
					uint64_t key, bool is_track);
/* Its row is in the file after this. */
void encode_use_thread(struct ts_encoder *encoder, struct encode_area *area,
		       struct encode_thread *thread);
void encode_write_thread(struct ts_encoder *encoder, struct encode_area *area,
			 struct encode_thread *thread);
void encode_free_thread(struct encode_thread *thread);
/* Forgets threads that no ring belongs to and that have nothing open. */
void encode_forget_threads(struct encode_area *area);

/* New entries of the dictionary. */
void encode_add_sites(struct ts_encoder *encoder, struct encode_area *area, const void *bytes,
		      size_t count);
void encode_resolve_site(struct ts_encoder *encoder, struct encode_area *area,
			 struct encode_site *site);

/* ---- encode_device.c ---- */

/* The device that an area calls so; its row is in the file after this. NULL: no memory, or too many. */
struct encode_device *encode_use_device(struct ts_encoder *encoder, struct encode_area *area,
					uint32_t number);
/* A DEVICE record. False as above. */
bool encode_describe_device(struct ts_encoder *encoder, struct encode_area *area,
			    const struct encode_described *described);
/* For a state that is read back: a new one of a higher id than all before, and what an area calls it. */
struct encode_device *encode_add_device(struct ts_encoder *encoder, int64_t id);
void encode_index_device(struct ts_encoder *encoder, const struct encode_device *device);
struct encode_device *encode_find_device(const struct ts_encoder *encoder, int64_t id);
bool encode_call_device(struct ts_encoder *encoder, struct encode_area *area, uint32_t number,
			struct encode_device *device);

/* ---- encode_clock.c ---- */

/* A counter of the recording, or CLOCK_MONOTONIC, in ns of clock 1. */
int64_t encode_scale(const struct ts_encoder *encoder, uint64_t counter);
int64_t encode_monotonic(const struct ts_encoder *encoder, int64_t monotonic_ns);
/* A counter of an area. */
int64_t encode_foreign_time(const struct ts_encoder *encoder, const struct encode_area *area,
			    uint64_t counter);
void encode_add_anchor(struct ts_encoder *encoder, const struct ts_block_clock *clock);
/* Rows of the begin and of the anchors that are known, at the begin of a file. */
void encode_clock_rows(struct ts_encoder *encoder);
void encode_area_anchor(struct ts_encoder *encoder, const struct encode_area *area);

static inline int64_t encode_time(const struct ts_encoder *encoder, const struct encode_area *area,
				  uint64_t counter)
{
	if (TS_LIKELY(area->native)) {
		unsigned __int128 ns = (unsigned __int128)counter * encoder->open.counter_mult >>
				       32;

		return TS_LIKELY(ns < ENCODE_LATEST_NS) ? (int64_t)ns : ENCODE_LATEST_NS;
	}
	return encode_foreign_time(encoder, area, counter);
}

/* ---- encode_ring.c ---- */

int encode_ring_block(struct ts_encoder *encoder, struct encode_area *area,
		      const struct ts_block *block, const uint64_t *words);
/* Rows for all spans of the area that are open. */
void encode_open_spans(struct ts_encoder *encoder, struct encode_area *area);
bool encode_push(struct encode_area *area, struct encode_stack *stack, const void *record,
		 size_t bytes, uint32_t flags);

/* ---- encode_loss.c ---- */

void encode_lose(struct ts_encoder *encoder, struct encode_ring *ring, enum encode_loss why,
		 uint64_t count, int64_t from_ns, int64_t to_ns);
/* Rows of what a ring, all rings of an area, or all areas have counted. */
void encode_tell_ring(struct ts_encoder *encoder, struct encode_area *area,
		      struct encode_ring *ring);
void encode_tell_area(struct ts_encoder *encoder, struct encode_area *area);
void encode_tell_all(struct ts_encoder *encoder);
void encode_loss_row(struct ts_encoder *encoder, const struct encode_process *process,
		     int64_t thread, const char *what, const char *reason, int64_t count,
		     int64_t from_ns, int64_t to_ns);
void encode_loss_block(struct ts_encoder *encoder, const struct ts_block *block,
		       const struct ts_block_loss *loss);
void encode_end_losses(struct ts_encoder *encoder, struct encode_area *area,
		       const struct ts_block_end *end);

/* ---- encode_window.c ---- */

bool encode_search_gates(const struct encode_area *area, int64_t ns);

/* True where a WINDOW block says that events were not let through at this time. */
static inline bool encode_is_outside(const struct encode_area *area, int64_t ns)
{
	const struct encode_gate *newest;

	if (TS_LIKELY(area->gate_count == 0))
		return false;
	newest = &area->gates[area->gate_count - 1];
	return ns >= newest->from_ns ? !newest->open : encode_search_gates(area, ns);
}

void encode_window_block(struct ts_encoder *encoder, struct encode_area *area,
			 const struct ts_block_window *window);
void encode_window_record(struct ts_encoder *encoder, struct encode_area *area,
			  const struct ts_live_window_record *record);
void encode_open_windows(struct ts_encoder *encoder, struct encode_area *area);
/* A CLOCK block, the end of an area (NULL: of all), or an EXPORT block came. */
void encode_closed_wait(struct ts_encoder *encoder, const struct encode_area *area, bool end);
void encode_closed_exported(struct ts_encoder *encoder, const struct ts_block_export *exported);
int encode_closed_tell(struct ts_encoder *encoder);

/* ---- checkpoint.c ---- */

int encode_load_state(struct ts_encoder *encoder, const struct ts_block *block,
		      const void *payload);

#endif
