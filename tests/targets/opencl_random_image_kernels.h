/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of opencl_random.c that use images, and their plain C equivalents. Pixels are
 * integers, filters take the nearest, and coordinates are not normalized: results are exact. Images
 * are never views of a buffer, which PoCL 3.1 reads from the wrong address.
 */
#ifndef OPENCL_RANDOM_IMAGE_KERNELS_H
#define OPENCL_RANDOM_IMAGE_KERNELS_H

#include "opencl_random_images.h"
#include "opencl_random_kernels.h"

/*
 * Each work item has a pixel of a 2D image, or an element of a buffer with rows as wide. Images
 * without alpha read as if it were 1, but as 0 in PoCL 3.1: they are taken as 0.
 */
static const char *const image_kernel_source =
	"#define X (int)get_global_id(0)\n"
	"#define Y (int)get_global_id(1)\n"
	"#define TAKE(pixel) ((pixel) * (uint4)(1, 1, 1, alpha))\n"
	"kernel void paint(write_only image2d_t to, read_only image2d_t from, int2 shift, uint k,\n"
	"                  uint limit, uint alpha)\n"
	"{\n"
	"	int2 at = { (X + shift.x) % get_image_width(from),\n"
	"		    (Y + shift.y) % get_image_height(from) };\n"
	"	write_imageui(to, (int2)(X, Y), (TAKE(read_imageui(from, at)) ^ k) & limit);\n"
	"}\n"
	"kernel void sample(write_only image2d_t to, read_only image2d_t from, int2 shift, uint k,\n"
	"                   uint limit, uint alpha, sampler_t sampler)\n"
	"{\n"
	"	uint4 pixel = TAKE(read_imageui(from, sampler, (int2)(X, Y) + shift));\n"
	"	write_imageui(to, (int2)(X, Y), (pixel ^ k) & limit);\n"
	"}\n"
	"kernel void sum(global uint *to, read_only image2d_t from, int2 shift, uint k,\n"
	"                uint limit, uint alpha, sampler_t sampler)\n"
	"{\n"
	"	uint4 pixel = TAKE(read_imageui(from, sampler, (int2)(X, Y) + shift));\n"
	"	to[Y * 16 + X] = pixel.x + pixel.y * 3 + pixel.z * 5 + pixel.w * 7 + k;\n"
	"}\n"
	"kernel void draw(write_only image2d_t to, global const uint *from, int2 shift, uint k,\n"
	"                 uint limit, uint alpha)\n"
	"{\n"
	"	uint v = from[Y * 16 + X];\n"
	"	uint4 pixel = { v, v >> 8, v >> 16, v >> 24 };\n"
	"	write_imageui(to, (int2)(X, Y), (pixel ^ k) & limit);\n"
	"}\n"
	"#ifdef READ_WRITE\n"
	"kernel void blend(read_write image2d_t to, global const uint *from, int2 shift, uint k,\n"
	"                  uint limit, uint alpha)\n"
	"{\n"
	"	uint4 pixel = read_imageui(to, (int2)(X, Y));\n"
	"	write_imageui(to, (int2)(X, Y), (pixel * 3 + from[Y * 16 + X] + k) & limit);\n"
	"}\n"
	"#endif\n";

struct image_launch {
	struct graph *graph;
	struct operand to, from;
	cl_int2 shift;
	cl_uint k, limit, alpha;
	cl_addressing_mode addressing; /* of the sampler */
	size_t first, rows;
};

struct pixel {
	cl_uint channels[4];
};

/* ---- the model ---- */

static cl_uint *words_of(const struct operand *operand)
{
	return (cl_uint *)(void *)model_of(operand);
}

static struct pixel load_pixel(const struct root *root, size_t x, size_t y)
{
	const unsigned char *at = root->model + y * IMAGE_ROW + x * PIXEL;
	struct pixel pixel = { { 0, 0, 0, 0 } };

	if (root->format.image_channel_order == CL_R) {
		memcpy(pixel.channels, at, PIXEL);
		return pixel;
	}
	for (int i = 0; i < 4; i++)
		pixel.channels[i] = at[i];
	return pixel;
}

static void store_pixel(const struct root *root, size_t x, size_t y, struct pixel pixel)
{
	unsigned char *at = root->model + y * IMAGE_ROW + x * PIXEL;

	if (root->format.image_channel_order == CL_R) {
		memcpy(at, pixel.channels, PIXEL);
		return;
	}
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)pixel.channels[i];
}

static struct pixel mask(const struct image_launch *launch, struct pixel pixel)
{
	for (int i = 0; i < 4; i++)
		pixel.channels[i] = (pixel.channels[i] ^ launch->k) & launch->limit;
	return pixel;
}

/* With the sampler. */
static struct pixel sample_pixel(const struct image_launch *launch, size_t x, size_t y)
{
	const struct root *root = launch->from.root;
	long at[2] = { (long)x + launch->shift.s[0], (long)y + launch->shift.s[1] };
	const struct pixel border = { { 0, 0, 0, 0 } };
	bool is_outside = false;

	for (int i = 0; i < 2; i++) {
		long end = (long)root->pixels[i];

		is_outside |= at[i] < 0 || at[i] >= end;
		at[i] = at[i] < 0 ? 0 : at[i] >= end ? end - 1 : at[i];
	}
	if (is_outside && launch->addressing == CL_ADDRESS_CLAMP)
		return border;
	return load_pixel(root, (size_t)at[0], (size_t)at[1]);
}

static void model_paint(const struct image_launch *launch, size_t x, size_t y)
{
	const struct root *from = launch->from.root;

	store_pixel(
		launch->to.root, x, y,
		mask(launch, load_pixel(from, (x + (size_t)launch->shift.s[0]) % from->pixels[0],
					(y + (size_t)launch->shift.s[1]) % from->pixels[1])));
}

static void model_sample(const struct image_launch *launch, size_t x, size_t y)
{
	store_pixel(launch->to.root, x, y, mask(launch, sample_pixel(launch, x, y)));
}

static void model_sum(const struct image_launch *launch, size_t x, size_t y)
{
	struct pixel pixel = sample_pixel(launch, x, y);

	words_of(&launch->to)[y * IMAGE_WIDTH + x] = pixel.channels[0] + pixel.channels[1] * 3 +
						     pixel.channels[2] * 5 + pixel.channels[3] * 7 +
						     launch->k;
}

static void model_draw(const struct image_launch *launch, size_t x, size_t y)
{
	cl_uint v = words_of(&launch->from)[y * IMAGE_WIDTH + x];
	struct pixel pixel = { { v, v >> 8, v >> 16, v >> 24 } };

	store_pixel(launch->to.root, x, y, mask(launch, pixel));
}

static void model_blend(const struct image_launch *launch, size_t x, size_t y)
{
	struct pixel pixel = load_pixel(launch->to.root, x, y);

	for (int i = 0; i < 4; i++)
		pixel.channels[i] = (pixel.channels[i] * 3 +
				     words_of(&launch->from)[y * IMAGE_WIDTH + x] + launch->k) &
				    launch->limit;
	store_pixel(launch->to.root, x, y, pixel);
}

/* ---- launches ---- */

static const struct image_kind {
	const char *name;
	int to, from; /* kinds of memory */
	bool has_sampler, is_read_write;
	void (*model)(const struct image_launch *launch, size_t x, size_t y);
} image_kinds[] = {
	{ "paint", IMAGES, IMAGES, false, false, model_paint },
	{ "sample", IMAGES, IMAGES, true, false, model_sample },
	{ "sum", ANY_MEMORY, IMAGES, true, false, model_sum },
	{ "draw", IMAGES, ANY_MEMORY, false, false, model_draw },
	{ "blend", IMAGES, ANY_MEMORY, false, true, model_blend },
};

static size_t rows_of(const struct operand *operand)
{
	return operand->root->is_image ? operand->root->pixels[1] : operand->bytes / IMAGE_ROW;
}

static bool choose_images(struct image_launch *launch, const struct image_kind *kind)
{
	size_t rows;

	if (!pick(launch->graph, NULL, kind->to, true, &launch->to) ||
	    !pick(launch->graph, launch->to.root->context_set, kind->from, false, &launch->from) ||
	    launch->from.root == launch->to.root || launch->to.root->flags & CL_MEM_READ_ONLY ||
	    launch->from.root->flags & CL_MEM_WRITE_ONLY)
		return false;
	if ((launch->to.root->is_image && launch->to.root->type != CL_MEM_OBJECT_IMAGE2D) ||
	    (launch->from.root->is_image && launch->from.root->type != CL_MEM_OBJECT_IMAGE2D))
		return false;
	/* All rows of the target that both have; reads of an image go anywhere. */
	rows = rows_of(&launch->to);
	if (!launch->from.root->is_image && rows_of(&launch->from) < rows)
		rows = rows_of(&launch->from);
	pick_range(launch->graph, rows, &launch->first, &launch->rows);
	return true;
}

static void choose_values(struct image_launch *launch, const struct image_kind *kind)
{
	struct graph *graph = launch->graph;

	for (int i = 0; i < 2; i++)
		launch->shift.s[i] = (cl_int)below(graph, 9) - (kind->has_sampler ? 4 : 0);
	launch->k = (cl_uint)next_random(graph);
	launch->limit = launch->to.root->format.image_channel_order == CL_R ? UINT32_MAX : 255;
	launch->alpha = launch->from.root->format.image_channel_order == CL_RGBA;
	launch->addressing = chance(graph, 50) ? CL_ADDRESS_CLAMP : CL_ADDRESS_CLAMP_TO_EDGE;
}

static void set_sampler(const struct image_launch *launch, struct launch *arguments)
{
	cl_sampler_properties properties[] = { CL_SAMPLER_NORMALIZED_COORDS,
					       CL_FALSE,
					       CL_SAMPLER_ADDRESSING_MODE,
					       launch->addressing,
					       CL_SAMPLER_FILTER_MODE,
					       CL_FILTER_NEAREST,
					       0 };
	cl_int code;
	cl_sampler sampler = clCreateSamplerWithProperties(launch->to.root->context_set->context,
							   properties, &code);

	check(launch->graph, code, "clCreateSamplerWithProperties");
	set_argument(arguments, 6, sizeof(sampler), &sampler);
	/* PoCL 3.1 frees it under the command. */
	launch->graph->samplers[launch->graph->sampler_count++] = sampler;
}

static void set_image_arguments(const struct image_launch *launch, struct launch *arguments)
{
	set_memory(arguments, 0, &launch->to);
	set_memory(arguments, 1, &launch->from);
	set_argument(arguments, 2, sizeof(launch->shift), &launch->shift);
	set_argument(arguments, 3, sizeof(launch->k), &launch->k);
	set_argument(arguments, 4, sizeof(launch->limit), &launch->limit);
	set_argument(arguments, 5, sizeof(launch->alpha), &launch->alpha);
}

static void enqueue_image_launch(const struct image_launch *launch, cl_kernel kernel,
				 const char *name)
{
	struct step step = begin(launch->graph, launch->to.root->context_set);
	size_t offset[2] = { 0, launch->first }, global[2] = { IMAGE_WIDTH, launch->rows };
	size_t local[2] = { IMAGE_WIDTH, 1 };

	add_operand(&step, &launch->to, true);
	add_operand(&step, &launch->from, false);
	arrange(&step);
	given(&step,
	      clEnqueueNDRangeKernel(step.queue->handle, kernel, 2, offset, global, local,
				     step.wait_count, waits_of(&step), event_of(&step)),
	      name);
}

static void do_launch_image(struct graph *graph)
{
	size_t kinds_count = sizeof(image_kinds) / sizeof(*image_kinds);
	const struct image_kind *kind = &image_kinds[below(graph, kinds_count)];
	struct image_launch launch = { .graph = graph };
	struct launch arguments = { .graph = graph };
	const struct context_set *context_set;
	cl_int code;

	if (!choose_images(&launch, kind))
		return;
	context_set = launch.to.root->context_set;
	if (kind->is_read_write && !context_set->has_read_write_images)
		return;
	choose_values(&launch, kind);
	arguments.kernel = clCreateKernel(context_set->image_program, kind->name, &code);
	check(graph, code, "clCreateKernel");
	if (code != CL_SUCCESS)
		return;
	set_image_arguments(&launch, &arguments);
	if (kind->has_sampler)
		set_sampler(&launch, &arguments);
	enqueue_image_launch(&launch, arguments.kernel, kind->name);
	for (size_t y = launch.first; y < launch.first + launch.rows; y++) {
		for (size_t x = 0; x < IMAGE_WIDTH; x++)
			kind->model(&launch, x, y);
	}
	clReleaseKernel(arguments.kernel);
}

#endif
