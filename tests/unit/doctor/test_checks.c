/* SPDX-License-Identifier: Apache-2.0 */
/* Checks on this machine, compared with what the test finds itself. */
#include "unit/runner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/checks.h"

static char folder[] = "/tmp/tracesmith-test.XXXXXX";

/* A live directory for this test. */
static void make_folder(void)
{
	TS_CHECK(mkdtemp(folder) != NULL);
	setenv("TRACESMITH_LIVE_DIR", folder, 1);
}

static void remove_folder(void)
{
	TS_CHECK_INT(rmdir(folder), 0);
}

static struct ts_finding run_check(const char *id)
{
	size_t count;
	const struct ts_check *checks = ts_check_list(&count);
	struct ts_probe_options options = { .limit_ns = INT64_C(60000000000) };
	struct ts_probe probe = { 0 };
	struct ts_machine machine;

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(checks[i].id, id))
			probe.check = &checks[i];
	}
	TS_CHECK(probe.check != NULL);
	ts_machine_look(&machine);
	ts_probes_run(&probe, 1, &machine, &options);
	return probe.finding;
}

static void expect_state(const char *id, enum ts_check_state state)
{
	struct ts_finding finding = run_check(id);

	if (finding.state != state)
		ts_test_fail(__FILE__, __LINE__, "%s is '%s' (%s), not '%s'", id,
			     ts_check_state_name(finding.state), finding.text,
			     ts_check_state_name(state));
}

/*
 * Runs in its own process without leak detection, which starts threads and reads memory: some tests
 * forbid themselves both. Exit code 77 skips.
 */
static void run_apart(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	TS_CHECK(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ts_test_skip("it may not be done here");
	TS_CHECK_INT(status, 0);
}

static void become_nobody(void)
{
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		ts_test_skip("cannot become another user");
	/* Makes /proc/self ours again. */
	prctl(PR_SET_DUMPABLE, 1);
}

/* ---- recording ---- */

static unsigned int count_files(const char *path)
{
	DIR *files = opendir(path);
	struct dirent *entry;
	unsigned int count = 0;

	TS_CHECK(files != NULL);
	while ((entry = readdir(files)))
		count += entry->d_name[0] != '.';
	closedir(files);
	return count;
}

TS_TEST(agent_works_and_leaves_nothing)
{
	char path[4096];

	if (!getenv("TS_BUILD"))
		ts_test_skip("TS_BUILD does not say where the agent is");
	make_folder();
	snprintf(path, sizeof(path), "%s/libtracesmith-agent.so", getenv("TS_BUILD"));
	setenv("TRACESMITH_AGENT_PATH", path, 1);
	/* The user's own settings do not apply here. */
	setenv("TRACESMITH_OUT", "/no/such/folder/t.sbt", 1);
	expect_state("agent", TS_CHECK_YES);
	TS_CHECK_INT(count_files(folder), 0);
	remove_folder();
}

TS_TEST(agent_is_missing)
{
	struct ts_finding finding;

	make_folder();
	setenv("TRACESMITH_AGENT_PATH", "/no/such/agent.so", 1);
	finding = run_check("agent");
	TS_CHECK_INT(finding.state, TS_CHECK_NO);
	TS_CHECK_STR(finding.text, "agent '/no/such/agent.so' does not exist");
	remove_folder();
}

TS_TEST(live_directory_of_others)
{
	make_folder();
	expect_state("live_directory", TS_CHECK_YES);
	TS_CHECK_INT(count_files(folder), 0);
	TS_CHECK_INT(chmod(folder, 0755), 0);
	expect_state("live_directory", TS_CHECK_NO);
	TS_CHECK(strstr(run_check("live_directory").fix, "chmod 700") != NULL);
	setenv("TRACESMITH_LIVE_DIR", "/proc/no/such", 1);
	expect_state("live_directory", TS_CHECK_NO);
	TS_CHECK_STR(run_check("live_directory").fix, "unset TRACESMITH_LIVE_DIR");
	remove_folder();
}

/* ftruncate() would accept all of these. */
TS_TEST(shared_memory_by_size)
{
	static const struct {
		const char *size;
		enum ts_check_state state;
	} cases[] = { { "size=300m", TS_CHECK_YES },
		      { "size=64m", TS_CHECK_LIMITED },
		      { "size=2m", TS_CHECK_LIMITED },
		      { "size=64k", TS_CHECK_NO } };

	make_folder();
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		remove_folder();
		ts_test_skip("nothing may be mounted here");
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TS_CHECK_INT(mount("tmpfs", folder, "tmpfs", 0, cases[i].size), 0);
		expect_state("shared_memory", cases[i].state);
		TS_CHECK(cases[i].state == TS_CHECK_YES || run_check("shared_memory").fix[0]);
		TS_CHECK_INT(count_files(folder), 0);
		TS_CHECK_INT(umount(folder), 0);
	}
	TS_CHECK_INT(mount("tmpfs", folder, "tmpfs", MS_RDONLY, "size=300m"), 0);
	expect_state("shared_memory", TS_CHECK_NO);
	TS_CHECK_INT(umount(folder), 0);
	remove_folder();
}

TS_TEST(open_files_by_limit)
{
	struct rlimit limit = { 64, 64 };

	TS_CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	expect_state("open_files", TS_CHECK_LIMITED);
	TS_CHECK(strstr(run_check("open_files").text, "up to 64,") != NULL);
}

TS_TEST(proc_is_readable)
{
	struct ts_finding finding = run_check("proc");

	TS_CHECK(finding.state == TS_CHECK_YES || finding.state == TS_CHECK_LIMITED);
	TS_CHECK_INT(finding.state == TS_CHECK_YES, access("/proc/1/stat", F_OK) == 0);
}

/* Nothing of /proc is visible. */
TS_TEST(proc_is_denied)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/proc", "tmpfs", 0, NULL))
		ts_test_skip("nothing may be mounted here");
	expect_state("proc", TS_CHECK_NO);
	TS_CHECK(umount2("/proc", MNT_DETACH) == 0);
}

/* Runs as the first process of a pid namespace with its own /proc; passes on its exit code. */
static void run_in_namespace(const char *proc_options, void (*body)(void))
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		_exit(77);
	pid = fork();
	if (pid == 0) {
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("proc", "/proc", "proc", 0, proc_options))
			_exit(77);
		body();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* pid 1 belongs to root; below, the test runs as another user. */
static void expect_hidden(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct ts_finding finding;

		become_nobody();
		finding = run_check("proc");
		_exit(finding.state == TS_CHECK_LIMITED && strstr(finding.text, "hidepid") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	_exit(WEXITSTATUS(status));
}

static void look_at_hidden(void)
{
	run_in_namespace("hidepid=2", expect_hidden);
}

TS_TEST(proc_is_hidden)
{
	if (geteuid() != 0)
		ts_test_skip("only root can hide processes");
	run_apart(look_at_hidden);
}

/* ---- the kernel ---- */

static int try_perf(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
	struct perf_event_attr attributes = { .type = type,
					      .config = config,
					      .size = sizeof(attributes),
					      .exclude_kernel = pid == 0,
					      .exclude_hv = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attributes, pid, cpu, -1, 0);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void expect_kernel_as_tried(void)
{
	struct ts_finding process = run_check("perf"), machine = run_check("perf_system");
	struct ts_finding hardware = run_check("perf_hardware");
	int error = try_perf(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1);

	TS_CHECK_INT(process.state == TS_CHECK_YES || process.state == TS_CHECK_LIMITED,
		     !try_perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, -1));
	TS_CHECK_INT(machine.state == TS_CHECK_YES,
		     !try_perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0));
	TS_CHECK_INT(hardware.state == TS_CHECK_YES || hardware.state == TS_CHECK_LIMITED, !error);
	TS_CHECK_INT(hardware.state == TS_CHECK_ABSENT, error == ENOENT);
}

TS_TEST(perf_as_tried)
{
	expect_kernel_as_tried();
}

TS_TEST(perf_as_tried_without_rights)
{
	become_nobody();
	expect_kernel_as_tried();
	/* No process may load tracing programs. */
	expect_state("ebpf", TS_CHECK_NO);
	TS_CHECK(run_check("uprobes").state != TS_CHECK_YES);
}

TS_TEST(btf_as_there)
{
	TS_CHECK_INT(run_check("btf").state == TS_CHECK_YES,
		     access("/sys/kernel/btf/vmlinux", R_OK) == 0);
}

TS_TEST(pressure_as_there)
{
	FILE *file = fopen("/proc/pressure/cpu", "r");
	char line[16] = "";
	bool has_pressure = file && fgets(line, sizeof(line), file) && !strncmp(line, "some ", 5);

	if (file)
		fclose(file);
	TS_CHECK_INT(run_check("pressure").state == TS_CHECK_YES, has_pressure);
}

/* As containers do: EPERM before the kernel looks at the arguments. */
static void refuse_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static void expect_filters(void)
{
	static const char *const ids[] = { "ebpf",   "perf",   "perf_system", "perf_hardware",
					   "ptrace", "attach", "read_memory" };

	refuse_calls();
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct ts_finding finding = run_check(ids[i]);

		if (finding.state != TS_CHECK_NO || !strstr(finding.text, "seccomp filter"))
			ts_test_fail(__FILE__, __LINE__, "%s: %s: %s", ids[i],
				     ts_check_state_name(finding.state), finding.text);
		TS_CHECK(finding.fix[0] || strstr(finding.note, "filter"));
	}
	TS_CHECK(run_check("python").state != TS_CHECK_YES);
}

TS_TEST(filters_are_named)
{
	run_apart(expect_filters);
}

/* ---- other processes ---- */

TS_TEST(ptrace_as_tried)
{
	int status, error = 0;
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		error = errno;
	kill(pid, SIGKILL);
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	TS_CHECK_INT(run_check("ptrace").state == TS_CHECK_YES, error == 0);
	TS_CHECK_INT(run_check("read_memory").state == TS_CHECK_NO, error != 0);
	/* Other processes are never easier to reach than children. */
	if (run_check("attach").state == TS_CHECK_YES)
		expect_state("ptrace", TS_CHECK_YES);
}

TS_TEST(python_in_the_path)
{
	struct ts_finding finding = run_check("python");
	FILE *output =
		popen("python3 -c 'import sys; print(\"%d.%d.%d\" % sys.version_info[:3])'", "r");
	char version[32] = "";

	TS_CHECK(output && fgets(version, sizeof(version), output));
	pclose(output);
	version[strcspn(version, "\n")] = '\0';
	TS_CHECK(strstr(finding.text, version) != NULL);
	setenv("PATH", "/no/such/folder", 1);
	finding = run_check("python");
	TS_CHECK(finding.state == TS_CHECK_ABSENT || finding.state == TS_CHECK_UNKNOWN);
	TS_CHECK(strstr(finding.text, "no python3 in PATH") != NULL);
}
