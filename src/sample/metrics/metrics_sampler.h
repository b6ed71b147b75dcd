/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the machine, processes and devices, each source on a thread of its own: one that hangs
 * delays nobody. Rows go to a consumer, from these threads.
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

#define TS_METRICS_INTERVAL_NS INT64_C(100000000) /* unless asked otherwise */

struct ts_metrics_sampler;

/*
 * `names`: of sources, with commas: "host,nvml"; NULL: all that there are. A name that is not
 * known: TS_ENOTFOUND. The consumer stays valid until the sampler is closed, and beyond where a
 * source hangs.
 */
int ts_metrics_sampler_open(struct ts_metrics_sampler **ret_sampler, const char *names,
			    const struct ts_metrics_consumer *consumer, struct ts_error *err);

/* How often the machine and the devices are sampled; 0: not now. */
void ts_metrics_sampler_set_interval(struct ts_metrics_sampler *sampler, int64_t interval_ns);

/*
 * Which processes are sampled from now on, in place of those before. Those that end leave by
 * themselves.
 */
int ts_metrics_sampler_set_processes(struct ts_metrics_sampler *sampler,
				     const struct ts_sampled_process *processes, size_t count,
				     struct ts_error *err);

/*
 * Returns when every source of devices has given its first sample, or has nothing to give; false:
 * not within the limit.
 */
bool ts_metrics_sampler_wait_first(struct ts_metrics_sampler *sampler, int64_t limit_ns);

/* Waits for a sample that is under way, but not for one that hangs. */
void ts_metrics_sampler_close(struct ts_metrics_sampler *sampler);
TS_DEFINE_AUTO(ts_metrics_sampler, ts_metrics_sampler_close);

#endif
