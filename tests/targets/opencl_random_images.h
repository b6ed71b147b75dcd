/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of opencl_random.c: 2D, IMAGE_WIDTH pixels of 4 bytes wide, with pixels in the order of
 * the model's bytes. Regions are written, read, copied and filled.
 */
#ifndef OPENCL_RANDOM_IMAGES_H
#define OPENCL_RANDOM_IMAGES_H

#include "opencl_random.h"
#include "opencl_random_moves.h"

enum { IMAGE_WIDTH = 16, IMAGE_ROW = IMAGE_WIDTH * 4 };

/* A region in pixels. */
struct frame {
	size_t at[3], size[3];
};

static struct frame whole_frame(const struct root *root)
{
	return (struct frame){ { 0, 0, 0 }, { IMAGE_WIDTH, root->bytes / IMAGE_ROW, 1 } };
}

static struct frame pick_frame(struct graph *graph, const struct root *root, size_t most_rows)
{
	struct frame frame = whole_frame(root);
	size_t rows = frame.size[1] < most_rows ? frame.size[1] : most_rows;

	pick_range(graph, IMAGE_WIDTH, &frame.at[0], &frame.size[0]);
	pick_range(graph, rows, &frame.at[1], &frame.size[1]);
	return frame;
}

static size_t frame_bytes(const struct frame *frame)
{
	return frame->size[0] * frame->size[1] * 4;
}

/* The model's bytes of a row of the frame. */
static unsigned char *frame_row(const struct root *root, const struct frame *frame, size_t row)
{
	return root->model + (frame->at[1] + row) * IMAGE_ROW + frame->at[0] * 4;
}

static void frame_pack(const struct root *root, const struct frame *frame, unsigned char *to)
{
	for (size_t y = 0; y < frame->size[1]; y++)
		memcpy(to + y * frame->size[0] * 4, frame_row(root, frame, y), frame->size[0] * 4);
}

static void frame_unpack(const struct root *root, const struct frame *frame,
			 const unsigned char *from)
{
	for (size_t y = 0; y < frame->size[1]; y++)
		memcpy(frame_row(root, frame, y), from + y * frame->size[0] * 4,
		       frame->size[0] * 4);
}

static void make_image(struct graph *graph, struct root *root)
{
	cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc what = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = IMAGE_WIDTH,
			       .image_height = root->bytes / IMAGE_ROW };
	unsigned char *host = keep(graph, root->bytes);
	cl_int code;

	memcpy(host, root->model, root->bytes);
	root->is_image = true;
	root->mem = clCreateImage(root->context_set->context,
				  CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &what, host,
				  &code);
	check(graph, code, "clCreateImage");
}

static void do_write_image(struct graph *graph)
{
	struct operand to;
	struct step step;
	struct frame frame;
	unsigned char *host;

	if (!pick(graph, NULL, IMAGES, true, &to))
		return;
	frame = pick_frame(graph, to.root, SIZE_MAX);
	host = keep(graph, frame_bytes(&frame));
	scramble(graph, host, frame_bytes(&frame));
	step = begin(graph, to.root->context_set);
	step.blocking = chance(graph, 20);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueWriteImage(step.queue->handle, to.mem, step.blocking, frame.at, frame.size,
				  0, 0, host, step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueWriteImage");
	frame_unpack(to.root, &frame, host);
}

static void do_read_image(struct graph *graph)
{
	struct operand from;
	struct step step;
	struct frame frame;
	unsigned char *host, *expected;
	size_t bytes;
	int node;

	if (!pick(graph, NULL, IMAGES, false, &from))
		return;
	frame = pick_frame(graph, from.root, SIZE_MAX);
	bytes = frame_bytes(&frame);
	host = keep(graph, bytes);
	expected = keep(graph, bytes);
	memset(host, 0xa5, bytes);
	frame_pack(from.root, &frame, expected);
	step = begin(graph, from.root->context_set);
	step.blocking = chance(graph, 20);
	add_operand(&step, &from, false);
	arrange(&step);
	node = given(&step,
		     clEnqueueReadImage(step.queue->handle, from.mem, step.blocking, frame.at,
					frame.size, 0, 0, host, step.wait_count, waits_of(&step),
					event_of(&step)),
		     "clEnqueueReadImage");
	expect(graph, host, expected, bytes, node);
}

static void do_fill_image(struct graph *graph)
{
	struct operand to;
	struct step step;
	struct frame frame;
	cl_uint color[4];

	if (!pick(graph, NULL, IMAGES, true, &to))
		return;
	frame = pick_frame(graph, to.root, SIZE_MAX);
	for (int i = 0; i < 4; i++)
		color[i] = (cl_uint)below(graph, 256);
	step = begin(graph, to.root->context_set);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueFillImage(step.queue->handle, to.mem, color, frame.at, frame.size,
				 step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueFillImage");
	for (size_t y = 0; y < frame.size[1]; y++)
		for (size_t x = 0; x < frame.size[0] * 4; x++)
			frame_row(to.root, &frame, y)[x] = (unsigned char)color[x % 4];
}

/* Between an image and a buffer, either way. */
static void do_copy_image(struct graph *graph)
{
	struct operand image, buffer;
	struct step step;
	struct frame frame;
	bool to_buffer = chance(graph, 50);
	size_t bytes, offset;

	if (!pick(graph, NULL, IMAGES, !to_buffer, &image) ||
	    !pick(graph, image.root->context_set, BUFFERS, to_buffer, &buffer) ||
	    buffer.bytes < IMAGE_ROW)
		return;
	/* PoCL 3 crashes if it is a sub-buffer. */
	buffer = (struct operand){ buffer.root, buffer.root->mem, 0, buffer.root->known };
	frame = pick_frame(graph, image.root, buffer.bytes / IMAGE_ROW);
	bytes = frame_bytes(&frame);
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
		frame_pack(image.root, &frame, model_of(&buffer) + offset);
		return;
	}
	given(&step,
	      clEnqueueCopyBufferToImage(step.queue->handle, buffer.mem, image.mem, offset,
					 frame.at, frame.size, step.wait_count, waits_of(&step),
					 event_of(&step)),
	      "clEnqueueCopyBufferToImage");
	frame_unpack(image.root, &frame, model_of(&buffer) + offset);
}

#endif
