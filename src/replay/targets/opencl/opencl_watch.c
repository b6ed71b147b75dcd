/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the monitor which command the device works on. */
#include <stdlib.h>

#include "replay/targets/opencl/opencl_session.h"
#include "replay/targets/target_watch.h"

struct ts_opencl_watch {
	struct ts_replay_session *session;
	struct ts_target_watch *thread; /* events of steps are not released while it looks */
	/* As last seen. */
	uint32_t first;     /* all steps before it are complete */
	uint32_t submitted; /* session->submitted */
	uint32_t complete;  /* number of complete steps; UINT32_MAX: not counted */
};

/* ---- looking at events ---- */

/*
 * Counts the complete steps, and returns one that is not: one that runs, otherwise the oldest. A
 * step that waits for a user event which is set later does not count.
 */
static uint32_t find_incomplete(const struct ts_opencl_watch *watch, uint32_t *ret_complete)
{
	const struct ts_replay_session *session = watch->session;
	uint32_t found = TS_REPLAY_NONE;
	bool is_running = false;

	*ret_complete = watch->first;
	for (uint32_t i = watch->first; i < watch->submitted; i++) {
		cl_int status = ts_opencl_status(session, i);

		*ret_complete += status <= CL_COMPLETE;
		if (status <= CL_COMPLETE || is_running ||
		    session->steps[i].gate > watch->submitted)
			continue;
		is_running = status == CL_RUNNING;
		if (is_running || found == TS_REPLAY_NONE)
			found = i;
	}
	return found;
}

static void look(void *context)
{
	struct ts_opencl_watch *watch = context;
	const struct ts_replay_session *session = watch->session;
	uint32_t submitted = __atomic_load_n(&session->submitted, __ATOMIC_ACQUIRE);
	uint32_t first = watch->first, complete = UINT32_MAX, incomplete, launching;
	bool advanced;

	while (watch->first < submitted && ts_opencl_status(session, watch->first) <= CL_COMPLETE)
		watch->first++;
	advanced = watch->first != first || submitted != watch->submitted;
	watch->submitted = submitted;
	/* There may be thousands: they are only looked at if nothing else shows progress. */
	if (advanced && watch->first < submitted)
		incomplete = watch->first;
	else
		incomplete = find_incomplete(watch, &complete);
	advanced |= complete != watch->complete;
	watch->complete = complete;
	launching = __atomic_load_n(&session->launching, __ATOMIC_ACQUIRE);
	if (incomplete == TS_REPLAY_NONE && launching)
		incomplete = launching - 1;
	ts_replay_monitor_command(session->replay, incomplete, advanced);
}

/* ---- the thread ---- */

int ts_opencl_watch_start(struct ts_replay_session *session, struct ts_error *err)
{
	struct ts_opencl_watch *watch;
	int rc;

	if (!session->replay->options.monitor)
		return TS_OK;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return ts_error_set(err, TS_ENOMEM, "no memory to watch the device");
	watch->session = session;
	rc = ts_target_watch_start(&watch->thread, session->replay, look, watch, err);
	if (rc)
		free(watch);
	else
		session->watch = watch;
	return rc;
}

void ts_opencl_watch_stop(struct ts_replay_session *session)
{
	if (!session->watch)
		return;
	ts_target_watch_stop(session->watch->thread);
	free(session->watch);
	session->watch = NULL;
}

void ts_opencl_watch_pause(struct ts_replay_session *session)
{
	if (session->watch)
		ts_target_watch_pause(session->watch->thread);
}

void ts_opencl_watch_resume(struct ts_replay_session *session)
{
	if (session->watch)
		ts_target_watch_resume(session->watch->thread);
}
