/* SPDX-License-Identifier: Apache-2.0 */
/* The host: event clock, limits, pressure, accounting, and the features of this build. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include "code/dwarf.h"
#include "doctor/checks.h"
#include "live/local/counter.h"
#include "sample/metrics/host/taskstats.h"
#include "tracesmith_config.h"

#ifdef TS_HAVE_SQLITE
#include <sqlite3.h>
#endif
#ifdef TS_HAVE_ZLIB
#include <zlib.h>
#endif

/* The recorder needs a few descriptors per target. */
#define FILES_ENOUGH 1024

void ts_check_clock(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char source[64] = "unknown";

	ts_machine_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
			sizeof(source));
	if (ts_counter_kind() == TS_LIVE_CLOCK_COUNTER)
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "the CPU's time stamp counter runs at a constant rate (kernel clock "
			       "source: %s)",
			       source);
	else
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "the CPU's time stamp counter cannot be used; events use the system "
			       "clock, which is slower (%s)",
			       source);
}

void ts_check_open_files(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit)) {
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "getrlimit: %s",
			       ts_errno_name(errno));
		return;
	}
	ts_finding_set(ret_finding,
		       limit.rlim_cur >= FILES_ENOUGH ? TS_CHECK_YES : TS_CHECK_LIMITED,
		       "up to %llu", (unsigned long long)limit.rlim_cur);
	if (limit.rlim_cur >= FILES_ENOUGH)
		return;
	ts_finding_set(ret_finding, TS_CHECK_LIMITED,
		       "up to %llu, enough for about %llu "
		       "processes",
		       (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_cur / 8);
	if (limit.rlim_max >= FILES_ENOUGH)
		ts_finding_fix(
			ret_finding, "ulimit -n %llu",
			(unsigned long long)(limit.rlim_max > 65536 ? 65536 : limit.rlim_max));
	else
		ts_finding_fix(ret_finding, "sudo prlimit --pid $$ --nofile=65536:65536");
}

/* ---- cgroups ---- */

/* Our cgroup v2 below /sys/fs/cgroup; false if there is none. */
static bool self_cgroup(char *path, size_t bytes)
{
	char text[4096], *line;

	if (!ts_machine_read("/proc/self/cgroup", text, sizeof(text)))
		return false;
	line = strncmp(text, "0::", 3) ? strstr(text, "\n0::") : text;
	if (!line)
		return false;
	line += strcspn(line, ":") + 2;
	line[strcspn(line, "\n")] = '\0';
	return snprintf(path, bytes, "/sys/fs/cgroup%s", line) < (int)bytes;
}

/* Parses "max 100000" or "50000 100000". True if there is a limit, given in processors. */
static bool limit_of(const char *folder, double *ret_processors)
{
	char path[4200], text[64], *quota_end, *period_end;
	double quota, period;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (!ts_machine_read(path, text, sizeof(text)))
		return false;
	quota = strtod(text, &quota_end);
	period = strtod(quota_end, &period_end);
	if (quota_end == text || period_end == quota_end || period <= 0)
		return false;
	*ret_processors = quota / period;
	return true;
}

/* cgroup v1, if the controller has its own hierarchy. */
static bool limit_of_version_1(double *ret_processors)
{
	int quota = ts_machine_setting("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
	int period = ts_machine_setting("/sys/fs/cgroup/cpu/cpu.cfs_period_us");

	if (quota <= 0 || period <= 0)
		return false;
	*ret_processors = (double)quota / period;
	return true;
}

/* The lowest limit of our cgroup and its ancestors. */
static bool find_limit(double *ret_processors)
{
	char path[4096];
	bool found = limit_of_version_1(ret_processors);
	double processors;

	if (!self_cgroup(path, sizeof(path)))
		return found;
	while (strlen(path) >= strlen("/sys/fs/cgroup")) {
		if (limit_of(path, &processors) && (!found || processors < *ret_processors)) {
			*ret_processors = processors;
			found = true;
		}
		*strrchr(path, '/') = '\0';
	}
	return found;
}

void ts_check_cpu_limit(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	double processors;

	if (!find_limit(&processors) || processors >= (double)online)
		ts_finding_set(ret_finding, TS_CHECK_YES, "%ld processor%s, no limit", online,
			       online == 1 ? "" : "s");
	else
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "%.3g of %ld processors (cgroup limit): programs and recorder share "
			       "them, and gaps in a trace may be caused by throttling",
			       processors, online);
}

/* ---- metrics ---- */

void ts_check_pressure(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char text[256];

	if (ts_machine_read("/proc/pressure/cpu", text, sizeof(text)) && strstr(text, "avg10=")) {
		ts_finding_set(ret_finding, TS_CHECK_YES, "/proc/pressure is available");
		return;
	}
	if (errno == ENOENT || errno == EOPNOTSUPP) {
		ts_finding_set(ret_finding, TS_CHECK_ABSENT,
			       "this kernel does not report pressure (%s)", ts_errno_name(errno));
		ts_finding_fix(
			ret_finding,
			"sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&psi=1 /' /etc/default/grub && sudo update-grub");
		ts_finding_note(ret_finding, "%sthen reboot; needs a kernel with CONFIG_PSI",
				machine->container ? "on the host; " : "");
	} else {
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "/proc/pressure/cpu: %s",
			       ts_errno_name(errno));
	}
}

void ts_check_taskstats(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	struct ts_switches switches;
	int error = -ts_taskstats_read(getpid(), &switches);

	if (!error)
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "the kernel reports context switches per process");
	else if (error == EPERM)
		ts_finding_set(
			ret_finding, TS_CHECK_LIMITED,
			"without CAP_NET_ADMIN, context switches are read per thread, once a "
			"second");
	else if (error == ENOENT || error == EOPNOTSUPP || error == EPROTONOSUPPORT)
		ts_finding_set(
			ret_finding, TS_CHECK_LIMITED,
			"this kernel has no taskstats (%s): context switches are read per thread",
			ts_errno_name(error));
	else
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "taskstats: %s",
			       ts_errno_name(error));
}

/* ---- the build ---- */

void ts_check_build(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
#if defined(TS_HAVE_ZLIB) && defined(TS_HAVE_SQLITE)
	ts_finding_set(ret_finding, TS_CHECK_YES, "zstd %s, zlib %s, SQLite %s",
		       ZSTD_versionString(), zlibVersion(), sqlite3_libversion());
#elif defined(TS_HAVE_ZLIB)
	ts_finding_set(
		ret_finding, TS_CHECK_LIMITED,
		"zstd %s, zlib %s; no SQLite: databases of Nsight Systems and rocprofv3 cannot be imported",
		ZSTD_versionString(), zlibVersion());
	ts_finding_fix(ret_finding, "sudo apt install libsqlite3-dev");
	ts_finding_note(ret_finding, "then rebuild");
#else
	ts_finding_set(ret_finding, TS_CHECK_LIMITED, "zstd %s; no zlib: .gz files cannot be read",
		       ZSTD_versionString());
	ts_finding_fix(ret_finding, "sudo apt install zlib1g-dev");
	ts_finding_note(ret_finding, "then rebuild");
#endif
	if (!ts_dwarf_is_available())
		ts_finding_note(
			ret_finding,
			"no libdw: native frames get functions, but no source lines (apt install libdw-dev, "
			"then build again)");
}
