/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of /proc/PID, for the files behind process.h; others use the functions there. */
#ifndef TS_BASE_PROCESS_INTERNAL_H
#define TS_BASE_PROCESS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The begin of /proc/PID/NAME, NUL-terminated; its length, at most bytes - 1. 0 where it cannot be
 * read.
 */
size_t ts_proc_read(pid_t pid, const char *name, char *buffer, size_t bytes);

/* Opens /proc/PID/NAME; -1 with errno. */
int ts_proc_open(pid_t pid, const char *name, int flags);

/* What /proc/PID/stat says. */
struct ts_proc_stat {
	char state;
	pid_t parent;
	uint32_t threads;
	uint64_t start_time;
};

/* False where there is no such process. */
bool ts_proc_stat(pid_t pid, struct ts_proc_stat *ret_stat);

/* The line of a /proc/PID/status text behind "KEY:", or NULL. */
const char *ts_proc_status_line(const char *status, const char *key);

/* Calls `found` for each process of /proc, until it returns false. */
void ts_proc_list(bool (*found)(void *context, pid_t pid), void *context);

/*
 * ts_process_descendants() by the kernel's lists of children, or by the parents that processes
 * name.
 */
void ts_proc_descendants(bool by_lists, pid_t root,
			 void (*found)(void *context, pid_t pid, pid_t parent), void *context);

#endif
