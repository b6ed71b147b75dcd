/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small text files of /proc and /sys that are read repeatedly, and the numbers in them. Nothing is
 * trusted: truncated, missing or overflowing numbers are TS_NO_VALUE.
 */
#ifndef TS_BASE_PROCFS_H
#define TS_BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"

#define TS_NO_VALUE UINT64_MAX /* missing */

/* ---- files that are kept open ---- */

/*
 * A file kept open, since opening costs more than reading. The descriptor of a process's file never
 * comes to mean another process.
 */
struct ts_procfs_file {
	const char *path; /* borrowed */
	int fd;           /* -1: not open */
};

/*
 * Reads the complete file into `text`, NUL-terminated: 0, or a negative errno. Opens it below
 * `directory` if necessary and keeps it open, unless a quarter of the descriptor limit is in use (a
 * recorder needs others for each process).
 */
int ts_procfs_file_read(struct ts_procfs_file *file, int directory, struct ts_text *text);
void ts_procfs_file_close(struct ts_procfs_file *file);

/* ---- files that are read once ---- */

/*
 * The first bytes - 1 bytes, NUL-terminated, without trailing newlines. Returns their number, or a
 * negative errno.
 */
int ts_procfs_read_line(int directory, const char *path, char *buffer, size_t bytes);

/* A file that holds just one decimal number. */
bool ts_procfs_read_number(int directory, const char *path, int64_t *ret_number);

/* ---- where we are ---- */

/* Whether our pids are those that drivers report; also false if that is unknown. */
bool ts_is_outermost_pid_namespace(void);

/* ---- numbers in texts ---- */

/*
 * Decimal digits after optional blanks. Returns the text after them, or NULL if there are none. A
 * number beyond 64 bits, or one at the very end of the text (possibly truncated), is skipped and
 * gives TS_NO_VALUE.
 */
const char *ts_procfs_scan_number(const char *at, uint64_t *ret_number);

/* `count` numbers separated by blanks; missing ones are TS_NO_VALUE. */
void ts_procfs_scan_numbers(const char *at, uint64_t *ret_numbers, size_t count);

/* Lines "KEY NUMBER": the numbers of these keys, in the order of the keys. */
void ts_procfs_scan_keys(const char *text, const char *const *keys, uint64_t *ret_numbers,
			 size_t count);

/* The start of the next line; NULL at the end. */
const char *ts_procfs_next_line(const char *line);

/* ---- counters that only grow ---- */

struct ts_rate {
	uint64_t value; /* last known value */
	int64_t at_ns;
	bool is_known;
};

/*
 * Growth per second since the last value. False without one, or if the counter went backwards (it
 * was reset).
 */
bool ts_rate_next(struct ts_rate *rate, uint64_t value, int64_t now_ns, double *ret_per_second);

#endif
