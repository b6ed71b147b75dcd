/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What area.c, drain.c, drain_ring.c and ring_entry.c share: what is known of an area and of each
 * of its rings. Others use area.h.
 */
#ifndef TS_LIVE_AREA_INTERNAL_H
#define TS_LIVE_AREA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "live/area.h"

#define AREA_NAME_BYTES 64

/* Whose records stand at a position; tid 0: the record there says. */
struct ring_thread {
	uint32_t tid, serial;
	char name[16];
};

enum ring_flag {
	RING_SEEN = 1,     /* its place was checked, its position is set */
	RING_RESUMED = 2,  /* its position is a predecessor's */
	RING_DAMAGED = 4,  /* left alone, and told */
	RING_SUSPECT = 8,  /* wrong once: read it again */
	RING_STARTS = 16,  /* what another recorder took is to be told first */
	RING_UNTOLD = 32,  /* the journal does not know whose records stand at the position */
	RING_WAITING = 64, /* on the stack of this pass */
};

struct ring {
	uint64_t position, events; /* taken: bytes, and events in them or overwritten */
	uint64_t reported_events, reported_dropped; /* as of the last block */
	uint64_t turn;
	uint64_t dropped;          /* as last read */
	uint64_t offset, bytes;    /* 0 before RING_SEEN */
	uint64_t silent_to;        /* walked up to here, not told: a predecessor has told it */
	uint64_t passed_over;      /* the THREAD record here waits for no other ring (any more) */
	struct ring_thread thread; /* at `position` */
	uint32_t piece;            /* bytes to copy at most at once */
	uint32_t flags;
	uint32_t pass; /* that it gave something in */
};

/* A ring being taken; a ring that it waits for lies above it on the stack. */
struct ring_frame {
	uint32_t ring;
	uint32_t attempts; /* to catch up with a target that overwrites */
	uint64_t limit;    /* to be taken up to here */
	bool whole;        /* `limit` is its head, so that a record ends there */
};

struct ts_area {
	int fd;
	bool writable, locked;
	bool damaged, damage_reported;
	bool resume_failed; /* going on would give things twice */
	char name[AREA_NAME_BYTES];
	char damage[192];
	struct ts_live_control control;
	uint64_t dictionary_position;
	uint64_t pool_taken; /* bytes of all rings seen */
	uint32_t damaged_rings;
	uint32_t pass;

	/* One of each for every ring that `control.rings` counts. */
	uint32_t ring_count, ring_capacity;
	struct ts_live_ring *directory; /* as read at the begin of the pass */
	struct ring *rings;
	struct ring_frame *stack;

	/* Copied ring bytes, with room for a THREAD record before them. */
	unsigned char *buffer;
	size_t buffer_bytes;
};

/* Largest copy, and so the largest RING block; the least holds any record. */
#define RING_PIECE_BYTES (1u << 20)
#define RING_PIECE_LEAST (TS_LIVE_RECORD_WORDS * 8)

/*
 * The bytes at an offset: their number, less than asked for where the file ends; -1 with errno.
 * What is read afterwards is read afterwards: a fence stands at the end.
 */
ssize_t live_read(int fd, void *buffer, size_t bytes, uint64_t offset);

/* Opens, checks that it is a file, reads and checks the control block. */
int live_read_control(int directory_fd, const char *name, int open_flags, int *ret_fd,
		      struct ts_live_control *ret_control, struct ts_error *err);

/* Makes rings up to `count` known. */
int live_grow_rings(struct ts_area *area, uint32_t count, struct ts_error *err);

/* Memory for `bytes` of a ring and a THREAD record before them. */
int live_grow_buffer(struct ts_area *area, size_t bytes, struct ts_error *err);

/* Takes the area out of use; the first reason stays. Returns TS_EFORMAT. */
int live_condemn_area(struct ts_area *area, struct ts_error *err, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);

/* ---- one pass ---- */

struct drain {
	struct ts_area *area;
	unsigned int flags; /* TS_DRAIN_* */
	const struct ts_block_sink *sink;
	struct ts_drain_result *result;
	struct ts_error *err;
	uint32_t waits_left; /* how often a ring may still have to wait for another */
};

/* drain.c: gives new entries of the dictionary, as `dictionary_used` says now. */
int live_drain_dictionary(struct drain *drain);

/* drain.c: gives a LOSS block and leaves the ring alone from now on. */
int live_condemn_ring(struct drain *drain, uint32_t index, const char *why);

/*
 * ring_entry.c: looks at a ring's entry. Its position is raised where bytes are gone; *ret_head is
 * up to where it can be taken. *ret_fault is what is wrong with it, after a second reading, or
 * NULL. TS_ENOTFOUND where the target is too quick for now. `first` is a reading that was already
 * made, or NULL.
 */
int live_look(struct drain *drain, uint32_t index, const struct ts_live_ring *first,
	      uint64_t *ret_head, const char **ret_fault);

/*
 * ring_entry.c: after copying bytes, did they hold still? Raises the position where they did not,
 * and then sets *ret_head. *ret_lost_sight where nothing can be said of them.
 */
int live_look_again(struct drain *drain, uint32_t index, uint64_t *ret_head, bool *ret_lost_sight);

/* drain_ring.c: true where there is something to do, by the entry as first read. */
bool live_ring_has_news(const struct drain *drain, uint32_t index);

/* drain_ring.c: true where it is a channel, and those are to be left alone. */
bool live_ring_is_held(const struct drain *drain, uint32_t index);

/* drain_ring.c: takes the ring, and before it those that it waits for. */
int live_drain_ring(struct drain *drain, uint32_t index);

#endif
