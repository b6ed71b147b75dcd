/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the processes whose Python stacks are sampled, at which interval, and serves requests for
 * a sweep.
 */
#include "record/loop/record_internal.h"

/* Short, so that a new program is sampled from its first lines on. */
#define RENEW_NS (20 * TS_NS_PER_MS)

int ts_recorder_sample_python(struct ts_recorder *recorder, int64_t interval_ns,
			      const struct ts_python_sampler_options *options,
			      const struct ts_python_consumer *consumer, struct ts_error *err)
{
	struct ts_recorder_python *python = &recorder->python;

	python->pace = (struct ts_sampling_pace){ .word = TS_CONFIG_PYTHON_INTERVAL,
						  .interval_ns = interval_ns,
						  .least_ns = TS_PYTHON_MIN_INTERVAL_NS };
	ts_recorder_raise_limit();
	return ts_python_sampler_open(&python->sampler, options, consumer, err);
}

/* A changed config word requests a sweep. */
static void serve_requests(struct ts_recorder *recorder)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];
		uint64_t word;

		if (target->dead || target->superseded || target->ended || !target->pid)
			continue;
		word = ts_area_control(target->area)->config[TS_CONFIG_PYTHON_SWEEP];
		if (target->sweep_seen && word != target->sweep_requested &&
		    ts_sampled_now(recorder))
			ts_python_sampler_request(recorder->python.sampler,
						  target->is_self ? 0 : target->pid);
		target->sweep_seen = true;
		target->sweep_requested = word;
	}
}

int ts_python_pass(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_recorder_python *python = &recorder->python;
	struct ts_python_sampler_status status;
	int rc;

	if (!python->sampler || recorder->now_ns < python->renew_ns)
		return TS_OK;
	python->renew_ns = recorder->now_ns + RENEW_NS;
	rc = ts_sampled_renew(recorder, &python->pace, &python->list, err);
	if (!rc)
		rc = ts_python_sampler_set_processes(python->sampler, python->list.processes,
						     python->list.count, err);
	if (rc)
		return rc;
	ts_python_sampler_status(python->sampler, &status);
	python->is_reading = status.processes > 0;
	serve_requests(recorder);
	return TS_OK;
}

bool ts_recorder_python_status(const struct ts_recorder *recorder,
			       struct ts_python_sampler_status *ret_status)
{
	if (recorder->python.sampler)
		ts_python_sampler_status(recorder->python.sampler, ret_status);
	else
		*ret_status = recorder->python.last;
	return recorder->python.sampler != NULL;
}

void ts_python_stop(struct ts_recorder *recorder)
{
	ts_recorder_python_status(recorder, &recorder->python.last);
	ts_python_sampler_close(TS_STEAL(recorder->python.sampler));
}

int ts_python_report_status(struct ts_recorder *recorder, struct ts_error *err)
{
	uint64_t rejected = recorder->python.last.rejected;
	struct ts_block_loss loss = {
		.count = (int64_t)rejected,
		.first_counter = recorder->started_counter,
		.last_counter = ts_clocks_now(&recorder->clocks),
		.what = "stacks",
		.reason = "rejected, as they changed while they were read, twice",
	};
	int rc;

	if (!rejected)
		return TS_OK;
	rc = ts_recorder_append(recorder, TS_BLOCK_LOSS, 0, &loss, sizeof(loss), err);
	return rc == TS_ENOSPC ? TS_OK : rc;
}

void ts_python_release(struct ts_recorder *recorder)
{
	ts_python_stop(recorder);
	ts_sampled_release(&recorder->python.list);
}
