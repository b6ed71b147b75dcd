/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a watcher what the replay is doing, and how long that may take. */
#include "replay/monitor.h"

#include <stdio.h>
#include <string.h>

#include "replay/output/replay_output.h"
#include "replay/replay.h"
#include "replay/stream/stream_internal.h"

#define NS_PER_SECOND INT64_C(1000000000)
/*
 * Default limits: a device, or an emulator of one, may be far slower than the recorded one, but a
 * trace must not be able to ask for any time.
 */
#define RUN_NS (60 * NS_PER_SECOND)
#define RUN_FACTOR 100
#define MOST_RUN_NS (3600 * NS_PER_SECOND)
#define BUILD_NS (600 * NS_PER_SECOND)

/* ---- limits ---- */

/* Durations of the plan's commands, by position. */
static int load_durations(struct ts_replay *replay, int64_t *ret_longest_ns, struct ts_error *err)
{
	struct ts_replay_recorded recorded;
	int rc = ts_replay_recorded_load(&recorded, replay, err);

	*ret_longest_ns = 0;
	if (rc)
		return rc;
	replay->recorded_ns = ts_alloc_array(replay->plan.count + 1u, sizeof(int64_t));
	for (uint32_t i = 0; replay->recorded_ns && i < replay->plan.count; i++) {
		const struct ts_gpu_op_row *row = ts_replay_recorded_row(&recorded, i);

		replay->recorded_ns[i] = TS_ABSENT;
		if (!row || row->duration < 0)
			continue;
		replay->recorded_ns[i] = row->duration;
		*ret_longest_ns = TS_MAX(*ret_longest_ns, row->duration);
	}
	ts_replay_recorded_release(&recorded);
	return replay->recorded_ns ? TS_OK : ts_replay_no_memory(err);
}

int ts_replay_monitor_prepare(struct ts_replay *replay, struct ts_error *err)
{
	struct ts_replay_monitor *monitor = replay->options.monitor;
	int64_t limit_ns = replay->options.time_limit_ns, longest_ns;
	int rc;

	if (!monitor)
		return TS_OK;
	rc = load_durations(replay, &longest_ns, err);
	if (rc)
		return rc;
	if (limit_ns == TS_REPLAY_LIMIT_DEFAULT) {
		longest_ns = TS_MIN(longest_ns, MOST_RUN_NS / RUN_FACTOR);
		monitor->run_limit_ns = TS_MAX(RUN_NS, longest_ns * RUN_FACTOR);
		monitor->build_limit_ns = BUILD_NS;
	} else if (limit_ns != TS_REPLAY_LIMIT_NONE) {
		monitor->run_limit_ns = monitor->build_limit_ns = limit_ns;
	}
	return TS_OK;
}

/* ---- activities ---- */

void ts_replay_monitor_enter(const struct ts_replay *replay, enum ts_replay_activity activity,
			     const char *subject)
{
	struct ts_replay_monitor *monitor = replay->options.monitor;

	if (!monitor)
		return;
	/* Without a limit until everything is written. */
	ts_heartbeat_set_limit(&monitor->heartbeat, 0);
	monitor->activity = activity;
	monitor->command = 0;
	monitor->recorded_ns = TS_ABSENT;
	snprintf(monitor->subject, sizeof(monitor->subject), "%s", subject ? subject : "");
	if (activity == TS_REPLAY_BUILDING)
		ts_heartbeat_set_limit(&monitor->heartbeat, monitor->build_limit_ns);
}

bool ts_replay_monitor_doubt(const struct ts_replay *replay)
{
	struct ts_replay_monitor *monitor = replay->options.monitor;

	if (!monitor || replay->options.check != TS_REPLAY_CHECK_FINAL)
		return false;
	monitor->is_doubtful = true;
	return true;
}

static void name_command(const struct ts_replay *replay, struct ts_replay_monitor *monitor,
			 uint32_t position)
{
	uint32_t index = replay->plan.order[position];

	monitor->command = replay->stream->commands[index].sequence;
	monitor->recorded_ns = replay->recorded_ns ? replay->recorded_ns[position] : TS_ABSENT;
	ts_replay_command_text(replay->stream, index, monitor->subject, sizeof(monitor->subject));
}

void ts_replay_monitor_command(const struct ts_replay *replay, uint32_t position, bool advanced)
{
	struct ts_replay_monitor *monitor = replay->options.monitor;

	if (!monitor)
		return;
	if (position == TS_REPLAY_NONE) {
		ts_replay_monitor_enter(replay, TS_REPLAY_RUNNING, NULL);
		return;
	}
	if (monitor->command != replay->stream->commands[replay->plan.order[position]].sequence)
		name_command(replay, monitor, position);
	if (advanced || monitor->heartbeat.limit_ns != monitor->run_limit_ns)
		ts_heartbeat_set_limit(&monitor->heartbeat, monitor->run_limit_ns);
}
