/* SPDX-License-Identifier: Apache-2.0 */
/* State of an open npu-smi source. Only npu_smi.c and its test use it. */
#ifndef TS_SAMPLE_METRICS_ASCEND_NPU_SMI_H
#define TS_SAMPLE_METRICS_ASCEND_NPU_SMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sample/metrics/device_files.h"

struct ts_npu_known {
	uint32_t number;
	int64_t total_mib;
	char model[32];
	char bus[20];
};

struct ts_npu_smi {
	char program[512];
	char libraries[1024]; /* LD_LIBRARY_PATH=... */
	int64_t limit_ns;     /* time limit of one call */
	int64_t pause_ns;     /* after the first failure; doubles with each one */
	size_t max_bytes;
	int64_t next_ns; /* time of the next call */
	unsigned int failures;
	pid_t remains; /* a killed npu-smi that still hangs */
	uint64_t remains_start;
	bool sees_host_pids; /* npu-smi prints our pids */
	struct ts_device_table devices;
	struct ts_npu_known *known; /* devices already announced */
	size_t known_count, known_capacity;
};

#endif
