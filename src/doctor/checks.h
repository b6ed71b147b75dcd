/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check functions, for the table in doctor.c, and the diagnoses, which tests call with
 * synthetic facts.
 */
#ifndef TS_DOCTOR_CHECKS_H
#define TS_DOCTOR_CHECKS_H

#include "doctor/doctor.h"

#define TS_CHECK_FUNCTION(name) \
	void ts_check_##name(const struct ts_machine *machine, struct ts_finding *ret_finding)

/* doctor_agent.c */
TS_CHECK_FUNCTION(agent);
TS_CHECK_FUNCTION(libraries);
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

/* ---- diagnoses: what errors mean on a machine ---- */

/* Explains the errors (0: success) of accessing a child, and another process of the same user. */
void ts_classify_attach(const struct ts_machine *machine, int child_error, int other_error,
			struct ts_finding *finding);
void ts_classify_yama(const struct ts_machine *machine, struct ts_finding *finding);

/*
 * Explains why perf_event_open() failed. `filter_error` is the error of a call that can never
 * succeed: it shows whether a seccomp filter refused. `level` is the highest perf_event_paranoid at
 * which users are permitted; TS_SETTING_NONE: no such level.
 */
void ts_classify_perf(const struct ts_machine *machine, int error, int filter_error, int level,
		      struct ts_finding *finding);
void ts_classify_bpf(const struct ts_machine *machine, int error, int filter_error,
		     struct ts_finding *finding);

/* ---- helpers ---- */

/* Outside of containers the origin of a seccomp filter is unknown: adds a note and returns true. */
bool ts_note_filter(const struct ts_machine *machine, struct ts_finding *finding);

/* Starts a process that waits until it is stopped; its memory is a copy of ours. 0: fork failed. */
pid_t ts_sleeper_start(bool is_orphan);
void ts_sleeper_stop(pid_t pid, bool is_orphan);

/*
 * Sets a uprobe on a function of this program, with an eBPF program unless `program_fd` is
 * negative, and calls the function. Returns 0 and the hits that the kernel counted, or an errno.
 * ENODEV: the kernel has no uprobes.
 */
int ts_uprobe_try(int program_fd, uint64_t *ret_hits);

#endif
