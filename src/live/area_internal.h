/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's state of an area and of each of its rings, shared by area.c, drain.c, drain_ring.c,
 * ring_entry.c and event_count.c. Others use area.h.
 */
#ifndef TS_LIVE_AREA_INTERNAL_H
#define TS_LIVE_AREA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "live/area.h"

#define AREA_NAME_BYTES 64

/* The thread that owns the records at a position; tid 0: the THREAD record there names it. */
struct ring_thread {
	uint32_t tid, serial;
	char name[16];
};

enum ring_flag {
	RING_SEEN = 1,    /* offset and size are validated, the position is set */
	RING_RESUMED = 2, /* the position comes from a predecessor's journal */
	RING_DAMAGED = 4, /* reported, and ignored from now on */
	RING_SUSPECT = 8, /* invalid once: read it again */
	RING_STARTS = 16, /* emit a TS_RING_START block first: another recorder drained it before */
	RING_UNTOLD = 32, /* the journal does not name the thread at the position */
	RING_WAITING = 64, /* on the stack of this pass */
};

struct ring {
	uint64_t position, events; /* bytes drained; events in them or overwritten */
	uint64_t reported_events, reported_dropped; /* in the last block */
	uint64_t turn;
	uint64_t dropped;          /* as last read */
	uint64_t offset, bytes;    /* 0 before RING_SEEN */
	uint64_t silent_to;        /* below this the journal has the records: walk, emit no block */
	uint64_t passed_over;      /* the THREAD record here has already waited for another ring */
	struct ring_thread thread; /* at `position` */
	uint32_t piece;            /* maximum bytes per copy */
	uint32_t flags;
	uint32_t pass; /* the last one that found data */
};

/* A ring being drained. The ring that it waits for is above it on the stack. */
struct ring_frame {
	uint32_t ring;
	uint32_t attempts; /* to catch up with a target that overwrites */
	uint64_t limit;    /* drain up to here */
	bool complete;     /* `limit` is the ring's head, so a record ends there */
};

struct ts_area {
	int fd;
	bool writable, locked;
	bool damaged, damage_reported;
	bool resume_failed; /* no memory for a position: a drain would emit records twice */
	char name[AREA_NAME_BYTES];
	char damage[192];
	struct ts_live_control control;
	uint64_t dictionary_position;
	uint64_t pool_taken; /* bytes of all rings seen */
	uint32_t damaged_rings;
	uint32_t pass;

	/* ring_count elements each. */
	uint32_t ring_count, ring_capacity;
	struct ts_live_ring *directory; /* as read at the start of the pass */
	struct ring *rings;
	struct ring_frame *stack;

	/* Copied ring bytes, with space for a THREAD record before them. */
	unsigned char *buffer;
	size_t buffer_bytes;
};

/* Largest copy, hence the largest RING block; smallest copy, which holds any record. */
#define RING_PIECE_BYTES (1u << 20)
#define RING_PIECE_LEAST (TS_LIVE_RECORD_WORDS * 8)

/*
 * Reads bytes at an offset. Returns their number, fewer than requested at the end of the file; -1
 * with errno. Ends with a fence, so that later reads are not reordered before it.
 */
ssize_t live_read(int fd, void *buffer, size_t bytes, uint64_t offset);

/* Opens an area, checks that it is a regular file, reads and validates the control block. */
int live_read_control(int directory_fd, const char *name, int open_flags, int *ret_fd,
		      struct ts_live_control *ret_control, struct ts_error *err);

/* Grows the tables of rings to `count` elements. */
int live_grow_rings(struct ts_area *area, uint32_t count, struct ts_error *err);

/* Grows the buffer to `bytes`, plus a THREAD record before them. */
int live_grow_buffer(struct ts_area *area, size_t bytes, struct ts_error *err);

/* Marks the area as damaged; the first reason is kept. Returns TS_EFORMAT. */
int live_condemn_area(struct ts_area *area, struct ts_error *err, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);

/* ---- drain pass ---- */

struct drain {
	struct ts_area *area;
	unsigned int flags; /* TS_DRAIN_* */
	const struct ts_block_sink *sink;
	struct ts_drain_result *result;
	struct ts_error *err;
	uint32_t waits_left; /* number of times that a ring may still wait for another */
};

/* drain.c: emits new dictionary entries, up to the current `dictionary_used`. */
int live_drain_dictionary(struct drain *drain);

/* drain.c: marks the ring as damaged and emits a LOSS block. */
int live_condemn_ring(struct drain *drain, uint32_t index, const char *why);

/*
 * ring_entry.c: reads and validates a ring's entry. Raises the ring's position if bytes are gone.
 * *ret_head is the end of the bytes that can be drained. *ret_fault is the fault that a second read
 * confirmed, or NULL. TS_ENOTFOUND: the target changes the entry too fast; retry in the next pass.
 * `first` is an earlier read of the entry, or NULL.
 */
int live_look(struct drain *drain, uint32_t index, const struct ts_live_ring *first,
	      uint64_t *ret_head, const char **ret_fault);

/*
 * ring_entry.c: checks whether copied bytes were overwritten during the copy. If so, raises the
 * position and sets *ret_head. *ret_lost_sight: no consistent read, so the copy is unusable.
 */
int live_look_again(struct drain *drain, uint32_t index, uint64_t *ret_head, bool *ret_lost_sight);

/* drain_ring.c: true if the entry, as first read, shows something to do. */
bool live_ring_has_news(const struct drain *drain, uint32_t index);

/* drain_ring.c: true if the ring is a channel and TS_DRAIN_HOLD is set. */
bool live_ring_is_held(const struct drain *drain, uint32_t index);

/* drain_ring.c: drains the ring, after the rings that it waits for. */
int live_drain_ring(struct drain *drain, uint32_t index);

#endif
