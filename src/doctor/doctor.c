/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of checks. Explicit: a check that is not listed here does not exist. What TraceSmith
 * does not use yet says so by `used_by` NULL, here and nowhere else.
 */
#include "doctor/doctor.h"

#include "base/memory.h"
#include "doctor/checks.h"

#define NOT_RUN "never run on such hardware by us"

static const struct ts_check checks[] = {
	{ "agent", "recording", "agent in a program", "record", NULL, true, ts_check_agent },
	{ "live_directory", "recording", "live directory", "record", NULL, true,
	  ts_check_live_directory },
	{ "shared_memory", "recording", "shared memory", "record", NULL, true,
	  ts_check_shared_memory },
	{ "proc", "recording", "/proc", "record, ps", NULL, true, ts_check_proc },
	{ "containers", "recording", "containers", "record, ps", NULL, false, ts_check_container },
	{ "clock", "recording", "clock of events", "record", NULL, false, ts_check_clock },
	{ "open_files", "recording", "open files", "record", NULL, false, ts_check_open_files },
	{ "cpu_limit", "recording", "processors", "record", NULL, false, ts_check_cpu_limit },
	{ "compression", "recording", "compression", "import", NULL, false, ts_check_build },

	{ "pressure", "metrics", "pressure", "metrics", NULL, false, ts_check_pressure },
	{ "taskstats", "metrics", "context switches", "metrics", NULL, false, ts_check_taskstats },
	{ "nvml", "metrics", "NVIDIA, by NVML", "metrics", NULL, false, ts_check_nvml },
	{ "npu_smi", "metrics", "Ascend, by npu-smi", "metrics", NOT_RUN, false, ts_check_npu_smi },
	{ "amd", "metrics", "AMD", "metrics", NOT_RUN, false, ts_check_amd },

	{ "cuda", "cuda", "CUDA driver", "record", NULL, false, ts_check_cuda },
	{ "cuda_files", "cuda", "device files", "record", NULL, false, ts_check_cuda_files },
	{ "cuda_recording", "cuda", "recording", "record", NULL, false, ts_check_cuda_recording },
	{ "cupti", "cuda", "CUPTI", "record", NULL, false, ts_check_cupti },
	{ "cuda_profilers", "cuda", "other profilers", "record", NULL, false,
	  ts_check_cuda_profilers },
	{ "gpu_counters", "cuda", "profiling permission", "record --pc-sampling", NULL, false,
	  ts_check_gpu_counters },
	{ "mig", "cuda", "MIG", "record", NOT_RUN, false, ts_check_mig },
	{ "mps", "cuda", "MPS", "record", NOT_RUN, false, ts_check_mps },
	{ "disassembler", "cuda", "instructions", "view --hot", NULL, false,
	  ts_check_disassembler },
	{ "source_lines", "cuda", "source lines", "record, symbolize", NULL, false,
	  ts_check_source_lines },

	{ "opencl", "opencl", "platforms", "record, replay", NULL, false, ts_check_opencl },
	{ "opencl_devices", "opencl", "devices", "record, replay", NULL, false,
	  ts_check_opencl_devices },
	{ "opencl_layers", "opencl", "layers", "record", NULL, false, ts_check_opencl_layers },
	{ "opencl_recording", "opencl", "recording", "record, replay", NULL, false,
	  ts_check_opencl_recording },

	{ "ptrace", "processes", "ptrace of a child", NULL, NULL, false, ts_check_ptrace },
	{ "attach", "processes", "ptrace of others", "stack", NULL, false, ts_check_attach },
	{ "read_memory", "processes", "memory of others", "record, stack", NULL, false,
	  ts_check_read_memory },
	{ "yama", "processes", "Yama", "record, stack", NULL, false, ts_check_yama },
	{ "python", "processes", "Python reader", "record, sniff, stack, top", NULL, false,
	  ts_check_python },

	{ "perf", "kernel", "perf events", "record, stack", NULL, false, ts_check_perf },
	{ "perf_system", "kernel", "whole machine", NULL, NULL, false, ts_check_perf_system },
	{ "perf_hardware", "kernel", "hardware counters", NULL, NULL, false,
	  ts_check_perf_hardware },
	{ "tracepoints", "kernel", "tracepoints", NULL, NULL, false, ts_check_tracepoints },
	{ "uprobes", "kernel", "uprobes", NULL, NULL, false, ts_check_uprobes },
	{ "ebpf", "kernel", "eBPF", NULL, NULL, false, ts_check_ebpf },
	{ "btf", "kernel", "kernel's types (BTF)", NULL, NULL, false, ts_check_btf },

	{ "duckdb", "queries", "DuckDB", NULL, NULL, false, ts_check_duckdb },
};

const struct ts_check *ts_check_list(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(checks);
	return checks;
}
