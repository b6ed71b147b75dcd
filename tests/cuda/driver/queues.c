/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: queues of commands, and the threads that run them, those of different
 * streams in an order that is drawn from the seed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver/queues.h"

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
static struct handles stream_handles = HANDLES;
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

bool run_one(bool *ret_is_stuck)
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

struct stream *stream_new(struct context *context, unsigned int flags, int priority)
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

int submit_event(struct stream *stream, struct op *op, struct event *event)
{
	struct command *command;
	int refused = device_error() ? device_error() : refuse_default(stream);

	if (refused) {
		op_release(op);
		return refused;
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

void wait_point(struct point point)
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
