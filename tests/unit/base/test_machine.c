/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about this machine, compared with what the test finds itself. */
#include "base/machine.h"

#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/runner.h"

static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	TS_CHECK_INT(syscall(SYS_capget, &header, data), 0);
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

TS_TEST(machine_is_as_the_kernel_says)
{
	struct ts_machine machine;
	struct utsname name;

	ts_machine_look(&machine);
	uname(&name);
	TS_CHECK_STR(machine.kernel, name.release);
	TS_CHECK_STR(machine.architecture, name.machine);
	TS_CHECK_INT(machine.uid, geteuid());
	TS_CHECK_INT(machine.capabilities, effective_capabilities());
	TS_CHECK_INT(machine.no_new_privileges, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	TS_CHECK_INT(machine.yama == TS_SETTING_NONE,
		     access("/proc/sys/kernel/yama/ptrace_scope", F_OK) != 0);
	TS_CHECK_INT(machine.perf_paranoid == TS_SETTING_NONE,
		     access("/proc/sys/kernel/perf_event_paranoid", F_OK) != 0);
}

TS_TEST(machine_without_rights)
{
	struct ts_machine machine;

	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		ts_test_skip("cannot become another user");
	/* Makes /proc/self ours again. */
	prctl(PR_SET_DUMPABLE, 1);
	TS_CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ts_machine_look(&machine);
	TS_CHECK_INT(machine.capabilities, 0);
	TS_CHECK(machine.no_new_privileges);
	TS_CHECK(!ts_machine_has(&machine, TS_CAP_SYS_PTRACE));
}

/* Runs in a pid namespace with its own /proc. Exit code 77: not permitted here. */
static void look_from_inside(void)
{
	struct ts_machine machine;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL))
		_exit(77);
	ts_machine_look(&machine);
	_exit(machine.private_pid_namespace && machine.container &&
			      strstr(machine.container_signs, "pid namespace")
		      ? 0
		      : 1);
}

static int run_in_namespace(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		return 77;
	pid = fork();
	if (pid == 0)
		look_from_inside();
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A pid namespace is the one sure sign of a container. */
TS_TEST(container_by_its_namespace)
{
	int status;
	pid_t pid = fork();

	TS_CHECK(pid >= 0);
	if (pid == 0)
		_exit(run_in_namespace());
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ts_test_skip("it may not be done here");
	TS_CHECK_INT(status, 0);
}
