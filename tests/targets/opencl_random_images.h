/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of opencl_random.c: 2D, 3D and arrays, IMAGE_WIDTH pixels of 4 bytes wide, with pixels in
 * the order of the model's bytes. Regions are written, read, copied, filled and mapped.
 */
#ifndef OPENCL_RANDOM_IMAGES_H
#define OPENCL_RANDOM_IMAGES_H

#include "opencl_random.h"
#include "opencl_random_moves.h"

enum { PIXEL = 4, IMAGE_WIDTH = 16, IMAGE_ROW = IMAGE_WIDTH * PIXEL };

/* ---- regions ---- */

/* A region in pixels. */
struct frame {
	size_t at[3], size[3];
};

static struct frame whole_frame(const struct root *root)
{
	struct frame frame = { { 0, 0, 0 }, { 0, 0, 0 } };

	memcpy(frame.size, root->pixels, sizeof(frame.size));
	return frame;
}

static size_t frame_bytes(const struct frame *frame)
{
	return frame->size[0] * frame->size[1] * frame->size[2] * PIXEL;
}

static struct frame pick_frame(struct graph *graph, const struct root *root)
{
	struct frame frame = whole_frame(root);

	for (int i = 0; i < 3; i++)
		pick_range(graph, root->pixels[i], &frame.at[i], &frame.size[i]);
	return frame;
}

static void region_of(const struct frame *frame, size_t ret_region[3])
{
	memcpy(ret_region, frame->size, sizeof(frame->size));
	ret_region[0] *= PIXEL;
}

/* The model's side of a frame. */
static struct side side_of(const struct root *root, const struct frame *frame)
{
	return (struct side){ { frame->at[0] * PIXEL, frame->at[1], frame->at[2] },
			      IMAGE_ROW,
			      IMAGE_ROW * root->pixels[1] };
}

/* A side without gaps: a buffer's. */
static struct side packed_side(const struct frame *frame)
{
	return (struct side){ { 0, 0, 0 },
			      frame->size[0] * PIXEL,
			      frame->size[0] * PIXEL * frame->size[1] };
}

/* The host's side of a read or write, often with gaps. Returns its bytes. */
static size_t make_host_side(struct graph *graph, const struct frame *frame, struct side *ret_side)
{
	struct side *side = ret_side;

	*side = packed_side(frame);
	if (chance(graph, 50)) {
		side->row += below(graph, 5) * PIXEL;
		side->slice = side->row * (frame->size[1] + below(graph, 3));
	}
	return side->slice * frame->size[2];
}

/* Layers and slices have a pitch; the layers of a 1D array are rows. */
static size_t slice_pitch(const struct root *root, const struct side *side)
{
	if (root->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
		return side->row;
	return root->type == CL_MEM_OBJECT_IMAGE2D ? 0 : side->slice;
}

static void frame_pack(const struct root *root, const struct frame *frame, unsigned char *to,
		       const struct side *to_side)
{
	struct side side = side_of(root, frame);
	size_t region[3];

	region_of(frame, region);
	move_rect(to, to_side, root->model, &side, region);
}

static void frame_unpack(const struct root *root, const struct frame *frame,
			 const unsigned char *from, const struct side *from_side)
{
	struct side side = side_of(root, frame);
	size_t region[3];

	region_of(frame, region);
	move_rect(root->model, &side, from, from_side, region);
}

/* ---- creation ---- */

static void choose_shape(struct graph *graph, struct root *root, cl_image_desc *what)
{
	static const cl_mem_object_type types[] = { CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE2D,
						    CL_MEM_OBJECT_IMAGE3D,
						    CL_MEM_OBJECT_IMAGE2D_ARRAY,
						    CL_MEM_OBJECT_IMAGE1D_ARRAY };
	size_t rows = root->bytes / IMAGE_ROW;

	root->type = types[below(graph, sizeof(types) / sizeof(*types))];
	root->pixels[0] = IMAGE_WIDTH;
	root->pixels[2] = 1;
	if (root->type == CL_MEM_OBJECT_IMAGE3D || root->type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		root->pixels[2] = 2 + below(graph, 3);
	root->pixels[1] = rows / root->pixels[2];
	root->bytes = root->known = IMAGE_ROW * root->pixels[1] * root->pixels[2];
	*what = (cl_image_desc){ .image_type = root->type, .image_width = IMAGE_WIDTH };
	if (root->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
		what->image_array_size = root->pixels[1];
	else
		what->image_height = root->pixels[1];
	if (root->type == CL_MEM_OBJECT_IMAGE3D)
		what->image_depth = root->pixels[2];
	if (root->type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		what->image_array_size = root->pixels[2];
}

static void make_image(struct graph *graph, struct root *root)
{
	static const cl_image_format formats[] = { { CL_RGBA, CL_UNSIGNED_INT8 },
						   { CL_R, CL_UNSIGNED_INT32 } };
	bool shares = features.hosts && chance(graph, 20);
	unsigned char *host;
	cl_image_desc what;
	cl_int code;

	choose_shape(graph, root, &what);
	host = keep(graph, root->bytes);
	memcpy(host, root->model, root->bytes);
	root->is_image = true;
	root->format = formats[below(graph, 2)];
	root->flags = CL_MEM_READ_WRITE | (shares ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR);
	root->mem = clCreateImage(root->context_set->context, root->flags, &root->format, &what,
				  host, &code);
	check(graph, code, "clCreateImage");
	if (shares)
		root->shared = host;
}

/* ---- writes, reads, fills ---- */

static void do_write_image(struct graph *graph)
{
	struct operand to;
	struct step step;
	struct frame frame;
	struct side side;
	unsigned char *host;
	size_t bytes;

	if (!pick(graph, NULL, IMAGES, true, &to))
		return;
	frame = pick_frame(graph, to.root);
	bytes = make_host_side(graph, &frame, &side);
	host = keep(graph, bytes);
	scramble(graph, host, bytes);
	step = begin(graph, to.root->context_set);
	step.blocking = chance(graph, 20);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueWriteImage(step.queue->handle, to.mem, step.blocking, frame.at, frame.size,
				  side.row, slice_pitch(to.root, &side), host, step.wait_count,
				  waits_of(&step), event_of(&step)),
	      "clEnqueueWriteImage");
	frame_unpack(to.root, &frame, host, &side);
}

static void do_read_image(struct graph *graph)
{
	struct operand from;
	struct step step;
	struct frame frame;
	struct side side;
	unsigned char *host, *expected;
	size_t bytes;
	int node;

	if (!pick(graph, NULL, IMAGES, false, &from))
		return;
	frame = pick_frame(graph, from.root);
	bytes = make_host_side(graph, &frame, &side);
	host = keep(graph, bytes);
	expected = keep(graph, bytes);
	memset(host, 0xa5, bytes);
	memset(expected, 0xa5, bytes);
	frame_pack(from.root, &frame, expected, &side);
	step = begin(graph, from.root->context_set);
	step.blocking = chance(graph, 20);
	add_operand(&step, &from, false);
	arrange(&step);
	node = given(&step,
		     clEnqueueReadImage(step.queue->handle, from.mem, step.blocking, frame.at,
					frame.size, side.row, slice_pitch(from.root, &side), host,
					step.wait_count, waits_of(&step), event_of(&step)),
		     "clEnqueueReadImage");
	expect(graph, host, expected, bytes, node);
}

static void do_fill_image(struct graph *graph)
{
	struct operand to;
	struct step step;
	struct frame frame;
	struct side side;
	unsigned char *pixels;
	cl_uint color[4];

	if (!pick(graph, NULL, IMAGES, true, &to))
		return;
	frame = pick_frame(graph, to.root);
	for (int i = 0; i < 4; i++)
		color[i] = (cl_uint)below(graph, 256);
	step = begin(graph, to.root->context_set);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueFillImage(step.queue->handle, to.mem, color, frame.at, frame.size,
				 step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueFillImage");
	pixels = keep(graph, frame_bytes(&frame));
	for (size_t i = 0; i < frame_bytes(&frame); i++)
		pixels[i] = to.root->format.image_channel_order == CL_R
				    ? (unsigned char)(i % PIXEL ? 0 : color[0])
				    : (unsigned char)color[i % PIXEL];
	side = packed_side(&frame);
	frame_unpack(to.root, &frame, pixels, &side);
}

/* ---- copies ---- */

/* Between an image and a buffer, either way. */
static void do_copy_image(struct graph *graph)
{
	struct operand image, buffer;
	struct step step;
	struct frame frame;
	struct side side;
	bool to_buffer = chance(graph, 50);
	size_t bytes, offset;

	if (!pick(graph, NULL, IMAGES, !to_buffer, &image) ||
	    !pick(graph, image.root->context_set, BUFFERS, to_buffer, &buffer))
		return;
	/* PoCL 3 crashes if it is a sub-buffer. */
	buffer = (struct operand){ buffer.root, buffer.root->mem, 0, buffer.root->known };
	frame = pick_frame(graph, image.root);
	side = packed_side(&frame);
	bytes = frame_bytes(&frame);
	if (bytes > buffer.bytes)
		return;
	offset = below(graph, buffer.bytes - bytes + 1);
	step = begin(graph, image.root->context_set);
	add_operand(&step, &image, !to_buffer);
	add_part(&step, &buffer, offset, bytes, to_buffer);
	arrange(&step);
	if (to_buffer) {
		given(&step,
		      clEnqueueCopyImageToBuffer(step.queue->handle, image.mem, buffer.mem,
						 frame.at, frame.size, offset, step.wait_count,
						 waits_of(&step), event_of(&step)),
		      "clEnqueueCopyImageToBuffer");
		frame_pack(image.root, &frame, model_of(&buffer) + offset, &side);
		return;
	}
	given(&step,
	      clEnqueueCopyBufferToImage(step.queue->handle, buffer.mem, image.mem, offset,
					 frame.at, frame.size, step.wait_count, waits_of(&step),
					 event_of(&step)),
	      "clEnqueueCopyBufferToImage");
	frame_unpack(image.root, &frame, model_of(&buffer) + offset, &side);
}

/* Between images of the same format; their shapes may differ. */
static void do_copy_images(struct graph *graph)
{
	struct operand from, to;
	struct step step;
	struct frame frame, target;
	struct side side;

	if (!pick(graph, NULL, IMAGES, false, &from) ||
	    !pick(graph, from.root->context_set, IMAGES, true, &to) || from.root == to.root ||
	    from.root->format.image_channel_order != to.root->format.image_channel_order)
		return;
	frame = pick_frame(graph, from.root);
	target = frame;
	for (int i = 0; i < 3; i++) {
		if (target.size[i] > to.root->pixels[i])
			target.size[i] = to.root->pixels[i];
		frame.size[i] = target.size[i];
		target.at[i] = below(graph, to.root->pixels[i] - target.size[i] + 1);
	}
	step = begin(graph, from.root->context_set);
	add_operand(&step, &from, false);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueCopyImage(step.queue->handle, from.mem, to.mem, frame.at, target.at,
				 frame.size, step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueCopyImage");
	side = side_of(from.root, &frame);
	frame_unpack(to.root, &target, from.root->model, &side);
}

/* ---- maps ---- */

static void *enqueue_map_image(struct step *step, struct mapping *mapping,
			       const struct frame *frame, bool reads)
{
	const struct root *root = mapping->root;
	size_t row = 0, slice = 0;
	cl_int code;
	void *at = clEnqueueMapImage(step->queue->handle, root->mem, step->blocking,
				     map_flags(mapping, reads), frame->at, frame->size, &row,
				     &slice, step->wait_count, waits_of(step), event_of(step),
				     &code);

	given(step, code, "clEnqueueMapImage");
	region_of(frame, mapping->region);
	mapping->model = side_of(root, frame);
	/* The layers of an array of 1D images have the pitch of slices. */
	mapping->host.row = root->type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? slice : row;
	mapping->host.slice = slice;
	return at;
}

static void do_map_image(struct graph *graph)
{
	struct mapping *mapping = &graph->mappings[graph->mapping_count];
	struct operand operand;
	struct step step;
	struct frame frame;
	bool writes = chance(graph, 60);

	/* As do_map(). */
	if (graph->mapping_count == MAX_MAPPINGS || !pick(graph, NULL, IMAGES, writes, &operand) ||
	    operand.root->read_maps)
		return;
	*mapping = (struct mapping){ .root = operand.root, .mem = operand.mem, .writes = writes };
	mapping->invalidates = writes && chance(graph, 40);
	frame = pick_frame(graph, operand.root);
	step = begin(graph, operand.root->context_set);
	mapping->queue = step.queue;
	step.blocking = chance(graph, 50);
	add_mapped(&step, mapping);
	arrange(&step);
	mapping->at = enqueue_map_image(&step, mapping, &frame, chance(graph, 50));
	use_map(graph, mapping, &step);
}

#endif
