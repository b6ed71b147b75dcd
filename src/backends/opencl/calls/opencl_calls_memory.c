/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers. Tracked only in replayable recordings: otherwise commands say all that is needed. */
#include "backends/opencl/calls/opencl_calls.h"

static void created_buffer(cl_context context, cl_mem handle, cl_mem_flags flags, size_t size,
			   const void *host)
{
	struct ocl_object *memory;

	if (!handle || !ocl.replayable)
		return;
	memory = ocl_add_in(context, OCL_MEMORY, handle);
	if (memory) {
		memory->bytes = size;
		stream_created_buffer(memory, flags, size, host);
	}
}

cl_mem CL_API_CALL hook_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
				       void *host_ptr, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem memory;

	if (!ocl_is_watched())
		return ocl.next.clCreateBuffer(context, flags, size, host_ptr, ret_error);
	OCL_BEGIN(&call, "clCreateBuffer");
	memory = ocl.next.clCreateBuffer(context, flags, size, host_ptr, &error);
	ocl_emit_call(&call, error);
	created_buffer(context, memory, flags, size, host_ptr);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return memory;
}

/*
 * Properties come from extensions (imported memory ...): with any, the buffer cannot be replayed.
 */
cl_mem CL_API_CALL hook_clCreateBufferWithProperties(cl_context context,
						     const cl_mem_properties *properties,
						     cl_mem_flags flags, size_t size,
						     void *host_ptr, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem memory;

	if (!ocl_is_watched())
		return ocl.next.clCreateBufferWithProperties(context, properties, flags, size,
							     host_ptr, ret_error);
	OCL_BEGIN(&call, "clCreateBufferWithProperties");
	memory = ocl.next.clCreateBufferWithProperties(context, properties, flags, size, host_ptr,
						       &error);
	ocl_emit_call(&call, error);
	if (properties && properties[0])
		ocl_created_other(context, OCL_MEMORY, memory, "buffer with properties");
	else
		created_buffer(context, memory, flags, size, host_ptr);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return memory;
}

static void created_sub_buffer(cl_mem handle, cl_mem parent, cl_mem_flags flags,
			       const cl_buffer_region *region)
{
	struct ocl_object *parent_object = ocl_find(OCL_MEMORY, parent);
	struct ocl_object *memory = ocl_add(OCL_MEMORY, handle);

	if (!memory)
		return;
	memory->bytes = region->size;
	memory->context = parent_object ? parent_object->context : NULL;
	ocl_hold(memory->context);
	stream_created_sub_buffer(memory, parent_object, flags, region->origin, region->size);
}

cl_mem CL_API_CALL hook_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
					  cl_buffer_create_type buffer_create_type,
					  const void *buffer_create_info, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem memory;

	if (!ocl_is_watched())
		return ocl.next.clCreateSubBuffer(buffer, flags, buffer_create_type,
						  buffer_create_info, ret_error);
	OCL_BEGIN(&call, "clCreateSubBuffer");
	memory = ocl.next.clCreateSubBuffer(buffer, flags, buffer_create_type, buffer_create_info,
					    &error);
	ocl_emit_call(&call, error);
	/* The only type that is defined. */
	if (memory && ocl.replayable && buffer_create_type == CL_BUFFER_CREATE_TYPE_REGION)
		created_sub_buffer(memory, buffer, flags, buffer_create_info);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return memory;
}
