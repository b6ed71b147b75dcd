/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a recording (docs/live.md, section 6): a sequence of blocks. One recorder appends
 * them; the decoder, a successor after a crash, and `recover` read them. A trace is a function of
 * its journal.
 */
#ifndef TS_LIVE_JOURNAL_H
#define TS_LIVE_JOURNAL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "live/local/live_records.h"

#define TS_JOURNAL_MAGIC 0x424a5354u /* "TSJB" */
#define TS_JOURNAL_VERSION 1
#define TS_JOURNAL_BLOCK_BYTES (64u << 20)

enum ts_block_type {
	TS_BLOCK_OPEN = 1,
	TS_BLOCK_AREA = 2,
	TS_BLOCK_DICTIONARY = 3,
	TS_BLOCK_RING = 4,
	TS_BLOCK_CLOCK = 5,
	TS_BLOCK_END = 6,
	TS_BLOCK_WINDOW = 7,
	TS_BLOCK_LOSS = 8,
	TS_BLOCK_PROCESS = 9,
	TS_BLOCK_STATE = 10,
	TS_BLOCK_EXPORT = 11,
	TS_BLOCK_CLOSE = 12,
	TS_BLOCK_ROTATE = 13, /* payload: the new path */
};

struct ts_block {
	uint32_t magic;
	uint16_t type;
	uint16_t flags; /* RING: TS_RING_* of area.h; otherwise 0 */
	uint32_t bytes; /* of the payload, without the padding to 8 */
	uint32_t ring;
	uint64_t area;     /* area_id; 0: the recording itself */
	uint64_t from, to; /* OPEN: `to` is the end of the state in this journal, 0: it has none */
	uint64_t events;
	uint64_t dropped;
	uint64_t checksum; /* hash64 of the preceding 56 bytes followed by hash64(payload) */
};
static_assert(sizeof(struct ts_block) == 64, "live.md, section 6");
static_assert(offsetof(struct ts_block, checksum) == 56, "live.md, section 6");

/*
 * Payloads. Texts have a fixed size and are NUL-padded. Times named *_counter are in the
 * recording's counter: the host's raw counter, or CLOCK_MONOTONIC ns if that is unusable.
 */

/* OPEN. Always the first block of a journal. */
struct ts_block_open {
	uint32_t version;
	uint32_t generation;
	uint8_t trace_id[16];
	uint64_t trace_bytes; /* committed length of the trace; 0: create the file */
	uint64_t session;
	uint64_t counter_mult;  /* ns of clock 1 = counter * mult >> 32 (128-bit product) */
	int64_t trace_start_ns; /* trace time at which the recording began */
	uint32_t clock;         /* enum ts_live_clock */
	uint32_t redact;
	uint64_t started_counter;
	int64_t started_monotonic_ns; /* trace time = trace_start_ns + CLOCK_MONOTONIC - this */
	uint64_t recorder_pid;
	uint64_t processors, memory_bytes; /* of the host; 0: unknown */
	uint8_t boot_id[16];
	char host[64], system[128], recorder[32]; /* names and versions */
	uint64_t next_ids[64]; /* struct ts_writer_ids of the trace at trace_bytes */
	/* Not in journals of earlier versions. The rank of all processes that have no other. */
	struct ts_rank rank;
};
static_assert(sizeof(struct ts_block_open) % 8 == 0, "no padding");
#define TS_BLOCK_OPEN_LEAST offsetof(struct ts_block_open, rank)

/* AREA: the target's control block when it was first seen, then the recorder's view. */
struct ts_block_area {
	struct ts_live_control control;
	uint64_t pid; /* as the recorder sees it; 0: gone before it was seen */
	uint64_t parent;
	uint64_t seen_counter;
};

/* CLOCK */
struct ts_block_clock {
	struct ts_live_anchor anchor;
	int64_t uncertainty_ns;
};

/* END: no further blocks of an area follow. Loss counters are those of its control block. */
struct ts_block_end {
	uint64_t ended_counter;
	int64_t exit_status; /* wait status, or TS_ABSENT */
	uint64_t lost_nested;
	uint64_t lost_no_ring;
	uint64_t lost_first;
	uint64_t strings_cut;
	uint32_t target_state;
	uint32_t reason; /* 0: process ended, 1: exec replaced it, 2: recorder left, 3: damaged */
	char message[256];
};

/* WINDOW, opened or closed by the recorder for the block's area. */
struct ts_block_window {
	uint64_t counter;
	uint32_t action; /* enum ts_live_window_action */
	uint32_t serial;
	int64_t step; /* the target's, TS_ABSENT: none */
	int64_t realtime_ms;
	char cause[64]; /* "flag", "time", "command", "start", "end" */
	char name[192];
};

/* LOSS */
struct ts_block_loss {
	uint64_t first_counter, last_counter;
	int64_t count; /* TS_ABSENT: unknown */
	uint64_t pid;  /* of a process without an area, otherwise 0 */
	char what[64];
	char reason[192];
};

/* PROCESS: a process without an area. `area` of the block is 0. */
struct ts_block_process {
	uint64_t pid, parent;
	uint64_t start_time;                  /* field 22 of /proc/PID/stat */
	uint64_t seen_counter, ended_counter; /* 0: not yet */
	int64_t exit_status;
	char name[64];
	char command[1536];  /* arguments, each terminated by NUL; empty under redact */
	struct ts_rank rank; /* not in journals of earlier versions */
};
static_assert(sizeof(struct ts_block_process) % 8 == 0, "no padding");
#define TS_BLOCK_PROCESS_LEAST offsetof(struct ts_block_process, rank)

/* EXPORT: a closed window was exported to its own file. */
struct ts_block_export {
	uint64_t pid;
	uint32_t serial;
	uint32_t reserved;
	char path[1024];
};

/*
 * Receives blocks. append() fills in magic and checksum, and returns 0 once a successor would find
 * the block; only then is ring space freed.
 */
struct ts_block_sink {
	int (*append)(void *context, struct ts_block *block, const void *payload,
		      struct ts_error *err);
	void *context;
};

struct ts_journal;

/*
 * Creates the file, as ts_output_create() does. Journals are not locked: the writer holds the lock
 * of the trace (docs/live.md, section 6).
 */
int ts_journal_create(struct ts_journal **ret_journal, const char *path, struct ts_error *err);

/* The same as a file without a name in $TMPDIR. */
int ts_journal_create_unnamed(struct ts_journal **ret_journal, struct ts_error *err);

/* Opens for appending after the last complete block. Changes nothing yet. */
int ts_journal_resume(struct ts_journal **ret_journal, const char *path, struct ts_error *err);
/* Removes what is after that block: a torn tail. Call before an append. */
int ts_journal_trim(struct ts_journal *journal, struct ts_error *err);
void ts_journal_close(struct ts_journal *journal);
TS_DEFINE_AUTO(ts_journal, ts_journal_close);

/*
 * Fills in magic and checksum and stores the block with one write. On failure truncates the file to
 * its last complete block. TS_ENOSPC also if the file may not grow (EFBIG, quota).
 */
int ts_journal_append(struct ts_journal *journal, struct ts_block *block, const void *payload,
		      struct ts_error *err);
/* Replaces the first block by one of the same size, in a journal that nobody reads yet. */
int ts_journal_rewrite_first(struct ts_journal *journal, struct ts_block *block,
			     const void *payload, struct ts_error *err);
uint64_t ts_journal_bytes(const struct ts_journal *journal);
int ts_journal_fd(const struct ts_journal *journal);

/* Appends `bytes` bytes of another journal from `offset` on: complete blocks, unchanged. */
int ts_journal_copy(struct ts_journal *journal, int from_fd, uint64_t offset, uint64_t bytes,
		    struct ts_error *err);

/* Flushes the file to disk. */
int ts_journal_sync(struct ts_journal *journal, struct ts_error *err);

/* Renames the file (the commit of a checkpoint). */
int ts_journal_rename(struct ts_journal *journal, const char *path, struct ts_error *err);

/*
 * Reads the block at *offset of fd into *block and its payload into `buffer`, whose length it sets.
 * Advances *offset. Returns 0; TS_ENOTFOUND at the end or at a torn tail; TS_EFORMAT for damage
 * before the end: then *offset is the start of the next complete block, so that the caller can
 * continue. Allocates at most the size of the file (but at least 4 KiB), and never more than
 * TS_JOURNAL_BLOCK_BYTES.
 */
struct ts_text;
int ts_journal_read(int fd, uint64_t *offset, struct ts_block *block, struct ts_text *buffer,
		    struct ts_error *err);

/* Copies the payload of an OPEN block; false: it is too short. */
bool ts_journal_take_open(const void *payload, size_t bytes, struct ts_block_open *ret_open);

/* Reads the OPEN block of the journal of a trace; false: it has none, or not yet. */
bool ts_journal_origin(const char *trace, struct ts_block_open *ret_open);

/*
 * For tests: called at each instant of docs/live.md, section 8.2 ("R1", "R4" ...), on any thread;
 * may end the process. NULL: none. Set in tests/crash/crash_points.c.
 */
extern void (*ts_crash_hook)(const char *point);
void ts_crash_point(const char *point);

#endif
