/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records in a ring (docs/live.md, section 3), packed by the agent and unpacked by the decoder.
 * A record is a header, a counter, and a payload. The payload of each kind is a struct, or a pair
 * of functions where fields share an integer; texts, arguments and frames follow it. A decoder must
 * check sizes and values: the bytes come from another process. Includes libc only.
 */
#ifndef TS_LIVE_LOCAL_LIVE_RECORDS_H
#define TS_LIVE_LOCAL_LIVE_RECORDS_H

#include <string.h>

#include "live/local/live_layout.h"

/* Payloads are read and written in rings, which other code sees as arrays of uint64_t. */
#define TS_LIVE_PAYLOAD __attribute__((may_alias))

/* Payload size in 64-bit words, as record sizes are counted. */
#define TS_LIVE_WORDS(payload) (sizeof(payload) / 8u)

#define TS_LIVE_RECORD_WORDS 2048u
#define TS_LIVE_STRING_BYTES 8192u
#define TS_LIVE_FIELDS 32u
#define TS_LIVE_BLOB_PART 15360u
#define TS_LIVE_DETAILS_BYTES 8000u

enum ts_live_kind {
	TS_LIVE_SPAN = 1,
	TS_LIVE_BEGIN = 2,
	TS_LIVE_END = 3,
	TS_LIVE_INSTANT = 4,
	TS_LIVE_COUNTER = 5,
	TS_LIVE_STEP = 6,
	TS_LIVE_CALL = 7,
	TS_LIVE_GPU_OP = 8,
	TS_LIVE_SAMPLE = 9,
	TS_LIVE_ALLOCATION = 10,
	TS_LIVE_TORCH = 11,
	/* Kinds from here on are not events. */
	TS_LIVE_PAD = 16,
	TS_LIVE_THREAD = 17,
	TS_LIVE_WINDOW = 18,
	TS_LIVE_THREAD_NAME = 19,
	TS_LIVE_DEVICE = 20,
	TS_LIVE_STREAM_IS = 21,
	TS_LIVE_DEVICE_CLOCK = 22,
	TS_LIVE_LOST = 23,
	TS_LIVE_FACT = 24,
	TS_LIVE_THREAD_OF = 25,
	TS_LIVE_TORCH_TIME = 26,
	/* Command streams: docs/replay.md, section 2.1. */
	TS_LIVE_OBJECT = 32,
	TS_LIVE_GONE = 33,
	TS_LIVE_COMMAND = 34,
	TS_LIVE_BLOB = 35,
	TS_LIVE_SPOOLED = 36,
};

static inline int ts_live_kind_is_event(unsigned int kind)
{
	return kind < TS_LIVE_PAD;
}

#define TS_LIVE_FLAG_TICKS 1u     /* SPAN, CALL: the duration is in ticks, not ns */
#define TS_LIVE_FLAG_START 2u     /* SPAN: a start time follows the duration */
#define TS_LIVE_FLAG_TRACK 4u     /* a track number follows the payload */
#define TS_LIVE_FLAG_SIDE 8u      /* emitted by a signal handler that interrupted an emit */
#define TS_LIVE_FLAG_SUBJECT 16u  /* COUNTER, SAMPLE: begins with struct ts_live_subject */
#define TS_LIVE_FLAG_STACK 32u    /* frames at the end of the record */
#define TS_LIVE_FLAG_STACK_IS 64u /* the last word is a stack: a dictionary entry */
#define TS_LIVE_FLAG_MORE 128u    /* GPU_OP: struct ts_live_gpu_op_more follows */

/* ---- header ---- */

struct ts_live_record {
	uint16_t words; /* size of the record, including the header */
	uint8_t kind;
	uint8_t flags;
	uint32_t site; /* dictionary entry; 0: name and arguments are in the record */
};
static_assert(sizeof(struct ts_live_record) == 8, "live.md, section 3");

static inline uint64_t ts_live_head(uint64_t words, unsigned int kind, unsigned int flags,
				    uint32_t site)
{
	return words | (uint64_t)kind << 16 | (uint64_t)flags << 24 | (uint64_t)site << 32;
}

static inline uint32_t ts_live_head_words(uint64_t head)
{
	return (uint16_t)head;
}

static inline unsigned int ts_live_head_kind(uint64_t head)
{
	return (uint8_t)(head >> 16);
}

static inline unsigned int ts_live_head_flags(uint64_t head)
{
	return (uint8_t)(head >> 24);
}

static inline uint32_t ts_live_head_site(uint64_t head)
{
	return (uint32_t)(head >> 32);
}

/* The header of a site, for a record of another size. */
static inline uint64_t ts_live_head_resize(uint64_t head, uint64_t words)
{
	return (head & ~UINT64_C(0xffff)) | words;
}

/* The header of a site, for a record of another size with other flags. */
static inline uint64_t ts_live_head_replace(uint64_t head, uint64_t words, unsigned int flags)
{
	return (head & ~UINT64_C(0xff00ffff)) | (uint64_t)flags << 24 | words;
}

static inline uint64_t ts_live_head_add_flags(uint64_t head, unsigned int flags)
{
	return head | (uint64_t)flags << 24;
}

/* ---- strings: a u32 length, the bytes, zeros up to the next word ---- */

static inline uint32_t ts_live_string_words(uint32_t length)
{
	return (length + 4 + 7) / 8;
}

/* Returns where the next field goes. */
static inline uint64_t *ts_live_string_pack(uint64_t *to, const char *bytes, uint32_t length)
{
	uint32_t words = ts_live_string_words(length);

	to[words - 1] = 0; /* zeroes the padding; the text overwrites the rest */
	memcpy(to, &length, 4);
	memcpy((char *)to + 4, bytes, length);
	return to + words;
}

/* Advances *next; NULL: the string is too long or does not end before `end`. */
static inline const char *ts_live_string_unpack(const uint64_t **next, const uint64_t *end,
						uint32_t *ret_length)
{
	const char *bytes = (const char *)*next;
	size_t left = (size_t)(end - *next) * 8;
	uint32_t length = left ? (uint32_t) * *next : UINT32_MAX;

	if (length > TS_LIVE_STRING_BYTES || sizeof(length) + length > left)
		return NULL;
	*next += ts_live_string_words(length);
	*ret_length = length;
	return bytes + sizeof(length);
}

/* ---- device and kind, in 24 and 8 bits ---- */

#define TS_LIVE_DEVICE_MASK 0xffffffu

static inline uint32_t ts_live_device_kind(uint32_t device, unsigned int kind)
{
	return (device & TS_LIVE_DEVICE_MASK) | (uint32_t)kind << 24;
}

static inline uint32_t ts_live_device_of(uint32_t device_kind)
{
	return device_kind & TS_LIVE_DEVICE_MASK;
}

static inline unsigned int ts_live_kind_of(uint32_t device_kind)
{
	return device_kind >> 24;
}

/* ---- frames of call stacks ---- */

#define TS_LIVE_FRAMES 1800u
#define TS_LIVE_FRAMES_OUTER 600u /* outermost frames of a stack that is too deep */
#define TS_LIVE_FRAMES_LEFT_OUT \
	0xffffffffu /* instead of an entry: number of omitted frames follows */

/* A dictionary entry, and a line number or an address in it. Entry 0: the dictionary was full. */
static inline uint64_t ts_live_frame(uint32_t entry, uint32_t position)
{
	return (uint64_t)entry << 32 | position;
}

static inline uint32_t ts_live_frame_entry(uint64_t frame)
{
	return (uint32_t)(frame >> 32);
}

/* ---- payloads of events ---- */

/* Who a COUNTER, a SAMPLE or a THREAD_OF is about. */
struct ts_live_subject {
	uint32_t pid;
	uint32_t device_kind; /* enum ts_metrics_kind */
	uint64_t start_time;  /* of the process */
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_subject) == 16, "live.md, section 3");

struct ts_live_call {
	uint64_t duration;
	uint64_t correlation;
	int64_t result;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_call) == 24, "live.md, section 3");

struct ts_live_sample {
	uint32_t tid;   /* on a device: the launch's correlation */
	uint32_t state; /* enum ts_sample_state */
	uint64_t weight_ns;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_sample) == 16, "live.md, section 3");

struct ts_live_gpu_op {
	uint64_t correlation;
	uint32_t device_kind; /* enum ts_gpu_op_kind */
	uint8_t copy_kind;
	uint8_t waits; /* correlations listed at the end of the payload */
	uint16_t unlisted_waits;
	uint32_t stream, context;
	int64_t queued, submitted, start, end; /* in the device's clock */
	uint32_t grid[3], block[3];            /* 0: unknown */
	int64_t bytes;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_gpu_op) == 88, "live.md, section 3");
static_assert(offsetof(struct ts_live_gpu_op, copy_kind) == 12, "live.md, section 3");
static_assert(offsetof(struct ts_live_gpu_op, queued) == 24, "live.md, section 3");
static_assert(offsetof(struct ts_live_gpu_op, block) == 68, "live.md, section 3");

/* With MORE, after a GPU_OP and before its waits. */
struct ts_live_gpu_op_more {
	uint32_t registers; /* per thread; 0: unknown, and so are the shared bytes */
	uint32_t shared_bytes;
	uint32_t graph; /* 0: none */
	uint32_t stack; /* a dictionary entry; 0: none */
	uint64_t graph_node;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_gpu_op_more) == 24, "live.md, section 3");

/* The name of its site is the allocator. */
struct ts_live_allocation {
	uint64_t device_kind; /* enum ts_allocation_kind; all ones in the device: the host */
	uint32_t stream;      /* UINT32_MAX: none */
	uint32_t context;
	uint64_t address;
	int64_t bytes;
	int64_t total; /* in use on the device afterwards; ABSENT: unknown */
	int64_t reserved;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_allocation) == 48, "live.md, section 3");

/* The name of its site is the path of a PyTorch module. */
struct ts_live_torch {
	uint64_t serial;               /* of the row, in its area: see ts_live_torch_serial() */
	int64_t start_ns, duration_ns; /* CLOCK_MONOTONIC */
	int64_t step, sequence;        /* ABSENT: unknown */
	double allocated, max_allocated, cached; /* MB */
	uint32_t device_stage; /* stage in the highest 8 bits; all ones in the device: the host */
	int32_t rank;          /* -1: unknown */
	int64_t device_ns;     /* ABSENT: unknown; TORCH_TIME may follow */
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_torch) == 80, "live.md, section 3");

/* Ring + 1 in the highest 16 bits, and the record's position there: rises within a ring. */
static inline uint64_t ts_live_torch_serial(uint32_t ring, uint64_t position)
{
	return (uint64_t)(ring + 1) << 48 | (position & UINT64_C(0xffffffffffff));
}

static inline uint32_t ts_live_torch_ring(uint64_t serial)
{
	return (uint32_t)(serial >> 48) - 1;
}

/* ---- payloads of other records ---- */

/* A THREAD record, with its header. */
struct ts_live_thread_record {
	struct ts_live_record head;
	uint64_t counter;
	uint32_t tid;
	uint32_t serial;
	uint32_t previous_ring; /* plus 1; 0: none */
	uint32_t reserved;
	uint64_t previous_position;
	uint64_t dropped; /* by earlier owners of the ring */
	char name[16];
};
static_assert(sizeof(struct ts_live_thread_record) == 64, "live.md, section 3");

enum ts_live_window_action { TS_LIVE_WINDOW_OPEN = 1, TS_LIVE_WINDOW_CLOSE = 2 };
enum ts_live_window_cause {
	TS_LIVE_CAUSE_STEP = 1,
	TS_LIVE_CAUSE_MAX_STEPS = 2,
	TS_LIVE_CAUSE_NVTX = 3,
	TS_LIVE_CAUSE_PROFILER = 4, /* cuProfilerStart and cuProfilerStop */
};

/* A WINDOW record, with its header. A string may follow: the range that opened or closed it. */
struct ts_live_window_record {
	struct ts_live_record head;
	uint64_t counter;
	uint32_t action;
	uint32_t cause;
	int64_t step;
};
static_assert(sizeof(struct ts_live_window_record) == 32, "live.md, section 3");

/* Then vendor, model, UUID and bus. */
struct ts_live_device {
	uint32_t number; /* 24 bits */
	uint32_t reserved;
	int64_t memory_bytes;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_device) == 16, "live.md, section 3");

/* Then its name. */
struct ts_live_stream {
	uint32_t device; /* 24 bits */
	uint32_t reserved;
	uint32_t stream, context;
	int64_t priority;
	uint64_t out_of_order; /* bit 0 */
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_stream) == 32, "live.md, section 3");

/* Then the method by which it was measured. */
struct ts_live_device_clock {
	uint32_t device; /* 24 bits */
	uint32_t reserved;
	uint64_t counter;
	int64_t device_ns;
	int64_t uncertainty_ns;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_device_clock) == 32, "live.md, section 3");

/* Then what was lost, and why. */
struct ts_live_lost {
	uint64_t count;
} TS_LIVE_PAYLOAD;

/* Then the thread's name. */
struct ts_live_thread_of {
	struct ts_live_subject subject;
	uint64_t tid;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_thread_of) == 24, "live.md, section 3");

/* Belongs to an earlier TORCH. */
struct ts_live_torch_time {
	uint64_t serial;
	int64_t device_ns;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_torch_time) == 16, "live.md, section 3");

/* ---- payloads of command streams ---- */

/* Then its name and details. */
struct ts_live_object {
	uint64_t number, kind, parent, address;
	int64_t bytes;
	uint64_t blob;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_object) == 48, "replay.md, section 2.1");

struct ts_live_gone {
	uint64_t number;
} TS_LIVE_PAYLOAD;

/* Then its details. */
struct ts_live_command {
	uint64_t sequence, kind, queue, object;
	int64_t offset;
	uint64_t other;
	int64_t other_offset;
	int64_t bytes;
	uint64_t blob, correlation;
	uint64_t serial; /* of the thread */
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_command) == 88, "replay.md, section 2.1");

/* Then `count` bytes of its content, padded. */
struct ts_live_blob {
	uint64_t number;
	uint64_t bytes; /* of all its content */
	uint64_t offset;
	uint64_t count;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_blob) == 32, "replay.md, section 2.1");

/* A part of a blob whose bytes are in the spool. */
struct ts_live_spooled {
	struct ts_live_blob part;
	uint64_t position;
} TS_LIVE_PAYLOAD;
static_assert(sizeof(struct ts_live_spooled) == 40, "replay.md, section 2.1");

#endif
