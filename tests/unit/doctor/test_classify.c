/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreting errors of machines that are not at hand: Yama, Debian and Ubuntu kernels,
 * containers.
 */
#include "unit/runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor/checks.h"

#define BIT(capability) (UINT64_C(1) << (capability))

/* An ordinary user on an ordinary machine. */
static struct ts_machine user(void)
{
	return (struct ts_machine){
		.uid = 1000, .yama = TS_SETTING_NONE, .perf_paranoid = 2, .bpf_disabled = 2
	};
}

static void expect(const struct ts_finding *finding, enum ts_check_state state, const char *why,
		   const char *fix)
{
	if (finding->state != state)
		ts_test_fail(__FILE__, __LINE__, "%s: '%s'", ts_check_state_name(finding->state),
			     finding->text);
	if (!strstr(finding->text, why))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", finding->text, why);
	if (fix ? !strstr(finding->fix, fix) : finding->fix[0] != '\0')
		ts_test_fail(__FILE__, __LINE__, "'%s' is not '%s'", finding->fix, fix ? fix : "");
}

/* A system-wide change comes with its risk and a narrower alternative. */
static void expect_warning(const struct ts_finding *finding)
{
	TS_CHECK(strstr(finding->note, "lets ") || strstr(finding->note, "rights") ||
		 strstr(finding->note, "shows "));
}

/* ---- Yama ---- */

static struct ts_finding attach(struct ts_machine machine, int child, int other)
{
	struct ts_finding finding = { 0 };

	ts_classify_attach(&machine, child, other, &finding);
	return finding;
}

TS_TEST(attach_by_yama_scope)
{
	struct ts_machine machine = user();
	struct ts_finding finding = attach(machine, 0, 0);

	expect(&finding, TS_CHECK_YES, "all processes of this user", NULL);
	machine.yama = 1;
	finding = attach(machine, 0, EPERM);
	expect(&finding, TS_CHECK_LIMITED, "ptrace_scope is 1",
	       "sysctl kernel.yama.ptrace_scope=0");
	expect_warning(&finding);
	TS_CHECK(strstr(finding.note, "setcap cap_sys_ptrace+ep") != NULL);
	machine.yama = 2;
	finding = attach(machine, EPERM, EPERM);
	expect(&finding, TS_CHECK_NO, "ptrace_scope is 2", "sysctl");
	machine.yama = 3;
	finding = attach(machine, EPERM, EPERM);
	expect(&finding, TS_CHECK_NO, "including root", "grep");
	TS_CHECK(strstr(finding.note, "reboot") != NULL);
	machine.yama = 1;
	machine.capabilities = BIT(TS_CAP_SYS_PTRACE);
	finding = attach(machine, 0, 0);
	expect(&finding, TS_CHECK_YES, "all processes", NULL);
}

TS_TEST(attach_in_a_container)
{
	struct ts_machine machine = user();
	struct ts_finding finding;

	machine.yama = 1;
	machine.container = TS_CONTAINER_DOCKER;
	finding = attach(machine, 0, EPERM);
	expect(&finding, TS_CHECK_LIMITED, "ptrace_scope is 1", "docker run --cap-add SYS_PTRACE");
	TS_CHECK(strstr(finding.note, "on the host") != NULL);
	machine.container = TS_CONTAINER_KUBERNETES;
	finding = attach(machine, 0, EPERM);
	expect(&finding, TS_CHECK_LIMITED, "ptrace_scope is 1", "kubectl debug");
}

TS_TEST(attach_refused_by_others)
{
	struct ts_finding finding = attach(user(), 0, EPERM);

	expect(&finding, TS_CHECK_LIMITED, "security module", "attr/current");
	finding = attach(user(), EPERM, EPERM);
	expect(&finding, TS_CHECK_NO, "security module", "attr/current");
	finding = attach(user(), ENOSYS, ENOSYS);
	expect(&finding, TS_CHECK_NO, "does not have the system call", NULL);
	/* An unexpected error gives no verdict. */
	finding = attach(user(), EXDEV, 0);
	expect(&finding, TS_CHECK_UNKNOWN, "EXDEV", NULL);
	finding = attach(user(), 0, ESRCH);
	expect(&finding, TS_CHECK_UNKNOWN, "ESRCH", NULL);
}

TS_TEST(yama_as_a_setting)
{
	static const struct {
		int scope;
		uint64_t capabilities;
		enum ts_check_state state;
	} cases[] = {
		{ TS_SETTING_NONE, 0, TS_CHECK_ABSENT },
		{ 0, 0, TS_CHECK_YES },
		{ 1, 0, TS_CHECK_LIMITED },
		{ 2, 0, TS_CHECK_NO },
		{ 3, 0, TS_CHECK_NO },
		{ 1, BIT(TS_CAP_SYS_PTRACE), TS_CHECK_YES },
		{ 2, BIT(TS_CAP_SYS_PTRACE), TS_CHECK_YES },
		{ 3, BIT(TS_CAP_SYS_PTRACE), TS_CHECK_NO },
		{ 9, 0, TS_CHECK_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ts_machine machine = user();
		struct ts_finding finding = { 0 };

		machine.yama = cases[i].scope;
		machine.capabilities = cases[i].capabilities;
		ts_classify_yama(&machine, &finding);
		TS_CHECK_INT(finding.state, cases[i].state);
		/* Every failed check has a command. */
		if (cases[i].state == TS_CHECK_LIMITED || cases[i].state == TS_CHECK_NO)
			TS_CHECK(finding.fix[0] && finding.note[0]);
	}
}

/* ---- perf ---- */

static struct ts_finding perf(struct ts_machine machine, int error, int filter, int level)
{
	struct ts_finding finding = { 0 };

	ts_classify_perf(&machine, error, filter, level, &finding);
	return finding;
}

TS_TEST(perf_by_level)
{
	struct ts_machine machine = user();
	struct ts_finding finding = perf(machine, EACCES, EFAULT, 0);

	expect(&finding, TS_CHECK_NO, "perf_event_paranoid is 2",
	       "sudo sysctl kernel.perf_event_paranoid=0");
	expect_warning(&finding);
	/* Debian (3) and Ubuntu (4) kernels refuse before they look at the arguments. */
	machine.perf_paranoid = 4;
	finding = perf(machine, EACCES, EACCES, 2);
	expect(&finding, TS_CHECK_NO, "is 4, which denies it to all users",
	       "sudo sysctl kernel.perf_event_paranoid=2");
	expect_warning(&finding);
	/* No level permits uprobes. */
	finding = perf(user(), EACCES, EFAULT, TS_SETTING_NONE);
	expect(&finding, TS_CHECK_NO, "CAP_PERFMON", "sudo tracesmith");
}

TS_TEST(perf_behind_a_filter)
{
	struct ts_machine machine = user();
	struct ts_finding finding;

	machine.seccomp = 2;
	machine.container = TS_CONTAINER_DOCKER;
	finding = perf(machine, EPERM, EPERM, 2);
	expect(&finding, TS_CHECK_NO, "seccomp", "docker run --cap-add PERFMON");
	machine.perf_paranoid = 4;
	finding = perf(machine, EPERM, EPERM, 2);
	expect(&finding, TS_CHECK_NO, "seccomp", "docker run --cap-add SYS_ADMIN");
	TS_CHECK(strstr(finding.note, "trusted images only") != NULL);
	machine.container = TS_CONTAINER_PODMAN;
	finding = perf(machine, EPERM, EPERM, 2);
	expect(&finding, TS_CHECK_NO, "seccomp", "podman run");
	/* ENOSYS without filters comes from the kernel itself. */
	finding = perf(user(), ENOSYS, ENOSYS, 2);
	expect(&finding, TS_CHECK_NO, "this kernel has no perf events", NULL);
}

TS_TEST(perf_without_counters)
{
	struct ts_machine machine = user();
	struct ts_finding finding;

	machine.virtual = true;
	finding = perf(machine, ENOENT, EFAULT, 2);
	expect(&finding, TS_CHECK_ABSENT, "this virtual machine has no hardware counters", NULL);
	finding = perf(user(), EMFILE, EFAULT, 2);
	expect(&finding, TS_CHECK_NO, "open files", "ulimit -n");
	finding = perf(user(), EBUSY, EFAULT, 2);
	expect(&finding, TS_CHECK_UNKNOWN, "EBUSY", NULL);
}

/* ---- eBPF ---- */

static struct ts_finding bpf(struct ts_machine machine, int error, int filter)
{
	struct ts_finding finding = { 0 };

	ts_classify_bpf(&machine, error, filter, &finding);
	return finding;
}

TS_TEST(bpf_by_who_refused)
{
	struct ts_machine machine = user();
	struct ts_finding finding = bpf(machine, EPERM, EINVAL);

	expect(&finding, TS_CHECK_NO, "CAP_BPF and CAP_PERFMON are missing", "sudo tracesmith");
	machine.user_namespace = true;
	finding = bpf(machine, EPERM, EINVAL);
	expect(&finding, TS_CHECK_NO, "user namespace", NULL);
	machine = user();
	machine.capabilities = BIT(TS_CAP_SYS_ADMIN);
	finding = bpf(machine, EPERM, EINVAL);
	expect(&finding, TS_CHECK_NO, "lockdown", "");
	machine = user();
	machine.container = TS_CONTAINER_DOCKER;
	machine.seccomp = 2;
	finding = bpf(machine, EPERM, EPERM);
	expect(&finding, TS_CHECK_NO, "seccomp", "--cap-add BPF --cap-add PERFMON");
	TS_CHECK(strstr(finding.note, "trusted images only") != NULL);
	finding = bpf(user(), ENOSYS, ENOSYS);
	expect(&finding, TS_CHECK_NO, "no eBPF", NULL);
	finding = bpf(user(), EINVAL, EINVAL);
	expect(&finding, TS_CHECK_NO, "too old", NULL);
	finding = bpf(user(), EIO, EINVAL);
	expect(&finding, TS_CHECK_UNKNOWN, "EIO", NULL);
}

/* ---- the table ---- */

TS_TEST(table_is_sound)
{
	size_t count, basics = 0;
	const struct ts_check *checks = ts_check_list(&count);

	TS_CHECK(count > 30);
	for (size_t i = 0; i < count; i++) {
		TS_CHECK(checks[i].id && checks[i].group && checks[i].title);
		TS_CHECK(!checks[i].probe != !checks[i].run);
		basics += checks[i].is_basic;
		/* Basic checks are always in use. */
		TS_CHECK(!checks[i].is_basic || checks[i].used_by);
		for (size_t j = 0; j < i; j++) {
			TS_CHECK(strcmp(checks[i].id, checks[j].id) != 0);
			/* Groups are contiguous. */
			TS_CHECK(strcmp(checks[i].group, checks[j].group) != 0 ||
				 !strcmp(checks[i].group, checks[i - 1].group));
		}
	}
	TS_CHECK_INT(basics, 4);
}
