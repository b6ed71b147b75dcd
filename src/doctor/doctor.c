/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of checks of the machine, and the list of all, with those of backends
 * (include/tracesmith/backend.h). Capabilities that TraceSmith does not use yet have `used_by`
 * NULL.
 */
#include "doctor/doctor.h"

#include "backends/recorder/backend_table.h"
#include "base/memory.h"
#include "doctor/checks.h"

#define NOT_RUN "not tested on this hardware"

#define CHECK(id, group, title, used_by, caution, is_basic, probe)                      \
	{                                                                               \
		(id), (group), (title), (used_by), (caution), (is_basic), (probe), NULL \
	}

static const struct ts_check before_backends[] = {
	CHECK("agent", "recording", "agent in a program", "record", NULL, true, ts_check_agent),
	CHECK("libraries", "recording", "libraries", "record", NULL, false, ts_check_libraries),
	CHECK("live_directory", "recording", "live directory", "record", NULL, true,
	      ts_check_live_directory),
	CHECK("shared_memory", "recording", "shared memory", "record", NULL, true,
	      ts_check_shared_memory),
	CHECK("proc", "recording", "/proc", "record, ps", NULL, true, ts_check_proc),
	CHECK("containers", "recording", "containers", "record, ps", NULL, false,
	      ts_check_container),
	CHECK("clock", "recording", "event clock", "record", NULL, false, ts_check_clock),
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
};

static const struct ts_check after_backends[] = {
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
	CHECK("btf", "kernel", "kernel types (BTF)", NULL, NULL, false, ts_check_btf),

	CHECK("duckdb", "queries", "DuckDB", NULL, NULL, false, ts_check_duckdb),
};

#define CHECKS_AT_MOST (TS_ARRAY_SIZE(before_backends) + TS_ARRAY_SIZE(after_backends) + 256)

static struct ts_check checks[CHECKS_AT_MOST];

static size_t append_table(size_t count, const struct ts_check *table, size_t table_count)
{
	for (size_t i = 0; i < table_count && count < CHECKS_AT_MOST; i++)
		checks[count++] = table[i];
	return count;
}

static size_t append_backend(size_t count, const struct ts_backend *backend)
{
	const struct ts_backend_check *check = backend->checks;

	for (; check && check->id && count < CHECKS_AT_MOST; check++)
		checks[count++] = (struct ts_check){
			.id = check->id,
			.group = backend->name,
			.title = check->title,
			.used_by = check->used_by ? check->used_by : "record",
			.caution = check->caution,
			.run = check->run,
		};
	return count;
}

const struct ts_check *ts_check_list(size_t *ret_count)
{
	const struct ts_known_backend *known;
	size_t count = append_table(0, before_backends, TS_ARRAY_SIZE(before_backends));

	for (size_t i = 0; (known = ts_backend_known(i)); i++)
		count = append_backend(count, &known->backend);
	*ret_count = append_table(count, after_backends, TS_ARRAY_SIZE(after_backends));
	return checks;
}

/* A backend of others may return anything: the copy is one line each, and a known state. */
void ts_check_run(const struct ts_check *check, const struct ts_machine *machine,
		  struct ts_finding *ret_finding)
{
	struct ts_finding found = { 0 };

	if (check->probe) {
		check->probe(machine, ret_finding);
		return;
	}
	check->run(&found);
	ts_finding_set(ret_finding,
		       (unsigned int)found.state < TS_CHECK_STATES ? found.state : TS_CHECK_UNKNOWN,
		       "%.*s", (int)sizeof(found.text), found.text);
	ts_finding_fix(ret_finding, "%.*s", (int)sizeof(found.fix), found.fix);
	ts_finding_note(ret_finding, "%.*s", (int)sizeof(found.note), found.note);
}
