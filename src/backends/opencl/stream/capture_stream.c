/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a window of the command stream opens, closes or fails (docs/replay.md, section 4): what the
 * agent's windows (agent/replay_window.c) ask of OpenCL. And waiting for events, and releasing
 * objects when no lock is held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define MS INT64_C(1000000)

static struct {
	atomic_bool is_ready;
	bool is_checked;
} self;

/* Objects to release when no lock is held. */
static struct {
	pthread_mutex_t lock;
	atomic_bool is_waiting;
	struct released {
		struct released *next;
		cl_command_queue queue;
		cl_mem memory;
		cl_event event;
	} * first;
} later = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- helpers ---- */

bool stream_is_checked(void)
{
	return self.is_checked;
}

struct ts_replay_command stream_row(uint32_t kind)
{
	return (struct ts_replay_command){
		.size = sizeof(struct ts_replay_command),
		.kind = kind,
		.offset = TS_UNKNOWN,
		.other_offset = TS_UNKNOWN,
		.bytes = TS_UNKNOWN,
	};
}

cl_int stream_event_status(cl_event event)
{
	cl_int status = CL_COMPLETE;

	if (ocl.next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				    &status, NULL))
		return CL_COMPLETE;
	return status;
}

void stream_event_flush(cl_event event)
{
	cl_command_queue queue = NULL;

	if (ocl.next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL) ==
		    CL_SUCCESS &&
	    queue)
		ocl.next.clFlush(queue);
}

bool stream_event_finish(cl_event event, int64_t deadline_ns)
{
	int64_t pause_ns = 20000;

	if (stream_event_status(event) <= CL_COMPLETE)
		return true;
	stream_event_flush(event);
	while (stream_event_status(event) > CL_COMPLETE) {
		if (ts_replay_clock_ns() >= deadline_ns)
			return false;
		ts_replay_nap(pause_ns);
		if (pause_ns < MS)
			pause_ns += pause_ns / 4;
	}
	return true;
}

void stream_release_later(cl_command_queue queue, cl_mem memory, cl_event event)
{
	struct released *entry = queue || memory || event ? malloc(sizeof(*entry)) : NULL;

	if (!entry)
		return;
	*entry = (struct released){ .queue = queue, .memory = memory, .event = event };
	pthread_mutex_lock(&later.lock);
	entry->next = later.first;
	later.first = entry;
	atomic_store_explicit(&later.is_waiting, true, memory_order_relaxed);
	pthread_mutex_unlock(&later.lock);
}

static void release_now(void)
{
	struct released *entry;

	pthread_mutex_lock(&later.lock);
	entry = later.first;
	later.first = NULL;
	atomic_store_explicit(&later.is_waiting, false, memory_order_relaxed);
	pthread_mutex_unlock(&later.lock);
	while (entry) {
		struct released *next = entry->next;

		if (entry->event)
			ocl.next.clReleaseEvent(entry->event);
		if (entry->memory)
			ocl.next.clReleaseMemObject(entry->memory);
		if (entry->queue)
			ocl.next.clReleaseCommandQueue(entry->queue);
		free(entry);
		entry = next;
	}
}

/* ---- quiescence ---- */

static bool is_blocked(char *why, size_t bytes)
{
	if (!stream_events_blocking())
		return false;
	stream_what_blocks(why, bytes);
	return true;
}

/* An event after all commands of the queue; NULL: none. */
static cl_event mark_queue(const struct ocl_stream *queue)
{
	cl_event marker = NULL;
	cl_int rc;

	if (ocl.next.clEnqueueMarkerWithWaitList)
		rc = ocl.next.clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, &marker);
	else
		rc = ocl.next.clEnqueueMarker(queue->handle, &marker);
	ocl.next.clFlush(queue->handle);
	return rc ? NULL : marker;
}

/*
 * Waits until it is complete; false: timed out, or a callback waits for us, and the driver may wait
 * for that.
 */
static bool finish_queue(const struct ocl_stream *queue, int64_t deadline_ns, char *why,
			 size_t bytes)
{
	cl_event marker = queue->as.queue.marker;

	while (!stream_event_finish(marker, ts_replay_clock_ns() + 10 * MS)) {
		if (ts_replay_clock_ns() >= deadline_ns || ts_replay_is_awaited()) {
			snprintf(why, bytes, "stream %" PRIu64 " is not empty", queue->number);
			return false;
		}
	}
	return true;
}

static bool finish_queues(int64_t deadline_ns, char *why, size_t bytes)
{
	struct ocl_stream *stream;
	bool are_empty = true;

	for (stream = stream_object_first(); stream; stream = stream->next) {
		if (stream->kind == OCL_QUEUE)
			stream->as.queue.marker = mark_queue(stream);
	}
	for (stream = stream_object_first(); stream; stream = stream->next) {
		if (stream->kind != OCL_QUEUE || !stream->as.queue.marker)
			continue;
		are_empty = are_empty && finish_queue(stream, deadline_ns, why, bytes);
		ocl.next.clReleaseEvent(stream->as.queue.marker);
		stream->as.queue.marker = NULL;
	}
	return are_empty;
}

bool stream_queues_finish(int64_t deadline_ns)
{
	struct ocl_stream *queue = stream_object_next(OCL_QUEUE, NULL);
	bool are_empty = true;

	for (; queue; queue = stream_object_next(OCL_QUEUE, queue)) {
		cl_event marker = mark_queue(queue);

		if (marker) {
			are_empty = stream_event_finish(marker, deadline_ns) && are_empty;
			ocl.next.clReleaseEvent(marker);
		}
	}
	return are_empty;
}

/* ---- windows ---- */

static bool is_unused(void)
{
	return !stream_any_context();
}

static const char *open_window(char *why, size_t bytes, uint64_t *ret_snapshot_bytes)
{
	const char *failure;

	stream_reads_forget();
	stream_each_forget();
	failure = stream_snapshot(why, bytes, ret_snapshot_bytes);
	if (!stream_is_checked())
		stream_readers_release();
	return failure;
}

static const char *close_window(char *why, size_t bytes)
{
	(void)why;
	(void)bytes;
	stream_each_let_go();
	stream_look();
	stream_final_checks();
	return NULL;
}

static void ended(enum ts_replay_end how, const char *why)
{
	if (why)
		stream_lost("replayable windows", why);
	/* The caller may hold `host`. */
	if (how == TS_REPLAY_END_FAILED)
		return;
	if (how != TS_REPLAY_END_NOT_OPENED) {
		stream_reads_forget();
		stream_each_forget();
	}
	if (how == TS_REPLAY_END_CLOSED)
		stream_readers_release();
	stream_lost_emit();
}

/* OpenCL does not survive a fork; a child whose parent had not used it starts afresh. */
static bool forked(void)
{
	bool starts_anew = !stream_any_context();

	pthread_mutex_init(&later.lock, NULL);
	stream_objects_forked();
	stream_events_forked();
	stream_memory_forked();
	atomic_store(&self.is_ready, false);
	return starts_anew;
}

static const struct ts_replay_client client = {
	.size = sizeof(client),
	.is_blocked = is_blocked,
	.finish = finish_queues,
	.is_unused = is_unused,
	.open = open_window,
	.close = close_window,
	.ended = ended,
	.forked = forked,
};

static void get_ready(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	const struct ts_replay_settings *settings = ts_replay_settings();

	pthread_mutex_lock(&once);
	if (!atomic_load(&self.is_ready)) {
		ts_replay_start(&client);
		self.is_checked = settings->mode == TS_REPLAY_CHECKED;
		if (settings->mode != TS_REPLAY_OFF) {
			stream_signatures_start();
			stream_each_start();
		}
		atomic_store(&self.is_ready, true);
	}
	pthread_mutex_unlock(&once);
}

void stream_enter(void)
{
	if (__builtin_expect(!atomic_load_explicit(&self.is_ready, memory_order_acquire), 0))
		get_ready();
	ts_replay_enter();
}

void stream_leave(void)
{
	if (ts_replay_leave() &&
	    __builtin_expect(atomic_load_explicit(&later.is_waiting, memory_order_relaxed), 0))
		release_now();
}

void stream_stop(void)
{
	if (!atomic_load(&self.is_ready))
		return;
	/* The program has not waited for these reads: their destination may be gone or reused. */
	if (ts_replay_is_open())
		stream_reads_forget();
	ts_replay_stop();
	stream_lost_emit();
	stream_signatures_stop();
}
