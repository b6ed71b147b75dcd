/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of checks, and the checks that backends add (include/tracesmith/backend.h).
 * Capabilities that TraceSmith does not use yet have `used_by` NULL.
 */
#include "doctor/doctor.h"

#include <string.h>

#include "backends/recorder/backend_table.h"
#include "base/memory.h"
#include "doctor/checks.h"

#define NOT_RUN "never run on such hardware by us"

#define CHECK(id, group, title, used_by, caution, is_basic, probe)                      \
	{                                                                               \
		(id), (group), (title), (used_by), (caution), (is_basic), (probe), NULL \
	}

static const struct ts_check table[] = {
	CHECK("agent", "recording", "agent in a program", "record", NULL, true, ts_check_agent),
	CHECK("live_directory", "recording", "live directory", "record", NULL, true,
	      ts_check_live_directory),
	CHECK("shared_memory", "recording", "shared memory", "record", NULL, true,
	      ts_check_shared_memory),
	CHECK("proc", "recording", "/proc", "record, ps", NULL, true, ts_check_proc),
	CHECK("containers", "recording", "containers", "record, ps", NULL, false,
	      ts_check_container),
	CHECK("clock", "recording", "clock of events", "record", NULL, false, ts_check_clock),
	CHECK("open_files", "recording", "open files", "record", NULL, false, ts_check_open_files),
	CHECK("cpu_limit", "recording", "processors", "record", NULL, false, ts_check_cpu_limit),
	CHECK("compression", "recording", "compression", "import", NULL, false, ts_check_build),

	CHECK("pressure", "metrics", "pressure", "metrics", NULL, false, ts_check_pressure),
	CHECK("taskstats", "metrics", "context switches", "metrics", NULL, false,
	      ts_check_taskstats),
	CHECK("nvml", "metrics", "NVIDIA, by NVML", "metrics", NULL, false, ts_check_nvml),
	CHECK("npu_smi", "metrics", "Ascend, by npu-smi", "metrics", NOT_RUN, false,
	      ts_check_npu_smi),
	CHECK("amd", "metrics", "AMD", "metrics", NOT_RUN, false, ts_check_amd),

	CHECK("cuda", "cuda", "CUDA driver", "record", NULL, false, ts_check_cuda),
	CHECK("cuda_files", "cuda", "device files", "record", NULL, false, ts_check_cuda_files),
	CHECK("cuda_recording", "cuda", "recording", "record", NULL, false,
	      ts_check_cuda_recording),
	CHECK("cupti", "cuda", "CUPTI", "record", NULL, false, ts_check_cupti),
	CHECK("cuda_profilers", "cuda", "other profilers", "record", NULL, false,
	      ts_check_cuda_profilers),
	CHECK("gpu_counters", "cuda", "profiling permission", "record --pc-sampling", NULL, false,
	      ts_check_gpu_counters),
	CHECK("mig", "cuda", "MIG", "record", NOT_RUN, false, ts_check_mig),
	CHECK("mps", "cuda", "MPS", "record", NOT_RUN, false, ts_check_mps),
	CHECK("disassembler", "cuda", "instructions", "view --hot", NULL, false,
	      ts_check_disassembler),
	CHECK("source_lines", "cuda", "source lines", "record, symbolize", NULL, false,
	      ts_check_source_lines),

	CHECK("opencl", "opencl", "platforms", "record, replay", NULL, false, ts_check_opencl),
	CHECK("opencl_devices", "opencl", "devices", "record, replay", NULL, false,
	      ts_check_opencl_devices),
	CHECK("opencl_layers", "opencl", "layers", "record", NULL, false, ts_check_opencl_layers),
	CHECK("opencl_recording", "opencl", "recording", "record, replay", NULL, false,
	      ts_check_opencl_recording),

	CHECK("ptrace", "processes", "ptrace of a child", NULL, NULL, false, ts_check_ptrace),
	CHECK("attach", "processes", "ptrace of others", "stack", NULL, false, ts_check_attach),
	CHECK("read_memory", "processes", "memory of others", "record, stack", NULL, false,
	      ts_check_read_memory),
	CHECK("yama", "processes", "Yama", "record, stack", NULL, false, ts_check_yama),
	CHECK("python", "processes", "Python reader", "record, sniff, stack, top", NULL, false,
	      ts_check_python),

	CHECK("perf", "kernel", "perf events", "record, stack", NULL, false, ts_check_perf),
	CHECK("perf_system", "kernel", "whole machine", NULL, NULL, false, ts_check_perf_system),
	CHECK("perf_hardware", "kernel", "hardware counters", NULL, NULL, false,
	      ts_check_perf_hardware),
	CHECK("tracepoints", "kernel", "tracepoints", NULL, NULL, false, ts_check_tracepoints),
	CHECK("uprobes", "kernel", "uprobes", NULL, NULL, false, ts_check_uprobes),
	CHECK("ebpf", "kernel", "eBPF", NULL, NULL, false, ts_check_ebpf),
	CHECK("btf", "kernel", "kernel's types (BTF)", NULL, NULL, false, ts_check_btf),

	CHECK("duckdb", "queries", "DuckDB", NULL, NULL, false, ts_check_duckdb),
};

#define CHECKS_AT_MOST (TS_ARRAY_SIZE(table) + 64)

/* Groups of backends follow this one. */
#define LAST_BACKEND_GROUP "opencl"

static struct ts_check checks[CHECKS_AT_MOST];

static size_t append_checks(size_t count, const struct ts_backend *backend)
{
	const struct ts_backend_check *check = backend->checks;

	for (; check && check->id && count < CHECKS_AT_MOST; check++)
		checks[count++] = (struct ts_check){
			.id = check->id,
			.group = backend->name,
			.title = check->title,
			.used_by = "record",
			.backend_check = check,
		};
	return count;
}

static bool has_group(const char *group)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(table); i++)
		if (!strcmp(table[i].group, group))
			return true;
	return false;
}

/*
 * The checks of a built-in backend follow its group; those of other backends follow the last group.
 */
static size_t append_backends(size_t count, const char *group)
{
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		if (!strcmp(known->backend.name, group) ||
		    (!strcmp(group, LAST_BACKEND_GROUP) && !has_group(known->backend.name)))
			count = append_checks(count, &known->backend);
	}
	return count;
}

const struct ts_check *ts_check_list(size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < TS_ARRAY_SIZE(table); i++) {
		bool is_last = i + 1 == TS_ARRAY_SIZE(table) ||
			       strcmp(table[i].group, table[i + 1].group) != 0;

		if (count < CHECKS_AT_MOST)
			checks[count++] = table[i];
		if (is_last)
			count = append_backends(count, table[i].group);
	}
	*ret_count = count;
	return checks;
}

/* ---- checks of backends ---- */

static enum ts_check_state state_of(enum ts_backend_state state)
{
	static const enum ts_check_state states[] = {
		[TS_BACKEND_UNKNOWN] = TS_CHECK_UNKNOWN, [TS_BACKEND_OK] = TS_CHECK_YES,
		[TS_BACKEND_LIMITED] = TS_CHECK_LIMITED, [TS_BACKEND_FAILED] = TS_CHECK_NO,
		[TS_BACKEND_ABSENT] = TS_CHECK_ABSENT,
	};

	return (size_t)state < TS_ARRAY_SIZE(states) ? states[state] : TS_CHECK_UNKNOWN;
}

void ts_check_run(const struct ts_check *check, const struct ts_machine *machine,
		  struct ts_finding *ret_finding)
{
	struct ts_backend_finding finding = { 0 };

	if (!check->backend_check) {
		check->probe(machine, ret_finding);
		return;
	}
	check->backend_check->run(&finding);
	ts_finding_set(ret_finding, state_of(finding.state), "%.*s", (int)sizeof(finding.text),
		       finding.text);
	ts_finding_mend(ret_finding, "%.*s", (int)sizeof(finding.fix), finding.fix);
	ts_finding_note(ret_finding, "%.*s", (int)sizeof(finding.note), finding.note);
}
