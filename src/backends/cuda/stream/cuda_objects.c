/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, contexts and streams of the program: registries that are kept from the first call on,
 * and their descriptions in a window. Default streams are told apart by context and thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_arena.h"
#include "backends/cuda/stream/cuda_capture.h"
#include "base/local/hash.h"
#include "base/local/macros.h"
#include "code/cuda/local/driver_release.h"

#pragma weak arena_open
#pragma weak capture_memory_context_gone
#pragma weak snapshot_give_memory_back

#define DEVICES 64
#define LIMITS 32 /* bits of capture_context.limits; CUDA 13.0 has 10 */
#define ATTRIBUTE_COMPUTE_MAJOR 75
#define ATTRIBUTE_COMPUTE_MINOR 76
#define ATTRIBUTE_PAGEABLE 88
#define CAPTURE_ACTIVE 1
#define POLL_NS INT64_C(100000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists; not held in calls */
static struct capture_device *_Atomic devices[DEVICES];
static struct capture_context *_Atomic contexts;
static struct capture_stream *_Atomic streams;
static _Atomic uint64_t threads;
static __thread uint64_t this_thread __attribute__((tls_model("initial-exec")));

/* ---- devices ---- */

struct capture_device *capture_device_of(int ordinal)
{
	struct capture_device *device;

	if (ordinal < 0 || ordinal >= DEVICES)
		return NULL;
	device = atomic_load(&devices[ordinal]);
	if (device)
		return device;
	pthread_mutex_lock(&lock);
	device = atomic_load(&devices[ordinal]);
	if (!device) {
		device = calloc(1, sizeof(*device));
		if (device)
			device->ordinal = ordinal;
		atomic_store(&devices[ordinal], device);
	}
	pthread_mutex_unlock(&lock);
	return device;
}

/* A context of it is current. */
static void open_device(struct capture_device *device)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

	if (__atomic_load_n(&device->is_opened, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&once);
	if (!device->is_opened) {
		cu.DeviceGetName(device->name, sizeof(device->name) - 1, device->ordinal);
		if (arena_open && !arena_open(device))
			capture_prevent("no fixed address range was free, or device %d has no "
					"virtual memory management",
					device->ordinal);
		__atomic_store_n(&device->is_opened, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&once);
}

static void describe_uuid(struct stream_text *text, int ordinal)
{
	uint8_t uuid[16];
	char digits[33];

	if (cu.DeviceGetUuid(uuid, ordinal))
		return;
	for (size_t i = 0; i < sizeof(uuid); i++)
		snprintf(digits + 2 * i, 3, "%02x", uuid[i]);
	stream_text_string(text, "uuid", digits);
}

/* Of the driver; set before any window opens. */
static char driver_release[CUDA_RELEASE_BYTES];

void capture_find_release(void)
{
	ts_driver_release(cuda_driver("cuInit"), driver_release, sizeof(driver_release));
}

static void describe_compute(struct stream_text *text, int ordinal)
{
	int major = 0, minor = 0;

	cu.DeviceGetAttribute(&major, ATTRIBUTE_COMPUTE_MAJOR, ordinal);
	cu.DeviceGetAttribute(&minor, ATTRIBUTE_COMPUTE_MINOR, ordinal);
	stream_text_open(text, "compute", '[');
	stream_text_int(text, NULL, major);
	stream_text_int(text, NULL, minor);
	stream_text_close(text, '[');
}

uint64_t capture_device_number(struct capture_device *device)
{
	struct ts_replay_object object = { .size = sizeof(object), .kind = TS_OBJECT_DEVICE };
	struct stream_text text;
	int version = 0, pageable = 0;
	size_t bytes = 0;

	if (device->number)
		return device->number;
	device->number = ts_replay_new_object();
	cu.DriverGetVersion(&version);
	cu.DeviceTotalMem(&bytes, device->ordinal);
	cu.DeviceGetAttribute(&pageable, ATTRIBUTE_PAGEABLE, device->ordinal);
	stream_text_begin(&text);
	stream_text_string(&text, "platform", "cuda");
	stream_text_int(&text, "index", device->ordinal);
	describe_uuid(&text, device->ordinal);
	describe_compute(&text, device->ordinal);
	stream_text_int(&text, "driver", version);
	if (driver_release[0])
		stream_text_string(&text, "release", driver_release);
	stream_text_uint(&text, "memory", bytes);
	if (pageable)
		stream_text_true(&text, "pageable");
	object.number = device->number;
	object.bytes = TS_UNKNOWN;
	object.name = device->name;
	object.details = stream_text_end(&text);
	capture_object(&object);
	return device->number;
}

/* ---- contexts ---- */

struct capture_context *capture_context_next(struct capture_context *after)
{
	struct capture_context *context = after ? after->next : atomic_load(&contexts);

	while (context && __atomic_load_n(&context->is_gone, __ATOMIC_ACQUIRE))
		context = context->next;
	return context;
}

static struct capture_context *find_context(const void *handle)
{
	struct capture_context *context = capture_context_next(NULL);

	while (context && context->handle != handle)
		context = capture_context_next(context);
	return context;
}

static struct capture_context *add_context(void *handle, int ordinal)
{
	struct capture_device *device = capture_device_of(ordinal);
	struct capture_context *context;

	if (!device)
		return NULL;
	pthread_mutex_lock(&lock);
	context = find_context(handle);
	if (!context) {
		context = calloc(1, sizeof(*context));
		if (context) {
			context->handle = handle;
			context->device = device;
			context->next = atomic_load(&contexts);
			atomic_store(&contexts, context);
		}
	}
	pthread_mutex_unlock(&lock);
	return context;
}

struct capture_context *capture_context_current(void)
{
	struct capture_context *context;
	void *handle = NULL;
	int ordinal = 0;

	if (cu.CtxGetCurrent(&handle) || !handle)
		return NULL;
	context = find_context(handle);
	if (!context && !cu.CtxGetDevice(&ordinal)) {
		context = add_context(handle, ordinal);
		if (context)
			cu.CtxGetFlags(&context->flags);
	}
	if (context)
		open_device(context->device);
	return context;
}

bool capture_context_push(struct capture_context *context)
{
	return cu.CtxPushCurrent(context->handle) == CUDA_SUCCESS_;
}

void capture_context_pop(void)
{
	void *context;

	cu.CtxPopCurrent(&context);
}

static void forget_stream(struct capture_stream *stream)
{
	__atomic_store_n(&stream->is_gone, true, __ATOMIC_RELEASE);
	capture_gone(stream->number);
	stream->number = 0;
}

void capture_context_destroyed(void *handle)
{
	struct capture_context *context = find_context(handle);
	struct capture_stream *stream = capture_stream_next(NULL);

	if (!context)
		return;
	for (; stream; stream = capture_stream_next(stream))
		if (stream->context == context)
			forget_stream(stream);
	__atomic_store_n(&context->is_gone, true, __ATOMIC_RELEASE);
	if (capture_memory_context_gone)
		capture_memory_context_gone(context);
	capture_modules_context_gone(context);
	capture_gone(context->number);
	context->number = 0;
	if (!capture_context_next(NULL))
		capture_refused_forget();
}

static void describe_limits(struct stream_text *text, const struct capture_context *context)
{
	if (!context->limits)
		return;
	stream_text_open(text, "limits", '[');
	for (int limit = 0; limit < LIMITS; limit++) {
		size_t value;

		if (!(context->limits >> limit & 1) || cu.CtxGetLimit(&value, limit))
			continue;
		stream_text_open(text, NULL, '[');
		stream_text_int(text, NULL, limit);
		stream_text_uint(text, NULL, value);
		stream_text_close(text, '[');
	}
	stream_text_close(text, '[');
}

uint64_t capture_context_number(struct capture_context *context)
{
	struct ts_replay_object object = { .size = sizeof(object), .kind = TS_OBJECT_CONTEXT };
	struct stream_text text;
	bool is_pushed;

	if (context->number)
		return context->number;
	object.parent = capture_device_number(context->device);
	context->number = ts_replay_new_object();
	stream_text_begin(&text);
	stream_text_open(&text, "devices", '[');
	stream_text_uint(&text, NULL, context->device->number);
	stream_text_close(&text, '[');
	if (context->is_primary)
		stream_text_true(&text, "primary");
	stream_text_uint(&text, "flags", context->flags);
	is_pushed = capture_context_push(context);
	if (is_pushed) {
		describe_limits(&text, context);
		capture_context_pop();
	}
	if (context->cache)
		stream_text_int(&text, "cache", context->cache);
	object.number = context->number;
	object.address = (uintptr_t)context->handle;
	object.bytes = TS_UNKNOWN;
	object.details = stream_text_end(&text);
	capture_object(&object);
	return context->number;
}

/* ---- streams ---- */

struct capture_stream *capture_stream_next(struct capture_stream *after)
{
	struct capture_stream *stream = after ? after->next : atomic_load(&streams);

	while (stream && __atomic_load_n(&stream->is_gone, __ATOMIC_ACQUIRE))
		stream = stream->next;
	return stream;
}

/* `context`: NULL for any, because a handle has one. */
static bool is_stream(const struct capture_stream *stream, uintptr_t handle, uint64_t thread,
		      const struct capture_context *context)
{
	return stream->handle == handle && stream->thread == thread &&
	       (!context || stream->context == context);
}

/* Where it was found last comes first: programs have many, and use few. */
static struct capture_stream *find_stream(uintptr_t handle, uint64_t thread,
					  const struct capture_context *context)
{
	static struct capture_stream *_Atomic found[16];
	struct capture_stream *_Atomic *slot = &found[ts_hash_mix64(handle) % TS_ARRAY_SIZE(found)];
	struct capture_stream *stream = atomic_load_explicit(slot, memory_order_acquire);

	if (stream && is_stream(stream, handle, thread, context) &&
	    !__atomic_load_n(&stream->is_gone, __ATOMIC_ACQUIRE))
		return stream;
	stream = capture_stream_next(NULL);
	while (stream && !is_stream(stream, handle, thread, context))
		stream = capture_stream_next(stream);
	if (stream)
		atomic_store_explicit(slot, stream, memory_order_release);
	return stream;
}

static struct capture_stream *add_stream(uintptr_t handle, uint64_t thread,
					 struct capture_context *context)
{
	struct capture_stream *stream;

	pthread_mutex_lock(&lock);
	stream = find_stream(handle, thread, context);
	if (!stream) {
		stream = calloc(1, sizeof(*stream));
		if (stream) {
			stream->handle = handle;
			stream->thread = thread;
			stream->context = context;
			stream->next = atomic_load(&streams);
		}
		if (stream && handle > CUDA_STREAM_PER_THREAD) {
			cu.StreamGetFlags((void *)handle, &stream->flags);
			cu.StreamGetPriority((void *)handle, &stream->priority);
		}
		if (stream)
			atomic_store(&streams, stream);
	}
	pthread_mutex_unlock(&lock);
	return stream;
}

static struct capture_context *context_of_stream(uintptr_t handle)
{
	struct capture_context *context;
	void *found = NULL;
	int ordinal = 0;

	if (cu.StreamGetCtx((void *)handle, &found) || !found)
		return NULL;
	context = find_context(found);
	if (context || cu.CtxPushCurrent(found))
		return context;
	if (!cu.CtxGetDevice(&ordinal))
		context = add_context(found, ordinal);
	capture_context_pop();
	return context;
}

struct capture_stream *capture_stream_of(const struct cuda_call *call, uintptr_t handle)
{
	struct capture_context *context;
	struct capture_stream *stream;
	uint64_t thread = 0;

	if (!handle)
		handle = capture_is_per_thread(call) ? CUDA_STREAM_PER_THREAD : CUDA_STREAM_LEGACY;
	if (handle > CUDA_STREAM_PER_THREAD) {
		stream = find_stream(handle, 0, NULL);
		context = stream ? NULL : context_of_stream(handle);
	} else {
		/* The driver is not asked where there is only one. */
		context = capture_context_next(NULL);
		if (!context || capture_context_next(context))
			context = capture_context_current();
		if (!context)
			return NULL;
		if (handle == CUDA_STREAM_PER_THREAD && !this_thread)
			this_thread = atomic_fetch_add(&threads, 1) + 1;
		thread = handle == CUDA_STREAM_PER_THREAD ? this_thread : 0;
		stream = find_stream(handle, thread, context);
	}
	return stream || !context ? stream : add_stream(handle, thread, context);
}

/* Handles of default streams mean those of the calling thread, in its current context. */
static bool enter_stream(const struct capture_stream *stream)
{
	return !__atomic_load_n(&stream->is_gone, __ATOMIC_ACQUIRE) &&
	       (!stream->thread || stream->thread == this_thread) &&
	       capture_context_push(stream->context);
}

bool capture_stream_is_idle(const struct capture_stream *stream)
{
	bool is_idle;

	if (!enter_stream(stream))
		return false;
	is_idle = cu.StreamQuery((void *)stream->handle) == CUDA_SUCCESS_;
	capture_context_pop();
	return is_idle;
}

/*
 * Per-thread streams of other threads cannot be asked. To ask one that is being captured, or the
 * legacy stream meanwhile, would end the capture.
 */
static bool can_be_asked(const struct capture_stream *stream)
{
	int status = 0;

	if (stream->thread && stream->thread != this_thread)
		return false;
	return !capture_any_capturing() ||
	       (!cu.StreamIsCapturing((void *)stream->handle, &status) && status == 0);
}

void capture_stream_finish(const struct capture_stream *stream)
{
	struct arena_mode mode;
	int result = CUDA_NOT_READY;

	arena_mode_begin(&mode);
	if (enter_stream(stream)) {
		if (can_be_asked(stream))
			result = cu.StreamSynchronize((void *)stream->handle);
		capture_context_pop();
	}
	arena_mode_end(&mode);
	if (result == CUDA_SUCCESS_ || stream->context->is_gone)
		return;
	/* To wait for all of a context would end captures of it. */
	if (capture_any_capturing()) {
		capture_fail("copy to pinned memory that has to be waited for during a stream "
			     "capture");
		return;
	}
	if (capture_context_push(stream->context)) {
		cu.CtxSynchronize();
		capture_context_pop();
	}
}

uint64_t capture_stream_describe(struct capture_stream *stream)
{
	struct ts_replay_object object = { .size = sizeof(object), .kind = TS_OBJECT_STREAM };
	struct stream_text text;
	uint32_t index = UINT32_MAX, in_context;

	if (stream->number)
		return stream->number;
	object.parent = capture_context_number(stream->context);
	stream->number = ts_replay_new_object();
	if (capture_context_push(stream->context)) {
		index = cuda_stream_number((void *)stream->handle, &in_context);
		capture_context_pop();
	}
	stream_text_begin(&text);
	stream_text_uint(&text, "device", stream->context->device->number);
	if (index != UINT32_MAX)
		stream_text_uint(&text, "index", index);
	stream_text_int(&text, "priority", stream->priority);
	stream_text_uint(&text, "flags", stream->flags);
	if (stream->handle <= CUDA_STREAM_PER_THREAD)
		stream_text_string(&text, "default", stream->thread ? "thread" : "legacy");
	capture_stream_settings_describe(stream, &text);
	object.number = stream->number;
	object.address = stream->handle;
	object.bytes = TS_UNKNOWN;
	object.details = stream_text_end(&text);
	capture_object(&object);
	return stream->number;
}

uint64_t capture_stream_number(const struct cuda_call *call, uintptr_t handle)
{
	struct capture_stream *stream = capture_stream_of(call, handle);

	return stream ? capture_stream_describe(stream) : 0;
}

bool capture_any_capturing(void)
{
	return __atomic_load_n(&cuda_captures, __ATOMIC_RELAXED) != 0;
}

bool capture_is_capturing(uintptr_t stream)
{
	int status = 0;

	if (stream <= CUDA_STREAM_LEGACY || !capture_any_capturing())
		return false;
	return !cu.StreamIsCapturing((void *)stream, &status) && status == CAPTURE_ACTIVE;
}

bool capture_is_captured(const struct cuda_call *call, uintptr_t stream)
{
	if (!stream && capture_any_capturing() && capture_is_per_thread(call))
		stream = CUDA_STREAM_PER_THREAD;
	return capture_is_capturing(stream);
}

/* ---- windows ---- */

void capture_objects_forget(void)
{
	for (int i = 0; i < DEVICES; i++) {
		struct capture_device *device = atomic_load(&devices[i]);

		if (device)
			device->number = device->arena_number = 0;
	}
	for (struct capture_context *context = atomic_load(&contexts); context;
	     context = context->next)
		context->number = 0;
	for (struct capture_stream *stream = atomic_load(&streams); stream; stream = stream->next)
		stream->number = 0;
}

void capture_objects_describe(void)
{
	struct capture_context *context = capture_context_next(NULL);
	struct capture_stream *stream = capture_stream_next(NULL);

	for (; context; context = capture_context_next(context))
		capture_context_number(context);
	for (; stream; stream = capture_stream_next(stream))
		capture_stream_describe(stream);
}

/* A stream that a kernel keeps busy until the host does something would block forever. */
static bool finish_stream(const struct capture_stream *stream, int64_t deadline_ns, char *why,
			  size_t bytes)
{
	if (!can_be_asked(stream))
		return true;
	while (cu.StreamQuery((void *)stream->handle) == CUDA_NOT_READY) {
		if (ts_replay_clock_ns() >= deadline_ns || ts_replay_is_awaited()) {
			snprintf(why, bytes, "stream 0x%llx is not empty",
				 (unsigned long long)stream->handle);
			return false;
		}
		ts_replay_nap(POLL_NS);
	}
	return true;
}

static bool finish_context(struct capture_context *context, int64_t deadline_ns, char *why,
			   size_t bytes)
{
	struct capture_stream *stream = capture_stream_next(NULL);
	bool is_empty = true;

	for (; stream && is_empty; stream = capture_stream_next(stream))
		if (stream->context == context)
			is_empty = finish_stream(stream, deadline_ns, why, bytes);
	if (is_empty && !capture_any_capturing())
		cu.CtxSynchronize();
	return is_empty;
}

bool capture_contexts_finish(int64_t deadline_ns, char *why, size_t bytes)
{
	struct capture_context *context = capture_context_next(NULL);
	struct arena_mode mode;
	bool are_empty = true;

	arena_mode_begin(&mode);
	for (; context && are_empty; context = capture_context_next(context)) {
		if (!capture_context_push(context))
			continue;
		are_empty = finish_context(context, deadline_ns, why, bytes);
		capture_context_pop();
	}
	arena_mode_end(&mode);
	return are_empty;
}

/* Marks the end of what the stream has now: others may go on to fill it. NULL: it cannot be. */
static void *add_end(const struct capture_stream *stream)
{
	void *event;

	if (cu.EventCreate(&event, CUDA_EVENT_DISABLE_TIMING))
		return NULL;
	if (!cu.EventRecord(event, (void *)stream->handle))
		return event;
	cu.EventDestroy(event);
	return NULL;
}

/*
 * Is it done with what it had when it was asked first? *end is NULL then. With the lock, so that it
 * is not destroyed meanwhile.
 */
static int query(const struct capture_stream *stream, void **end)
{
	int result = CUDA_SUCCESS_;
	struct arena_mode mode;

	capture_lock();
	arena_mode_begin(&mode);
	if (*end) {
		result = cu.EventQuery(*end);
	} else if (!stream->is_gone && can_be_asked(stream)) {
		result = cu.StreamQuery((void *)stream->handle);
		if (result == CUDA_NOT_READY)
			*end = add_end(stream);
	}
	arena_mode_end(&mode);
	capture_unlock();
	return result;
}

/*
 * The lock is not held while this waits: a host function in a stream may wait for a thread that
 * needs it.
 */
int capture_context_finish_streams(const struct capture_context *context)
{
	struct capture_stream *stream = capture_stream_next(NULL);
	int result = CUDA_SUCCESS_;

	for (; stream && !result; stream = capture_stream_next(stream)) {
		void *end = NULL;

		if (stream->context != context)
			continue;
		while ((result = query(stream, &end)) == CUDA_NOT_READY)
			ts_replay_nap(POLL_NS);
		if (end)
			cu.EventDestroy(end);
	}
	return result;
}

/* ---- calls ---- */

/* CUctxCreateParams */
struct create_params {
	const void *affinities;
	int affinity_count;
	const void *graphics;
};

/* A replay makes contexts without: kernels may use all multiprocessors, and no graphics API. */
static void refuse_params(const struct cuda_call *call, const uintptr_t *args)
{
	struct create_params params = { 0 };
	const char *version = call->name + capture_base_name(call->name);

	if (!strcmp(version, "_v3"))
		params.affinity_count = (int)args[2];
	else if (!strcmp(version, "_v4") && args[1])
		memcpy(&params, (const void *)args[1], sizeof(params));
	if (params.affinity_count)
		capture_prevent("context with an execution affinity (cuCtxCreate)");
	if (params.graphics)
		capture_prevent("context of a graphics interface (cuCtxCreate)");
}

/* The new context is current. */
static int handle_create(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_) {
		capture_context_current();
		refuse_params(call, args);
	}
	return result;
}

/* Threads of ours may be copying a snapshot with streams of a context that is about to end. */
static void finish_snapshot(const struct capture_device *device)
{
	if (device && capture_is_open() && snapshot_give_memory_back)
		snapshot_give_memory_back(device);
}

static int handle_destroy(struct cuda_call *call, uintptr_t *args)
{
	const struct capture_context *context = find_context((const void *)args[0]);
	int result;

	finish_snapshot(context ? context->device : NULL);
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_)
		capture_context_destroyed((void *)args[0]);
	return result;
}

/* context, flags: the current one, which has another user now. */
static int handle_attach(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct capture_context *context = result ? NULL : capture_context_current();

	if (context)
		atomic_fetch_add(&context->attached, 1);
	return result;
}

/* Ends the context with its last user. */
static int handle_detach(struct cuda_call *call, uintptr_t *args)
{
	struct capture_context *context = find_context((const void *)args[0]);
	int result;

	if (!context || !atomic_load(&context->attached))
		return handle_destroy(call, args);
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_)
		atomic_fetch_sub(&context->attached, 1);
	return result;
}

static int handle_retain(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct capture_context *context;

	if (result != CUDA_SUCCESS_ || !args[0])
		return result;
	context = add_context(*(void **)args[0], (int)args[1]);
	if (!context || context->is_primary)
		return result;
	context->is_primary = true;
	if (capture_context_push(context)) {
		cu.CtxGetFlags(&context->flags);
		open_device(context->device);
		capture_context_pop();
	}
	return result;
}

static void lose_primary(int ordinal)
{
	struct capture_context *context = capture_context_next(NULL);

	for (; context; context = capture_context_next(context))
		if (context->is_primary && context->device->ordinal == ordinal)
			capture_context_destroyed(context->handle);
}

static int handle_release(struct cuda_call *call, uintptr_t *args)
{
	int result, is_active = 0;
	unsigned int flags;

	finish_snapshot(capture_device_of((int)args[0]));
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_ &&
	    (cu.DevicePrimaryCtxGetState((int)args[0], &flags, &is_active) || !is_active))
		lose_primary((int)args[0]);
	return result;
}

static int handle_reset(struct cuda_call *call, uintptr_t *args)
{
	int result;

	finish_snapshot(capture_device_of((int)args[0]));
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_)
		lose_primary((int)args[0]);
	return result;
}

static int handle_stream_create(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_ && args[0])
		capture_stream_of(call, *(uintptr_t *)args[0]);
	return result;
}

static int handle_stream_destroy(struct cuda_call *call, uintptr_t *args)
{
	struct capture_stream *stream = NULL;
	int result;

	if (args[0] > CUDA_STREAM_PER_THREAD)
		stream = find_stream(args[0], 0, NULL);
	/* Its handle may be given to another thread as soon as it is free. */
	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_ && stream)
		forget_stream(stream);
	capture_unlock();
	return result;
}

const struct cuda_handler_entry capture_object_handlers[] = {
	{ "cuCtxCreate", handle_create, CAPTURE_ALWAYS },
	{ "cuCtxDestroy", handle_destroy, CAPTURE_ALWAYS },
	{ "cuCtxAttach", handle_attach, CAPTURE_ALWAYS },
	{ "cuCtxDetach", handle_detach, CAPTURE_ALWAYS },
	{ "cuDevicePrimaryCtxRetain", handle_retain, CAPTURE_ALWAYS },
	{ "cuDevicePrimaryCtxRelease", handle_release, CAPTURE_ALWAYS },
	{ "cuDevicePrimaryCtxReset", handle_reset, CAPTURE_ALWAYS },
	{ "cuStreamCreate", handle_stream_create, CAPTURE_ALWAYS },
	{ "cuStreamCreateWithPriority", handle_stream_create, CAPTURE_ALWAYS },
	{ "cuStreamDestroy", handle_stream_destroy, CAPTURE_ALWAYS },
	{ NULL, NULL, 0 },
};
