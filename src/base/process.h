/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes by pid, from /proc: start time, liveness, namespaces, names, descendants. A process may
 * end at any time, which is an answer and not an error.
 */
#ifndef TS_BASE_PROCESS_H
#define TS_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Start time (field 22 of /proc/PID/stat), 0: no such process. A zombie counts as gone, but not one
 * whose other threads still run.
 */
uint64_t ts_process_start_time(pid_t pid);
bool ts_process_lives(pid_t pid, uint64_t start_time); /* and is the one that started then */
pid_t ts_process_parent(pid_t pid);
uint64_t ts_process_namespace(pid_t pid); /* inode of ns/pid, 0: cannot be read */
pid_t ts_process_inner_pid(pid_t pid);    /* last of NSpid */
/* comm, and the command line as NUL-separated arguments; both cut to fit, NUL-terminated. */
void ts_process_name(pid_t pid, char *buffer, size_t bytes);
size_t ts_process_command(pid_t pid, char *buffer, size_t bytes);

enum ts_entry { /* can an agent be in there? */
		TS_ENTRY_POSSIBLE,
		TS_ENTRY_STATIC,     /* no program interpreter: static, most Go programs */
		TS_ENTRY_SECURE,     /* setuid, setgid, or file capabilities */
		TS_ENTRY_OTHER_ARCH, /* another machine's or word size's ELF */
		TS_ENTRY_UNKNOWN,    /* cannot be read, or not ELF */
};
enum ts_entry ts_process_entry(pid_t pid);
/* Why in words: "static program: the agent cannot be loaded into it". */
const char *ts_entry_reason(enum ts_entry entry);
/* True where the process has a file of that inode mapped (the agent). */
bool ts_process_maps(pid_t pid, dev_t device, ino_t inode);

/*
 * Calls `found` for each descendant of `root` (children of all threads, and theirs), parents first.
 * Bounded: at most 65,536 processes.
 */
void ts_process_descendants(pid_t root, void (*found)(void *context, pid_t pid, pid_t parent),
			    void *context);

#endif
