/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the processes whose metrics are sampled, and at which interval. */
#include "record/loop/record_internal.h"

/* How often to update the list; a process that has just started has no metrics worth reading. */
#define RENEW_NS (100 * TS_NS_PER_MS)
#define LEAST_INTERVAL_NS TS_NS_PER_MS

int ts_recorder_sample(struct ts_recorder *recorder, const char *names, int64_t interval_ns,
		       const struct ts_metrics_consumer *consumer, struct ts_error *err)
{
	struct ts_recorder_metrics *metrics = &recorder->metrics;

	metrics->pace = (struct ts_sampling_pace){ .word = TS_CONFIG_SAMPLE_RATE,
						   .interval_ns = interval_ns,
						   .least_ns = LEAST_INTERVAL_NS,
						   .waits = true };
	ts_recorder_raise_limit();
	return ts_metrics_sampler_open(&metrics->sampler, names, consumer, err);
}

int ts_metrics_pass(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_recorder_metrics *metrics = &recorder->metrics;
	int rc;

	if (!metrics->sampler || recorder->now_ns < metrics->renew_ns)
		return TS_OK;
	metrics->renew_ns = recorder->now_ns + RENEW_NS;
	rc = ts_sampled_renew(recorder, &metrics->pace, &metrics->list, err);
	if (rc)
		return rc;
	ts_metrics_sampler_set_interval(metrics->sampler,
					ts_sampled_now(recorder) ? metrics->list.default_ns : 0);
	return ts_metrics_sampler_set_processes(metrics->sampler, metrics->list.processes,
						metrics->list.count, err);
}

void ts_metrics_stop(struct ts_recorder *recorder)
{
	ts_metrics_sampler_close(TS_STEAL(recorder->metrics.sampler));
}

void ts_metrics_close(struct ts_recorder *recorder)
{
	ts_metrics_stop(recorder);
	ts_sampled_release(&recorder->metrics.list);
}
