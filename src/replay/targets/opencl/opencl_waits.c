/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of submitted commands: wait lists, waiting, times. The host never waits for a command
 * whose gate is closed (opencl_order.c).
 */
#include <string.h>

#include "base/ns.h"
#include "replay/targets/opencl/opencl_session.h"
#include "replay/targets/target_watch.h"

/*
 * Drivers may hold back commands until a queue is flushed; a flush per command would cost more than
 * it gains.
 */
#define FLUSH_EVERY 16

int ts_opencl_fail_command(const struct ts_replay_session *session, uint32_t position, cl_int code,
			   struct ts_error *err)
{
	uint32_t queue = session->steps[position].command->queue;
	char text[256];

	return ts_error_set(err, ts_opencl_error_code(code), "%s: %s (%d) on '%s'",
			    ts_replay_command_text(session->stream, session->plan->order[position],
						   text, sizeof(text)),
			    ts_opencl_error_name(code), code,
			    ts_opencl_device_name(session, queue));
}

uint32_t ts_opencl_gather_waits(struct ts_replay_session *session, uint32_t position)
{
	const struct ts_opencl_step *step = &session->steps[position];
	uint32_t count = 0;

	for (uint32_t i = 0; i < step->wait_count; i++) {
		const struct ts_opencl_step *target = &session->steps[step->waits[i]];
		cl_event event = target->waitable;

		if (!ts_opencl_has_event(target))
			event = session->objects[target->command->user_event].event;
		if (event)
			session->list[count++] = event;
	}
	return count;
}

/* ---- flushing ---- */

static int flush_queue(struct ts_replay_session *session, uint32_t queue, struct ts_error *err)
{
	struct ts_opencl_object *object = &session->objects[queue];
	cl_int code;

	if (!object->queue.unflushed)
		return TS_OK;
	object->queue.unflushed = 0;
	code = session->api.clFlush(object->queue.handle);
	return code ? ts_opencl_fail_object(session, queue, code, err) : TS_OK;
}

int ts_opencl_flush(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->queue_count && !rc; i++)
		rc = flush_queue(session, session->queues[i], err);
	return rc;
}

int ts_opencl_submitted(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_opencl_step *step = &session->steps[position];
	struct ts_opencl_object *queue = &session->objects[step->command->queue];
	bool at_once = session->replay->options.pace == TS_REPLAY_ORIGINAL;

	__atomic_store_n(&session->submitted, position + 1, __ATOMIC_RELEASE);
	queue->queue.pending++;
	queue->queue.gate = TS_MAX(queue->queue.gate, step->gate);
	if (++queue->queue.unflushed < FLUSH_EVERY && !at_once)
		return TS_OK;
	return flush_queue(session, step->command->queue, err);
}

/* ---- waiting ---- */

/* The first command that has failed; TS_REPLAY_NONE: none. */
static uint32_t first_failed(const struct ts_replay_session *session, uint32_t end)
{
	for (uint32_t i = session->oldest; i < end; i++)
		if (ts_opencl_status(session, i) < 0)
			return i;
	return TS_REPLAY_NONE;
}

int ts_opencl_fail_execution(const struct ts_replay_session *session, uint32_t position,
			     cl_int status, struct ts_error *err)
{
	uint32_t first = first_failed(session, position), queue;
	char text[256];

	if (first != TS_REPLAY_NONE) {
		position = first;
		status = ts_opencl_status(session, first);
	}
	queue = session->steps[position].command->queue;
	return ts_error_set(
		err, TS_ECAP, "%s: failed with %s (%d) on '%s'%s",
		ts_replay_command_text(session->stream, session->plan->order[position], text,
				       sizeof(text)),
		ts_opencl_error_name(status), status, ts_opencl_device_name(session, queue),
		status == CL_OUT_OF_RESOURCES ? "; some drivers report an invalid access like this"
					      : "");
}

/* Result of a command: 0, or its error unless the recording expects errors. */
static int check_status(const struct ts_replay_session *session, uint32_t position, cl_int status,
			struct ts_error *err)
{
	if (status >= 0 || session->expects_errors)
		return TS_OK;
	return ts_opencl_fail_execution(session, position, status, err);
}

cl_int ts_opencl_status(const struct ts_replay_session *session, uint32_t position)
{
	const struct ts_opencl_step *step = &session->steps[position];
	cl_int status = CL_COMPLETE;

	if (step->event)
		session->api.clGetEventInfo(step->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
					    sizeof(status), &status, NULL);
	return status;
}

static int wait_event(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct ts_opencl_step *step = &session->steps[position];
	cl_int code = session->api.clWaitForEvents(1, &step->waitable), status;

	if (!code)
		return TS_OK;
	status = ts_opencl_status(session, position);
	return check_status(session, position, status < 0 ? status : code, err);
}

int ts_opencl_wait(struct ts_replay_session *session, uint32_t position, uint32_t now,
		   struct ts_error *err)
{
	const struct ts_opencl_step *step = &session->steps[position];
	int rc;

	if (!step->waitable || step->gate > now)
		return TS_OK;
	/* Its dependencies may be in queues that the driver does not flush by itself. */
	rc = ts_opencl_flush(session, err);
	return rc ? rc : wait_event(session, position, err);
}

/* Waits one by one for commands of the queue that can end. */
static int wait_ungated(struct ts_replay_session *session, uint32_t queue, uint32_t now,
			struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = session->oldest; i < now && !rc; i++) {
		const struct ts_opencl_step *step = &session->steps[i];

		if (step->command->queue == queue && step->waitable && step->gate <= now)
			rc = wait_event(session, i, err);
	}
	return rc;
}

static int fail_queue(const struct ts_replay_session *session, uint32_t queue, uint32_t now,
		      cl_int code, struct ts_error *err)
{
	uint32_t first = session->expects_errors ? TS_REPLAY_NONE : first_failed(session, now);

	if (first == TS_REPLAY_NONE)
		return ts_opencl_fail_object(session, queue, code, err);
	return ts_opencl_fail_execution(session, first, ts_opencl_status(session, first), err);
}

static int finish_queue(struct ts_replay_session *session, uint32_t queue, uint32_t now,
			struct ts_error *err)
{
	struct ts_opencl_object *object = &session->objects[queue];
	cl_int code;

	if (!object->is_needed || !object->queue.pending)
		return TS_OK;
	if (object->queue.gate > now)
		return wait_ungated(session, queue, now, err);
	code = session->api.clFinish(object->queue.handle);
	if (code)
		return fail_queue(session, queue, now, code, err);
	object->queue.pending = object->queue.gate = object->queue.unflushed = 0;
	return TS_OK;
}

int ts_opencl_wait_queue(struct ts_replay_session *session, uint32_t queue, uint32_t now,
			 struct ts_error *err)
{
	int rc = ts_opencl_flush(session, err);

	if (queue != TS_REPLAY_NONE)
		return rc ? rc : finish_queue(session, queue, now, err);
	for (uint32_t i = 0; i < session->queue_count && !rc; i++)
		rc = finish_queue(session, session->queues[i], now, err);
	return rc;
}

/* ---- times ---- */

/* Drivers return 0 for a time they did not take; NVIDIA's do for markers and barriers. */
static int64_t profile(const struct ts_replay_session *session, cl_event event,
		       cl_profiling_info what)
{
	cl_ulong ns;

	if (session->api.clGetEventProfilingInfo(event, what, sizeof(ns), &ns, NULL) || ns == 0 ||
	    ns > INT64_MAX)
		return TS_ABSENT;
	return (int64_t)ns;
}

static int take_times(struct ts_replay_session *session, uint32_t position, cl_int status,
		      struct ts_error *err)
{
	struct ts_opencl_step *step = &session->steps[position];
	struct ts_replay_times *times = &session->outcome->times[position];

	if (status < 0)
		return check_status(session, position, status, err);
	times->queued = profile(session, step->event, CL_PROFILING_COMMAND_QUEUED);
	times->submitted = profile(session, step->event, CL_PROFILING_COMMAND_SUBMIT);
	times->start = profile(session, step->event, CL_PROFILING_COMMAND_START);
	times->end = profile(session, step->event, CL_PROFILING_COMMAND_END);
	if (times->start == TS_ABSENT || times->start > times->end)
		times->start = times->end;
	return TS_OK;
}

static void drop_event(struct ts_replay_session *session, struct ts_opencl_step *step)
{
	if (step->waitable == step->event)
		step->waitable = NULL;
	if (step->event)
		session->api.clReleaseEvent(step->event);
	step->event = NULL;
}

static int harvest(struct ts_replay_session *session, uint32_t end, bool all, struct ts_error *err)
{
	int rc = TS_OK;

	for (; session->oldest < end && !rc; session->oldest++) {
		struct ts_opencl_step *step = &session->steps[session->oldest];
		cl_int status;

		if (!step->event)
			continue;
		status = ts_opencl_status(session, session->oldest);
		if (status > CL_COMPLETE && !all)
			break;
		rc = take_times(session, session->oldest, status, err);
		if (step->last_use < end)
			drop_event(session, step);
	}
	return rc;
}

int ts_opencl_harvest(struct ts_replay_session *session, uint32_t end, bool all,
		      struct ts_error *err)
{
	int rc;

	ts_target_watch_pause(session->watch);
	rc = harvest(session, end, all, err);
	ts_target_watch_resume(session->watch);
	return rc;
}

void ts_opencl_drop_events(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->plan->count; i++) {
		drop_event(session, &session->steps[i]);
		session->steps[i].waitable = NULL;
	}
	for (uint32_t i = 0; i < session->queue_count; i++) {
		struct ts_opencl_object *queue = &session->objects[session->queues[i]];

		queue->queue.pending = queue->queue.gate = queue->queue.unflushed = 0;
	}
}

/* ---- clocks ---- */

/*
 * Offset of the device's clock (QUEUED of a command) from the host's; the shorter the call, the
 * more exact.
 */
struct tie {
	int64_t offset, width;
};

static void add_offset(int64_t *ns, int64_t offset)
{
	if (*ns != TS_ABSENT)
		*ns = ts_ns_add(*ns, offset);
}

static uint32_t device_of(const struct ts_replay_session *session, uint32_t position)
{
	uint32_t queue = session->steps[position].command->queue;

	return session->objects[ts_opencl_info(session, queue)->device].device;
}

static void tie_clock(const struct ts_replay_session *session, uint32_t position, struct tie *ties)
{
	const struct ts_replay_times *times = &session->outcome->times[position];
	struct tie *tie;
	int64_t width = session->steps[position].given - times->called;

	if (!ts_opencl_has_event(&session->steps[position]) || times->queued == TS_ABSENT)
		return;
	tie = &ties[device_of(session, position)];
	if (tie->width && width >= tie->width)
		return;
	tie->width = TS_MAX(width, 1);
	tie->offset = ts_ns_sub(times->called + width / 2, times->queued);
}

void ts_opencl_align_times(struct ts_replay_session *session)
{
	TS_AUTO_FREE struct tie *ties = calloc(session->device_count, sizeof(*ties));

	if (!ties)
		return;
	for (uint32_t i = 0; i < session->plan->count; i++)
		tie_clock(session, i, ties);
	for (uint32_t i = 0; i < session->plan->count; i++) {
		struct ts_replay_times *times = &session->outcome->times[i];

		if (!ts_opencl_has_event(&session->steps[i]))
			continue;
		add_offset(&times->queued, ties[device_of(session, i)].offset);
		add_offset(&times->submitted, ties[device_of(session, i)].offset);
		add_offset(&times->start, ties[device_of(session, i)].offset);
		add_offset(&times->end, ties[device_of(session, i)].offset);
	}
}
