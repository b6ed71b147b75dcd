/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small text files of /proc and /sys that are read again and again, and the numbers in them.
 * Nothing is trusted: what is cut, missing, or too large is no value.
 */
#ifndef TS_BASE_PROCFS_H
#define TS_BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"

#define TS_NO_VALUE UINT64_MAX /* not there */

/* ---- files that are kept open ---- */

/* Opening costs more than reading. Of a process, a descriptor cannot come to mean another one. */
struct ts_procfs_file {
	const char *path; /* borrowed */
	int fd;           /* -1: none is kept */
};

/*
 * The whole file in `text`, with a NUL behind it: 0, or the negative errno. Opened below
 * `directory` where it is not open yet, and kept unless a quarter of the descriptors that the
 * process may have are in use (a recorder needs others for each process): then for this reading
 * only.
 */
int ts_procfs_file_read(struct ts_procfs_file *file, int directory, struct ts_text *text);
void ts_procfs_file_close(struct ts_procfs_file *file);

/* ---- files that are read once ---- */

/*
 * The first bytes - 1 bytes, with a NUL behind and without newlines at the end: their number, or
 * the negative errno.
 */
int ts_procfs_read_line(int directory, const char *path, char *buffer, size_t bytes);

/* A file that holds one decimal number and nothing else. */
bool ts_procfs_read_number(int directory, const char *path, int64_t *ret_number);

/* ---- where we are ---- */

/* Whether we count processes as drivers do; false also where that cannot be known. */
bool ts_is_outermost_pid_namespace(void);

/* ---- numbers in texts ---- */

/*
 * Decimal digits behind blanks: what follows them, or NULL where there are none. A number beyond 64
 * bits, or one that the text ends with and so may be cut, is passed over and gives TS_NO_VALUE.
 */
const char *ts_procfs_scan_number(const char *at, uint64_t *ret_number);

/* `count` numbers with blanks between; those that are missing are TS_NO_VALUE. */
void ts_procfs_scan_numbers(const char *at, uint64_t *ret_numbers, size_t count);

/* Lines "KEY NUMBER": the numbers of the keys, in their order. */
void ts_procfs_scan_keys(const char *text, const char *const *keys, uint64_t *ret_numbers,
			 size_t count);

/* The begin of the next line; NULL at the end. */
const char *ts_procfs_next_line(const char *line);

/* ---- counters that only grow ---- */

struct ts_rate {
	uint64_t value; /* of the last sample that had one */
	int64_t at_ns;
	bool is_known;
};

/*
 * How many a second since the last value. False without one, and where it went back: it began anew.
 */
bool ts_rate_next(struct ts_rate *rate, uint64_t value, int64_t now_ns, double *ret_per_second);

#endif
