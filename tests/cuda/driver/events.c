/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: events, and streams that wait for them. */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/queues.h"

static struct handles event_handles = HANDLES;

bool is_event(const void *handle)
{
	const struct event *event = handle;

	return handles_have(&event_handles, handle) && !event->is_gone;
}

/*
 * As the real driver, gives the handle of a destroyed event to the next one. Not if something may
 * still use the old one: a pending record, a capture, a graph.
 */
static struct event *unused; /* `queues` is held */

static struct event *event_again(void)
{
	struct event *event = unused;

	if (!event || (event->point.stream && event->point.stream->completed < event->point.ticket))
		return NULL;
	unused = event->next;
	memset(event, 0, sizeof(*event));
	return event;
}

static struct event *event_new(void)
{
	struct event *event = calloc(1, sizeof(*event));

	handles_add(&event_handles, event);
	return event;
}

API cuEventCreate(struct event **ret_event, unsigned int flags)
{
	struct context *context = current_context();
	struct event *event;

	if (!context)
		return INVALID_CONTEXT;
	pthread_mutex_lock(&queues);
	event = event_again();
	if (!event)
		event = event_new();
	event->context = context;
	event->flags = flags;
	pthread_mutex_unlock(&queues);
	*ret_event = event;
	return 0;
}

API cuEventDestroy_v2(struct event *event)
{
	if (!is_event(event))
		return INVALID_HANDLE;
	pthread_mutex_lock(&queues);
	event->is_gone = true;
	if (!event->at && !event->is_in_graph) {
		event->next = unused;
		unused = event;
	}
	pthread_mutex_unlock(&queues);
	return 0;
}

static int record(struct stream *on, struct event *event, unsigned int flags)
{
	struct op op = { .kind = OP_EMPTY };

	if (!is_event(event))
		return INVALID_HANDLE;
	if (on->capture && flags & 1) {
		struct node *node;
		int result = capture_add(on, &op, &node);

		if (!result) {
			node->type = NODE_RECORD;
			node->event = event;
			event->is_in_graph = true;
		}
		return result;
	}
	if (on->capture)
		return capture_event(event, on);
	event->capture = NULL;
	return submit_event(on, &op, event);
}

int record_of_launch(struct stream *on, void *event)
{
	return record(on, event, 0);
}

static int do_cuEventRecord(struct stream *on, struct event *event)
{
	return record(on, event, 0);
}
STREAM_FUNCTION(cuEventRecord, (struct event * event, void *stream), (on, event))

static int do_cuEventRecordWithFlags(struct stream *on, struct event *event, unsigned int flags)
{
	return record(on, event, flags);
}
STREAM_FUNCTION(cuEventRecordWithFlags, (struct event * event, void *stream, unsigned int flags),
		(on, event, flags))

static int do_cuStreamWaitEvent(struct stream *on, struct event *event, unsigned int flags)
{
	if (!is_event(event))
		return INVALID_HANDLE;
	if (on->capture && flags & 1) {
		struct op op = { .kind = OP_EMPTY };
		struct node *node;
		int result = capture_add(on, &op, &node);

		if (!result) {
			node->type = NODE_WAIT;
			node->event = event;
			event->is_in_graph = true;
		}
		return result;
	}
	if (event->capture)
		return capture_wait(on, event);
	if (on->capture)
		return CAPTURE_UNSUPPORTED + 5; /* isolation */
	pthread_mutex_lock(&queues);
	add_wait(on, event->point);
	pthread_mutex_unlock(&queues);
	return 0;
}
STREAM_FUNCTION(cuStreamWaitEvent, (void *stream, struct event *event, unsigned int flags),
		(on, event, flags))

API cuEventQuery(struct event *event)
{
	bool is_done;

	if (!is_event(event))
		return INVALID_HANDLE;
	if (event->capture)
		return CAPTURE_UNSUPPORTED + 7;
	pthread_mutex_lock(&queues);
	is_done = !event->point.stream || event->point.stream->completed >= event->point.ticket;
	if (!is_done && settings.lazy) {
		bool is_stuck;

		(void)run_one(&is_stuck);
	}
	pthread_mutex_unlock(&queues);
	return device_error() ? device_error() : is_done ? 0 : NOT_READY;
}

API cuEventSynchronize(struct event *event)
{
	if (!is_event(event))
		return INVALID_HANDLE;
	if (event->capture)
		return CAPTURE_UNSUPPORTED + 7;
	pthread_mutex_lock(&queues);
	if (event->point.stream)
		wait_point(event->point);
	pthread_mutex_unlock(&queues);
	return device_error();
}

API cuEventElapsedTime_v2(float *ms, struct event *start, struct event *end)
{
	if (!is_event(start) || !is_event(end))
		return INVALID_HANDLE;
	if (cuEventQuery(start) || cuEventQuery(end))
		return NOT_READY;
	*ms = (float)(end->time_ns - start->time_ns) / 1e6f;
	return 0;
}

API cuEventElapsedTime(float *ms, struct event *start, struct event *end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}
