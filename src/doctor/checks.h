/* SPDX-License-Identifier: Apache-2.0 */
/* The checks, for the table in doctor.c; and judgements that tests give made-up facts to. */
#ifndef TS_DOCTOR_CHECKS_H
#define TS_DOCTOR_CHECKS_H

#include "doctor/doctor.h"

#define TS_CHECK_FUNCTION(name) \
	void ts_check_##name(const struct ts_machine *machine, struct ts_finding *ret_finding)

/* doctor_agent.c */
TS_CHECK_FUNCTION(agent);
TS_CHECK_FUNCTION(live_directory);
TS_CHECK_FUNCTION(proc);
/* doctor_host.c */
TS_CHECK_FUNCTION(clock);
TS_CHECK_FUNCTION(open_files);
TS_CHECK_FUNCTION(cpu_limit);
TS_CHECK_FUNCTION(pressure);
TS_CHECK_FUNCTION(taskstats);
TS_CHECK_FUNCTION(build);
/* doctor_storage.c */
TS_CHECK_FUNCTION(shared_memory);
TS_CHECK_FUNCTION(duckdb);
/* doctor_container.c */
TS_CHECK_FUNCTION(container);
/* doctor_devices.c */
TS_CHECK_FUNCTION(nvml);
TS_CHECK_FUNCTION(npu_smi);
TS_CHECK_FUNCTION(amd);
/* doctor_cuda.c */
TS_CHECK_FUNCTION(cuda);
TS_CHECK_FUNCTION(gpu_counters);
TS_CHECK_FUNCTION(mig);
TS_CHECK_FUNCTION(mps);
/* doctor_cupti.c */
TS_CHECK_FUNCTION(cupti);
/* doctor_cuda_recording.c */
TS_CHECK_FUNCTION(cuda_recording);
TS_CHECK_FUNCTION(cuda_files);
TS_CHECK_FUNCTION(cuda_profilers);
TS_CHECK_FUNCTION(disassembler);
TS_CHECK_FUNCTION(source_lines);
/* doctor_opencl.c */
TS_CHECK_FUNCTION(opencl);
TS_CHECK_FUNCTION(opencl_devices);
TS_CHECK_FUNCTION(opencl_layers);
TS_CHECK_FUNCTION(opencl_recording);
/* doctor_ptrace.c */
TS_CHECK_FUNCTION(ptrace);
TS_CHECK_FUNCTION(attach);
TS_CHECK_FUNCTION(read_memory);
TS_CHECK_FUNCTION(yama);
/* doctor_python.c */
TS_CHECK_FUNCTION(python);
/* doctor_perf.c */
TS_CHECK_FUNCTION(perf);
TS_CHECK_FUNCTION(perf_system);
TS_CHECK_FUNCTION(perf_hardware);
TS_CHECK_FUNCTION(tracepoints);
TS_CHECK_FUNCTION(uprobes);
/* doctor_bpf.c */
TS_CHECK_FUNCTION(ebpf);
TS_CHECK_FUNCTION(btf);

/* ---- judgements: what errors mean on a machine ---- */

/*
 * Errors (0: it worked) of reaching into a child, and into a process of the same user that is none.
 */
void ts_judge_attach(const struct ts_machine *machine, int child_error, int other_error,
		     struct ts_finding *finding);
void ts_judge_yama(const struct ts_machine *machine, struct ts_finding *finding);

/*
 * Why perf_event_open() failed; `filter_error` is that of a call that cannot succeed, which tells
 * who refused. `level` is the greatest perf_event_paranoid by which users may; TS_SETTING_NONE:
 * there is none.
 */
void ts_judge_perf(const struct ts_machine *machine, int error, int filter_error, int level,
		   struct ts_finding *finding);
void ts_judge_bpf(const struct ts_machine *machine, int error, int filter_error,
		  struct ts_finding *finding);

/* What cuInit() returned. */
void ts_judge_cuda(const struct ts_machine *machine, int code, struct ts_finding *finding);

/*
 * Are counters open to us? `admin_only` is the driver's setting, `driver` its major version, 0: not
 * known.
 */
void ts_judge_gpu_counters(const struct ts_machine *machine, int admin_only, unsigned int driver,
			   struct ts_finding *finding);

/* ---- helpers of several files ---- */

/* "EPERM", or the number. */
const char *ts_errno_name(int error);

/* Outside of containers nobody can tell who set a seccomp filter: true, and a note says so. */
bool ts_note_filter(const struct ts_machine *machine, struct ts_finding *finding);

/* A process that waits for its end; its memory is a copy of ours. 0 where it could not be made. */
pid_t ts_sleeper_start(bool is_orphan);
void ts_sleeper_stop(pid_t pid, bool is_orphan);

/*
 * Sets a uprobe on a function of ours, with a program of eBPF unless that is negative, and runs
 * into it. 0 with the hits that the kernel counted, or an errno. ENODEV: the kernel has no uprobes.
 */
int ts_uprobe_try(int program_fd, uint64_t *ret_hits);

#endif
