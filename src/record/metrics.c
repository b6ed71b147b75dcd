/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes are sampled, and how often: those that take part in the recording, each at the pace that its own
 * settings say. Must not know what a sample is, nor where it goes: it comes back through the recorder's own area.
 */
#include "record/parts.h"

/* The list is made anew this often: a process that has just started has nothing to tell. */
#define RENEW_NS (100 * TS_NS_PER_MS)
#define LEAST_INTERVAL_NS TS_NS_PER_MS
/* A process that has made no area by then has no agent. */
#define WITHOUT_AREA_NS (300 * TS_NS_PER_MS)

int ts_recorder_sample(struct ts_recorder *recorder, const char *names, int64_t interval_ns,
		       const struct ts_metrics_consumer *consumer, struct ts_error *err)
{
	recorder->metrics.interval_ns = interval_ns;
	ts_recorder_raise_limit();
	return ts_sampler_open(&recorder->metrics.sampler, names, consumer, err);
}

/* Outside of windows nothing is stored, and so nothing is read. */
static bool is_wanted_now(const struct ts_recorder *recorder)
{
	if (recorder->options.window.kind == TS_WINDOW_ALWAYS || recorder->windows.open)
		return true;
	for (size_t i = 0; i < recorder->target_count; i++) {
		const struct ts_target *target = recorder->targets[i];

		if (target->open ||
		    (recorder->options.window.kind == TS_WINDOW_STEPS && !target->own &&
		     (ts_area_control(target->area)->enabled & TS_LIVE_ENABLED)))
			return true;
	}
	return false;
}

/* A target that nobody has set a pace for gets ours; from then on 0 means a pause. */
static int64_t interval_of(const struct ts_recorder *recorder, struct ts_target *target)
{
	int64_t interval_ns = (int64_t)ts_area_control(target->area)->config[0];

	if (!target->paced && !interval_ns) {
		interval_ns = recorder->metrics.interval_ns;
		TS_TARGET_SET(target, config[0], interval_ns);
	}
	target->paced = true;
	return interval_ns <= 0 ? 0 : TS_MAX(interval_ns, LEAST_INTERVAL_NS);
}

static void add(struct ts_recorder *recorder, pid_t pid, uint64_t start_time, int64_t interval_ns)
{
	struct ts_recorder_metrics *metrics = &recorder->metrics;

	/* A process may have several areas. */
	for (size_t i = 0; i < metrics->count; i++)
		if (metrics->processes[i].pid == pid)
			return;
	if (ts_grow_array((void **)&metrics->processes, &metrics->capacity, metrics->count + 1,
			  sizeof(*metrics->processes)))
		return;
	if (interval_ns)
		metrics->shortest_ns = TS_MIN(metrics->shortest_ns, interval_ns);
	metrics->processes[metrics->count++] = (struct ts_sampled_process){
		.pid = pid, .start_time = start_time, .interval_ns = interval_ns
	};
}

/* Those with an area have settings of their own; *ret_own_ns: those of the recorder. */
static void add_targets(struct ts_recorder *recorder, bool wanted, int64_t *ret_own_ns)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];
		int64_t interval_ns;

		if (target->dead || target->superseded || target->ended || !target->pid)
			continue;
		interval_ns = interval_of(recorder, target);
		if (target->own)
			*ret_own_ns = interval_ns;
		else
			add(recorder, target->pid, target->start_time, wanted ? interval_ns : 0);
	}
}

/* One that is new may still get an area; processes that the caller named would have had one. */
static bool may_get_area(const struct ts_recorder *recorder, const struct ts_child *child)
{
	return !(child->root && recorder->options.pid_count) &&
	       recorder->now_ns - child->seen_ns < WITHOUT_AREA_NS;
}

static int add_children(struct ts_recorder *recorder, int64_t interval_ns, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->child_count; i++) {
		struct ts_child *child = &recorder->children[i];
		int rc;

		if (child->gone || child->exited || child->has_area ||
		    may_get_area(recorder, child))
			continue;
		rc = ts_children_describe(recorder, child, err);
		if (rc)
			return rc;
		add(recorder, child->pid, child->start_time, interval_ns);
	}
	return TS_OK;
}

int ts_metrics_pass(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_recorder_metrics *metrics = &recorder->metrics;
	bool wanted = is_wanted_now(recorder) && !recorder->limited && !recorder->full;
	int64_t own_ns = metrics->interval_ns;
	int rc;

	if (!metrics->sampler || recorder->now_ns < metrics->renew_ns)
		return TS_OK;
	metrics->renew_ns = recorder->now_ns + RENEW_NS;
	metrics->count = 0;
	metrics->shortest_ns = metrics->interval_ns;
	add_targets(recorder, wanted, &own_ns);
	if (own_ns)
		metrics->shortest_ns = TS_MIN(metrics->shortest_ns, own_ns);
	rc = add_children(recorder, wanted ? own_ns : 0, err);
	if (rc)
		return rc;
	ts_sampler_set_interval(metrics->sampler, wanted ? own_ns : 0);
	return ts_sampler_set_processes(metrics->sampler, metrics->processes, metrics->count, err);
}

int ts_metrics_take(struct ts_recorder *recorder, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (target->own && !target->damaged && target->announced && !recorder->limited)
			return ts_recorder_drain(recorder, target, 0, err);
	}
	return TS_OK;
}

void ts_metrics_stop(struct ts_recorder *recorder)
{
	ts_sampler_close(TS_STEAL(recorder->metrics.sampler));
}

void ts_metrics_close(struct ts_recorder *recorder)
{
	ts_metrics_stop(recorder);
	free(recorder->metrics.processes);
}
