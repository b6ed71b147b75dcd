/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the source "nvml" otherwise than the system has it: for tests and measurements. */
#ifndef TS_SAMPLE_METRICS_NVML_NVML_OPEN_H
#define TS_SAMPLE_METRICS_NVML_NVML_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include <tracesmith/metrics.h>

struct nvml_options {
	const char *library;                              /* NULL: the system's */
	void *(*find)(void *library, const char *symbol); /* NULL: dlsym() */
	const char *root; /* where /proc, /sys and /dev are; "" or NULL: there */
	bool is_inner;    /* pids that we see are not those that the driver sees */
};

struct nvml;

/* As open() of the source. What it gives goes to sample() and close() of ts_metrics_nvml. */
enum ts_metrics_state nvml_open(struct nvml **ret_nvml, const struct nvml_options *options,
				char *why, size_t why_bytes);

#endif
