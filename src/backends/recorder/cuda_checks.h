/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of `tracesmith doctor cuda`, and the CUDA driver calls that they need, loaded at run
 * time.
 */
#ifndef TS_BACKENDS_RECORDER_CUDA_CHECKS_H
#define TS_BACKENDS_RECORDER_CUDA_CHECKS_H

#include <stdbool.h>

#include <tracesmith/backend.h>

#include "base/machine.h"

/* cuda_checks.c */
void ts_check_cuda(struct ts_finding *ret_finding);
void ts_check_gpu_counters(struct ts_finding *ret_finding);
void ts_check_mig(struct ts_finding *ret_finding);
void ts_check_mps(struct ts_finding *ret_finding);
/* cupti_check.c */
void ts_check_cupti(struct ts_finding *ret_finding);
/* cuda_replay_check.c */
void ts_check_cuda_replay(struct ts_finding *ret_finding);
/* cuda_recording_checks.c */
void ts_check_cuda_recording(struct ts_finding *ret_finding);
void ts_check_cuda_files(struct ts_finding *ret_finding);
void ts_check_cuda_profilers(struct ts_finding *ret_finding);
void ts_check_disassembler(struct ts_finding *ret_finding);
void ts_check_source_lines(struct ts_finding *ret_finding);

/* ---- diagnoses, which tests call with made-up facts ---- */

/* Explains the result of cuInit(). */
void ts_classify_cuda(int code, struct ts_finding *finding);

/*
 * Checks access to GPU counters. `admin_only` is the driver's setting, `driver` its major version;
 * 0: unknown.
 */
void ts_classify_gpu_counters(const struct ts_machine *machine, int admin_only, unsigned int driver,
			      struct ts_finding *finding);

/* ---- the driver ---- */

struct ts_cuda {
	int (*init)(unsigned int flags);
	int (*driver_version)(int *version);
	int (*device_count)(int *count);
	int (*device_get)(int *device, int number);
	int (*device_name)(char *name, int bytes, int device);
	int (*device_attribute)(int *value, int attribute, int device);
};

/*
 * Loads and initializes the driver. False if there is none to load or cuInit() fails; the finding
 * says why.
 */
bool ts_cuda_start(struct ts_cuda *ret_cuda, struct ts_finding *finding);

#endif
