/* SPDX-License-Identifier: Apache-2.0 */
/* Table of device metric sources, built in and external. */
#ifndef TS_SAMPLE_METRICS_METRIC_SOURCES_H
#define TS_SAMPLE_METRICS_METRIC_SOURCES_H

#include <stddef.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

extern const struct ts_metrics_source ts_metrics_nvml;
extern const struct ts_metrics_source ts_metrics_npu_smi;
extern const struct ts_metrics_source ts_metrics_amd;

/* Built in, NULL-terminated. */
const struct ts_metrics_source *const *ts_metrics_sources(void);

/*
 * A built-in source by name, or that of libtracesmith-backend-NAME.so. TS_ENOTFOUND if there is
 * neither; TS_ECAP if the object has no metrics, or was built for another interface version.
 */
int ts_metrics_source_find(const char *name, const struct ts_metrics_source **ret_source,
			   struct ts_error *err);

#endif
