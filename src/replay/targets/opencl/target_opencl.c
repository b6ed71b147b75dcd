/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target `opencl`: opens a session with everything that the plan needs and runs the plan on
 * real devices. opencl_session.h lists the other files.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "replay/targets/opencl/opencl_session.h"
#include "replay/targets/target_pace.h"
#include "replay/targets/target_watch.h"

/* Maximum number of live events; beyond it, times are read while commands are still submitted. */
#define MOST_EVENTS 32768

/* ---- a session ---- */

static void close_session(struct ts_replay_session *session)
{
	if (!session)
		return;
	ts_opencl_free_functions(session);
	ts_opencl_free_objects(session);
	ts_opencl_free_outputs(session);
	ts_map_release(&session->staged);
	free(session->devices);
	ts_arena_release(&session->arena);
	free(session);
}
TS_DEFINE_AUTO(ts_replay_session, close_session);

static int make_session(struct ts_replay_session *session, struct ts_error *err)
{
	static int (*const makers[])(struct ts_replay_session * session, struct ts_error * err) = {
		ts_opencl_make_order,   ts_opencl_mark_needed,    ts_opencl_choose_devices,
		ts_opencl_make_objects, ts_opencl_make_functions, ts_opencl_make_steps,
		ts_opencl_make_outputs,
	};
	int rc = ts_opencl_api_open(&session->api, err);

	for (size_t i = 0; i < TS_ARRAY_SIZE(makers) && !rc; i++)
		rc = makers[i](session, err);
	return rc;
}

static int open_session(struct ts_replay *replay, struct ts_replay_session **ret_session,
			struct ts_error *err)
{
	TS_AUTO(ts_replay_session) session = calloc(1, sizeof(*session));
	int rc;

	if (!session)
		return ts_error_set(err, TS_ENOMEM, "no memory for a session");
	session->replay = replay;
	session->stream = replay->stream;
	session->plan = &replay->plan;
	session->objects = ts_arena_alloc_zeroed(&session->arena, replay->stream->object_count,
						 sizeof(*session->objects));
	if (!session->objects)
		return ts_error_set(err, TS_ENOMEM, "no memory for objects");
	rc = make_session(session, err);
	if (!rc)
		*ret_session = TS_STEAL(session);
	return rc;
}

static const char *describe_session(const struct ts_replay_session *session)
{
	return session->text;
}

/* ---- a run ---- */

/* Waits until the command is due; the device has all that was submitted before. */
static int keep_pace(struct ts_replay_session *session, uint32_t position, int64_t begin,
		     struct ts_error *err)
{
	int64_t due = ts_target_due_ns(session->replay, position, begin);
	int rc;

	if (due <= ts_clock_monotonic_ns())
		return TS_OK;
	rc = ts_opencl_flush(session, err);
	if (!rc)
		ts_target_sleep_until(due);
	return rc;
}

static int run_step(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct ts_replay_times *times = &session->outcome->times[position];
	int rc;

	times->called = ts_clock_monotonic_ns();
	rc = ts_opencl_submit(session, position, err);
	times->returned = ts_clock_monotonic_ns();
	__atomic_store_n(&session->submitted, position + 1, __ATOMIC_RELEASE);
	if (!rc && position - session->oldest > MOST_EVENTS)
		rc = ts_opencl_harvest(session, position, false, err);
	return rc;
}

static int run_steps(struct ts_replay_session *session, struct ts_error *err)
{
	uint32_t count = session->plan->count;
	int64_t begin = ts_clock_monotonic_ns();
	int rc = TS_OK;

	for (uint32_t i = 0; i < count && !rc; i++) {
		rc = ts_target_progress(session->replay, i, err);
		if (!rc)
			rc = keep_pace(session, i, begin, err);
		if (!rc)
			rc = run_step(session, i, err);
	}
	return rc ? rc : ts_opencl_wait_queue(session, TS_REPLAY_NONE, count, err);
}

static int collect(struct ts_replay_session *session, struct ts_error *err)
{
	uint32_t count = session->plan->count;
	int rc = ts_opencl_deliver(session, session->output_count, count, err);

	if (!rc)
		rc = ts_opencl_harvest(session, count, true, err);
	if (!rc)
		rc = ts_opencl_final_content(session, err);
	if (!rc)
		ts_opencl_align_times(session);
	return rc;
}

/* Submitted commands must end before their memory is freed or reused. */
static void end_run(struct ts_replay_session *session)
{
	ts_opencl_drop_user_events(session);
	for (uint32_t i = 0; i < session->queue_count; i++)
		session->api.clFinish(session->objects[session->queues[i]].queue.handle);
	ts_target_watch_stop(session->watch);
	session->watch = NULL;
	ts_opencl_drop_outputs(session);
	ts_opencl_drop_events(session);
	session->outcome = NULL;
}

static int run_session(struct ts_replay_session *session, unsigned int number,
		       struct ts_replay_outcome *outcome, struct ts_error *err)
{
	int rc;

	session->outcome = outcome;
	session->delivered = session->oldest = session->submitted = 0;
	rc = ts_opencl_watch_start(session, err);
	if (!rc)
		rc = ts_opencl_restore(session, err);
	if (!rc)
		rc = run_steps(session, err);
	if (!rc)
		rc = collect(session, err);
	end_run(session);
	return rc;
}

const struct ts_replay_target ts_replay_target_opencl = {
	.name = "opencl",
	.summary = "runs a recorded command stream on a device through OpenCL",
	.needs = TS_REPLAY_NEEDS_STREAM,
	.can = TS_REPLAY_CAN_ALL,
	.default_check = TS_REPLAY_CHECK_FINAL,
	.finds_crashes = "oclgrind finds invalid accesses of kernels",
	.open = open_session,
	.run = run_session,
	.device = describe_session,
	.close = close_session,
};
