/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the processes that are sampled from outside, each at the interval of its own settings.
 * Shared by sample_metrics.c and sample_python.c; independent of what is sampled.
 */
#include "record/loop/record_internal.h"

/* A process without an area by then has no agent. */
#define WITHOUT_AREA_NS (300 * TS_NS_PER_MS)

/* Outside of windows nothing is stored, so nothing is sampled. */
static bool is_window_open(const struct ts_recorder *recorder)
{
	if (recorder->options.window.kind == TS_WINDOW_ALWAYS || recorder->windows.open)
		return true;
	for (size_t i = 0; i < recorder->target_count; i++) {
		const struct ts_target *target = recorder->targets[i];

		if (target->open ||
		    (ts_window_is_of_target(&recorder->options.window) && !target->is_self &&
		     (ts_area_control(target->area)->enabled & TS_LIVE_ENABLED)))
			return true;
	}
	return false;
}

bool ts_sampled_now(const struct ts_recorder *recorder)
{
	return is_window_open(recorder) && !recorder->limited && !recorder->full;
}

/* Sets our interval in a target that has none. After that, 0 means paused. */
static int64_t interval_of(struct ts_target *target, const struct ts_sampling_pace *pace)
{
	int64_t interval_ns = (int64_t)ts_area_control(target->area)->config[pace->word];
	uint32_t bit = 1u << pace->word;

	if (!(target->paced & bit) && !interval_ns) {
		interval_ns = pace->interval_ns;
		TS_TARGET_SET(target, config[pace->word], interval_ns);
	}
	target->paced |= bit;
	return interval_ns <= 0 ? 0 : TS_MAX(interval_ns, pace->least_ns);
}

void ts_sampled_leave(struct ts_target *target, const struct ts_sampling_pace *pace)
{
	/* The next recorder sets its own interval. */
	if ((target->paced & (1u << pace->word)) &&
	    (int64_t)ts_area_control(target->area)->config[pace->word] == pace->interval_ns)
		TS_TARGET_SET(target, config[pace->word], 0);
}

static void add(struct ts_sampled_list *list, pid_t pid, uint64_t start_time, int64_t interval_ns)
{
	/* A process may have several areas. */
	for (size_t i = 0; i < list->count; i++)
		if (list->processes[i].pid == pid)
			return;
	if (ts_grow_array((void **)&list->processes, &list->capacity, list->count + 1,
			  sizeof(*list->processes)))
		return;
	if (interval_ns)
		list->shortest_ns = TS_MIN(list->shortest_ns, interval_ns);
	list->processes[list->count++] = (struct ts_sampled_process){ .pid = pid,
								      .start_time = start_time,
								      .interval_ns = interval_ns };
}

static void add_targets(struct ts_recorder *recorder, const struct ts_sampling_pace *pace,
			bool wanted, struct ts_sampled_list *list)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];
		int64_t interval_ns;

		if (target->dead || target->superseded || target->ended || !target->pid)
			continue;
		interval_ns = interval_of(target, pace);
		if (target->is_self)
			list->default_ns = interval_ns;
		else
			add(list, target->pid, target->start_time, wanted ? interval_ns : 0);
	}
}

/* A new process may still get an area. Processes that the caller named would have one already. */
static bool may_get_area(const struct ts_recorder *recorder, const struct ts_child *child)
{
	return !recorder->options.outside && !(child->root && recorder->options.pid_count) &&
	       recorder->now_ns - child->seen_ns < WITHOUT_AREA_NS;
}

static int add_children(struct ts_recorder *recorder, const struct ts_sampling_pace *pace,
			int64_t interval_ns, struct ts_sampled_list *list, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->child_count; i++) {
		struct ts_child *child = &recorder->children[i];
		bool is_early = may_get_area(recorder, child);
		int rc = TS_OK;

		if (child->gone || child->exited || child->has_area || (is_early && pace->waits))
			continue;
		if (!is_early)
			rc = ts_children_describe(recorder, child, err);
		if (rc)
			return rc;
		add(list, child->pid, child->start_time, interval_ns);
	}
	return TS_OK;
}

int ts_sampled_renew(struct ts_recorder *recorder, const struct ts_sampling_pace *pace,
		     struct ts_sampled_list *list, struct ts_error *err)
{
	bool wanted = ts_sampled_now(recorder);

	list->count = 0;
	list->default_ns = pace->interval_ns;
	list->shortest_ns = pace->interval_ns;
	add_targets(recorder, pace, wanted, list);
	if (list->default_ns)
		list->shortest_ns = TS_MIN(list->shortest_ns, list->default_ns);
	return add_children(recorder, pace, wanted ? list->default_ns : 0, list, err);
}

void ts_sampled_release(struct ts_sampled_list *list)
{
	free(list->processes);
	*list = (struct ts_sampled_list){ .processes = NULL };
}

int ts_sampled_take(struct ts_recorder *recorder, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (target->is_self && !target->damaged && target->announced && !recorder->limited)
			return ts_recorder_drain(recorder, target, 0, err);
	}
	return TS_OK;
}
