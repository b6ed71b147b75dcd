/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the source "nvml" with another library or root: for tests and benchmarks. */
#ifndef TS_SAMPLE_METRICS_NVML_NVML_OPEN_H
#define TS_SAMPLE_METRICS_NVML_NVML_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include <tracesmith/metrics.h>

struct nvml_options {
	const char *library;                              /* NULL: the system's */
	void *(*find)(void *library, const char *symbol); /* NULL: dlsym() */
	const char *root; /* root of /proc, /sys and /dev; "" or NULL: the real ones */
	bool is_inner;    /* our pids are not those of the driver */
};

struct nvml;

/* Like the source's open(). Use the result with sample() and close() of ts_metrics_nvml. */
enum ts_metrics_state nvml_open(struct nvml **ret_nvml, const struct nvml_options *options,
				char *why, size_t why_bytes);

#endif
