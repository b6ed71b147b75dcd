/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What orders commands: events, waits of streams, and of the host (docs/cuda-replay.md, 4.2). An
 * event has one number in a window; a wait is for its latest record. Calls that block hold neither
 * the gate nor a lock meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"
#include "base/local/stream_text.h"

/* ---- numbers of events ---- */

#define FIRST_CAPACITY 1024u

struct event {
	void *handle; /* NULL: empty */
	uint64_t number;
	bool is_recorded; /* in this window */
	bool was_seen;    /* complete, since its last record */
};

/* By open addressing; entries are removed only when a window opens. capture_lock is held. */
static struct {
	struct event *items;
	size_t count, capacity;
} events;

static struct event *slot_of(struct event *items, size_t capacity, const void *handle)
{
	size_t at = (size_t)(((uint64_t)(uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15)) >> 32) &
		    (capacity - 1);

	while (items[at].handle && items[at].handle != handle)
		at = (at + 1) & (capacity - 1);
	return &items[at];
}

static bool grow(void)
{
	size_t capacity = events.capacity ? 2 * events.capacity : FIRST_CAPACITY;
	struct event *items = calloc(capacity, sizeof(*items));

	if (!items)
		return false;
	for (size_t i = 0; i < events.capacity; i++) {
		if (events.items[i].handle)
			*slot_of(items, capacity, events.items[i].handle) = events.items[i];
	}
	free(events.items);
	events.items = items;
	events.capacity = capacity;
	return true;
}

/* NULL: the window has failed. */
static struct event *event_of(void *handle)
{
	struct event *event;

	if (2 * events.count >= events.capacity && !grow()) {
		capture_fail("no memory for the numbers of events");
		return NULL;
	}
	event = slot_of(events.items, events.capacity, handle);
	if (!event->handle) {
		*event = (struct event){ .handle = handle, .number = ts_replay_new_object() };
		events.count++;
	}
	return event;
}

uint64_t capture_event_number(void *handle)
{
	struct event *event = event_of(handle);

	return event ? event->number : 0;
}

void capture_event_recorded(void *handle)
{
	struct event *event = event_of(handle);

	if (event) {
		event->is_recorded = true;
		event->was_seen = false;
	}
}

void capture_order_forget(void)
{
	free(events.items);
	events.items = NULL;
	events.count = events.capacity = 0;
}

/* ---- rows ---- */

/* `key`, with a list of one event for a wait; `until` 0: none. */
static void append(const struct cuda_call *call, uint32_t kind, uint64_t queue, uint64_t object,
		   const char *what, const struct event *event, uint64_t until)
{
	struct ts_replay_command row = capture_row(kind);
	struct stream_text text;

	row.queue = queue;
	row.object = object;
	stream_text_begin(&text);
	stream_text_string(&text, "call", call->name);
	if (what)
		stream_text_string(&text, "what", what);
	if (until)
		stream_text_uint(&text, "until", until);
	if (event && kind == TS_COMMAND_RECORD) {
		stream_text_uint(&text, "event", event->number);
	} else if (event) {
		stream_text_open(&text, "wait", '[');
		stream_text_item(&text, event->number);
		stream_text_close(&text, '[');
	}
	row.details = stream_text_end(&text);
	capture_command(&row);
}

/*
 * Calls that wait hold no gate meanwhile, so the window may have been closed, and another opened:
 * the row of a call belongs to the window in which it began.
 */
struct before {
	uint64_t window, sequence;
};

static struct before begin(void)
{
	if (!capture_is_open())
		return (struct before){ 0 };
	return (struct before){ ts_replay_window(), capture_last_sequence() };
}

/* capture_lock is held. */
static bool is_same_window(const struct before *before)
{
	return before->window && capture_is_open() && ts_replay_window() == before->window;
}

/* ---- events ---- */

static void record(const struct cuda_call *call, struct event *event, uint64_t queue)
{
	event->is_recorded = true;
	event->was_seen = false;
	append(call, TS_COMMAND_RECORD, queue, 0, NULL, event, 0);
}

void capture_event_of_launch(const struct cuda_call *call, void *handle, uint64_t queue)
{
	struct event *event = event_of(handle);

	if (event)
		record(call, event, queue);
}

/* It has a number from its first record on. */
static int create_event(struct cuda_call *call, uintptr_t *args)
{
	return cuda_invoke(call, args);
}

/* event, stream */
static int record_event(struct cuda_call *call, uintptr_t *args)
{
	struct event *event;
	int result;

	if (!capture_is_open() || capture_is_captured(call, args[1]))
		return cuda_invoke(call, args);
	capture_lock();
	result = cuda_invoke(call, args);
	event = result == CUDA_SUCCESS_ ? event_of((void *)args[0]) : NULL;
	if (event)
		record(call, event, capture_stream_number(call, args[1]));
	capture_unlock();
	return result;
}

/* stream, event, flags. The wait may make the stream part of a capture. */
static int wait_event(struct cuda_call *call, uintptr_t *args)
{
	struct event *event;
	int result;

	if (!capture_is_open() || capture_is_captured(call, args[0]))
		return cuda_invoke(call, args);
	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_ && !capture_is_captured(call, args[0])) {
		event = event_of((void *)args[1]);
		/* One that was recorded before the window was complete when that opened. */
		if (event && event->is_recorded)
			append(call, TS_COMMAND_WAIT, capture_stream_number(call, args[0]), 0, NULL,
			       event, 0);
	}
	capture_unlock();
	return result;
}

static void event_is_complete(const struct cuda_call *call, void *handle, const char *what,
			      const struct before *before)
{
	struct event *event;

	capture_lock();
	event = is_same_window(before) ? event_of(handle) : NULL;
	if (event && event->is_recorded && !event->was_seen) {
		event->was_seen = true;
		append(call, TS_COMMAND_SYNC, 0, 0, what, event, 0);
		host_synchronized();
	}
	capture_unlock();
}

/* The event may be recorded again meanwhile, by another thread: then its old record was meant. */
static int finish_event(struct cuda_call *call, uintptr_t *args)
{
	struct before before = begin();
	int result = cuda_invoke(call, args);

	if (before.window && result == CUDA_SUCCESS_)
		event_is_complete(call, (void *)args[0], "events", &before);
	return result;
}

static int query_event(struct cuda_call *call, uintptr_t *args)
{
	struct before before = begin();
	int result = cuda_invoke(call, args);

	if (before.window && result == CUDA_SUCCESS_)
		event_is_complete(call, (void *)args[0], "seen", &before);
	return result;
}

/*
 * Its handle may be that of another one soon, which nothing has recorded: with the lock held, as
 * another thread could create and record that before the number of this one is forgotten.
 */
static int destroy_event(struct cuda_call *call, uintptr_t *args)
{
	struct event *event = NULL;
	int result;

	if (!capture_is_open())
		return cuda_invoke(call, args);
	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_ && capture_is_open() && events.capacity)
		event = slot_of(events.items, events.capacity, (void *)args[0]);
	if (event && event->handle) {
		event->number = ts_replay_new_object();
		event->is_recorded = false;
	}
	capture_unlock();
	return result;
}

/* ---- the host waits ---- */

static int finish_stream(struct cuda_call *call, uintptr_t *args)
{
	struct before before = begin();
	uint64_t frees = pools_frees();
	int result = cuda_invoke(call, args);

	if (before.window && result == CUDA_SUCCESS_) {
		capture_lock();
		if (is_same_window(&before)) {
			append(call, TS_COMMAND_SYNC, capture_stream_number(call, args[0]), 0,
			       "queue", NULL, before.sequence);
			host_synchronized();
		}
		capture_unlock();
	}
	if (frees && result == CUDA_SUCCESS_) {
		const struct capture_stream *stream = capture_stream_of(call, args[0]);

		if (stream)
			pools_host_waited(stream, stream->context, frees);
	}
	return result;
}

/* Programs poll: only the first answer after a command counts. */
static int query_stream(struct cuda_call *call, uintptr_t *args)
{
	static _Thread_local uint64_t last_sequence;
	static _Thread_local uintptr_t last_stream;
	static _Thread_local const struct cuda_call *last_call; /* says what stream 0 is */
	struct before before = begin();
	int result = cuda_invoke(call, args);

	if (before.window && result == CUDA_SUCCESS_ &&
	    (before.sequence != last_sequence || args[0] != last_stream || call != last_call)) {
		capture_lock();
		if (is_same_window(&before)) {
			append(call, TS_COMMAND_SYNC, capture_stream_number(call, args[0]), 0,
			       "seen", NULL, before.sequence);
			host_synchronized();
			last_sequence = capture_last_sequence();
			last_stream = args[0];
			last_call = call;
		}
		capture_unlock();
	}
	return result;
}

static int finish_context(struct cuda_call *call, uintptr_t *args)
{
	struct before before = begin();
	uint64_t frees = pools_frees();
	struct capture_context *context;
	int result;

	if (!before.window && !frees)
		return cuda_invoke(call, args);
	context = capture_context_current();
	/* From CUDA 13 on it may be named. */
	if (strstr(call->name, "_v2") && args[0]) {
		for (context = capture_context_next(NULL);
		     context && (context->is_gone || context->handle != (void *)args[0]);
		     context = capture_context_next(context))
			;
	}
	result = cuda_invoke(call, args);
	if (before.window && result == CUDA_SUCCESS_) {
		capture_lock();
		if (is_same_window(&before)) {
			append(call, TS_COMMAND_SYNC, 0,
			       context ? capture_context_number(context) : 0, "context", NULL,
			       before.sequence);
			host_synchronized();
		}
		capture_unlock();
	}
	if (result == CUDA_SUCCESS_)
		pools_host_waited(NULL, context, frees);
	return result;
}

/*
 * Not while another thread has found, with this lock, that no stream is captured: it may wait for
 * streams, ask for events and pools, and map memory, which would end the capture.
 */
static int begin_stream_capture(struct cuda_call *call, uintptr_t *args)
{
	int result;

	capture_lock();
	result = cuda_invoke(call, args);
	capture_unlock();
	return result;
}

const struct cuda_handler_entry capture_order_handlers[] = {
	{ "cuStreamBeginCapture", begin_stream_capture, CAPTURE_ALWAYS },
	{ "cuStreamBeginCaptureToGraph", begin_stream_capture, CAPTURE_ALWAYS },
	{ "cuEventCreate", create_event, 0 },
	{ "cuEventRecord", record_event, 0 },
	{ "cuEventRecordWithFlags", record_event, 0 },
	{ "cuStreamWaitEvent", wait_event, 0 },
	{ "cuEventSynchronize", finish_event, CAPTURE_UNGATED },
	{ "cuEventQuery", query_event, 0 },
	{ "cuEventDestroy", destroy_event, 0 },
	{ "cuStreamSynchronize", finish_stream, CAPTURE_ALWAYS | CAPTURE_UNGATED },
	{ "cuStreamQuery", query_stream, 0 },
	{ "cuCtxSynchronize", finish_context, CAPTURE_ALWAYS | CAPTURE_UNGATED },
	{ 0 },
};
