/* SPDX-License-Identifier: Apache-2.0 */
/* Images and samplers (docs/replay.md, 2.4). An image is memory: its content is its packed pixels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

struct word {
	cl_uint constant;
	const char *text;
};

static const struct word types[] = {
#define TS_IMAGE_TYPE(name, constant, dimensions) { constant, name },
#include "live/local/image_formats.def"
	{ 0, NULL },
};
static const struct word orders[] = {
#define TS_IMAGE_ORDER(name, constant, channels) { constant, name },
#include "live/local/image_formats.def"
	{ 0, NULL },
};
static const struct word data_types[] = {
#define TS_IMAGE_DATA(name, constant, form, bytes) { constant, name },
#include "live/local/image_formats.def"
	{ 0, NULL },
};
static const struct word addressings[] = {
#define TS_SAMPLER_ADDRESSING(name, constant) { constant, name },
#include "live/local/image_formats.def"
	{ 0, NULL },
};
static const struct word filters[] = {
#define TS_SAMPLER_FILTER(name, constant) { constant, name },
#include "live/local/image_formats.def"
	{ 0, NULL },
};

/* NULL: a constant of an extension. */
static const char *word_of(const struct word *words, cl_uint constant)
{
	while (words->text && words->constant != constant)
		words++;
	return words->text;
}

/* ---- rectangles ---- */

static const size_t nowhere[3];

/* Sizes in pixels: x in bytes. */
static void in_bytes(const struct stream_image *image, const size_t *pixels, size_t ret_bytes[3])
{
	memcpy(ret_bytes, pixels, 3 * sizeof(size_t));
	ret_bytes[0] *= image->element;
}

struct stream_rect stream_image_rect(const struct stream_image *image, const size_t *origin,
				     const size_t *region)
{
	size_t at[3], bytes[3];

	in_bytes(image, origin, at);
	in_bytes(image, region, bytes);
	return stream_rect_make(bytes, at, image->row, image->slice);
}

/* The rows of a 1D array are its layers, which have the slice's pitch. */
struct stream_rect stream_image_host_rect(const struct stream_image *image, const size_t *region,
					  size_t row, size_t slice)
{
	bool is_array = image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
	size_t bytes[3];

	in_bytes(image, region, bytes);
	if (is_array && slice)
		row = slice;
	return stream_rect_make(bytes, nowhere, row, is_array ? 0 : slice);
}

/* ---- creation ---- */

static void set_size(struct stream_image *image, const cl_image_desc *description)
{
	size_t height = description->image_height, depth = description->image_depth,
	       layers = description->image_array_size;

	image->size[0] = description->image_width;
	image->size[1] = image->size[2] = 1;
	switch (image->type) {
	case CL_MEM_OBJECT_IMAGE1D_ARRAY:
		image->size[1] = layers;
		break;
	case CL_MEM_OBJECT_IMAGE2D:
		image->size[1] = height;
		break;
	case CL_MEM_OBJECT_IMAGE2D_ARRAY:
		image->size[1] = height;
		image->size[2] = layers;
		break;
	case CL_MEM_OBJECT_IMAGE3D:
		image->size[1] = height;
		image->size[2] = depth;
		break;
	default:
		break;
	}
}

/* Of an image in an image, the driver's pitch is not that of the packed content. */
static size_t row_pitch(const struct stream_image *image, const cl_image_desc *description)
{
	const struct ocl_object *base = NULL;

	if (description->mem_object)
		base = ocl_find(OCL_MEMORY, description->mem_object);
	if (base && base->stream && base->stream->as.memory.image)
		return base->stream->as.memory.image->row;
	if (description->mem_object && description->image_row_pitch)
		return description->image_row_pitch;
	return image->size[0] * image->element;
}

static struct stream_image *make_image(cl_mem handle, const cl_image_format *format,
				       const cl_image_desc *description)
{
	struct stream_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->type = description->image_type;
	image->format = *format;
	set_size(image, description);
	ocl.next.clGetImageInfo(handle, CL_IMAGE_ELEMENT_SIZE, sizeof(image->element),
				&image->element, NULL);
	image->row = row_pitch(image, description);
	image->slice = image->row * image->size[1];
	image->host = stream_image_host_rect(image, image->size, description->image_row_pitch,
					     description->image_slice_pitch);
	return image;
}

/* Why it cannot be replayed, maybe in `text`; NULL: it can. */
static const char *reject(const struct stream_image *image, const cl_image_desc *description,
			  char text[64])
{
	if (description->num_mip_levels > 1)
		return "an image with mipmaps";
	if (description->num_samples > 1)
		return "an image with several samples";
	if (!word_of(types, image->type) || !image->element)
		return "an image of unknown type";
	if (word_of(orders, image->format.image_channel_order) &&
	    word_of(data_types, image->format.image_channel_data_type))
		return NULL;
	snprintf(text, 64, "an image with format 0x%x, 0x%x", image->format.image_channel_order,
		 image->format.image_channel_data_type);
	return text;
}

static void set_host(struct ocl_stream *stream, const void *host)
{
	struct stream_memory *memory = &stream->as.memory;

	if (!host || !(memory->flags & CL_MEM_USE_HOST_PTR))
		return;
	memory->area = (struct stream_area){
		.host = host,
		.bytes = memory->bytes,
		.image = stream->number,
		.image_bytes = memory->bytes,
		.rect = stream_image_rect(memory->image, nowhere, memory->image->size),
		.host_rect = memory->image->host,
	};
	if (stream_svm_find(host, NULL) && !stream->unreplayable)
		stream->unreplayable = strdup("an image in SVM");
}

/* `root`: NULL if it is not a view. */
static void fill_in(struct ocl_stream *stream, const cl_image_desc *description,
		    const struct ocl_stream *root, uint64_t origin)
{
	struct stream_memory *memory = &stream->as.memory;
	char text[64];
	const char *why = reject(memory->image, description, text);

	memory->bytes = (uint64_t)memory->image->slice * memory->image->size[2];
	memory->is_view = root != NULL;
	memory->origin = origin;
	if (description->mem_object && (!root || root->unreplayable))
		why = "a view of memory that cannot be replayed";
	if (why) {
		stream->unreplayable = strdup(why);
		stream_lost("OpenCL objects: image", why);
	}
}

void stream_created_image(struct ocl_object *memory, cl_mem_flags flags,
			  const cl_image_format *format, const cl_image_desc *description,
			  const void *host)
{
	struct stream_image *image = make_image(memory->handle, format, description);
	struct ocl_stream *root = NULL, *stream;
	uint64_t origin = 0;

	if (description->mem_object)
		root = stream_memory_root(description->mem_object, &origin);
	stream = image ? stream_object_new(OCL_MEMORY, memory->handle,
					   root ? root : stream_memory_context(memory))
		       : NULL;
	if (!stream) {
		free(image);
		return;
	}
	stream->as.memory.image = image;
	stream->as.memory.flags = flags;
	fill_in(stream, description, root, origin);
	if (!(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) || root)
		host = NULL;
	set_host(stream, host);
	memory->bytes = stream->as.memory.bytes;
	memory->stream = stream;
	stream_memory_emit(stream, host);
}

void stream_created_sampler(struct ocl_object *sampler)
{
	struct ocl_stream *stream =
		stream_object_new(OCL_SAMPLER, sampler->handle, stream_object_of(sampler->context));
	struct stream_sampler *as;

	if (!stream)
		return;
	as = &stream->as.sampler;
	ocl.next.clGetSamplerInfo(sampler->handle, CL_SAMPLER_NORMALIZED_COORDS,
				  sizeof(as->normalized), &as->normalized, NULL);
	ocl.next.clGetSamplerInfo(sampler->handle, CL_SAMPLER_ADDRESSING_MODE,
				  sizeof(as->addressing), &as->addressing, NULL);
	ocl.next.clGetSamplerInfo(sampler->handle, CL_SAMPLER_FILTER_MODE, sizeof(as->filter),
				  &as->filter, NULL);
	sampler->stream = stream;
}

/* ---- description ---- */

static void add_word(struct stream_text *text, const char *key, const struct word *words,
		     cl_uint constant)
{
	const char *word = word_of(words, constant);

	stream_text_string(text, key, word ? word : "unknown");
}

void stream_image_describe(const struct stream_image *image, struct stream_text *text)
{
	stream_text_open(text, "image", '{');
	add_word(text, "type", types, image->type);
	add_word(text, "order", orders, image->format.image_channel_order);
	add_word(text, "data", data_types, image->format.image_channel_data_type);
	stream_text_sizes(text, "size", image->size, 3);
	stream_text_uint(text, "element", image->element);
	stream_text_uint(text, "row", image->row);
	stream_text_close(text, '{');
}

void stream_sampler_describe(const struct stream_sampler *sampler, struct stream_text *text)
{
	if (sampler->normalized)
		stream_text_true(text, "normalized");
	add_word(text, "addressing", addressings, sampler->addressing);
	add_word(text, "filter", filters, sampler->filter);
}

/* ---- content ---- */

/* Through a buffer, if the host may not read the image. */
static cl_int read_staged(cl_command_queue queue, const struct ocl_stream *memory, void *to)
{
	const struct stream_image *image = memory->as.memory.image;
	cl_int rc = CL_SUCCESS;
	cl_mem staging = ocl.next.clCreateBuffer(memory->parent->handle, CL_MEM_READ_WRITE,
						 memory->as.memory.bytes, NULL, &rc);

	if (!staging)
		return rc;
	rc = ocl.next.clEnqueueCopyImageToBuffer(queue, memory->handle, staging, nowhere,
						 image->size, 0, 0, NULL, NULL);
	if (rc == CL_SUCCESS)
		rc = ocl.next.clEnqueueReadBuffer(queue, staging, CL_TRUE, 0,
						  memory->as.memory.bytes, to, 0, NULL, NULL);
	ocl.next.clReleaseMemObject(staging);
	return rc;
}

cl_int stream_image_read(cl_command_queue queue, const struct ocl_stream *memory, void *to)
{
	const struct stream_image *image = memory->as.memory.image;
	cl_int rc = ocl.next.clEnqueueReadImage(queue, memory->handle, CL_TRUE, nowhere,
						image->size, 0, 0, to, 0, NULL, NULL);

	return rc == CL_INVALID_OPERATION ? read_staged(queue, memory, to) : rc;
}

uint64_t stream_image_rows(const struct stream_image *image, uint64_t at, uint64_t most)
{
	uint64_t left = image->slice - at % image->slice;

	if (image->row != image->size[0] * image->element || image->row > most)
		return 0;
	return left < most ? left : most - most % image->row;
}

cl_int stream_image_read_rows(cl_command_queue queue, const struct stream_range *rows, void *to,
			      cl_uint wait_count, const cl_event *waits, cl_event *ret_event)
{
	const struct stream_image *image = rows->memory->as.memory.image;
	const size_t origin[3] = { 0, rows->offset % image->slice / image->row,
				   rows->offset / image->slice };
	const size_t region[3] = { image->size[0], rows->bytes / image->row, 1 };

	return ocl.next.clEnqueueReadImage(queue, rows->memory->handle, CL_FALSE, origin, region, 0,
					   0, to, wait_count, waits, ret_event);
}

cl_int stream_image_clear(cl_command_queue queue, const struct ocl_stream *memory)
{
	static const unsigned char zeros[STREAM_COLOR_BYTES];
	const struct stream_image *image = memory->as.memory.image;
	void *content;
	cl_int rc;

	if (ocl.next.clEnqueueFillImage) /* since OpenCL 1.2 */
		return ocl.next.clEnqueueFillImage(queue, memory->handle, zeros, nowhere,
						   image->size, 0, NULL, NULL);
	content = calloc(1, memory->as.memory.bytes);
	if (!content)
		return CL_OUT_OF_HOST_MEMORY;
	rc = ocl.next.clEnqueueWriteImage(queue, memory->handle, CL_TRUE, nowhere, image->size, 0,
					  0, content, 0, NULL, NULL);
	free(content);
	return rc;
}
