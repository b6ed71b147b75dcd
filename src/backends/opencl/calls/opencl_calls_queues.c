/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and queues. Queues are created with profiling enabled; queries of the program are
 * answered as if they were not.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/calls/opencl_calls.h"

/* ---- contexts ---- */

/* The context's devices, as the driver lists them. */
static void created_context(cl_context handle)
{
	struct ocl_object *context = ocl_add(OCL_CONTEXT, handle);
	cl_device_id devices[128];
	size_t bytes = 0;

	ocl_at_exit();
	if (!context || ocl.next.clGetContextInfo(handle, CL_CONTEXT_DEVICES, sizeof(devices),
						  devices, &bytes) != CL_SUCCESS)
		return;
	for (size_t i = 0; i < bytes / sizeof(*devices); i++)
		ocl_device(devices[i]);
	if (ocl.replayable)
		stream_created_context(context, devices, (cl_uint)(bytes / sizeof(*devices)));
}

cl_context CL_API_CALL hook_clCreateContext(
	const cl_context_properties *properties, cl_uint num_devices, const cl_device_id *devices,
	void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *), void *user_data,
	cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_context context;

	OCL_BEGIN(&call, "clCreateContext");
	context = ocl.next.clCreateContext(properties, num_devices, devices, pfn_notify, user_data,
					   &error);
	ocl_emit_call(&call, error);
	if (context)
		created_context(context);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return context;
}

cl_context CL_API_CALL hook_clCreateContextFromType(
	const cl_context_properties *properties, cl_device_type device_type,
	void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *), void *user_data,
	cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_context context;

	OCL_BEGIN(&call, "clCreateContextFromType");
	context = ocl.next.clCreateContextFromType(properties, device_type, pfn_notify, user_data,
						   &error);
	ocl_emit_call(&call, error);
	if (context)
		created_context(context);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return context;
}

/*
 * Events that we hold reference their queue, and that its context: releases those of completed
 * commands before the query.
 */
cl_int CL_API_CALL hook_clGetContextInfo(cl_context context, cl_context_info name, size_t size,
					 void *value, size_t *ret_size)
{
	struct ocl_call call;
	cl_int result;

	if (name == CL_CONTEXT_REFERENCE_COUNT)
		ocl_profile_look(NULL);
	if (name == CL_CONTEXT_REFERENCE_COUNT && ocl.replayable)
		stream_let_go();
	OCL_BEGIN(&call, "clGetContextInfo");
	result = ocl.next.clGetContextInfo(context, name, size, value, ret_size);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}

/* ---- devices ---- */

static void created_sub_devices(cl_int result, const cl_device_id *devices, cl_uint capacity,
				cl_uint count)
{
	for (cl_uint i = 0; result == CL_SUCCESS && devices && i < capacity && i < count; i++)
		ocl_device(devices[i]);
}

cl_int CL_API_CALL hook_clCreateSubDevices(cl_device_id in_device,
					   const cl_device_partition_property *properties,
					   cl_uint num_devices, cl_device_id *out_devices,
					   cl_uint *num_devices_ret)
{
	struct ocl_call call;
	cl_uint count = 0;
	cl_int result;

	OCL_BEGIN(&call, "clCreateSubDevices");
	result = ocl.next.clCreateSubDevices(in_device, properties, num_devices, out_devices,
					     &count);
	ocl_emit_call(&call, result);
	created_sub_devices(result, out_devices, num_devices, count);
	ocl_end(&call);
	if (result == CL_SUCCESS && num_devices_ret)
		*num_devices_ret = count;
	return result;
}

cl_int CL_API_CALL hook_clCreateSubDevicesEXT(cl_device_id in_device,
					      const cl_device_partition_property_ext *properties,
					      cl_uint num_entries, cl_device_id *out_devices,
					      cl_uint *num_devices)
{
	struct ocl_call call;
	cl_uint count = 0;
	cl_int result;

	OCL_BEGIN(&call, "clCreateSubDevicesEXT");
	result = ocl.next.clCreateSubDevicesEXT(in_device, properties, num_entries, out_devices,
						&count);
	ocl_emit_call(&call, result);
	created_sub_devices(result, out_devices, num_entries, count);
	ocl_end(&call);
	if (result == CL_SUCCESS && num_devices)
		*num_devices = count;
	return result;
}

/* ---- creating queues ---- */

/* What the program requested. */
struct wish {
	cl_command_queue_properties properties;
	bool has_list;                   /* by the call that takes one, which may be NULL */
	const cl_queue_properties *list; /* NULL: none */
	uint32_t count;                  /* words, including the final 0 */
};

static bool is_on_device(const struct wish *wish)
{
	return wish->properties & CL_QUEUE_ON_DEVICE;
}

static void keep_list(struct ocl_object *queue, const struct wish *wish)
{
	if (!wish->list)
		return;
	queue->property_list = malloc(wish->count * sizeof(*wish->list));
	if (queue->property_list) {
		memcpy(queue->property_list, wish->list, wish->count * sizeof(*wish->list));
		queue->property_count = wish->count;
	}
}

static void created_queue(cl_command_queue handle, cl_context context, cl_device_id device,
			  const struct wish *wish, bool has_times)
{
	struct ocl_object *queue = ocl_add_in(context, OCL_QUEUE, handle);

	if (!queue)
		return;
	queue->device = ocl_device(device);
	ocl_hold(queue->device);
	queue->properties = wish->properties;
	queue->has_list = wish->has_list;
	keep_list(queue, wish);
	queue->out_of_order = wish->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
	queue->has_times = has_times;
	ocl_emit_queue(queue);
	if (!is_on_device(wish)) {
		if (has_times && queue->device)
			ocl_clock_start(queue->device, context);
		ocl_profile_queue(queue);
	}
	if (ocl.replayable)
		stream_created_queue(queue);
	ocl_at_exit();
}

static void report_refusal(void)
{
	ts_accelerator_lost("times of a queue's commands", 1, "the driver cannot profile it");
}

cl_command_queue CL_API_CALL hook_clCreateCommandQueue(cl_context context, cl_device_id device,
						       cl_command_queue_properties properties,
						       cl_int *ret_error)
{
	struct wish wish = { properties, false, NULL, 0 };
	cl_int error = CL_SUCCESS;
	bool has_times = true;
	cl_command_queue queue;
	struct ocl_call call;

	OCL_BEGIN(&call, "clCreateCommandQueue");
	queue = ocl.next.clCreateCommandQueue(context, device,
					      properties | CL_QUEUE_PROFILING_ENABLE, &error);
	if (!queue && !(properties & CL_QUEUE_PROFILING_ENABLE)) {
		queue = ocl.next.clCreateCommandQueue(context, device, properties, &error);
		has_times = false;
	}
	ocl_emit_call(&call, error);
	if (queue && !has_times)
		report_refusal();
	if (queue)
		created_queue(queue, context, device, &wish, has_times);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return queue;
}

/* A list can have any length; no driver accepts more than this. */
#define MAX_PROPERTIES 64

/* Adds profiling to the program's list; false: the list is too long. */
static bool add_profiling(const struct wish *wish, cl_queue_properties *list)
{
	uint32_t used = 0;
	bool is_in = false;

	if (wish->count + 3 > MAX_PROPERTIES)
		return false;
	for (; used + 1 < wish->count; used += 2) {
		list[used] = wish->list[used];
		list[used + 1] = wish->list[used + 1];
		if (list[used] == CL_QUEUE_PROPERTIES) {
			list[used + 1] |= CL_QUEUE_PROFILING_ENABLE;
			is_in = true;
		}
	}
	if (!is_in) {
		list[used++] = CL_QUEUE_PROPERTIES;
		list[used++] = CL_QUEUE_PROFILING_ENABLE;
	}
	list[used] = 0;
	return true;
}

static struct wish read_wish(const cl_queue_properties *list)
{
	struct wish wish = { 0, true, list, 0 };

	for (; list && list[wish.count]; wish.count += 2)
		if (list[wish.count] == CL_QUEUE_PROPERTIES)
			wish.properties = (cl_command_queue_properties)list[wish.count + 1];
	wish.count += list != NULL;
	return wish;
}

cl_command_queue ocl_queue_with_list(struct ocl_call *call, ocl_make_queue make, cl_context context,
				     cl_device_id device, const cl_queue_properties *properties,
				     cl_int *ret_error)
{
	cl_queue_properties list[MAX_PROPERTIES];
	struct wish wish = read_wish(properties);
	bool has_times = !is_on_device(&wish) && add_profiling(&wish, list);
	cl_int error = CL_SUCCESS;
	cl_command_queue queue = make(context, device, has_times ? list : properties, &error);

	if (!queue && has_times) {
		queue = make(context, device, properties, &error);
		has_times = wish.properties & CL_QUEUE_PROFILING_ENABLE;
	}
	ocl_emit_call(call, error);
	if (queue && !has_times && !is_on_device(&wish))
		report_refusal();
	if (queue)
		created_queue(queue, context, device, &wish, has_times);
	ocl_give_error(ret_error, error);
	return queue;
}

cl_command_queue CL_API_CALL
hook_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
					const cl_queue_properties *properties, cl_int *ret_error)
{
	cl_command_queue queue;
	struct ocl_call call;

	OCL_BEGIN(&call, "clCreateCommandQueueWithProperties");
	queue = ocl_queue_with_list(&call, ocl.next.clCreateCommandQueueWithProperties, context,
				    device, properties, ret_error);
	ocl_end(&call);
	return queue;
}

cl_int CL_API_CALL hook_clReleaseCommandQueue(cl_command_queue queue)
{
	struct ocl_call call;
	cl_int result;

	ocl_profile_look(ocl_find(OCL_QUEUE, queue));
	OCL_BEGIN(&call, "clReleaseCommandQueue");
	ocl_release(OCL_QUEUE, queue);
	call.start = ts_now();
	result = ocl.next.clReleaseCommandQueue(queue);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}

/* ---- queries: answers as without us ---- */

/* As drivers do: returns the size if requested, and the value if it fits. */
static cl_int answer(const void *from, size_t bytes, size_t size, void *value, size_t *ret_size)
{
	if (value && size < bytes)
		return CL_INVALID_VALUE;
	if (value && bytes)
		memcpy(value, from, bytes);
	if (ret_size)
		*ret_size = bytes;
	return CL_SUCCESS;
}

/* A queue as it would be without us. */
static cl_command_queue make_probe(const struct ocl_object *queue)
{
	cl_context context = NULL;
	cl_device_id device = NULL;
	cl_int error;

	ocl.next.clGetCommandQueueInfo(queue->handle, CL_QUEUE_CONTEXT, sizeof(context), &context,
				       NULL);
	ocl.next.clGetCommandQueueInfo(queue->handle, CL_QUEUE_DEVICE, sizeof(device), &device,
				       NULL);
	if (!queue->has_list)
		return ocl.next.clCreateCommandQueue(context, device, queue->properties, &error);
	return ocl.next.clCreateCommandQueueWithProperties(context, device, queue->property_list,
							   &error);
}

/*
 * Drivers differ in what they return for incomplete lists: creates such a queue and queries it
 * instead of the program's.
 */
static cl_int answer_list(const struct ocl_object *queue, size_t size, void *value,
			  size_t *ret_size)
{
	cl_command_queue probe = make_probe(queue);
	cl_int result;

	if (!probe)
		return answer(queue->property_list,
			      queue->property_count * sizeof(*queue->property_list), size, value,
			      ret_size);
	result = ocl.next.clGetCommandQueueInfo(probe, CL_QUEUE_PROPERTIES_ARRAY, size, value,
						ret_size);
	ocl.next.clReleaseCommandQueue(probe);
	return result;
}

static cl_int query_queue(const struct ocl_object *queue, cl_command_queue handle,
			  cl_command_queue_info name, size_t size, void *value, size_t *ret_size)
{
	cl_int result;

	if (queue && name == CL_QUEUE_PROPERTIES_ARRAY)
		return answer_list(queue, size, value, ret_size);
	result = ocl.next.clGetCommandQueueInfo(handle, name, size, value, ret_size);
	if (queue && name == CL_QUEUE_PROPERTIES && result == CL_SUCCESS && value &&
	    !(queue->properties & CL_QUEUE_PROFILING_ENABLE)) {
		cl_command_queue_properties properties;

		memcpy(&properties, value, sizeof(properties));
		properties &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
		memcpy(value, &properties, sizeof(properties));
	}
	return result;
}

cl_int CL_API_CALL hook_clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info name,
					      size_t size, void *value, size_t *ret_size)
{
	struct ocl_object *object = ocl_find(OCL_QUEUE, queue);
	struct ocl_call call;
	cl_int result;

	if (name == CL_QUEUE_REFERENCE_COUNT && object)
		ocl_profile_look(object);
	if (name == CL_QUEUE_REFERENCE_COUNT && ocl.replayable)
		stream_let_go();
	OCL_BEGIN(&call, "clGetCommandQueueInfo");
	result = query_queue(object, queue, name, size, value, ret_size);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}

/* The driver keeps profiling on; the program sees what it set. */
static void set_property(struct ocl_object *queue, cl_command_queue_properties properties,
			 cl_bool enable, cl_command_queue_properties *old)
{
	if (old && !(queue->properties & CL_QUEUE_PROFILING_ENABLE))
		*old &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
	if (enable)
		queue->properties |= properties;
	else
		queue->properties &= ~properties;
	queue->out_of_order = queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
	if (!enable && (properties & CL_QUEUE_PROFILING_ENABLE))
		ocl.next.clSetCommandQueueProperty(queue->handle, CL_QUEUE_PROFILING_ENABLE,
						   CL_TRUE, NULL);
}

cl_int CL_API_CALL hook_clSetCommandQueueProperty(cl_command_queue queue,
						  cl_command_queue_properties properties,
						  cl_bool enable,
						  cl_command_queue_properties *old_properties)
{
	struct ocl_object *object = ocl_find(OCL_QUEUE, queue);
	struct ocl_call call;
	cl_int result;

	OCL_BEGIN(&call, "clSetCommandQueueProperty");
	result = ocl.next.clSetCommandQueueProperty(queue, properties, enable, old_properties);
	ocl_emit_call(&call, result);
	if (result == CL_SUCCESS && object)
		set_property(object, properties, enable, old_properties);
	ocl_end(&call);
	return result;
}

/* ---- waiting ---- */

cl_int CL_API_CALL hook_clFlush(cl_command_queue queue)
{
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clFlush(queue);
	OCL_BEGIN(&call, "clFlush");
	result = ocl.next.clFlush(queue);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}

cl_int CL_API_CALL hook_clFinish(cl_command_queue queue)
{
	struct ocl_object *object;
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clFinish(queue);
	OCL_BEGIN(&call, "clFinish");
	result = ocl.next.clFinish(queue);
	ocl_emit_call(&call, result);
	object = ocl_find(OCL_QUEUE, queue);
	if (result == CL_SUCCESS && object && ocl.replayable)
		stream_finished(object);
	ocl_end(&call);
	if (object)
		ocl_profile_look(object);
	return result;
}
