/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the monitor which command the device works on. */
#include "replay/targets/opencl/opencl_session.h"
#include "replay/targets/target_watch.h"

/* As last seen. */
struct seen {
	uint32_t first;     /* all steps before it are complete */
	uint32_t submitted; /* session->submitted */
	uint32_t complete;  /* number of complete steps; UINT32_MAX: not counted */
};

/*
 * Counts the complete steps, and returns one that is not: one that runs, otherwise the oldest. A
 * step that waits for a user event which is set later does not count.
 */
static uint32_t find_incomplete(const struct ts_replay_session *session, const struct seen *seen,
				uint32_t *ret_complete)
{
	uint32_t found = TS_REPLAY_NONE;
	bool is_running = false;

	*ret_complete = seen->first;
	for (uint32_t i = seen->first; i < seen->submitted; i++) {
		cl_int status = ts_opencl_status(session, i);

		*ret_complete += status <= CL_COMPLETE;
		if (status <= CL_COMPLETE || is_running || session->steps[i].gate > seen->submitted)
			continue;
		is_running = status == CL_RUNNING;
		if (is_running || found == TS_REPLAY_NONE)
			found = i;
	}
	return found;
}

static void look(struct ts_replay_session *session, void *state)
{
	struct seen *seen = state;
	uint32_t submitted = __atomic_load_n(&session->submitted, __ATOMIC_ACQUIRE);
	uint32_t first = seen->first, complete = UINT32_MAX, incomplete, launching;
	bool advanced;

	while (seen->first < submitted && ts_opencl_status(session, seen->first) <= CL_COMPLETE)
		seen->first++;
	advanced = seen->first != first || submitted != seen->submitted;
	seen->submitted = submitted;
	/* There may be thousands: they are only looked at if nothing else shows progress. */
	if (advanced && seen->first < submitted)
		incomplete = seen->first;
	else
		incomplete = find_incomplete(session, seen, &complete);
	advanced |= complete != seen->complete;
	seen->complete = complete;
	launching = __atomic_load_n(&session->launching, __ATOMIC_ACQUIRE);
	if (incomplete == TS_REPLAY_NONE && launching)
		incomplete = launching - 1;
	ts_replay_monitor_command(session->replay, incomplete, advanced);
}

int ts_opencl_watch_start(struct ts_replay_session *session, struct ts_error *err)
{
	return ts_target_watch_start(&session->watch, session, session->replay, look,
				     sizeof(struct seen), err);
}
