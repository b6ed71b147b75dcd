/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: functions of streams, and host functions in them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/driver/queues.h"

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

static int do_cuStreamSynchronize(struct stream *on)
{
	int refused = on->capture ? capture_invalidate(on) : refuse_default(on);

	return refused ? refused : wait_for(on);
}
STREAM_FUNCTION(cuStreamSynchronize, (void *stream), (on))

static int do_cuStreamQuery(struct stream *on)
{
	int refused = on->capture ? capture_invalidate(on) : refuse_default(on);
	bool is_idle;

	if (refused)
		return refused;
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

/*
 * It does not wait. But if launches are blocking, the next one would, for a value that nobody sets
 * before it returns.
 */
API cuStreamWaitValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned int flags)
{
	while (getenv("CUDA_LAUNCH_BLOCKING"))
		pause();
	return 0;
}
