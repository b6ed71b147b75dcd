/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eBPF: loads a map and a program of two instructions, attaches the program to a probe and triggers
 * it. Uses the bare system call, so no library is needed.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "doctor/checks.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"
#define BTF_MAGIC 0xeb9f
#define NO_SUCH_COMMAND 9999

static int bpf(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

/* EINVAL from the kernel, even without privileges; any other error is from a seccomp filter. */
static int filter_error(void)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	return bpf(NO_SUCH_COMMAND, &attributes) < 0 ? errno : 0;
}

/* ---- diagnosis ---- */

static void suggest_rights(const struct ts_machine *machine, struct ts_finding *finding)
{
	/* Levels above 2 exist only in Debian and Ubuntu kernels, which require more. */
	const char *rights = machine->perf_paranoid > 2 ? "--cap-add SYS_ADMIN"
							: "--cap-add BPF --cap-add PERFMON";

	if (machine->container == TS_CONTAINER_KUBERNETES)
		ts_finding_fix(
			finding,
			"kubectl debug -it POD --target=CONTAINER --image=IMAGE --profile=sysadmin");
	else if (machine->container)
		ts_finding_fix(
			finding,
			"%s run %s -v /sys/kernel/tracing:/sys/kernel/tracing -v /sys/kernel/btf:/sys/kernel/btf:ro IMAGE",
			machine->container == TS_CONTAINER_PODMAN ? "podman" : "docker", rights);
	else
		ts_finding_fix(finding, "sudo tracesmith doctor ebpf");
	ts_finding_note(
		finding,
		machine->container
			? "run this on the host; lets the container observe the whole machine: "
			  "for trusted images only"
			: "eBPF tracing needs root, or CAP_BPF and CAP_PERFMON");
}

void ts_classify_bpf(const struct ts_machine *machine, int error, int filter,
		     struct ts_finding *finding)
{
	if (filter == ENOSYS && !machine->seccomp) {
		ts_finding_set(finding, TS_CHECK_NO, "this kernel has no eBPF");
	} else if (filter == EPERM || filter == ENOSYS) {
		ts_finding_set(finding, TS_CHECK_NO, "a seccomp filter denies bpf (%s)",
			       ts_errno_name(filter));
		if (!ts_note_filter(machine, finding))
			suggest_rights(machine, finding);
	} else if (error == EPERM && machine->user_namespace) {
		ts_finding_set(finding, TS_CHECK_NO,
			       "EPERM: capabilities in a user namespace are not sufficient");
		ts_finding_note(finding, "run this outside of the namespace, as root of the "
					 "machine");
	} else if (error == EPERM) {
		ts_finding_set(finding, TS_CHECK_NO, "EPERM: %s",
			       ts_machine_has(machine, TS_CAP_SYS_ADMIN) ||
					       ts_machine_has(machine, TS_CAP_BPF)
				       ? "despite CAP_BPF and CAP_PERFMON (kernel lockdown or a "
					 "security module)"
				       : "CAP_BPF and CAP_PERFMON are missing");
		suggest_rights(machine, finding);
	} else if (error == EINVAL || error == E2BIG) {
		ts_finding_set(finding, TS_CHECK_NO, "%s: this kernel is too old",
			       ts_errno_name(error));
	} else {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "bpf: %s", ts_errno_name(error));
	}
}

/* ---- test run ---- */

/* Kernels before 5.11 count maps as locked memory and return EPERM, as for a missing capability. */
static void lift_memory_lock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) && !getrlimit(RLIMIT_MEMLOCK, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
}

static int make_map(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.map_type = type;
	attributes.key_size = key_bytes;
	attributes.value_size = value_bytes;
	attributes.max_entries = entries;
	return bpf(BPF_MAP_CREATE, &attributes);
}

/* The program returns 0, so the uprobe event is not counted: that shows that the program ran. */
static int load_program(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = BPF_PROG_TYPE_KPROBE;
	attributes.insns = (uint64_t)(uintptr_t)code;
	attributes.insn_cnt = TS_ARRAY_SIZE(code);
	attributes.license = (uint64_t)(uintptr_t) "GPL";
	return bpf(BPF_PROG_LOAD, &attributes);
}

static void attach_program(int program, bool has_ring, struct ts_finding *finding)
{
	uint64_t hits = 1;
	int error = ts_uprobe_try(program, &hits);

	if (error)
		ts_finding_set(finding, TS_CHECK_LIMITED,
			       "loaded a program, but cannot attach it to a function: %s%s",
			       ts_errno_name(error),
			       error == ENODEV ? " (this kernel has no uprobes)" : "");
	else if (hits != 0)
		ts_finding_set(finding, TS_CHECK_UNKNOWN,
			       "loaded and attached a program, but it did not run");
	else if (!has_ring)
		ts_finding_set(finding, TS_CHECK_LIMITED,
			       "loaded and ran a program; no ring buffers (kernel before 5.8)");
	else
		ts_finding_set(finding, TS_CHECK_YES, "loaded, attached and ran a program");
}

void ts_check_ebpf(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	int map, ring, program = -1, error;

	lift_memory_lock();
	ring = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)sysconf(_SC_PAGESIZE));
	map = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1);
	if (map >= 0)
		program = load_program();
	error = errno;
	if (program < 0)
		ts_classify_bpf(machine, error, filter_error(), ret_finding);
	else
		attach_program(program, ring >= 0, ret_finding);
}

void ts_check_btf(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char head[8] = "";
	uint16_t magic;

	if (!ts_machine_read(BTF_PATH, head, sizeof(head))) {
		ts_finding_set(ret_finding, errno == ENOENT ? TS_CHECK_NO : TS_CHECK_UNKNOWN,
			       "%s: %s%s", BTF_PATH, ts_errno_name(errno),
			       errno == ENOENT ? ": the kernel was built without "
						 "CONFIG_DEBUG_INFO_BTF"
					       : "");
		return;
	}
	memcpy(&magic, head, sizeof(magic));
	if (magic == BTF_MAGIC)
		ts_finding_set(ret_finding, TS_CHECK_YES, "kernel types are available");
	else
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "%s: not valid BTF data", BTF_PATH);
}
