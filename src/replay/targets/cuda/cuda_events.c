/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the driver around commands, and the times that they took. The driver gives durations
 * between events as single-precision numbers: they are taken from an event that is not long ago.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/ns.h"
#include "replay/targets/cuda/cuda_session.h"
#include "replay/targets/target_watch.h"

/* Live events; beyond it, times are read while commands are still submitted. */
#define MOST_EVENTS 32768
#define EPOCH_MS 250.0f

/* ---- spare events ---- */

void *ts_cuda_take_event(struct ts_replay_session *session, const void *context)
{
	void *event = NULL;

	if (context != session->objects[session->contexts[0]].handle)
		return NULL;
	if (session->spare_count)
		return session->spare[--session->spare_count];
	return session->cu.EventCreate(&event, 0) ? NULL : event;
}

void ts_cuda_spare_event(struct ts_replay_session *session, void *event)
{
	if (!event)
		return;
	if (ts_grow_array((void **)&session->spare, &session->spare_capacity,
			  session->spare_count + 1, sizeof(*session->spare)))
		session->cu.EventDestroy(event);
	else
		session->spare[session->spare_count++] = event;
}

void ts_cuda_free_events(struct ts_replay_session *session)
{
	for (size_t i = 0; i < session->spare_count; i++)
		session->cu.EventDestroy(session->spare[i]);
	free(session->spare);
}

void ts_cuda_drop_events(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->plan->count; i++) {
		ts_cuda_spare_event(session, session->steps[i].begin);
		ts_cuda_spare_event(session, session->steps[i].end);
		session->steps[i].begin = session->steps[i].end = NULL;
	}
	ts_cuda_spare_event(session, session->epoch);
	session->epoch = NULL;
}

/* ---- times ---- */

int ts_cuda_begin_times(struct ts_replay_session *session, struct ts_error *err)
{
	int code = ts_cuda_enter(session, session->objects[session->contexts[0]].handle);

	session->oldest = 0;
	/* Not while commands are submitted. */
	while (!code && session->spare_count <
				TS_MIN(2 * (size_t)session->plan->count + 1, (size_t)MOST_EVENTS)) {
		void *event = NULL;

		if (session->cu.EventCreate(&event, 0))
			break;
		ts_cuda_spare_event(session, event);
	}
	session->epoch = ts_cuda_take_event(session, session->objects[session->contexts[0]].handle);
	if (!code && session->epoch)
		code = session->cu.EventRecord(session->epoch, (void *)CUDA_STREAM_LEGACY);
	if (!code && session->epoch)
		code = session->cu.EventSynchronize(session->epoch);
	session->epoch_ns = ts_clock_monotonic_ns();
	return code ? ts_cuda_fail(session, code, err, "cannot take times") : TS_OK;
}

static int64_t ns_of(float ms)
{
	return (int64_t)((double)ms * 1e6);
}

/* A begin becomes the epoch of what follows: it is taken from its step. */
static void move_epoch(struct ts_replay_session *session, struct ts_cuda_step *step, float ms)
{
	ts_cuda_spare_event(session, session->epoch);
	session->epoch = step->begin;
	session->epoch_ns = ts_ns_add(session->epoch_ns, ns_of(ms));
	step->begin = NULL;
}

/* Nodes of a graph have no times of their own. */
static void widen(struct ts_replay_span *all, const struct ts_replay_span *span)
{
	all->start = all->start == TS_ABSENT ? span->start : TS_MIN(all->start, span->start);
	all->end = all->end == TS_ABSENT ? span->end : TS_MAX(all->end, span->end);
}

static int read_step(struct ts_replay_session *session, uint32_t position)
{
	struct ts_cuda_step *step = &session->steps[position];
	struct ts_replay_times *times = &session->outcome->times[position];
	struct ts_replay_span span;
	float start = 0, duration = 0;
	int code = session->cu.EventElapsedTime(&start, session->epoch, step->begin);

	if (!code)
		code = session->cu.EventElapsedTime(&duration, step->begin, step->end);
	/* Events of another context, for example, cannot be compared. */
	if (!code) {
		span.start = ts_ns_add(session->epoch_ns, ns_of(start));
		span.end = ts_ns_add(span.start, ns_of(duration));
		if (step->is_in_graph)
			widen(&session->outcome->untimed, &span);
		times->start = step->is_in_graph ? TS_ABSENT : span.start;
		times->end = step->is_in_graph ? TS_ABSENT : span.end;
		if (start > EPOCH_MS)
			move_epoch(session, step, start);
	}
	ts_cuda_spare_event(session, step->begin);
	ts_cuda_spare_event(session, step->end);
	step->begin = step->end = NULL;
	return ts_cuda_is_sticky(code) ? code : 0;
}

int ts_cuda_read_times(struct ts_replay_session *session, uint32_t end, bool all,
		       struct ts_error *err)
{
	int code = 0;

	if (!all && end - session->oldest < MOST_EVENTS)
		return TS_OK;
	ts_target_watch_pause(session->watch);
	for (; session->oldest < end && !code; session->oldest++) {
		struct ts_cuda_step *step = &session->steps[session->oldest];

		if (!step->end)
			continue;
		if (!all && session->cu.EventQuery(step->end) == CUDA_NOT_READY)
			break;
		if (step->begin) {
			code = read_step(session, session->oldest);
		} else {
			ts_cuda_spare_event(session, step->end);
			step->end = NULL;
		}
	}
	ts_target_watch_resume(session->watch);
	return code ? ts_cuda_fail(session, code, err, "cannot take times") : TS_OK;
}
