/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the monitor which command the device works on: the one that runs alone, or the first whose
 * event is not complete.
 */
#include "replay/targets/cuda/cuda_session.h"
#include "replay/targets/target_watch.h"

struct ts_cuda_watch {
	struct ts_replay_session *session;
	struct ts_target_watch *thread;
	uint32_t first;     /* all steps before it are complete */
	uint32_t submitted; /* session->submitted, as last seen */
	uint32_t running;   /* session->running, as last seen */
	uint32_t progress;  /* session->progress, as last seen */
};

static bool is_complete(const struct ts_replay_session *session, uint32_t position)
{
	void *end = session->steps[position].end;

	return !end || session->cu.EventQuery(end) != CUDA_NOT_READY;
}

/* Submission order may differ from positions only if commands run one at a time. */
static void look_at_events(struct ts_cuda_watch *watch)
{
	const struct ts_replay_session *session = watch->session;
	uint32_t submitted = __atomic_load_n(&session->submitted, __ATOMIC_ACQUIRE);
	uint32_t first = watch->first;
	bool advanced = submitted != watch->submitted;

	while (watch->first < submitted && is_complete(session, watch->first))
		watch->first++;
	advanced |= watch->first != first;
	watch->submitted = submitted;
	ts_replay_monitor_command(session->replay,
				  watch->first < submitted                        ? watch->first
				  : submitted && submitted < session->plan->count ? submitted
										  : TS_REPLAY_NONE,
				  advanced);
}

static void look(void *context)
{
	struct ts_cuda_watch *watch = context;
	const struct ts_replay_session *session = watch->session;
	uint32_t running = __atomic_load_n(&session->running, __ATOMIC_ACQUIRE);
	uint32_t progress = __atomic_load_n(&session->progress, __ATOMIC_ACQUIRE);
	bool advanced = running != watch->running || progress != watch->progress;

	watch->running = running;
	watch->progress = progress;
	if (running)
		ts_replay_monitor_command(session->replay, running - 1, advanced);
	else if (!session->is_serial)
		look_at_events(watch);
	else
		ts_replay_monitor_command(session->replay, TS_REPLAY_NONE, advanced);
}

int ts_cuda_watch_start(struct ts_replay_session *session, struct ts_error *err)
{
	struct ts_cuda_watch *watch;
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

void ts_cuda_watch_stop(struct ts_replay_session *session)
{
	if (!session->watch)
		return;
	ts_target_watch_stop(session->watch->thread);
	free(session->watch);
	session->watch = NULL;
}

void ts_cuda_watch_pause(struct ts_replay_session *session)
{
	if (session->watch)
		ts_target_watch_pause(session->watch->thread);
}

void ts_cuda_watch_resume(struct ts_replay_session *session)
{
	if (session->watch)
		ts_target_watch_resume(session->watch->thread);
}
