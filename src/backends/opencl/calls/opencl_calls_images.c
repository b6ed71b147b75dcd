/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and samplers. Objects are tracked only in replayable recordings; commands take the path of
 * opencl_calls.c.
 */
#include <tracesmith/schema.h>

#include "backends/opencl/calls/opencl_calls.h"

/* ---- creating images ---- */

static void created_image(cl_context context, cl_mem handle, cl_mem_flags flags,
			  const cl_image_format *format, const cl_image_desc *description,
			  const void *host)
{
	struct ocl_object *memory;

	if (!handle || !ocl.replayable)
		return;
	memory = ocl_add_in(context, OCL_MEMORY, handle);
	if (memory)
		stream_created_image(memory, flags, format, description, host);
}

cl_mem CL_API_CALL hook_clCreateImage(cl_context context, cl_mem_flags flags,
				      const cl_image_format *image_format,
				      const cl_image_desc *image_desc, void *host_ptr,
				      cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem image;

	if (!ocl_is_watched())
		return ocl.next.clCreateImage(context, flags, image_format, image_desc, host_ptr,
					      ret_error);
	OCL_BEGIN(&call, "clCreateImage");
	image = ocl.next.clCreateImage(context, flags, image_format, image_desc, host_ptr, &error);
	ocl_emit_call(&call, error);
	created_image(context, image, flags, image_format, image_desc, host_ptr);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return image;
}

/*
 * Properties come from extensions (imported memory ...): with any, the image cannot be replayed.
 */
cl_mem CL_API_CALL hook_clCreateImageWithProperties(cl_context context,
						    const cl_mem_properties *properties,
						    cl_mem_flags flags,
						    const cl_image_format *image_format,
						    const cl_image_desc *image_desc, void *host_ptr,
						    cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem image;

	if (!ocl_is_watched())
		return ocl.next.clCreateImageWithProperties(
			context, properties, flags, image_format, image_desc, host_ptr, ret_error);
	OCL_BEGIN(&call, "clCreateImageWithProperties");
	image = ocl.next.clCreateImageWithProperties(context, properties, flags, image_format,
						     image_desc, host_ptr, &error);
	ocl_emit_call(&call, error);
	if (properties && properties[0])
		ocl_created_other(context, OCL_MEMORY, image, "image with properties");
	else
		created_image(context, image, flags, image_format, image_desc, host_ptr);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return image;
}

cl_mem CL_API_CALL hook_clCreateImage2D(cl_context context, cl_mem_flags flags,
					const cl_image_format *image_format, size_t image_width,
					size_t image_height, size_t image_row_pitch, void *host_ptr,
					cl_int *ret_error)
{
	const cl_image_desc description = { .image_type = CL_MEM_OBJECT_IMAGE2D,
					    .image_width = image_width,
					    .image_height = image_height,
					    .image_row_pitch = image_row_pitch };
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem image;

	if (!ocl_is_watched())
		return ocl.next.clCreateImage2D(context, flags, image_format, image_width,
						image_height, image_row_pitch, host_ptr, ret_error);
	OCL_BEGIN(&call, "clCreateImage2D");
	image = ocl.next.clCreateImage2D(context, flags, image_format, image_width, image_height,
					 image_row_pitch, host_ptr, &error);
	ocl_emit_call(&call, error);
	created_image(context, image, flags, image_format, &description, host_ptr);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return image;
}

cl_mem CL_API_CALL hook_clCreateImage3D(cl_context context, cl_mem_flags flags,
					const cl_image_format *image_format, size_t image_width,
					size_t image_height, size_t image_depth,
					size_t image_row_pitch, size_t image_slice_pitch,
					void *host_ptr, cl_int *ret_error)
{
	const cl_image_desc description = { .image_type = CL_MEM_OBJECT_IMAGE3D,
					    .image_width = image_width,
					    .image_height = image_height,
					    .image_depth = image_depth,
					    .image_row_pitch = image_row_pitch,
					    .image_slice_pitch = image_slice_pitch };
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_mem image;

	if (!ocl_is_watched())
		return ocl.next.clCreateImage3D(context, flags, image_format, image_width,
						image_height, image_depth, image_row_pitch,
						image_slice_pitch, host_ptr, ret_error);
	OCL_BEGIN(&call, "clCreateImage3D");
	image = ocl.next.clCreateImage3D(context, flags, image_format, image_width, image_height,
					 image_depth, image_row_pitch, image_slice_pitch, host_ptr,
					 &error);
	ocl_emit_call(&call, error);
	created_image(context, image, flags, image_format, &description, host_ptr);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return image;
}

/* ---- creating samplers ---- */

static void created_sampler(cl_context context, cl_sampler handle)
{
	struct ocl_object *sampler;

	if (!handle || !ocl.replayable)
		return;
	sampler = ocl_add_in(context, OCL_SAMPLER, handle);
	if (sampler)
		stream_created_sampler(sampler);
}

cl_sampler CL_API_CALL hook_clCreateSampler(cl_context context, cl_bool normalized_coords,
					    cl_addressing_mode addressing_mode,
					    cl_filter_mode filter_mode, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_sampler sampler;

	if (!ocl_is_watched())
		return ocl.next.clCreateSampler(context, normalized_coords, addressing_mode,
						filter_mode, ret_error);
	OCL_BEGIN(&call, "clCreateSampler");
	sampler = ocl.next.clCreateSampler(context, normalized_coords, addressing_mode, filter_mode,
					   &error);
	ocl_emit_call(&call, error);
	created_sampler(context, sampler);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return sampler;
}

cl_sampler CL_API_CALL hook_clCreateSamplerWithProperties(
	cl_context context, const cl_sampler_properties *sampler_properties, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_sampler sampler;

	if (!ocl_is_watched())
		return ocl.next.clCreateSamplerWithProperties(context, sampler_properties,
							      ret_error);
	OCL_BEGIN(&call, "clCreateSamplerWithProperties");
	sampler = ocl.next.clCreateSamplerWithProperties(context, sampler_properties, &error);
	ocl_emit_call(&call, error);
	created_sampler(context, sampler);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return sampler;
}

/* ---- commands ---- */

/* Bytes of a region in pixels; 0: not known. */
static size_t bytes_of_region(cl_mem image, const size_t *region)
{
	size_t element = 0;

	if (!region ||
	    ocl.next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element, NULL))
		return 0;
	return region[0] * region[1] * region[2] * element;
}

cl_int CL_API_CALL hook_clEnqueueReadImage(cl_command_queue queue, cl_mem image,
					   cl_bool blocking_read, const size_t *origin,
					   const size_t *region, size_t row_pitch,
					   size_t slice_pitch, void *ptr, cl_uint wait_count,
					   const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueReadImage(queue, image, blocking_read, origin, region,
						   row_pitch, slice_pitch, ptr, wait_count, waits,
						   event);
	struct ocl_command command = { .verb = OCL_READ_IMAGE,
				       .memory = image,
				       .blocking = blocking_read,
				       .bytes = bytes_of_region(image, region),
				       .host = ptr,
				       .rect = { .buffer_origin = origin,
						 .region = region,
						 .host_row = row_pitch,
						 .host_slice = slice_pitch } };

	OCL_SITES(&command, "clEnqueueReadImage", "read image", "copy", COPY, DEVICE_TO_HOST);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueReadImage(queue, image, ocl_blocks(&command), origin,
						     region, row_pitch, slice_pitch, ptr,
						     wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueWriteImage(cl_command_queue queue, cl_mem image,
					    cl_bool blocking_write, const size_t *origin,
					    const size_t *region, size_t input_row_pitch,
					    size_t input_slice_pitch, const void *ptr,
					    cl_uint wait_count, const cl_event *waits,
					    cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueWriteImage(queue, image, blocking_write, origin, region,
						    input_row_pitch, input_slice_pitch, ptr,
						    wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_WRITE_IMAGE,
				       .memory = image,
				       .blocking = blocking_write,
				       .bytes = bytes_of_region(image, region),
				       .host_source = ptr,
				       .rect = { .buffer_origin = origin,
						 .region = region,
						 .host_row = input_row_pitch,
						 .host_slice = input_slice_pitch } };

	OCL_SITES(&command, "clEnqueueWriteImage", "write image", "copy", COPY, HOST_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueWriteImage(queue, image, ocl_blocks(&command), origin,
						      region, input_row_pitch, input_slice_pitch,
						      ptr, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueCopyImage(cl_command_queue queue, cl_mem src_image,
					   cl_mem dst_image, const size_t *src_origin,
					   const size_t *dst_origin, const size_t *region,
					   cl_uint wait_count, const cl_event *waits,
					   cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueCopyImage(queue, src_image, dst_image, src_origin,
						   dst_origin, region, wait_count, waits, event);
	struct ocl_command command = {
		.verb = OCL_COPY_IMAGE,
		.memory = dst_image,
		.source = src_image,
		.bytes = bytes_of_region(dst_image, region),
		.rect = { .buffer_origin = dst_origin, .host_origin = src_origin, .region = region }
	};

	OCL_SITES(&command, "clEnqueueCopyImage", "copy image", "copy", COPY, DEVICE_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueCopyImage(
					   queue, src_image, dst_image, src_origin, dst_origin,
					   region, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem src_image,
						   cl_mem dst_buffer, const size_t *src_origin,
						   const size_t *region, size_t dst_offset,
						   cl_uint wait_count, const cl_event *waits,
						   cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueCopyImageToBuffer(queue, src_image, dst_buffer, src_origin,
							   region, dst_offset, wait_count, waits,
							   event);
	struct ocl_command command = { .verb = OCL_IMAGE_TO_BUFFER,
				       .memory = dst_buffer,
				       .source = src_image,
				       .offset = dst_offset,
				       .bytes = bytes_of_region(src_image, region),
				       .rect = { .host_origin = src_origin, .region = region } };

	OCL_SITES(&command, "clEnqueueCopyImageToBuffer", "copy image to buffer", "copy", COPY,
		  DEVICE_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueCopyImageToBuffer(
					   queue, src_image, dst_buffer, src_origin, region,
					   dst_offset, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem src_buffer,
						   cl_mem dst_image, size_t src_offset,
						   const size_t *dst_origin, const size_t *region,
						   cl_uint wait_count, const cl_event *waits,
						   cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueCopyBufferToImage(queue, src_buffer, dst_image, src_offset,
							   dst_origin, region, wait_count, waits,
							   event);
	struct ocl_command command = { .verb = OCL_BUFFER_TO_IMAGE,
				       .memory = dst_image,
				       .source = src_buffer,
				       .source_offset = src_offset,
				       .bytes = bytes_of_region(dst_image, region),
				       .rect = { .buffer_origin = dst_origin, .region = region } };

	OCL_SITES(&command, "clEnqueueCopyBufferToImage", "copy buffer to image", "copy", COPY,
		  DEVICE_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueCopyBufferToImage(
					   queue, src_buffer, dst_image, src_offset, dst_origin,
					   region, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueFillImage(cl_command_queue queue, cl_mem image,
					   const void *fill_color, const size_t *origin,
					   const size_t *region, cl_uint wait_count,
					   const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueFillImage(queue, image, fill_color, origin, region,
						   wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_FILL_IMAGE,
				       .memory = image,
				       .bytes = bytes_of_region(image, region),
				       .host_source = fill_color,
				       .rect = { .buffer_origin = origin, .region = region } };

	OCL_SITES(&command, "clEnqueueFillImage", "fill image", "fill", FILL, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueFillImage(queue, image, fill_color, origin, region,
						     wait_count, waits, command.event_out));
}

void *CL_API_CALL hook_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking_map,
					 cl_map_flags map_flags, const size_t *origin,
					 const size_t *region, size_t *image_row_pitch,
					 size_t *image_slice_pitch, cl_uint wait_count,
					 const cl_event *waits, cl_event *event, cl_int *ret_error)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueMapImage(queue, image, blocking_map, map_flags, origin,
						  region, image_row_pitch, image_slice_pitch,
						  wait_count, waits, event, ret_error);
	struct ocl_command command = { .verb = OCL_MAP_IMAGE,
				       .memory = image,
				       .blocking = blocking_map,
				       .bytes = bytes_of_region(image, region),
				       .map_flags = map_flags,
				       .rect = { .buffer_origin = origin, .region = region } };
	cl_int error = CL_SUCCESS;

	OCL_SITES(&command, "clEnqueueMapImage", "map image", "copy", COPY, DEVICE_TO_HOST);
	ocl_give(&command, queue, wait_count, waits, event);
	command.host = ocl.next.clEnqueueMapImage(
		queue, image, ocl_blocks(&command), map_flags, origin, region, image_row_pitch,
		image_slice_pitch, wait_count, waits, command.event_out, &error);
	if (command.host && image_row_pitch)
		command.rect.host_row = *image_row_pitch;
	if (command.host && image_slice_pitch)
		command.rect.host_slice = *image_slice_pitch;
	ocl_given(&command, error);
	ocl_give_error(ret_error, error);
	return command.host;
}
