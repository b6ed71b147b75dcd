/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the machine, processes and devices. Each device source has its own thread, so that one
 * that hangs delays nobody. The consumer is called from these threads.
 */
#ifndef TS_SAMPLE_METRICS_METRICS_SAMPLER_H
#define TS_SAMPLE_METRICS_METRICS_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "sample/metrics/metric_rows.h"
#include "sample/sampled_processes.h"

#define TS_METRICS_INTERVAL_NS INT64_C(100000000) /* default */

struct ts_metrics_sampler;

/*
 * `names`: comma-separated sources, "host,nvml"; NULL: all available. Unknown name: TS_ENOTFOUND.
 * The consumer must stay valid until the sampler is closed, and longer if a source hangs.
 */
int ts_metrics_sampler_open(struct ts_metrics_sampler **ret_sampler, const char *names,
			    const struct ts_metrics_consumer *consumer, struct ts_error *err);

/* Sampling interval of machine and devices; 0: paused. */
void ts_metrics_sampler_set_interval(struct ts_metrics_sampler *sampler, int64_t interval_ns);

/* Replaces the list of sampled processes. Processes that exit are dropped automatically. */
int ts_metrics_sampler_set_processes(struct ts_metrics_sampler *sampler,
				     const struct ts_sampled_process *processes, size_t count,
				     struct ts_error *err);

/* Waits until every device source has given its first sample, or has none; false: timed out. */
bool ts_metrics_sampler_wait_first(struct ts_metrics_sampler *sampler, int64_t limit_ns);

/* Waits for a running sample, but not for one that hangs. */
void ts_metrics_sampler_close(struct ts_metrics_sampler *sampler);
TS_DEFINE_AUTO(ts_metrics_sampler, ts_metrics_sampler_close);

#endif
