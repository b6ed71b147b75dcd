/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the machine and of processes, from /proc. Descriptors stay open between samples. Rates
 * are differences of two samples, so the first has none. Unreadable values are left out.
 */
#ifndef TS_SAMPLE_METRICS_HOST_HOST_METRICS_H
#define TS_SAMPLE_METRICS_HOST_HOST_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

#include "base/memory.h"

struct ts_system_metrics;
int ts_system_metrics_open(struct ts_system_metrics **ret_metrics, struct ts_error *err);
/* `now_ns`: CLOCK_MONOTONIC at this sample. */
void ts_system_metrics_sample(struct ts_system_metrics *metrics, int64_t now_ns,
			      const struct ts_metrics_sink *sink);
void ts_system_metrics_close(struct ts_system_metrics *metrics);
TS_DEFINE_AUTO(ts_system_metrics, ts_system_metrics_close);

struct ts_process_metrics;
/* `start_time` 0: whichever process has the pid now. TS_ENOTFOUND: no such process. */
int ts_process_metrics_open(struct ts_process_metrics **ret_metrics, pid_t pid, uint64_t start_time,
			    struct ts_error *err);
/* False: it has exited, and nothing was given. */
bool ts_process_metrics_sample(struct ts_process_metrics *metrics, int64_t now_ns,
			       const struct ts_metrics_sink *sink);
void ts_process_metrics_close(struct ts_process_metrics *metrics);
TS_DEFINE_AUTO(ts_process_metrics, ts_process_metrics_close);

#endif
