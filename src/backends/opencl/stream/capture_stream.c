/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate that every call passes, and when a window of the command stream opens, closes or fails
 * (docs/replay.md, section 4).
 *
 * A window that is due is opened by the thread that notices, inside its call and before the call's
 * own work. It does not wait there for what only the program can end (user events, calls that do
 * not return): the call continues, and a later one tries again until the timeout.
 * Only non-empty queues are waited for with the gate held, because they empty by themselves.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/opencl/stream/capture_internal.h"

#define MS INT64_C(1000000)
#define FIRST_SLICE_NS (20 * MS) /* how long an attempt waits for calls in progress */
#define LAST_SLICE_NS (640 * MS)
#define CALLBACK_WAIT_NS (1000 * MS) /* at the gate: the driver may need its thread */
#define EXIT_WAIT_NS (5000 * MS)

enum state { CLOSED, OPENING, OPEN, CLOSING, FAILED, OFF };

static struct {
	_Atomic int state; /* enum state; changed with `transition` or the channel's lock held */
	_Atomic uint64_t window; /* the number of the last one */
	_Atomic uint64_t last_sequence;
	atomic_bool is_ready;
	atomic_bool is_pending; /* it is to begin with the process, and has not been opened yet */
	bool is_checked;
	int64_t timeout_ns;
	/* Held to open or close a window. */
	pthread_mutex_t transition;
	int64_t deadline_ns, slice_ns;
	_Atomic int64_t retry_ns;
	char why[160]; /* what the last attempt waited for */
} self = { .transition = PTHREAD_MUTEX_INITIALIZER };

/*
 * Calls count themselves in `inside`, then check `is_closed`; closing the gate does it in reverse
 * order.
 */
static struct {
	_Atomic uint32_t inside;
	atomic_bool is_closed;
	atomic_bool was_forced;             /* a callback passed while it was closed */
	_Atomic uint32_t callbacks_waiting; /* at the gate */
	pthread_mutex_t lock;
	pthread_cond_t opened;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER };

static _Thread_local unsigned int depth, callback_depth;
static _Thread_local uint64_t sequence_at_entry;

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

int64_t stream_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* The program may cancel its thread, but not while that holds our locks. */
static void nap(int64_t ns)
{
	struct timespec span = { .tv_nsec = (long)ns };
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	nanosleep(&span, NULL);
	pthread_setcancelstate(cancel_state, &cancel_state);
}

bool stream_is_open(void)
{
	int state = atomic_load_explicit(&self.state, memory_order_acquire);

	return state == OPEN || state == CLOSING;
}

uint64_t stream_window(void)
{
	return atomic_load_explicit(&self.window, memory_order_relaxed);
}

uint64_t stream_last_sequence(void)
{
	return atomic_load_explicit(&self.last_sequence, memory_order_relaxed);
}

uint64_t stream_sequence_at_entry(void)
{
	return sequence_at_entry;
}

bool stream_is_checked(void)
{
	return self.is_checked;
}

bool stream_in_callback(void)
{
	return callback_depth > 0;
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
		if (stream_clock_ns() >= deadline_ns)
			return false;
		nap(pause_ns);
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

/* ---- the channel ---- */

bool stream_lock(void)
{
	if (!stream_is_open())
		return false;
	if (!ts_replay_lock()) {
		/* The channel is broken, and has reported that itself. */
		atomic_store(&self.state, FAILED);
		return false;
	}
	if (stream_is_open())
		return true;
	ts_replay_unlock();
	return false;
}

void stream_unlock(void)
{
	ts_replay_unlock();
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

uint64_t stream_command(const struct ts_replay_command *row)
{
	uint64_t sequence = ts_replay_command(row);

	if (sequence && row->kind != TS_COMMAND_CHECK && row->kind != TS_COMMAND_CLOSE)
		atomic_store_explicit(&self.last_sequence, sequence, memory_order_relaxed);
	return sequence;
}

/* CLOSE, with the channel locked. `key`: failed, unchecked, or NULL. */
static void emit_close(const char *key, const char *why)
{
	struct stream_text text;
	struct ts_replay_command row = stream_row(TS_COMMAND_CLOSE);

	row.sequence = stream_last_sequence();
	stream_text_begin(&text);
	stream_text_uint(&text, "window", stream_window());
	if (key)
		stream_text_string(&text, key, why);
	row.details = stream_text_end(&text);
	stream_command(&row);
}

void stream_fail(const char *why)
{
	if (!stream_lock())
		return;
	emit_close("failed", why);
	atomic_store(&self.state, FAILED);
	stream_unlock();
	stream_lost("replayable windows", why);
}

/* ---- the gate ---- */

/* False: a callback timed out. */
static bool wait_at_gate(void)
{
	int64_t until = stream_clock_ns() + CALLBACK_WAIT_NS;
	bool is_callback = stream_in_callback();
	int cancel_state;

	if (is_callback)
		atomic_fetch_add(&gate.callbacks_waiting, 1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* see nap() */
	pthread_mutex_lock(&gate.lock);
	while (atomic_load(&gate.is_closed) && !(is_callback && stream_clock_ns() >= until)) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_nsec += 100 * MS;
		limit.tv_sec += limit.tv_nsec / (1000 * MS);
		limit.tv_nsec %= 1000 * MS;
		pthread_cond_timedwait(&gate.opened, &gate.lock, &limit);
	}
	pthread_mutex_unlock(&gate.lock);
	pthread_setcancelstate(cancel_state, &cancel_state);
	if (is_callback)
		atomic_fetch_sub(&gate.callbacks_waiting, 1);
	return !atomic_load(&gate.is_closed);
}

static void pass_gate(void)
{
	for (;;) {
		atomic_fetch_add(&gate.inside, 1);
		if (__builtin_expect(!atomic_load(&gate.is_closed), 1))
			return;
		atomic_fetch_sub(&gate.inside, 1);
		if (!wait_at_gate() && stream_in_callback()) {
			atomic_store(&gate.was_forced, true);
			atomic_fetch_add(&gate.inside, 1);
			return;
		}
	}
}

static void gate_open(void)
{
	pthread_mutex_lock(&gate.lock);
	atomic_store(&gate.is_closed, false);
	pthread_cond_broadcast(&gate.opened);
	pthread_mutex_unlock(&gate.lock);
}

/*
 * Takes the gate exclusively, except for the calling thread's own `inside`. False: a call is still
 * in progress; the gate is open again.
 */
static bool gate_close(uint32_t own_calls, int64_t until_ns)
{
	atomic_store(&gate.was_forced, false);
	atomic_store(&gate.is_closed, true);
	while (atomic_load(&gate.inside) > own_calls) {
		if (stream_clock_ns() >= until_ns) {
			snprintf(self.why, sizeof(self.why), "%u calls did not return",
				 atomic_load(&gate.inside) - own_calls);
			gate_open();
			return false;
		}
		nap(MS / 20);
	}
	return true;
}

/* ---- quiescence ---- */

static bool only_program_can_end(void)
{
	if (!stream_events_blocking())
		return false;
	stream_what_blocks(self.why, sizeof(self.why));
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
static bool finish_queue(const struct ocl_stream *queue)
{
	cl_event marker = queue->as.queue.marker;

	while (!stream_event_finish(marker, stream_clock_ns() + 10 * MS)) {
		if (stream_clock_ns() >= self.deadline_ns || atomic_load(&gate.callbacks_waiting)) {
			snprintf(self.why, sizeof(self.why), "stream %" PRIu64 " is not empty",
				 queue->number);
			return false;
		}
	}
	return true;
}

static bool finish_queues(void)
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
		are_empty = are_empty && finish_queue(stream);
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

/* True: the gate is closed, nothing is running, and the program holds nothing that blocks. */
static bool get_quiet(uint32_t own_calls)
{
	int64_t until = stream_clock_ns() + self.slice_ns;

	if (only_program_can_end())
		return false;
	if (!gate_close(own_calls, until < self.deadline_ns ? until : self.deadline_ns)) {
		self.slice_ns = self.slice_ns < LAST_SLICE_NS ? 2 * self.slice_ns : LAST_SLICE_NS;
		return false;
	}
	if (only_program_can_end() || !finish_queues()) {
		gate_open();
		return false;
	}
	return true;
}

/*
 * What only the program can end is checked again in its next call, which is cheap; what needs
 * waiting is not.
 */
static void attempt_later(int64_t now)
{
	atomic_store(&self.retry_ns, stream_events_blocking() ? 0 : now + self.slice_ns);
}

static void begin_attempts(int64_t timeout_ns)
{
	self.deadline_ns = stream_clock_ns() + timeout_ns;
	self.slice_ns = FIRST_SLICE_NS;
	atomic_store(&self.retry_ns, 0);
	snprintf(self.why, sizeof(self.why), "commands were running all the time");
}

/* ---- opening ---- */

static void fail_opening(const char *why)
{
	char text[300];

	snprintf(text, sizeof(text), "%s", why);
	atomic_store(&self.state, FAILED);
	if (ts_replay_lock()) {
		emit_close("failed", text);
		ts_replay_unlock();
		stream_lost("replayable windows", text);
		stream_lost_emit();
	}
}

static void fail_late(void)
{
	char text[300];

	snprintf(text, sizeof(text), "it was closed before it could be opened: %s", self.why);
	fail_opening(text);
}

static void emit_open(uint64_t bytes, bool is_first)
{
	struct stream_text text;
	struct ts_replay_command row = stream_row(TS_COMMAND_OPEN);

	stream_text_begin(&text);
	stream_text_uint(&text, "window", stream_window());
	stream_text_uint(&text, "snapshot_bytes", bytes);
	if (is_first)
		stream_text_true(&text, "from_start");
	row.details = stream_text_end(&text);
	stream_command(&row);
}

/* The gate is closed. */
static void open_now(void)
{
	bool is_first = stream_window() == 1 && !stream_any_context();
	char why[200];
	const char *failure;
	uint64_t bytes = 0;

	stream_reads_forget();
	stream_each_forget();
	failure = stream_snapshot(why, sizeof(why), &bytes);
	if (!failure && atomic_load(&gate.was_forced))
		failure = "a callback of the driver could not wait";
	if (failure) {
		fail_opening(failure);
	} else if (ts_replay_lock()) {
		emit_open(bytes, is_first);
		atomic_store(&self.state, OPEN);
		ts_replay_unlock();
	} else {
		atomic_store(&self.state, FAILED);
	}
	if (!stream_is_checked())
		stream_readers_release();
}

static void try_open(void)
{
	int64_t now = stream_clock_ns();

	if (now < atomic_load(&self.retry_ns))
		return;
	if (get_quiet(0)) {
		open_now();
		gate_open();
		return;
	}
	now = stream_clock_ns();
	if (now >= self.deadline_ns)
		fail_opening(self.why);
	attempt_later(now);
}

/* ---- closing ---- */

static void close_now(const char *unchecked)
{
	if (stream_lock()) {
		emit_close(unchecked ? "unchecked" : NULL, unchecked);
		atomic_store(&self.state, CLOSED);
		stream_unlock();
	}
	atomic_store(&self.state, CLOSED);
	stream_reads_forget();
	stream_each_forget();
	stream_lost_emit();
}

/* True: closed. */
static bool try_close(uint32_t own_calls)
{
	int64_t now = stream_clock_ns();

	if (now < atomic_load(&self.retry_ns))
		return false;
	if (get_quiet(own_calls)) {
		stream_each_let_go();
		stream_look();
		stream_final_checks();
		close_now(NULL);
		stream_readers_release();
		gate_open();
		return true;
	}
	now = stream_clock_ns();
	if (now >= self.deadline_ns) {
		close_now(self.why);
		return true;
	}
	attempt_later(now);
	return false;
}

/* ---- steps ---- */

static bool is_wanted(void)
{
	if (!ts_enabled())
		return atomic_load_explicit(&self.is_pending, memory_order_relaxed);
	if (atomic_load_explicit(&self.is_pending, memory_order_relaxed))
		atomic_store_explicit(&self.is_pending, false, memory_order_relaxed);
	return true;
}

static bool is_due(void)
{
	switch (atomic_load_explicit(&self.state, memory_order_relaxed)) {
	case CLOSED:
		return is_wanted();
	case OPEN:
	case FAILED:
		return !is_wanted();
	case OFF:
		return false;
	default:
		return !is_wanted() || stream_clock_ns() >= atomic_load(&self.retry_ns);
	}
}

static void begin_open(void)
{
	begin_attempts(self.timeout_ns);
	atomic_fetch_add(&self.window, 1);
	atomic_store(&self.state, OPENING);
	try_open();
}

static void begin_close(void)
{
	begin_attempts(self.timeout_ns);
	atomic_store(&self.state, CLOSING);
	try_close(0);
}

/* Does one step of what is due, unless another thread is doing it. */
static void take_step(void)
{
	bool wanted = is_wanted();

	if (pthread_mutex_trylock(&self.transition))
		return;
	switch (atomic_load(&self.state)) {
	case CLOSED:
		if (wanted)
			begin_open();
		break;
	case OPENING:
		if (wanted)
			try_open();
		else
			fail_late();
		break;
	case OPEN:
		if (!wanted)
			begin_close();
		break;
	case CLOSING:
		try_close(0);
		break;
	case FAILED:
		if (!wanted)
			atomic_store(&self.state, CLOSED);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&self.transition);
}

/* ---- start and stop ---- */

/*
 * OpenCL does not survive a fork: nothing is done in a child whose parent used it; any other starts
 * afresh.
 */
static void after_fork(void)
{
	bool starts_anew = !stream_any_context() && atomic_load(&self.state) != OFF;

	pthread_mutex_init(&self.transition, NULL);
	pthread_mutex_init(&gate.lock, NULL);
	pthread_cond_init(&gate.opened, NULL);
	pthread_mutex_init(&later.lock, NULL);
	atomic_store(&gate.is_closed, false);
	atomic_store(&gate.inside, depth > 0);
	atomic_store(&gate.callbacks_waiting, 0);
	stream_objects_forked();
	stream_events_forked();
	stream_memory_forked();
	atomic_store(&self.state, starts_anew ? CLOSED : OFF);
	atomic_store(&self.is_ready, false);
}

static void get_ready(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	const struct ts_replay_settings *settings = ts_replay_settings();

	pthread_mutex_lock(&once);
	if (!atomic_load(&self.is_ready)) {
		static bool has_handler;

		if (!has_handler && pthread_atfork(NULL, NULL, after_fork) == 0)
			has_handler = true;
		if (!settings || settings->mode == TS_REPLAY_OFF) {
			atomic_store(&self.state, OFF);
		} else {
			self.is_checked = settings->mode == TS_REPLAY_CHECKED;
			self.timeout_ns = settings->window_timeout_ns;
			atomic_store(&self.is_pending, settings->from_start);
			stream_signatures_start();
			stream_each_start();
		}
		atomic_store(&self.is_ready, true);
	}
	pthread_mutex_unlock(&once);
}

void stream_enter(void)
{
	if (depth++ > 0)
		return;
	if (__builtin_expect(!atomic_load_explicit(&self.is_ready, memory_order_acquire), 0))
		get_ready();
	if (__builtin_expect(is_due(), 0) && callback_depth == 0)
		take_step();
	pass_gate();
	sequence_at_entry = stream_last_sequence();
}

void stream_leave(void)
{
	if (--depth > 0)
		return;
	atomic_fetch_sub(&gate.inside, 1);
	if (__builtin_expect(atomic_load_explicit(&later.is_waiting, memory_order_relaxed), 0))
		release_now();
}

void stream_callback_begin(void)
{
	callback_depth++;
}

void stream_callback_end(void)
{
	callback_depth--;
}

static bool lock_transition(void)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 5;
	return pthread_mutex_timedlock(&self.transition, &limit) == 0;
}

static void close_at_exit(void)
{
	/* The program has not waited for these reads: their destination may be gone or reused. */
	stream_reads_forget();
	begin_attempts(self.timeout_ns < EXIT_WAIT_NS ? self.timeout_ns : EXIT_WAIT_NS);
	while (!try_close(depth > 0))
		nap(10 * MS);
}

void stream_stop(void)
{
	if (!atomic_load(&self.is_ready) || !lock_transition())
		return;
	switch (atomic_load(&self.state)) {
	case OPENING:
		fail_opening(self.why);
		break;
	case OPEN:
	case CLOSING:
		close_at_exit();
		break;
	default:
		break;
	}
	stream_lost_emit();
	stream_signatures_stop();
	atomic_store(&self.state, OFF);
	pthread_mutex_unlock(&self.transition);
}
