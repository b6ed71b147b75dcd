/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the monitor which command the device works on: the one that runs alone, or the first whose
 * event is not complete.
 */
#include "replay/targets/cuda/cuda_session.h"
#include "replay/targets/target_watch.h"

/* As last seen. */
struct seen {
	uint32_t first;                        /* all steps before it are complete */
	uint32_t submitted, running, progress; /* those of the session */
};

static bool is_complete(const struct ts_replay_session *session, uint32_t position)
{
	void *end = session->steps[position].end;

	return !end || session->cu.EventQuery(end) != CUDA_NOT_READY;
}

/* Submission order may differ from positions only if commands run one at a time. */
static void look_at_events(const struct ts_replay_session *session, struct seen *seen)
{
	uint32_t submitted = __atomic_load_n(&session->submitted, __ATOMIC_ACQUIRE);
	uint32_t first = seen->first;
	bool advanced = submitted != seen->submitted;
	uint32_t incomplete = TS_REPLAY_NONE;

	while (seen->first < submitted && is_complete(session, seen->first))
		seen->first++;
	advanced |= seen->first != first;
	seen->submitted = submitted;
	if (seen->first < submitted)
		incomplete = seen->first;
	else if (submitted && submitted < session->plan->count)
		incomplete = submitted;
	/* Only the first context has events. If commands of another one hang: the last. */
	else if (submitted && __atomic_load_n(&session->is_ending, __ATOMIC_ACQUIRE))
		incomplete = submitted - 1;
	ts_replay_monitor_command(session->replay, incomplete, advanced);
}

static void look(struct ts_replay_session *session, void *state)
{
	struct seen *seen = state;
	uint32_t running = __atomic_load_n(&session->running, __ATOMIC_ACQUIRE);
	uint32_t progress = __atomic_load_n(&session->progress, __ATOMIC_ACQUIRE);
	bool advanced = running != seen->running || progress != seen->progress;

	seen->running = running;
	seen->progress = progress;
	if (running)
		ts_replay_monitor_command(session->replay, running - 1, advanced);
	else if (!session->is_serial)
		look_at_events(session, seen);
	else
		ts_replay_monitor_command(session->replay, TS_REPLAY_NONE, advanced);
}

int ts_cuda_watch_start(struct ts_replay_session *session, struct ts_error *err)
{
	return ts_target_watch_start(&session->watch, session, session->replay, look,
				     sizeof(struct seen), err);
}
