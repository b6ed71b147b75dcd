/* SPDX-License-Identifier: Apache-2.0 */
/* What targets that run commands on a device share between one command and the next. */
#include "replay/targets/target_pace.h"

#include <time.h>

#include "base/ns.h"
#include "replay/replay_internal.h"
#include "replay/stream/stream_internal.h"

#define PROGRESS_EVERY 256
#define NS_PER_SECOND 1000000000

static int64_t recorded_ns(const struct ts_replay *replay, uint32_t position)
{
	return replay->stream->commands[replay->plan.order[position]].start_ns;
}

int64_t ts_target_due_ns(const struct ts_replay *replay, uint32_t position, int64_t begin_ns)
{
	if (replay->options.pace != TS_REPLAY_ORIGINAL)
		return INT64_MIN;
	return ts_ns_add(begin_ns,
			 ts_ns_sub(recorded_ns(replay, position), recorded_ns(replay, 0)));
}

void ts_target_sleep_until(int64_t ns)
{
	struct timespec until = { .tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

int ts_target_progress(const struct ts_replay *replay, uint32_t done, struct ts_error *err)
{
	if (done % PROGRESS_EVERY)
		return TS_OK;
	return ts_replay_progress(replay, "replay", done, replay->plan.count, err);
}
