/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's clock against the host's, with a fake driver whose clock is known. The source is part
 * of the agent, so it is included here.
 */
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include <string.h>

#include <tracesmith/accelerator.h>

#define ts_accelerator_clock emitted_clock
static void emitted_clock(uint32_t device, uint64_t host, int64_t device_ns, int64_t uncertainty_ns,
			  const char *method);

#include "backends/opencl/calls/opencl_clock.c" /* NOLINT(bugprone-suspicious-include) */

struct ocl ocl;

/* The fake host clock: ten ticks per nanosecond, and each reading takes 20 ns. */
static uint64_t ticks = 1000000;

uint64_t ts_now(void)
{
	return ticks += 200;
}

int64_t ts_ticks_ns(uint64_t count)
{
	return (int64_t)(count / 10);
}

static struct {
	unsigned int count;
	uint64_t host;
	int64_t device_ns, uncertainty_ns;
	char method[64];
} emitted;

static void emitted_clock(uint32_t device, uint64_t host, int64_t device_ns, int64_t uncertainty_ns,
			  const char *method)
{
	(void)device;
	emitted.count++;
	emitted.host = host;
	emitted.device_ns = device_ns;
	emitted.uncertainty_ns = uncertainty_ns;
	strncpy(emitted.method, method, sizeof(emitted.method) - 1);
}

/* ---- the driver: its clock is the host's plus a constant ---- */

#define AHEAD_NS 5000000000

static cl_ulong queued_at[100];
static unsigned int markers, released;
static cl_ulong timer_resolution;
static int64_t timer_ahead_ns;

static int64_t device_now(void)
{
	ticks += 3000;
	return ts_ticks_ns(ticks) + AHEAD_NS;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
				      void *value, size_t *ret_size)
{
	(void)device;
	(void)ret_size;
	memset(value, 0, size);
	if (what == CL_DEVICE_VERSION)
		strncpy(value, "OpenCL 3.0 of a test", size - 1);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
					void *value, size_t *ret_size)
{
	(void)platform;
	(void)ret_size;
	TS_CHECK_INT(what, CL_PLATFORM_HOST_TIMER_RESOLUTION);
	memcpy(value, &timer_resolution, size);
	return CL_SUCCESS;
}

static cl_command_queue CL_API_CALL make_queue(cl_context context, cl_device_id device,
					       cl_command_queue_properties properties,
					       cl_int *ret_error)
{
	(void)context;
	(void)device;
	TS_CHECK_INT(properties, CL_QUEUE_PROFILING_ENABLE);
	*ret_error = CL_SUCCESS;
	return (cl_command_queue)(void *)1;
}

static cl_int CL_API_CALL end_queue(cl_command_queue queue)
{
	(void)queue;
	return CL_SUCCESS;
}

static cl_int CL_API_CALL mark(cl_command_queue queue, cl_uint count, const cl_event *waits,
			       cl_event *event)
{
	(void)queue;
	(void)count;
	(void)waits;
	queued_at[markers] = (cl_ulong)device_now();
	*event = (cl_event)(void *)(uintptr_t)++markers;
	return CL_SUCCESS;
}

static cl_int CL_API_CALL query_profile(cl_event event, cl_profiling_info what, size_t size,
					void *value, size_t *ret_size)
{
	(void)ret_size;
	TS_CHECK_INT(what, CL_PROFILING_COMMAND_QUEUED);
	memcpy(value, &queued_at[(uintptr_t)event - 1], size);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL release(cl_event event)
{
	(void)event;
	released++;
	return CL_SUCCESS;
}

static cl_int CL_API_CALL query_both(cl_device_id device, cl_ulong *ret_device, cl_ulong *ret_host)
{
	(void)device;
	*ret_device = (cl_ulong)(device_now() + timer_ahead_ns);
	*ret_host = 1;
	return CL_SUCCESS;
}

static struct ocl_object device = { .kind = OCL_DEVICE, .number = 3 };

static void begin(cl_ulong resolution, int64_t ahead_ns)
{
	timer_resolution = resolution;
	timer_ahead_ns = ahead_ns;
	ocl.next.clGetDeviceInfo = device_info;
	ocl.next.clGetPlatformInfo = platform_info;
	ocl.next.clCreateCommandQueue = make_queue;
	ocl.next.clReleaseCommandQueue = end_queue;
	ocl.next.clFinish = end_queue;
	ocl.next.clEnqueueMarkerWithWaitList = mark;
	ocl.next.clGetEventProfilingInfo = query_profile;
	ocl.next.clReleaseEvent = release;
	ocl.next.clGetDeviceAndHostTimer = query_both;
	ocl_clock_start(&device, NULL);
}

/* The reported offset is right within the reported uncertainty and the driver's resolution. */
static void check_emitted(const char *method)
{
	int64_t right = ts_ticks_ns(emitted.host) + AHEAD_NS;
	int64_t error = emitted.device_ns > right ? emitted.device_ns - right
						  : right - emitted.device_ns;

	TS_CHECK_INT(emitted.count, 1);
	TS_CHECK_STR(emitted.method, method);
	TS_CHECK(emitted.uncertainty_ns > 0);
	TS_CHECK(error <= emitted.uncertainty_ns);
}

/* One after the other: the order in which arguments are evaluated is the compiler's choice. */
static void observe(void)
{
	uint64_t before = ts_now();
	int64_t at = device_now();

	ocl_clock_bracket(&device, at, before, ts_now());
}

TS_TEST(without_a_timer_the_clock_is_bracketed)
{
	begin(0, 0);
	check_emitted("bracketing");
	TS_CHECK_INT(markers, FIRST_MARKERS);
	TS_CHECK_INT(released, markers);
	/* Once per device, and not again within a second. */
	ocl_clock_start(&device, NULL);
	observe();
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 1);
	TS_CHECK_INT(markers, FIRST_MARKERS);
	ticks += UINT64_C(10000000000);
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 2);
	/* Nothing was observed since. */
	ticks += UINT64_C(10000000000);
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 2);
}

TS_TEST(a_timer_of_the_same_clock_is_used)
{
	begin(1, 0);
	check_emitted("clGetDeviceAndHostTimer");
	ticks += UINT64_C(10000000000);
	emitted.count = 0;
	ocl_clock_emit(&device);
	check_emitted("clGetDeviceAndHostTimer");
}

TS_TEST(a_timer_of_another_clock_is_not)
{
	begin(1, 3000000000);
	check_emitted("bracketing");
}

TS_TEST(the_narrowest_bracket_counts)
{
	uint64_t now = ts_now();

	/* No markers: the commands themselves tie the clocks. */
	ocl_clock_bracket(&device, 1000, now, now + 1000000);
	ocl_clock_bracket(&device, 2000, now + 5000, now + 5200);
	ocl_clock_bracket(&device, 3000, now + 9000, now + 19000);
	ocl_clock_bracket(&device, 0, now, now + 1);
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 1);
	TS_CHECK_INT(emitted.device_ns, 2000);
	TS_CHECK_INT(emitted.host, now + 5100);
	TS_CHECK_INT(ocl_clock_estimate(&device, now + 5100), 2000);
	TS_CHECK(ocl_clock_estimate(&device, now + 5100 + 1000000) > 2000);
	TS_CHECK(ocl_clock_estimate(&device, now + 5100 - 1000) < 2000);
}

/* A wide bracket counts only when the clocks may have drifted apart by as much. */
TS_TEST(a_wide_bracket_is_no_news)
{
	const uint64_t second = UINT64_C(10000000000), wide = 40000000; /* 4 ms */
	uint64_t now;

	begin(0, 0);
	for (int i = 0; i < 3; i++) {
		ticks += second;
		now = ts_now();
		ocl_clock_bracket(&device, 1000, now, now + wide);
		ocl_clock_emit(&device);
		TS_CHECK_INT(emitted.count, 1);
	}
	/* It does not stand in the way of a narrow one. */
	now = ts_now();
	ocl_clock_bracket(&device, 2000, now, now + 200);
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 2);
	TS_CHECK_INT(emitted.device_ns, 2000);
	ticks += 30 * second;
	now = ts_now();
	ocl_clock_bracket(&device, 3000, now, now + wide);
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 3);
	TS_CHECK_INT(emitted.device_ns, 3000);
}

TS_TEST(nothing_is_told_of_a_clock_that_nobody_read)
{
	ocl_clock_emit(&device);
	TS_CHECK_INT(emitted.count, 0);
	TS_CHECK_INT(ocl_clock_estimate(&device, 1), TS_UNKNOWN);
}

#else

TS_TEST(clock_needs_headers)
{
	ts_test_skip("built without OpenCL");
}

#endif
