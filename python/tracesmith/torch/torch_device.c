/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device times: CUDA events around a piece of work, recorded in the current stream and read when
 * the device has passed them. Nothing waits for the device. Uses the driver library that
 * the program has already loaded.
 */
#include "torch_profile.h"

#include <dlfcn.h>
#include <string.h>

enum {
	POOL_SIZE = 4096,    /* events that can be in use at once, over all devices */
	PENDING_SIZE = 4096, /* spans whose device has not finished */
	DEVICES = 64,
};

#define CAPTURE_RELAXED 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */

/* From cuda.h; the stand-ins of results and handles have the same size. */
static struct {
	int (*context)(void **context);
	int (*device)(int *device);
	int (*create)(void **event, unsigned int flags);
	int (*record)(void *event, void *stream);
	int (*query)(void *event);
	int (*elapsed)(float *ms, void *start, void *end);
	int (*is_capturing)(void *stream, int *status);
	int (*exchange_mode)(int *mode);
} cuda;

struct pending {
	struct ts_span span;
	uint64_t serial;
};

static bool is_ready;
static unsigned int created;
static void *free_events[DEVICES][POOL_SIZE];
static unsigned int free_count[DEVICES];
static struct pending pending[PENDING_SIZE];
static unsigned int pending_first, pending_count;

static bool find(void *library, const char *name, void *ret_function)
{
	void *function = dlsym(library, name);

	memcpy(ret_function, &function, sizeof(function));
	return function != NULL;
}

void ts_device_init(void)
{
	void *library;

	if (is_ready)
		return;
	library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return;
	is_ready = find(library, "cuCtxGetCurrent", &cuda.context) &&
		   find(library, "cuCtxGetDevice", &cuda.device) &&
		   find(library, "cuEventCreate", &cuda.create) &&
		   find(library, "cuEventRecord", &cuda.record) &&
		   find(library, "cuEventQuery", &cuda.query) &&
		   find(library, "cuEventElapsedTime", &cuda.elapsed) &&
		   find(library, "cuStreamIsCapturing", &cuda.is_capturing) &&
		   find(library, "cuThreadExchangeStreamCaptureMode", &cuda.exchange_mode) &&
		   ts_profile.raw_stream;
}

bool ts_device_is_ready(void)
{
	return is_ready;
}

/* The stream in which torch launches on this device; false: unknown, or it is being captured. */
static bool current_stream(int32_t device, void **ret_stream)
{
	PyObject *number = PyLong_FromLong(device);
	PyObject *stream = NULL;
	int status = 1;

	if (number)
		stream = ts_profile_quiet(
			PyObject_CallFunctionObjArgs(ts_profile.raw_stream, number, NULL));
	Py_XDECREF(number);
	if (!stream)
		return false;
	*ret_stream = PyLong_AsVoidPtr(stream);
	Py_DECREF(stream);
	if (PyErr_Occurred()) {
		PyErr_Clear();
		return false;
	}
	return cuda.is_capturing(*ret_stream, &status) == 0 && status == 0;
}

/* True if this thread's context is that device's, where events are created and recorded. */
static bool is_current(int32_t device)
{
	void *context = NULL;
	int current = -1;

	return device >= 0 && device < DEVICES && cuda.context(&context) == 0 && context &&
	       cuda.device(&current) == 0 && current == device;
}

static void *take_event(int32_t device)
{
	void *event = NULL;

	if (free_count[device])
		return free_events[device][--free_count[device]];
	if (created >= POOL_SIZE || cuda.create(&event, 0) != 0)
		return NULL;
	created++;
	return event;
}

static void give_event(int32_t device, void *event)
{
	if (event)
		free_events[device][free_count[device]++] = event;
}

static void *record_event(int32_t device)
{
	void *stream = NULL;
	void *event;

	if (!is_current(device) || !current_stream(device, &stream))
		return NULL;
	event = take_event(device);
	if (event && cuda.record(event, stream) != 0) {
		give_event(device, event);
		return NULL;
	}
	return event;
}

void ts_span_start(struct ts_span *span, int32_t device, bool outermost)
{
	int64_t now_ns;

	*span = (struct ts_span){ .device = device };
	if (!is_ready || device < 0 || ts_profile.device_time.reading == TS_READING_NEVER)
		return;
	now_ns = ts_profile_now();
	if (!outermost && !ts_budget_allows(&ts_profile.device_time, now_ns))
		return;
	span->start = record_event(device);
	/* Two events, of which this is the first. */
	ts_budget_spent(&ts_profile.device_time, 2 * (ts_profile_now() - now_ns));
}

void ts_span_stop(struct ts_span *span)
{
	if (span->start && !span->end)
		span->end = record_event(span->device);
}

void ts_span_resume(struct ts_span *span)
{
	if (span->end)
		give_event(span->device, span->end);
	span->end = NULL;
}

void ts_span_drop(struct ts_span *span)
{
	if (span->start)
		give_event(span->device, span->start);
	if (span->end)
		give_event(span->device, span->end);
	span->start = span->end = NULL;
}

void ts_span_finish(struct ts_span *span, uint64_t serial)
{
	if (!span->start)
		return;
	ts_span_stop(span);
	if (pending_count == PENDING_SIZE)
		ts_device_poll();
	if (!serial || !span->end || pending_count == PENDING_SIZE) {
		ts_span_drop(span);
		return;
	}
	pending[(pending_first + pending_count++) % PENDING_SIZE] =
		(struct pending){ .span = *span, .serial = serial };
	span->start = span->end = NULL;
	if (pending_count % 64 == 0)
		ts_device_poll();
}

unsigned int ts_device_poll(void)
{
	int mode = CAPTURE_RELAXED;
	float ms;

	/* A query would otherwise break a capture that another thread has begun. */
	if (!pending_count || cuda.exchange_mode(&mode) != 0)
		return pending_count;
	while (pending_count) {
		struct pending *first = &pending[pending_first];

		if (cuda.query(first->span.end) != 0)
			break;
		if (cuda.elapsed(&ms, first->span.start, first->span.end) == 0)
			ts_torch_device_time(first->serial, (int64_t)((double)ms * 1e6));
		ts_span_drop(&first->span);
		pending_first = (pending_first + 1) % PENDING_SIZE;
		pending_count--;
	}
	cuda.exchange_mode(&mode);
	return pending_count;
}
