/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of idle devices for reasons that the trace does not have: how much that is, and what to
 * record to learn more.
 */
#include "analyze/advice/advice.h"
#include "analyze/statistics.h"

/* Waits that nothing explains are told from this share of the window on, in 1/1000. */
#define WAITS_PERMILLE 50

struct unknown {
	int64_t idle_ns, waits_ns; /* of all ranks; the mean over the devices of each */
	uint64_t waits;
	struct ts_state_interval longest; /* of the idle ones */
};

static bool is_idle(const struct ts_state_interval *interval)
{
	return interval->state == TS_STATE_IDLE && interval->reason == TS_REASON_LAUNCH_MISSING;
}

static bool is_wait(const struct ts_state_interval *interval)
{
	return interval->state == TS_STATE_WAIT && interval->reason == TS_REASON_UNKNOWN;
}

static void add_lane(struct unknown *unknown, const struct ts_states *states,
		     const struct ts_state_lane *lane)
{
	uint32_t rank = states->work->devices[lane->device].rank;
	uint32_t devices = TS_MAX(states->work->ranks[rank].device_count, 1);
	int64_t idle_ns = 0, waits_ns = 0;

	for (size_t i = lane->first; i < lane->first + lane->count; i++) {
		const struct ts_state_interval *interval = &states->intervals[i];
		int64_t length = interval->end - interval->start;

		if (is_idle(interval)) {
			idle_ns = ts_ns_add(idle_ns, length);
			if (length > unknown->longest.end - unknown->longest.start)
				unknown->longest = *interval;
		} else if (is_wait(interval)) {
			waits_ns = ts_ns_add(waits_ns, length);
			unknown->waits++;
		}
	}
	unknown->idle_ns = ts_ns_add(unknown->idle_ns, idle_ns / devices);
	unknown->waits_ns = ts_ns_add(unknown->waits_ns, waits_ns / devices);
}

static int advise_idle(struct ts_advisor *advisor, const struct unknown *unknown)
{
	const struct ts_work *work = advisor->states->work;
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_printf(&finding,
		       "the device is idle, and the trace does not say why: the calls that issued "
		       "%s are not in it; %s",
		       work->call_count ? "part of its work" : "its work",
		       ts_advice_record_calls(work));
	ts_text_printf(
		&evidence,
		"idle for %s, %.0f %% of the window, before commands whose call is missing; that "
		"is so for %s of %s; the longest gap lasts %s and starts %s into the trace",
		TS_ADVICE_TIME(unknown->idle_ns),
		100.0 * (double)unknown->idle_ns / (double)TS_MAX(advisor->window_ns, 1) /
			(double)TS_MAX(work->rank_count, 1),
		ts_format_count((char[TS_FORMAT_BYTES]){ 0 }, TS_FORMAT_BYTES,
				(int64_t)work->commands_without_call),
		TS_COUNTED(work->command_count, "command"),
		TS_ADVICE_TIME(unknown->longest.end - unknown->longest.start),
		TS_ADVICE_TIME(ts_ns_sub(unknown->longest.start, advisor->result->start)));
	return ts_advise_unexplained(advisor, unknown->idle_ns, "idle", &finding, &evidence);
}

static int advise_waits(struct ts_advisor *advisor, const struct unknown *unknown)
{
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_append_str(
		&finding,
		"issued commands do not start although all they are known to wait for is done; another stream, process or host function may hold them up: record events and synchronization, too");
	ts_text_printf(&evidence, "the device waited for %s in %s",
		       TS_ADVICE_TIME(unknown->waits_ns), TS_COUNTED(unknown->waits, "gap"));
	return ts_advise_unexplained(advisor, unknown->waits_ns, "idle", &finding, &evidence);
}

int ts_advise_unknown_idle(struct ts_advisor *advisor)
{
	const struct ts_states *states = advisor->states;
	int64_t least_wait_ns = advisor->window_ns / 1000 * WAITS_PERMILLE *
				TS_MAX((int64_t)states->work->rank_count, 1);
	struct unknown unknown = { 0 };
	int code = TS_OK;

	for (uint32_t i = 0; i < states->lane_count; i++)
		if (states->lanes[i].stream == TS_WORK_NONE)
			add_lane(&unknown, states, &states->lanes[i]);
	if (unknown.idle_ns > 0)
		code = advise_idle(advisor, &unknown);
	if (!code && unknown.waits_ns > least_wait_ns)
		code = advise_waits(advisor, &unknown);
	return code;
}
