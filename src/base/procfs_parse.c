/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for files of /proc. */
#include <string.h>

#include "base/procfs_parse.h"

/* ---- of a process ---- */

bool ts_procfs_stat_parse(const char *text, struct ts_procfs_stat *ret_stat)
{
	/*
	 * Fields from 4 on. The name in field 2 may contain anything, so parse after the last ')'.
	 */
	enum { FIRST = 4, LAST = 22 };
	uint64_t fields[LAST + 1];
	const char *at = strrchr(text, ')');

	if (!at || at[1] != ' ' || at[2] <= ' ')
		return false;
	ret_stat->state = at[2];
	at += 3;
	for (int i = FIRST; i <= LAST; i++) {
		/* Groups, terminals and priorities can be negative; they are not needed. */
		while (*at == ' ' || *at == '-')
			at++;
		at = ts_procfs_scan_number(at, &fields[i]);
		if (!at)
			return false;
	}
	ret_stat->parent = fields[4];
	ret_stat->flags = fields[9];
	ret_stat->minor_faults = fields[10];
	ret_stat->major_faults = fields[12];
	ret_stat->user_ticks = fields[14];
	ret_stat->system_ticks = fields[15];
	ret_stat->child_user_ticks = fields[16];
	ret_stat->child_system_ticks = fields[17];
	ret_stat->threads = fields[20];
	ret_stat->start_time = fields[22];
	return ret_stat->start_time != TS_NO_VALUE;
}

bool ts_procfs_stat_has_exited(const struct ts_procfs_stat *stat)
{
	return stat->state == 'X' || stat->state == 'x' ||
	       (stat->state == 'Z' && stat->threads <= 1);
}

void ts_procfs_statm_parse(const char *text, struct ts_procfs_statm *ret_statm)
{
	uint64_t fields[3];

	ts_procfs_scan_numbers(text, fields, TS_ARRAY_SIZE(fields));
	ret_statm->virtual_pages = fields[0];
	ret_statm->resident_pages = fields[1];
	ret_statm->shared_pages = fields[2];
}

void ts_procfs_io_parse(const char *text, struct ts_procfs_io *ret_io)
{
	static const char *const keys[] = { "rchar:", "wchar:", "read_bytes:", "write_bytes:" };
	uint64_t values[TS_ARRAY_SIZE(keys)];

	ts_procfs_scan_keys(text, keys, values, TS_ARRAY_SIZE(keys));
	ret_io->call_read = values[0];
	ret_io->call_written = values[1];
	ret_io->disk_read = values[2];
	ret_io->disk_written = values[3];
}

void ts_procfs_status_parse(const char *text, struct ts_switches *ret_switches)
{
	static const char *const keys[] = { "voluntary_ctxt_switches:",
					    "nonvoluntary_ctxt_switches:" };
	uint64_t values[TS_ARRAY_SIZE(keys)];

	ts_procfs_scan_keys(text, keys, values, TS_ARRAY_SIZE(keys));
	ret_switches->voluntary = values[0];
	ret_switches->involuntary = values[1];
}

/* ---- of the machine ---- */

void ts_procfs_system_parse(const char *text, struct ts_procfs_system *ret_system)
{
	static const char *const keys[] = { "ctxt", "procs_running", "procs_blocked" };
	uint64_t values[TS_ARRAY_SIZE(keys)];

	ts_procfs_scan_numbers(strncmp(text, "cpu ", 4) == 0 ? text + 4 : NULL, ret_system->ticks,
			       TS_CPU_MODES);
	ts_procfs_scan_keys(text, keys, values, TS_ARRAY_SIZE(keys));
	ret_system->switches = values[0];
	ret_system->running = values[1];
	ret_system->blocked = values[2];
}

void ts_procfs_meminfo_parse(const char *text, struct ts_procfs_meminfo *ret_memory)
{
	static const char *const keys[] = { "MemTotal:", "MemAvailable:", "SwapTotal:",
					    "SwapFree:" };
	uint64_t values[TS_ARRAY_SIZE(keys)];

	ts_procfs_scan_keys(text, keys, values, TS_ARRAY_SIZE(keys));
	ret_memory->total = values[0];
	ret_memory->available = values[1];
	ret_memory->swap_total = values[2];
	ret_memory->swap_free = values[3];
}

void ts_procfs_vmstat_parse(const char *text, struct ts_procfs_vmstat *ret_vmstat)
{
	static const char *const keys[] = { "pgfault", "pgmajfault", "pswpin", "pswpout" };
	uint64_t values[TS_ARRAY_SIZE(keys)];

	ts_procfs_scan_keys(text, keys, values, TS_ARRAY_SIZE(keys));
	ret_vmstat->faults = values[0];
	ret_vmstat->major_faults = values[1];
	ret_vmstat->swapped_in = values[2];
	ret_vmstat->swapped_out = values[3];
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static uint64_t pressure_total(const char *line)
{
	static const char key[] = " total=";
	const char *total = memmem(line, strcspn(line, "\n"), key, sizeof(key) - 1);
	uint64_t number = TS_NO_VALUE;

	if (total)
		ts_procfs_scan_numbers(total + sizeof(key) - 1, &number, 1);
	return number;
}

void ts_procfs_pressure_parse(const char *text, struct ts_procfs_pressure *ret_pressure)
{
	ret_pressure->some = ret_pressure->full = TS_NO_VALUE;
	for (const char *line = text; line; line = ts_procfs_next_line(line)) {
		if (ret_pressure->some == TS_NO_VALUE && strncmp(line, "some ", 5) == 0)
			ret_pressure->some = pressure_total(line);
		if (ret_pressure->full == TS_NO_VALUE && strncmp(line, "full ", 5) == 0)
			ret_pressure->full = pressure_total(line);
	}
}

/* "  eth0: ", 8 numbers received and 8 sent, bytes first. */
static bool parse_interface(const char *line, struct ts_procfs_traffic *ret_traffic)
{
	enum { RECEIVED = 0, SENT = 8 };
	uint64_t fields[SENT + 1];

	line += strspn(line, " ");
	ret_traffic->name = line;
	ret_traffic->name_length = strcspn(line, ": \n");
	if (ret_traffic->name_length == 0 || line[ret_traffic->name_length] != ':')
		return false;
	ts_procfs_scan_numbers(line + ret_traffic->name_length + 1, fields, TS_ARRAY_SIZE(fields));
	ret_traffic->in = fields[RECEIVED];
	ret_traffic->out = fields[SENT];
	return fields[RECEIVED] != TS_NO_VALUE && fields[SENT] != TS_NO_VALUE;
}

/* "   8       0 sda ", then numbers: reads, merged, sectors, ms, writes, merged, sectors, ... */
static bool parse_disk(const char *line, struct ts_procfs_traffic *ret_traffic)
{
	enum { READ = 2, WRITTEN = 6 };
	uint64_t fields[WRITTEN + 1], number;
	const char *at = ts_procfs_scan_number(line, &number);

	at = at ? ts_procfs_scan_number(at, &number) : NULL;
	if (!at || *at != ' ')
		return false;
	at += strspn(at, " ");
	ret_traffic->name = at;
	ret_traffic->name_length = strcspn(at, " \n");
	if (ret_traffic->name_length == 0)
		return false;
	ts_procfs_scan_numbers(at + ret_traffic->name_length, fields, TS_ARRAY_SIZE(fields));
	ret_traffic->in = fields[READ];
	ret_traffic->out = fields[WRITTEN];
	return fields[READ] != TS_NO_VALUE && fields[WRITTEN] != TS_NO_VALUE;
}

bool ts_procfs_network_next(const char **cursor, struct ts_procfs_traffic *ret_traffic)
{
	while (*cursor) {
		const char *line = *cursor;

		*cursor = ts_procfs_next_line(line);
		if (parse_interface(line, ret_traffic))
			return true;
	}
	return false;
}

bool ts_procfs_disk_next(const char **cursor, struct ts_procfs_traffic *ret_traffic)
{
	while (*cursor) {
		const char *line = *cursor;

		*cursor = ts_procfs_next_line(line);
		if (parse_disk(line, ret_traffic))
			return true;
	}
	return false;
}
