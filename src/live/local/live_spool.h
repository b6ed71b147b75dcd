/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of an area (docs/live.md, section 2.5): bulk data of its command stream. The target
 * writes it in place; a recorder reads it with pread and writes two words. Includes libc only,
 * since the agent uses it.
 */
#ifndef TS_LIVE_LOCAL_LIVE_SPOOL_H
#define TS_LIVE_LOCAL_LIVE_SPOOL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TS_SPOOL_ENDING ".spool"
#define TS_SPOOL_MAGIC "TSSPOOL\n"
#define TS_SPOOL_VERSION 2
#define TS_SPOOL_HEADER_BYTES 4096u
#define TS_SPOOL_LEAST (UINT64_C(4) << 20)
#define TS_SPOOL_GREATEST (UINT64_C(1) << 36)
/* A part begins at a multiple of this. */
#define TS_SPOOL_ALIGNMENT 64u
#define TS_SPOOL_PART (UINT64_C(4) << 20)

/* Data from here on is given back by the recorder, which counts that. */
#define TS_SPOOL_KEPT (UINT64_C(256) << 20)

/*
 * Bulk is written to several files, since the kernel lets one thread at a time extend a file:
 * `<area>.<n>.spool`, n from 1 on, each laid out as the spool itself and sparse. A part's position
 * has n in its highest byte; 0: the spool.
 */
#define TS_SPOOL_LANES 16u
#define TS_SPOOL_LANE_SHIFT 56
#define TS_SPOOL_LANE_NAME ".%u" TS_SPOOL_ENDING
#define TS_SPOOL_LANE_NAME_BYTES 16u /* at most */

struct ts_live_spool {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t area_id;
	uint64_t bytes; /* of the data, a power of two */
	uint8_t reserved_0[32];
	uint64_t head;     /* bytes ever used */
	uint64_t referred; /* the records of all parts below are in the ring */
	uint8_t reserved_1[48];
	/* Written by the recorder. */
	uint64_t consumed; /* everything below is in a committed trace */
	uint64_t decoded;  /* everything below is read: a sign of progress, nothing more */
	uint64_t returned; /* changes when memory behind the first TS_SPOOL_KEPT was given back */
};
static_assert(offsetof(struct ts_live_spool, head) == 64, "live.md, section 2.5");
static_assert(offsetof(struct ts_live_spool, consumed) == 128, "live.md, section 2.5");
static_assert(offsetof(struct ts_live_spool, decoded) == 136, "live.md, section 2.5");
static_assert(offsetof(struct ts_live_spool, returned) == 144, "live.md, section 2.5");
static_assert(sizeof(struct ts_live_spool) <= TS_SPOOL_HEADER_BYTES, "live.md, section 2.5");

/* The greatest part of a blob. */
static inline uint64_t ts_spool_part_bytes(uint64_t bytes)
{
	return bytes / 16 < TS_SPOOL_PART ? bytes / 16 : TS_SPOOL_PART;
}

/* Where a part is, and in which of the files. */
static inline uint64_t ts_spool_position(uint64_t word)
{
	return word & ((UINT64_C(1) << TS_SPOOL_LANE_SHIFT) - 1);
}

static inline unsigned int ts_spool_lane(uint64_t word)
{
	return (unsigned int)(word >> TS_SPOOL_LANE_SHIFT);
}

/* The first multiple of `bytes` (a power of two) that is not below the position. */
static inline uint64_t ts_spool_round_up(uint64_t position, uint64_t bytes)
{
	return (position + bytes - 1) & ~(bytes - 1);
}

#endif
