/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sources of device metrics, and those that others supply. */
#ifndef TS_SAMPLE_METRICS_METRIC_SOURCES_H
#define TS_SAMPLE_METRICS_METRIC_SOURCES_H

#include <stddef.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

extern const struct ts_metrics_source ts_metrics_nvml;
extern const struct ts_metrics_source ts_metrics_npu_smi;
extern const struct ts_metrics_source ts_metrics_amd;

/* Ours, ended by NULL. */
const struct ts_metrics_source *const *ts_metrics_sources(void);

/*
 * One of ours by name, or that of libtracesmith-backend-NAME.so. TS_ENOTFOUND where there is
 * neither; TS_ECAP where the object is there and has no metrics, or was built for another version
 * of the interface.
 */
int ts_metrics_source_find(const char *name, const struct ts_metrics_source **ret_source,
			   struct ts_error *err);

#endif
