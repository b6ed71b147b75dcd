/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to other processes: tries ptrace and process_vm_readv on a child and on an unrelated
 * process of the same user. The difference between the two shows the cause.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/checks.h"

#define YAMA_WEAKENS \
	"lets every program read the memory of all programs of the same user, until the next boot"

/* ---- diagnosis ---- */

static const char *container_ptrace(const struct ts_machine *machine)
{
	switch (machine->container) {
	case TS_CONTAINER_KUBERNETES:
		return "kubectl debug -it POD --target=CONTAINER --image=IMAGE --profile=general";
	case TS_CONTAINER_PODMAN:
		return "podman run --cap-add SYS_PTRACE IMAGE";
	default:
		return "docker run --cap-add SYS_PTRACE IMAGE";
	}
}

/*
 * Suggests a capability, which is narrower than the setting; the setting if that is not possible.
 */
static void suggest_yama(const struct ts_machine *machine, struct ts_finding *finding)
{
	if (machine->container) {
		ts_finding_fix(finding, "%s", container_ptrace(machine));
		ts_finding_note(
			finding,
			"run this on the host; lets the container's programs read each other's "
			"memory");
	} else {
		ts_finding_fix(finding, "sudo sysctl kernel.yama.ptrace_scope=0");
		ts_finding_note(
			finding, YAMA_WEAKENS
			"; safer: run tracesmith with sudo, or sudo setcap cap_sys_ptrace+ep "
			"$(command -v tracesmith)");
	}
}

bool ts_note_filter(const struct ts_machine *machine, struct ts_finding *finding)
{
	if (machine->container)
		return false;
	ts_finding_note(finding, "the filter was installed by the parent of this process, such as "
				 "SystemCallFilter= in a systemd unit");
	return true;
}

static bool is_filtered(void)
{
	/* Pid 0 is never valid: the kernel returns ESRCH, a filter EPERM. */
	errno = 0;
	return ptrace(PTRACE_SETOPTIONS, 0, NULL, NULL) < 0 && errno == EPERM;
}

static void classify_refused_child(const struct ts_machine *machine, int error,
				   struct ts_finding *finding)
{
	if (machine->yama >= 3) {
		ts_finding_set(finding, TS_CHECK_NO,
			       "Yama's ptrace_scope is %d: denied to everyone, including root",
			       machine->yama);
		ts_finding_fix(
			finding,
			"grep -rn ptrace_scope /etc/sysctl.conf /etc/sysctl.d /usr/lib/sysctl.d");
		ts_finding_note(
			finding,
			"%sthe kernel keeps the value 3 until the next boot: remove the line and "
			"reboot",
			machine->container ? "on the host; " : "");
	} else if (machine->yama == 2) {
		ts_finding_set(
			finding, TS_CHECK_NO,
			"Yama's ptrace_scope is 2 and CAP_SYS_PTRACE is missing: denied even for "
			"child processes");
		suggest_yama(machine, finding);
	} else if (is_filtered()) {
		ts_finding_set(finding, TS_CHECK_NO, "a seccomp filter%s denies the call: %s",
			       machine->container ? " of the container" : "", ts_errno_name(error));
		if (ts_note_filter(machine, finding))
			return;
		ts_finding_fix(finding, "%s", container_ptrace(machine));
		ts_finding_note(
			finding,
			"run this on the host; old versions of docker also need --security-opt "
			"seccomp=unconfined, which removes all filters");
	} else if (error == EPERM || error == EACCES) {
		ts_finding_set(
			finding, TS_CHECK_NO,
			"%s even for a child process: a security module (SELinux deny_ptrace, "
			"AppArmor) denies it",
			ts_errno_name(error));
		ts_finding_fix(finding, "cat /proc/self/attr/current /sys/kernel/security/lsm");
		ts_finding_note(finding, "shows the module");
	} else if (error == ENOSYS) {
		ts_finding_set(finding, TS_CHECK_NO, "this kernel does not have the system call");
	} else {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "cannot access a child process: %s",
			       ts_errno_name(error));
	}
}

void ts_classify_attach(const struct ts_machine *machine, int child_error, int other_error,
			struct ts_finding *finding)
{
	if (child_error) {
		classify_refused_child(machine, child_error, finding);
	} else if (!other_error) {
		ts_finding_set(finding, TS_CHECK_YES, "%s",
			       ts_machine_has(machine, TS_CAP_SYS_PTRACE)
				       ? "all processes"
				       : "all processes of this user");
	} else if (other_error == EPERM && machine->yama >= 1) {
		ts_finding_set(finding, TS_CHECK_LIMITED,
			       "only programs started by the tool: Yama's ptrace_scope is %d and "
			       "CAP_SYS_PTRACE is missing",
			       machine->yama);
		suggest_yama(machine, finding);
	} else if (other_error == EPERM) {
		ts_finding_set(
			finding, TS_CHECK_LIMITED,
			"only child processes; a security module denies other processes of this "
			"user (EPERM)");
		ts_finding_fix(finding, "cat /proc/self/attr/current /sys/kernel/security/lsm");
		ts_finding_note(finding, "shows the module");
	} else {
		ts_finding_set(finding, TS_CHECK_UNKNOWN,
			       "only child processes; other processes: %s",
			       ts_errno_name(other_error));
	}
}

void ts_classify_yama(const struct ts_machine *machine, struct ts_finding *finding)
{
	static const char *const meanings[] = {
		"all processes of the same user",
		"only descendants",
		"only with CAP_SYS_PTRACE",
		"nobody",
	};
	bool has_right = ts_machine_has(machine, TS_CAP_SYS_PTRACE) && !machine->user_namespace;

	if (machine->yama == TS_SETTING_NONE) {
		ts_finding_set(finding, TS_CHECK_ABSENT,
			       "this kernel has no Yama: ptrace is not restricted by it");
		return;
	}
	if (machine->yama < 0 || machine->yama > 3) {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "ptrace_scope is %d", machine->yama);
		return;
	}
	ts_finding_set(finding,
		       machine->yama == 0 || (machine->yama < 3 && has_right) ? TS_CHECK_YES
		       : machine->yama == 1                                   ? TS_CHECK_LIMITED
									      : TS_CHECK_NO,
		       "ptrace_scope is %d: %s%s", machine->yama, meanings[machine->yama],
		       has_right && machine->yama && machine->yama < 3 ? ", which is available"
								       : "");
	if (finding->state == TS_CHECK_YES)
		return;
	if (machine->yama == 3)
		classify_refused_child(machine, EPERM, finding);
	else
		suggest_yama(machine, finding);
}

/* ---- test run ---- */

/* Stops the process, waits for the stop and detaches. Returns 0 or an errno. */
static int try_seize(pid_t pid)
{
	int error = 0, status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return errno;
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) || waitpid(pid, &status, __WALL) != pid)
		error = errno;
	else if (!WIFSTOPPED(status))
		error = EIO;
	if (ptrace(PTRACE_DETACH, pid, NULL, NULL) && !error)
		error = errno;
	return error;
}

/* The child has the same word at the same address, except for what we change after the fork. */
static volatile uint64_t word = UINT64_C(0x7265616461626c65);

static int try_read(pid_t pid)
{
	uint64_t expected = word, got = 0;
	struct iovec local = { &got, sizeof(got) };
	struct iovec remote = { (void *)(uintptr_t)&word, sizeof(word) };
	ssize_t read_bytes;

	word = 0;
	read_bytes = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	word = expected;
	if (read_bytes < 0)
		return errno;
	return read_bytes == (ssize_t)sizeof(got) && got == expected ? 0 : EIO;
}

/* Returns an errno, or -1 if no process could be started. */
static int try_on(int (*attempt)(pid_t pid), bool is_orphan)
{
	pid_t pid = ts_sleeper_start(is_orphan);
	int error = pid ? attempt(pid) : -1;

	ts_sleeper_stop(pid, is_orphan);
	return error;
}

static bool try_both(int (*attempt)(pid_t pid), int *ret_child, int *ret_other,
		     struct ts_finding *finding)
{
	*ret_child = try_on(attempt, false);
	*ret_other = try_on(attempt, true);
	if (*ret_child >= 0 && *ret_other >= 0)
		return true;
	ts_finding_set(finding, TS_CHECK_UNKNOWN, "cannot create a process for the check");
	return false;
}

void ts_check_ptrace(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	int error = try_on(try_seize, false);

	if (error < 0)
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN,
			       "cannot create a process for the check");
	else if (error)
		classify_refused_child(machine, error, ret_finding);
	else
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "stopped a child process and let it continue");
}

void ts_check_attach(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	int child, other;

	if (try_both(try_seize, &child, &other, ret_finding))
		ts_classify_attach(machine, child, other, ret_finding);
}

void ts_check_read_memory(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	int child, other;

	if (try_both(try_read, &child, &other, ret_finding))
		ts_classify_attach(machine, child, other, ret_finding);
}

void ts_check_yama(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	ts_classify_yama(machine, ret_finding);
}
