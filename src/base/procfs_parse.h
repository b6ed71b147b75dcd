/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of the /proc files that metrics come from. Missing values are TS_NO_VALUE: older kernels
 * have fewer. Units are the kernel's (ticks, pages, KiB, sectors).
 */
#ifndef TS_BASE_PROCFS_PARSE_H
#define TS_BASE_PROCFS_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/procfs.h"

/* ---- of a process ---- */

/* /proc/PID/stat; totals over its threads, including those that exited. */
struct ts_procfs_stat {
	char state;
	uint64_t parent;
	uint64_t flags; /* the kernel's PF_* flags */
	uint64_t minor_faults, major_faults;
	uint64_t user_ticks, system_ticks;
	uint64_t child_user_ticks, child_system_ticks; /* children that were waited for */
	uint64_t threads;
	uint64_t start_time;
};

/* False if the text is malformed or ends before the start time. */
bool ts_procfs_stat_parse(const char *text, struct ts_procfs_stat *ret_stat);

/* Also true for a thread group leader that exited while its other threads run. */
bool ts_procfs_stat_has_exited(const struct ts_procfs_stat *stat);

/* /proc/PID/statm, in pages. */
struct ts_procfs_statm {
	uint64_t virtual_pages, resident_pages, shared_pages;
};
void ts_procfs_statm_parse(const char *text, struct ts_procfs_statm *ret_statm);

/* /proc/PID/io, in bytes. */
struct ts_procfs_io {
	uint64_t call_read, call_written; /* by system calls, wherever the data came from */
	uint64_t disk_read, disk_written; /* at the storage layer */
};
void ts_procfs_io_parse(const char *text, struct ts_procfs_io *ret_io);

/*
 * Context switches: /proc/PID/task/TID/status for one thread; totals of a process come from
 * elsewhere.
 */
struct ts_switches {
	uint64_t voluntary, involuntary;
};
void ts_procfs_status_parse(const char *text, struct ts_switches *ret_switches);

/* ---- of the machine ---- */

/* First line of /proc/stat, all CPUs, in ticks. Guest time is already included in user and nice. */
enum ts_cpu_mode {
	TS_CPU_USER,
	TS_CPU_NICE,
	TS_CPU_SYSTEM,
	TS_CPU_IDLE,
	TS_CPU_IOWAIT,
	TS_CPU_IRQ,
	TS_CPU_SOFTIRQ,
	TS_CPU_STEAL,
	TS_CPU_MODES,
};

struct ts_procfs_system {
	uint64_t ticks[TS_CPU_MODES];
	uint64_t switches;
	uint64_t running, blocked; /* tasks */
};
void ts_procfs_system_parse(const char *text, struct ts_procfs_system *ret_system);

/* /proc/meminfo, in KiB. */
struct ts_procfs_meminfo {
	uint64_t total, available;
	uint64_t swap_total, swap_free;
};
void ts_procfs_meminfo_parse(const char *text, struct ts_procfs_meminfo *ret_memory);

/* /proc/vmstat: events since boot; swap counts in pages. */
struct ts_procfs_vmstat {
	uint64_t faults, major_faults; /* all faults, and the major ones */
	uint64_t swapped_in, swapped_out;
};
void ts_procfs_vmstat_parse(const char *text, struct ts_procfs_vmstat *ret_vmstat);

/* /proc/pressure/NAME, in microseconds. */
struct ts_procfs_pressure {
	uint64_t some, full;
};
void ts_procfs_pressure_parse(const char *text, struct ts_procfs_pressure *ret_pressure);

/* Bytes of a network interface (/proc/net/dev), or sectors of a disk (/proc/diskstats). */
struct ts_procfs_traffic {
	const char *name; /* not NUL-terminated */
	size_t name_length;
	uint64_t in, out; /* received or read; sent or written */
};

/* The next interface or disk after *cursor, which starts at the text; other lines are skipped. */
bool ts_procfs_network_next(const char **cursor, struct ts_procfs_traffic *ret_traffic);
bool ts_procfs_disk_next(const char **cursor, struct ts_procfs_traffic *ret_traffic);

#endif
