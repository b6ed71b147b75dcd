/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory of a traced process, byte for byte as in docs/live.md, section 2; the records
 * in its rings are in live_records.h. The target writes it in place; a recorder copies it and
 * validates it. Includes libc only, since the agent uses it.
 */
#ifndef TS_LIVE_LOCAL_LIVE_LAYOUT_H
#define TS_LIVE_LOCAL_LIVE_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/local/rank.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "areas are read and written in place");

#define TS_LIVE_MAGIC "TSLIVE\r\n"
#define TS_LIVE_VERSION 1

#define TS_LIVE_CONTROL_BYTES 4096u
#define TS_LIVE_RING_LIMIT 4096u
#define TS_LIVE_ENTRY_BYTES 256u
#define TS_LIVE_DIRECTORY 4096u
#define TS_LIVE_DICTIONARY (TS_LIVE_DIRECTORY + TS_LIVE_RING_LIMIT * TS_LIVE_ENTRY_BYTES)
/*
 * Size in a program's area, and the maximum: a recorder's dictionary has functions of all programs.
 * The pool follows, at `pool`.
 */
#define TS_LIVE_DICTIONARY_BYTES (1u << 20)
#define TS_LIVE_DICTIONARY_GREATEST (16u << 20)
#define TS_LIVE_POOL (TS_LIVE_DICTIONARY + TS_LIVE_DICTIONARY_BYTES)
static_assert(TS_LIVE_DICTIONARY == 0x101000 && TS_LIVE_POOL == 0x201000, "live.md, section 2");

/* Part of the free space of the file system that an area uses by default. */
#define TS_LIVE_BUDGET_SHARE 8u
/* Without this much no area can be made: control block, 16 rings' entries, some dictionary. */
#define TS_LIVE_AREA_LEAST (24u << 10)

#define TS_LIVE_CONFIG_WORDS 48

/* Words of a target's configuration (docs/live.md, section 2.4). */
enum ts_config_word {
	TS_CONFIG_SAMPLE_RATE = 0,     /* ns between two samples of metrics */
	TS_CONFIG_PYTHON_MARKS = 1,    /* the target takes stacks of marks; 0: none */
	TS_CONFIG_PYTHON_CALLS = 2,    /* the same for driver calls */
	TS_CONFIG_PYTHON_INTERVAL = 3, /* ns between two sweeps of Python stacks */
	TS_CONFIG_PYTHON_SWEEP = 4,    /* a change requests a sweep now */
	TS_CONFIG_STACKS = 5,          /* enum ts_config_stacks: frames in ts_accelerator_stack() */
};

enum ts_config_stacks {
	TS_STACKS_NATIVE = 1,
	TS_STACKS_PYTHON = 2,
};

enum ts_live_clock {
	TS_LIVE_CLOCK_COUNTER = 1,
	TS_LIVE_CLOCK_MONOTONIC = 2,
};

enum ts_live_target_state {
	TS_LIVE_RUNNING = 1,
	TS_LIVE_EXITING = 2,
	TS_LIVE_DISABLED = 3,
	TS_LIVE_STOPPED = 4, /* the process goes on, and may start again */
};

enum ts_live_role {
	TS_LIVE_PROGRAM = 0,
	TS_LIVE_RECORDER = 1, /* a recorder's own measurements */
};

enum ts_live_mode {
	TS_LIVE_FLIGHT = 0,
	TS_LIVE_STREAM = 1,
};

#define TS_LIVE_ENABLED 1u

/* One instant in three clocks. */
struct ts_live_anchor {
	uint64_t counter;
	int64_t monotonic_ns;
	int64_t realtime_ns;
};

/* Members that both sides touch while the target runs are accessed with __atomic builtins. */
struct ts_live_control {
	char magic[8];
	uint32_t version;
	uint32_t control_bytes;
	uint8_t boot_id[16];
	uint64_t pid_namespace;
	uint32_t pid;
	uint32_t uid;
	uint64_t start_time;
	uint64_t area_id;
	uint64_t image;
	uint64_t session;
	uint32_t clock;
	uint32_t parent;
	uint64_t counter_hz;
	struct ts_live_anchor created;
	struct ts_live_anchor latest;
	uint32_t ring_limit;
	uint32_t ring_bytes;
	uint64_t directory;
	uint64_t dictionary;
	uint64_t pool;
	uint64_t budget;
	uint32_t role;
	struct ts_rank rank;
	uint32_t always_redact;
	uint8_t reserved_0[48];

	/* Written by the running target. */
	uint32_t rings;
	uint32_t target_state;
	uint64_t dictionary_used;
	uint64_t allocated;
	uint64_t lost_nested;
	uint64_t lost_no_ring;
	uint64_t strings_cut;
	uint64_t flush_request;
	int64_t step;
	uint64_t steps;
	uint64_t window_steps;
	uint64_t window_seen;
	uint64_t lost_first;
	uint64_t since;
	uint8_t reserved_1[152];

	/* Written by the recorder and by the commands `config` and `window`. */
	uint32_t enabled;
	uint32_t mode;
	uint32_t redact;
	uint32_t window_serial;
	int64_t step_open;
	int64_t step_close;
	int64_t max_steps;
	uint64_t flush_done;
	uint64_t recorder_pid;
	uint64_t recorder_start;
	int64_t heartbeat;
	uint32_t window_request;
	uint32_t window_reply;
	uint64_t output_space;
	uint8_t reserved_2[40];
	uint64_t config[TS_LIVE_CONFIG_WORDS];

	char name[64];
	char output[1024];
	char command[1536];
	char message[256];
	/* Written by the recorder. */
	char notice[192];
};
static_assert(sizeof(struct ts_live_control) == TS_LIVE_CONTROL_BYTES, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, pid) == 40, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, created) == 96, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, ring_limit) == 144, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, budget) == 176, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, rank) == 188, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, rings) == 256, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, lost_first) == 344, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, since) == 352, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, enabled) == 512, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, window_reply) == 588, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, output_space) == 592, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, config) == 640, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, name) == 1024, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, message) == 3648, "live.md, section 2.1");
static_assert(offsetof(struct ts_live_control, notice) == 3904, "live.md, section 2.1");

enum ts_live_ring_state {
	TS_LIVE_RING_FREE = 0,
	TS_LIVE_RING_OWNED = 1,
	TS_LIVE_RING_EXITED = 2,
};

/* Start of a ring's bytes that are not overwritten, and the thread that owns the records there. */
struct ts_live_oldest {
	uint64_t position;
	uint64_t events;
	uint32_t tid;
	uint32_t serial;
	char name[16];
};
static_assert(sizeof(struct ts_live_oldest) == 40, "live.md, section 2.2");

struct ts_live_ring {
	/* Written by the target; the first cache line is the hot one. */
	uint64_t head;
	uint64_t dropped;
	uint64_t dropped_first;
	uint64_t dropped_last;
	uint64_t turn;
	uint32_t state;
	uint32_t tid;
	uint64_t offset;
	uint64_t bytes;
	struct ts_live_oldest slot_0;
	uint8_t reserved_0[24];
	/* Written by the recorder. */
	uint64_t consumed;
	uint64_t consumed_events;
	uint32_t consumed_tid;
	uint32_t consumed_serial;
	char consumed_name[16];
	uint64_t consumed_check; /* ts_live_consumed_check() */
	uint8_t reserved_1[16];
	/* Written by the target. */
	struct ts_live_oldest slot_1;
	uint8_t reserved_2[24];
};
static_assert(sizeof(struct ts_live_ring) == TS_LIVE_ENTRY_BYTES, "live.md, section 2.2");
static_assert(offsetof(struct ts_live_ring, slot_0) == 64, "live.md, section 2.2");
static_assert(offsetof(struct ts_live_ring, consumed) == 128, "live.md, section 2.2");
static_assert(offsetof(struct ts_live_ring, consumed_check) == 168, "live.md, section 2.2");
static_assert(offsetof(struct ts_live_ring, slot_1) == 192, "live.md, section 2.2");

static inline uint64_t ts_live_consumed_check(uint64_t consumed, uint64_t events, uint32_t tid,
					      uint32_t serial)
{
	return ~(consumed + events + ((uint64_t)serial << 32 | tid));
}

#define TS_LIVE_RING_LEAST 4096u
#define TS_LIVE_RING_GREATEST (64u << 20)

/* A dictionary entry: this, then a u16 pair for each argument, then the texts. */
struct ts_live_site {
	uint32_t bytes;
	uint8_t kind;
	uint8_t fields;
	uint16_t name_bytes;
	uint16_t category_bytes;
	uint16_t reserved;
	uint32_t line;
};
static_assert(sizeof(struct ts_live_site) == 16, "live.md, section 2.3");

struct ts_live_site_field {
	uint16_t key_bytes;
	uint16_t type; /* enum ts_arg_type: INT, DOUBLE, STRING, BOOL */
};
static_assert(sizeof(struct ts_live_site_field) == 4, "live.md, section 2.3");

/* Kinds of entries that are not call sites, but what frames of stacks refer to. */
enum ts_live_code {
	TS_LIVE_CODE_PYTHON = 40,
	TS_LIVE_CODE_NATIVE = 41,
	TS_LIVE_CODE_SCRIPT = 42,
	TS_LIVE_CODE_STACK = 43,  /* no text: `line` is the caller's entry (0: none); one
				     frame follows */
	TS_LIVE_CODE_MODULE = 44, /* native code, function resolved later: path, build id;
				     frames have addresses in it */
	TS_LIVE_CODE_DEVICE = 45, /* a device function: name, module; frames have offsets in it */
};

/* Follows the texts of a MODULE, 8-aligned. */
struct ts_live_module {
	uint64_t start, bytes; /* where the entire module is mapped */
};

#define TS_LIVE_SITE_LEAST 24u
#define TS_LIVE_SITE_GREATEST 16384u

/* Maximum size of the dictionary; 0: the control block is invalid. */
static inline uint64_t ts_live_dictionary_bytes(const struct ts_live_control *control)
{
	uint64_t bytes = control->pool - TS_LIVE_DICTIONARY;

	if (control->dictionary != TS_LIVE_DICTIONARY || control->pool < TS_LIVE_POOL ||
	    bytes > TS_LIVE_DICTIONARY_GREATEST || bytes % 4096)
		return 0;
	return bytes;
}

#endif
