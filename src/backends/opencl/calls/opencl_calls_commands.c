/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on buffers and kernels, markers and barriers. All take the path of opencl_calls.c. */
#include <tracesmith/schema.h>

#include "backends/opencl/calls/opencl_calls.h"

/* ---- reading, writing, copying ---- */

cl_int CL_API_CALL hook_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer,
					    cl_bool blocking_read, size_t offset, size_t size,
					    void *ptr, cl_uint wait_count, const cl_event *waits,
					    cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueReadBuffer(queue, buffer, blocking_read, offset, size, ptr,
						    wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_READ,
				       .memory = buffer,
				       .blocking = blocking_read,
				       .offset = offset,
				       .bytes = size,
				       .host = ptr };

	OCL_SITES(&command, "clEnqueueReadBuffer", "read buffer", "copy", COPY, DEVICE_TO_HOST);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueReadBuffer(queue, buffer, ocl_blocks(&command),
								offset, size, ptr, wait_count,
								waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
					     cl_bool blocking_write, size_t offset, size_t size,
					     const void *ptr, cl_uint wait_count,
					     const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueWriteBuffer(queue, buffer, blocking_write, offset, size,
						     ptr, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_WRITE,
				       .memory = buffer,
				       .blocking = blocking_write,
				       .offset = offset,
				       .bytes = size,
				       .host_source = ptr };

	OCL_SITES(&command, "clEnqueueWriteBuffer", "write buffer", "copy", COPY, HOST_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueWriteBuffer(
					   queue, buffer, ocl_blocks(&command), offset, size, ptr,
					   wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src_buffer,
					    cl_mem dst_buffer, size_t src_offset, size_t dst_offset,
					    size_t size, cl_uint wait_count, const cl_event *waits,
					    cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueCopyBuffer(queue, src_buffer, dst_buffer, src_offset,
						    dst_offset, size, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_COPY,
				       .memory = dst_buffer,
				       .source = src_buffer,
				       .offset = dst_offset,
				       .source_offset = src_offset,
				       .bytes = size };

	OCL_SITES(&command, "clEnqueueCopyBuffer", "copy buffer", "copy", COPY, DEVICE_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueCopyBuffer(
					   queue, src_buffer, dst_buffer, src_offset, dst_offset,
					   size, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer,
						cl_bool blocking_read, const size_t *buffer_origin,
						const size_t *host_origin, const size_t *region,
						size_t buffer_row_pitch, size_t buffer_slice_pitch,
						size_t host_row_pitch, size_t host_slice_pitch,
						void *ptr, cl_uint wait_count,
						const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueReadBufferRect(
			queue, buffer, blocking_read, buffer_origin, host_origin, region,
			buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr,
			wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_READ_RECT,
				       .memory = buffer,
				       .blocking = blocking_read,
				       .host = ptr,
				       .rect = { buffer_origin, host_origin, region,
						 buffer_row_pitch, buffer_slice_pitch,
						 host_row_pitch, host_slice_pitch } };

	OCL_SITES(&command, "clEnqueueReadBufferRect", "read buffer rect", "copy", COPY,
		  DEVICE_TO_HOST);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueReadBufferRect(
				 queue, buffer, ocl_blocks(&command), buffer_origin, host_origin,
				 region, buffer_row_pitch, buffer_slice_pitch, host_row_pitch,
				 host_slice_pitch, ptr, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueWriteBufferRect(
	cl_command_queue queue, cl_mem buffer, cl_bool blocking_write, const size_t *buffer_origin,
	const size_t *host_origin, const size_t *region, size_t buffer_row_pitch,
	size_t buffer_slice_pitch, size_t host_row_pitch, size_t host_slice_pitch, const void *ptr,
	cl_uint wait_count, const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueWriteBufferRect(
			queue, buffer, blocking_write, buffer_origin, host_origin, region,
			buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr,
			wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_WRITE_RECT,
				       .memory = buffer,
				       .blocking = blocking_write,
				       .host_source = ptr,
				       .rect = { buffer_origin, host_origin, region,
						 buffer_row_pitch, buffer_slice_pitch,
						 host_row_pitch, host_slice_pitch } };

	OCL_SITES(&command, "clEnqueueWriteBufferRect", "write buffer rect", "copy", COPY,
		  HOST_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueWriteBufferRect(
				 queue, buffer, ocl_blocks(&command), buffer_origin, host_origin,
				 region, buffer_row_pitch, buffer_slice_pitch, host_row_pitch,
				 host_slice_pitch, ptr, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem src_buffer,
						cl_mem dst_buffer, const size_t *src_origin,
						const size_t *dst_origin, const size_t *region,
						size_t src_row_pitch, size_t src_slice_pitch,
						size_t dst_row_pitch, size_t dst_slice_pitch,
						cl_uint wait_count, const cl_event *waits,
						cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueCopyBufferRect(queue, src_buffer, dst_buffer, src_origin,
							dst_origin, region, src_row_pitch,
							src_slice_pitch, dst_row_pitch,
							dst_slice_pitch, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_COPY_RECT,
				       .memory = dst_buffer,
				       .source = src_buffer,
				       .rect = { dst_origin, src_origin, region, dst_row_pitch,
						 dst_slice_pitch, src_row_pitch,
						 src_slice_pitch } };

	OCL_SITES(&command, "clEnqueueCopyBufferRect", "copy buffer rect", "copy", COPY,
		  DEVICE_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueCopyBufferRect(
					   queue, src_buffer, dst_buffer, src_origin, dst_origin,
					   region, src_row_pitch, src_slice_pitch, dst_row_pitch,
					   dst_slice_pitch, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
					    const void *pattern, size_t pattern_size, size_t offset,
					    size_t size, cl_uint wait_count, const cl_event *waits,
					    cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset,
						    size, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_FILL,
				       .memory = buffer,
				       .offset = offset,
				       .bytes = size,
				       .host_source = pattern,
				       .pattern_bytes = pattern_size };

	OCL_SITES(&command, "clEnqueueFillBuffer", "fill buffer", "fill", FILL, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset,
						      size, wait_count, waits, command.event_out));
}

/* ---- mapping ---- */

void *CL_API_CALL hook_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer,
					  cl_bool blocking_map, cl_map_flags map_flags,
					  size_t offset, size_t size, cl_uint wait_count,
					  const cl_event *waits, cl_event *event, cl_int *ret_error)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueMapBuffer(queue, buffer, blocking_map, map_flags, offset,
						   size, wait_count, waits, event, ret_error);
	struct ocl_command command = { .verb = OCL_MAP,
				       .memory = buffer,
				       .blocking = blocking_map,
				       .offset = offset,
				       .bytes = size,
				       .map_flags = map_flags };
	cl_int error = CL_SUCCESS;

	OCL_SITES(&command, "clEnqueueMapBuffer", "map buffer", "copy", COPY, DEVICE_TO_HOST);
	ocl_give(&command, queue, wait_count, waits, event);
	command.host = ocl.next.clEnqueueMapBuffer(queue, buffer, ocl_blocks(&command), map_flags,
						   offset, size, wait_count, waits,
						   command.event_out, &error);
	ocl_given(&command, error);
	ocl_give_error(ret_error, error);
	return command.host;
}

cl_int CL_API_CALL hook_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memobj,
						void *mapped_ptr, cl_uint wait_count,
						const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueUnmapMemObject(queue, memobj, mapped_ptr, wait_count,
							waits, event);
	struct ocl_command command = { .verb = OCL_UNMAP, .memory = memobj, .host = mapped_ptr };

	OCL_SITES(&command, "clEnqueueUnmapMemObject", "unmap", "copy", COPY, HOST_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueUnmapMemObject(queue, memobj, mapped_ptr, wait_count,
							  waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint num_mem_objects,
						   const cl_mem *mem_objects,
						   cl_mem_migration_flags flags, cl_uint wait_count,
						   const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueMigrateMemObjects(queue, num_mem_objects, mem_objects,
							   flags, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_MIGRATE };

	OCL_SITES(&command, "clEnqueueMigrateMemObjects", "migrate", "copy", COPY, UNKNOWN);
	if (flags & CL_MIGRATE_MEM_OBJECT_HOST)
		command.copy_kind = TS_COPY_DEVICE_TO_HOST;
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueMigrateMemObjects(
					   queue, num_mem_objects, mem_objects, flags, wait_count,
					   waits, command.event_out));
}

/* ---- kernels ---- */

/* The operation has the kernel's name. */
static void name_launch(struct ocl_command *command, cl_kernel kernel)
{
	command->kernel = ocl_kernel(kernel);
	if (command->kernel && command->kernel->site)
		command->op_site = command->kernel->site;
}

cl_int CL_API_CALL hook_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
					       cl_uint work_dim, const size_t *global_work_offset,
					       const size_t *global_work_size,
					       const size_t *local_work_size, cl_uint wait_count,
					       const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueNDRangeKernel(queue, kernel, work_dim, global_work_offset,
						       global_work_size, local_work_size,
						       wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_LAUNCH,
				       .dimensions = work_dim,
				       .global_offset = global_work_offset,
				       .global = global_work_size,
				       .local = local_work_size };

	OCL_SITES(&command, "clEnqueueNDRangeKernel", "kernel", "kernel", KERNEL, UNKNOWN);
	name_launch(&command, kernel);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueNDRangeKernel(
				 queue, kernel, work_dim, global_work_offset, global_work_size,
				 local_work_size, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
				      const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueTask(queue, kernel, wait_count, waits, event);
	static const size_t one = 1;
	struct ocl_command command = {
		.verb = OCL_LAUNCH, .dimensions = 1, .global = &one, .local = &one
	};

	OCL_SITES(&command, "clEnqueueTask", "kernel", "kernel", KERNEL, UNKNOWN);
	name_launch(&command, kernel);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueTask(queue, kernel, wait_count, waits,
							  command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueNativeKernel(cl_command_queue queue,
					      void(CL_CALLBACK *user_func)(void *), void *args,
					      size_t cb_args, cl_uint num_mem_objects,
					      const cl_mem *mem_list, const void **args_mem_loc,
					      cl_uint wait_count, const cl_event *waits,
					      cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueNativeKernel(queue, user_func, args, cb_args,
						      num_mem_objects, mem_list, args_mem_loc,
						      wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_NATIVE };

	OCL_SITES(&command, "clEnqueueNativeKernel", "native kernel", "host", HOST, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueNativeKernel(queue, user_func, args, cb_args,
							num_mem_objects, mem_list, args_mem_loc,
							wait_count, waits, command.event_out));
}

/* ---- order ---- */

cl_int CL_API_CALL hook_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count,
						    const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueMarkerWithWaitList(queue, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_MARKER, .waits_for_all = !wait_count };

	OCL_SITES(&command, "clEnqueueMarkerWithWaitList", "marker", "sync", SYNC, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueMarkerWithWaitList(queue, wait_count, waits,
									command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint wait_count,
						     const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueBarrierWithWaitList(queue, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_BARRIER, .waits_for_all = !wait_count };

	OCL_SITES(&command, "clEnqueueBarrierWithWaitList", "barrier", "sync", WAIT, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueBarrierWithWaitList(queue, wait_count, waits,
									 command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	/* Without a pointer for the event it is an error, which the driver reports. */
	if (!ocl_is_watched() || !event)
		return ocl.next.clEnqueueMarker(queue, event);
	struct ocl_command command = { .verb = OCL_MARKER, .waits_for_all = true };

	OCL_SITES(&command, "clEnqueueMarker", "marker", "sync", SYNC, UNKNOWN);
	ocl_give(&command, queue, 0, NULL, event);
	return ocl_given(&command, ocl.next.clEnqueueMarker(queue, command.event_out));
}

/* These two return no event, so their times are not known. */
cl_int CL_API_CALL hook_clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num_events,
					       const cl_event *event_list)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueWaitForEvents(queue, num_events, event_list);
	struct ocl_command command = { .verb = OCL_BARRIER };

	OCL_SITES(&command, "clEnqueueWaitForEvents", "wait for events", "sync", WAIT, UNKNOWN);
	ocl_give(&command, queue, num_events, event_list, NULL);
	return ocl_given(&command, ocl.next.clEnqueueWaitForEvents(queue, num_events, event_list));
}

cl_int CL_API_CALL hook_clEnqueueBarrier(cl_command_queue queue)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueBarrier(queue);
	struct ocl_command command = { .verb = OCL_BARRIER, .waits_for_all = true };

	OCL_SITES(&command, "clEnqueueBarrier", "barrier", "sync", WAIT, UNKNOWN);
	ocl_give(&command, queue, 0, NULL, NULL);
	return ocl_given(&command, ocl.next.clEnqueueBarrier(queue));
}
