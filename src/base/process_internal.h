/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads small files of /proc/PID, for the files behind process.h and for others that need fields it
 * does not offer.
 */
#ifndef TS_BASE_PROCESS_INTERNAL_H
#define TS_BASE_PROCESS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The start of /proc/PID/NAME, NUL-terminated. Returns its length, at most bytes - 1; 0 if
 * unreadable.
 */
size_t ts_proc_read(pid_t pid, const char *name, char *buffer, size_t bytes);

/* Opens /proc/PID/NAME; -1 with errno. */
int ts_proc_open(pid_t pid, const char *name, int flags);

/* Fields of /proc/PID/stat. */
struct ts_proc_stat {
	char state;
	pid_t parent;
	uint32_t threads;
	uint64_t start_time;
	uint64_t stack; /* where its program's stack begins; 0: no permission */
};

/* False if there is no such process. */
bool ts_proc_stat(pid_t pid, struct ts_proc_stat *ret_stat);

/* The text after "KEY:" in a /proc/PID/status file, or NULL. */
const char *ts_proc_status_line(const char *status, const char *key);

/* Calls `found` for each process in /proc until it returns false. */
void ts_proc_list(bool (*found)(void *context, pid_t pid), void *context);

/* ts_process_descendants() by the kernel's child lists, or by the parent pids of all processes. */
void ts_proc_descendants(bool by_lists, pid_t root,
			 void (*found)(void *context, pid_t pid, pid_t parent), void *context);

#endif
