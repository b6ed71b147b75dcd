/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relates the device clock to the host clock (docs/replay.md, 3.2): with clGetDeviceAndHostTimer()
 * if the driver has it and its events use the same clock, else by bracketing: the QUEUED time of a
 * command lies between the host times before and after its call.
 */
#include <stdlib.h>

#include "backends/opencl/opencl_internal.h"

#define EMIT_INTERVAL_NS 1000000000
/* Markers used for the first reading of a device's clock. */
#define FIRST_MARKERS 16
/* How much two ways of reading the same clock may differ, beyond their uncertainties. */
#define SAME_CLOCK_NS 1000000
/* How fast two clocks may drift apart: 1 in so many, 100 ppm. */
#define DRIFT 10000

#ifndef CL_PLATFORM_HOST_TIMER_RESOLUTION
#define CL_PLATFORM_HOST_TIMER_RESOLUTION 0x0905
#endif

/* The device clock showed `device_ns` at some time between `before` and `after`. */
struct reading {
	int64_t device_ns;
	uint64_t before, after;
};

struct ocl_clock {
	pthread_mutex_t lock;
	struct reading best; /* the narrowest since the last emission; after == 0: none */
	struct reading last; /* the last one emitted; after == 0: none */
	uint64_t emitted;    /* ts_now() of the last emission; 0: never */
	bool has_timer;      /* clGetDeviceAndHostTimer() can be used */
};

static struct ocl_clock *clock_of(struct ocl_object *device)
{
	struct ocl_clock *clock = __atomic_load_n(&device->clock, __ATOMIC_ACQUIRE), *none = NULL;

	if (clock)
		return clock;
	clock = calloc(1, sizeof(*clock));
	if (!clock)
		return NULL;
	pthread_mutex_init(&clock->lock, NULL);
	if (__atomic_compare_exchange_n(&device->clock, &none, clock, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return clock;
	free(clock);
	return none;
}

static void keep_narrowest(struct reading *best, const struct reading *reading)
{
	if (!best->after || reading->after - reading->before < best->after - best->before)
		*best = *reading;
}

void ocl_clock_bracket(struct ocl_object *device, int64_t queued, uint64_t before, uint64_t after)
{
	struct reading reading = { queued, before, after };
	struct ocl_clock *clock = clock_of(device);

	if (!clock || queued <= 0 || __atomic_load_n(&clock->has_timer, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&clock->lock);
	keep_narrowest(&clock->best, &reading);
	pthread_mutex_unlock(&clock->lock);
}

/* ---- the driver's own timer ---- */

static bool query_timer(const struct ocl_object *device, struct reading *ret_reading)
{
	cl_ulong device_ns = 0, host_ns = 0;

	ret_reading->before = ts_now();
	if (ocl.next.clGetDeviceAndHostTimer(device->handle, &device_ns, &host_ns) != CL_SUCCESS)
		return false;
	ret_reading->after = ts_now();
	ret_reading->device_ns = (int64_t)device_ns;
	return device_ns != 0;
}

/*
 * A driver that lacks the function may have an invalid entry: called only if the platform says that
 * there is a timer.
 */
static bool may_have_timer(cl_device_id device)
{
	cl_platform_id platform = NULL;
	cl_ulong resolution = 0;

	return ocl.next.clGetDeviceAndHostTimer &&
	       ocl.next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform,
					NULL) == CL_SUCCESS &&
	       ocl.next.clGetPlatformInfo(platform, CL_PLATFORM_HOST_TIMER_RESOLUTION,
					  sizeof(resolution), &resolution, NULL) == CL_SUCCESS &&
	       resolution != 0;
}

/* ns of our clock from the middle of one to that of the other. */
static int64_t middle_ns(const struct reading *from, const struct reading *to)
{
	uint64_t a = from->before + (from->after - from->before) / 2;
	uint64_t b = to->before + (to->after - to->before) / 2;

	return b >= a ? ts_ticks_ns(b - a) : -ts_ticks_ns(a - b);
}

static bool is_same_clock(const struct reading *timer, const struct reading *event)
{
	int64_t difference = event->device_ns - timer->device_ns - middle_ns(timer, event);
	int64_t most = SAME_CLOCK_NS + ts_ticks_ns(timer->after - timer->before) +
		       ts_ticks_ns(event->after - event->before);

	return difference <= most && -difference <= most;
}

/* ---- the first reading ---- */

/* Enqueues all markers before waiting for the first: a device that wakes up makes calls slow. */
static void time_in(cl_command_queue queue, struct reading *ret_best)
{
	struct reading readings[FIRST_MARKERS];
	cl_event events[FIRST_MARKERS];
	int count = 0;

	for (; count < FIRST_MARKERS; count++) {
		readings[count].before = ts_now();
		if (ocl.next.clEnqueueMarkerWithWaitList(queue, 0, NULL, &events[count]) !=
		    CL_SUCCESS)
			break;
		readings[count].after = ts_now();
	}
	ocl.next.clFinish(queue);
	for (int i = 0; i < count; i++) {
		cl_ulong queued = 0;

		if (ocl.next.clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_QUEUED,
						     sizeof(queued), &queued, NULL) == CL_SUCCESS &&
		    queued) {
			readings[i].device_ns = (int64_t)queued;
			keep_narrowest(ret_best, &readings[i]);
		}
		ocl.next.clReleaseEvent(events[i]);
	}
}

static void time_markers(const struct ocl_object *device, cl_context context,
			 struct reading *ret_best)
{
	cl_int error = CL_SUCCESS;
	cl_command_queue queue = ocl.next.clCreateCommandQueue(context, device->handle,
							       CL_QUEUE_PROFILING_ENABLE, &error);

	if (!queue)
		return;
	time_in(queue, ret_best);
	ocl.next.clReleaseCommandQueue(queue);
}

/* "OpenCL 1.2 ...": since then, markers return an event without waiting. */
static bool has_markers(cl_device_id device)
{
	char version[128] = "";

	return ocl.next.clEnqueueMarkerWithWaitList && ocl.next.clCreateCommandQueue &&
	       ocl.next.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof(version), version,
					NULL) == CL_SUCCESS &&
	       (version[7] > '1' || (version[7] == '1' && version[9] >= '2'));
}

void ocl_clock_start(struct ocl_object *device, cl_context context)
{
	struct ocl_clock *clock = clock_of(device);
	struct reading best = { 0, 0, 0 }, timer = { 0, 0, 0 };

	if (!clock || __atomic_load_n(&clock->emitted, __ATOMIC_ACQUIRE))
		return;
	if (has_markers(device->handle))
		time_markers(device, context, &best);
	if (best.after && may_have_timer(device->handle) && query_timer(device, &timer))
		__atomic_store_n(&clock->has_timer, is_same_clock(&timer, &best), __ATOMIC_RELAXED);
	pthread_mutex_lock(&clock->lock);
	if (best.after)
		keep_narrowest(&clock->best, &best);
	pthread_mutex_unlock(&clock->lock);
	ocl_clock_emit(device);
}

/* ---- emitting ---- */

/*
 * A command whose call was interrupted is a wide bracket. It says less than the last reading as
 * long as the clocks cannot have drifted apart by that much.
 */
static bool is_news(const struct reading *reading, const struct reading *last)
{
	uint64_t drift = reading->before > last->before ? (reading->before - last->before) / DRIFT
							: 0;

	return reading->after - reading->before <= last->after - last->before + 2 * drift;
}

/* Takes the reading to emit, if one is due; the timer is read without the lock. */
static bool take_due(struct ocl_clock *clock, struct reading *ret_reading)
{
	uint64_t now = ts_now();
	bool is_due;

	pthread_mutex_lock(&clock->lock);
	if (clock->emitted && clock->last.after && clock->best.after &&
	    !is_news(&clock->best, &clock->last))
		clock->best.after = 0;
	is_due = (clock->best.after || clock->has_timer) &&
		 (!clock->emitted || ts_ticks_ns(now - clock->emitted) >= EMIT_INTERVAL_NS);
	if (is_due) {
		*ret_reading = clock->best;
		clock->best.after = 0;
		__atomic_store_n(&clock->emitted, now, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&clock->lock);
	return is_due;
}

void ocl_clock_emit(struct ocl_object *device)
{
	struct ocl_clock *clock = clock_of(device);
	struct reading reading, timer;
	bool has_timer;

	if (!clock || !take_due(clock, &reading))
		return;
	has_timer = __atomic_load_n(&clock->has_timer, __ATOMIC_RELAXED) &&
		    query_timer(device, &timer);
	if (has_timer)
		reading = timer;
	if (!reading.after)
		return;
	pthread_mutex_lock(&clock->lock);
	clock->last = reading;
	pthread_mutex_unlock(&clock->lock);
	ts_accelerator_clock(device->number, reading.before + (reading.after - reading.before) / 2,
			     reading.device_ns,
			     (ts_ticks_ns(reading.after - reading.before) + 1) / 2,
			     has_timer ? "clGetDeviceAndHostTimer" : "bracketing");
}

int64_t ocl_clock_estimate(struct ocl_object *device, uint64_t at)
{
	struct ocl_clock *clock = clock_of(device);
	struct reading last = { 0, 0, 0 }, then = { 0, at, at };

	if (clock) {
		pthread_mutex_lock(&clock->lock);
		last = clock->last;
		pthread_mutex_unlock(&clock->lock);
	}
	return last.after ? last.device_ns + middle_ns(&last, &then) : TS_UNKNOWN;
}

void ocl_clock_forked(struct ocl_object *device)
{
	struct ocl_clock *clock = device->clock;

	if (!clock)
		return;
	pthread_mutex_init(&clock->lock, NULL);
	clock->emitted = 0;
	clock->best.after = 0;
}
