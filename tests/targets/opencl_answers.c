/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries everything that a recorder could change by being there, and prints the answers:
 * properties of queues, times and references of events, errors of invalid calls, functions by name,
 * callbacks, results. Must print the same with and without a recording. Does not print addresses,
 * times and durations.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 1024u

static const char source[] = "kernel void twice(global int *a, int n) {\n"
			     "	int i = get_global_id(0);\n"
			     "	if (i < n) a[i] = a[i] * 2;\n"
			     "}\n"
			     "kernel void nothing(void) { }\n";

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_program program;

static void stop_if(cl_int error, const char *what)
{
	if (error != CL_SUCCESS) {
		printf("%s: error %d\n", what, error);
		exit(error == -1001 ? 77 : 1);
	}
}

/* ---- queues ---- */

static void print_queue(const char *name, cl_command_queue queue)
{
	cl_command_queue_properties properties = 0x5555;
	cl_queue_properties list[32];
	size_t bytes = 0;
	cl_uint references = 0;
	cl_int error;

	error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				      &bytes);
	printf("%s: properties %d: 0x%llx, %zu bytes\n", name, error,
	       (unsigned long long)properties, bytes);
	error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 0, NULL, &bytes);
	printf("%s: properties without room %d: %zu bytes\n", name, error, bytes);
	error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 1, &properties, NULL);
	printf("%s: properties with too little room: %d\n", name, error);
	bytes = 99;
	memset(list, 0x77, sizeof(list));
	error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof(list), list, &bytes);
	printf("%s: list %d, %zu bytes:", name, error, bytes);
	for (size_t i = 0; i < bytes / sizeof(*list) && i < 32; i++)
		printf(" 0x%llx", (unsigned long long)list[i]);
	printf("; behind it 0x%llx\n", (unsigned long long)list[bytes / sizeof(*list)]);
	error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, &bytes);
	printf("%s: list without room %d: %zu bytes\n", name, error, bytes);
	error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 1, list, NULL);
	printf("%s: list with too little room: %d\n", name, error);
	usleep(10000); /* the driver releases it late */
	error = clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(references),
				      &references, NULL);
	printf("%s: references %d: %u\n", name, error, references);
	error = clGetCommandQueueInfo(queue, 0x1, sizeof(references), &references, NULL);
	printf("%s: unknown question: %d\n", name, error);
}

static void query_queues(void)
{
	static const cl_queue_properties in_order[] = { CL_QUEUE_PROPERTIES, 0, 0 };
	static const cl_queue_properties profiled[] = { CL_QUEUE_PROPERTIES,
							CL_QUEUE_PROFILING_ENABLE, 0 };
	static const cl_queue_properties both[] = { CL_QUEUE_PROPERTIES,
						    CL_QUEUE_PROFILING_ENABLE |
							    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
						    0 };
	static const cl_queue_properties empty[] = { 0 };
	static const cl_queue_properties wrong[] = { 0x4242, 1, 0 };
	static const struct {
		const char *name;
		const cl_queue_properties *list;
	} lists[] = { { "no list", NULL },      { "empty list", empty }, { "in order", in_order },
		      { "profiled", profiled }, { "both", both },        { "wrong", wrong } };
	static const cl_command_queue_properties olds[] = { 0, CL_QUEUE_PROFILING_ENABLE,
							    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
							    (cl_command_queue_properties)1 << 40 };
	cl_int error;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		cl_command_queue queue =
			clCreateCommandQueueWithProperties(context, device, lists[i].list, &error);

		printf("queue with %s: %s, %d\n", lists[i].name, queue ? "made" : "none", error);
		if (queue) {
			print_queue(lists[i].name, queue);
			clReleaseCommandQueue(queue);
		}
	}
	for (size_t i = 0; i < sizeof(olds) / sizeof(olds[0]); i++) {
		cl_command_queue queue = clCreateCommandQueue(context, device, olds[i], &error);

		printf("old queue %zu: %s, %d\n", i, queue ? "made" : "none", error);
		if (queue) {
			print_queue("old queue", queue);
			clReleaseCommandQueue(queue);
		}
	}
	printf("queue without context: %s\n",
	       clCreateCommandQueue(NULL, device, 0, NULL) ? "made" : "none");
}

/* ---- events ---- */

/* The driver releases it some time after completion: the minimum of several answers counts. */
static cl_int count_references(cl_event event, cl_uint *ret_least, size_t *ret_bytes)
{
	cl_int error = CL_SUCCESS;

	*ret_least = UINT_MAX;
	for (int i = 0; i < 30; i++) {
		cl_uint references = 0;

		error = clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(references),
				       &references, ret_bytes);
		if (references < *ret_least)
			*ret_least = references;
		usleep(1000);
	}
	return error;
}

static void print_event(const char *name, cl_event event)
{
	static const cl_profiling_info times[] = { CL_PROFILING_COMMAND_QUEUED,
						   CL_PROFILING_COMMAND_SUBMIT,
						   CL_PROFILING_COMMAND_START,
						   CL_PROFILING_COMMAND_END, 0x42 };
	cl_command_type type = 0;
	cl_uint references = 0;
	cl_int status = 99, error;
	size_t bytes = 0;

	error = count_references(event, &references, &bytes);
	printf("%s: references %d: %u, %zu bytes\n", name, error, references, bytes);
	clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL);
	printf("%s: status %d, type 0x%x\n", name, status, type);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		cl_ulong value = 0;

		bytes = 99;
		error = clGetEventProfilingInfo(event, times[i], sizeof(value), &value, &bytes);
		printf("%s: time 0x%x: %d, %s, %zu bytes\n", name, times[i], error,
		       value ? "there" : "none", bytes);
		error = clGetEventProfilingInfo(event, times[i], 1, &value, NULL);
		printf("%s: time 0x%x with too little room: %d\n", name, times[i], error);
	}
}

static int called_back;

static void CL_CALLBACK call_back(cl_event event, cl_int status, void *count)
{
	(void)event;
	(void)status;
	__atomic_add_fetch((int *)count, 1, __ATOMIC_SEQ_CST);
}

static void query_events(cl_command_queue_properties properties)
{
	cl_int error, numbers[COUNT];
	cl_command_queue queue = clCreateCommandQueue(context, device, properties, &error);
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(numbers), NULL, NULL);
	cl_kernel kernel = clCreateKernel(program, "twice", NULL);
	cl_event written, run, read, mapped;
	void *host;
	const size_t global = COUNT;
	const cl_int count = COUNT;
	long sum = 0;

	printf("-- events of a queue with 0x%llx\n", (unsigned long long)properties);
	if (!queue)
		return;
	for (cl_int i = 0; i < (cl_int)COUNT; i++)
		numbers[i] = i;
	clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
	clSetKernelArg(kernel, 1, sizeof(count), &count);
	clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(numbers), numbers, 0, NULL,
			     &written);
	clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 1, &written, &run);
	called_back = 0;
	printf("callback: %d\n", clSetEventCallback(run, CL_COMPLETE, call_back, &called_back));
	printf("callback without a function: %d\n",
	       clSetEventCallback(run, CL_COMPLETE, NULL, NULL));
	clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(numbers), numbers, 1, &run, &read);
	stop_if(clFinish(queue), "clFinish");
	while (!__atomic_load_n(&called_back, __ATOMIC_SEQ_CST))
		;
	for (unsigned int i = 0; i < COUNT; i++)
		sum += numbers[i];
	printf("sum %ld\n", sum);
	print_event("write", written);
	print_event("run", run);
	clRetainEvent(read);
	print_event("read, retained", read);
	clReleaseEvent(read);
	print_event("read", read);
	host = clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_WRITE, 0, sizeof(numbers), 0,
				  NULL, &mapped, &error);
	stop_if(clFinish(queue), "clFinish");
	print_event("map", mapped);
	clEnqueueUnmapMemObject(queue, buffer, host, 0, NULL, NULL);
	stop_if(clFinish(queue), "clFinish");
	print_queue("queue", queue);
	clReleaseEvent(mapped);
	clReleaseEvent(written);
	clReleaseEvent(run);
	clReleaseEvent(read);
	clReleaseKernel(kernel);
	clReleaseMemObject(buffer);
	clReleaseCommandQueue(queue);
}

/* ---- user events ---- */

static void query_user_events(void)
{
	cl_int error, fill = 7, value = 0;
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
	cl_event user = clCreateUserEvent(context, &error), filled;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);
	cl_int status = 99;

	print_event("user event", user);
	clEnqueueFillBuffer(queue, buffer, &fill, sizeof(fill), 0, 64, 1, &user, &filled);
	clFlush(queue);
	clGetEventInfo(filled, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	printf("waits for the user event: %s\n", status > CL_COMPLETE ? "yes" : "no");
	printf("set: %d\n", clSetUserEventStatus(user, CL_COMPLETE));
	printf("set twice: %d\n", clSetUserEventStatus(user, CL_COMPLETE));
	printf("wait: %d\n", clWaitForEvents(1, &filled));
	clEnqueueReadBuffer(queue, buffer, CL_TRUE, 60, 4, &value, 0, NULL, NULL);
	printf("filled with %d\n", value);
	print_event("fill", filled);
	clReleaseEvent(user);
	clReleaseEvent(filled);
	clReleaseMemObject(buffer);
	clReleaseCommandQueue(queue);
}

/* ---- errors, in calls that return an event and in others ---- */

/*
 * Lists, sizes and regions that are missing, or that reach beyond what is there; without those that
 * crash in PoCL 3.1.
 */

static void mistake_lists(cl_command_queue queue, cl_mem buffer)
{
	cl_kernel kernel = clCreateKernel(program, "nothing", NULL);
	cl_event user = clCreateUserEvent(context, NULL), event = NULL;
	const size_t sizes[3] = { 1, 1, 1 };
	cl_int error = 99, value = 0;

	printf("lists without events: %d, %d\n",
	       clEnqueueMarkerWithWaitList(queue, 1, NULL, &event),
	       clEnqueueBarrierWithWaitList(queue, 1, NULL, &event));
	printf("wait for no list: %d\n", clWaitForEvents(1, NULL));
	printf("migrate no list: %d\n",
	       clEnqueueMigrateMemObjects(queue, 1, NULL, 0, 0, NULL, &event));
	for (cl_uint dimensions = 0; dimensions < UINT_MAX / 2; dimensions = dimensions * 1000 + 4)
		printf("%u dimensions: %d\n", dimensions,
		       clEnqueueNDRangeKernel(queue, kernel, dimensions, sizes, sizes, sizes, 0,
					      NULL, &event));
	printf("fill with nothing: %d, %d\n",
	       clEnqueueFillBuffer(queue, buffer, NULL, 4, 0, 64, 0, NULL, &event),
	       clEnqueueFillBuffer(queue, buffer, &value, 0, 0, 64, 0, NULL, &event));
	printf("argument of a wrong size: %d\n", clSetKernelArg(kernel, 9, 3, NULL));
	printf("program of nothing: %s, ",
	       clCreateProgramWithBinary(context, 1, &device, NULL, NULL, NULL, &error) ? "made"
											: "none");
	printf("%d\n", error);
	printf("sub-buffer of nothing: %s, ",
	       clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &error) ? "made"
											: "none");
	printf("%d\n", error);
	printf("statuses of a user event: %d, ", clSetUserEventStatus(user, CL_RUNNING));
	printf("%d, ", clSetUserEventStatus(user, CL_COMPLETE));
	printf("%d\n", clSetUserEventStatus(user, CL_COMPLETE));
	printf("an event of theirs: %s\n", event ? "there" : "none");
	clReleaseEvent(user);
	clReleaseKernel(kernel);
}

static void mistake_svm(cl_command_queue queue)
{
	int *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0);
	void *pointers[1] = { memory };
	int value = 7;

	if (!memory)
		return;
	printf("free SVM after no list: %d\n",
	       clEnqueueSVMFree(queue, 1, pointers, NULL, NULL, 1, NULL, NULL));
	printf("SVM without addresses: %d, %d, %d\n",
	       clEnqueueSVMMemcpy(queue, CL_TRUE, NULL, memory, 4, 0, NULL, NULL),
	       clEnqueueSVMMemcpy(queue, CL_TRUE, memory, NULL, 4, 0, NULL, NULL),
	       clEnqueueSVMMemFill(queue, NULL, &value, 4, 64, 0, NULL, NULL));
	printf("SVM maps: %d, %d, %d\n",
	       clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, NULL, 64, 0, NULL, NULL),
	       clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, memory, 0, 0, NULL, NULL),
	       clEnqueueSVMUnmap(queue, NULL, 0, NULL, NULL));
	clSVMFree(context, memory);
}

static void mistake_image(cl_command_queue queue, cl_mem buffer, cl_mem image)
{
	static const size_t regions[][3] = { { 9, 1, 1 }, { SIZE_MAX, 1, 1 } };
	const size_t zero[3] = { 0 }, one[3] = { 1, 1, 1 };
	cl_int value[64] = { 0 }, error = 99;
	size_t row;

	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		const size_t *region = regions[i];

		printf("region %zu: %d, %d, %d, %d, %d\n", i,
		       clEnqueueReadImage(queue, image, CL_TRUE, zero, region, 0, 0, value, 0, NULL,
					  NULL),
		       clEnqueueWriteImage(queue, image, CL_TRUE, zero, region, 0, 0, value, 0,
					   NULL, NULL),
		       clEnqueueFillImage(queue, image, value, zero, region, 0, NULL, NULL),
		       clEnqueueCopyImageToBuffer(queue, image, buffer, zero, region, 0, 0, NULL,
						  NULL),
		       clEnqueueCopyBufferToImage(queue, buffer, image, 0, zero, region, 0, NULL,
						  NULL));
	}
	printf("no origin, region, colour, target: %d, %d, %d, %d\n",
	       clEnqueueReadImage(queue, image, CL_TRUE, NULL, one, 0, 0, value, 0, NULL, NULL),
	       clEnqueueWriteImage(queue, image, CL_TRUE, zero, NULL, 0, 0, value, 0, NULL, NULL),
	       clEnqueueFillImage(queue, image, NULL, zero, one, 0, NULL, NULL),
	       clEnqueueReadImage(queue, image, CL_TRUE, zero, one, 0, 0, NULL, 0, NULL, NULL));
	printf("not an image: %d, %d\n",
	       clEnqueueReadImage(queue, buffer, CL_TRUE, zero, one, 0, 0, value, 0, NULL, NULL),
	       clEnqueueReadImage(queue, NULL, CL_TRUE, zero, one, 0, 0, value, 0, NULL, NULL));
	printf("map without a pitch: %s, ",
	       clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, zero, one, NULL, NULL, 0, NULL,
				 NULL, &error)
		       ? "mapped"
		       : "none");
	printf("%d\n", error);
	printf("map without a region: %s, ",
	       clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, zero, NULL, &row, NULL, 0,
				 NULL, NULL, &error)
		       ? "mapped"
		       : "none");
	printf("%d\n", error);
}

static void mistake_images(cl_command_queue queue, cl_mem buffer)
{
	const cl_image_format format = { CL_R, CL_UNSIGNED_INT32 };
	const cl_image_desc what = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 8,
				     .image_height = 8 };
	cl_int error = 99;
	cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &what, NULL, &error);

	printf("image: %s, %d\n", image ? "made" : "none", error);
	if (image)
		mistake_image(queue, buffer, image);
	printf("images of nothing: %s, ",
	       clCreateImage(context, 0, NULL, &what, NULL, &error) ? "made" : "none");
	printf("%d, ", error);
	printf("%s, ", clCreateImage(context, 0, &format, NULL, NULL, &error) ? "made" : "none");
	printf("%d\n", error);
	if (image)
		clReleaseMemObject(image);
}

static void make_mistakes(void)
{
	cl_int error = 99, value = 0;
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);
	cl_event event = (cl_event)(void *)0x10;
	const size_t zero[3] = { 0 };
	void *mapped;

	printf("read beyond: %d\n",
	       clEnqueueReadBuffer(queue, buffer, CL_TRUE, 60, 64, &value, 0, NULL, &event));
	printf("read to nowhere: %d\n",
	       clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, NULL, 0, NULL, &event));
	printf("list without events: %d\n",
	       clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 1, NULL, &event));
	printf("events without a count: %d\n",
	       clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 0, &event, NULL));
	printf("no queue: %d\n",
	       clEnqueueReadBuffer(NULL, buffer, CL_TRUE, 0, 4, &value, 0, NULL, &event));
	printf("no rectangle: %d, %d, %d\n",
	       clEnqueueReadBufferRect(queue, buffer, CL_TRUE, NULL, NULL, NULL, 0, 0, 0, 0, &value,
				       0, NULL, &event),
	       clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, zero, zero, zero, 0, 0, 0, 0,
					&value, 0, NULL, &event),
	       clEnqueueCopyBufferRect(queue, buffer, buffer, zero, zero, NULL, 0, 0, 0, 0, 0, NULL,
				       &event));
	printf("no arguments: %d\n", clWaitForEvents(0, NULL));
	mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 128, 4, 0, NULL, &event,
				    &error);
	printf("map beyond: %s, %d\n", mapped ? "mapped" : "none", error);
	mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 64, 0,
				    NULL, NULL, &error);
	printf("map: %s, %d\n", mapped ? "mapped" : "none", error);
	printf("unmap: %d\n", clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
	printf("event of a failed call: %s\n",
	       event == (cl_event)(void *)0x10 ? "untouched" : "changed");
	printf("buffer of no bytes: %s, ",
	       clCreateBuffer(context, 0, 0, NULL, &error) ? "made" : "none");
	printf("%d\n", error);
	printf("kernel of no name: %s, ",
	       clCreateKernel(program, "missing", &error) ? "made" : "none");
	printf("%d\n", error);
	mistake_lists(queue, buffer);
	mistake_svm(queue);
	mistake_images(queue, buffer);
	clFinish(queue);
	clReleaseMemObject(buffer);
	clReleaseCommandQueue(queue);
}

/* ---- functions by name ---- */

typedef cl_command_queue(CL_API_CALL *make_queue)(cl_context, cl_device_id,
						  const cl_queue_properties *, cl_int *);

static void query_functions(void)
{
	static const char *const names[] = { "clCreateCommandQueueWithPropertiesKHR",
					     "clEnqueueReadBuffer",
					     "clGetPlatformInfo",
					     "clIcdGetPlatformIDsKHR",
					     "clCreateCommandBufferKHR",
					     "clNoSuchFunctionKHR",
					     "clGetKernelSubGroupInfoKHR",
					     "clSetContentSizeBufferPoCL" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s: %s\n", names[i],
		       clGetExtensionFunctionAddressForPlatform(platform, names[i]) ? "there"
										    : "none");
}

static void query_context(void)
{
	cl_uint references = 0;
	char name[256] = "";

	usleep(30000); /* the driver releases it late */
	clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(references), &references,
			 NULL);
	clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL);
	printf("context: references %u; device %s\n", references, name);
}

/* A GPU if there is one, otherwise the first device. */
static void choose_device(cl_platform_id *ret_platform, cl_device_id *ret_device)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;

	stop_if(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
	for (cl_uint i = 0; i < count && i < 16; i++) {
		*ret_platform = platforms[i];
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_GPU, 1, ret_device, NULL) ==
		    CL_SUCCESS)
			return;
	}
	*ret_platform = platforms[0];
	stop_if(clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_ALL, 1, ret_device, NULL),
		"clGetDeviceIDs");
}

int main(void)
{
	const char *text = source;
	cl_int error;

	choose_device(&platform, &device);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	stop_if(error, "clCreateContext");
	program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
	stop_if(error, "clCreateProgramWithSource");
	stop_if(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	query_queues();
	query_events(0);
	query_events(CL_QUEUE_PROFILING_ENABLE);
	query_events(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	query_user_events();
	make_mistakes();
	query_functions();
	query_context();
	clReleaseProgram(program);
	query_context();
	clReleaseContext(context);
	return 0;
}
