/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: streams, events, and the threads that run their commands, those of different
 * streams in an order that is drawn from the seed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver/driver.h"

struct command {
	struct command *next;
	struct op op;
	struct point *waits;
	size_t wait_count;
	bool is_running;
	struct event *event; /* it records this */
};

pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static struct handles stream_handles = HANDLES, event_handles = HANDLES;
static size_t waiting; /* threads that wait for a stream or an event */
static bool has_thread;
static int error;
static uint64_t drawn;
static __thread struct stream *own; /* per-thread default stream */
static __thread struct context *own_context;

void set_device_error(int code)
{
	int none = 0;

	__atomic_compare_exchange_n(&error, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

int device_error(void)
{
	return __atomic_load_n(&error, __ATOMIC_RELAXED);
}

static uint64_t draw(void)
{
	uint64_t x;

	if (!drawn)
		drawn = settings.seed;
	x = drawn += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

static bool is_ready(const struct command *command)
{
	for (size_t i = 0; i < command->wait_count; i++) {
		if (command->waits[i].stream->completed < command->waits[i].ticket)
			return false;
	}
	return true;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* `queues` is held, but not while the command runs. */
static bool run_one(bool *ret_is_stuck)
{
	struct stream *chosen = NULL;
	struct command *command;
	uint64_t count = 0;
	bool is_done;

	for (struct stream *stream = streams; stream; stream = stream->next) {
		if (stream->first && !stream->first->is_running && is_ready(stream->first) &&
		    draw() % ++count == 0)
			chosen = stream;
	}
	*ret_is_stuck = false;
	if (!chosen)
		return false;
	command = chosen->first;
	command->is_running = true;
	pthread_mutex_unlock(&queues);
	is_done = device_error() || op_run(&command->op);
	pthread_mutex_lock(&queues);
	command->is_running = false;
	*ret_is_stuck = !is_done && count == 1;
	if (!is_done)
		return true;
	if (command->event)
		command->event->time_ns = now_ns();
	chosen->first = command->next;
	if (!chosen->first)
		chosen->last = NULL;
	chosen->completed++;
	pthread_cond_broadcast(&done);
	pthread_cond_signal(&work); /* others may be ready now */
	pthread_mutex_unlock(&queues);
	op_release(&command->op);
	free(command->waits);
	free(command);
	pthread_mutex_lock(&queues);
	return true;
}

static void *run(void *unused)
{
	bool is_stuck;

	(void)unused;
	pthread_mutex_lock(&queues);
	for (;;) {
		if ((settings.lazy && !waiting) || !run_one(&is_stuck)) {
			pthread_cond_wait(&work, &queues);
			continue;
		}
		if (is_stuck) {
			pthread_mutex_unlock(&queues);
			usleep(50);
			pthread_mutex_lock(&queues);
		}
	}
	return NULL;
}

static void start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	if (has_thread)
		return;
	has_thread = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- streams ---- */

/* `queues` is held. */
static struct stream *stream_new(struct context *context, unsigned int flags, int priority)
{
	static uint64_t id;
	struct stream *stream = calloc(1, sizeof(*stream));

	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = ++id;
	stream->next = streams;
	streams = stream;
	handles_add(&stream_handles, stream);
	return stream;
}

bool is_stream(const void *handle)
{
	const struct stream *stream = handle;

	return handles_have(&stream_handles, handle) && !stream->is_gone;
}

struct stream *stream_of(void *handle, bool is_per_thread)
{
	struct context *context = current_context();

	if ((uintptr_t)handle > CUDA_STREAM_PER_THREAD)
		return is_stream(handle) ? handle : NULL;
	if (!context)
		return NULL;
	if ((uintptr_t)handle == CUDA_STREAM_PER_THREAD || (!handle && is_per_thread)) {
		if (!own || own_context != context) {
			pthread_mutex_lock(&queues);
			own = stream_new(context, 0, 0);
			own->is_thread = true;
			pthread_mutex_unlock(&queues);
			own_context = context;
		}
		return own;
	}
	pthread_mutex_lock(&queues);
	if (!context->legacy) {
		context->legacy = stream_new(context, 0, 0);
		context->legacy->is_legacy = true;
	}
	pthread_mutex_unlock(&queues);
	return context->legacy;
}

void add_wait(struct stream *stream, struct point point)
{
	if (!point.stream || point.stream == stream || !point.ticket)
		return;
	for (size_t i = 0; i < stream->wait_count; i++) {
		if (stream->waits[i].stream == point.stream) {
			if (stream->waits[i].ticket < point.ticket)
				stream->waits[i].ticket = point.ticket;
			return;
		}
	}
	if (stream->wait_count < sizeof(stream->waits) / sizeof(stream->waits[0]))
		stream->waits[stream->wait_count++] = point;
}

/* The legacy default stream waits for all blocking streams of its context, and they for it. */
static void wait_for_default(struct stream *stream)
{
	if (stream->is_legacy) {
		for (struct stream *each = streams; each; each = each->next) {
			if (each->context == stream->context && each != stream &&
			    !(each->flags & CUDA_STREAM_NON_BLOCKING))
				add_wait(stream, (struct point){ each, each->submitted });
		}
	} else if (!(stream->flags & CUDA_STREAM_NON_BLOCKING) && stream->context->legacy) {
		struct stream *legacy = stream->context->legacy;

		add_wait(stream, (struct point){ legacy, legacy->submitted });
	}
}

static int submit_event(struct stream *stream, struct op *op, struct event *event)
{
	struct command *command;

	if (device_error()) {
		op_release(op);
		return device_error();
	}
	if (stream->capture)
		return capture_add(stream, op, NULL);
	command = calloc(1, sizeof(*command));
	command->op = *op;
	command->event = event;
	memset(op, 0, sizeof(*op));
	pthread_mutex_lock(&queues);
	start_thread();
	wait_for_default(stream);
	command->waits = calloc(stream->wait_count + 1, sizeof(command->waits[0]));
	memcpy(command->waits, stream->waits, stream->wait_count * sizeof(command->waits[0]));
	command->wait_count = stream->wait_count;
	stream->wait_count = 0;
	if (stream->last)
		stream->last->next = command;
	else
		stream->first = command;
	stream->last = command;
	stream->submitted++;
	if (event)
		event->point = (struct point){ stream, stream->submitted };
	if (!settings.lazy || waiting)
		pthread_cond_signal(&work);
	pthread_cond_broadcast(&done);
	pthread_mutex_unlock(&queues);
	return 0;
}

int submit(struct stream *stream, struct op *op)
{
	return submit_event(stream, op, NULL);
}

static void wait_point(struct point point)
{
	waiting++;
	pthread_cond_signal(&work);
	/* Who waits helps: that is faster than to wake the other thread. */
	while (point.stream->completed < point.ticket) {
		bool is_stuck;

		if (!run_one(&is_stuck)) {
			pthread_cond_wait(&done, &queues);
		} else if (is_stuck) {
			pthread_mutex_unlock(&queues);
			usleep(50);
			pthread_mutex_lock(&queues);
		}
	}
	waiting--;
}

int wait_for(struct stream *stream)
{
	pthread_mutex_lock(&queues);
	/* Waits that no command has taken over count, too. */
	for (size_t i = 0; i < stream->wait_count; i++)
		wait_point(stream->waits[i]);
	wait_point((struct point){ stream, stream->submitted });
	pthread_mutex_unlock(&queues);
	return device_error();
}

int wait_for_context(struct context *context)
{
	pthread_mutex_lock(&queues);
	for (struct stream *each = streams; each; each = each->next) {
		if (each->context == context)
			wait_point((struct point){ each, each->submitted });
	}
	pthread_mutex_unlock(&queues);
	return device_error();
}

API cuStreamCreateWithPriority(struct stream **ret_stream, unsigned int flags, int priority)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	if (flags > 1)
		return INVALID_VALUE;
	pthread_mutex_lock(&queues);
	*ret_stream = stream_new(context, flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
	pthread_mutex_unlock(&queues);
	return 0;
}

API cuStreamCreate(struct stream **ret_stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(ret_stream, flags, 0);
}

API cuStreamDestroy_v2(struct stream *stream)
{
	if (!is_stream(stream) || stream->is_legacy || stream->is_thread)
		return INVALID_HANDLE;
	stream->is_gone = true;
	return 0;
}

/* Each function of a stream exists twice: stream 0 is another one in programs with per-thread
 * default streams. */
#define STREAM_FUNCTION(name, parameters, arguments)                                \
	API name parameters                                                         \
	{                                                                           \
		struct stream *on = stream_of(stream, false);                       \
                                                                                    \
		return !on ? (current_context() ? INVALID_HANDLE : INVALID_CONTEXT) \
			   : do_##name arguments;                                   \
	}                                                                           \
	API name##_ptsz parameters                                                  \
	{                                                                           \
		struct stream *on = stream_of(stream, true);                        \
                                                                                    \
		return !on ? (current_context() ? INVALID_HANDLE : INVALID_CONTEXT) \
			   : do_##name arguments;                                   \
	}

static int do_cuStreamSynchronize(struct stream *on)
{
	return on->capture ? CAPTURE_UNSUPPORTED : wait_for(on);
}
STREAM_FUNCTION(cuStreamSynchronize, (void *stream), (on))

static int do_cuStreamQuery(struct stream *on)
{
	bool is_idle;

	if (on->capture)
		return CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&queues);
	is_idle = on->completed == on->submitted;
	if (!is_idle && settings.lazy) {
		bool is_stuck;

		(void)run_one(&is_stuck);
	}
	pthread_mutex_unlock(&queues);
	return device_error() ? device_error() : is_idle ? 0 : NOT_READY;
}
STREAM_FUNCTION(cuStreamQuery, (void *stream), (on))

static int do_cuStreamGetFlags(struct stream *on, unsigned int *flags)
{
	*flags = on->flags;
	return 0;
}
STREAM_FUNCTION(cuStreamGetFlags, (void *stream, unsigned int *flags), (on, flags))

static int do_cuStreamGetPriority(struct stream *on, int *priority)
{
	*priority = on->priority;
	return 0;
}
STREAM_FUNCTION(cuStreamGetPriority, (void *stream, int *priority), (on, priority))

static int do_cuStreamGetId(struct stream *on, uint64_t *id)
{
	*id = on->id;
	return 0;
}
STREAM_FUNCTION(cuStreamGetId, (void *stream, uint64_t *id), (on, id))

static int do_cuStreamGetCtx(struct stream *on, struct context **context)
{
	*context = on->context;
	return 0;
}
STREAM_FUNCTION(cuStreamGetCtx, (void *stream, struct context **context), (on, context))

static int do_cuStreamGetDevice(struct stream *on, int *device)
{
	*device = on->context->device;
	return 0;
}
STREAM_FUNCTION(cuStreamGetDevice, (void *stream, int *device), (on, device))

/* Attribute 3 is a policy, 1 the access window; what is set is forgotten. */
static int do_cuStreamGetAttribute(struct stream *on, int attribute, void *value)
{
	(void)attribute;
	memset(value, 0, 64);
	if (attribute == 8)
		memcpy(value, &on->priority, sizeof(on->priority));
	return 0;
}
STREAM_FUNCTION(cuStreamGetAttribute, (void *stream, int attribute, void *value),
		(on, attribute, value))

static int do_cuStreamSetAttribute(struct stream *on, int attribute, const void *value)
{
	if (attribute == 8)
		memcpy(&on->priority, value, sizeof(on->priority));
	return 0;
}
STREAM_FUNCTION(cuStreamSetAttribute, (void *stream, int attribute, const void *value),
		(on, attribute, value))

/* ---- events ---- */

bool is_event(const void *handle)
{
	const struct event *event = handle;

	return handles_have(&event_handles, handle) && !event->is_gone;
}

API cuEventCreate(struct event **ret_event, unsigned int flags)
{
	struct context *context = current_context();
	struct event *event;

	if (!context)
		return INVALID_CONTEXT;
	event = calloc(1, sizeof(*event));
	event->context = context;
	event->flags = flags;
	handles_add(&event_handles, event);
	*ret_event = event;
	return 0;
}

API cuEventDestroy_v2(struct event *event)
{
	if (!is_event(event))
		return INVALID_HANDLE;
	event->is_gone = true;
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
		}
		return result;
	}
	if (on->capture)
		return capture_event(event, on);
	event->capture = NULL;
	return submit_event(on, &op, event);
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

/* ---- host functions ---- */

static int do_cuLaunchHostFunc(struct stream *on, void (*call)(void *), void *data)
{
	struct op op = { .kind = OP_HOST, .call = call, .data = data };

	return submit(on, &op);
}
STREAM_FUNCTION(cuLaunchHostFunc, (void *stream, void (*call)(void *), void *data),
		(on, call, data))

struct callback {
	void (*call)(void *stream, int status, void *data);
	void *stream, *data;
};

static void call_back(void *data)
{
	struct callback *callback = data;

	callback->call(callback->stream, 0, callback->data);
	free(callback);
}

static int do_cuStreamAddCallback(struct stream *on, void *call, void *data)
{
	struct callback *callback = calloc(1, sizeof(*callback));

	memcpy(&callback->call, &call, sizeof(call));
	callback->stream = on;
	callback->data = data;
	return do_cuLaunchHostFunc(on, call_back, callback);
}
API cuStreamAddCallback(void *stream, void *call, void *data, unsigned int flags)
{
	struct stream *on = stream_of(stream, false);

	return flags ? INVALID_VALUE : on ? do_cuStreamAddCallback(on, call, data) : INVALID_HANDLE;
}

API cuStreamAddCallback_ptsz(void *stream, void *call, void *data, unsigned int flags)
{
	struct stream *on = stream_of(stream, true);

	return flags ? INVALID_VALUE : on ? do_cuStreamAddCallback(on, call, data) : INVALID_HANDLE;
}
