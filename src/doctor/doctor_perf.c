/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf events: software clock, hardware counters, system-wide events, tracepoints, uprobes. Opens
 * each event and requires counts or samples.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "doctor/checks.h"

/* The highest perf_event_paranoid at which the kernel permits unprivileged users. */
#define LEVEL_SELF 2
#define LEVEL_MACHINE 0
#define LEVEL_TRACEPOINTS (-1)

static int open_event(struct perf_event_attr *attributes, pid_t pid, int cpu)
{
	attributes->size = sizeof(*attributes);
	return (int)syscall(SYS_perf_event_open, attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * The error of a call that can never succeed: EFAULT from the kernel, any other from a seccomp
 * filter.
 */
static int filter_error(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) < 0 ? errno : 0;
}

/* ---- diagnosis ---- */

static void suggest_in_container(const struct ts_machine *machine, struct ts_finding *finding)
{
	/* Levels above 2 exist only in Debian and Ubuntu kernels, which require more. */
	const char *capability = machine->perf_paranoid > 2 ? "SYS_ADMIN" : "PERFMON";

	if (machine->container == TS_CONTAINER_KUBERNETES)
		ts_finding_fix(
			finding,
			"kubectl debug -it POD --target=CONTAINER --image=IMAGE --profile=sysadmin");
	else
		ts_finding_fix(finding, "%s run --cap-add %s IMAGE",
			       machine->container == TS_CONTAINER_PODMAN ? "podman" : "docker",
			       capability);
	ts_finding_note(
		finding, "run this on the host; %s",
		machine->perf_paranoid > 2 || machine->container == TS_CONTAINER_KUBERNETES
			? "gives the container many privileges on the host: for trusted images "
			  "only"
			: "lets the container observe the whole machine");
}

static const char *what_level_opens(int level)
{
	if (level >= 2)
		return "lets users measure their own programs, which is the kernel's default";
	return level >= 0 ? "lets every user observe all programs and the kernel"
			  : "lets every user observe everything, kernel events included";
}

static void suggest_paranoid(const struct ts_machine *machine, int level,
			     struct ts_finding *finding)
{
	if (machine->container && (level == TS_SETTING_NONE || machine->perf_paranoid <= level)) {
		suggest_in_container(machine, finding);
	} else if (level == TS_SETTING_NONE) {
		ts_finding_fix(finding, "sudo tracesmith doctor kernel");
		ts_finding_note(finding, "needs root or CAP_PERFMON");
	} else {
		ts_finding_fix(finding, "sudo sysctl kernel.perf_event_paranoid=%d", level);
		ts_finding_note(finding,
				"%s%s, until the next boot; safer: run tracesmith with sudo",
				machine->container ? "run this on the host; " : "",
				what_level_opens(level));
	}
}

void ts_classify_perf(const struct ts_machine *machine, int error, int filter, int level,
		      struct ts_finding *finding)
{
	if (filter == EPERM || filter == ENOSYS) {
		ts_finding_set(finding, TS_CHECK_NO,
			       filter == ENOSYS && !machine->seccomp
				       ? "this kernel has no perf events (%s)"
				       : "a seccomp filter denies perf_event_open (%s)",
			       ts_errno_name(filter));
		if ((machine->seccomp || filter == EPERM) && !ts_note_filter(machine, finding))
			suggest_in_container(machine, finding);
	} else if (error == EACCES || error == EPERM) {
		if (level == TS_SETTING_NONE)
			ts_finding_set(finding, TS_CHECK_NO, "%s: CAP_PERFMON is missing",
				       ts_errno_name(error));
		else
			ts_finding_set(finding, TS_CHECK_NO, "%s: perf_event_paranoid is %d%s",
				       ts_errno_name(error), machine->perf_paranoid,
				       machine->perf_paranoid > 2 ? ", which denies it to all users"
				       : machine->user_namespace
					       ? " and root in a user namespace is not sufficient"
					       : "");
		suggest_paranoid(machine, level, finding);
	} else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
		ts_finding_set(finding, TS_CHECK_ABSENT, "%s: no such event on this machine%s",
			       ts_errno_name(error),
			       machine->virtual ? " (this virtual machine has no hardware "
						  "counters)"
						: "");
	} else if (error == EMFILE) {
		ts_finding_set(finding, TS_CHECK_NO, "EMFILE: the limit of open files is too low");
		ts_finding_fix(finding, "ulimit -n $(ulimit -Hn)");
	} else {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "perf_event_open: %s",
			       ts_errno_name(error));
	}
}

static void classify_current(const struct ts_machine *machine, int error, int level,
			     struct ts_finding *finding)
{
	ts_classify_perf(machine, error, filter_error(), level, finding);
}

/* ---- test run ---- */

/* Keeps the CPU busy. */
static void work(int64_t ns)
{
	int64_t until = ts_clock_monotonic_ns() + ns;

	while (ts_clock_monotonic_ns() < until)
		;
}

static struct perf_event_attr software_clock(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 100000,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

/* Samples this process. Returns 0 or an errno; ENODATA if no sample came. */
static int try_self(void)
{
	struct perf_event_attr attributes = software_clock();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *ring;
	uint64_t head = 0;
	int fd = open_event(&attributes, 0, -1);

	if (fd < 0)
		return errno;
	ring = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return errno;
	for (int i = 0; i < 50 && !head; i++) {
		work(1000000);
		head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	}
	return head ? 0 : ENODATA;
}

static int try_other(void)
{
	struct perf_event_attr attributes = software_clock();
	pid_t pid = ts_sleeper_start(true);
	int error = !pid ? EAGAIN : open_event(&attributes, pid, -1) < 0 ? errno : 0;

	ts_sleeper_stop(pid, true);
	return error;
}

void ts_check_perf(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	int self_error = try_self(), other = self_error ? 0 : try_other();

	if (self_error == ENODATA)
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "the event was opened, but no sample arrived");
	else if (self_error)
		classify_current(machine, self_error, LEVEL_SELF, ret_finding);
	else if (other == EACCES || other == EPERM)
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "samples of own processes; %s for other processes of this user: see "
			       "attach",
			       ts_errno_name(other));
	else if (other)
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN,
			       "samples of own processes; other processes: %s",
			       ts_errno_name(other));
	else
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "samples on the software clock, also of other processes");
}

void ts_check_perf_system(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
					      .config = PERF_COUNT_SW_CPU_CLOCK };
	uint64_t count = 0;
	int fd = open_event(&attributes, -1, 0);

	if (fd < 0) {
		classify_current(machine, errno, LEVEL_MACHINE, ret_finding);
		return;
	}
	work(1000000);
	if (read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count) && count)
		ts_finding_set(ret_finding, TS_CHECK_YES, "all processes and the kernel");
	else
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN,
			       "the event was opened, but does not count");
}

void ts_check_perf_hardware(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_HARDWARE,
					      .config = PERF_COUNT_HW_CPU_CYCLES,
					      .exclude_kernel = 1,
					      .exclude_hv = 1 };
	uint64_t count = 0;
	int fd = open_event(&attributes, 0, -1);

	if (fd < 0) {
		classify_current(machine, errno, LEVEL_SELF, ret_finding);
		return;
	}
	work(1000000);
	if (read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count) && count)
		ts_finding_set(ret_finding, TS_CHECK_YES, "CPU cycles can be counted");
	else
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "the event was opened, but counts nothing%s",
			       machine->virtual ? " in this virtual machine" : "");
}

/* ---- tracepoints ---- */

/* The id of an event, or -1 with errno. */
static int tracepoint_number(const char *event)
{
	static const char *const mount_points[] = { "/sys/kernel/tracing",
						    "/sys/kernel/debug/tracing" };
	int error = ENOENT;

	for (size_t i = 0; i < TS_ARRAY_SIZE(mount_points); i++) {
		char path[128];
		int number;

		snprintf(path, sizeof(path), "%s/events/%s/id", mount_points[i], event);
		number = ts_machine_setting(path);
		if (number != TS_SETTING_NONE)
			return number;
		if (errno == EACCES || errno == EPERM)
			error = errno;
	}
	errno = error;
	return -1;
}

static void classify_tracefs(const struct ts_machine *machine, int error,
			     struct ts_finding *finding)
{
	if (error == EACCES || error == EPERM) {
		ts_finding_set(finding, TS_CHECK_NO,
			       "/sys/kernel/tracing: %s: only root has "
			       "access",
			       ts_errno_name(error));
		ts_finding_fix(finding, "sudo tracesmith doctor tracepoints");
		ts_finding_note(finding, "checks whether root has access");
	} else if (machine->container) {
		ts_finding_set(finding, TS_CHECK_NO, "tracefs is not mounted in this container");
		ts_finding_fix(finding,
			       "docker run -v /sys/kernel/tracing:/sys/kernel/tracing IMAGE");
		ts_finding_note(
			finding,
			"run this on the host; lets the container see events of the whole machine");
	} else {
		ts_finding_set(finding, TS_CHECK_NO,
			       "tracefs is not mounted, or not in this kernel");
		ts_finding_fix(finding, "sudo mount -t tracefs nodev /sys/kernel/tracing");
	}
}

void ts_check_tracepoints(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	int number = tracepoint_number("sched/sched_switch");
	struct perf_event_attr attributes = { .type = PERF_TYPE_TRACEPOINT,
					      .config = (uint64_t)number,
					      .sample_period = 1,
					      .sample_type = PERF_SAMPLE_RAW };

	if (number < 0)
		classify_tracefs(machine, errno, ret_finding);
	else if (open_event(&attributes, -1, 0) < 0)
		classify_current(machine, errno, LEVEL_TRACEPOINTS, ret_finding);
	else
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "sched:sched_switch can be traced on the whole machine");
}

/* ---- uprobes ---- */

/*
 * The probed function. Called through a pointer, so that the compiler does not clone or inline it.
 */
static int probed(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

static int (*volatile call_probed)(int value) = probed;

/* The offset of the function in the program's file. */
static int on_program(struct dl_phdr_info *info, size_t bytes, void *context)
{
	uintptr_t address = (uintptr_t)probed;
	uint64_t *offset = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD && address >= begin && address < begin + part->p_memsz)
			*offset = address - begin + part->p_offset;
	}
	/* The first object is the program itself. */
	return 1;
}

int ts_uprobe_try(int program_fd, uint64_t *ret_hits)
{
	struct perf_event_attr attributes = { 0 };
	int type = ts_machine_setting("/sys/bus/event_source/devices/uprobe/type");
	TS_AUTO_FD int fd = -1;
	uint64_t offset = 0;

	dl_iterate_phdr(on_program, &offset);
	if (type == TS_SETTING_NONE || !offset)
		return ENODEV;
	attributes.type = (uint32_t)type;
	attributes.config1 = (uint64_t)(uintptr_t) "/proc/self/exe";
	attributes.config2 = offset;
	fd = open_event(&attributes, 0, -1);
	if (fd < 0)
		return errno;
	if (program_fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd))
		return errno;
	call_probed(1);
	return read(fd, ret_hits, sizeof(*ret_hits)) == (ssize_t)sizeof(*ret_hits) ? 0 : EIO;
}

void ts_check_uprobes(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	uint64_t hits = 0;
	int error = ts_uprobe_try(-1, &hits);

	if (error == ENODEV)
		ts_finding_set(ret_finding, TS_CHECK_NO,
			       "this kernel has no uprobes for perf events");
	else if (error)
		classify_current(machine, error, TS_SETTING_NONE, ret_finding);
	else if (hits == 1)
		ts_finding_set(ret_finding, TS_CHECK_YES, "probed a function of this tool");
	else
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN,
			       "probed a function of this tool that was called once, but the "
			       "probe counted %llu",
			       (unsigned long long)hits);
}
