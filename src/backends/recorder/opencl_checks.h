/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `tracesmith doctor opencl`. */
#ifndef TS_BACKENDS_RECORDER_OPENCL_CHECKS_H
#define TS_BACKENDS_RECORDER_OPENCL_CHECKS_H

#include <tracesmith/backend.h>

void ts_check_opencl(struct ts_finding *ret_finding);
void ts_check_opencl_devices(struct ts_finding *ret_finding);
void ts_check_opencl_layers(struct ts_finding *ret_finding);
void ts_check_opencl_recording(struct ts_finding *ret_finding);
void ts_check_opencl_oclgrind(struct ts_finding *ret_finding);

#endif
