/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and samplers: creates them, and submits commands that copy or fill images. The loader has
 * checked that regions consist of pixels inside their images.
 */
#include <inttypes.h>
#include <string.h>

#include "replay/targets/opencl/opencl_session.h"

#define COLOR_BYTES 16

struct word {
	const char *name;
	cl_uint constant;
};

static const struct word types[] = {
#define TS_IMAGE_TYPE(name, constant, dimensions) { name, constant },
#include "live/local/image_formats.def"
	{ 0 },
};
static const struct word orders[] = {
#define TS_IMAGE_ORDER(name, constant, channels) { name, constant },
#include "live/local/image_formats.def"
	{ 0 },
};
static const struct word data_types[] = {
#define TS_IMAGE_DATA(name, constant, form, bytes) { name, constant },
#include "live/local/image_formats.def"
	{ 0 },
};
static const struct word addressings[] = {
#define TS_SAMPLER_ADDRESSING(name, constant) { name, constant },
#include "live/local/image_formats.def"
	{ 0 },
};
static const struct word filters[] = {
#define TS_SAMPLER_FILTER(name, constant) { name, constant },
#include "live/local/image_formats.def"
	{ 0 },
};

/* The loader accepts only these names. */
static cl_uint constant_of(const struct word *words, const char *name)
{
	while (words->name && strcmp(words->name, name) != 0)
		words++;
	return words->constant;
}

/* ---- creation ---- */

static cl_image_desc describe(const struct ts_replay_image *image, cl_mem in)
{
	cl_mem_object_type type = constant_of(types, image->type);
	bool is_1d = type == CL_MEM_OBJECT_IMAGE1D || type == CL_MEM_OBJECT_IMAGE1D_BUFFER ||
		     type == CL_MEM_OBJECT_IMAGE1D_ARRAY;

	return (cl_image_desc){
		.image_type = type,
		.image_width = image->size[0],
		.image_height = is_1d ? 0 : image->size[1],
		.image_depth = type == CL_MEM_OBJECT_IMAGE3D ? image->size[2] : 0,
		.image_array_size = type == CL_MEM_OBJECT_IMAGE1D_ARRAY   ? image->size[1]
				    : type == CL_MEM_OBJECT_IMAGE2D_ARRAY ? image->size[2]
									  : 0,
		.image_row_pitch = in && !is_1d ? image->row : 0,
		.mem_object = in,
	};
}

/* The driver writes whole pixels to our memory: they must be as large as those of the trace. */
static int check_element(struct ts_replay_session *session, uint32_t image, cl_mem handle,
			 struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, image);
	size_t element = 0;

	if (!session->api.clGetImageInfo(handle, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element,
					 NULL) &&
	    element == info->image->element)
		return TS_OK;
	return ts_error_set(err, TS_ECAP,
			    "memory %" PRIu64 ": a pixel %s %s has %zu bytes on '%s', %" PRIu64
			    " in the recording",
			    info->number, info->image->order, info->image->data, element,
			    ts_opencl_device_name(session, image), info->image->element);
}

int ts_opencl_make_image(struct ts_replay_session *session, uint32_t image, cl_mem in,
			 cl_mem *ret_handle, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, image);
	const struct ts_replay_object_info *root = in ? ts_opencl_info(session, info->parent)
						      : info;
	cl_image_format format = { constant_of(orders, info->image->order),
				   constant_of(data_types, info->image->data) };
	cl_image_desc description = describe(info->image, in);
	cl_int code = CL_SUCCESS;
	cl_mem handle = session->api.clCreateImage(session->objects[root->parent].context.handle,
						   ts_opencl_access_flags(info->flags), &format,
						   &description, NULL, &code);
	int rc;

	if (!handle)
		return ts_error_set(err, ts_opencl_error_code(code),
				    "memory %" PRIu64 ": a %s image %s %s (%" PRIu64 " x %" PRIu64
				    " x %" PRIu64 ") cannot be created: %s (%d) on '%s'",
				    info->number, info->image->type, info->image->order,
				    info->image->data, info->image->size[0], info->image->size[1],
				    info->image->size[2], ts_opencl_error_name(code), code,
				    ts_opencl_device_name(session, image));
	rc = check_element(session, image, handle, err);
	if (rc)
		session->api.clReleaseMemObject(handle);
	else
		*ret_handle = handle;
	return rc;
}

int ts_opencl_make_image_view(struct ts_replay_session *session, uint32_t image,
			      struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, image);

	if (ts_opencl_info(session, info->parent)->kind != TS_OBJECT_MEMORY)
		return TS_OK;
	return ts_opencl_make_view(session, info->parent, info->origin, info->bytes, image,
				   &session->objects[image].memory.view, err);
}

static cl_mem handle_of(const struct ts_replay_session *session, uint32_t image)
{
	const struct ts_opencl_object *object = &session->objects[image];

	return object->memory.view ? object->memory.view->handle : object->memory.handle;
}

/* ---- samplers ---- */

static bool is_same(const struct ts_replay_arg *a, const struct ts_replay_arg *b)
{
	return a->is_normalized == b->is_normalized && a->addressing == b->addressing &&
	       a->filter == b->filter;
}

int ts_opencl_make_sampler(struct ts_replay_session *session, uint32_t context,
			   const struct ts_replay_arg *like, const cl_sampler **ret_handle,
			   struct ts_error *err)
{
	struct ts_opencl_sampler *sampler = session->samplers;
	cl_int code = CL_SUCCESS;

	while (sampler && (sampler->context != context || !is_same(sampler->like, like)))
		sampler = sampler->next;
	if (!sampler) {
		sampler = ts_arena_alloc_zeroed(&session->arena, 1, sizeof(*sampler));
		if (!sampler)
			return ts_error_set(err, TS_ENOMEM, "no memory for a sampler");
		sampler->handle = session->api.clCreateSampler(
			session->objects[context].context.handle, like->is_normalized,
			constant_of(addressings, like->addressing),
			constant_of(filters, like->filter), &code);
		if (!sampler->handle)
			return ts_error_set(err, ts_opencl_error_code(code),
					    "a sampler (%s, %s%s) cannot be created: %s (%d)",
					    like->addressing, like->filter,
					    like->is_normalized ? ", normalized" : "",
					    ts_opencl_error_name(code), code);
		sampler->context = context;
		sampler->like = like;
		sampler->next = session->samplers;
		session->samplers = sampler;
	}
	*ret_handle = &sampler->handle;
	return TS_OK;
}

void ts_opencl_free_samplers(struct ts_replay_session *session)
{
	for (struct ts_opencl_sampler *sampler = session->samplers; sampler;
	     sampler = sampler->next)
		session->api.clReleaseSampler(sampler->handle);
	session->samplers = NULL;
}

/* ---- all of an image ---- */

static const size_t nowhere[3];

static void size_of(const struct ts_replay_session *session, uint32_t image, size_t ret_size[3])
{
	for (int i = 0; i < 3; i++)
		ret_size[i] = ts_opencl_info(session, image)->image->size[i];
}

cl_int ts_opencl_read_image(struct ts_replay_session *session, cl_command_queue queue,
			    uint32_t image, void *to, bool blocking, uint32_t count,
			    cl_event *event)
{
	size_t size[3];

	size_of(session, image, size);
	return session->api.clEnqueueReadImage(queue, session->objects[image].memory.handle,
					       blocking, nowhere, size, 0, 0, to, count,
					       count ? session->list : NULL, event);
}

cl_int ts_opencl_write_image(struct ts_replay_session *session, cl_command_queue queue,
			     uint32_t image, const void *from, bool blocking, uint32_t count,
			     cl_event *event)
{
	size_t size[3];

	size_of(session, image, size);
	return session->api.clEnqueueWriteImage(queue, session->objects[image].memory.handle,
						blocking, nowhere, size, 0, 0, from, count,
						count ? session->list : NULL, event);
}

cl_int ts_opencl_clear_image(struct ts_replay_session *session, cl_command_queue queue,
			     uint32_t image)
{
	static const char zeros[COLOR_BYTES];
	size_t size[3];

	size_of(session, image, size);
	return session->api.clEnqueueFillImage(queue, session->objects[image].memory.handle, zeros,
					       nowhere, size, 0, NULL, NULL);
}

/* ---- regions ---- */

static void in_pixels(const struct ts_replay_image *image, const uint64_t bytes[3],
		      size_t ret_pixels[3])
{
	ret_pixels[0] = bytes[0] / image->element;
	ret_pixels[1] = bytes[1];
	ret_pixels[2] = bytes[2];
}

/* One side is an image, the other a buffer or an image. */
static cl_int copy(struct ts_replay_session *session, cl_command_queue queue,
		   const struct ts_replay_command_info *c, const size_t to[3], const size_t from[3],
		   const size_t region[3], uint32_t count, cl_event *event)
{
	const cl_event *list = count ? session->list : NULL;

	if (c->image == TS_REPLAY_NONE)
		return session->api.clEnqueueCopyImageToBuffer(
			queue, handle_of(session, c->other_image), handle_of(session, c->object),
			from, region, c->offset, count, list, event);
	if (c->other_image == TS_REPLAY_NONE)
		return session->api.clEnqueueCopyBufferToImage(
			queue, handle_of(session, c->other), handle_of(session, c->image),
			c->other_offset, to, region, count, list, event);
	return session->api.clEnqueueCopyImage(queue, handle_of(session, c->other_image),
					       handle_of(session, c->image), from, to, region,
					       count, list, event);
}

cl_int ts_opencl_submit_image(struct ts_replay_session *session, cl_command_queue queue,
			      const struct ts_replay_command_info *c, void *host, bool blocking,
			      uint32_t count, cl_event *event)
{
	uint32_t any = c->image != TS_REPLAY_NONE ? c->image : c->other_image;
	const struct ts_replay_image *image = ts_opencl_info(session, any)->image;
	const cl_event *list = count ? session->list : NULL;
	size_t to[3], from[3], region[3];

	in_pixels(image, c->to.origin, to);
	in_pixels(image, c->from.origin, from);
	in_pixels(image, c->region, region);
	if (c->kind == TS_COMMAND_FILL)
		return session->api.clEnqueueFillImage(queue, handle_of(session, c->image), host,
						       to, region, count, list, event);
	if (c->object == TS_REPLAY_NONE)
		return session->api.clEnqueueReadImage(queue, handle_of(session, c->other_image),
						       blocking, from, region, 0, 0, host, count,
						       list, event);
	if (c->other == TS_REPLAY_NONE)
		return session->api.clEnqueueWriteImage(queue, handle_of(session, c->image),
							blocking, to, region, 0, 0, host, count,
							list, event);
	return copy(session, queue, c, to, from, region, count, event);
}
