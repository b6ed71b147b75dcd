/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes by pid, from /proc: start time, liveness, namespaces, names, descendants. A process may
 * disappear at any time, which is not an error.
 */
#ifndef TS_BASE_PROCESS_H
#define TS_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Start time (field 22 of /proc/PID/stat); 0: no such process. A zombie counts as gone unless other
 * threads of it still run.
 */
uint64_t ts_process_start_time(pid_t pid);
bool ts_process_lives(pid_t pid, uint64_t start_time); /* and started at that time */
/* Where the stack of its program begins, which exec() changes; 0: unknown. */
uint64_t ts_process_stack(pid_t pid);
pid_t ts_process_parent(pid_t pid);
uint64_t ts_process_namespace(pid_t pid); /* inode of ns/pid; 0: unreadable */
pid_t ts_process_inner_pid(pid_t pid);    /* last of NSpid */
/* comm, and the command line as NUL-separated arguments; truncated to fit, NUL-terminated. */
void ts_process_name(pid_t pid, char *buffer, size_t bytes);
size_t ts_process_command(pid_t pid, char *buffer, size_t bytes);

enum ts_preload { /* whether the agent can be loaded */
		  TS_PRELOAD_POSSIBLE,
		  TS_PRELOAD_STATIC,     /* no program interpreter: static, most Go programs */
		  TS_PRELOAD_SECURE,     /* setuid, setgid, or file capabilities */
		  TS_PRELOAD_OTHER_ARCH, /* ELF of another architecture or word size */
		  TS_PRELOAD_UNKNOWN,    /* unreadable, or not ELF */
};
enum ts_preload ts_process_preload(pid_t pid);
/* A reason for users: "static program: the agent cannot be loaded into it". */
const char *ts_preload_reason(enum ts_preload preload);
/* Whether the process has a file with this inode mapped (the agent). */
bool ts_process_maps(pid_t pid, dev_t device, ino_t inode);

/*
 * Calls `found` for each descendant of `root` (children of all threads, recursively), parents
 * first. At most 65,536 processes.
 */
void ts_process_descendants(pid_t root, void (*found)(void *context, pid_t pid, pid_t parent),
			    void *context);

#endif
