/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the records of copied ring bytes (docs/live.md, section 3): finds where complete records
 * end, counts events, stops at THREAD records. Reads only sizes and kinds, and trusts neither.
 */
#ifndef TS_LIVE_RECORDS_H
#define TS_LIVE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "live/local/live_records.h"

struct ts_records {
	const unsigned char *data;
	size_t bytes;
	size_t at;       /* next record; all before it are complete */
	uint64_t events; /* before it */
};

enum ts_records_stop {
	TS_RECORDS_END,    /* no complete record left: at the end, or the last one is truncated */
	TS_RECORDS_THREAD, /* at a complete THREAD record: read it, then skip it */
	TS_RECORDS_BAD,    /* the bytes at `at` are not a valid record */
};

/* Walks from `at` to the next stop. */
enum ts_records_stop ts_records_walk(struct ts_records *records);

/* The THREAD record at `at`. Its name is untrusted and may lack the NUL. */
void ts_records_thread(const struct ts_records *records, struct ts_live_thread_record *ret_thread);

/* Skips the THREAD record at `at`. */
void ts_records_skip(struct ts_records *records);

#endif
