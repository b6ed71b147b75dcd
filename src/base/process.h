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
 * False: no such process. A zombie counts as gone unless other threads of it still run.
 * *ret_start_time is field 22 of /proc/PID/stat, which is 0 for a process that exists since the
 * machine started: pid 1 of some containers. `ret_start_time` may be NULL.
 */
bool ts_process_exists(pid_t pid, uint64_t *ret_start_time);
/* The same field, to identify a process; 0 if there is none, too. */
uint64_t ts_process_start_time(pid_t pid);
uint64_t ts_process_any_start_time(pid_t pid);         /* of a zombie, too */
bool ts_process_lives(pid_t pid, uint64_t start_time); /* and started at that time */
bool ts_process_is_stopped(pid_t pid);                 /* by a signal or a debugger */
/* Where the stack of its program begins, which exec() changes; 0: unknown. */
uint64_t ts_process_stack(pid_t pid);
pid_t ts_process_parent(pid_t pid);
uint64_t ts_process_namespace(pid_t pid); /* inode of ns/pid; 0: unreadable */
pid_t ts_process_inner_pid(pid_t pid);    /* last of NSpid */
/* The same user in the process's user namespace; itself if that namespace does not have it. */
uid_t ts_process_inner_uid(pid_t pid, uid_t uid);
bool ts_process_user(pid_t pid, uid_t *ret_uid); /* effective user; false: no such process */
/*
 * True if the process is the user's: it runs as the user, or the user is root, of this system or of
 * the process's user namespace. So a process that has dropped root's privileges is still root's.
 */
bool ts_process_is_of(pid_t pid, uid_t uid);
/* comm, and the command line as NUL-separated arguments; truncated to fit, NUL-terminated. */
void ts_process_name(pid_t pid, char *buffer, size_t bytes);
size_t ts_process_command(pid_t pid, char *buffer, size_t bytes);

struct ts_rank;
/* Its rank in a distributed job, by the environment that it was started with; false: none. */
bool ts_process_rank(pid_t pid, struct ts_rank *ret_rank);

enum ts_preload { /* whether the agent can be loaded */
		  TS_PRELOAD_POSSIBLE,
		  TS_PRELOAD_STATIC,     /* no program interpreter: static, most Go programs */
		  TS_PRELOAD_SECURE,     /* setuid, setgid, or file capabilities */
		  TS_PRELOAD_OTHER_ARCH, /* ELF of another architecture or word size */
		  TS_PRELOAD_UNKNOWN,    /* unreadable, or not ELF */
};
enum ts_preload ts_process_preload(pid_t pid);
/* A reason for users: "static program: the agent cannot be loaded into it"; and what to do. */
const char *ts_preload_reason(enum ts_preload preload);
const char *ts_preload_advice(enum ts_preload preload);
/* Whether the process has a file with this inode mapped (the agent). */
bool ts_process_maps(pid_t pid, dev_t device, ino_t inode);

/*
 * The last pid given to a new process or thread of our namespace; 0: unknown. As long as it is the
 * same, there are no new processes.
 */
pid_t ts_process_newest(void);
/*
 * Calls `found` for each descendant of `root` (children of all threads, recursively), parents
 * first. At most 65,536 processes.
 */
void ts_process_descendants(pid_t root, void (*found)(void *context, pid_t pid, pid_t parent),
			    void *context);

#endif
