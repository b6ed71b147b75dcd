/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why a process cannot be read, and how to fix it. Only looks at settings; `tracesmith
 * doctor` tries.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process_internal.h"
#include "python/reader/python_reader_internal.h"

#define CAP_SYS_PTRACE_BIT 19
#define RAISE "run tracesmith with sudo, or sudo setcap cap_sys_ptrace+ep $(command -v tracesmith)"

static bool has_capability(void)
{
	char status[4096];
	const char *line;

	if (!ts_proc_read(getpid(), "status", status, sizeof(status)))
		return false;
	line = ts_proc_status_line(status, "CapEff");
	return line && strtoull(line, NULL, 16) >> CAP_SYS_PTRACE_BIT & 1;
}

/* -1: not supported by this kernel. */
static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	char text[16] = "-1";

	if (!file)
		return -1;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return (int)strtol(text, NULL, 10);
}

int ts_python_access_denied(pid_t pid, struct ts_error *err)
{
	int scope = yama_scope();
	char path[32], name[64];
	struct stat status;

	ts_python_process_name(pid, name, sizeof(name));
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &status))
		return ts_error_set(err, TS_ENOTFOUND, "process %d has ended", (int)pid);
	if (scope >= 3)
		return ts_error_set(
			err, TS_ECAP,
			"process %d (%s) cannot be read: Yama's ptrace_scope is %d, which forbids it even to root until the next boot",
			(int)pid, name, scope);
	if (has_capability())
		return ts_error_set(
			err, TS_ECAP,
			"process %d (%s) cannot be read despite CAP_SYS_PTRACE: a seccomp filter, a security module or another user namespace denies it; start a container with --cap-add SYS_PTRACE; see tracesmith doctor",
			(int)pid, name);
	if (status.st_uid != geteuid())
		return ts_error_set(
			err, TS_ECAP,
			"process %d (%s) belongs to user %u and CAP_SYS_PTRACE is missing: run tracesmith as that user or with sudo",
			(int)pid, name, (unsigned int)status.st_uid);
	if (scope >= 1)
		return ts_error_set(
			err, TS_ECAP,
			"process %d (%s) cannot be read: Yama's ptrace_scope is %d and CAP_SYS_PTRACE is missing: start it with tracesmith, or sudo sysctl kernel.yama.ptrace_scope=0, or " RAISE,
			(int)pid, name, scope);
	return ts_error_set(
		err, TS_ECAP,
		"process %d (%s) cannot be read without CAP_SYS_PTRACE: it changed its user, belongs to a container, or a security module denies it: " RAISE
		"; in a container: docker run --cap-add SYS_PTRACE",
		(int)pid, name);
}
